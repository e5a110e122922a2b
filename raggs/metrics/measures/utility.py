"""Measures whose gains are what a ranking makes of passages: their expected gain, grade and order together.

They bear the name of the measure with grades and ask about the same queries: what has no value there has none here.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.metrics import weights as w
from raggs.metrics.belief import expected_gains
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.measure import Linear, parameters
from raggs.metrics.measures.ndcg import Ndcg
from raggs.metrics.measures.parameters import REL
from raggs.metrics.measures.ra_nwg import RaNwg


class Utility(Linear):
    """Expected gains in place of the gains of grades; goes before the measure that says which."""

    GOLDEN = True
    ALIASES: ClassVar[tuple[str, ...]] = ()

    def check(self, hits: Hits) -> None:
        """See `Measure.check`; the set must have been ranked."""
        super().check(hits)
        if hits.qrels.belief is None:
            raise DataError(
                f"{self.NAME} needs the order of a rank stage, and these labels are grades alone",
                remedy="rank the golden set (raggs run --config CONFIG; where rank is null, give it its settings), "
                f"or take {self.NAME.partition('[')[0]}",
            )

    def weights(self, hits: Hits) -> Floats:
        """Shape (n,): the expected gain of each row's passage."""
        return self._gains(hits.qrels)[hits.item]

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Shape (queries,): what the best k passages bring; 0 where the grades have nothing to find."""
        qrels, gains = hits.qrels, self._gains(hits.qrels)
        order = np.lexsort((-gains, qrels.query))
        count = np.bincount(qrels.query, minlength=len(qrels.qids))
        rank = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count) + 1
        worth = np.where(rank <= self.reach, self._discount(rank.astype(np.float64)), 0.0)
        best = np.bincount(qrels.query[order], weights=gains[order] * worth, minlength=len(count))
        return np.where((qrels.counts * table).sum(axis=1) > 0, best, 0.0)

    @property
    def reach(self) -> int:
        """How many of the best passages a perfect list is held to."""
        return self.cutoff

    def _gains(self, qrels: Qrels) -> Floats:
        """Shape (m,): the expected gain of each judged passage; of one that was not ranked, its grade's."""
        table, low, belief = self.table(qrels), qrels.scale.low, qrels.belief
        if belief is None:
            raise TypeError("no ranking")
        score = np.where(belief.ranked, belief.score, qrels.grade)
        sigma = np.where(belief.ranked, belief.sigma, 0.0)
        gains = expected_gains(score, sigma, table[qrels.query] if table.ndim > 1 else table, low)
        return np.where(qrels.grade < 0, 0.0, gains)


class NdcgUtility(Utility, Ndcg):
    """As ndcg, with expected gains: those of the ranking's scores and doubt. Needs a golden set that was ranked."""

    NAME = "ndcg[utility]"
    ALIASES = ()
    FORMULA = "as ndcg, with E gain(x), x ~ N(score, sigma), linear between grades; the grade's where not ranked"
    SOURCE = "Jaervelin and Kekaelaeinen 2002, with expected gains"


class RaNwgUtility(Utility, RaNwg):
    """As ra_nwg, with expected weights: those of the ranking's scores and doubt. Needs a golden set that was ranked."""

    NAME = "ra_nwg[utility]"
    FORMULA = "as ra_nwg, with E w(x), x ~ N(score, sigma), linear between grades; the grade's where not ranked"
    SOURCE = "Dallaire 2025, section 2.4, with expected gains"

    def table(self, qrels: Qrels) -> Floats:
        """Shape (queries, grades): as of grades; one that no passage has weighs as if one had it."""
        counts = np.maximum(qrels.counts, [0, 0, 1, 1, 0])
        return w.rarity(counts, self["alpha"], self["cap4"], self["cap3"])


class RecallUtility(Utility, Linear):
    """As recall, with expected relevance: 1 from the lowest relevant grade on, falling to 0 at the grade below."""

    NAME = "recall[utility]"
    FORMULA = "sum over the top k / sum over all of E rel(x), x ~ N(score, sigma); the grade's where not ranked"
    SOURCE = "recall of trec_eval, with expected relevance"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)

    @property
    def reach(self) -> int:
        """All of them."""
        return w.EVERYTHING
