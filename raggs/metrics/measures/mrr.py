from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics.chances import expected_reciprocal_rank
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Measure, parameters
from raggs.metrics.measures.parameters import REL


class Mrr(Measure):
    """Reciprocal rank of the first relevant passage."""

    NAME = "mrr"
    FORMULA = "1 / rank of the first relevant passage in the top k, 0 without one"
    SOURCE = "Voorhees 1999; trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    ALIASES = ("rr", "recip_rank", "retrieval-mrr")

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): 1 / rank of the first relevant passage in the top k; 0 without one."""
        good = (hits.weigh(self.table(hits.qrels)) > 0) & (hits.rank <= self.cutoff)
        best = np.zeros(len(hits.length))
        np.maximum.at(best, hits.query[good], 1.0 / hits.rank[good])
        return best

    def expected(self, hits: Hits) -> Floats:
        """Shape (queries,): its mean over the places that the first tie with a relevant passage covers."""
        return expected_reciprocal_rank(hits, hits.weigh(self.table(hits.qrels)) > 0, self.cutoff)
