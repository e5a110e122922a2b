"""Ceilings of a system's own pool, and what ties at the pool's end do to them.

The pool is the system's top P. Where a tie group crosses its end, each draw of the group into the pool is equally
likely; the draws differ only in how many passages of each grade they take, so these few outcomes are enumerated.
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

EPSILON = 1e-12  # a recall of 3/10 reaches a delta of 0.3


class Robustness(Measure):
    """Whether recall@k reaches delta; its mean is the share of queries that are served well enough.

    Where the truth is a list of nearest passages, as of an index, the source divides by k: `by_k=1`.
    """

    NAME = "robustness"
    FORMULA = "1 if recall@k >= delta, else 0"
    SOURCE = "Wang et al. 2025, Robustness-delta@K"
    PARAMS = parameters(delta=Parameter(0.5, 0, 1), by_k=FLAG, rel=REL)
    FIRST = "delta"
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): 1 where recall@k reaches delta, rounding aside, else 0."""
        share = Precision if self.params.get("by_k") else Recall
        recall = share(self.k, {name: value for name, value in self.params.items() if name == "rel"}).score(hits)
        reached: Floats = (recall >= self["delta"] - EPSILON).astype(np.float64)
        return reached


class CeilingShares(NamedTuple):
    """Of the top k's weight in the pool's ceiling, each of shape (queries,): mean over ties, least and largest."""

    mean: Floats
    least: Floats
    most: Floats


def pool_counts(hits: Hits, depth: int) -> Ints:
    """Shape (queries, grades): how many passages of each grade the top `depth` holds."""
    return _counts(hits, np.flatnonzero(hits.rank <= depth))


def expected_best(hits: Hits, table: Floats, k: int, depth: int) -> Floats:
    """Shape (queries,): the mean weight of the best k of the pool, over ties at its end."""
    total = w.best_sum(table, _counts(hits, np.flatnonzero(hits.start + hits.size <= depth)), k)
    for query, (chances, counts, _, _) in _pool_outcomes(hits, table, depth).items():
        total[query] = chances @ w.best_sum(_row(table, query), counts, k)
    return total


def ceiling_shares(hits: Hits, table: Floats, k: int, depth: int) -> CeilingShares:
    """How much of the best k of the pool the top k holds; NaN where the pool holds nothing of use.

    Args:
        hits: the run.
        table: weights, >= 0.
        k: the cutoff, at most `depth`.
        depth: the pool.
    """
    weight = hits.weigh(table)
    crossing = _crosses(hits, depth)
    inside = np.where(crossing, 0.0, weight)  # the crossing group is added for each outcome
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
    """The ways to fill the pool: their chances, the pool's counts, those of the drawn, and the group's place."""

    chances: Floats
    counts: Ints
    drawn: Ints
    place: tuple[int, int]  # passages above the group, positions within the pool


def _crosses(hits: Hits, depth: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return (hits.start < depth) & (hits.start + hits.size > depth)


def _pool_outcomes(hits: Hits, table: Floats, depth: int) -> dict[int, _Outcome]:
    """The outcomes of each query with a tie group across the end of the pool; what weighs nothing is not told apart."""
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
    """Chances and grade counts of all ways to draw `slots` of `size` passages, `held` of them judged."""
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
    """What the best k passages of the system's own pool would score."""

    @property
    def depth(self) -> int:
        """The pool; never less than k, so that the ceiling lies above the score."""
        return max(int(self["pool"]), self.cutoff)

    def score(self, hits: Hits) -> Floats:
        table = self.table(hits.qrels)
        return self._normed(hits, w.best_sum(table, pool_counts(hits, self.depth), self.cutoff))

    def expected(self, hits: Hits) -> Floats:
        return self._normed(hits, expected_best(hits, self.table(hits.qrels), self.cutoff, self.depth))

    def _normed(self, hits: Hits, best: Floats) -> Floats:
        return w.ratio(best, self.norm(hits, self.table(hits.qrels)), math.nan)


class _Share(_Ceiling):
    """Share of its own ceiling that the system's top k reaches."""

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
    """Ceiling of ra_nwg: what the best k passages of the system's own pool would score."""

    NAME = "proc_ra_nwg"
    FORMULA = "ra_nwg of the best k passages among the system's top P = pool"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = parameters(pool=POOL, alpha=ALPHA, cap4=CAP4, cap3=CAP3)
    FIRST = "pool"


class ProcNRecall4(_Ceiling, NRecall4):
    """Ceiling of n_recall4: what the best k passages of the system's own pool would score."""

    NAME = "proc_n_recall4"
    FORMULA = "n_recall4 of the best k passages among the system's top P = pool"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = parameters(pool=POOL)
    FIRST = "pool"


class ProcNRecall5(_Ceiling, NRecall5):
    """Ceiling of n_recall5: what the best k passages of the system's own pool would score."""

    NAME = "proc_n_recall5"
    FORMULA = "n_recall5 of the best k passages among the system's top P = pool"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = ProcNRecall4.PARAMS
    FIRST = "pool"


class PctProcRaNwg(_Share, RaNwg):
    """Share of its own ceiling that ra_nwg reaches: a low one says that the order can be mended."""

    NAME = "pct_proc_ra_nwg"
    FORMULA = "ra_nwg@k / proc_ra_nwg@k; not defined where the pool holds nothing of use"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = ProcRaNwg.PARAMS
    FIRST = "pool"


class PctProcNRecall4(_Share, NRecall4):
    """Share of its own ceiling that n_recall4 reaches: a low one says that the order can be mended."""

    NAME = "pct_proc_n_recall4"
    FORMULA = "n_recall4@k / proc_n_recall4@k; not defined where the pool holds nothing of use"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = ProcNRecall4.PARAMS
    FIRST = "pool"


class PctProcNRecall5(_Share, NRecall5):
    """Share of its own ceiling that n_recall5 reaches: a low one says that the order can be mended."""

    NAME = "pct_proc_n_recall5"
    FORMULA = "n_recall5@k / proc_n_recall5@k; not defined where the pool holds nothing of use"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = ProcNRecall5.PARAMS
    FIRST = "pool"
