"""Measures based on a model of a reader who scans a list from the top: rbp, err, inst, compat and others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.metrics import weights as w
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.measure import REL, Linear, Measure, Parameter, parameters


class Rbp(Linear):
    """Rank-biased precision: the gain of a reader who continues to the next passage with probability p."""

    NAME = "rbp"
    FORMULA = "(1 - p) sum p^(rank - 1) over relevant passages in the top k"
    SOURCE = "Moffat and Zobel 2008"
    FIXED = True
    CUTOFF = "possible"
    PARAMS = parameters(p=Parameter(0.8, 0, 0.9999), rel=REL)
    FIRST = "p"

    def worth(self, ranks: Floats) -> Floats:
        """Return (1 - p) p^(rank - 1)."""
        found: Floats = (1.0 - self["p"]) * self["p"] ** (ranks - 1.0)
        return found

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return 1 for each query: the worths of all ranks sum to 1."""
        return w.flat(hits.length.astype(float))


DEPTH = 1000  # maximum number of ranks that a reader reaches, as in cwl_eval
QUERIES_PER_BLOCK = 1000  # queries processed at a time: an array of DEPTH * QUERIES_PER_BLOCK numbers has 8 MB


class Scaled(Measure):
    """A measure with gains (grade - min_rel) / (max_rel - min_rel), clipped to 0 to 1; unjudged passages gain 0."""

    GAINS: ClassVar[Mapping[str, Parameter]] = parameters(
        min_rel=Parameter(None, -1e9, 1e9, True), max_rel=Parameter(None, -1e9, 1e9, True)
    )
    PARAMS = GAINS

    def table(self, qrels: Qrels) -> Floats:
        """Return the gain of each grade, shape (grades,)."""
        low, high = self.params.get("min_rel", qrels.scale.low), self.params.get("max_rel", qrels.scale.high)
        return np.clip((qrels.scale.grades() - low) / max(high - low, 1.0), 0.0, 1.0)


class Cwl(Scaled):
    """Expected gain per passage in the C/W/L framework, given continuation probabilities (Moffat et al. 2017)."""

    TIES = False

    @abstractmethod
    def going_on(self, place: Ints, gains: Floats) -> Floats:
        """Return the probability that the reader continues from a rank to the next, shape (places,) or (queries,
        places).

        Args:
            place: shape (places,), ranks from 1.
            gains: shape (queries, places), gain at each rank.
        """

    def score(self, hits: Hits) -> Floats:
        """Return the expected gain per passage, shape (queries,). Each of the few work arrays needs 8 MB."""
        gain = hits.weigh(self.table(hits.qrels))
        rows = np.flatnonzero(hits.rank <= min(DEPTH, self.cutoff))
        query, rank = hits.query[rows], hits.rank[rows]
        found = np.zeros(len(hits.length))
        for first in range(0, len(found), QUERIES_PER_BLOCK):
            mine = (query >= first) & (query < first + QUERIES_PER_BLOCK)
            gains = np.zeros((min(QUERIES_PER_BLOCK, len(found) - first), DEPTH))
            gains[query[mine] - first, rank[mine] - 1] = gain[rows[mine]]
            going_on = np.broadcast_to(self.going_on(np.arange(1, DEPTH + 1), gains), gains.shape)
            weight = np.concatenate([np.ones((len(gains), 1)), np.cumprod(going_on[:, :-1], axis=1)], axis=1)
            found[first : first + len(gains)] = (weight * gains).sum(axis=1) / weight.sum(axis=1)
        return found


class Inst(Cwl):
    """Gain per passage of a reader who wants a gain of T; the more gain is missing, the further the reader goes."""

    NAME = "inst"
    FORMULA = "sum w(i) gain(i) / sum w(i), w(i+1) = w(i) ((i + T + t - 1) / (i + T + t))^2, t = T - gain so far"
    SOURCE = "Moffat et al. 2015; cwl_eval"
    CUTOFF = "possible"
    PARAMS = parameters(t=Parameter(1.0, 0.5, 1e6), **Scaled.GAINS)
    FIRST = "t"

    def going_on(self, place: Ints, gains: Floats) -> Floats:
        """Return the continuation probability, shape (queries, places); the more gain is missing, the larger it is."""
        reach = place + 2.0 * self["t"] - np.cumsum(gains, axis=1)
        found: Floats = ((reach - 1.0) / reach) ** 2
        return found


