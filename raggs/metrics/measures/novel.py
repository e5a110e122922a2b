from __future__ import annotations

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.facets import repeats
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Parameter, parameters
from raggs.metrics.measures.faceted import Faceted
from raggs.metrics.measures.parameters import ALPHA, CAP3, CAP4
from raggs.metrics.measures.ra_nwg import RaNwg


class RaNwgNovel(Faceted, RaNwg):
    """As ra_nwg, where repeated facets count less: those that stand higher in the list already."""

    NAME = "ra_nwg_novel"
    FORMULA = "as ra_nwg, with w(g) times nu for each passage whose facet was seen above it, judged or not"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = parameters(nu=Parameter(0.5, 0, 1), alpha=ALPHA, cap4=CAP4, cap3=CAP3)
    FIRST = "nu"

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): ra_nwg with repeated facets at nu of their weight; no facet repeats none."""
        worth = w.worth_at(hits, self.cutoff, w.flat) * np.where(repeats(hits), self["nu"], 1.0)
        return self._of(hits, worth)
