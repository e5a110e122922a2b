from __future__ import annotations

from types import MappingProxyType

import numpy as np

from raggs.arrays import Floats
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Measure
from raggs.metrics.measures.sets import Recall

EPSILON = 1e-12  # a recall of 3/10 reaches a delta of 0.3


class Robustness(Measure):
    """Whether recall@k reaches delta; its mean is the share of queries that are served well enough."""

    NAME = "robustness"
    FORMULA = "1 if recall@k >= delta, else 0"
    SOURCE = "Wang et al. 2025, Robustness-delta@K"
    PARAMS = MappingProxyType({"delta": 0.5, "rel": None})
    FIRST = "delta"
    TIES = False

    def score(self, hits: Hits) -> Floats:
        recall = Recall(self.k, {"rel": self["rel"]}).score(hits)
        reached: Floats = (recall >= self["delta"] - EPSILON).astype(np.float64)
        return reached
