"""No index at all: each query is compared with every vector. See `raggs.parts.indexes.exact`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from raggs.base.arrays import Vectors
from raggs.base.precision import Scoring
from raggs.parts.indexes.base import Index, IndexConfig, IndexFacts, OpenIndex, Progress

if TYPE_CHECKING:
    from raggs.parts.indexes.exact import Neighbours
    from raggs.parts.indexes.vectors import VectorIndex


class FlatIndex(Index):
    """Exact: each query is compared with every passage's vector; nothing is built."""

    PACKAGES = ("numpy",)

    class Config(IndexConfig):
        type: Literal["flat"] = "flat"

    @property
    def rescores(self) -> bool:
        return True

    def open(self, vectors: VectorIndex, progress: Progress | None, scoring: Scoring) -> OpenIndex:
        """The vectors as they are."""
        return _Flat(vectors, scoring)


class _Flat(OpenIndex):
    def __init__(self, vectors: VectorIndex, scoring: Scoring) -> None:
        rows, dims = vectors.vectors.shape
        size = rows * dims * 4
        self.facts = IndexFacts("flat", rows, dims, 0.0, size, size)
        self._vectors = vectors
        self._scoring = scoring

    def search(self, queries: Vectors, k: int) -> Neighbours:
        return self._vectors.search(queries, k, self._scoring)
