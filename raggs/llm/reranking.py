"""Scores of passages for a query by a reranking model: validated before they are stored, and paid for once per pair of
query and passage, unless a request asks for fresh scores.

raggs assumes that a score depends only on query, passage, model and parameters, because these rerankers read one
passage at a time. The scores for 200 candidates therefore include those for the first 50, and only missing scores are
requested. A call with 200 passages has another latency than one with 50, so each score is stored with the usage, name
and size of its call.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING
from uuid import uuid4

from raggs.base.errors import ProviderError
from raggs.base.hashing import canonical_json
from raggs.base.types import as_object, as_text
from raggs.llm.cache import CachedAnswer, claim_keys
from raggs.llm.calls import SEARCH_PASSAGES, Relevances, RerankCall, answer_key
from raggs.llm.conversation import Unusable
from raggs.llm.faults import Fault
from raggs.llm.messages import Answerer, CallUsage, RerankRequest, RerankScores
from raggs.llm.settings import LLMSettings

if TYPE_CHECKING:
    from raggs.llm.cache import AnswerCache, AnswerClaims
    from raggs.llm.caller import Caller
    from raggs.llm.ledger import CallLedger

TASK = "rerank"
ROUNDING = 1e-9  # searches
BATCH_TOKENS = 250_000  # providers reject requests of 300,000 or more; the estimate is conservative


@dataclass(frozen=True)
class PairScore:
    """The score of one passage, and its share of its call.

    Attributes:
        score: the score.
        call: name of the call.
        among: number of passages in the call.
        searches: billing units of the call.
        ms: latency of the call in milliseconds.
        tokens, usd: this passage's share of the usage.
        by: the model that answered, if recorded.
        payer: id of the run that paid for it; empty if unknown.
    """

    score: float
    call: str
    among: int
    searches: int
    ms: float
    tokens: int
    usd: float
    by: Answerer | None = None
    payer: str = ""

    def cached(self, model: str) -> CachedAnswer:
        """Return the cache entry of the pair."""
        shown = {"call": self.call, "of": self.among, "score": self.score, "searches": self.searches}
        raw = canonical_json(shown)
        return CachedAnswer(raw, model, self.tokens, 0, self.usd, self.ms, self.by, self.payer)

    @classmethod
    def of(cls, cached: CachedAnswer | None) -> PairScore | None:
        """Return the pair of a cached answer, or None if it is invalid, so that it is requested again."""
        try:
            found = {} if cached is None else as_object(json.loads(cached.raw))
        except (ValueError, RecursionError):
            return None
        score, call = _finite_number(found.get("score")), as_text(found.get("call"))
        among, searches = found.get("of"), found.get("searches")
        if cached is None or cached.ms is None or score is None or call is None:
            return None
        if not (isinstance(among, int) and among > 0 and isinstance(searches, int)):
            return None
        return cls(score, call, among, searches, cached.ms, cached.prompt_tokens, cached.usd, cached.by, cached.payer)

    @property
    def weight(self) -> float:
        """How many passages it was billed as: more than one if its call contained long passages."""
        least = -(-self.among // SEARCH_PASSAGES)
        return max(1.0, SEARCH_PASSAGES * self.searches / self.among) if self.searches > least else 1.0


Pairs = dict[str, PairScore]  # keyed by cache key


class RerankRequestState:
    """State of one request: known scores, missing passages, and the result."""

    def __init__(
        self,
        caller: Caller,
        ledger: CallLedger,
        cache: AnswerCache | None,
        request: RerankRequest,
        settings: LLMSettings,
    ) -> None:
        self._caller = caller
        self._ledger = ledger
        self._cache = cache
        self._request = request
        self._account = ledger.account(request.qid)
        self._tries = settings.max_repairs + 1
        asked = {"rerank": request.query, "parameters": dict(request.parameters)}
        self._claim = answer_key(request.model, settings, asked)
        self._keys = [answer_key(request.model, settings, {**asked, "passage": text}) for text in request.passages]
        self._known: Pairs = {}

    async def all(self, claims: AnswerClaims | None) -> RerankScores:
        """Return all scores. Concurrent requests for the same query wait for each other, also across runs that share
        these claims. Requests for fresh scores do not wait.

        Raises:
            ProviderError: the provider failed, or its answers stayed unusable.
            DataError: the provider rejected the request.
            RaggsError: the run must stop (see `raggs.llm.faults`), or the budget is used up.
        """
        if self._request.fresh:
            await self._caller.lead(f"{id(self)}", self._pay)
        self.learn(self.remembered())
        while self.missing:
            leader = self._caller.leader(self._claim)
            if leader is None:
                await self._caller.lead(self._claim, partial(self._obtain, claims))
                continue
            await asyncio.wait({leader})
            if not leader.cancelled() and leader.exception() is None:
                self.learn(leader.result())
        return self.scored()

    @property
    def missing(self) -> dict[str, str]:
        """The passages without a score, by key."""
        texts = zip(self._keys, self._request.passages, strict=True)
        return {key: text for key, text in texts if key not in self._known}

    def remembered(self) -> Pairs:
        """Return the cached scores of the missing passages."""
        found = {key: PairScore.of(self._cache.get(key)) for key in self.missing} if self._cache is not None else {}
        return {key: pair for key, pair in found.items() if pair is not None}

    def learn(self, pairs: Mapping[str, PairScore]) -> None:
        """Use scores that were paid for earlier."""
        for key in self.missing.keys() & pairs.keys():
            self._known[key] = pairs[key]
            model, pair = self._request.model, pairs[key]
            self._ledger.hit(self._account, model, TASK, pair.usd, pair.by or Answerer(asked=model), pair.payer)

    def calls(self) -> Iterator[tuple[Sequence[str], RerankCall]]:
        """Yield the calls to make with the keys of their passages, within the size limits of a call."""
        missing, request = self.missing, self._request
        whole = RerankCall(request.model, request.parameters, request.query, list(missing.values()))
        parts: list[list[str]] = []
        tokens = 0
        for key, size in zip(missing, whole.sizes, strict=True):
            if not parts or len(parts[-1]) >= request.batch or tokens + size > BATCH_TOKENS:
                parts.append([])
                tokens = 0
            parts[-1].append(key)
            tokens += size
        for part in parts:
            texts = [missing[key] for key in part]
            yield part, RerankCall(request.model, request.parameters, request.query, texts)

    def scored(self) -> RerankScores:
        """Return the scores in the order of the passages, and the usage of their calls."""
        pairs = list({key: self._known[key] for key in self._keys}.values())
        tokens, usd = sum(pair.tokens for pair in pairs), math.fsum(pair.usd for pair in pairs)
        searches = math.ceil(math.fsum(pair.weight for pair in pairs) / SEARCH_PASSAGES - ROUNDING)
        took = CallUsage(len({pair.call for pair in pairs}), tokens, self._ms(pairs), usd, searches)
        return RerankScores(tuple(self._known[key].score for key in self._keys), took)

    def _ms(self, pairs: Sequence[PairScore]) -> float | None:
        """Return the latency if a single request for these passages would make exactly these calls, otherwise None."""
        brought, times = Counter(pair.call for pair in pairs), {pair.call: (pair.among, pair.ms) for pair in pairs}
        whole = all(brought[call] == among for call, (among, _) in times.items())
        if not whole or len(times) > -(-len(pairs) // self._request.batch):
            return None
        return math.fsum(ms for _, ms in times.values())

    async def _obtain(self, claims: AnswerClaims | None) -> Pairs:
        """Request and cache the missing scores. Calls are sequential, because their latencies are summed."""
        async with claim_keys(claims, [self._claim]):
            self.learn(self.remembered())  # another run may have paid for them in the meantime
            return await self._pay()

    async def _pay(self) -> Pairs:
        for keys, call in self.calls():
            await self._ask(call, partial(self._keep, keys, call.model))
            self._ledger.answerers.require(self._known[keys[0]].by)
        return self._known

    def _keep(self, keys: Sequence[str], model: str, found: Sequence[PairScore]) -> None:
        pairs = dict(zip(keys, found, strict=True))
        self._known.update(pairs)
        if self._cache is not None:
            with self._caller.storing():
                self._cache.put_all({key: pair.cached(model) for key, pair in pairs.items()})

    async def _ask(self, call: RerankCall, keep: Callable[[Sequence[PairScore]], None]) -> None:
        """Repeat a call until its answer is usable. An answer is cached before it is booked, so that a kill loses no
        answer.
        """
        usd, problem = 0.0, ""
        for _ in range(self._tries):
            with self._ledger.call(self._account, call.model, TASK) as trace:
                try:
                    found = await self._caller.call(call, trace)
                except Fault as fault:
                    trace.outcome = "failed"
                    raise fault.error from None
                usd += trace.took.usd
                try:
                    scores = check(found.data, len(call.passages))
                except Unusable as unusable:
                    trace.outcome, problem = "unusable", str(unusable)
                    continue
                trace.outcome = "answered"
                pairs = _pairs(scores, call, trace.took, usd, found)
                keep([replace(pair, payer=self._ledger.payer) for pair in pairs])
                return
        raise ProviderError(
            f"{call.model} returned no usable scores: {problem}",
            remedy="check that the model is a reranker, and its parameters",
        )


def check(data: Sequence[object], count: int) -> list[float]:
    """Return the scores of an answer, in the order of the passages.

    Raises:
        Unusable: the number of scores is wrong, a passage is missing or repeated, or a score is not a finite number.
    """
    if len(data) != count:
        raise Unusable(f"{len(data)} scores for {count} passages")
    items = [as_object(item) for item in data]
    places = [place for item in items if type(place := item.get("index")) is int]  # isinstance would accept bool as int
    if sorted(places) != list(range(count)):
        raise Unusable("the scores do not state the position of each passage exactly once")
    found = [math.nan] * count
    for place, item in zip(places, items, strict=True):
        score = _finite_number(item.get("relevance_score"))
        if score is None:
            raise Unusable("a score is not a finite number")
        found[place] = score
    return found


def _finite_number(found: object) -> float | None:
    """Return `found` if it is a finite number, otherwise None."""
    if not isinstance(found, int | float) or isinstance(found, bool) or not abs(found) <= sys.float_info.max:
        return None
    return float(found)


def _pairs(
    scores: Sequence[float], call: RerankCall, took: CallUsage, usd: float, found: Relevances
) -> list[PairScore]:
    """Return each score with its share of the usage, by length. `usd` includes earlier unusable answers."""
    name, whole = uuid4().hex, sum(call.sizes)
    # rounded so that the shares add up to the total
    ends = [took.tokens * end // whole for end in accumulate(call.sizes)]
    starts = [0, *ends[:-1]]
    ms = round(took.ms or 0.0, 3)
    return [
        PairScore(score, name, len(scores), found.searches, ms, end - start, usd * size / whole, found.by)
        for score, size, start, end in zip(scores, call.sizes, starts, ends, strict=True)
    ]
