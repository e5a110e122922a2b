from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Measure, Parameter, parameters
from raggs.metrics.measures.parameters import REL

ROUNDING = 0.9  # trec_eval 9 turns a recall into a number of passages by int(recall * R + 0.9)


class InterpolatedPrecision(Measure):
    """Interpolated precision at a recall: the largest precision from there on; write ``iprec@0.5``."""

    NAME = "iprec"
    FORMULA = "max of precision@rank over the ranks from which recall >= r on; 0 if the list does not reach r"
    SOURCE = "iprec_at_recall of trec_eval 9"
    CUTOFF = "possible"
    AT = "recall"
    PARAMS = parameters(recall=Parameter(None, 0, 1), rel=REL)
    ALIASES = ("iprec_at_recall",)
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Return the interpolated precision at the recall `recall`, shape (queries,)."""
        table = self.table(hits.qrels)
        relevant = w.number_of(hits.qrels, table)
        rows = np.flatnonzero(hits.weigh(table) > 0)
        query, rank = hits.query[rows], hits.rank[rows]
        order = np.lexsort((rank, query))
        query, rank = query[order], rank[order]
        found = np.arange(len(query)) - np.searchsorted(query, query) + 1
        needed = np.floor(self["recall"] * relevant + ROUNDING)
        reached = found >= needed[query]
        best = np.zeros(len(hits.length))
        np.maximum.at(best, query[reached], (found / rank)[reached])
        return best
