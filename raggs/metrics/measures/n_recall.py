from __future__ import annotations

import math

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Linear


class NRecall4(Linear):
    """Recall of grades 4 and 5: of the passages that could stand in the top k, the share that do."""

    NAME = "n_recall4"
    FORMULA = "#{top k with g >= 4} / min(k, n4 + n5)"
    SOURCE = "Dallaire 2025, section 2.4"
    GOLDEN = True
    UNDEFINED = math.nan
    LOWEST = 4

    def table(self, qrels: Qrels) -> Floats:
        """Shape (grades,): 1 from the lowest grade that counts."""
        return w.at_least(qrels, self.LOWEST)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Shape (queries,): how many of them could stand in the top k."""
        return np.minimum(self.cutoff, w.number_of(hits.qrels, table))


class NRecall5(NRecall4):
    """Recall of grade 5: of the passages that could stand in the top k, the share that do."""

    NAME = "n_recall5"
    FORMULA = "#{top k with g = 5} / min(k, n5)"
    LOWEST = 5
