from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Measure, Parameter, parameters


class Compatibility(Measure):
    """Rank-biased overlap with the most similar ideal list: all passages with a gain, by descending grade.

    `normalize=0` leaves the value as it is where the ideal list is short, so that its own value is below 1.
    """

    NAME = "compat"
    FORMULA = "RBO(list, ideal) / RBO(ideal, ideal), with weight p^(depth - 1) on the overlap at each depth"
    SOURCE = "Clarke, Vtyurina and Smucker 2021"
    CUTOFF = "possible"
    PARAMS = parameters(p=Parameter(0.95, 0.01, 0.9999), normalize=Parameter(1.0, 0, 1, True))
    FIRST = "p"
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Return the overlap with the ideal list, shape (queries,); 0 if no passage has a gain."""
        qrels, gains = hits.qrels, np.array(hits.qrels.scale.gains)
        useful = np.where(gains > 0, qrels.counts, 0)
        ideal = useful.sum(axis=1)
        depth = np.maximum(np.minimum(hits.length, self.cutoff), ideal)
        places = np.arange(1, int(depth.max(initial=0)) + 1, dtype=np.float64)
        bias = self["p"] ** (places - 1.0)
        summed, weight = np.append(0.0, np.cumsum(bias / places)), np.append(0.0, np.cumsum(bias))

        rows = np.flatnonzero((hits.weigh(gains) > 0) & (hits.rank <= self.cutoff))
        order = rows[np.lexsort((hits.rank[rows], -hits.grade[rows], hits.query[rows]))]
        query, column = hits.query[order], hits.grade[order] - qrels.scale.low
        better = np.cumsum(useful[:, ::-1], axis=1)[:, ::-1] - useful  # passages of a higher grade, by query and grade
        group = query * qrels.scale.size + (qrels.scale.size - column)  # ascending in this order
        within = np.arange(len(order)) - np.searchsorted(group, group)
        meets = np.maximum(hits.rank[order], better[query, column] + within + 1)
        overlap = np.bincount(query, weights=summed[depth[query]] - summed[meets - 1], minlength=len(depth))
        if not self["normalize"]:
            return w.ratio(overlap, weight[depth], 0.0)
        # each ideal passage overlaps with itself from its own place on
        before = np.append(0.0, np.cumsum(summed[:-1]))
        return w.ratio(overlap, ideal * summed[depth] - before[ideal], 0.0)
