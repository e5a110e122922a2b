"""Indexes by faiss, which look at a part of the vectors: what they have in common.

An index proposes candidates; as a rule their scores are then computed again from the stored vectors, which are mapped
into memory, so that scores and order are those of the exact search and only a candidate that the index did not see is
lost. It costs some microseconds a query. A query's hits are its own, whichever come with it: queries are searched in
one call only where faiss treats each by itself. Vectors are of unit length: their inner product is their cosine. A
vector of zeros is nearest to nobody, with the score 0.

faiss, as raggs uses it: on one thread, and without the traps of its threads.

Its OpenMP threads spin while they wait, by which a loaded machine can hang at the import; told to be passive, they
sleep. With one thread a build is a function of the vectors and the seed, and a query's time is its own.

A graph of near neighbours in layers, walked from the top (Malkov & Yashunin 2020), by faiss.

Two facts about faiss that are not in its documentation: with efSearch below k the walk ends early and gives far fewer
hits than it could, so a search for k is at least k wide; and its arrays grow by doubling, so they are made as large as
they will be before the first row comes.

Vectors in lists around centres, of which a search reads the nearest ones, by faiss.

With `pq` a vector is cut into parts, and of each part only the nearest of 16 typical ones is kept, in 4 bits (product
quantization, Jégou, Douze & Schmid 2011; blocks of codes that are compared in registers, André et al. 2015). Its scores
are rough, so that `reorder` times k candidates are scored again from the vectors on disk.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from math import inf, isqrt, sqrt
from pathlib import Path
from threading import get_ident
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import numpy as np
from pydantic import Field

from raggs.base.arrays import Ints, Scores, Vectors
from raggs.base.cache import Cache
from raggs.base.errors import DataError, PrerequisiteError
from raggs.base.files import disk_fault
from raggs.base.hashing import derive_seed, generator, hash_value
from raggs.base.precision import PrecisionSettings
from raggs.base.registry import installed
from raggs.parts.indexes import Index, IndexConfig, IndexFacts, OpenIndex, Progress
from raggs.parts.indexes import vectors as room
from raggs.parts.indexes.exact import (
    Neighbours,
    best_of,
    broken_vectors,
    check_finite,
    check_shape,
    in_order,
    join_neighbours,
    margin_of,
    scores_of_pairs,
)

if TYPE_CHECKING:
    from raggs.parts.indexes.vectors import VectorIndex

PACKAGE = "faiss-cpu"
INSTALL_REMEDY = 'pip install ".[ann]" in a clone of raggs'
WAITING = "OMP_WAIT_POLICY"


class FaissIndex(Protocol):
    """What of faiss' own class is used here."""

    ntotal: int

    def train(self, x: Vectors) -> None: ...
    def add(self, x: Vectors) -> None: ...
    def search(self, x: Vectors, k: int) -> tuple[Scores, Ints]: ...
    def search_c(self, n: int, x: object, k: int, distances: object, labels: object, params: None) -> None: ...


class Scan:
    """One search after the other for the same number of rows, by faiss' own function.

    Its wrapper in Python checks and makes arrays for each call, which takes as long as a tenth of a short search.
    """

    def __init__(self, package: ModuleType, index: FaissIndex, wanted: int) -> None:
        self._index = index
        self._wanted = wanted
        self._pointer: Callable[[object], object] = package.swig_ptr
        self._values: Scores = np.empty(wanted, dtype=np.float32)
        self._rows: Ints = np.empty(wanted, dtype=np.int64)
        self._into = self._pointer(self._values), self._pointer(self._rows)

    def __call__(self, query: Vectors) -> tuple[Scores, Ints]:
        """Scores, which hold until the next search, and rows; best first, row -1 where it found no more.

        Args:
            query: shape (dims,), contiguous.
        """
        self._index.search_c(1, self._pointer(query), self._wanted, *self._into, None)
        return self._values, self._rows.copy()


