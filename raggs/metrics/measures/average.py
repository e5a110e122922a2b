"""Average precision and related measures: map, infap, iprec, bpref, accuracy."""

from __future__ import annotations

import math

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits, per_query
from raggs.metrics.measure import REL, Measure, Parameter, parameters
from raggs.metrics.weights import expected_precision_sum


class Map(Measure):
    """Average precision over the relevant passages."""

    NAME = "map"
    FORMULA = "sum of precision@rank over relevant passages in the top k / |relevant|"
    SOURCE = "trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    ALIASES = ("ap",)

    def score(self, hits: Hits) -> Floats:
        """Return the sum of precision@rank at relevant ranks up to k, divided by the number of relevant passages.

        Shape (queries,).
        """
        good = np.flatnonzero((hits.weigh(self.table(hits.qrels)) > 0) & (hits.rank <= self.cutoff))
        query, rank = hits.query[good], hits.rank[good]
        order = np.lexsort((rank, query))
        query, rank = query[order], rank[order]
        seen = np.arange(len(query)) - np.searchsorted(query, query) + 1
        total = per_query(hits, query, seen / rank)
        return w.ratio(total, w.number_of(hits.qrels, self.table(hits.qrels)), 0.0)

    def expected(self, hits: Hits) -> Floats:
        """Return the mean over all orders of tied passages, shape (queries,) (McSherry and Najork 2008)."""
        table = self.table(hits.qrels)
        total = expected_precision_sum(hits, hits.weigh(table) > 0, self.cutoff)
        return w.ratio(total, w.number_of(hits.qrels, table), 0.0)


EPSILON = 0.00001  # smoothing constant of trec_eval


class InferredAp(Measure):
    """Average precision inferred from a partly judged pool; grade -1 means pooled but unjudged.

    The share of relevant passages among unjudged passages of the pool is assumed to be that of the judged ones.
    Passages outside the pool are assumed to be not relevant.
    """

    NAME = "infap"
    FORMULA = "sum over relevant: (1 + pooled above (relevant above + e) / (judged above + 2e)) / rank / |relevant|"
    SOURCE = "Yilmaz and Aslam 2006; infAP of trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Return the inferred average precision, shape (queries,); 0 if no passage is relevant."""
        table = self.table(hits.qrels)
        order = np.lexsort((hits.rank, hits.query))
        query, rank = hits.query[order], hits.rank[order].astype(np.float64)
        good = hits.weigh(table)[order] > 0
        first = np.searchsorted(query, query)
        judged = np.arange(len(query)) - first  # number of judged passages above each row
        relevant = np.concatenate([[0], np.cumsum(good)])
        above = relevant[:-1] - relevant[first]
        pooled = judged + (0 if hits.pooled is None else hits.pooled[order])
        share = (above + EPSILON) / (judged + 2.0 * EPSILON)
        worth = np.where(rank > 1, 1.0 / rank + pooled / rank * share, 1.0)
        counted = np.where(good & (rank <= self.cutoff), worth, 0.0)
        return w.ratio(per_query(hits, query, counted), w.number_of(hits.qrels, table), 0.0)


ROUNDING = 0.9  # trec_eval 9 converts a recall to a number of passages by int(recall * R + 0.9)


class InterpolatedPrecision(Measure):
    """Interpolated precision at a recall level: the largest precision at or after this level; write ``iprec@0.5``."""

    NAME = "iprec"
    FORMULA = "max of precision@rank over the ranks with recall@rank >= r; 0 if the list does not reach r"
    SOURCE = "iprec_at_recall of trec_eval 9"
    CUTOFF = "possible"
    AT = "recall"
    PARAMS = parameters(recall=Parameter(None, 0, 1), rel=REL)
    ALIASES = ("iprec_at_recall",)
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Return the interpolated precision at the recall level `recall`, shape (queries,)."""
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


class Bpref(Measure):
    """How rarely non-relevant passages rank above relevant ones; only judged passages count."""

    NAME = "bpref"
    FORMULA = "1/R sum over relevant in the top k: 1 - min(N above, R) / min(R, N); R relevant, N judged non-relevant"
    SOURCE = "Buckley and Voorhees 2004; trec_eval"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Return bpref, shape (queries,); 0 if no passage is relevant."""
        table = self.table(hits.qrels)
        relevant, judged = w.number_of(hits.qrels, table), hits.qrels.counts.sum(axis=1)
        order = np.lexsort((hits.rank, hits.query))
        query, good = hits.query[order], hits.weigh(table)[order] > 0
        others = np.cumsum(~good)
        before = np.concatenate([[0], others])[np.searchsorted(query, query)]
        above = np.minimum(others - before, relevant[query])
        cost = w.ratio(above, np.minimum(relevant, judged - relevant)[query], 0.0)
        worth = np.where(good & (hits.rank[order] <= self.cutoff), 1.0 - cost, 0.0)
        return w.ratio(per_query(hits, query, worth), relevant, 0.0)


class Accuracy(Measure):
    """Share of (relevant, other) pairs with the relevant one first; unjudged passages count as not relevant."""

    NAME = "accuracy"
    FORMULA = "|pairs (relevant, other) in the top k in this order| / |pairs|; no pairs: undefined, no list: 0"
    SOURCE = "ir_measures"
    CUTOFF = "possible"
    PARAMS = parameters(rel=REL)
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Return the share of correctly ordered pairs, shape (queries,).

        NaN if a list has no pair of a relevant and another passage; 0 if the query has no list.
        """
        good = (hits.weigh(self.table(hits.qrels)) > 0) & (hits.rank <= self.cutoff)
        found, shown = hits.total(good.astype(np.float64)), np.minimum(self.cutoff, hits.length)
        # the i-th relevant passage is below rank - i other passages
        wrong = hits.total(np.where(good, hits.rank, 0.0)) - found * (found + 1.0) / 2.0
        pairs = found * (shown - found)
        return np.where(shown > 0, w.ratio(pairs - wrong, pairs, math.nan), 0.0)
