"""Rerank endpoints of providers and local servers. Calls count towards the budget and are recorded in the ledger.

A score depends only on the query and the passage, so scores paid for at 200 candidates are reused at 50.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from raggs.base.settings import Causes, Effort
from raggs.llm import CallUsage, Parameters, RerankRequest
from raggs.parts.rerankers import Reranker, RerankerConfig, Reranking

if TYPE_CHECKING:
    from raggs.base.artifacts import Passage

RESERVED_PARAMETERS = frozenset({"documents", "query", "return_documents", "top_k", "top_n"})


def _of_the_endpoint(parameters: dict[str, object]) -> dict[str, object]:
    if taken := sorted(RESERVED_PARAMETERS & set(parameters)):
        raise ValueError(f"{', '.join(taken)}: not allowed here; raggs sends query and passages, and needs all scores")
    return parameters


class LiteLLMReranker(Reranker):
    """Rerank endpoints: Cohere, Voyage, Jina, vLLM, llama.cpp and others; each pair is paid for once."""

    PAID: ClassVar[bool] = True
    METERED: ClassVar[bool] = True
    INDEPENDENT: ClassVar[bool] = True

    class Config(RerankerConfig):
        type: Literal["litellm"] = "litellm"
        model: str = Field(min_length=1, description='provider and model, for example "cohere/rerank-v3.5"')
        batch: Effort[int] = Field(1000, ge=1, description="passages per call")
        parameters: Annotated[Parameters, AfterValidator(_of_the_endpoint)] = Field(
            default_factory=dict, description="parameters sent with each call, such as max_tokens_per_doc"
        )

    config: Config

    @property
    def models(self) -> tuple[str, ...]:
        return (self.config.model,)

    def causes(self) -> Causes:
        """Return everything that affects the scores: model, parameters, and the settings of this model."""
        own = self.context.llm.settings.causes_for(self.models).get("models")
        return {**self.own_causes(), **({"llm": {"models": own}} if own else {})}

    def check(self) -> None:
        """Check before the first call that the budget can be enforced.

        Raises:
            ConfigError: the model's price is unknown although a budget in USD is set.
        """
        self.context.llm.require_price(self.config.model)

    async def rerank(self, query: str, language: str, passages: Sequence[Passage]) -> Reranking:
        own = self.context.llm.settings.of(self.config.model).parameters
        contents = [passage.content for passage in passages]
        found = await self.context.llm.rerank(
            RerankRequest(
                self.config.model,
                query,
                contents,
                self.config.batch,
                {**own, **self.config.parameters},
                fresh=self.context.cache is None,
            )
        )
        took = found.took
        ms, usd = took.ms if passages else None, self._usd(took)
        return Reranking.of(
            passages,
            found.scores,
            tokens=took.tokens,
            ms=ms,
            calls=took.calls,
            usd=usd,
            searches=took.searches,
        )

    def _usd(self, took: CallUsage) -> float:
        """Return the cost of the scores. A billed search counts in full, even if it also scored other passages."""
        price = self.context.llm.price(self.config.model)
        return price.usd(took.tokens, 0, took.searches) if price and price.per_1k_searches else took.usd
