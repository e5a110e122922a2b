from __future__ import annotations

import numpy as np

from raggs.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Linear, parameters
from raggs.metrics.measures.parameters import REL


class Recall(Linear):
    """Share of the relevant passages that are in the top k."""

    NAME = "recall"
    FORMULA = "|rel and the top k| / |rel|"
    SOURCE = "trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    ALIASES = ("r", "retrieval-recall-at-k")

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Shape (queries,): all relevant passages."""
        return w.number_of(hits.qrels, table)


class Precision(Linear):
    """Share of the k places that hold a relevant passage."""

    NAME = "precision"
    FORMULA = "|rel and the top k| / k"
    SOURCE = "trec_eval"
    FIXED = True
    PARAMS = parameters(rel=REL)
    ALIASES = ("p",)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """k for every query, also where fewer were retrieved."""
        return np.full(len(hits.length), float(self.cutoff))


class F1(Linear):
    """Harmonic mean of precision@k and recall@k."""

    NAME = "f1"
    FORMULA = "2 |rel and the top k| / (k + |rel|)"
    SOURCE = "van Rijsbergen 1979"
    PARAMS = parameters(rel=REL)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Shape (queries,): the mean of k and the relevant passages."""
        return (self.cutoff + w.number_of(hits.qrels, table)) / 2.0
