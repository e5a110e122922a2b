"""Ceilings: the best value that another order of a system's own first passages could reach.

In this module, the pool is the top P of the system, not the judged pool of the query. If a tie group crosses the end of
the pool, only some of its passages are in the pool, and each choice of them is equally likely. Choices with the same
number of passages of each grade are equivalent, so there are few different outcomes, and all are enumerated.
"""

from __future__ import annotations

import math
from itertools import product
from typing import NamedTuple

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits
from raggs.metrics.measure import ALPHA, CAP3, CAP4, FLAG, POOL, REL, Linear, Measure, Parameter, parameters
from raggs.metrics.measures.gains import NRecall4, NRecall5, RaNwg
from raggs.metrics.measures.sets import Precision, Recall

EPSILON = 1e-12  # tolerance for rounding, so that a recall of 3/10 reaches a delta of 0.3


class Robustness(Measure):
    """Whether recall@k reaches delta; the mean is the share of queries with sufficient recall.

    To test a vector index against the exact nearest passages, set `by_k=1`. The number of relevant passages in the top
    k is then divided by k, as in the source.
    """

    NAME = "robustness"
    FORMULA = "1 if recall@k >= delta, else 0"
    SOURCE = "Wang et al. 2025, Robustness-delta@K"
    PARAMS = parameters(delta=Parameter(0.5, 0, 1), by_k=FLAG, rel=REL)
    FIRST = "delta"
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Return 1 if recall@k reaches delta (up to rounding), else 0; shape (queries,)."""
        share = Precision if self.params.get("by_k") else Recall
        recall = share(self.k, {name: value for name, value in self.params.items() if name == "rel"}).score(hits)
        reached: Floats = (recall >= self["delta"] - EPSILON).astype(np.float64)
        return reached


class CeilingShares(NamedTuple):
    """Share of the pool's ceiling that the top k reaches: its mean, minimum and maximum over ties, shape (queries,)
    each.
    """

    mean: Floats
    least: Floats
    most: Floats


def pool_counts(hits: Hits, depth: int) -> Ints:
    """Return the number of passages of each grade in the top `depth`, shape (queries, grades)."""
    return _counts(hits, np.flatnonzero(hits.rank <= depth))


def expected_best(hits: Hits, table: Floats, k: int, depth: int) -> Floats:
    """Return the weight of the best k passages of the pool, averaged over ties at the end of the pool, shape
    (queries,).
    """
    total = w.best_sum(table, _counts(hits, np.flatnonzero(hits.start + hits.size <= depth)), k)
    for query, (chances, counts, _, _) in _pool_outcomes(hits, table, depth).items():
        total[query] = chances @ w.best_sum(_row(table, query), counts, k)
    return total


def ceiling_shares(hits: Hits, table: Floats, k: int, depth: int) -> CeilingShares:
    """Divide the weight of the top k by the largest weight of any k passages of the pool.

    The result is NaN if no passage of the pool has a weight above 0.

    Args:
        hits: the run.
        table: weights, >= 0.
        k: the cutoff, at most `depth`.
        depth: size of the pool.
    """
    weight = hits.weigh(table)
    crossing = _crosses(hits, depth)
    inside = np.where(crossing, 0.0, weight)  # the tie group that crosses the end is added below, for each outcome
    ceiling = w.best_sum(table, _counts(hits, np.flatnonzero(hits.start + hits.size <= depth)), k)
    bases = [hits.total(inside * w.mean_worth(hits, k, w.flat))]
    for sign in (-1.0, 1.0):
        arranged = hits.arranged(sign * inside)
        bases.append(arranged.total(arranged.weigh(table) * ~_crosses(arranged, depth) * (arranged.rank <= k)))
    found = [w.ratio(base, ceiling, math.nan) for base in bases]
    for query, (chances, counts, drawn, (start, slots)) in _pool_outcomes(hits, table, depth).items():
        row, shown = _row(table, query), min(max(k - start, 0), slots)
        held = (drawn * row).sum(axis=1)
        parts = (held * shown / slots, held - w.best_sum(row, drawn, slots - shown), w.best_sum(row, drawn, shown))
        best = w.best_sum(row, counts, k)
        defined = best > 0
        for values, base, part, pick in zip(found, bases, parts, (None, np.min, np.max), strict=True):
            of_each = (base[query] + part[defined]) / best[defined]
            if not defined.any():
                values[query] = math.nan
            elif pick is None:
                values[query] = chances[defined] @ of_each / chances[defined].sum()
            else:
                values[query] = pick(of_each)
    return CeilingShares(*found)


class _Outcome(NamedTuple):
    """The outcomes for one query whose last tie group is partly in the pool, one row per outcome.

    `chances`: probability. `counts`: passages of each grade in the pool. `drawn`: of these, the passages from the
    group.
    """

    chances: Floats
    counts: Ints
    drawn: Ints
    place: tuple[int, int]  # number of passages above the group, and number of the group's ranks within the pool


def _crosses(hits: Hits, depth: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return (hits.start < depth) & (hits.start + hits.size > depth)


def _pool_outcomes(hits: Hits, table: Floats, depth: int) -> dict[int, _Outcome]:
    """Return the outcomes of each query with a tie group across the end of the pool.

    Outcomes that differ only in passages of weight 0 are merged.
    """
    rows = np.flatnonzero(_crosses(hits, depth))
    within = _counts(hits, np.flatnonzero(hits.start + hits.size <= depth))
    tied = _counts(hits, rows)
    found = {}
    for query in np.unique(hits.query[rows]).tolist():
        first = rows[np.searchsorted(hits.query[rows], query)]
        start, size = int(hits.start[first]), int(hits.size[first])
        held = np.where(_row(table, query) > 0, tied[query], 0)
        chances, drawn = _draw_outcomes(held.tolist(), size, depth - start)
        found[query] = _Outcome(chances, within[query] + drawn, drawn, (start, depth - start))
    return found


def _draw_outcomes(held: list[int], size: int, slots: int) -> tuple[Floats, Ints]:
    """Return the probabilities and grade counts of all ways to draw `slots` of `size` passages.

    `held` is the number of judged passages of each grade among the `size` passages.
    """
    rest = size - sum(held)
    ways = [
        taken for taken in product(*(range(min(count, slots) + 1) for count in held)) if 0 <= slots - sum(taken) <= rest
    ]
    total = math.comb(size, slots)
    chances = [math.prod(map(math.comb, held, taken)) * math.comb(rest, slots - sum(taken)) / total for taken in ways]
    return np.array(chances), np.array(ways, dtype=np.int64)


def _counts(hits: Hits, rows: Ints) -> Ints:
    return hits.qrels.counted(hits.item[rows])


def _row(table: Floats, query: int) -> Floats:
    return table[query] if table.ndim > 1 else table


class _Ceiling(Linear):
    """Value of a measure for the best k passages of the system's own pool."""

    @property
    def depth(self) -> int:
        """Size of the pool; at least k, so that the ceiling is never below the score."""
        return max(int(self["pool"]), self.cutoff)

    def score(self, hits: Hits) -> Floats:
        table = self.table(hits.qrels)
        return self._normed(hits, w.best_sum(table, pool_counts(hits, self.depth), self.cutoff))

    def expected(self, hits: Hits) -> Floats:
        return self._normed(hits, expected_best(hits, self.table(hits.qrels), self.cutoff, self.depth))

    def _normed(self, hits: Hits, best: Floats) -> Floats:
        return w.ratio(best, self.norm(hits, self.table(hits.qrels)), math.nan)


