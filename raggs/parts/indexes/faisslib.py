"""faiss, as raggs uses it: on one thread, and without the traps of its threads.

Its OpenMP threads spin while they wait, by which a loaded machine can hang at the import; told to be passive, they
sleep. With one thread a build is a function of the vectors and the seed, and a query's time is its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Protocol

import numpy as np

from raggs.base.arrays import Ints, Scores, Vectors
from raggs.base.atomic import disk_fault
from raggs.base.errors import DataError, PrerequisiteError

PACKAGE = "faiss-cpu"
REMEDY = 'pip install "raggs[ann]"'
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
            raise PrerequisiteError(f"index {kind} needs {PACKAGE}, which is not installed", remedy=REMEDY) from error
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
