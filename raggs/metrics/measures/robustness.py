from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Measure, Parameter, parameters
from raggs.metrics.measures.parameters import FLAG, REL
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
