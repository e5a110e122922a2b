"""Approximate indexes by faiss: HNSW and IVF.

An index proposes candidates. By default, their scores are then computed again from the stored, memory-mapped vectors.
Scores and order are therefore those of the exact search; only hits that the index did not propose are missing.
Rescoring takes some microseconds per query. A query's hits do not depend on other queries: a batch is searched in one
call only if faiss processes each query independently. Vectors have unit length, so that their inner product is the
cosine. A zero vector has score 0.

faiss runs on one thread. The OpenMP threads of faiss busy-wait by default, which can hang the import on a loaded
machine. They are therefore set to wait passively. With one thread, a build on one machine depends only on the vectors
and the seed, and threads do not compete, which would raise query latency.

HNSW is a layered graph of near neighbours, searched from the top layer (Malkov & Yashunin 2020). Two undocumented facts
about faiss: if efSearch is below k, the search ends early and returns far fewer hits than possible, so efSearch is at
least k. The graph's arrays grow by doubling, so they are allocated at full size before the first row is added.

IVF stores vectors in lists around centroids; a search reads the nearest lists. With `pq`, a vector is split into parts,
and each part is stored as the nearest of 16 centroids, in 4 bits (product quantization, Jégou, Douze & Schmid 2011).
Blocks of codes are compared in CPU registers (André et al. 2015). The scores are approximate, so at least `reorder`
times k candidates are scored again from the vectors on disk, unless `reorder` is 0.
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
    """Methods of faiss's index class that are used here."""

    ntotal: int

    def train(self, x: Vectors) -> None: ...
    def add(self, x: Vectors) -> None: ...
    def search(self, x: Vectors, k: int) -> tuple[Scores, Ints]: ...
    def search_c(self, n: int, x: object, k: int, distances: object, labels: object, params: None) -> None: ...


class Scan:
    """Single-query searches for a fixed number of rows, through the C function of faiss.

    The Python wrapper of faiss checks and allocates arrays for each call, which takes a tenth of a short search.
    """

    def __init__(self, package: ModuleType, index: FaissIndex, wanted: int) -> None:
        self._index = index
        self._wanted = wanted
        self._pointer: Callable[[object], object] = package.swig_ptr
        self._values: Scores = np.empty(wanted, dtype=np.float32)
        self._rows: Ints = np.empty(wanted, dtype=np.int64)
        self._into = self._pointer(self._values), self._pointer(self._rows)

    def __call__(self, query: Vectors) -> tuple[Scores, Ints]:
        """Return scores and rows, best first; the row is -1 if no more were found. The next call overwrites the scores.

        Args:
            query: shape (dims,), contiguous.
        """
        self._index.search_c(1, self._pointer(query), self._wanted, *self._into, None)
        return self._values, self._rows.copy()


