"""Dense retrieval: nearest neighbours by cosine. The search is implemented in `raggs.parts.indexes`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from raggs.base.adapter import OneOf
from raggs.base.arrays import shortest_floats
from raggs.base.errors import DataError
from raggs.base.precision import PrecisionSettings
from raggs.base.settings import AddedLater, Causes
from raggs.parts import indexes
from raggs.parts.indexes import Index, IndexConfig, IndexFacts, OpenIndex
from raggs.parts.indexes.exact import FlatIndex
from raggs.parts.retrievers import Hit, Retriever, RetrieverConfig

if TYPE_CHECKING:
    from raggs.base.artifacts import EmbedRecord
    from raggs.base.cache import Cache
    from raggs.parts.indexes.passages import PassageStore
    from raggs.parts.retrievers import Faults
    from raggs.parts.retrievers.depth import ScoreSource


class DenseRetriever(Retriever):
    """Cosine similarity of vectors from the embed stage: exact, or by an approximate index."""

    WHOLE_CORPUS = True
    NEEDS_VECTORS = True
    PACKAGES = ("numpy",)

    class Config(RetrieverConfig):
        type: Literal["dense"] = "dense"
        index: AddedLater[Annotated[IndexConfig, OneOf(indexes.REGISTRY)]] = Field(
            FlatIndex.Config(), description="search method: exact (flat) or an approximate index"
        )
        scoring: AddedLater[PrecisionSettings] = Field(
            PrecisionSettings(), description="precision of vectors and scores"
        )

        @model_validator(mode="after")
        def _scored_by_who_can(self) -> Self:
            if self.scoring.dtype != "f32" and not _recipe(self.index).rescores:
                raise ValueError(f"an index without reorder does not support dtype {self.scoring.dtype}; set reorder")
            return self

    config: Config

    @classmethod
    def reads(cls, config: RetrieverConfig) -> ScoreSource:  # noqa: ARG003
        return "vectors"

    @classmethod
    def index_faults(cls, config: RetrieverConfig, store: PassageStore, cache: Cache) -> Faults:  # noqa: ARG003
        """Yield the altered files among the vectors and vector indexes of the corpus."""
        from raggs.parts.indexes.vectors import vector_faults

        return vector_faults(cache.at("vectors"), store)

    def own_causes(self) -> Causes:
        """Return the causes, with the versions of the configured index and of its library."""
        found = super().own_causes()
        return {**found, "index": self._recipe.causes()} if "index" in found else found

    def check(self) -> None:
        """Raise an error if the index's package is missing, its settings do not fit, or memory for its build is
        lacking.
        """
        from raggs.parts.indexes.vectors import vectors_cache

        context = self.context
        if context.embedder:
            store, dims = context.store, context.dims
            own = vectors_cache(context.cache.at("vectors"), context.embedder, dims, store)
            self._recipe.check(len(store), dims, own)

    @property
    def facts(self) -> IndexFacts:
        """Size and cost of the index, which is built or opened to determine them."""
        return self._index.facts

    @cached_property
    def _recipe(self) -> Index:
        return _recipe(self.config.index)

    @cached_property
    def _index(self) -> OpenIndex:
        from raggs.parts.indexes.vectors import open_vectors

        context = self.context
        vectors = open_vectors(
            context.cache.at("vectors"),
            context.embedder,
            context.dims,
            context.store,
            context.embed,
            context.progress,
        )
        return self._recipe.open(vectors, context.progress, self.config.scoring)

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        """Yield the hits of all queries, which are searched as one batch; vectors are computed or opened at the
        first call.
        """
        import numpy as np

        if not self.context.embedder:
            raise DataError(
                "dense retrieval needs an embedder", remedy="set embed.embedder, or remove dense from the retrievers"
            )
        for query in queries:
            self._check(query)
        vectors = np.array([query.embedding for query in queries], dtype=np.float32).reshape(
            len(queries), self.context.dims
        )
        found = self._index.search(vectors, self.config.k)
        for positions, scores in zip(found.positions, found.scores, strict=True):
            hits = positions >= 0
            ids = self.context.store.ids_at(positions[hits].tolist())
            yield [Hit(doc_id, score) for doc_id, score in zip(ids, shortest_floats(scores[hits]), strict=True)]

    def _check(self, query: EmbedRecord) -> None:
        remedy = "run the embed stage again with an embedder: --from embed"
        if query.embedder != self.context.embedder:
            made = query.embedder or "no embedder"
            raise DataError(f"query {query.qid} was embedded by {made}, not by {self.context.embedder}", remedy=remedy)
        if len(query.embedding) != self.context.dims:
            raise DataError(
                f"the vector of query {query.qid} has {len(query.embedding)} values, not {self.context.dims}",
                remedy=remedy,
            )


def _recipe(config: IndexConfig) -> Index:
    return indexes.REGISTRY.of(config)(config)
