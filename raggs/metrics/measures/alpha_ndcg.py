from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits, per_query
from raggs.metrics.measures.faceted import Diverse


class AlphaNdcg(Diverse):
    """As ndcg, where a facet gains less each time that it is seen; an order, unlike ra_nwg_novel's set."""

    NAME = "alpha_ndcg"
    FORMULA = "sum (1 - alpha)^s / log2(rank + 1) over relevant passages, s of whose facet stand above / its best"
    SOURCE = "Clarke et al. 2008"

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): discounted gains of the top k over those of the best order; 0 where none is relevant."""
        shown = hits.total(self.gains(hits) * w.worth_at(hits, self.cutoff, w.logarithmic))
        query, gain = self.possible(hits)
        rank = np.arange(len(query)) - np.searchsorted(query, query) + 1
        worth = np.where(rank <= self.cutoff, w.logarithmic(rank.astype(np.float64)), 0.0)
        return w.ratio(shown, per_query(hits, query, gain * worth), 0.0)
