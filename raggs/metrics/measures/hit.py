from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.chances import none_within
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Linear, Measure, parameters
from raggs.metrics.measures.parameters import REL


class Hit(Measure):
    """Whether any relevant passage is in the top k."""

    NAME = "hit"
    FORMULA = "1 if rel and the top k meet, else 0"
    SOURCE = "success@k of trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    ALIASES = ("success", "retrieval-hit-at-k")

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): 1 where the top k holds a relevant passage, else 0."""
        found = hits.total(hits.weigh(self.table(hits.qrels)) * (hits.rank <= self.cutoff))
        return (found > 0).astype(np.float64)

    def expected(self, hits: Hits) -> Floats:
        """Shape (queries,): the chance that not all k places go to others."""
        return 1.0 - none_within(hits, hits.weigh(self.table(hits.qrels)) > 0, self.cutoff)


class Found(Linear):
    """How many relevant passages are in the top k."""

    NAME = "hits"
    FORMULA = "|rel and the top k|"
    SOURCE = "McSherry and Najork 2008"
    FIXED = True
    RANGE = (0.0, float("inf"))
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """1: hits are counted, not shared out."""
        return w.flat(hits.length.astype(np.float64))
