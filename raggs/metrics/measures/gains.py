"""Gain measures (ndcg, ra_nwg, n_recall, net_utility), with the gains of grades or with expected gains from a ranking.

Expected gains exist for ndcg, ra_nwg and recall, with the suffix ``[utility]``. Both variants are defined for the same
queries.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.errors import DataError
from raggs.metrics import weights as w
from raggs.metrics.columns import Qrels, expected_gains
from raggs.metrics.hits import Hits
from raggs.metrics.measure import ALPHA, CAP3, CAP4, REL, Linear, Parameter, parameters


class Ndcg(Linear):
    """Discounted cumulative gain relative to the best order: the gain is linear in the grade by default."""

    NAME = "ndcg"
    FORMULA = (
        "DCG / DCG of the best order, DCG = sum of gain / log2(rank + 1) over the top k; 0 if no passage has a gain"
    )
    SOURCE = "Jaervelin and Kekaelaeinen 2002; trec_eval"
    CUTOFF = "possible"
    ALIASES: ClassVar[tuple[str, ...]] = ("retrieval-ndcg-at-k",)

    def table(self, qrels: Qrels) -> Floats:
        """Return the gains of the scale, shape (grades,)."""
        return np.array(qrels.scale.gains)

    def worth(self, ranks: Floats) -> Floats:
        """Return 1 / log2(rank + 1)."""
        return w.logarithmic(ranks)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return the discounted gains of the best order, shape (queries,)."""
        return w.best_sum(table, hits.qrels.counts, self.cutoff, self.worth)


class NdcgExp(Ndcg):
    """nDCG with exponential gains."""

    NAME = "ndcg_exp"
    ALIASES = ()
    FORMULA = "as ndcg, with 2^gain - 1 for the gain"
    SOURCE = "Burges et al. 2005"

    def table(self, qrels: Qrels) -> Floats:
        """Return 2^gain - 1, shape (grades,)."""
        found: Floats = np.exp2(super().table(qrels)) - 1.0
        return found


class RaNwg(Linear):
    """Total relevance of the top k as a share of the best possible; high, rare grades count more.

    The order within the top k is ignored.
    """

    NAME = "ra_nwg"
    FORMULA = (
        "sum w(g) over the top k / sum of the k largest w in the pool; w5=1, w4=min((n5/n4)^alpha/2, cap4), "
        "w3=min((n5/n3)^alpha/10, cap3), n = grade counts (if n5=0: w4=1, w3=0.2)"
    )
    SOURCE = "Dallaire 2025, section 2.4"
    PARAMS = parameters(alpha=ALPHA, cap4=CAP4, cap3=CAP3)
    GOLDEN = True
    UNDEFINED = math.nan

    def table(self, qrels: Qrels) -> Floats:
        """Return the weights of grades, shape (queries, grades).

        The rarer a grade is among the query's labels, the higher its weight, up to the cap of the grade.
        """
        return w.rarity(qrels.counts, self["alpha"], self["cap4"], self["cap3"])

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return the sum of the k largest weights among the query's judged passages, shape (queries,)."""
        return w.best_sum(table, hits.qrels.counts, self.cutoff)


class NRecall4(Linear):
    """Recall of passages of grade 4 and 5: the divisor is their number, but at most k."""

    NAME = "n_recall4"
    FORMULA = "#{top k with g >= 4} / min(k, n4 + n5)"
    SOURCE = "Dallaire 2025, section 2.4"
    GOLDEN = True
    UNDEFINED = math.nan
    LOWEST = 4

    def table(self, qrels: Qrels) -> Floats:
        """Return 1 for each grade from `LOWEST`, else 0; shape (grades,)."""
        return w.at_least(qrels, self.LOWEST)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return the number of passages with these grades, but at most k, shape (queries,)."""
        return np.minimum(self.cutoff, w.number_of(hits.qrels, table))


class NRecall5(NRecall4):
    """Recall of passages of grade 5: the divisor is their number, but at most k."""

    NAME = "n_recall5"
    FORMULA = "#{top k with g = 5} / min(k, n5)"
    LOWEST = 5


class NetUtility(Linear):
    """Utility minus a penalty for distracting passages: a sum over the top k, relative to that of the best k passages.

    This measure is not UDCG (Trappolini et al. 2025), which also combines utilities and distractors, with a discount
    fitted to a language model. The source used here, Dallaire 2025, does not give the formula of UDCG. According to
    this source, UDCG ranks systems nearly the same with and without the discount.
    """

    NAME = "net_utility"
    FORMULA = "sum u(g) over the top k / the largest such sum; u5=1, u4=0.5, u3=0.1, u2=u1=-harm"
    SOURCE = "raggs; utilities b_g of Dallaire 2025, section 2.4"
    RANGE = (-math.inf, 1.0)
    PARAMS = parameters(harm=Parameter(0.33, 0, 10))
    FIRST = "harm"
    GOLDEN = True
    UNDEFINED = math.nan

    def table(self, qrels: Qrels) -> Floats:
        """Return the utility of each grade from 3 to 5, and minus `harm` for grades 1 and 2, shape (grades,)."""
        return np.where(w.UTILITY > 0, w.UTILITY, -self["harm"])

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return the sum of the k largest positive utilities among the query's judged passages, shape (queries,)."""
        return w.best_sum(table, hits.qrels.counts, self.cutoff)


