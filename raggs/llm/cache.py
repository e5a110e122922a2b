"""Answers that were paid for, on disk.

diskcache would read a pickle that someone planted in its database, and a pickle runs code; so the `Disk` here stores
text in the database itself and refuses everything else: no pickles, no side files. Nothing is ever evicted. A row that
is not what was stored is a miss, and the next answer replaces it. Writes survive a killed process at once; a power cut
may cost the latest few.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

import diskcache

from raggs.base.errors import BusyError, ProviderError
from raggs.base.hashing import canonical_json
from raggs.base.inputs import lacks_handles, no_handles, regular_file
from raggs.base.spending import Spending
from raggs.llm.answerers import Answerer
from raggs.llm.messages import Took

T = TypeVar("T")
N = TypeVar("N", int, float)

RAW = 1  # diskcache's mode for values that lie in the database as they are
FOLDER_MODE = 0o700
DATABASE = "cache.db"
LONGEST_PAYER = 64  # characters
MOST = 1e12  # tokens or USD of one answer
PATIENCE_S = 30.0  # how long another process may lock the database
LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class RefusedRow(OSError):
    """A row that this cache cannot have written. An OSError, since diskcache takes those for a miss."""


class TextDisk(diskcache.Disk):  # type: ignore[misc]
    """Keys and values are text in the database, or they are refused."""

    def put(self, key: object) -> tuple[str, bool]:
        if not isinstance(key, str):
            raise TypeError(f"a cache key is text, not {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: bool) -> str:
        return key if raw and isinstance(key, str) else ""

    def store(self, value: object, read: bool, key: object = None) -> tuple[int, int, None, str]:
        if read or not isinstance(value, str):
            raise TypeError(f"a cached value is text, not {type(value).__name__}")
        return 0, RAW, None, value

    def fetch(self, mode: int, filename: str | None, value: object, read: bool) -> str:
        if mode != RAW or filename is not None or read or not isinstance(value, str):
            raise RefusedRow("not a row of this cache")
        return value

    def remove(self, file_path: str) -> None:
        """Nothing lies outside the database, so a row that names a file does not get it deleted."""


@dataclass(frozen=True)
class CachedAnswer:
    """A valid answer: the model's words, what they took and what they cost.

    Attributes:
        ms: the time of the calls, if known.
        by: who answered, if it was recorded.
        payer: the run that paid for it, by its ledger's name; empty if that was not recorded.
    """

    raw: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    usd: float
    ms: float | None = None
    by: Answerer | None = None
    payer: str = ""

    @classmethod
    def of(
        cls,
        raw: str,
        model: str,
        spent: Spending,
        ms: float | None = None,
        by: Answerer | None = None,
        payer: str = "",
    ) -> CachedAnswer:
        """The words `raw` of `model`, and what they took."""
        return cls(raw, model, spent.prompt_tokens, spent.completion_tokens, spent.usd, _rounded(ms), by, payer)

    @property
    def answerer(self) -> Answerer:
        """Who answered, as far as it was recorded."""
        return self.by or Answerer(asked=self.model)

    @property
    def row(self) -> str:
        """The text that the cache keeps."""
        found = {name: value for name, value in vars(self).items() if value is not None and value != ""}
        found["raw"] = self.raw
        return canonical_json({**found, **({} if self.by is None else {"by": self.by.stated})})

    @property
    def took(self) -> Took:
        """What it took when it was paid for; how many calls is not kept."""
        return Took(1, self.prompt_tokens, self.ms, self.usd)


class AnswerCache:
    """Answers by key. Opened once; safe for several processes at a time."""

    WHAT: ClassVar[str] = "cache of answers"
    LOSS: ClassVar[str] = "its answers are paid again"

    def __init__(self, folder: Path) -> None:
        """Open the cache in `folder`, made (mode 0700) if missing.

        Raises:
            ProviderError: the folder cannot be written, or holds a damaged database.
            BusyError: another process holds the database, for longer than `PATIENCE_S`.
        """
        self.folder = folder
        self._bad: set[str] = set()
        with self._guarded():
            folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            with suppress(PermissionError):  # someone else's folder, shared on purpose
                folder.chmod(FOLDER_MODE)
            _wait_for(folder / DATABASE)
            self._cache = diskcache.Cache(
                str(folder), disk=TextDisk, eviction_policy="none", cull_limit=0, timeout=PATIENCE_S
            )

    def get(self, key: str) -> CachedAnswer | None:
        """The entry of `key`; None where there is none, or none that can be read."""
        with self._guarded():
            text = self._cache.get(key)
        found = None if text is None else _parse(text)
        if text is not None and found is None:
            self._bad.add(key)
        return found

    @property
    def damaged(self) -> int:
        """How many entries were looked up that cannot be used."""
        return len(self._bad)

    def find(self, key: str, earlier: str | None) -> CachedAnswer | None:
        """The entry of `key`, or of the key that it had in an `earlier` version, which goes first and is kept anew."""
        if earlier is None or (found := self.get(earlier)) is None:
            return self.get(key)
        if self.get(key) is None:
            self.put(key, found)
        return found

    def put(self, key: str, entry: CachedAnswer) -> None:
        """Keep an entry, in place of an older one."""
        self.put_all({key: entry})

    def put_all(self, entries: Mapping[str, CachedAnswer]) -> None:
        """Keep entries that one call has brought: a process that is killed has kept all of them, or none."""
        with self._guarded(), self._alone():
            for key, entry in entries.items():
                self._cache.set(key, entry.row)

    def clear(self) -> int:
        """Forget everything; returns how many rows there were."""
        with self._guarded():
            return int(self._cache.clear())

    def stats(self) -> CacheStats:
        """What it holds; reads every row."""
        with self._guarded():
            entries = [entry for key in self._cache if key and (entry := self.get(key))]
            usd = sum(entry.usd for entry in entries)
            return CacheStats(len(entries), int(self._cache.volume()), usd, len(self._cache) - len(entries))

    def close(self) -> None:
        """Close the database."""
        self._cache.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A transaction. Who has waited for one in vain does not wait again with the next answer."""
        if (database := self.folder / DATABASE) in _given_up:
            _wait_for(database)
        with self._cache.transact():
            yield

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, diskcache.Timeout, OSError) as error:
            if isinstance(error, diskcache.Timeout) or getattr(error, "sqlite_errorcode", None) in LOCKED:
                _given_up[self.folder / DATABASE] = time.monotonic()
                raise BusyError(
                    f"the {self.WHAT} is locked by another process, for more than {PATIENCE_S:g} s",
                    where=self.folder / DATABASE,
                    remedy="end that process, or wait for it and run again",
                ) from None
            if lacks_handles():
                raise no_handles(self.folder / DATABASE) from None
            told = str(error)
            remedy = f"make room or check the folder; a damaged {DATABASE} must be deleted ({self.LOSS})"
            raise ProviderError(f"the {self.WHAT} cannot be used: {told}", where=self.folder, remedy=remedy) from None


