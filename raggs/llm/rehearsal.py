"""Language models that only remember: what was paid for is answered, what is missing is counted.

Whoever would ask is given these models instead, and so tells exactly what it would ask. Nobody is asked, nothing is
booked, and where there is no cache none is made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from raggs.base.errors import ProviderError
from raggs.llm.calls import ChatCall
from raggs.llm.client import LLM
from raggs.llm.conversation import response_format
from raggs.llm.messages import ChatRequest, EmbedRequest, Reply, RerankRequest, RerankScores
from raggs.llm.prices import estimate_tokens
from raggs.llm.settings import BudgetSettings, LLMSettings

if TYPE_CHECKING:
    from raggs.base.arrays import Vectors

T = TypeVar("T")

UNKNOWN = "not paid for yet"


@dataclass
class CallEstimate:
    """Questions of one task to one model: how many have an answer already, how many not; what the latter take.

    A question to a reranker is a passage with its query, one to an embedder a text, and one call asks many.
    """

    known: int = 0
    missing: int = 0
    tokens: int = 0
    calls: int = 0
    searches: int = 0


class DryRunLLM(LLM):
    """See the module. `cache_dir`: where answers are kept, as in `LLM`."""

    def __init__(self, settings: LLMSettings, cache_dir: Path) -> None:
        there = cache_dir.is_dir() and any(cache_dir.iterdir())
        super().__init__(settings, BudgetSettings(max_usd=None, max_calls=0), cache_dir if there else None)
        self._asked: dict[tuple[str, str], CallEstimate] = {}
        self._embedded: set[int] = set()  # hashes of texts whose vectors there would be by now

    async def ask(self, request: ChatRequest[T]) -> Reply[T]:
        """The answer that was paid for, or a reply without a value."""
        asked = self._asked.setdefault((request.model, request.schema_name), CallEstimate())
        known = self.known(request)
        if known is not None:
            asked.known += 1
            return known
        asked.missing += 1
        asked.calls += 1
        form = response_format(request)
        asked.tokens += ChatCall(request.model, {}, request.messages, form, request.max_output_tokens).prompt_tokens
        return Reply(None, UNKNOWN)

    async def rerank(self, request: RerankRequest) -> RerankScores:
        """The scores that were paid for.

        Raises:
            ProviderError: some are not paid for.
        """
        from raggs.llm.reranking import TASK, RerankRequestState

        asked = self._asked.setdefault((request.model, TASK), CallEstimate())
        work = RerankRequestState(self._caller, self._ledger, self._cache, request, self.settings)
        work.learn(work.remembered())
        asked.missing += len(work.missing)
        asked.known += len(set(request.passages)) - len(work.missing)
        for _, call in work.calls():
            asked.calls += 1
            asked.tokens += call.prompt_tokens
            asked.searches += call.searches
        if work.missing:
            raise ProviderError(UNKNOWN)
        return work.scored()

    async def embed(self, request: EmbedRequest) -> Vectors:
        """The vectors that were paid for, and zeros for the others."""
        import numpy as np

        from raggs.llm.embedding import TASK, EmbedRequestState

        texts = dict.fromkeys(request.texts)
        fresh = [text for text in texts if hash(text) not in self._embedded]
        work = EmbedRequestState(self._caller, self._ledger, self._cache, replace(request, texts=fresh), self.settings)
        work.recall()
        asked = self._asked.setdefault((request.model, TASK), CallEstimate())
        asked.known += work.known + len(texts) - len(fresh)
        for batch in work.batches():
            asked.missing += len(batch)
            asked.calls += 1
            asked.tokens += sum(map(estimate_tokens, batch.values()))
        self._embedded.update(map(hash, fresh))
        return np.zeros((len(request.texts), request.dims), dtype=np.float32)

    def asked(self, model: str, task: str) -> CallEstimate:
        """What was asked of a model so far."""
        return self._asked.get((model, task), CallEstimate())

    @property
    def missing(self) -> int:
        """Questions so far that nobody has answered."""
        return sum(asked.missing for asked in self._asked.values())
