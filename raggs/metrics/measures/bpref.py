from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits, per_query
from raggs.metrics.measure import Measure, parameters
from raggs.metrics.measures.parameters import REL


class Bpref(Measure):
    """How seldom passages judged not relevant stand above others: above relevant ones; unjudged ones do not count."""

    NAME = "bpref"
    FORMULA = "1/R sum over retrieved relevant passages of 1 - min(judged others above, R) / min(R, judged others)"
    SOURCE = "Buckley and Voorhees 2004; trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): a relevant passage loses by judged others above it; 0 where none is relevant."""
        table = self.table(hits.qrels)
        relevant, judged = w.number_of(hits.qrels, table), hits.qrels.counts.sum(axis=1)
        order = np.lexsort((hits.rank, hits.query))
        query, good = hits.query[order], hits.weigh(table)[order] > 0
        others = np.cumsum(~good)
        before = np.concatenate([[0], others])[np.searchsorted(query, query)]
        above = np.minimum(others - before, relevant[query])
        cost = w.ratio(above, np.minimum(relevant, judged - relevant)[query], 0.0)
        worth = np.where(good & (hits.rank[order] <= self.cutoff), 1.0 - cost, 0.0)
        return w.ratio(per_query(hits, query, worth), relevant, 0.0)
