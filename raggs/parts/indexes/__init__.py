"""What searching needs on disk: the passages of a corpus, their vectors, and indexes over these.

The indexes over vectors have names (see `Index`).

What an index over vectors is: the vectors of a corpus in, the nearest rows of a query out.

An `Index` is the recipe, cheap to make; `open` gives what can be searched, built now if it was not before. Whatever
the recipe, hits are ordered by score descending, then by doc_id ascending, and a result depends on the query and the
vectors alone, never on the queries beside it.
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
    """What every index's settings hold: its type."""


@dataclass(frozen=True)
class IndexFacts:
    """What an index costs.

    Attributes:
        kind: its type and what its rows are kept as, such as "hnsw-int8".
        build_s: seconds that its making took, whenever that was; 0 where nothing is made.
        bytes: on the disk, the vectors themselves not counted, unless they are the index.
        memory: bytes that are to be in memory for a search at full speed.
    """

    kind: str
    rows: int
    dims: int
    build_s: float
    bytes: int
    memory: int


class OpenIndex(ABC):
    """An index that can be searched, by one thread at a time. Made by `Index.open`."""

    facts: IndexFacts

    @abstractmethod
    def search(self, queries: Vectors, k: int) -> Neighbours:
        """The k nearest rows of each query; fewer where the index finds no more, none for a query of zeros.

        Args:
            queries: shape (q, dims), of unit length or zero.
            k: at least 1.

        Raises:
            DataError: a query has another length than the vectors, or anything is not finite.
        """


class Index(Adapter, ABC):
    """How vectors are indexed. Built as ``cls(config)``.

    Attributes:
        EFFORT: the setting, a whole number, by which a search looks at more, and nothing that is built changes; empty
            where there is none.
    """

    EFFORT: ClassVar[str] = ""
    Config: ClassVar[type[IndexConfig]] = IndexConfig

    config: IndexConfig

    def __init__(self, config: IndexConfig) -> None:
        self.config = config

    @property
    @abstractmethod
    def rescores(self) -> bool:
        """Whether scores are exact cosines of the stored vectors, and not the index's own."""

    def causes(self) -> Causes:
        """What can change its hits: settings, versions."""
        return self.own_causes()

    def least_effort(self, k: int) -> int:
        """The least value of `EFFORT` that differs from smaller ones where k hits are wanted."""
        return 1

    def check(self, rows: int, dims: int, cache: Cache) -> None:
        """Find what it lacks before the vectors are made.

        Args:
            rows, dims: of the vectors.
            cache: that will hold them, and what is made of them.

        Raises:
            PrerequisiteError: a package, or the memory to build in.
            DataError: settings that such vectors do not fit.
        """

    @abstractmethod
    def open(self, vectors: VectorIndex, progress: Progress | None, scoring: PrecisionSettings) -> OpenIndex:
        """The index over these vectors, built now if it is not on the disk.

        Args:
            progress: called with (what, rows done, of) while it is built.
            scoring: the precision of scores, where the index `rescores`.

        Raises:
            DataError, PrerequisiteError: as `check`, or the vectors hold NaN.
            ProviderError: the disk failed.
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
