"""Exact nearest neighbours by cosine over a memory-mapped matrix, in little memory and to the last bit.

Rows are read in chunks; one float32 matrix product gives every query's score for every row of a chunk. Two
things make the result a function of the query and the rows alone, whatever else is in the batch:

- A product's last bits depend on the shape of the matrices. So it only selects: every row whose score comes
  within its rounding error of the query's k-th best is scored again, pair by pair, in float64 rounded to float32.
- Equal scores are common (duplicates, and scores of less than 32 bits). They are ordered by a rank given for each
  row, and no row that ties with the k-th is dropped before that order is applied.

A product is cut into tiles that BLAS computes on the calling thread: with threads of its own a product under
load is up to twenty times slower, and work is spread by running queries in several workers, not inside one.

No index at all: each query is compared with every vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from raggs.base.arrays import Dtype, Floats, Ints, Scores, SmallInts, Vectors
from raggs.base.errors import DataError
from raggs.base.precision import PrecisionSettings
from raggs.parts.indexes import Index, IndexConfig, IndexFacts, OpenIndex, Progress

if TYPE_CHECKING:
    from raggs.parts.indexes.vectors import VectorIndex

CHUNK = 8192  # rows; 8 MiB of 256 dimensions
BATCH = 64  # queries; a chunk's scores take 2 MiB
PAIRS = 2048  # pairs scored again at a time
ONE_THREAD = 1 << 18  # multiplications of a product that OpenBLAS does not share out among threads
FLOAT32_ROUNDING = 2.0**-24  # rounding unit of float32
UNITS: dict[Dtype, float] = {"f32": 0.0, "f16": 2.0**-11, "bf16": 2.0**-8}  # of a score that is rounded again
FULL_PRECISION = PrecisionSettings()
NO_NEIGHBOUR = -1


@dataclass(frozen=True)
class Neighbours:
    """The best rows of each query, score descending, then row rank ascending.

    `positions` and `scores` have shape (queries, k). Where a query has fewer than k neighbours, the rest holds
    position -1 and score -inf.
    """

    positions: Ints
    scores: Scores


def search(
    vectors: Vectors,
    ranks: SmallInts,
    queries: Vectors,
    k: int,
    *,
    scoring: PrecisionSettings = FULL_PRECISION,
    chunk: int = CHUNK,
    batch: int = BATCH,
) -> Neighbours:
    """The k rows of `vectors` with the largest dot product, for each of `queries`.

    Args:
        vectors: shape (n, d); unit length or zero; may be a memory map.
        ranks: shape (n,), all different; decides between equal scores, smaller first.
        queries: shape (q, d); a query of zeros has no neighbours.
        k: at least 1.
        scoring: the precision of vectors, queries and scores.
        chunk: rows that are read at a time; it changes no result, nor does `batch`.
        batch: queries that are looked at together.

    Raises:
        DataError: a vector or a query holds NaN or infinity.
    """
    check_shape(vectors, queries)
    check_finite(queries)
    width = min(k, len(vectors))
    parts = scoring.part(queries)
    starts = range(0, len(queries), batch)
    found = [_search_batch(vectors, ranks, parts[at : at + batch], width, chunk, scoring) for at in starts]
    return join_neighbours(found, width)


def join_neighbours(found: Sequence[Neighbours], k: int) -> Neighbours:
    """The neighbours of some queries, and of those after them."""
    every = [_no_neighbours(0, k), *found]
    return Neighbours(
        np.concatenate([part.positions for part in every]), np.concatenate([part.scores for part in every])
    )


def check_shape(vectors: Vectors, queries: Vectors) -> None:
    """Refuse queries of another length than the vectors.

    Raises:
        DataError: they are.
    """
    if queries.ndim != 2 or queries.shape[1] != vectors.shape[1]:
        dims, wanted = queries.shape[-1], vectors.shape[1]
        raise DataError(
            f"a query vector has {dims} dimensions, the index {wanted}", remedy="embed both with the same embedder"
        )


def check_finite(queries: Vectors) -> None:
    """Refuse NaN and infinity.

    Raises:
        DataError: a query holds it.
    """
    if not np.isfinite(queries).all():
        raise DataError(
            "a query vector holds NaN or infinity", remedy="run the embed stage again: --from embed --force"
        )


def broken_vectors() -> DataError:
    """What is said of passage vectors that are no numbers."""
    return DataError("the passage vectors hold NaN or infinity", remedy="delete them; they are computed again")


def best_of(
    vectors: Vectors, ranks: SmallInts, query: Vectors, rows: Ints, k: int, scoring: PrecisionSettings = FULL_PRECISION
) -> tuple[Ints, Scores]:
    """The best k of some rows for one query, ordered and scored as `search` does it to the last bit.

    Args:
        query: shape (d,), rounded as `scoring` says.
        rows: positions, each once; the work is less where they come in the right order already.
    """
    scores = _scores_of(_rounded_parts(vectors[rows], scoring), query.astype(np.float64))
    if not scoring.high_precision:
        scores = scoring.last(scores)
    if (scores[1:] < scores[:-1]).all():  # in order, and no two equal
        return rows[:k], scores[:k]
    order = np.lexsort((ranks[rows], -scores))[:k]
    return rows[order], scores[order]


def scores_of_pairs(
    vectors: Vectors, queries: Vectors, rows: Ints, asking: Ints, scoring: PrecisionSettings = FULL_PRECISION
) -> Scores:
    """The scores of (row, query) pairs as `search` gives them.

    Args:
        queries: rounded as `scoring` says.
        rows, asking: of `vectors` and of `queries`, one of each for each pair.
    """
    found = np.empty(len(rows), dtype=np.float32)
    wide = queries.astype(np.float64)
    for start in range(0, len(rows), PAIRS):
        part = slice(start, start + PAIRS)
        found[part] = _scores_of(_rounded_parts(vectors[rows[part]], scoring), wide[asking[part]])
    return scoring.last(found)


def in_order(queries: int, k: int, rows: Ints, asking: Ints, scores: Scores, ranks: SmallInts) -> Neighbours:
    """The best k of what each of some queries found, which is given as pairs."""
    return _merge(_no_neighbours(queries, k), asking, rows, scores, ranks)


def _rounded_parts(vectors: Vectors, scoring: PrecisionSettings) -> Vectors:
    """As `scoring.part`, at no cost where nothing is rounded."""
    return vectors if scoring.dtype == "f32" else scoring.part(vectors)


def _no_neighbours(queries: int, k: int) -> Neighbours:
    return Neighbours(
        np.full((queries, k), NO_NEIGHBOUR, dtype=np.int64), np.full((queries, k), -np.inf, dtype=np.float32)
    )


def margin_of(length: float, dims: int) -> float:
    """How far two float32 scores of the same vectors may differ, at most.

    |computed - true| <= gamma_d |x| |y| for any order of summation (Higham, Accuracy and Stability, 3.5); twice that,
    since what it is compared with is a rounded score too, and a little for lengths that are not quite 1.

    Args:
        length: of the query.
    """
    return 2.1 * (dims + 2) * FLOAT32_ROUNDING * length


def _search_batch(
    vectors: Vectors, ranks: SmallInts, queries: Vectors, k: int, size: int, scoring: PrecisionSettings
) -> Neighbours:
    asked = np.flatnonzero(queries.any(axis=1))
    live = np.ascontiguousarray(queries[asked], dtype=np.float32)
    lengths = np.linalg.norm(live, axis=1)
    margin = (margin_of(1.0, live.shape[1]) * lengths).astype(np.float32)
    if not scoring.high_precision:  # a score may be rounded up, and so may the one that it is compared with
        margin += np.float32(2.1 * UNITS[scoring.dtype]) * lengths
    best = _no_neighbours(len(live), k)
    for start in range(0, len(vectors) if len(live) else 0, size):
        chunk = _rounded_parts(vectors[start : start + size], scoring)
        with np.errstate(invalid="ignore", over="ignore"):
            scores = _products(chunk, live)
            total = scores.sum(dtype=np.float64)
        if not np.isfinite(total):
            raise broken_vectors()
        floor = best.scores[:, -1]
        if len(chunk) >= k and np.isneginf(floor).any():  # nothing to compare with yet: the chunk's own k-th best
            floor = np.maximum(floor, np.partition(scores.T, -k, axis=1)[:, -k])
        rows, asking = np.nonzero(scores >= floor - margin)
        if len(rows):
            exact = scoring.last(scores_of_pairs(chunk, live, rows, asking))
            best = _merge(best, asking, rows + start, exact, ranks)
    found = _no_neighbours(len(queries), k)
    found.positions[asked], found.scores[asked] = best.positions, best.scores
    return found


def _products(chunk: Vectors, queries: Vectors) -> Scores:
    """chunk @ queries.T on the calling thread; shape (rows, queries)."""
    rows, dims = chunk.shape
    scores: Scores = np.empty((rows, len(queries)), dtype=np.float32)
    if len(queries) == 1:  # a matrix times a vector is shared out from far smaller sizes on; einsum uses no BLAS
        np.einsum("rd,qd->rq", chunk, queries, out=scores)
        return scores
    tile = max(1, ONE_THREAD // (len(queries) * dims))
    tiles, rest = divmod(rows, tile)
    whole = rows - rest
    # A stack of products: numpy calls BLAS once for each tile.
    stack, out = chunk[:whole].reshape(tiles, tile, dims), scores[:whole].reshape(tiles, tile, len(queries))
    np.matmul(stack, queries.T, out=out)
    np.matmul(chunk[whole:], queries.T, out=scores[whole:])
    return scores


def _scores_of(rows: Vectors, queries: Floats) -> Scores:
    """The products of rows with one query or with as many, each summed by itself."""
    found: Scores = np.add.reduce(rows * queries, axis=1).astype(np.float32)
    return found


def _merge(best: Neighbours, asking: Ints, positions: Ints, scores: Scores, ranks: SmallInts) -> Neighbours:
    """The best k of what each query had and what it found now."""
    queries, k = best.positions.shape
    owner = np.concatenate([np.repeat(np.arange(queries), k), asking])
    positions = np.concatenate([best.positions.ravel(), positions])
    scores = np.concatenate([best.scores.ravel(), scores])
    order = np.lexsort(
        (ranks[positions], -scores, owner)
    )  # an empty place has -inf, so it comes last whatever its rank
    first = np.searchsorted(owner[order], np.arange(queries))
    chosen = order[(first[:, None] + np.arange(k)).ravel()]
    return Neighbours(positions[chosen].reshape(queries, k), scores[chosen].reshape(queries, k))


class FlatIndex(Index):
    """Exact: each query is compared with every passage's vector; nothing is built."""

    PACKAGES = ("numpy",)

    class Config(IndexConfig):
        type: Literal["flat"] = "flat"

    @property
    def rescores(self) -> bool:
        return True

    def open(self, vectors: VectorIndex, progress: Progress | None, scoring: PrecisionSettings) -> OpenIndex:
        """The vectors as they are."""
        return _Flat(vectors, scoring)


class _Flat(OpenIndex):
    def __init__(self, vectors: VectorIndex, scoring: PrecisionSettings) -> None:
        rows, dims = vectors.vectors.shape
        size = rows * dims * 4
        self.facts = IndexFacts("flat", rows, dims, 0.0, size, size)
        self._vectors = vectors
        self._scoring = scoring

    def search(self, queries: Vectors, k: int) -> Neighbours:
        return self._vectors.search(queries, k, self._scoring)
