"""A graph of near neighbours in layers, walked from the top (Malkov & Yashunin 2020), by faiss.

Two facts about faiss that are not in its documentation: with efSearch below k the walk ends early and gives far fewer
hits than it could, so a search for k is at least k wide; and its arrays grow by doubling, so they are made as large as
they will be before the first row comes.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal

from pydantic import Field

from raggs.base.arrays import Vectors
from raggs.parts.indexes import vectors as room
from raggs.parts.indexes.approximate import ApproximateIndex, FaissIndex, new, tune
from raggs.parts.indexes.base import IndexConfig


class HnswIndex(ApproximateIndex):
    """HNSW: a layered graph of near neighbours; fast, near exact, large in memory (extra ann)."""

    EFFORT = "ef"
    SETTING = "efSearch"
    TOGETHER = True

    class Config(IndexConfig):
        type: Literal["hnsw"] = "hnsw"
        m: int = Field(16, ge=2, le=256, description="neighbours kept for each vector, twice as many at the bottom")
        ef_construction: int = Field(200, ge=1, le=100_000, description="candidates looked at for each neighbour kept")
        ef: int = Field(64, ge=1, le=1_000_000, description="candidates looked at for each query; at least k are")
        quantize: Literal["int8"] | None = Field(
            None, description="int8: vectors in the graph as bytes, a quarter of the memory; null: as they are"
        )
        reorder: bool = Field(
            True,
            description="whether candidates are scored again, exactly, from the vectors on disk; else by the graph",
        )

    config: Config

    @property
    def rescores(self) -> bool:
        return self.config.reorder

    @property
    def kind(self) -> str:
        return f"hnsw-{self.config.quantize or 'f32'}"

    @property
    def full(self) -> bool:
        return self.config.quantize is None

    def built_with(self, rows: int) -> dict[str, str | int | None]:
        config = self.config
        return {"m": config.m, "ef_construction": config.ef_construction, "quantize": config.quantize}

    def build(self, package: ModuleType, vectors: Vectors, add: Callable[[FaissIndex], None]) -> FaissIndex:
        """In the order of the rows, on one thread: the same vectors give the same file."""
        index = new(package, f"HNSW{self.config.m}" + ("" if self.full else "_SQ8"), vectors.shape[1])
        tune(package, index, "efConstruction", self.config.ef_construction)
        if not self.full:
            index.train(vectors)  # the least and the greatest value of each dimension
        _reserve(package, index, *vectors.shape, links=self._links, width=self._width)
        add(index)
        return index

    def width(self, k: int) -> int:
        return max(self.config.ef, k)

    def least_effort(self, k: int) -> int:
        return k

    def candidates(self, k: int) -> int:
        """All that were looked at: they are there already."""
        return max(self.config.ef, k)

    def memory(self, rows: int, dims: int) -> int:
        """Vectors, links, and for each row its level and place."""
        return rows * (dims * self._width + 4 * self._links + 12)

    def smaller(self, rows: int, dims: int) -> str:
        ivf = f"{{type: ivf, pq: ...}} keeps {room.in_words(rows * max(dims // 8, 1))} or less"
        if not self.full:
            return ivf
        small = rows * (dims + 4 * self._links + 12)
        return f"quantize: int8 takes {room.in_words(small)}; {ivf}"

    @property
    def _width(self) -> int:
        """Bytes of a dimension."""
        return 4 if self.full else 1

    @property
    def _links(self) -> int:
        """Neighbours that a row has room for, on average: 2 m at the bottom and m on each layer above."""
        m = self.config.m
        return 2 * m + -(-m // (m - 1))


def _reserve(package: ModuleType, index: Any, rows: int, dims: int, *, links: int, width: int) -> None:
    """Room for all rows at once; what is shrunk keeps its room."""
    for values, count in (
        (package.downcast_index(index.storage).codes, rows * dims * width),
        (index.hnsw.neighbors, rows * links),
    ):
        values.resize(count)
        values.resize(0)
