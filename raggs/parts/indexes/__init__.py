"""Indexes: base class and registry. An index over vectors returns the nearest rows of each query.

This package stores on disk: the passages of a corpus, their vectors, and indexes over vectors and words.

An `Index` is a recipe that is cheap to create. `open` returns an index that can be searched, and builds it if
necessary. For all recipes, hits are ordered by descending score, then by ascending doc_id. A result depends only on the
query and the vectors, not on other queries of the batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.arrays import Vectors
from raggs.base.cache import Cache
from raggs.base.precision import PrecisionSettings
from raggs.base.registry import Registry
from raggs.base.settings import Causes

if TYPE_CHECKING:
    from raggs.parts.indexes.exact import Neighbours
    from raggs.parts.indexes.vectors import VectorIndex

Progress = Callable[[str, int, int], None]


class IndexConfig(AdapterConfig):
    """Settings common to all indexes."""


@dataclass(frozen=True)
class IndexFacts:
    """Size and cost of an index.

    Attributes:
        kind: type and storage format of its rows, such as "hnsw-int8".
        build_s: duration of the original build, in seconds; 0 if nothing is built.
        bytes: size on disk; excludes the vectors, except if the index consists of them.
        memory: bytes of memory needed for a search at full speed.
    """

    kind: str
    rows: int
    dims: int
    build_s: float
    bytes: int
    memory: int


class OpenIndex(ABC):
    """An index that can be searched by one thread at a time. Created by `Index.open`."""

    facts: IndexFacts

    @abstractmethod
    def search(self, queries: Vectors, k: int) -> Neighbours:
        """Return the k nearest rows of each query, or fewer if the index finds no more. A zero query has no neighbours.

        Args:
            queries: shape (q, dims), of unit length or zero.
            k: at least 1.

        Raises:
            DataError: the dimensions differ from those of the vectors, or a value is not finite.
        """


class Index(Adapter, ABC):
    """Recipe of an index over vectors. Created as ``cls(config)``.

    Attributes:
        EFFORT: name of the integer setting that widens a search without a rebuild; empty if there is no such setting.
    """

    EFFORT: ClassVar[str] = ""
    Config: ClassVar[type[IndexConfig]] = IndexConfig

    config: IndexConfig

    def __init__(self, config: IndexConfig) -> None:
        self.config = config

    @property
    @abstractmethod
    def rescores(self) -> bool:
        """Whether scores are exact cosines, computed from the stored vectors, rather than the index's own scores."""

    def causes(self) -> Causes:
        """Return everything that affects the hits of the index: settings, versions."""
        return self.own_causes()

    def least_effort(self, k: int) -> int:
        """Return the smallest effective value of `EFFORT` for k hits; lower values act like it."""
        return 1

    def check(self, rows: int, dims: int, cache: Cache) -> None:
        """Raise an error if a prerequisite is missing, before the vectors are computed.

        Args:
            rows, dims: shape of the vectors.
            cache: cache of the vectors and of indexes over them.

        Raises:
            PrerequisiteError: a package is missing, or there is not enough memory for the build.
            DataError: the settings do not fit such vectors.
        """

    @abstractmethod
    def open(self, vectors: VectorIndex, progress: Progress | None, scoring: PrecisionSettings) -> OpenIndex:
        """Return the index over these vectors; it is built if it is not on disk.

        Args:
            progress: called with (name, rows done, rows in total) during the build.
            scoring: precision of scores; applies only if the index `rescores`.

        Raises:
            DataError, PrerequisiteError: see `check`, or the vectors contain NaN.
            ProviderError: a disk operation failed.
        """


REGISTRY: Registry[Index] = Registry(
    "index",
    "indexes",
    "raggs.parts.indexes:Index",
    {
        "flat": "raggs.parts.indexes.exact:FlatIndex",
        "hnsw": "raggs.parts.indexes.approximate:HnswIndex",
        "ivf": "raggs.parts.indexes.approximate:IvfIndex",
    },
)
