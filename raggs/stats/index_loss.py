"""Quality of an approximate index compared with exact search, per query.

Retained passages (`kept_values`): Wang et al., "Towards Robustness: A Critique of Current Vector Database Assessments",
2025, sections 2 to 4. The ground truth is the list of the exact K nearest passages, so recall and average precision
have the divisor K. Average precision of a query is the mean over its K positions, with 0 for missed passages. nDCG
discounts by the position in the truth list, not in the index's list, so losing the nearest passage costs most.

Indexes at equal mean recall (`at_level`, `differences`): each index is measured at several efforts. Between two
efforts, measures are interpolated linearly in mean recall, and the logarithms of effort and queries per second, too.
Nothing is extrapolated: a recall outside the measured range is "not bracketed". Intervals show the variation with other
queries of the same kind. Queries are resampled jointly for all indexes and efforts, and the interpolation is repeated
on each resample. So differences between two indexes are paired. Reading curves at one mean recall follows Wang et al.
2025, Fig. 3 and 9; resampling is an addition.

Minimum effort (`least_effort`): the source raises efSearch until the loss against flat search at 10 and 30 is at most 1
to 2% (Dallaire, "Practical RAG Evaluation", 2025, section 5.3). Here, the upper bound of the loss's interval over
queries must be that small, because a small observed loss may be due to chance.

Recall needed for answers (`accuracy_by_recall`): answers are grouped by the recall of their question. Wang et al. 2025,
section 5.3, report 40, 70 and 91% of the exact search's accuracy at recalls of 0.1, 0.2 and 0.4, and choose a delta of
0.2. Questions with low recall may also be hard for exact search. So the accuracy of each group is compared with that of
exact search on the same questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.metrics.measures.ceilings import EPSILON
from raggs.stats.intervals import Interval, resampled_means

MAX_COMPARISONS = 4_000_000  # comparisons of ids in memory at a time
NOT_FOUND = -1


@dataclass(frozen=True)
class QueryValues:
    """Values of each query, shape (queries,), in 0..1.

    Attributes:
        recall: share of the exact K nearest passages that were returned.
        ap: average precision at K.
        ndcg: nDCG at K, with the discount of each passage's position in the truth list.
        rr: reciprocal rank of the first returned passage that is among the exact K; 0 if no such passage was returned.
    """

    recall: Floats
    ap: Floats
    ndcg: Floats
    rr: Floats

    def reached(self, delta: float) -> Floats:
        """Return 1 for each query whose recall is at least `delta` (up to rounding), else 0; the mean is
        Robustness-delta@K.
        """
        return np.asarray(self.recall >= delta - EPSILON, dtype=np.float64)

    def measures(self, deltas: Sequence[float]) -> Mapping[str, Floats]:
        """Return all values by name: recall, map, ndcg, mrr, and ``r<delta>`` for each delta."""
        found = {"recall": self.recall, "map": self.ap, "ndcg": self.ndcg, "mrr": self.rr}
        return found | {robustness(delta): self.reached(delta) for delta in deltas}


def robustness(delta: float) -> str:
    """Return the name of Robustness-delta, such as "r0.3"."""
    return f"r{delta:g}"


def truth_positions(found: Ints, truth: Ints) -> Ints:
    """Return the position (from 0) of each returned passage in the truth list, -1 if absent; shape (queries, k).

    Args:
        found: shape (queries, k), row numbers of passages, best first; -1 if the index returned fewer.
        truth: shape (queries, K), row numbers of the exact nearest passages, best first; never -1.

    Raises:
        ValueError: `found` and `truth` have different numbers of queries, or a truth list is incomplete.
    """
    if len(found) != len(truth) or (truth < 0).any():
        raise ValueError(f"{len(found)} lists for {len(truth)} truth lists; give one complete truth list per query")
    step = max(1, MAX_COMPARISONS // max(found.shape[1] * truth.shape[1], 1))
    result = np.full(found.shape, NOT_FOUND, dtype=np.int64)
    for start in range(0, len(found), step):
        part = slice(start, start + step)
        same = found[part][:, :, None] == truth[part][:, None, :]
        result[part] = np.where(same.any(axis=2), same.argmax(axis=2), NOT_FOUND)
    return result


def kept_values(found: Ints, truth: Ints) -> QueryValues:
    """Compare the first K passages of `found` with `truth`; arguments and errors are those of `truth_positions`."""
    k = truth.shape[1]
    at = truth_positions(found[:, :k], truth)
    there = at >= 0
    ranks = np.arange(1, at.shape[1] + 1)
    precision = np.cumsum(there, axis=1) / ranks
    gains = np.where(there, 1 / np.log2(at + 2.0, where=there, out=np.ones(at.shape)), 0.0)
    first = np.where(there.any(axis=1), there.argmax(axis=1), -1)
    return QueryValues(
        recall=there.sum(axis=1) / k,
        ap=(precision * there).sum(axis=1) / k,
        ndcg=gains.sum(axis=1) / (1 / np.log2(np.arange(2, k + 2))).sum(),
        rr=np.where(first >= 0, 1 / np.maximum(first + 1, 1), 0.0),
    )


BOOTSTRAP_DRAWS = 2_000
CONFIDENCE = 0.95
# maximum share of resamples without a bracket; an interval that ignores more of them would be misleading
MAX_MISSING_SHARE = 0.05
LEVEL_TOLERANCE = 1e-12
RECALL = "recall"


@dataclass(frozen=True)
class IndexSweep:
    """Measurements of one index at several search efforts (points).

    Attributes:
        name: name of the index and its settings that are the same at all points.
        efforts: shape (points,), search effort such as efSearch; ascending, above 0.
        qps: shape (points,), queries per second, above 0.
        means: by measure, shape (points,); includes "recall".
        drawn: by measure, shape (points, draws), means over resampled queries.
        queries: number of queries.
    """

    name: str
    efforts: Floats
    qps: Floats
    means: Mapping[str, Floats]
    drawn: Mapping[str, Floats]
    queries: int

    @classmethod
    def of(
        cls,
        name: str,
        efforts: Sequence[float],
        qps: Sequence[float],
        values: Sequence[Mapping[str, Floats]],
        *,
        seed: int,
        draws: int = BOOTSTRAP_DRAWS,
    ) -> IndexSweep:
        """Return the sweep from the values per query at each point, in the order of `efforts`.

        Args:
            values: for each point, values by measure, shape (queries,); the same measures and queries at each point.

        Raises:
            ValueError: no point is given, the efforts do not ascend, or an effort or rate is not positive.
        """
        order, rates = np.asarray(efforts, dtype=np.float64), np.asarray(qps, dtype=np.float64)
        if not len(order) or (np.diff(order) <= 0).any() or order[0] <= 0 or (rates <= 0).any():
            raise ValueError("efforts must ascend and be positive, and queries per second must be positive")
        names = list(values[0])
        rows = [point[measure] for measure in names for point in values]
        means = np.array([row.mean() for row in rows]).reshape(len(names), len(order))
        drawn = np.array(resampled_means(rows, draws, seed)).reshape(len(names), len(order), draws)
        size = len(rows[0])
        return cls(name, order, rates, dict(zip(names, means, strict=True)), dict(zip(names, drawn, strict=True)), size)


@dataclass(frozen=True)
class MatchedRecall:
    """Values of an index, interpolated at one mean recall.

    Attributes:
        name, level: name of the index, and the mean recall.
        effort, qps: interpolated effort and queries per second.
        values: by measure, with intervals over queries. Bounds are NaN if the level is not bracketed in more
            than 5% of the resamples.
    """

    name: str
    level: float
    effort: float
    qps: float
    values: Mapping[str, Interval]


def at_level(swept: IndexSweep, level: float) -> MatchedRecall | None:
    """Return the interpolated values of an index at one mean recall; None if this recall is not bracketed."""
    where = _Bracket.of(swept.means[RECALL][:, None], level)
    if not where.inside[0]:
        return None
    return MatchedRecall(
        name=swept.name,
        level=level,
        effort=float(np.exp(where.read(np.log(swept.efforts)[:, None])[0])),
        qps=float(np.exp(where.read(np.log(swept.qps)[:, None])[0])),
        values={name: _interval(*_read(swept, name, level), swept.queries) for name in swept.means},
    )


def differences(
    one: IndexSweep, other: IndexSweep, level: float, confidence: float = CONFIDENCE
) -> Mapping[str, Interval] | None:
    """Return `one` minus `other` by measure, interpolated at one mean recall; None if this recall is not bracketed.

    Args:
        confidence: confidence level of the intervals. For m intervals to hold jointly, use 1 - 0.05 / m (Bonferroni).

    Raises:
        ValueError: the numbers of queries differ.
    """
    if one.queries != other.queries:
        raise ValueError(f"paired differences need the same queries, got {one.queries} and {other.queries}")
    if at_level(one, level) is None or at_level(other, level) is None:
        return None
    found = {}
    for name in one.means:
        (mine, my_draws), (its, its_draws) = _read(one, name, level), _read(other, name, level)
        found[name] = _interval(mine - its, my_draws - its_draws, one.queries, confidence)
    return found


def deviations(indexes: Sequence[IndexSweep], level: float) -> Mapping[str, Mapping[str, Interval]]:
    """Return each index's deviation from the mean of all indexes, relative to the mean, by index and measure (Fig. 3).

    Indexes for which the level is not bracketed are excluded, and measures whose mean is 0 are omitted. The result is
    empty with fewer than two indexes.
    """
    there = [each for each in indexes if at_level(each, level) is not None]
    if len(there) < 2:
        return {}
    found: dict[str, dict[str, Interval]] = {each.name: {} for each in there}
    for name in there[0].means:
        read = [_read(each, name, level) for each in there]
        mean, drawn = sum(value for value, _ in read) / len(read), np.mean([draws for _, draws in read], axis=0)
        if not mean:
            continue
        for each, (value, draws) in zip(there, read, strict=True):
            with np.errstate(invalid="ignore", divide="ignore"):
                found[each.name][name] = _interval(value / mean - 1, draws / drawn - 1, each.queries)
    return found


def _read(swept: IndexSweep, name: str, level: float) -> tuple[float, Floats]:
    """Return a measure at a level, observed and for each resample; NaN if the level is not bracketed."""
    seen = _Bracket.of(swept.means[RECALL][:, None], level).read(swept.means[name][:, None])
    return float(seen[0]), _Bracket.of(swept.drawn[RECALL], level).read(swept.drawn[name])


@dataclass(frozen=True)
class _Bracket:
    """The two points on both sides of a level, for each of several draws.

    The upper point is the first, by increasing effort, that reaches the level. The lower point is the point before it.
    """

    low: Ints
    high: Ints
    share: Floats  # position between the lower (0) and the upper point (1)
    inside: Flags

    @classmethod
    def of(cls, recall: Floats, level: float) -> _Bracket:
        """Return the bracket of a level; `recall` has the shape (points, draws)."""
        reaches = recall >= level - LEVEL_TOLERANCE
        high = reaches.argmax(axis=0)
        low, every = np.maximum(high - 1, 0), np.arange(recall.shape[1])
        above, below = recall[high, every], recall[low, every]
        inside = reaches.any(axis=0) & ((high > 0) | (np.abs(above - level) <= LEVEL_TOLERANCE))
        apart = np.where(above > below, above - below, 1.0)
        return cls(low, high, np.where(above > below, (level - below) / apart, 1.0).clip(0, 1), inside)

    def read(self, values: Floats) -> Floats:
        """Return `values`, shape (points, draws), interpolated at the level; NaN if the level is not bracketed."""
        every = np.arange(values.shape[1])
        below, above = values[self.low, every], values[self.high, every]
        return np.where(self.inside, below + self.share * (above - below), np.nan)


def _interval(value: float, draws: Floats, queries: int, confidence: float = CONFIDENCE) -> Interval:
    """Return the observed value with the percentile interval of the values of the draws."""
    tail, known = (1 - confidence) / 2, draws[np.isfinite(draws)]
    low = high = np.nan
    if len(known) >= (1 - MAX_MISSING_SHARE) * len(draws):
        low, high = np.quantile(known, [tail, 1 - tail]).tolist()
    return Interval(value, low, high, confidence, queries, 0, "percentile")


def loss(values: Floats, exact: Floats, *, seed: int, draws: int = BOOTSTRAP_DRAWS) -> Interval:
    """Return 1 - mean(values) / mean(exact) over the queries with both values, with an interval over paired resamples.

    The loss is negative if the index has the higher mean, which happens by chance.

    Args:
        values, exact: shape (queries,); NaN if the measure is undefined.

    Raises:
        ValueError: the shapes differ, or the exact search has a mean of 0, so a relative loss is undefined.
    """
    if values.shape != exact.shape:
        raise ValueError(
            f"expected two arrays of values for the same queries, got shapes {values.shape} and {exact.shape}"
        )
    valid = np.isfinite(values) & np.isfinite(exact)
    mine, truth = values[valid], exact[valid]
    if not truth.sum() > 0:
        raise ValueError("the exact search has a mean of 0, so a relative loss is undefined")
    ours, theirs = resampled_means([mine, truth], draws, seed)
    known = theirs > 0
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(1 - ours[known] / theirs[known], [tail, 1 - tail]).tolist()
    seen = 1 - float(mine.mean() / truth.mean())
    return Interval(seen, low, high, CONFIDENCE, len(mine), int((~valid).sum()), "percentile")


def least_effort(losses: Sequence[Sequence[Interval]], limit: float) -> int | None:
    """Return the smallest effort at which the upper bounds of all losses are within the limit.

    Args:
        losses: for each effort, ascending, the losses of all question sets and cutoffs.
        limit: largest allowed loss, as a share such as 0.01.

    Returns:
        Index of the effort; None if no effort is enough or nothing was measured.
    """
    fits = (at for at, found in enumerate(losses) if found and all(each.high <= limit for each in found))
    return next(fits, None)


RECALL_BINS = 10  # number of bins below full recall, each a tenth wide; full recall has a separate bin
MIN_BIN_ANSWERS = 10  # bins with fewer answers are ignored
NEAR_ACCURACY_SHARE = 0.7  # share of the exact search's accuracy; corresponds to the paper's choice of delta


@dataclass(frozen=True)
class RecallBin:
    """Answers to questions with about the same recall.

    Attributes:
        recall: lower end of the bin, 0 to 1 in tenths.
        answers: number of answers.
        accuracy, exact: share of correct answers with the index, and with exact search on the same questions.
        ratio: accuracy / exact with its interval; NaN if the exact search has no correct answers.
    """

    recall: float
    answers: int
    accuracy: float
    exact: float
    ratio: Interval


def accuracy_by_recall(recall: Floats, correct: Flags, exact: Flags, *, seed: int) -> tuple[RecallBin, ...]:
    """Return the non-empty bins of recall, ascending.

    Args:
        recall: shape (answers,), in 0..1.
        correct, exact: same shape, whether the answer was correct with the index, and with exact search.

    Raises:
        ValueError: the shapes differ.
    """
    if not recall.shape == correct.shape == exact.shape:
        raise ValueError("recall, correct and exact must have one value per answer")
    tenths = np.floor(recall * RECALL_BINS + EPSILON).astype(int)
    return tuple(
        _bin(tenth / RECALL_BINS, correct[tenths == tenth], exact[tenths == tenth], seed)
        for tenth in np.unique(tenths).tolist()
    )


def choose_delta(
    bins: Sequence[RecallBin], near: float = NEAR_ACCURACY_SHARE, least: int = MIN_BIN_ANSWERS
) -> float | None:
    """Return the smallest recall above 0 from which on every bin with at least `least` answers is near exact search.

    Args:
        bins: the result of `accuracy_by_recall`.
        near: required share of the exact search's accuracy.
        least: minimum number of answers per bin.

    Returns:
        None if the highest bin with enough answers is below `near`, or if no bin above 0 has enough answers.
    """
    chosen: float | None = None
    for each in sorted(bins, key=lambda found: -found.recall):
        if each.answers < least or each.recall <= 0:
            continue
        if not each.ratio.mean >= near:
            break
        chosen = each.recall
    return chosen


def _bin(recall: float, correct: Flags, exact: Flags, seed: int) -> RecallBin:
    mine, truth = correct.astype(np.float64), exact.astype(np.float64)
    low = high = ratio = np.nan
    if truth.any():
        ratio = float(mine.mean() / truth.mean())
        ours, theirs = resampled_means([mine, truth], BOOTSTRAP_DRAWS, seed)
        known, tail = theirs > 0, (1 - CONFIDENCE) / 2
        low, high = np.quantile(ours[known] / theirs[known], [tail, 1 - tail]).tolist()
    found = Interval(ratio, low, high, CONFIDENCE, len(mine), 0, "percentile")
    return RecallBin(recall, len(mine), float(mine.mean()), float(truth.mean()), found)
