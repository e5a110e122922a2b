from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Measure


class ExpectedReciprocalRank(Measure):
    """Expected reciprocal rank: of the passage at which a reader stops, more likely the better the passage is."""

    NAME = "err"
    FORMULA = "sum over the top k of R(rank) / rank * product of (1 - R) above it; R = (2^gain - 1) / 2^largest gain"
    SOURCE = "Chapelle et al. 2009; gdeval"
    CUTOFF = "possible"
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Return the expected reciprocal rank, shape (queries,)."""
        gains = np.array(hits.qrels.scale.gains)
        stop = hits.weigh(np.exp2(gains - gains.max()) - np.exp2(-gains.max())) * (hits.rank <= self.cutoff)
        going_on, total = np.ones(len(hits.length)), np.zeros(len(hits.length))
        for rows in w.by_place(hits):  # one judged passage of each query at a time, the best placed first
            query = hits.query[rows]
            total[query] += going_on[query] * stop[rows] / hits.rank[rows]
            going_on[query] *= 1.0 - stop[rows]
        return total
