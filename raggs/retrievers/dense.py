"""Dense retrieval: exact cosine over the corpus's vectors. The search lives in `raggs.indexes`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from raggs.arrays import shortest_floats
from raggs.errors import DataError
from raggs.retrievers.base import Hit, Retriever, RetrieverConfig

if TYPE_CHECKING:
    from raggs.artifacts import EmbedRecord
    from raggs.indexes.passages import PassageStore
    from raggs.indexes.places import Places
    from raggs.indexes.vectors import VectorIndex
    from raggs.retrievers.base import Faults


class DenseRetriever(Retriever):
    """Exact cosine over the passages' vectors, by the embedder of the embed stage."""

    WHOLE_CORPUS = True
    NEEDS_VECTORS = True
    PACKAGES = ("numpy",)

    class Config(RetrieverConfig):
        type: Literal["dense"] = "dense"

    config: Config

    @classmethod
    def index_faults(cls, config: RetrieverConfig, store: PassageStore, places: Places) -> Faults:  # noqa: ARG003
        """Vectors of the corpus that are not what was computed."""
        from raggs.indexes.vectors import vector_faults

        return vector_faults(places.vectors, store)

    @cached_property
    def _index(self) -> VectorIndex:
        from raggs.indexes.vectors import open_vectors

        context = self.context
        return open_vectors(
            context.places.vectors, context.embedder, context.dims, context.store, context.embed, context.progress
        )

    def search(self, queries: Sequence[EmbedRecord]) -> Iterator[list[Hit]]:
        """All queries at once over the map of vectors, which is built or opened at the first call."""
        import numpy as np

        if not self.context.embedder:
            raise DataError("dense retrieval needs an embedder", remedy="set embed.embedder, or leave dense out")
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