def faiss(kind: str) -> ModuleType:
    """The package, set to one thread.

    Args:
        kind: the index that needs it, for the message.

    Raises:
        PrerequisiteError: it is not installed.
    """
    with _waiting_passively():
        try:
            package = import_module("faiss")
        except ImportError as error:
            raise PrerequisiteError(
                f"index {kind} needs {PACKAGE}, which is not installed", remedy=INSTALL_REMEDY
            ) from error
    package.omp_set_num_threads(1)
    return package


@contextmanager
def _waiting_passively() -> Iterator[None]:
    """OpenMP reads the variable when it is loaded; it is left as it was found."""
    before = os.environ.get(WAITING)
    os.environ.setdefault(WAITING, "passive")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(WAITING, None)


def new(package: ModuleType, key: str, dims: int) -> FaissIndex:
    """An empty index by inner product, of the kind that faiss calls `key`, such as "HNSW16_SQ8"."""
    made: FaissIndex = package.index_factory(dims, key, package.METRIC_INNER_PRODUCT)
    return made


def tune(package: ModuleType, index: FaissIndex, setting: str, value: int) -> None:
    """Set what faiss calls `setting`: efSearch, efConstruction, nprobe."""
    package.ParameterSpace().set_index_parameter(index, setting, value)


def write(package: ModuleType, index: FaissIndex, path: Path) -> None:
    """The index as a file.

    Raises:
        ProviderError: the disk refused.
    """
    try:
        package.write_index(index, str(path))
    except RuntimeError as error:
        raise disk_fault(error, path, "free some space and run again", "the index cannot be stored") from error


def read(package: ModuleType, path: Path) -> FaissIndex:
    """The index in a file, which is mapped into memory as far as faiss can (graphs and their vectors; no lists).

    Raises:
        DataError: faiss cannot read it.
    """
    try:
        return _read(package, path, package.IO_FLAG_MMAP_IFC)
    except RuntimeError:  # it cannot map files on every system
        try:
            return _read(package, path, 0)
        except RuntimeError as error:
            remedy = "delete its folder; it is built again"
            raise DataError("faiss cannot read the index", where=path, remedy=remedy) from error


def _read(package: ModuleType, path: Path, flags: int) -> FaissIndex:
    found: FaissIndex = package.read_index(str(path), flags)
    return found


INDEX = "index"  # the file
ROWS_PER_REPORT = 8192  # rows added between two reports
BATCH = 64  # queries of one call
TIE_ROWS = 16  # rows beyond the k-th, so that ties there go by doc_id
NO_ROWS: Ints = np.empty(0, dtype=np.int64)
NO_SCORES: Scores = np.empty(0, dtype=np.float32)