class _Share(_Ceiling):
    """Share of the pool's ceiling that the system's top k reaches."""

    def score(self, hits: Hits) -> Floats:
        shown = hits.total(hits.weigh(self.table(hits.qrels)) * (hits.rank <= self.cutoff))
        best = w.best_sum(self.table(hits.qrels), pool_counts(hits, self.depth), self.cutoff)
        return self._defined(hits, w.ratio(shown, best, math.nan))

    def expected(self, hits: Hits) -> Floats:
        return self._defined(hits, self._shares(hits).mean)

    def extreme(self, hits: Hits, most: bool) -> Floats:
        found = self._shares(hits)
        return self._defined(hits, found.most if most else found.least)

    def _shares(self, hits: Hits) -> CeilingShares:
        return ceiling_shares(hits, self.table(hits.qrels), self.cutoff, self.depth)

    def _defined(self, hits: Hits, values: Floats) -> Floats:
        defined = self.norm(hits, self.table(hits.qrels)) > 0
        return np.where(defined & (hits.length == 0), 0.0, values)


class ProcRaNwg(_Ceiling, RaNwg):
    """Ceiling of ra_nwg: the value of ra_nwg for the best k of the system's first passages (50 by default)."""

    NAME = "proc_ra_nwg"
    FORMULA = "ra_nwg of the best k passages among the system's top P, P = max(pool, k)"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = parameters(pool=POOL, alpha=ALPHA, cap4=CAP4, cap3=CAP3)
    FIRST = "pool"


class ProcNRecall4(_Ceiling, NRecall4):
    """Ceiling of n_recall4: the value of n_recall4 for the best k of the system's first passages (50 by default)."""

    NAME = "proc_n_recall4"
    FORMULA = "n_recall4 of the best k passages among the system's top P, P = max(pool, k)"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = parameters(pool=POOL)
    FIRST = "pool"


class ProcNRecall5(_Ceiling, NRecall5):
    """Ceiling of n_recall5: the value of n_recall5 for the best k of the system's first passages (50 by default)."""

    NAME = "proc_n_recall5"
    FORMULA = "n_recall5 of the best k passages among the system's top P, P = max(pool, k)"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = ProcNRecall4.PARAMS
    FIRST = "pool"


class PctProcRaNwg(_Share, RaNwg):
    """Share of its ceiling that ra_nwg reaches; a low share means that a better order would help."""

    NAME = "pct_proc_ra_nwg"
    FORMULA = "ra_nwg@k / proc_ra_nwg@k; 0 for an empty list"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = ProcRaNwg.PARAMS
    FIRST = "pool"


class PctProcNRecall4(_Share, NRecall4):
    """Share of its ceiling that n_recall4 reaches; a low share means that a better order would help."""

    NAME = "pct_proc_n_recall4"
    FORMULA = "n_recall4@k / proc_n_recall4@k; 0 for an empty list"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = ProcNRecall4.PARAMS
    FIRST = "pool"


class PctProcNRecall5(_Share, NRecall5):
    """Share of its ceiling that n_recall5 reaches; a low share means that a better order would help."""

    NAME = "pct_proc_n_recall5"
    FORMULA = "n_recall5@k / proc_n_recall5@k; 0 for an empty list"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = ProcNRecall5.PARAMS
    FIRST = "pool"
