from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits, per_query
from raggs.metrics.measure import Measure, parameters
from raggs.metrics.measures.parameters import REL

EPSILON = 0.00001  # of trec_eval


class InferredAp(Measure):
    """Average precision inferred from a pool judged in part: grade -1 means pooled but unjudged.

    Passages of the pool that are not judged are taken to be relevant as often as those that are. Passages outside of
    the pool are taken not to be relevant.
    """

    NAME = "infap"
    FORMULA = "1/|rel| sum over relevant: 1/i + (i-1)/i * pooled above/(i-1) * (rel above + e)/(judged above + 2e)"
    SOURCE = "Yilmaz and Aslam 2006; infAP of trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Return the inferred average precision, shape (queries,); 0 if no passage is relevant."""
        table = self.table(hits.qrels)
        order = np.lexsort((hits.rank, hits.query))
        query, rank = hits.query[order], hits.rank[order].astype(np.float64)
        good = hits.weigh(table)[order] > 0
        first = np.searchsorted(query, query)
        judged = np.arange(len(query)) - first  # above each row
        relevant = np.concatenate([[0], np.cumsum(good)])
        above = relevant[:-1] - relevant[first]
        pooled = judged + (0 if hits.pooled is None else hits.pooled[order])
        share = (above + EPSILON) / (judged + 2.0 * EPSILON)
        worth = np.where(rank > 1, 1.0 / rank + pooled / rank * share, 1.0)
        counted = np.where(good & (rank <= self.cutoff), worth, 0.0)
        return w.ratio(per_query(hits, query, counted), w.number_of(hits.qrels, table), 0.0)
