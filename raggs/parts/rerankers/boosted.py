"""Another reranker's scores plus a light lexical boost: BM25 of the query over the same candidates, by a weight.

Both columns are standardized over the candidates of one query: mean 0, standard deviation 1. A column that is constant
adds nothing. BM25 counts words as the retriever `bm25` does (`raggs.parts.indexes.lexical`), query and passages in the
query's language. Its idf and its mean length are those of the candidates, so no index is needed; a word that
all candidates have weighs next to nothing, and a rare one most. The other reranker alone reads, waits and is paid.

`weight: fit` stands for a weight that a sweep chooses (`raggs.sweeps.reranking`). Nobody else can, since it takes
grades.
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
    by: Annotated[RerankerConfig, OneOf(rerankers.REGISTRY)] = Field(description="whose scores are boosted")
    weight: Annotated[float, Field(ge=0, le=100)] | Literal["fit"] = Field(
        0.2,
        description="of BM25, beside 1 for the other reranker's scores, both standardized; in a sweep alone, fit:"
        " chosen on half of the questions for the other half",
    )


class BoostedReranker(Reranker):
    """Another reranker's scores with BM25 of the query over the candidates, by a weight."""

    INDEPENDENT: ClassVar[bool] = False  # the candidates decide means, deviations and idf
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
        """All that can change a score: the other reranker's causes and how words are counted, too."""
        return {**self.own_causes(), "by": self._inner.causes(), "words": analysis.VERSION}

    def check(self) -> None:
        """Find out before anything is paid for whether the weight is a number, and what the other one lacks.

        Raises:
            ConfigError: the weight is to be fitted.
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
                "weight: fit needs graded questions, so only a sweep's axis `reranker` can have it",
                remedy="raggs sweep fits it: write the weight it found",
            )
        return self.config.weight


def innermost_config(config: RerankerConfig) -> RerankerConfig:
    """The settings of the reranker that reads: those of the innermost `by`, or of the reranker itself."""
    return innermost_config(config.by) if isinstance(config, BoostedConfig) else config


def boost_scores(
    found: Reranking, query: str, language: str, passages: Sequence[Passage], weights: Sequence[float]
) -> list[Reranking]:
    """A reranking with the boost, once for each weight.

    Args:
        found: what another reranker made of the candidates; its tokens, calls and problems are taken over.
        passages: the candidates as they came.
        weights: of BM25.
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
    """BM25 of a query over some texts, whose idf and mean length are those of these texts."""
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
    """The column with mean 0 and standard deviation 1; zeros where it is constant."""
    if not column or max(column) == min(column):
        return [0.0] * len(column)
    largest = max(map(abs, column))
    scaled = [value / largest for value in column]  # so that no sum or square overflows
    mean = math.fsum(scaled) / len(scaled)
    apart = [value - mean for value in scaled]
    deviation = math.sqrt(math.fsum(value * value for value in apart) / len(apart))
    return [value / deviation for value in apart]
