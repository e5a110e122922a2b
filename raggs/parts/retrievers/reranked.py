"""Hits of another retriever, reordered by a reranker that reads the query with each passage.

The candidates are the first `of.k` hits of the other retriever. Of near-duplicates, only the first is scored and
returned, except with ``duplicates: null``. Queries are processed concurrently in the caller's event loop. The settings
of the language models limit the number of parallel calls.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from raggs.base.adapter import OneOf
from raggs.base.settings import Causes
from raggs.parts import rerankers, retrievers
from raggs.parts.elastic import VectorPlace
from raggs.parts.rerankers import Reranker, RerankerConfig
from raggs.parts.retrievers import Hit, Retriever, RetrieverConfig
from raggs.ranking.fusion import group_duplicates

if TYPE_CHECKING:
    from raggs.base.artifacts import EmbedRecord, Passage
    from raggs.parts.indexes import IndexFacts
    from raggs.parts.indexes.passages import Passages
    from raggs.parts.retrievers.depth import ScoreSource


class RerankedConfig(RetrieverConfig):
    type: Literal["reranked"] = "reranked"
    of: Annotated[RetrieverConfig, OneOf(retrievers.REGISTRY)] = Field(
        description="retriever of the candidates; its k is the number of candidates"
    )
    by: Annotated[RerankerConfig, OneOf(rerankers.REGISTRY)] = Field(description="reranker of the candidates")
    duplicates: float | None = Field(
        0.95,
        gt=0,
        le=1,
        description="text similarity from which a later passage is dropped as a duplicate; null: all are kept",
    )


class RerankedRetriever(Retriever):
    """Hits of another retriever, reordered by a reranker."""

    Config = RerankedConfig
    config: RerankedConfig

    @classmethod
    def whole_corpus(cls, config: RetrieverConfig) -> bool:
        return retrievers.REGISTRY.of(_inner_config(config)).whole_corpus(_inner_config(config))

    @classmethod
    def needs_vectors(cls, config: RetrieverConfig) -> bool:
        return retrievers.REGISTRY.of(_inner_config(config)).needs_vectors(_inner_config(config))

    @classmethod
    def reads(cls, config: RetrieverConfig) -> ScoreSource:  # noqa: ARG003
        return "candidates"

    @classmethod
    def at(cls, config: RetrieverConfig, depth: int) -> RetrieverConfig:
        """Return the settings with `depth` candidates; all of them are returned as hits, except near-duplicates."""
        of = _inner_config(config)
        return config.model_copy(update={"k": depth, "of": retrievers.REGISTRY.of(of).at(of, depth)})

    @classmethod
    def index_place(cls, config: RetrieverConfig) -> VectorPlace | None:
        return retrievers.REGISTRY.of(_inner_config(config)).index_place(_inner_config(config))

    @classmethod
    def paid(cls, config: RetrieverConfig) -> bool:
        inner = retrievers.REGISTRY.of(_inner_config(config)).paid(_inner_config(config))
        return inner or (isinstance(config, RerankedConfig) and rerankers.REGISTRY.of(config.by).paid(config.by))

    @property
    def folds(self) -> bool:
        return self._inner.folds or self._reranker.reader.FOLDS

    @property
    def models(self) -> tuple[str, ...]:
        return (*self._inner.models, *self._reranker.models)

    @property
    def facts(self) -> IndexFacts | None:
        return self._inner.facts

    def embedded(self) -> Iterator[Passages]:
        yield from self._inner.embedded()

    def causes(self) -> Causes:
        return {**self.own_causes(), "of": self._inner.causes(), "by": self._reranker.causes()}

    def check(self) -> None:
        self._inner.check()
        self._reranker.check()

    def reranks(self) -> Iterator[tuple[RerankerConfig, int]]:
        yield from self._inner.reranks()
        yield self.config.by, min(self.config.of.k, len(self.context.passages))

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        candidates = [self._candidates(hits) for hits in self._inner.search(queries)]
        yield from self.context.loop().run(self._all(queries, candidates))

    def latency_ms(self, query: EmbedRecord) -> float | None:
        ms = self._inner.latency_ms(query)
        if ms is None:
            return None
        hits = list(self._inner.search([query]))
        began = time.perf_counter()
        self.context.loop().run(self._all([query], [self._candidates(each) for each in hits]))
        return ms + 1000 * (time.perf_counter() - began)

    @cached_property
    def _inner(self) -> Retriever:
        return self.context.retriever(self.config.of, self.context.passages)

    @cached_property
    def _reranker(self) -> Reranker:
        return self.context.reranker(self.config.by)

    def _candidates(self, hits: Sequence[Hit]) -> list[Passage]:
        """Return the passages of the hits, best first; near-duplicates of earlier passages are dropped."""
        found = self.context.passages.get([hit.doc_id for hit in hits])
        passages = [found[hit.doc_id] for hit in hits]
        if self.config.duplicates is None:
            return passages
        leaders = group_duplicates([passage.content for passage in passages], self.config.duplicates)
        return [passage for place, passage in enumerate(passages) if leaders[place] == place]

    async def _all(self, queries: Sequence[EmbedRecord], candidates: Sequence[Sequence[Passage]]) -> list[list[Hit]]:
        """Return the hits of each query; the first error cancels the tasks of all queries."""
        pairs = zip(queries, candidates, strict=True)
        tasks = [asyncio.ensure_future(self._one(query, passages)) for query, passages in pairs]
        for task in tasks:
            task.add_done_callback(lambda _: self._tell(tasks))
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _tell(self, tasks: Sequence[asyncio.Future[list[Hit]]]) -> None:
        self.context.progress("reranked lists", sum(task.done() for task in tasks), len(tasks))

    async def _one(self, query: EmbedRecord, passages: Sequence[Passage]) -> list[Hit]:
        found = await self._reranker.rerank(query.rewrite, query.language, passages)
        hits = [Hit(each.doc_id, each.score) for each in found.ranked]
        return sorted(hits, key=lambda hit: (-hit.score, hit.doc_id))[: self.config.k]


def _inner_config(config: RetrieverConfig) -> RetrieverConfig:
    """Return the settings of the other retriever."""
    if not isinstance(config, RerankedConfig):
        raise TypeError(f"expected settings of type reranked, got {config.type}")
    return config.of