def faiss(kind: str) -> ModuleType:
    """Return the faiss package, set to one thread.

    Args:
        kind: index that needs faiss, for the error message.

    Raises:
        PrerequisiteError: faiss is not installed.
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
    """Make OpenMP threads wait passively, except if the environment sets another policy.

    OpenMP reads the policy during the import. The environment is restored afterwards.
    """
    before = os.environ.get(WAITING)
    os.environ.setdefault(WAITING, "passive")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(WAITING, None)


def new(package: ModuleType, key: str, dims: int) -> FaissIndex:
    """Return an empty inner-product index of the faiss factory string `key`, such as "HNSW16_SQ8"."""
    made: FaissIndex = package.index_factory(dims, key, package.METRIC_INNER_PRODUCT)
    return made


def tune(package: ModuleType, index: FaissIndex, setting: str, value: int) -> None:
    """Set one of the faiss parameters efSearch, efConstruction and nprobe."""
    package.ParameterSpace().set_index_parameter(index, setting, value)


def write(package: ModuleType, index: FaissIndex, path: Path) -> None:
    """Write the index to a file.

    Raises:
        ProviderError: the file cannot be written.
    """
    try:
        package.write_index(index, str(path))
    except RuntimeError as error:
        raise disk_fault(error, path, "free disk space and run again", "the index cannot be stored") from error


def read(package: ModuleType, path: Path) -> FaissIndex:
    """Return the index in a file. faiss memory-maps graphs and their vectors, but reads lists into memory.

    Raises:
        DataError: faiss cannot read the file.
    """
    try:
        return _read(package, path, package.IO_FLAG_MMAP_IFC)
    except RuntimeError:  # memory mapping is not supported on every system
        try:
            return _read(package, path, 0)
        except RuntimeError as error:
            remedy = "delete its folder; raggs builds it again"
            raise DataError("faiss cannot read the index", where=path, remedy=remedy) from error


def _read(package: ModuleType, path: Path, flags: int) -> FaissIndex:
    found: FaissIndex = package.read_index(str(path), flags)
    return found


INDEX = "index"  # name of the index file
ROWS_PER_REPORT = 8192  # rows added between two progress reports
BATCH = 64  # queries per call
TIE_ROWS = 16  # rows requested beyond the k-th, so that ties with the k-th row can be ordered by doc_id
NO_ROWS: Ints = np.empty(0, dtype=np.int64)
NO_SCORES: Scores = np.empty(0, dtype=np.float32)


class ApproximateIndex(Index):
    """A faiss index. Subclasses define how it is built, how wide a search is, and how much memory it needs."""

    PACKAGES = (PACKAGE,)
    SETTING: str  # faiss parameter for the width of a search
    TOGETHER = False  # whether faiss returns the same hits if queries are searched in one call

    @property
    @abstractmethod
    def kind(self) -> str:
        """Type and storage format of the rows."""

    @property
    @abstractmethod
    def full(self) -> bool:
        """Whether the index stores vectors as float32, so that its own scores are exact except for the last bits."""

    @abstractmethod
    def built_with(self, rows: int) -> dict[str, str | int | None]:
        """Return the settings that affect the build."""

    @abstractmethod
    def build(self, package: ModuleType, vectors: Vectors, add: Callable[[FaissIndex], None]) -> FaissIndex:
        """Return an index of these vectors; after training, it calls `add`, which adds the vectors in blocks."""

    @abstractmethod
    def width(self, k: int) -> int:
        """Return the value of `SETTING` for a search of k rows."""

    @abstractmethod
    def candidates(self, k: int) -> int:
        """Return the number of rows to request for k hits; used if the index's own scores do not suffice."""

    @abstractmethod
    def memory(self, rows: int, dims: int) -> int:
        """Return the approximate memory of a build, in bytes."""

    @abstractmethod
    def smaller(self, rows: int, dims: int) -> str:
        """Return a description of settings that need less memory."""

    def fits(self, rows: int, dims: int) -> None:
        """Raise an error if the settings do not fit vectors of this shape.

        Raises:
            DataError: the settings do not fit.
        """

    def check(self, rows: int, dims: int, cache: Cache) -> None:
        """Raise an error if faiss is missing, the settings do not fit, or the build needs more memory than
        available.
        """
        faiss(self.config.type)
        self.fits(rows, dims)
        if not cache.has_files(self._name(rows, dims)):
            self._check_room(rows, dims)

    def open(self, vectors: VectorIndex, progress: Progress | None, scoring: PrecisionSettings) -> OpenIndex:
        """Return the index, memory-mapped where faiss supports it; it is built if it is not on disk."""
        rows, dims = vectors.vectors.shape
        package = faiss(self.config.type)
        self.fits(rows, dims)

        def build(folder: Path) -> None:
            self._check_room(rows, dims)
            _check_vectors(vectors.vectors)
            try:
                built = self.build(package, vectors.vectors, lambda empty: self._add(empty, vectors.vectors, progress))
            except MemoryError as error:  # other processes may have allocated memory since the check
                raise self._too_large(rows, dims, room.available()) from error
            write(package, built, folder / INDEX)

        name = self._name(rows, dims)
        made = vectors.cache.files(name, [name, vectors.sum], build, "the index")
        facts = IndexFacts(self.kind, rows, dims, made.seconds, made.bytes, made.bytes)
        return _Approximate(self, package, read(package, made.path / INDEX), vectors, facts, scoring)

    def _name(self, rows: int, dims: int) -> str:
        """Return the folder name of the index. An index with the same settings and shape, but of other vectors, is
        replaced.
        """
        library = f"{PACKAGE} {installed(PACKAGE)}, version {self.VERSION}"
        return f"{self.config.type}-{hash_value([rows, dims, self.built_with(rows), library])[:16]}"

    def _check_room(self, rows: int, dims: int) -> None:
        there = room.available()
        if there is not None and self.memory(rows, dims) > there:
            raise self._too_large(rows, dims, there)

    def _too_large(self, rows: int, dims: int, there: int | None) -> PrerequisiteError:
        free = "less is available" if there is None else f"{room.in_words(there)} are available"
        return PrerequisiteError(
            f"building index {self.kind} of {rows:,} vectors with {dims} dimensions needs about "
            f"{room.in_words(self.memory(rows, dims))} of memory, but {free}",
            remedy=f"{self.smaller(rows, dims)}; or use an embedder with fewer dimensions, or index: {{type: flat}}",
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
    """A faiss index together with its vectors."""

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
        # a plain array over the same memory map, because its rows are faster to access
        self._vectors: Vectors = np.asarray(vectors.vectors)
        self._ranks = vectors.ranks
        self._scoring = scoring
        self._rounds = scoring.dtype != "f32"
        # whether the index's scores suffice to discard rows that cannot be among the best k
        self._near = recipe.full and not self._rounds
        self._set_for: tuple[int, int] = (0, 0)  # k and thread for which `_set` was last called
        self._scan = Scan(package, index, 1)

    def search(self, queries: Vectors, k: int) -> Neighbours:
        """Return the neighbours of the queries; a single query has a fast path without batch operations."""
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
        """Return what `_nearest` returns for each query of a batch, in less time."""
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
        """Return the number of candidates to request from faiss for k hits."""
        return min(k + TIE_ROWS if self._near else self._recipe.candidates(k), len(self._vectors))

    def _nearest(self, query: Vectors, k: int) -> tuple[Ints, Scores]:
        """Return the rows and scores of one query of shape (dims,), best first."""
        length = sqrt(np.dot(query, query))
        if not 0 < length < inf:  # the query is zero, infinite or NaN, or its square underflows or overflows
            check_finite(query)
            if not query.any():
                return NO_ROWS, NO_SCORES
        values, rows = self._scan(query)
        if rows[-1] < 0:  # faiss found fewer rows than requested
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
        """Set what faiss stores between searches: the search width, and the number of threads for the calling
        thread.
        """
        self._package.omp_set_num_threads(1)
        tune(self._package, self._index, self._recipe.SETTING, self._recipe.width(k))
        self._scan = Scan(self._package, self._index, self._wanted(k))
        self._set_for = k, get_ident()


class HnswIndex(ApproximateIndex):
    """HNSW: a layered graph of near neighbours; fast and nearly exact, needs much memory (extra `ann`)."""

    EFFORT = "ef"
    SETTING = "efSearch"
    TOGETHER = True

    class Config(IndexConfig):
        type: Literal["hnsw"] = "hnsw"
        m: int = Field(
            16, ge=2, le=256, description="links per vector in each layer; twice as many in the bottom layer"
        )
        ef_construction: int = Field(200, ge=1, le=100_000, description="candidates examined per vector in the build")
        ef: int = Field(64, ge=1, le=1_000_000, description="candidates examined per query; at least k")
        quantize: Literal["int8"] | None = Field(
            None, description="int8: store the graph's vectors as bytes, in a quarter of the memory; null: float32"
        )
        reorder: bool = Field(
            True,
            description="compute exact scores of the candidates from the vectors on disk; false: the graph's scores",
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
        """Build the graph in the order of the rows, on one thread: on one machine, equal vectors yield equal files."""
        index = new(package, f"HNSW{self.config.m}" + ("" if self.full else "_SQ8"), vectors.shape[1])
        tune(package, index, "efConstruction", self.config.ef_construction)
        if not self.full:
            index.train(vectors)  # learns minimum and maximum of each dimension
        _reserve(package, index, *vectors.shape, links=self._links, width=self._width)
        add(index)
        return index

    def width(self, k: int) -> int:
        return max(self.config.ef, k)

    def least_effort(self, k: int) -> int:
        return k

    def candidates(self, k: int) -> int:
        """Return the number of candidates that faiss examines; with `reorder`, all of them are rescored."""
        return max(self.config.ef, k)

    def memory(self, rows: int, dims: int) -> int:
        """Return the bytes needed by the vectors, the links, and the level and offset of each row."""
        return rows * (dims * self._width + 4 * self._links + 12)

    def smaller(self, rows: int, dims: int) -> str:
        ivf = f"{{type: ivf, pq: ...}} needs {room.in_words(rows * max(dims // 8, 1))} or less"
        if not self.full:
            return ivf
        small = rows * (dims + 4 * self._links + 12)
        return f"quantize: int8 needs {room.in_words(small)}; {ivf}"

    @property
    def _width(self) -> int:
        """Bytes per stored dimension."""
        return 4 if self.full else 1

    @property
    def _links(self) -> int:
        """Mean number of links that a row has space for: 2 m in the bottom layer and m in each layer above."""
        m = self.config.m
        return 2 * m + -(-m // (m - 1))


def _reserve(package: ModuleType, index: Any, rows: int, dims: int, *, links: int, width: int) -> None:
    """Reserve memory for all rows: each array is enlarged, then shrunk again, but its memory stays allocated."""
    for values, count in (
        (package.downcast_index(index.storage).codes, rows * dims * width),
        (index.hnsw.neighbors, rows * links),
    ):
        values.resize(count)
        values.resize(0)


SAMPLE = 64  # training rows per list
MIN_ROWS_PER_LIST = 39  # minimum mean number of rows per list with lists: auto, as recommended by faiss
MAX_LISTS = 65_536  # maximum number of lists with lists: auto
TYPICAL = 16  # centroids of a part that 4 bits can encode
ID = 8  # bytes per row id


class IvfIndex(ApproximateIndex):
    """IVF: searches only the nearest lists of vectors; fast to build, and small with `pq` (extra `ann`)."""

    EFFORT = "nprobe"
    SETTING = "nprobe"

    class Config(IndexConfig):
        type: Literal["ivf"] = "ivf"
        lists: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
            "auto",
            description="number of lists; auto: 4 times the square root of the number of vectors, reduced to a mean of "
            "at least 39 vectors per list",
        )
        nprobe: int = Field(16, ge=1, le=1_000_000, description="lists read per query")
        pq: int | None = Field(
            None, ge=1, description="4-bit codes per vector, a divisor of dims; null: float32 vectors"
        )
        reorder: int = Field(
            10, ge=0, le=10_000,
            description="candidates per hit that are scored exactly from the vectors on disk; 0: none",
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
        """Raise an error if there are more lists than vectors, or `pq` does not divide the dimensions."""
        lists, pq = self.config.lists, self.config.pq
        if lists != "auto" and lists > rows:
            raise DataError(f"more lists ({lists:,}) than vectors ({rows:,}) in an ivf index", remedy="set lists: auto")
        if pq is not None and dims % pq:
            good = ", ".join(str(parts) for parts in range(1, dims + 1) if dims % parts == 0)
            raise DataError(f"pq: {pq} does not divide {dims} dimensions", remedy=f"set pq to one of {good}")

    def built_with(self, rows: int) -> dict[str, str | int | None]:
        return {"lists": self._lists(rows), "pq": self.config.pq}

    def build(self, package: ModuleType, vectors: Vectors, add: Callable[[FaissIndex], None]) -> FaissIndex:
        """Train on a seeded sample and add all rows, on one thread: on one machine, equal vectors yield equal files."""
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
        """Return the bytes needed by the lists, which grow by doubling, and by the training sample."""
        row = dims * 4 if self.config.pq is None else -(-self.config.pq // 2)
        return int(1.5 * rows * (row + ID)) + 2 * min(rows, self._lists(rows) * SAMPLE) * dims * 4

    def smaller(self, rows: int, dims: int) -> str:
        if not self.full:
            return "set fewer lists"
        return f"pq: ... needs {room.in_words(rows * (max(dims // 8, 1) + ID))} or less"

    def _lists(self, rows: int) -> int:
        if self.config.lists != "auto":
            return self.config.lists
        return max(1, min(4 * isqrt(rows), rows // MIN_ROWS_PER_LIST, MAX_LISTS))


def _calm(index: Any, seed: int) -> None:
    """Set the random seeds, and disable warnings about few rows per list."""
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