class ApproximateIndex(Index):
    """An index by faiss. Each says how it is built, how wide a search is, and what it takes."""

    PACKAGES = (PACKAGE,)
    SETTING: str  # what faiss calls the width of a search
    TOGETHER = False  # whether faiss gives the same of queries that are searched in one call

    @property
    @abstractmethod
    def kind(self) -> str:
        """Its type and what its rows are kept as."""

    @property
    @abstractmethod
    def full(self) -> bool:
        """Whether it keeps vectors in float32, so that its own scores are exact but for the last bits."""

    @abstractmethod
    def built_with(self, rows: int) -> dict[str, str | int | None]:
        """The settings that change what is built."""

    @abstractmethod
    def build(self, package: ModuleType, vectors: Vectors, add: Callable[[FaissIndex], None]) -> FaissIndex:
        """An index of these vectors; `add` puts them in, block by block, when it is trained."""

    @abstractmethod
    def width(self, k: int) -> int:
        """What `SETTING` is to be for k candidates."""

    @abstractmethod
    def candidates(self, k: int) -> int:
        """How many rows are asked for where k hits are wanted and the index's own scores are rough."""

    @abstractmethod
    def memory(self, rows: int, dims: int) -> int:
        """Bytes that building takes, about."""

    @abstractmethod
    def smaller(self, rows: int, dims: int) -> str:
        """What would take less memory."""

    def fits(self, rows: int, dims: int) -> None:
        """Refuse settings that do not go with such vectors.

        Raises:
            DataError: they do not.
        """

    def check(self, rows: int, dims: int, cache: Cache) -> None:
        """Whether faiss is there, the settings fit and what is to be built will fit into memory."""
        faiss(self.config.type)
        self.fits(rows, dims)
        if not cache.has_files(self._name(rows, dims)):
            self._check_room(rows, dims)

    def open(self, vectors: VectorIndex, progress: Progress | None, scoring: PrecisionSettings) -> OpenIndex:
        """The index, mapped into memory where faiss can do that."""
        rows, dims = vectors.vectors.shape
        package = faiss(self.config.type)
        self.fits(rows, dims)

        def build(folder: Path) -> None:
            self._check_room(rows, dims)
            _check_vectors(vectors.vectors)
            try:
                built = self.build(package, vectors.vectors, lambda empty: self._add(empty, vectors.vectors, progress))
            except MemoryError as error:  # others took it in the meantime
                raise self._too_large(rows, dims, room.available()) from error
            write(package, built, folder / INDEX)

        name = self._name(rows, dims)
        made = vectors.cache.files(name, [name, vectors.sum], build, "the index")
        facts = IndexFacts(self.kind, rows, dims, made.seconds, made.bytes, made.bytes)
        return _Approximate(self, package, read(package, made.path / INDEX), vectors, facts, scoring)

    def _name(self, rows: int, dims: int) -> str:
        """Of the folder that holds the index. What is built of other vectors of the same shape takes its place."""
        library = f"{PACKAGE} {installed(PACKAGE)}, version {self.VERSION}"
        return f"{self.config.type}-{hash_value([rows, dims, self.built_with(rows), library])[:16]}"

    def _check_room(self, rows: int, dims: int) -> None:
        there = room.available()
        if there is not None and self.memory(rows, dims) > there:
            raise self._too_large(rows, dims, there)

    def _too_large(self, rows: int, dims: int, there: int | None) -> PrerequisiteError:
        free = "less is free" if there is None else f"{room.in_words(there)} are free"
        return PrerequisiteError(
            f"to build the index {self.kind} of {rows:,} vectors of {dims} dimensions takes about "
            f"{room.in_words(self.memory(rows, dims))} of memory, and {free}",
            remedy=f"{self.smaller(rows, dims)}; or an embedder with fewer dimensions; or index: {{type: flat}}",
        )

    def _add(self, index: FaissIndex, vectors: Vectors, progress: Progress | None) -> None:
        for start in range(0, len(vectors), ROWS_PER_REPORT):
            index.add(vectors[start : start + ROWS_PER_REPORT])
            if progress is not None:
                progress(self.kind, min(start + ROWS_PER_REPORT, len(vectors)), len(vectors))


def _check_vectors(vectors: Vectors) -> None:
    for start in range(0, len(vectors), ROWS_PER_REPORT):
        if not np.isfinite(vectors[start : start + ROWS_PER_REPORT]).all():
            raise broken_vectors()


