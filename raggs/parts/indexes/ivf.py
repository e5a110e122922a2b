"""Vectors in lists around centres, of which a search reads the nearest ones, by faiss.

With `pq` a vector is cut into parts, and of each part only the nearest of 16 typical ones is kept, in 4 bits (product
quantization, Jégou, Douze & Schmid 2011; blocks of codes that are compared in registers, André et al. 2015). Its scores
are rough, so that `reorder` times k candidates are scored again from the vectors on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from types import ModuleType
from typing import Annotated, Any, Literal

from pydantic import Field

from raggs.base.arrays import Vectors
from raggs.base.errors import DataError
from raggs.base.seeds import derive_seed, generator
from raggs.parts.indexes import vectors as room
from raggs.parts.indexes.approximate import SLACK, ApproximateIndex, FaissIndex, new
from raggs.parts.indexes.base import IndexConfig

SAMPLE = 64  # rows for each list from which its centre is found
LEAST = 39  # rows that a list is to have on average, as faiss advises
MOST = 65_536  # lists
TYPICAL = 16  # parts that are told apart in 4 bits
ID = 8  # bytes


class IvfIndex(ApproximateIndex):
    """IVF: vectors in lists, the nearest of which are read; quick to build, small with pq (extra ann)."""

    EFFORT = "nprobe"
    SETTING = "nprobe"

    class Config(IndexConfig):
        type: Literal["ivf"] = "ivf"
        lists: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
            "auto", description="lists; auto: 4 times the root of the number of vectors, with 39 or more in each"
        )
        nprobe: int = Field(16, ge=1, le=1_000_000, description="lists read for each query")
        pq: int | None = Field(
            None,
            ge=1,
            description="parts that a vector is coded in, 4 bits each; divides dims; null: vectors as they are",
        )
        reorder: int = Field(
            10, ge=0, le=10_000,
            description="candidates for each hit that are scored again, exactly, from the vectors on disk; 0: none",
        )  # fmt: skip

    config: Config

    @property
    def rescores(self) -> bool:
        return self.config.reorder > 0

    @property
    def kind(self) -> str:
        return "ivf-flat" if self.full else f"ivf-pq{self.config.pq}"

    @property
    def full(self) -> bool:
        return self.config.pq is None

    def fits(self, rows: int, dims: int) -> None:
        """Lists need vectors, and the parts of a vector are equally long."""
        lists, pq = self.config.lists, self.config.pq
        if lists != "auto" and lists > rows:
            raise DataError(f"an ivf index of {lists:,} lists for {rows:,} vectors", remedy="lists: auto")
        if pq is not None and dims % pq:
            good = ", ".join(str(parts) for parts in range(1, dims + 1) if dims % parts == 0)
            raise DataError(f"pq: {pq} does not divide {dims} dimensions", remedy=f"one of {good}")

    def built_with(self, rows: int) -> dict[str, str | int | None]:
        return {"lists": self._lists(rows), "pq": self.config.pq}

    def build(self, package: ModuleType, vectors: Vectors, add: Callable[[FaissIndex], None]) -> FaissIndex:
        """Centres from a sample drawn by the seed, on one thread: the same vectors give the same file."""
        rows, dims = vectors.shape
        lists = self._lists(rows)
        coded = "Flat" if self.config.pq is None or rows < TYPICAL else f"PQ{self.config.pq}x4fs"
        index = new(package, f"IVF{lists},{coded}", dims)
        _calm(index, derive_seed(0, "ivf") % 2**31)
        index.train(_sample(vectors, max(lists * SAMPLE, TYPICAL * SAMPLE)))
        add(index)
        return index

    def width(self, k: int) -> int:
        return self.config.nprobe

    def candidates(self, k: int) -> int:
        return max(self.config.reorder * k, k + SLACK)

    def memory(self, rows: int, dims: int) -> int:
        """Lists, which grow by doubling, and the sample."""
        row = dims * 4 if self.config.pq is None else -(-self.config.pq // 2)
        return int(1.5 * rows * (row + ID)) + 2 * min(rows, self._lists(rows) * SAMPLE) * dims * 4

    def smaller(self, rows: int, dims: int) -> str:
        if not self.full:
            return "fewer lists"
        return f"pq: ... keeps {room.in_words(rows * (max(dims // 8, 1) + ID))} or less"

    def _lists(self, rows: int) -> int:
        if self.config.lists != "auto":
            return self.config.lists
        return max(1, min(4 * isqrt(rows), rows // LEAST, MOST))


def _calm(index: Any, seed: int) -> None:
    """Seeds, and no warnings about few rows for a list."""
    index.cp.seed = seed
    index.cp.min_points_per_centroid = 1
    index.cp.max_points_per_centroid = SAMPLE
    if hasattr(index, "pq"):
        index.pq.cp.seed = seed
        index.pq.cp.min_points_per_centroid = 1


def _sample(vectors: Vectors, most: int) -> Vectors:
    if len(vectors) <= most:
        return vectors
    chosen = generator(0, "ivf", "sample").choice(len(vectors), most, replace=False)
    chosen.sort()
    return vectors[chosen]
