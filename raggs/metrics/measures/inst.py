from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Measure, Parameter, parameters

DEPTH = 1000  # places that a reader may look at, as in cwl_eval
BLOCK = 1000  # queries at a time: DEPTH * BLOCK numbers are 8 MB


class Inst(Measure):
    """Gain per passage of a reader who wants a gain of T: the more is missing, the more passages the reader sees.

    Gains are (grade - min_rel) / (max_rel - min_rel), cut to 0 to 1; unjudged passages gain 0.
    """

    NAME = "inst"
    FORMULA = "sum w(i) gain(i) / sum w(i), w(i+1) = w(i) ((i + T + t - 1) / (i + T + t))^2, t = T - gain so far"
    SOURCE = "Moffat et al. 2015; cwl_eval"
    CUTOFF = "possible"
    PARAMS = parameters(
        t=Parameter(1.0, 0.5, 1e6), min_rel=Parameter(None, -1e9, 1e9, True), max_rel=Parameter(None, -1e9, 1e9, True)
    )
    FIRST = "t"
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Return the expected gain per passage, shape (queries,). Memory: 8 MB for each of a few work arrays."""
        low = self.params.get("min_rel", hits.qrels.scale.low)
        high = self.params.get("max_rel", hits.qrels.scale.high)
        span = max(high - low, 1.0)
        gain = np.clip((hits.grade - low) / span, 0.0, 1.0)
        rows = np.flatnonzero(hits.rank <= min(DEPTH, self.cutoff))
        query, rank = hits.query[rows], hits.rank[rows]
        found = np.zeros(len(hits.length))
        place, wanted = np.arange(1, DEPTH + 1), self["t"]
        for first in range(0, len(found), BLOCK):
            mine = (query >= first) & (query < first + BLOCK)
            gains = np.zeros((min(BLOCK, len(found) - first), DEPTH))
            gains[query[mine] - first, rank[mine] - 1] = gain[rows[mine]]
            reach = place + 2.0 * wanted - np.cumsum(gains, axis=1)
            going_on = ((reach - 1.0) / reach) ** 2
            weight = np.concatenate([np.ones((len(gains), 1)), np.cumprod(going_on[:, :-1], axis=1)], axis=1)
            found[first : first + len(gains)] = (weight * gains).sum(axis=1) / weight.sum(axis=1)
        return found
