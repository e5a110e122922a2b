from __future__ import annotations

import math

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import pools
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Linear, parameters
from raggs.metrics.measures.n_recall import NRecall4, NRecall5
from raggs.metrics.measures.parameters import ALPHA, CAP3, CAP4, POOL
from raggs.metrics.measures.ra_nwg import RaNwg


class _Ceiling(Linear):
    """What the best k passages of the system's own pool would score."""

    @property
    def depth(self) -> int:
        """The pool; never less than k, so that the ceiling lies above the score."""
        return max(int(self["pool"]), self.cutoff)

    def score(self, hits: Hits) -> Floats:
        table = self.table(hits.qrels)
        return self._normed(hits, w.best_sum(table, pools.pool_counts(hits, self.depth), self.cutoff))

    def expected(self, hits: Hits) -> Floats:
        return self._normed(hits, pools.expected_best(hits, self.table(hits.qrels), self.cutoff, self.depth))

    def _normed(self, hits: Hits, best: Floats) -> Floats:
        return w.ratio(best, self.norm(hits, self.table(hits.qrels)), math.nan)


class _Share(_Ceiling):
    """Share of its own ceiling that the system's top k reaches."""

    def score(self, hits: Hits) -> Floats:
        shown = hits.total(hits.weigh(self.table(hits.qrels)) * (hits.rank <= self.cutoff))
        best = w.best_sum(self.table(hits.qrels), pools.pool_counts(hits, self.depth), self.cutoff)
        return self._defined(hits, w.ratio(shown, best, math.nan))

    def expected(self, hits: Hits) -> Floats:
        return self._defined(hits, self._shares(hits).mean)

    def extreme(self, hits: Hits, most: bool) -> Floats:
        found = self._shares(hits)
        return self._defined(hits, found.most if most else found.least)

    def _shares(self, hits: Hits) -> pools.Shares:
        return pools.shares(hits, self.table(hits.qrels), self.cutoff, self.depth)

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
