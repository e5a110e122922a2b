from __future__ import annotations

import math

import numpy as np

from raggs.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Linear, Parameter, parameters


class Udcg(Linear):
    """Position- and harm-aware companion of ra_nwg: what helps counts up, what distracts counts down."""

    NAME = "udcg"
    FORMULA = "sum u(g) / log2(rank + 1) over the top k / the best such sum; u = b_g for g >= 3, -harm for g <= 2"
    SOURCE = "in the manner of Trappolini et al. 2025"
    RANGE = (-math.inf, 1.0)
    PARAMS = parameters(harm=Parameter(0.33, 0, 10))
    FIRST = "harm"
    GOLDEN = True
    UNDEFINED = math.nan

    def table(self, qrels: Qrels) -> Floats:
        """Shape (grades,): the utility of grades 3 to 5, minus `harm` for grades 1 and 2."""
        return np.where(w.UTILITY > 0, w.UTILITY, -self["harm"])

    def worth(self, ranks: Floats) -> Floats:
        """1 / log2(rank + 1)."""
        return w.logarithmic(ranks)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Shape (queries,): the sum of the best order of the pool."""
        return w.best_sum(table, hits.qrels.counts, self.cutoff, self.worth)
