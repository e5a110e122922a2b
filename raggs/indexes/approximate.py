"""Indexes by faiss, which look at a part of the vectors: what they have in common.

An index proposes candidates; as a rule their scores are then computed again from the stored vectors, which are mapped
into memory, so that scores and order are those of the exact search and only a candidate that the index did not see is
lost. It costs some microseconds a query. Queries are searched one by one, even those that come together, so that a
query's hits and its time are its own. Vectors are of unit length: their inner product is their cosine. A vector of
zeros is nearest to nobody, with the score 0.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from math import inf, sqrt
from pathlib import Path
from threading import get_ident
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from raggs.arrays import Ints, Scores, Vectors
from raggs.errors import PrerequisiteError
from raggs.indexes import faisslib, room
from raggs.indexes.base import Index, IndexFacts, OpenIndex, Progress
from raggs.indexes.exact import (
    NOBODY,
    Neighbours,
    best_of,
    broken_vectors,
    check_finite,
    check_shape,
    margin_of,
)
from raggs.indexes.faisslib import PACKAGE, FaissIndex, Scan
from raggs.indexes.kept import Made, is_made, kept
from raggs.precision import Scoring
from raggs.registry import installed

if TYPE_CHECKING:
    from raggs.indexes.vectors import VectorIndex

BLOCK = 8192  # rows added between two reports
SLACK = 16  # rows beyond the k-th, so that ties there go by doc_id
NO_ROWS: Ints = np.empty(0, dtype=np.int64)
NO_SCORES: Scores = np.empty(0, dtype=np.float32)


class ApproximateIndex(Index):
    """An index by faiss. Each says how it is built, how wide a search is, and what it takes."""

    PACKAGES = (PACKAGE,)
    SETTING: str  # what faiss calls the width of a search

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

    def check(self, rows: int, dims: int, place: Path) -> None:
        """Whether faiss is there, the settings fit and what is to be built will fit into memory."""
        faisslib.faiss(self.config.type)
        self.fits(rows, dims)
        if not is_made(place, self._wanted(rows, dims, "")):
            self._check_room(rows, dims)

    def open(self, vectors: VectorIndex, progress: Progress | None, scoring: Scoring) -> OpenIndex:
        """The index, mapped into memory where faiss can do that."""
        rows, dims = vectors.vectors.shape
        package = faisslib.faiss(self.config.type)
        self.fits(rows, dims)

        def build(path: Path) -> None:
            self._check_room(rows, dims)
            _check_vectors(vectors.vectors)
            try:
                built = self.build(package, vectors.vectors, lambda empty: self._add(empty, vectors.vectors, progress))
            except MemoryError as error:  # others took it in the meantime
                raise self._too_large(rows, dims, room.available()) from error
            faisslib.write(package, built, path)

        path, made = kept(vectors.place, self._wanted(rows, dims, vectors.sum), build)
        facts = IndexFacts(self.kind, rows, dims, made.build_s, made.bytes, made.bytes)
        return _Approximate(self, package, faisslib.read(package, path), vectors, facts, scoring)

    def _wanted(self, rows: int, dims: int, vectors: str) -> Made:
        library = f"{PACKAGE} {installed(PACKAGE)}, version {self.VERSION}"
        return Made(self.config.type, vectors, rows, dims, self.built_with(rows), library)

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
        for start in range(0, len(vectors), BLOCK):
            index.add(vectors[start : start + BLOCK])
            if progress is not None:
                progress(self.kind, min(start + BLOCK, len(vectors)), len(vectors))


def _check_vectors(vectors: Vectors) -> None:
    for start in range(0, len(vectors), BLOCK):
        if not np.isfinite(vectors[start : start + BLOCK]).all():
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
        scoring: Scoring,
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
        """Query by query. A search takes a fraction of a millisecond, of which each call of numpy is a hundredth."""
        check_shape(self._vectors, queries)
        k = min(k, len(self._vectors))
        if self._set_for != (k, get_ident()):
            self._set(k)
        parts: Vectors = np.ascontiguousarray(queries, dtype=np.float32)
        if self._rounds:
            parts = self._scoring.part(parts)
        found = [self._nearest(part, k) for part in parts]
        if len(found) == 1 and len(found[0][0]) == k:
            return Neighbours(found[0][0][None], found[0][1][None])
        positions = np.full((len(queries), k), NOBODY, dtype=np.int64)
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        for row, (rows, values) in enumerate(found):
            positions[row, : len(rows)], scores[row, : len(rows)] = rows, values
        return Neighbours(positions, scores)

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
        faisslib.tune(self._package, self._index, self._recipe.SETTING, self._recipe.width(k))
        wanted = k + SLACK if self._near else self._recipe.candidates(k)
        self._scan = Scan(self._package, self._index, min(wanted, len(self._vectors)))
        self._set_for = k, get_ident()
