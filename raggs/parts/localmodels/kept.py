"""Pairs of query and passage that a model of this machine has read: what it gave, and what that took.

One row a query, so that a list of candidates is looked up at once. A row counts only whole, and for its own query
alone: what is not as it was written there is read again by the model, and the listener is told. Two processes that read
the same query at a time may each lose some of the other's pairs, never get a wrong one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from raggs.base.hashing import canonical_json, hash_bytes, hash_value
from raggs.base.jsontypes import as_object
from raggs.base.progress import Notify, unheard
from raggs.llm.cache import AnswerCache, CachedAnswer

FORMAT = 2


@dataclass(frozen=True)
class Pair:
    """What a model gave for a pair of texts, the tokens that it read, and its share of the time, in ms."""

    logits: tuple[float, ...]
    tokens: int
    ms: float


class ScoreCache(AnswerCache):
    """Rows on the disk (see `raggs.llm.cache`)."""

    WHAT: ClassVar[str] = "cache of scores"
    LOSS: ClassVar[str] = "its scores are computed again"


class KeptPairs:
    """The pairs of one model.

    Args:
        folder: of the cache, made when something is kept; None keeps nothing.
        model: whatever can change what the model gives, as a hash.
        notify: hears of rows that are not as they were written.
    """

    def __init__(self, folder: Path | None, model: str, notify: Notify = unheard) -> None:
        self._folder = folder
        self._model = model
        self._notify = notify
        self._cache: ScoreCache | None = None

    def of(self, query: str) -> dict[str, Pair]:
        """What is known of a query, by `passage_key`."""
        cache = self._open()
        found = None if cache is None else cache.get(self._key(query))
        return {} if found is None else _pairs(self._rows(query, found.raw))

    def keep(self, query: str, pairs: Mapping[str, Pair]) -> None:
        """Keep pairs beside those that are there."""
        if not pairs or (cache := self._open()) is None:
            return
        rows: dict[str, object] = {key: [list(pair.logits), pair.tokens, pair.ms] for key, pair in pairs.items()}
        key = self._key(query)
        known = cache.get(key)
        rows = {**({} if known is None else self._rows(query, known.raw)), **rows}
        raw = canonical_json({"pairs": rows, "sha256": hash_value([key, rows])})
        cache.put(key, CachedAnswer(raw, self._model, 0, 0, 0.0))

    def _rows(self, query: str, raw: str) -> dict[str, object]:
        """Return the rows of a query's entry as they were written; none if they were not."""
        try:
            found = as_object(json.loads(raw))
        except (ValueError, RecursionError):
            found = {}
        rows = dict(as_object(found.get("pairs")))
        if found.get("sha256") == hash_value([self._key(query), rows]):
            return rows
        self._notify(f"{self._folder}: the scores kept for a query are not what was stored, so they are computed again")
        return {}

    def close(self) -> None:
        """Close the database; it is opened again where it is needed."""
        if self._cache is not None:
            self._cache.close()
            self._cache = None

    def _open(self) -> ScoreCache | None:
        if self._cache is None and self._folder is not None:
            self._cache = ScoreCache(self._folder)
        return self._cache

    def _key(self, query: str) -> str:
        return hash_value([FORMAT, self._model, query])


def passage_key(text: str) -> str:
    """What stands for a passage in a row."""
    return hash_bytes(text.encode("utf-8", "surrogatepass"))[:32]


def _pairs(rows: Mapping[str, object]) -> dict[str, Pair]:
    found: dict[str, Pair] = {}
    for key, row in rows.items():
        match row:
            case [list(logits), int(tokens), int(ms) | float(ms)]:
                found[key] = Pair(tuple(float(each) for each in logits), tokens, float(ms))
    return found
