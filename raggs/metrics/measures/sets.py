"""Set measures: recall, precision, F1, harm, and the judged share of a list."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from raggs.base.arrays import Flags, Floats
from raggs.metrics import weights as w
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.measure import FLAG, REL, Linear, Measure, Parameter, parameters


class Recall(Linear):
    """Share of the relevant passages that are in the top k."""

    NAME = "recall"
    FORMULA = "|relevant in the top k| / |relevant|"
    SOURCE = "trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    ALIASES = ("r", "retrieval-recall-at-k", "setr", "set_recall")

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return the number of relevant passages, shape (queries,)."""
        return w.number_of(hits.qrels, table)


class Precision(Linear):
    """Share of the k ranks that hold a relevant passage."""

    NAME = "precision"
    FORMULA = "|relevant in the top k| / k"
    SOURCE = "trec_eval"
    FIXED = True
    PARAMS = parameters(rel=REL)
    ALIASES = ("p",)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return k for every query, even if fewer passages were retrieved."""
        return np.full(len(hits.length), float(self.cutoff))


class F1(Linear):
    """Harmonic mean of precision@k and recall@k."""

    NAME = "f1"
    FORMULA = "2 |relevant in the top k| / (k + |relevant|)"
    SOURCE = "van Rijsbergen 1979"
    PARAMS = parameters(rel=REL)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return the mean of k and the number of relevant passages, shape (queries,)."""
        return (self.cutoff + w.number_of(hits.qrels, table)) / 2.0


class SetPrecision(Linear):
    """Share of the retrieved passages that are relevant.

    With `relative=1`, the divisor is at most the number of relevant passages. A list that contains all relevant
    passages then scores 1.
    """

    NAME = "set_p"
    FORMULA = "|relevant in the top k| / min(k, retrieved); 0 if nothing was retrieved"
    SOURCE = "set_P of trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL, relative=FLAG)
    ALIASES = ("setp",)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return the number of retrieved passages, but at most k, shape (queries,).

        With `relative`, the divisor is also at most the number of relevant passages.
        """
        shown = np.minimum(self.cutoff, hits.length).astype(np.float64)
        return np.minimum(shown, w.number_of(hits.qrels, table)) if self.params.get("relative") else shown


class SetF(Linear):
    """Weighted harmonic mean of set_p and recall.

    `beta` is the weight of recall relative to precision. As in trec_eval, `beta` is not squared.
    """

    NAME = "set_f"
    FORMULA = "(beta + 1) P R / (R + beta P), with P = set_p and R = recall"
    SOURCE = "set_F of trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(beta=Parameter(1.0, 0, 1e6), rel=REL)
    FIRST = "beta"
    ALIASES = ("setf",)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return (retrieved + beta * relevant) / (beta + 1), shape (queries,)."""
        shown, beta = np.minimum(self.cutoff, hits.length), self["beta"]
        return (shown + beta * w.number_of(hits.qrels, table)) / (beta + 1.0)


class SetAp(Measure):
    """Precision of the retrieved set multiplied by its recall."""

    NAME = "set_ap"
    FORMULA = "P R, with P = set_p and R = recall"
    SOURCE = "set_map of trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    ALIASES = ("setap", "set_map")
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Return precision times recall, shape (queries,); 0 if nothing was retrieved or nothing is relevant."""
        table = self.table(hits.qrels)
        found = hits.total(hits.weigh(table) * (hits.rank <= self.cutoff))
        return w.ratio(found**2, np.minimum(self.cutoff, hits.length) * w.number_of(hits.qrels, table), 0.0)


class RPrecision(Measure):
    """Precision at rank R: R is the number of the query's relevant passages."""

    NAME = "rprec"
    FORMULA = "|relevant in the top R| / R, R = |relevant|; 0 if R is 0"
    SOURCE = "Rprec of trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)

    def score(self, hits: Hits) -> Floats:
        """Return the share of relevant passages among the first R ranks, shape (queries,); ranks after k do not
        count.
        """
        return self._share(hits, lambda places: hits.rank <= places)

    def expected(self, hits: Hits) -> Floats:
        """Return the mean over all orders of tied passages, shape (queries,)."""
        return self._share(hits, lambda places: np.clip(places - hits.start, 0, hits.size) / hits.size)

    def _share(self, hits: Hits, worth: Callable[[Floats], Floats | Flags]) -> Floats:
        table = self.table(hits.qrels)
        relevant = w.number_of(hits.qrels, table)
        places = np.minimum(relevant, self.cutoff)[hits.query]
        return w.ratio(hits.total(hits.weigh(table) * worth(places)), relevant, 0.0)