_given_up: dict[Path, float] = {}  # databases, and when they were waited for in vain


def _wait_for(database: Path) -> None:
    """Wait until nobody writes into a database, by beginning to: where there is a log of writes, readers never wait.

    diskcache writes when it opens a database, and would wait for a minute and more with each of its statements.
    """
    if database.exists():
        waited = time.monotonic() - _given_up.get(database, -math.inf) < PATIENCE_S  # by the question before
        with closing(sqlite3.connect(regular_file(database), timeout=0 if waited else PATIENCE_S)) as connection:
            connection.execute("BEGIN IMMEDIATE")
    _given_up.pop(database, None)


def _parse(text: str) -> CachedAnswer | None:
    try:
        found = json.loads(text)
        return CachedAnswer(
            raw=_typed(found["raw"], str),
            model=_typed(found["model"], str),
            prompt_tokens=_amount(_typed(found["prompt_tokens"], int)),
            completion_tokens=_amount(_typed(found["completion_tokens"], int)),
            usd=_amount(float(found["usd"])),
            ms=None if (ms := found.get("ms")) is None else _amount(float(ms)),
            by=None if (by := found.get("by")) is None else Answerer(asked=found["model"], **by),
            payer=_typed(found.get("payer", ""), str)[:LONGEST_PAYER],
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def _rounded(ms: float | None) -> float | None:
    return None if ms is None else round(ms, 3)


def _amount(value: N) -> N:
    """A count or a price, as an answer can have.

    Raises:
        ValueError: negative, infinite or no number.
    """
    if not 0 <= value <= MOST:
        raise ValueError("not an amount")
    return value


def _typed(value: object, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"not {kind.__name__}")
    return value


@dataclass(frozen=True)
class CacheStats:
    """What the cache holds: `entries` answers in `bytes` on the disk, which cost `usd`; and rows that are none."""

    entries: int
    bytes: int
    usd: float
    damaged: int = 0


def cache_stats(folder: Path) -> CacheStats:
    """What the cache in `folder` holds; zeros where there is none.

    Raises:
        ProviderError: it cannot be read.
    """
    return CacheStats(0, 0, 0.0) if (cache := _existing(folder)) is None else _then_close(cache, cache.stats)


def clear_cache(folder: Path) -> int:
    """Forget all answers in `folder` (the guard's key stays); returns how many rows there were.

    Raises:
        ProviderError: it cannot be written.
    """
    return 0 if (cache := _existing(folder)) is None else _then_close(cache, cache.clear)


def _existing(folder: Path) -> AnswerCache | None:
    return AnswerCache(folder) if (folder / DATABASE).exists() else None


def _then_close(cache: AnswerCache, work: Callable[[], T]) -> T:
    try:
        return work()
    finally:
        cache.close()
