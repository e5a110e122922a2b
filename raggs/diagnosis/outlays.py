"""What rerankers that are paid would take, for the forecasts of diagnoses. Nobody is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raggs.llm.prices import estimate_tokens
from raggs.parts.rerankers.base import Reranker
from raggs.runs.manifests.models import Estimate


def reranking(
    reranker: Reranker, times: int, candidates: int, queries: Sequence[str], passages: Sequence[str]
) -> Iterator[Estimate]:
    """A line for each model that a reranker pays; none for one of this machine.

    Args:
        times: how many queries it is asked.
        candidates: passages of each of them.
        queries, passages: some of them, which say how long one is.
    """
    query, passage = mean_tokens(queries), mean_tokens(passages)
    for model in reranker.models:
        one = reranker.outlay(model, candidates, query, passage)
        yield Estimate(
            stage="rerank",
            calls=times * one.calls,
            input_tokens=times * one.input_tokens,
            output_tokens=times * one.output_tokens,
            usd=None if one.usd is None else times * one.usd,
            exact=False,
            who=model,
        )


def mean_tokens(texts: Sequence[str]) -> int:
    """Tokens of a text on average."""
    return round(sum(map(estimate_tokens, texts)) / max(1, len(texts)))
