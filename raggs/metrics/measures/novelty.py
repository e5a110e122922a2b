"""What measures of novelty share: they need facets, and what they find under ties is not known."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.base.errors import DataError
from raggs.metrics import weights as w
from raggs.metrics.facets import facets_of, repeats, seen
from raggs.metrics.hits import Hits, per_query
from raggs.metrics.measure import ALPHA, CAP3, CAP4, REL, Measure, Parameter, parameters
from raggs.metrics.measures.gains import RaNwg

ALPHA_SEEN = Parameter(0.5, 0, 1)  # how sure it is that a facet that was seen is known


class Faceted(Measure):
    """A measure of facets."""

    TIES: ClassVar[bool] = False
    FACETS: ClassVar[bool] = True

    def check(self, hits: Hits) -> None:
        """As every measure, and that the facets of passages are known.

        Raises:
            DataError: they are not.
        """
        super().check(hits)
        if hits.facet is None:
            raise DataError(
                f"{self.NAME} needs the facet or source of each passage",
                remedy="give --facets FILE, or evaluate(..., facets={doc_id: facet})",
            )


class Diverse(Faceted):
    """A measure where a relevant passage gains (1 - alpha)^s, s relevant passages of its facet above it.

    A relevant passage without a facet has one of its own.
    """

    CUTOFF = "possible"
    PARAMS = parameters(alpha=ALPHA_SEEN, rel=REL)
    FIRST = "alpha"

    def gains(self, hits: Hits) -> Floats:
        """Shape (n,): what each row gains."""
        good = hits.weigh(self.table(hits.qrels)) > 0
        return np.where(good, self._kept(seen(hits, facets_of(hits), good)), 0.0)

    def possible(self, hits: Hits) -> tuple[Ints, Floats]:
        """Query and gain of each relevant passage when every one is shown, by query and descending gain."""
        query, above = self._relevant(hits)
        gain = self._kept(above)
        best = np.lexsort((-gain, query))
        return query[best], gain[best]

    def facets(self, hits: Hits) -> Ints:
        """Shape (queries,): how many facets the relevant passages of each query have."""
        query, above = self._relevant(hits)
        return np.bincount(query[above == 0], minlength=len(hits.length))

    def _relevant(self, hits: Hits) -> tuple[Ints, Ints]:
        """The query of each relevant passage, and how many of its facet are named before it."""
        qrels = hits.qrels
        rows = np.flatnonzero(qrels.grade >= 0)
        rows = rows[self.table(qrels)[qrels.grade[rows] - qrels.scale.low] > 0]
        query = qrels.query[rows]
        facet = np.full(len(rows), -1) if hits.facet is None else hits.facet[rows]
        order = np.lexsort((facet, query))
        query, facet = query[order], facet[order]
        starts = np.ones(len(order), dtype=bool)
        starts[1:] = (query[1:] != query[:-1]) | (facet[1:] != facet[:-1]) | (facet[1:] < 0)
        first = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
        return query, np.arange(len(order)) - first

    def _kept(self, above: Ints) -> Floats:
        """What is gained once `above` passages of the facet were seen."""
        kept: Floats = (1.0 - self["alpha"]) ** above.astype(np.float64)
        return kept


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
