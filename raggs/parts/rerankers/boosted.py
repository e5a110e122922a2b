"""Scores of another reranker plus a weighted lexical score: BM25 of the query over the same candidates.

Both scores are standardized over the candidates of a query: mean 0, standard deviation 1. A score that is equal for all
candidates has no effect. BM25 uses the same tokenization as the retriever `bm25` (`raggs.parts.indexes.lexical`), in
the query's language. The idf and the mean length in BM25 are those of the candidates, so no index is needed. A word
that all candidates contain has almost no weight; a rare word has the highest. Only the other reranker calls a model.

`weight: fit` lets a sweep choose the weight (`raggs.sweeps.reranking`). `fit` is available only in sweeps, because it
needs grades.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from raggs.base.adapter import OneOf
from raggs.base.errors import ConfigError
from raggs.base.settings import Causes
from raggs.parts import rerankers
from raggs.parts.indexes import lexical as analysis
from raggs.parts.rerankers import Reranker, RerankerConfig, Reranking

if TYPE_CHECKING:
    from raggs.base.artifacts import Passage

K1, B = 1.2, 0.75
FIT: Literal["fit"] = "fit"


class BoostedConfig(RerankerConfig):
    type: Literal["boosted"] = "boosted"
    by: Annotated[RerankerConfig, OneOf(rerankers.REGISTRY)] = Field(description="reranker whose scores are boosted")
    weight: Annotated[float, Field(ge=0, le=100)] | Literal["fit"] = Field(
        0.2,
        description="weight of standardized BM25 scores (the other reranker has weight 1); fit (only"
        " in sweeps): chosen on one half of the queries for the other half",
    )


class BoostedReranker(Reranker):
    """Scores of another reranker plus a weighted BM25 score of the query over the candidates."""

    INDEPENDENT: ClassVar[bool] = False  # means, deviations and idf depend on the candidates
    Config: ClassVar[type[RerankerConfig]] = BoostedConfig

    config: BoostedConfig

    @classmethod
    def paid(cls, config: RerankerConfig) -> bool:
        inner = innermost_config(config)
        return rerankers.REGISTRY.of(inner).paid(inner)

    @property
    def models(self) -> tuple[str, ...]:
        return self._inner.models

    @property
    def reader(self) -> Reranker:
        return self._inner.reader

    def causes(self) -> Causes:
        """Return everything that affects the scores, including the other reranker and the tokenization."""
        return {**self.own_causes(), "by": self._inner.causes(), "words": analysis.VERSION}

    def check(self) -> None:
        """Check that the weight is a number, and check the other reranker, before any paid call.

        Raises:
            ConfigError: the weight is `fit`.
        """
        self._weight()
        self._inner.check()

    async def rerank(self, query: str, language: str, passages: Sequence[Passage]) -> Reranking:
        weight = self._weight()
        found = await self._inner.rerank(query, language, passages)
        start = time.perf_counter()
        (made,) = boost_scores(found, query, language, passages, [weight])
        took = (time.perf_counter() - start) * 1000
        return made if made.ms is None else replace(made, ms=made.ms + took)

    def close(self) -> None:
        if "_inner" in self.__dict__:
            self._inner.close()

    @cached_property
    def _inner(self) -> Reranker:
        return self.context.reranker(self.config.by)

    def _weight(self) -> float:
        if self.config.weight == FIT:
            raise ConfigError(
                "weight: fit needs graded queries, so it is allowed only in the axis `reranker` of a sweep",
                remedy="fit the weight with raggs sweep, and set the value that it reports",
            )
        return self.config.weight


def innermost_config(config: RerankerConfig) -> RerankerConfig:
    """Return the settings of the reranker that reads the passages: the innermost `by`, or `config` itself."""
    return innermost_config(config.by) if isinstance(config, BoostedConfig) else config


def boost_scores(
    found: Reranking, query: str, language: str, passages: Sequence[Passage], weights: Sequence[float]
) -> list[Reranking]:
    """Return a boosted reranking for each weight.

    Args:
        found: result of the other reranker; its tokens, calls and problems are copied.
        passages: candidates in the input order.
        weights: weights of BM25.
    """
    if not passages:
        return [found for _ in weights]
    by_id = {each.doc_id: each.score for each in found.ranked}
    scores = standardize([by_id[passage.doc_id] for passage in passages])
    lexical = standardize(bm25(query, language, [passage.content for passage in passages]))

    def at(weight: float) -> Reranking:
        sums = [one + weight * other for one, other in zip(scores, lexical, strict=True)]
        return replace(found, ranked=Reranking.of(passages, sums).ranked)

    return [at(weight) for weight in weights]


def bm25(query: str, language: str, texts: Sequence[str]) -> list[float]:
    """Return the BM25 score of a query for each text; idf and mean length are computed from these texts."""
    wanted = Counter(analysis.words_of(query, language))
    words = [analysis.words_of(text, language) for text in texts]
    counts = [Counter(word for word in each if word in wanted) for each in words]
    have = Counter(word for each in counts for word in each)
    idf = {word: math.log1p((len(texts) - many + 0.5) / (many + 0.5)) for word, many in have.items()}
    mean = fmean(map(len, words)) or 1.0
    return [
        math.fsum(
            wanted[word] * idf[word] * many * (K1 + 1) / (many + K1 * (1 - B + B * len(each) / mean))
            for word, many in found.items()
        )
        for each, found in zip(words, counts, strict=True)
    ]


def standardize(column: Sequence[float]) -> list[float]:
    """Return the column with mean 0 and standard deviation 1; all zeros for a constant column."""
    if not column or max(column) == min(column):
        return [0.0] * len(column)
    largest = max(map(abs, column))
    scaled = [value / largest for value in column]  # prevents overflow of sums and squares
    mean = math.fsum(scaled) / len(scaled)
    apart = [value - mean for value in scaled]
    deviation = math.sqrt(math.fsum(value * value for value in apart) / len(apart))
    return [value / deviation for value in apart]