GOAL = Parameter(1.0, 0.01, 1e6)  # goal of a reader: the total gain after which the search would be complete


class Insq(Scaled, Linear):
    """Gain per passage of a reader who wants a gain of T; the reader ignores the gain found so far."""

    NAME = "insq"
    FORMULA = "sum w(i) gain(i) / sum w(i) over 1000 ranks, w(i) = 1 / (i + 2T - 1)^2"
    SOURCE = "Moffat et al. 2012; cwl_eval"
    FIXED = True
    CUTOFF = "possible"
    PARAMS = parameters(t=GOAL, **Scaled.GAINS)
    FIRST = "t"

    def worth(self, ranks: Floats) -> Floats:
        """Return 1 / (rank + 2T - 1)^2 up to rank 1000, then 0."""
        return np.where(ranks <= DEPTH, 1.0 / (ranks + 2.0 * self["t"] - 1.0) ** 2, 0.0)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return the sum of the worths of all ranks, the same for each query."""
        return np.full(len(hits.length), w.cumulative(self.worth, DEPTH)[-1])


class Sdcg(Scaled, Linear):
    """Discounted cumulative gain relative to k perfect passages: the divisor does not depend on how many exist."""

    NAME = "sdcg"
    FORMULA = "(sum of gain(i) / log2(i + 1) over the top k) / (sum of 1 / log2(i + 1) over k ranks)"
    SOURCE = "Jaervelin and Kekaelaeinen 2002, scaled; cwl_eval"
    FIXED = True

    def worth(self, ranks: Floats) -> Floats:
        """Return 1 / log2(rank + 1) up to rank 1000, then 0."""
        return np.where(ranks <= DEPTH, w.logarithmic(ranks), 0.0)

    def norm(self, hits: Hits, table: Floats) -> Floats:
        """Return the sum of the worths of the first k ranks, the same for each query."""
        return np.full(len(hits.length), w.cumulative(self.worth, min(DEPTH, self.cutoff))[-1])


class Bpm(Cwl):
    """Gain per passage of a reader who stops at gain T or rank k."""

    NAME = "bpm"
    FORMULA = "sum gain(i) over the top n / n, n = the first rank at which the gains sum to T, at most k"
    SOURCE = "Zhang et al. 2017, static; cwl_eval"
    PARAMS = parameters(t=GOAL, **Scaled.GAINS)
    FIRST = "t"

    def going_on(self, place: Ints, gains: Floats) -> Floats:
        """Return 1 until the reader has a total gain of T or reaches rank k, then 0; shape (queries, places)."""
        return ((np.cumsum(gains, axis=1) < self["t"]) & (place < self.cutoff)).astype(np.float64)


class Nerr8(Cwl):
    """Gain per passage of a reader who may stop at each gain: at rank k, the reader always stops.

    The probability of stopping at a passage is its gain.
    """

    NAME = "nerr8"
    FORMULA = "sum w(i) gain(i) / sum w(i) over the top k, w(i+1) = w(i) (1 - gain(i))"
    SOURCE = "Azzopardi et al. 2021, equation 8; cwl_eval"

    def going_on(self, place: Ints, gains: Floats) -> Floats:
        """Return the patience times the probability that the gain does not stop the reader, shape (queries, places)."""
        return self.patience(place) * (1.0 - gains)

    def patience(self, place: Ints) -> Floats:
        """Return the probability of continuing after a passage without a gain, shape (places,)."""
        return (place < self.cutoff).astype(np.float64)


class Nerr9(Nerr8):
    """Gain per passage of a reader who may stop at any rank: high gains and early ranks make stopping more likely.

    A passage stops the reader with the probability of its gain, and otherwise with probability 1 / (rank + 1). The
    reader always stops at rank k.
    """

    NAME = "nerr9"
    FORMULA = "sum w(i) gain(i) / sum w(i) over the top k, w(i+1) = w(i) (1 - gain(i)) i / (i + 1)"
    SOURCE = "Azzopardi et al. 2021, equation 9; cwl_eval"

    def patience(self, place: Ints) -> Floats:
        """Return i / (i + 1) for ranks before k, then 0; shape (places,)."""
        return np.where(place < self.cutoff, place / (place + 1.0), 0.0)


class Nerr10(Nerr8):
    """Gain per passage of a reader who may stop at each gain: otherwise, the reader continues with probability p."""

    NAME = "nerr10"
    FORMULA = "sum w(i) gain(i) / sum w(i), w(i+1) = w(i) (1 - gain(i)) p"
    SOURCE = "Azzopardi et al. 2021, equation 10; cwl_eval"
    CUTOFF = "possible"
    PARAMS = parameters(p=Parameter(0.9, 0, 1), **Scaled.GAINS)
    FIRST = "p"

    def patience(self, place: Ints) -> Floats:
        """Return p, shape (places,)."""
        return np.full(len(place), self["p"])


class Nerr11(Nerr8):
    """Gain per passage of a reader who may stop at each gain: otherwise, the reader continues as in insq.

    T is the reader's goal, as a total gain.
    """

    NAME = "nerr11"
    FORMULA = "sum w(i) gain(i) / sum w(i), w(i+1) = w(i) (1 - gain(i)) ((i + 2T - 1) / (i + 2T))^2"
    SOURCE = "Azzopardi et al. 2021, equation 11; cwl_eval"
    CUTOFF = "possible"
    PARAMS = parameters(t=GOAL, **Scaled.GAINS)
    FIRST = "t"

    def patience(self, place: Ints) -> Floats:
        """Return ((i + 2T - 1) / (i + 2T))^2, shape (places,)."""
        reach = place + 2.0 * self["t"]
        found: Floats = ((reach - 1.0) / reach) ** 2
        return found


class Compatibility(Measure):
    """Rank-biased overlap with the most similar ideal list: all passages with a gain, by descending grade.

    The overlap is divided by the overlap of the ideal list with itself. With `normalize=0`, it is divided by the total
    weight of the ranks, so that a list with more passages than the ideal list scores below 1.
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
        # number of passages with a higher grade, by query and grade
        better = np.cumsum(useful[:, ::-1], axis=1)[:, ::-1] - useful
        # ascending, as `order` sorts by query and descending grade
        group = query * qrels.scale.size + (qrels.scale.size - column)
        within = np.arange(len(order)) - np.searchsorted(group, group)
        meets = np.maximum(hits.rank[order], better[query, column] + within + 1)
        overlap = np.bincount(query, weights=summed[depth[query]] - summed[meets - 1], minlength=len(depth))
        if not self["normalize"]:
            return w.ratio(overlap, weight[depth], 0.0)
        # in its overlap with itself, each ideal passage counts from its own rank on
        before = np.append(0.0, np.cumsum(summed[:-1]))
        return w.ratio(overlap, ideal * summed[depth] - before[ideal], 0.0)


class ExpectedReciprocalRank(Measure):
    """Expected reciprocal rank: the mean of 1 / rank at which a reader stops; better passages stop more readers."""

    NAME = "err"
    FORMULA = "sum over the top k of R(rank) / rank * product of (1 - R) above it; R = (2^gain - 1) / 2^largest gain"
    SOURCE = "Chapelle et al. 2009; gdeval"
    CUTOFF = "possible"
    TIES = False

    def score(self, hits: Hits) -> Floats:
        """Return the expected reciprocal rank, shape (queries,)."""
        gains = np.array(hits.qrels.scale.gains)
        stop = hits.weigh(np.exp2(gains - gains.max()) - np.exp2(-gains.max())) * (hits.rank <= self.cutoff)
        going_on, total = np.ones(len(hits.length)), np.zeros(len(hits.length))
        for rows in w.by_place(hits):  # each step: one judged passage per query, best ranked first
            query = hits.query[rows]
            total[query] += going_on[query] * stop[rows] / hits.rank[rows]
            going_on[query] *= 1.0 - stop[rows]
        return total