class Precision4(Linear):
    """Share of the k ranks that hold a passage of grade 4 or 5."""

    NAME = "precision4"
    FORMULA = "#{top k with g >= 4} / k"
    SOURCE = "Dallaire 2025, section 2.4"
    GOLDEN = True
    FIXED = True

    def table(self, qrels: Qrels) -> Floats:
        """Return 1 for grades 4 and 5, else 0; shape (grades,)."""
        return w.at_least(qrels, 4)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return k for every query, even if fewer passages were retrieved."""
        return np.full(len(hits.length), float(self.cutoff))


class Harm(Precision4):
    """Share of the k ranks that hold a passage of grade 1 or 2; such passages may distract the generator."""

    NAME = "harm"
    FORMULA = "#{top k with g <= 2} / k, judged passages only"
    HIGHER = False

    def table(self, qrels: Qrels) -> Floats:
        """Return 1 for grades 1 and 2, else 0; shape (grades,)."""
        return 1.0 - w.at_least(qrels, 3)


class JudgedShare(Linear):
    """Share of the retrieved top k that is judged."""

    NAME = "judged"
    FORMULA = "#{judged in the top k} / min(k, retrieved)"
    SOURCE = "Sakai 2007"
    CUTOFF = "possible"

    def table(self, qrels: Qrels) -> Floats:
        """Return 1 for every grade, shape (grades,)."""
        return np.ones(qrels.scale.size)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return the number of retrieved passages, at most k, shape (queries,)."""
        return np.minimum(self.cutoff, hits.length).astype(np.float64)


class Holes(JudgedShare):
    """Share of the retrieved top k that is unjudged; scores with many unjudged passages are not comparable."""

    NAME = "holes"
    FORMULA = "1 - judged@k; 0 if the list is empty"
    HIGHER = False

    def score(self, hits: Hits) -> Floats:
        """Return 1 minus the judged share, shape (queries,); 0 if nothing was retrieved."""
        return np.where(hits.length > 0, 1.0 - super().score(hits), 0.0)

    def expected(self, hits: Hits) -> Floats:
        """Return the mean over all orders of tied passages, shape (queries,)."""
        return np.where(hits.length > 0, 1.0 - super().expected(hits), 0.0)

    def extreme(self, hits: Hits, most: bool) -> Floats:
        """Return the largest or smallest value over all orders, shape (queries,).

        The share of unjudged passages is largest when the share of judged ones is smallest.
        """
        return super().extreme(hits, not most)


class UnjudgedShare(Linear):
    """Share of the k ranks that hold an unjudged passage; in a shorter list, the missing ranks do not count."""

    NAME = "unj"
    FORMULA = "#{unjudged in the top k} / k"
    SOURCE = "unj of trec_eval 10"
    HIGHER = False

    def table(self, qrels: Qrels) -> Floats:
        """Return 1 for every grade, shape (grades,)."""
        return np.ones(qrels.scale.size)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return k for every query, shape (queries,)."""
        return np.full(len(hits.length), float(self.cutoff))

    def score(self, hits: Hits) -> Floats:
        """Return the share of ranks that hold an unjudged passage, shape (queries,)."""
        return self._filled(hits) - super().score(hits)

    def expected(self, hits: Hits) -> Floats:
        """Return the mean over all orders of tied passages, shape (queries,)."""
        return self._filled(hits) - super().expected(hits)

    def extreme(self, hits: Hits, most: bool) -> Floats:
        """Return the largest or smallest value over all orders, shape (queries,).

        The share of unjudged passages is largest when the share of judged ones is smallest.
        """
        return super().extreme(hits, not most)

    def _filled(self, hits: Hits) -> Floats:
        return np.minimum(self.cutoff, hits.length) / self.cutoff
