"""Exact nearest neighbours by cosine over a memory-mapped matrix, reproducible to the last bit, with little memory.

Rows are read in chunks. One float32 matrix product returns the score of every query for every row of a chunk. Two steps
make the result for a query independent of the other queries in the batch:

- The last bits of a product depend on the shape of the matrices. The product therefore only selects rows. Every row
  that may be among the query's best k within rounding error is scored again, pair by pair, in float64 rounded to
  float32.
- Ties are common (duplicates, and scores with fewer than 32 bits). Ties are ordered by a rank that the caller gives
  for each row. Rows that tie with the k-th row are dropped only after this order is applied.

A product is split into tiles that BLAS computes on the calling thread. With BLAS threads, a product on a busy machine
is up to twenty times slower. Searches run in parallel if several workers each process queries.
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

CHUNK = 8192  # rows read at a time; 8 MiB for 256 dimensions
BATCH = 64  # queries processed together; their scores for a chunk take 2 MiB
PAIRS = 2048  # pairs that are scored again at a time
ONE_THREAD = 1 << 18  # maximum number of multiplications for which OpenBLAS uses a single thread
FLOAT32_ROUNDING = 2.0**-24  # unit roundoff of float32
# unit roundoff of scores in each dtype; 0: scores stay float32
UNITS: dict[Dtype, float] = {"f32": 0.0, "f16": 2.0**-11, "bf16": 2.0**-8}
FULL_PRECISION = PrecisionSettings()
NO_NEIGHBOUR = -1


@dataclass(frozen=True)
class Neighbours:
    """The best rows of each query, by descending score, then by ascending row rank.

    `positions` and `scores` have shape (queries, k), where k is at most the number of rows. If a query has fewer than k
    neighbours, the remaining entries are position -1 and score -inf.
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
    """Return, for each of `queries`, the k rows of `vectors` with the largest dot product.

    Args:
        vectors: shape (n, d), of unit length or zero; may be a memory map.
        ranks: shape (n,), unique; rows with equal scores are ordered by ascending rank.
        queries: shape (q, d); a zero query has no neighbours.
        k: at least 1; a value above n counts as n.
        scoring: precision of vectors, queries and scores.
        chunk: rows that are read at a time; does not affect results.
        batch: queries that are processed together; does not affect results.

    Raises:
        DataError: a vector or a query contains NaN or infinity, or their dimensions differ.
    """
    check_shape(vectors, queries)
    check_finite(queries)
    width = min(k, len(vectors))
    parts = scoring.part(queries)
    starts = range(0, len(queries), batch)
    found = [_search_batch(vectors, ranks, parts[at : at + batch], width, chunk, scoring) for at in starts]
    return join_neighbours(found, width)


def join_neighbours(found: Sequence[Neighbours], k: int) -> Neighbours:
    """Concatenate the neighbours of consecutive queries."""
    every = [_no_neighbours(0, k), *found]
    return Neighbours(
        np.concatenate([part.positions for part in every]), np.concatenate([part.scores for part in every])
    )


def check_shape(vectors: Vectors, queries: Vectors) -> None:
    """Raise an error if queries and vectors have different dimensions.

    Raises:
        DataError: the dimensions differ.
    """
    if queries.ndim != 2 or queries.shape[1] != vectors.shape[1]:
        dims, wanted = queries.shape[-1], vectors.shape[1]
        raise DataError(
            f"a query has {dims} dimensions, the index has {wanted}",
            remedy="use the same embedder for queries and passages",
        )


def check_finite(queries: Vectors) -> None:
    """Raise an error if a query contains NaN or infinity.

    Raises:
        DataError: a query contains NaN or infinity.
    """
    if not np.isfinite(queries).all():
        raise DataError("a query vector contains NaN or infinity", remedy="embed again: --from embed --force")


def broken_vectors() -> DataError:
    """Return the error for passage vectors with NaN or infinity."""
    return DataError(
        "the passage vectors contain NaN or infinity", remedy="delete the vectors; raggs computes them again"
    )


def best_of(
    vectors: Vectors, ranks: SmallInts, query: Vectors, rows: Ints, k: int, scoring: PrecisionSettings = FULL_PRECISION
) -> tuple[Ints, Scores]:
    """Return the best k of the given rows for one query; order and scores are those of `search`, to the last bit.

    Args:
        query: shape (d,), rounded as in `scoring`.
        rows: unique positions; faster if they are already in the right order.
    """
    scores = _scores_of(_rounded_parts(vectors[rows], scoring), query.astype(np.float64))
    if not scoring.high_precision:
        scores = scoring.last(scores)
    if (scores[1:] < scores[:-1]).all():  # already ordered, and without ties
        return rows[:k], scores[:k]
    order = np.lexsort((ranks[rows], -scores))[:k]
    return rows[order], scores[order]


def scores_of_pairs(
    vectors: Vectors, queries: Vectors, rows: Ints, asking: Ints, scoring: PrecisionSettings = FULL_PRECISION
) -> Scores:
    """Return the scores of (row, query) pairs, identical to those of `search`.

    Args:
        queries: rounded as in `scoring`.
        rows, asking: for each pair, the index of its row in `vectors` and of its query in `queries`.
    """
    found = np.empty(len(rows), dtype=np.float32)
    wide = queries.astype(np.float64)
    for start in range(0, len(rows), PAIRS):
        part = slice(start, start + PAIRS)
        found[part] = _scores_of(_rounded_parts(vectors[rows[part]], scoring), wide[asking[part]])
    return scoring.last(found)


