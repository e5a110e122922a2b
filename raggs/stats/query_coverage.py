"""Coverage of the queries of users by a golden set, and the choice of the queries to label next.

Coverage (`coverage_of`): a query of the log is covered if its cosine with a query of the set is at least a threshold.
The coverage is the share of searches whose query is covered. The interval treats the queries of the log as a random
sample. Searches of one query are not independent. So for queries with s_i searches, the sample counts as (sum s_i)^2 /
sum s_i^2 independent queries, and the interval is that of Wilson.

Kinds (`kinds_of`): queries are grouped by meaning. In order of their searches, each query joins the group whose first
query has the highest cosine with it, if this cosine is above the threshold. Otherwise, the query starts a group. Then
each query moves to the group with the nearest mean, and this step is repeated up to three times. A query of the set
belongs to the kind of its nearest query of the log, if it covers this query.

Choice (`choose_queries`): the verdict between two systems depends on a mean over searches. Let W be the share of the
searches of a kind, n the number of its labelled queries, and s the variance of the difference between systems in it.
With one pseudo-query per kind, the variance of the mean is the sum of W^2 s / (n + 1). A further label in a kind
reduces it by W^2 s / ((n + 1)(n + 2)). Each step chooses the kind with the largest reduction, among those with a query
left to choose. s is not known before labels exist. Systems can differ most where searches fail, so s is taken as 1 +
the share of searches with a failure signal. Within a kind, the query with the most searches is chosen, and a search
with a failure signal counts twice. Near duplicates of labelled and of chosen queries are not chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints, Vectors
from raggs.stats.distributions import normal_quantile
from raggs.stats.question_filters import duplicates

ROWS_PER_BLOCK = 2048
MAX_REGROUPINGS = 3  # maximum number of times that queries move to the nearest mean
SAME_QUESTION = 0.92  # cosine above which two queries have the same meaning


@dataclass(frozen=True)
class QueryCoverage:
    """Share of searches whose query is covered.

    Attributes:
        share: the share, in 0..1.
        low, high: bounds of the interval.
        standard_error: standard error of the share.
        confidence: confidence level.
        effective: number of independent queries that the sample counts as.
    """

    share: float
    low: float
    high: float
    standard_error: float
    confidence: float
    effective: float


def coverage_of(covered: Flags, searches: Floats, confidence: float = 0.95) -> QueryCoverage:
    """Return the coverage with its interval.

    Args:
        covered: shape (queries,), whether the set covers each query.
        searches: shape (queries,), number of searches of each query, above 0.

    Raises:
        ValueError: there is no query, or a weight is not positive.
    """
    if not len(searches) or not (searches > 0).all():
        raise ValueError("each query needs at least one search, and there must be a query")
    total = float(searches.sum())
    share = float(searches[covered].sum()) / total
    count = total**2 / float((searches**2).sum())
    z = normal_quantile((1 + confidence) / 2)
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    low, high = max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))
    return QueryCoverage(share, low, high, math.sqrt(share * (1 - share) / count), confidence, count)


def nearest_in_set(queries: Vectors, labelled: Vectors) -> tuple[Floats, Ints]:
    """Return the highest cosine of each query with a labelled query, and the row of this labelled query.

    Without labelled queries, all cosines are -inf and all rows -1.

    Args:
        queries, labelled: shapes (queries, dims) and (labelled, dims), of unit length or zero.
    """
    best, place = np.full(len(queries), -np.inf), np.full(len(queries), -1, dtype=np.int64)
    for start in range(0, len(queries), ROWS_PER_BLOCK):
        if len(labelled):
            cosines = queries[start : start + ROWS_PER_BLOCK] @ labelled.T
            place[start : start + ROWS_PER_BLOCK] = cosines.argmax(axis=1)
            best[start : start + ROWS_PER_BLOCK] = cosines.max(axis=1)
    return best, place


def kinds_of(vectors: Vectors, searches: Floats, threshold: float) -> Ints:
    """Return the number of the kind of each query, shape (queries,); kinds are numbered by their searches, most first.

    Args:
        vectors: shape (queries, dims), of unit length or zero; the queries with the most searches first.
        searches: shape (queries,), number of searches of each query.
        threshold: cosine with the first query of a kind above which a query starts in this kind.
    """
    first = np.arange(len(vectors))
    for gone in duplicates(vectors, threshold):
        first[gone.row] = gone.of
    kinds: Ints = np.unique(first, return_inverse=True)[1]
    for _ in range(MAX_REGROUPINGS):
        means = _means(vectors, searches, kinds)
        moved = nearest_in_set(vectors, means)[1]
        lone = ~vectors.any(axis=1)  # a text without known words has no direction, so it does not move
        moved[lone] = kinds[lone]
        moved = np.unique(moved, return_inverse=True)[1]
        if (moved == kinds).all():
            break
        kinds = moved
    order = np.argsort(-np.bincount(kinds, searches), kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    found: Ints = rank[kinds]
    return found


def _means(vectors: Vectors, searches: Floats, kinds: Ints) -> Vectors:
    """Return the mean vector of each kind, of unit length or zero."""
    sums = np.zeros((int(kinds.max()) + 1, vectors.shape[1]))
    for start in range(0, len(vectors), ROWS_PER_BLOCK):
        block = slice(start, start + ROWS_PER_BLOCK)
        np.add.at(sums, kinds[block], vectors[block] * searches[block, None])
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    found: Vectors = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0).astype(np.float32)
    return found


@dataclass(frozen=True)
class KindTotals:
    """Totals of each kind, shape (kinds,).

    Attributes:
        searches: number of searches.
        signals: number of searches with a failure signal.
        labelled: number of labelled queries.
    """

    searches: Floats
    signals: Floats
    labelled: Floats

    @property
    def uncertainty(self) -> Floats:
        """Assumed variance of the difference between systems, relative to that of a kind without failure signals."""
        found: Floats = 1 + self.signals / self.searches
        return found

    def gains(self, labelled: Floats) -> Floats:
        """Return by how much one more label in each kind reduces the variance of the mean over searches.

        Args:
            labelled: shape (kinds,), number of labelled queries per kind.
        """
        share = self.searches / self.searches.sum()
        found: Floats = share**2 * self.uncertainty / ((labelled + 1) * (labelled + 2))
        return found


@dataclass(frozen=True)
class ChosenQuery:
    """A query to label next: its row, and by how much its label reduces the variance of the mean over searches."""

    row: int
    gain: float


def choose_queries(
    vectors: Vectors, kinds: Ints, searches: Floats, signals: Floats, totals: KindTotals, closest: Floats, count: int
) -> tuple[ChosenQuery, ...]:
    """Return the queries to label next, in the order of choice; fewer than `count` if no other query is left.

    Args:
        vectors: shape (queries, dims), of unit length or zero.
        kinds: shape (queries,), the kind of each query.
        searches, signals: shape (queries,), number of searches of each query, and of those with a failure signal.
        totals: totals of the kinds.
        closest: shape (queries,), the highest cosine of each query with a labelled query.
        count: number of queries to choose.
    """
    free = closest < SAME_QUESTION
    labelled = totals.labelled.astype(np.float64)
    chosen: list[ChosenQuery] = []
    while len(chosen) < count and free.any():
        gains = np.where(np.bincount(kinds[free], minlength=len(labelled)) > 0, totals.gains(labelled), -1.0)
        kind = int(gains.argmax())
        rows = np.flatnonzero(free & (kinds == kind))
        row = int(rows[(searches[rows] + signals[rows]).argmax()])
        chosen.append(ChosenQuery(row, float(gains[kind])))
        labelled[kind] += 1
        free &= vectors @ vectors[row] < SAME_QUESTION
        free[row] = False
    return tuple(chosen)
