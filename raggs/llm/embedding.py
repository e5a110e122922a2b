"""Vectors of texts by a model: batches, checked before anything is kept, each text paid for once.

A vector is cached as the base64 of its little-endian float32 bytes. What a provider sends is not trusted: the number of
vectors, their places, their length and every value are checked, and an answer that fails is asked for again.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from raggs.arrays import Vectors
from raggs.errors import ProviderError
from raggs.hashing import hash_value
from raggs.llm.answers import Unusable
from raggs.llm.cache import Entry
from raggs.llm.calls import EmbedCall
from raggs.llm.faults import Fault
from raggs.llm.messages import EmbedRequest, Usage
from raggs.llm.prices import address_of, provider_of
from raggs.llm.settings import LLMSettings
from raggs.llm.tokens import estimate_tokens

if TYPE_CHECKING:
    from raggs.llm.cache import AnswerCache
    from raggs.llm.caller import Caller
    from raggs.llm.ledger import CallLedger


TASK = "embed"
BATCH_TOKENS = 100_000  # providers refuse requests of some 300,000; the estimate errs upwards


class Embedding:
    """One request: what of it is known, what is missing, and both together."""

    def __init__(
        self,
        caller: Caller,
        ledger: CallLedger,
        cache: AnswerCache | None,
        request: EmbedRequest,
        settings: LLMSettings,
    ) -> None:
        self._caller = caller
        self._ledger = ledger
        self._cache = cache
        self._request = request
        self._tries = settings.max_repairs + 1
        parts = {
            "provider": provider_of(request.model),
            "model": request.model,
            "address": address_of(request.model, settings.api_base),
            "dims": request.dims,
            "parameters": dict(request.parameters),
        }
        self._keys = [hash_value({**parts, "embed": text}) for text in request.texts]
        self._known: dict[str, Vectors] = {}

    def recall(self) -> Usage:
        """Take what is in the cache; returns what that saved."""
        used = Usage()
        for key in dict.fromkeys(self._keys):
            entry = None if self._cache is None else self._cache.get(key)
            vector = None if entry is None else vector_of(entry, self._request.dims)
            if entry is not None and vector is not None:
                self._known[key] = vector
                self._ledger.hit(self._request.model, TASK, entry.usd)
                used += Usage(cached=1, saved_usd=entry.usd)
        return used

    def batches(self) -> Iterator[dict[str, str]]:
        """The missing texts by key, in parts of no more texts and tokens than a call takes."""
        texts = {key: text for key, text in zip(self._keys, self._request.texts, strict=True) if key not in self._known}
        batch: dict[str, str] = {}
        tokens = 0
        for key, text in texts.items():
            size = estimate_tokens(text)
            if batch and (len(batch) >= self._request.batch or tokens + size > BATCH_TOKENS):
                yield batch
                batch, tokens = {}, 0
            batch[key] = text
            tokens += size
        if batch:
            yield batch

    async def obtain(self, batch: Mapping[str, str]) -> None:
        """Ask for one batch, and keep it.

        Raises:
            ProviderError: the provider failed, or its answers stayed unusable.
            RaggsError: what must stop the run (see `raggs.llm.faults`), or the budget.
        """
        vectors, used = await self._ask(list(batch.values()))
        sizes = [estimate_tokens(text) for text in batch.values()]
        for key, vector, size in zip(batch, vectors, sizes, strict=True):
            self._known[key] = vector
            if self._cache is not None:
                self._cache.put(key, entry_of(vector, self._request.model, used, size / sum(sizes)))

    def vectors(self) -> Vectors:
        """All vectors, in the order of the texts."""
        found = [self._known[key] for key in self._keys]
        return np.array(found, dtype=np.float32).reshape(len(found), self._request.dims)

    async def _ask(self, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        request, used, problem = self._request, Usage(), ""
        for _ in range(self._tries):
            with self._ledger.call(request.model, TASK) as trace:
                try:
                    found = await self._caller.call(EmbedCall(request.model, request.parameters, texts), trace)
                except Fault as fault:
                    trace.outcome = "failed"
                    raise fault.error from None  # there is no golden set without vectors
                used += trace.used
                try:
                    vectors = check(found.data, len(texts), request.dims)
                except Unusable as unusable:
                    trace.outcome, problem = "unusable", str(unusable)
                    continue
                trace.outcome = "answered"
                return vectors, used
        remedy = "check embed.embedder: its model and dims"
        raise ProviderError(f"{request.model} gave no usable vectors: {problem}", remedy=remedy)


def check(data: Sequence[Any], count: int, dims: int) -> Vectors:
    """The vectors of an answer, in the order of the texts.

    Raises:
        Unusable: another number of vectors, another length, or a value that is no finite number.
    """
    if len(data) != count:
        raise Unusable(f"{len(data)} vectors for {count} texts")
    places: list[Any] = [item.get("index", at) if isinstance(item, dict) else None for at, item in enumerate(data)]
    if any(type(place) is not int for place in places) or sorted(places) != list(range(count)):
        raise Unusable("the vectors do not say which texts they are of")
    found = np.empty((count, dims), dtype="<f4")
    for place, item in zip(places, data, strict=True):
        found[place] = _vector(item.get("embedding"), dims)
    return found


def _vector(values: Any, dims: int) -> Vectors:
    if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
        raise Unusable("a vector is not a list of numbers")
    if len(values) != dims:
        raise Unusable(f"a vector has {len(values)} dimensions, not {dims}")
    with np.errstate(over="ignore"):
        vector = np.array(values, dtype=np.float64).astype("<f4")
    if not np.isfinite(vector).all():
        raise Unusable("a vector holds NaN or infinity")
    return vector


def entry_of(vector: Vectors, model: str, used: Usage, part: float) -> Entry:
    """A vector as it is cached, with its part (0..1) of what the batch took."""
    raw = base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
    return Entry(raw, model, round(used.prompt_tokens * part), 0, used.usd * part)


def vector_of(entry: Entry, dims: int) -> Vectors | None:
    """The vector of an entry; None where it is none of that length, so that it is asked for again."""
    try:
        vector = np.frombuffer(base64.b64decode(entry.raw, validate=True), dtype="<f4")
    except ValueError:
        return None
    return vector if vector.shape == (dims,) and np.isfinite(vector).all() else None
