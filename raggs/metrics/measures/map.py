from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.chances import expected_precision_sum
from raggs.metrics.hits import Hits, per_query
from raggs.metrics.measure import Measure, parameters
from raggs.metrics.measures.parameters import REL


class Map(Measure):
    """Average precision over the relevant passages."""

    NAME = "map"
    FORMULA = "sum of precision@rank over relevant passages in the top k / |rel|"
    SOURCE = "trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    ALIASES = ("ap",)

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): the precision at each relevant rank up to k, summed, over all relevant passages."""
        good = np.flatnonzero((hits.weigh(self.table(hits.qrels)) > 0) & (hits.rank <= self.cutoff))
        query, rank = hits.query[good], hits.rank[good]
        order = np.lexsort((rank, query))
        query, rank = query[order], rank[order]
        seen = np.arange(len(query)) - np.searchsorted(query, query) + 1
        total = per_query(hits, query, seen / rank)
        return w.ratio(total, w.number_of(hits.qrels, self.table(hits.qrels)), 0.0)

    def expected(self, hits: Hits) -> Floats:
        """Shape (queries,): its mean over all orders of tied passages, in closed form (McSherry and Najork 2008)."""
        table = self.table(hits.qrels)
        total = expected_precision_sum(hits, hits.weigh(table) > 0, self.cutoff)
        return w.ratio(total, w.number_of(hits.qrels, table), 0.0)
