from __future__ import annotations

import math

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Linear, parameters
from raggs.metrics.measures.parameters import ALPHA, CAP3, CAP4


class RaNwg(Linear):
    """Rarity-aware weighted gain of the top k: as a set, over the best possible set of k."""

    NAME = "ra_nwg"
    FORMULA = (
        "sum w(g) over the top k / sum of the k largest w in the pool; w5=1, w4=min(r4/r5, cap4), w3=min(r3/r5, cap3)"
    )
    SOURCE = "Dallaire 2025, section 2.4"
    PARAMS = parameters(alpha=ALPHA, cap4=CAP4, cap3=CAP3)
    GOLDEN = True
    UNDEFINED = math.nan

    def table(self, qrels: Qrels) -> Floats:
        """Shape (queries, grades): the rarer a grade among the query's labels, the more it weighs, up to its cap."""
        return w.rarity(qrels.counts, self["alpha"], self["cap4"], self["cap3"])

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Shape (queries,): the k largest weights of the pool."""
        return w.best_sum(table, hits.qrels.counts, self.cutoff)