def in_order(queries: int, k: int, rows: Ints, asking: Ints, scores: Scores, ranks: SmallInts) -> Neighbours:
    """Return the best k results of each query from (row, query) pairs."""
    return _merge(_no_neighbours(queries, k), asking, rows, scores, ranks)


def _rounded_parts(vectors: Vectors, scoring: PrecisionSettings) -> Vectors:
    """Return the rounded vectors, as `scoring.part(vectors)` does; nothing is copied if nothing is rounded."""
    return vectors if scoring.dtype == "f32" else scoring.part(vectors)


def _no_neighbours(queries: int, k: int) -> Neighbours:
    return Neighbours(
        np.full((queries, k), NO_NEIGHBOUR, dtype=np.int64), np.full((queries, k), -np.inf, dtype=np.float32)
    )


def margin_of(length: float, dims: int) -> float:
    """Return the maximum difference between two float32 scores of the same vectors.

    |computed - true| <= gamma_d |x| |y| for any order of summation (Higham, Accuracy and Stability, 3.5). The bound is
    doubled, because both scores are rounded. It is slightly increased for lengths that are not exactly 1.

    Args:
        length: length of the query.
    """
    return 2.1 * (dims + 2) * FLOAT32_ROUNDING * length


def _search_batch(
    vectors: Vectors, ranks: SmallInts, queries: Vectors, k: int, size: int, scoring: PrecisionSettings
) -> Neighbours:
    asked = np.flatnonzero(queries.any(axis=1))
    live = np.ascontiguousarray(queries[asked], dtype=np.float32)
    lengths = np.linalg.norm(live, axis=1)
    margin = (margin_of(1.0, live.shape[1]) * lengths).astype(np.float32)
    if not scoring.high_precision:  # the score and the score that it is compared with may both be rounded up
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
        # If a query has fewer than k earlier results, the limit is the k-th best score of this chunk.
        if len(chunk) >= k and np.isneginf(floor).any():
            floor = np.maximum(floor, np.partition(scores.T, -k, axis=1)[:, -k])
        rows, asking = np.nonzero(scores >= floor - margin)
        if len(rows):
            exact = scoring.last(scores_of_pairs(chunk, live, rows, asking))
            best = _merge(best, asking, rows + start, exact, ranks)
    found = _no_neighbours(len(queries), k)
    found.positions[asked], found.scores[asked] = best.positions, best.scores
    return found


def _products(chunk: Vectors, queries: Vectors) -> Scores:
    """Return chunk @ queries.T, computed on the calling thread; shape (rows, queries)."""
    rows, dims = chunk.shape
    scores: Scores = np.empty((rows, len(queries)), dtype=np.float32)
    if len(queries) == 1:  # BLAS uses threads even for small matrix-vector products; einsum does not use BLAS
        np.einsum("rd,qd->rq", chunk, queries, out=scores)
        return scores
    tile = max(1, ONE_THREAD // (len(queries) * dims))
    tiles, rest = divmod(rows, tile)
    whole = rows - rest
    # The tiles are a stack of matrices, so that numpy calls BLAS once per tile.
    stack, out = chunk[:whole].reshape(tiles, tile, dims), scores[:whole].reshape(tiles, tile, len(queries))
    np.matmul(stack, queries.T, out=out)
    np.matmul(chunk[whole:], queries.T, out=scores[whole:])
    return scores


def _scores_of(rows: Vectors, queries: Floats) -> Scores:
    """Return the scores of rows for one query, or for one query per row; each score is summed independently."""
    found: Scores = np.add.reduce(rows * queries, axis=1).astype(np.float32)
    return found


def _merge(best: Neighbours, asking: Ints, positions: Ints, scores: Scores, ranks: SmallInts) -> Neighbours:
    """Return each query's best k among the earlier and the new results."""
    queries, k = best.positions.shape
    owner = np.concatenate([np.repeat(np.arange(queries), k), asking])
    positions = np.concatenate([best.positions.ravel(), positions])
    scores = np.concatenate([best.scores.ravel(), scores])
    order = np.lexsort((ranks[positions], -scores, owner))  # an empty entry has score -inf, so it comes last
    first = np.searchsorted(owner[order], np.arange(queries))
    chosen = order[(first[:, None] + np.arange(k)).ravel()]
    return Neighbours(positions[chosen].reshape(queries, k), scores[chosen].reshape(queries, k))


class FlatIndex(Index):
    """Exact search: each query is compared with every passage's vector; nothing is built."""

    PACKAGES = ("numpy",)

    class Config(IndexConfig):
        type: Literal["flat"] = "flat"

    @property
    def rescores(self) -> bool:
        return True

    def open(self, vectors: VectorIndex, progress: Progress | None, scoring: PrecisionSettings) -> OpenIndex:
        """Return a search over the vectors; nothing is built."""
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
