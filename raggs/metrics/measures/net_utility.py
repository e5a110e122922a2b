from __future__ import annotations

import math

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Linear, Parameter, parameters


class NetUtility(Linear):
    """Utility minus a penalty for distracting passages: of the top k as a set, over the best set of k.

    UDCG (Trappolini et al. 2025) weighs utilities and distractors too, with a discount fitted to a language model.
    Source 000 describes it without its formula, and reports that it ranks systems nearly the same without the discount.
    So this is not UDCG, and is not named so.
    """

    NAME = "net_utility"
    FORMULA = "sum u(g) over the top k / the largest such sum; u = b_g for g >= 3, -harm for g <= 2"
    SOURCE = "raggs; utilities b_g of Dallaire 2025, section 2.4"
    RANGE = (-math.inf, 1.0)
    PARAMS = parameters(harm=Parameter(0.33, 0, 10))
    FIRST = "harm"
    GOLDEN = True
    UNDEFINED = math.nan

    def table(self, qrels: Qrels) -> Floats:
        """Return the utility of grades 3 to 5, and minus `harm` for grades 1 and 2, shape (grades,)."""
        return np.where(w.UTILITY > 0, w.UTILITY, -self["harm"])

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return the sum of the best set of k passages of the pool, shape (queries,)."""
        return w.best_sum(table, hits.qrels.counts, self.cutoff)