class _Approximate(OpenIndex):
    """An index of faiss with the vectors that it is of."""

    def __init__(
        self,
        recipe: ApproximateIndex,
        package: ModuleType,
        index: FaissIndex,
        vectors: VectorIndex,
        facts: IndexFacts,
        scoring: PrecisionSettings,
    ) -> None:
        self.facts = facts
        self._recipe = recipe
        self._package = package
        self._index = index
        self._vectors: Vectors = np.asarray(vectors.vectors)  # the same map, whose rows cost less to take
        self._ranks = vectors.ranks
        self._scoring = scoring
        self._rounds = scoring.dtype != "f32"
        self._near = recipe.full and not self._rounds  # whether its scores tell which rows can be among the k
        self._set_for: tuple[int, int] = (0, 0)  # k, and the thread that searches
        self._scan = Scan(package, index, 1)

    def search(self, queries: Vectors, k: int) -> Neighbours:
        """One query by itself, or many. One takes half a millisecond, of which each call of numpy is a hundredth."""
        check_shape(self._vectors, queries)
        k = min(k, len(self._vectors))
        if self._set_for != (k, get_ident()):
            self._set(k)
        parts: Vectors = np.ascontiguousarray(queries, dtype=np.float32)
        if self._rounds:
            parts = self._scoring.part(parts)
        if len(parts) == 1:
            rows, values = self._nearest(parts[0], k)
            if len(rows) == k:
                return Neighbours(rows[None], values[None])
            return in_order(1, k, rows, np.zeros(len(rows), np.int64), values, self._ranks)
        if self._recipe.TOGETHER:
            return join_neighbours([self._together(parts[at : at + BATCH], k) for at in range(0, len(parts), BATCH)], k)
        found = [self._nearest(part, k) for part in parts]
        asking = np.repeat(np.arange(len(found)), [len(rows) for rows, _ in found])
        rows, values = (np.concatenate(column) for column in zip((NO_ROWS, NO_SCORES), *found, strict=True))
        return in_order(len(found), k, rows, asking, values, self._ranks)

    def _together(self, queries: Vectors, k: int) -> Neighbours:
        """What `_nearest` gives of each, in less time."""
        check_finite(queries)
        live = np.flatnonzero(queries.any(axis=1))
        values, rows = self._index.search(queries[live], self._wanted(k))
        keep = rows >= 0
        if self._near:
            margins = margin_of(1.0, queries.shape[1]) * np.linalg.norm(queries[live], axis=1)
            keep &= values >= (values[:, k - 1] - margins)[:, None]
        asking, at = np.nonzero(keep)
        rows, values, asking = rows[asking, at], values[asking, at], live[asking]
        if self._recipe.rescores:
            values = scores_of_pairs(self._vectors, queries, rows, asking, self._scoring)
        return in_order(len(queries), k, rows, asking, values, self._ranks)

    def _wanted(self, k: int) -> int:
        """How many candidates are asked for."""
        return min(k + TIE_ROWS if self._near else self._recipe.candidates(k), len(self._vectors))

    def _nearest(self, query: Vectors, k: int) -> tuple[Ints, Scores]:
        """Of one query of shape (dims,); its candidates come best first."""
        length = sqrt(np.dot(query, query))
        if not 0 < length < inf:  # or so small or large that its square is
            check_finite(query)
            if not query.any():
                return NO_ROWS, NO_SCORES
        values, rows = self._scan(query)
        if rows[-1] < 0:  # it found no more
            values, rows = values[rows >= 0], rows[rows >= 0]
        if not self._recipe.rescores:
            order = np.lexsort((self._ranks[rows], -values))[:k]
            return rows[order], values[order]
        if self._near and len(rows) > k:
            last, next_one = values[k - 1 : k + 1].tolist()
            least = last - margin_of(length, len(query))
            rows = rows[:k] if next_one < least else rows[values >= least]
        return best_of(self._vectors, self._ranks, query, rows, k, self._scoring)

    def _set(self, k: int) -> None:
        """What faiss keeps between searches: how wide they are, and how many threads the one that calls may use."""
        self._package.omp_set_num_threads(1)
        tune(self._package, self._index, self._recipe.SETTING, self._recipe.width(k))
        self._scan = Scan(self._package, self._index, self._wanted(k))
        self._set_for = k, get_ident()


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


SAMPLE = 64  # rows for each list from which its centre is found
MIN_ROWS_PER_LIST = 39  # rows that a list is to have on average, as faiss advises
MAX_LISTS = 65_536  # lists
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
        return max(self.config.reorder * k, k + TIE_ROWS)

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
        return max(1, min(4 * isqrt(rows), rows // MIN_ROWS_PER_LIST, MAX_LISTS))


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
