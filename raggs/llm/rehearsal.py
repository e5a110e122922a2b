"""Language models for dry runs: they return paid answers from the cache, and count missing ones. Vectors are zeros.

Components get these models instead of real ones, so that their calls are counted. No model is called, nothing is
booked, and no cache is created.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from raggs.base.errors import ProviderError
from raggs.llm.client import LLM
from raggs.llm.conversation import call_of
from raggs.llm.messages import ChatRequest, DecisionRequest, EmbedRequest, Reply, RerankRequest, RerankScores
from raggs.llm.prices import HIDDEN, estimate_tokens, reasons
from raggs.llm.settings import BudgetSettings, LLMSettings

if TYPE_CHECKING:
    from raggs.base.arrays import Vectors

T = TypeVar("T")

NOT_CACHED_MESSAGE = "not paid for yet"


@dataclass
class CallEstimate:
    """Requests of one task to one model: how many have a cached answer, how many are missing, and the usage of the
    missing ones.

    A request to a reranker is a passage with its query, and a request to an embedder is a text. One call contains many
    such requests.

    Attributes:
        answers: tokens of the answers, including `hidden` per answer; 0 for embedders, rerankers and decision models.
        limit: maximum tokens per answer that the requests enforce; None if they enforce none.
        guessed: whether some requests represent similar ones, or depend on missing answers.
        paid: whether the calls cost money; false for a local judge.
    """

    known: int = 0
    missing: int = 0
    tokens: int = 0
    calls: int = 0
    searches: int = 0
    answers: int = 0
    hidden: int = 0
    limit: int | None = None
    guessed: bool = False
    paid: bool = True

    def add(self, calls: int, tokens: int, *, answers: int = 0, searches: int = 0) -> None:
        """Count further calls and the total of their tokens."""
        self.calls += calls
        self.tokens += tokens
        self.answers += answers
        self.searches += searches


class DryRunLLM(LLM):
    """Language models for dry runs. `cache_dir`: answer cache as in `LLM`; None if nothing was paid for."""

    def __init__(self, settings: LLMSettings, cache_dir: Path | None) -> None:
        there = cache_dir is not None and cache_dir.is_dir() and any(cache_dir.iterdir())
        super().__init__(settings, BudgetSettings(max_usd=None, max_calls=0), cache_dir if there else None)
        self._asked: dict[tuple[str, str, str], CallEstimate] = {}
        self._stage = ""
        self._times: int | None = None
        # hashes of texts with their models and settings, whose vectors the run would already have cached
        self._embedded: set[int] = set()

    def turn_to(self, stage: str) -> None:
        """Count further calls for this stage."""
        self._stage = stage

    @contextmanager
    def standing_for(self, times: int) -> Iterator[None]:
        """Count each chat or rerank request of the block `times` times: each stands for similar requests that are not
        known yet. Paid answers to them are not looked up. Texts to embed count once.
        """
        self._times = times
        try:
            yield
        finally:
            self._times = None

    def guess(self) -> None:
        """Mark the counts of this stage as estimates, because they depend on missing answers."""
        for (stage, _, _), asked in self._asked.items():
            asked.guessed = asked.guessed or stage == self._stage

    def count(
        self, who: str, task: str, calls: int, tokens: int = 0, *, exact: bool = False, paid: bool = True
    ) -> None:
        """Count calls without making requests, because their number is known or would take long to determine."""
        asked = self._counted(who, task)
        asked.guessed, asked.paid = asked.guessed or not exact, paid
        asked.add(calls, tokens)

    async def ask(self, request: ChatRequest[T] | DecisionRequest[T]) -> Reply[T]:
        """Return the paid answer, or a reply without a value."""
        asked, times = self._counted(request.model, request.schema_name), self._times
        known = self.known(request) if times is None else None
        if known is not None:
            asked.known += 1
            return known
        times, parameters = 1 if times is None else times, self._parameters(request)
        asked.missing += times
        answer = request.max_output_tokens if isinstance(request, ChatRequest) else 0
        if isinstance(request, DecisionRequest) or request.logprobs:
            asked.limit = answer
        asked.hidden = HIDDEN if asked.limit is None and reasons(request.model, parameters) else 0
        asked.add(times, times * call_of(request, {}).prompt_tokens, answers=times * (answer + asked.hidden))
        return Reply(None, NOT_CACHED_MESSAGE)

    async def rerank(self, request: RerankRequest) -> RerankScores:
        """Return the paid scores.

        Raises:
            ProviderError: some are not paid for.
        """
        from raggs.llm.reranking import TASK, RerankRequestState

        asked, times = self._counted(request.model, TASK), self._times
        work = RerankRequestState(self._caller, self._ledger, self._cache, request, self.settings)
        if times is None:
            work.learn(work.remembered())
            asked.known += len(set(request.passages)) - len(work.missing)
        times = 1 if times is None else times
        asked.missing += times * len(work.missing)
        for _, call in work.calls():
            asked.add(times, times * call.prompt_tokens, searches=times * call.searches)
        if work.missing:
            raise ProviderError(NOT_CACHED_MESSAGE)
        return work.scored()

    async def embed(self, request: EmbedRequest) -> Vectors:
        """Count the texts with and without a paid vector, and the calls for the texts without one. Return zeros for
        all texts, shape (texts, dims).
        """
        import numpy as np

        from raggs.llm.embedding import TASK, EmbedRequestState

        texts = dict.fromkeys(request.texts)
        embedder = (request.model, request.dims, repr(request.parameters))
        fresh = [text for text in texts if hash((*embedder, text)) not in self._embedded]
        work = EmbedRequestState(self._caller, self._ledger, self._cache, replace(request, texts=fresh), self.settings)
        work.recall()
        if not texts:
            return np.zeros((0, request.dims), dtype=np.float32)
        asked = self._counted(request.model, TASK)
        asked.known += work.known + len(texts) - len(fresh)
        for batch in work.batches():
            asked.missing += len(batch)
            asked.add(1, sum(map(estimate_tokens, batch.values())))
        self._embedded.update(hash((*embedder, text)) for text in fresh)
        return np.zeros((len(request.texts), request.dims), dtype=np.float32)

    def asked(self, model: str, task: str) -> CallEstimate:
        """Return the requests to a model so far, for this stage."""
        return self._asked.get((self._stage, model, task), CallEstimate())

    @property
    def all_asked(self) -> Mapping[tuple[str, str, str], CallEstimate]:
        """The requests so far by stage, model and task, in the order of the first request of each."""
        return self._asked

    @property
    def missing(self) -> int:
        """Number of unanswered requests so far."""
        return sum(asked.missing for asked in self._asked.values())

    def _counted(self, model: str, task: str) -> CallEstimate:
        asked = self._asked.setdefault((self._stage, model, task), CallEstimate())
        asked.guessed = asked.guessed or self._times is not None
        return asked
