from __future__ import annotations

import numpy as np

from raggs.arrays import Flags, Floats, Ints
from raggs.errors import DataError
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Parameter, parameters
from raggs.metrics.measures.parameters import ALPHA, CAP3, CAP4
from raggs.metrics.measures.ra_nwg import RaNwg


class RaNwgNovel(RaNwg):
    """As ra_nwg, where repeated facets count less: those that stand higher in the list already."""

    NAME = "ra_nwg_novel"
    FORMULA = "as ra_nwg, with w(g) times nu for each passage whose facet was seen above it"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = parameters(nu=Parameter(0.5, 0, 1), alpha=ALPHA, cap4=CAP4, cap3=CAP3)
    FIRST = "nu"
    TIES = False

    def check(self, hits: Hits) -> None:
        """As every measure, and that the facets of passages are known.

        Raises:
            DataError: they are not.
        """
        super().check(hits)
        if hits.facet is None:
            raise DataError(
                "ra_nwg_novel needs the facet or source of each passage",
                remedy="give --facets FILE, or evaluate(..., facets={doc_id: facet})",
            )

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): ra_nwg with repeated facets at nu of their weight; no facet repeats none."""
        facet = np.full(len(hits.qrels.query), -1) if hits.facet is None else hits.facet
        worth = w.worth_at(hits, self.cutoff, w.flat) * np.where(_repeats(hits, facet[hits.item]), self["nu"], 1.0)
        return self._of(hits, worth)


def _repeats(hits: Hits, facet: Ints) -> Flags:
    """Which rows have a facet that stands above them in their list."""
    order = np.lexsort((hits.rank, facet, hits.query))
    query, mine = hits.query[order], facet[order]
    again = np.zeros(len(order), dtype=bool)
    again[1:] = (query[1:] == query[:-1]) & (mine[1:] == mine[:-1]) & (mine[1:] >= 0)
    found = np.empty(len(order), dtype=bool)
    found[order] = again
    return found