class Utility(Linear):
    """Mixin that replaces the gains of grades by expected gains; it must precede the base measure in the list of
    bases.
    """

    GOLDEN = True
    ALIASES: ClassVar[tuple[str, ...]] = ()

    def check(self, hits: Hits) -> None:
        """Check the judgments as every measure does, and that the golden set was ranked."""
        super().check(hits)
        if hits.qrels.belief is None:
            raise DataError(
                f"{self.NAME} needs the scores of the rank stage, but these labels are only grades",
                remedy="rank the golden set (raggs run --config CONFIG; if rank is null, add its settings), "
                f"or use {self.NAME.partition('[')[0]}",
            )

    def weights(self, hits: Hits) -> Floats:
        """Return the expected gain of each row's passage, shape (n,)."""
        return self._gains(hits.qrels)[hits.item]

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return the sum of the discounted expected gains of the best `reach` judged passages, shape (queries,). The
        sum is 0 if the grades of all judged passages have no gain.
        """
        qrels, gains = hits.qrels, self._gains(hits.qrels)
        order = np.lexsort((-gains, qrels.query))
        count = np.bincount(qrels.query, minlength=len(qrels.qids))
        rank = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count) + 1
        worth = np.where(rank <= self.reach, self._discount(rank.astype(np.float64)), 0.0)
        best = np.bincount(qrels.query[order], weights=gains[order] * worth, minlength=len(count))
        return np.where((qrels.counts * table).sum(axis=1) > 0, best, 0.0)

    @property
    def reach(self) -> int:
        """How many of the best passages the norm includes."""
        return self.cutoff

    def _gains(self, qrels: Qrels) -> Floats:
        """Return the expected gain of each judged passage, shape (m,).

        An unranked passage has the gain of its grade.
        """
        table, low, belief = self.table(qrels), qrels.scale.low, qrels.belief
        if belief is None:
            raise TypeError("no ranking")
        score = np.where(belief.ranked, belief.score, qrels.grade)
        sigma = np.where(belief.ranked, belief.sigma, 0.0)
        gains = expected_gains(score, sigma, table[qrels.query] if table.ndim > 1 else table, low)
        return np.where(qrels.grade < 0, 0.0, gains)


class NdcgUtility(Utility, Ndcg):
    """nDCG with expected gains: computed from the scores and standard errors of a ranked golden set."""

    NAME = "ndcg[utility]"
    ALIASES = ()
    FORMULA = "as ndcg, with E gain(x), x ~ N(score, sigma), linear between grades; gain of the grade if not ranked"
    SOURCE = "Jaervelin and Kekaelaeinen 2002, with expected gains"


class RaNwgUtility(Utility, RaNwg):
    """RA-nWG with expected weights: computed from the scores and standard errors of a ranked golden set."""

    NAME = "ra_nwg[utility]"
    FORMULA = "as ra_nwg, with E w(x), x ~ N(score, sigma), linear between grades; weight of the grade if not ranked"
    SOURCE = "Dallaire 2025, section 2.4, with expected gains"

    def table(self, qrels: Qrels) -> Floats:
        """Return the weights of grades, shape (queries, grades).

        If no passage has grade 3 (or 4), its weight is computed as if one passage had it.
        """
        counts = np.maximum(qrels.counts, [0, 0, 1, 1, 0])
        return w.rarity(counts, self["alpha"], self["cap4"], self["cap3"])


class RecallUtility(Utility, Linear):
    """Recall with expected relevance: 1 from the lowest relevant grade on, falling linearly to 0 at the grade below."""

    NAME = "recall[utility]"
    FORMULA = "sum over the top k / sum over all of E rel(x), x ~ N(score, sigma); rel of the grade if not ranked"
    SOURCE = "recall of trec_eval, with expected relevance"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)

    @property
    def reach(self) -> int:
        """How many of the best passages the norm includes: all, because recall has no limit."""
        return w.NO_CUTOFF
