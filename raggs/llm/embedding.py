"""Embeddings of texts: requested in batches, validated before they are stored, and paid for once per text.

A vector is cached as the base64 of its little-endian float32 bytes. Answers of providers are not trusted: the number of
vectors, their order, their length and every value are checked. An invalid answer is requested again, up to
`max_repairs` times.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from raggs.base.arrays import Vectors
from raggs.base.artifacts import Spending
from raggs.base.errors import ProviderError
from raggs.base.types import as_list, as_object
from raggs.llm.cache import CachedAnswer, claim_keys
from raggs.llm.calls import EmbedCall, answer_key
from raggs.llm.conversation import Unusable
from raggs.llm.faults import Fault
from raggs.llm.messages import EmbedRequest
from raggs.llm.prices import estimate_tokens
from raggs.llm.settings import LLMSettings

if TYPE_CHECKING:
    from raggs.llm.cache import AnswerCache, AnswerClaims
    from raggs.llm.caller import Caller
    from raggs.llm.ledger import CallLedger
    from raggs.llm.messages import Answerer


TASK = "embed"
BATCH_TOKENS = 100_000  # providers reject requests above some 300,000; the estimate is conservative


class EmbedRequestState:
    """State of one request: known vectors, missing texts, and the result."""

    def __init__(
        self,
        caller: Caller,
        ledger: CallLedger,
        cache: AnswerCache | None,
        request: EmbedRequest,
        settings: LLMSettings,
        claims: AnswerClaims | None = None,
    ) -> None:
        self._caller = caller
        self._ledger = ledger
        self._cache = cache
        self._claims = claims
        self._request = request
        self._account = ledger.account(request.qid)
        self._tries = settings.max_repairs + 1
        parts: dict[str, object] = {"dims": request.dims, "parameters": dict(request.parameters)}
        self._keys = [answer_key(request.model, settings, {**parts, "embed": text}) for text in request.texts]
        self._known: dict[str, Vectors] = {}

    async def all(self) -> Vectors:
        """Return all vectors, in the order of the texts. Batches are sent concurrently.

        Raises:
            RaggsError: see `obtain`.
        """
        self.recall()
        asked = [
            asyncio.ensure_future(self._caller.lead(f"{id(self)} {number}", partial(self.obtain, batch)))
            for number, batch in enumerate(self.batches())
        ]
        try:
            await asyncio.gather(*asked)
        finally:
            for batch in asked:
                batch.cancel()
        return self.vectors()

    def recall(self, keys: Iterable[str] | None = None) -> None:
        """Load the cached vectors of all texts, or only of the texts with the given `keys`."""
        for key in dict.fromkeys(self._keys if keys is None else keys):
            cached = None if self._cache is None else self._cache.get(key)
            vector = None if cached is None else vector_of(cached, self._request.dims)
            if cached is not None and vector is not None:
                self._known[key] = vector
                self._ledger.hit(self._account, self._request.model, TASK, cached.usd, cached.answerer, cached.payer)

    @property
    def known(self) -> int:
        """Number of texts with a vector."""
        return len(self._known)

    def batches(self) -> Iterator[dict[str, str]]:
        """Yield the missing texts by key, in batches that respect the maximum number of texts and tokens per call."""
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
        """Request one batch and cache it. If another run is requesting some of the vectors, wait and use its answers.

        Raises:
            ProviderError: the provider failed, or its answers stayed unusable.
            DataError: the provider rejected the request.
            RaggsError: the run must stop (see `raggs.llm.faults`), or the budget is used up.
        """
        left = dict(batch)
        while left:
            async with claim_keys(self._claims, left) as mine:
                self.recall(key for key in left if key in mine)
                missing = {key: text for key, text in left.items() if key in mine and key not in self._known}
                if missing:
                    await self._pay(missing)
                left = {key: text for key, text in left.items() if key not in mine}

    async def _pay(self, batch: Mapping[str, str]) -> None:
        by = await self._ask(list(batch.values()), partial(self._keep, batch))
        self._ledger.answerers.require(by)

    def _keep(self, batch: Mapping[str, str], vectors: Vectors, spent: Spending, by: Answerer | None) -> None:
        sizes, payer = [estimate_tokens(text) for text in batch.values()], self._ledger.payer
        self._known.update(zip(batch, vectors, strict=True))
        if self._cache is not None:
            parts = [size / sum(sizes) for size in sizes]
            model, found = self._request.model, zip(batch, vectors, parts, strict=True)
            with self._caller.storing():
                self._cache.put_all(
                    {key: cached_vector(vector, model, spent, part, by, payer) for key, vector, part in found}
                )
        self._ledger.answerers.require(by)

    def vectors(self) -> Vectors:
        """Return all vectors, in the order of the texts."""
        found = [self._known[key] for key in self._keys]
        return np.array(found, dtype=np.float32).reshape(len(found), self._request.dims)

    async def _ask(
        self, texts: Sequence[str], keep: Callable[[Vectors, Spending, Answerer | None], None]
    ) -> Answerer | None:
        """Repeat a call until its answer is usable. An answer is cached before it is booked, so that a kill loses no
        answer.
        """
        request, spent, problem = self._request, Spending(), ""
        for _ in range(self._tries):
            with self._ledger.call(self._account, request.model, TASK) as trace:
                try:
                    found = await self._caller.call(EmbedCall(request.model, request.parameters, texts), trace)
                except Fault as fault:
                    trace.outcome = "failed"
                    raise fault.error from None  # a run cannot continue without vectors
                spent += trace.spent
                try:
                    vectors = check(found.data, len(texts), request.dims)
                except Unusable as unusable:
                    trace.outcome, problem = "unusable", str(unusable)
                    continue
                trace.outcome = "answered"
                keep(vectors, spent, found.by)
                return found.by
        remedy = "check embed.embedder: its model and dims"
        raise ProviderError(f"{request.model} returned no usable vectors: {problem}", remedy=remedy)


def check(data: Sequence[object], count: int, dims: int) -> Vectors:
    """Return the vectors of an answer, in the order of the texts.

    Raises:
        Unusable: the number, the positions or the length of the vectors are wrong, or a value is not a finite number.
    """
    if len(data) != count:
        raise Unusable(f"{len(data)} vectors for {count} texts")
    items = [as_object(item) for item in data]
    told = [item.get("index", at) if item else None for at, item in enumerate(items)]
    places = [place for place in told if type(place) is int]  # isinstance would accept bool as int
    if sorted(places) != list(range(count)):
        raise Unusable("the vectors do not state the positions of their texts")
    found = np.empty((count, dims), dtype="<f4")
    for place, item in zip(places, items, strict=True):
        found[place] = _vector(item.get("embedding"), dims)
    return found


def _vector(found: object, dims: int) -> Vectors:
    values = [value for value in as_list(found) if type(value) in (int, float)]
    if not isinstance(found, list) or len(values) < len(found):
        raise Unusable("a vector is not a list of numbers")
    if len(values) != dims:
        raise Unusable(f"a vector has {len(values)} dimensions, not {dims}")
    try:
        given = np.array(values, dtype=np.float64)
    except OverflowError as error:
        raise Unusable("a vector contains a whole number that is too large") from error
    # in float32, all values would be zero or lose digits
    if 0 < (largest := np.abs(given).max(initial=0.0)) < np.finfo(np.float32).tiny:
        given = np.ldexp(given, -int(np.frexp(largest)[1]))
    with np.errstate(over="ignore"):
        vector: Vectors = given.astype("<f4")
    if not np.isfinite(vector).all():
        raise Unusable("a vector contains NaN or infinity")
    return vector


def cached_vector(
    vector: Vectors, model: str, spent: Spending, part: float, by: Answerer | None = None, payer: str = ""
) -> CachedAnswer:
    """Return a vector as a cache entry, with its share (0..1) of the usage of the batch."""
    raw = base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
    return CachedAnswer(raw, model, round(spent.prompt_tokens * part), 0, spent.usd * part, by=by, payer=payer)


def vector_of(cached: CachedAnswer, dims: int) -> Vectors | None:
    """Return the vector of a cached answer, or None if it is invalid or has another length, so that it is requested
    again.
    """
    try:
        vector = np.frombuffer(base64.b64decode(cached.raw, validate=True), dtype="<f4")
    except ValueError:
        return None
    return vector if vector.shape == (dims,) and np.isfinite(vector).all() else None
