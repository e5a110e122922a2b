from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Parameter, parameters
from raggs.metrics.measures.faceted import ALPHA_SEEN, Diverse
from raggs.metrics.measures.parameters import REL


class Nrbp(Diverse):
    """Novelty- and rank-biased precision: rbp, where a facet gains less each time that it is seen."""

    NAME = "nrbp"
    FORMULA = "(1 - (1 - alpha) beta) / facets * sum beta^(rank - 1) (1 - alpha)^s over relevant passages in the top k"
    SOURCE = "Clarke et al. 2009"
    PARAMS = parameters(alpha=ALPHA_SEEN, beta=Parameter(0.5, 0, 0.9999), rel=REL)

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): the gains under a reader who goes on with beta, over the facets; 0 where there are none."""
        beta, alpha = self["beta"], self["alpha"]
        worth = np.where(hits.rank <= self.cutoff, beta ** (hits.rank - 1.0), 0.0)
        total = (1.0 - (1.0 - alpha) * beta) * hits.total(self.gains(hits) * worth)
        return w.ratio(total, self.facets(hits), 0.0)
