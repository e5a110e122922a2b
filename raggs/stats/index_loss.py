"""What an index kept of the exact nearest passages, by query, as the six values that indexes are compared by.

Wang et al., "Towards Robustness: A Critique of Current Vector Database Assessments", 2025, sections 2 to 4: truth is
the list of the exact K nearest, so every divisor is K. Precision of a query averages over its K places and counts 0 for
what was missed; nDCG discounts by the place in the truth list, not in the index's own list, so that losing the nearest
passage costs most wherever it would have stood.

Indexes beside each other where they lose equally much on average: what stands at one level of mean recall.

Each index was measured at several efforts. Between two of them a value is read linearly in mean recall, queries a
second and the effort itself in their logarithm. Beyond the points nothing is guessed: such a level is "not bracketed".
The doubt is that of other queries of the same kind: queries are resampled, for all indexes and points alike, and the
whole reading is done again on each resample, so that a difference between two indexes is a paired one.

Wang et al. 2025, Fig. 3 and 9, whose curves are read at one mean recall; resampling is added here.

The least effort whose loss against the exact search is small enough, beyond doubt.

Dallaire, "Practical RAG Evaluation", 2025, section 5.3: raise efSearch until the loss against flat at 10 and 30 is at
most 1 to 2%, then stop. Here a loss counts as small enough when the upper end of its interval over queries is: one
that was merely seen to be small may be luck.

How much recall an answer needs: accuracy of answers by how much of the truth their question was served.

Wang et al. 2025, section 5.3, which read 40, 70 and 91% of the exact search's accuracy at recalls of .1, .2 and .4 and
chose a delta of .2. A question that an index serves badly may be a hard one for the exact search too, so each bin's
accuracy is held against that of the exact search on the same questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.metrics.measures.ceilings import EPSILON
from raggs.stats.intervals import Interval, resampled_means

MAX_COMPARISONS = 4_000_000  # comparisons held at a time
NOT_FOUND = -1


@dataclass(frozen=True)
class QueryValues:
    """Values of shape (queries,), each in 0..1.

    Attributes:
        recall: the share of the exact K that was returned.
        ap: average precision at K.
        ndcg: at K, with the discount of each passage's place in the truth list.
        rr: reciprocal rank of the first returned passage that is among the exact K; 0 where there is none.
    """

    recall: Floats
    ap: Floats
    ndcg: Floats
    rr: Floats

    def reached(self, delta: float) -> Floats:
        """1 where recall is `delta` or more, rounding aside, else 0; its mean is Robustness-delta@K."""
        return np.asarray(self.recall >= delta - EPSILON, dtype=np.float64)

    def measures(self, deltas: Sequence[float]) -> Mapping[str, Floats]:
        """All of them by name: recall, map, ndcg, mrr, and ``r<delta>`` for each delta."""
        found = {"recall": self.recall, "map": self.ap, "ndcg": self.ndcg, "mrr": self.rr}
        return found | {robustness(delta): self.reached(delta) for delta in deltas}


def robustness(delta: float) -> str:
    """The name of Robustness-delta: "r0.3"."""
    return f"r{delta:g}"


def truth_positions(found: Ints, truth: Ints) -> Ints:
    """Shape (queries, k): where each returned passage stands in the truth list, from 0; -1 where it does not.

    Args:
        found: shape (queries, k), positions of passages, best first; -1 where an index found no more.
        truth: shape (queries, K), positions of the exact nearest, best first; none of them -1.

    Raises:
        ValueError: not as many lists as truths, or a truth that is shorter than K.
    """
    if len(found) != len(truth) or (truth < 0).any():
        raise ValueError(f"{len(found)} lists for {len(truth)} truths, each of which is to be whole")
    step = max(1, MAX_COMPARISONS // max(found.shape[1] * truth.shape[1], 1))
    result = np.full(found.shape, NOT_FOUND, dtype=np.int64)
    for start in range(0, len(found), step):
        part = slice(start, start + step)
        same = found[part][:, :, None] == truth[part][:, None, :]
        result[part] = np.where(same.any(axis=2), same.argmax(axis=2), NOT_FOUND)
    return result


def kept_values(found: Ints, truth: Ints) -> QueryValues:
    """What of `truth` the first K of `found` hold; arguments and errors as `truth_positions`."""
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
MAX_MISSING_SHARE = 0.05  # resamples in which a level may lie outside, before an interval would leave them out silently
LEVEL_TOLERANCE = 1e-12
RECALL = "recall"


@dataclass(frozen=True)
class IndexSweep:
    """One index at several efforts.

    Attributes:
        name: of the index with the settings that all points share.
        efforts: shape (points,), ascending, above 0.
        qps: shape (points,), queries a second, above 0.
        means: by measure, shape (points,); "recall" among them.
        drawn: by measure, means over resampled queries, shape (points, draws).
        queries: how many there are.
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
        """From the values by query of each point, in the order of `efforts`.

        Args:
            values: a point's values, shape (queries,), by measure; the same measures and queries at each.

        Raises:
            ValueError: no point, efforts that do not ascend, or a number that has no logarithm.
        """
        order, rates = np.asarray(efforts, dtype=np.float64), np.asarray(qps, dtype=np.float64)
        if not len(order) or (np.diff(order) <= 0).any() or order[0] <= 0 or (rates <= 0).any():
            raise ValueError("efforts ascend from above 0, and so are queries a second above it")
        names = list(values[0])
        rows = [point[measure] for measure in names for point in values]
        means = np.array([row.mean() for row in rows]).reshape(len(names), len(order))
        drawn = np.array(resampled_means(rows, draws, seed)).reshape(len(names), len(order), draws)
        size = len(rows[0])
        return cls(name, order, rates, dict(zip(names, means, strict=True)), dict(zip(names, drawn, strict=True)), size)


@dataclass(frozen=True)
class MatchedRecall:
    """What an index is at one mean recall.

    Attributes:
        name, level: which index, and the mean recall.
        effort, qps: there.
        values: by measure, with the interval over queries; its bounds are NaN where the level lies outside of the
            points in more than one resample of 20.
    """

    name: str
    level: float
    effort: float
    qps: float
    values: Mapping[str, Interval]


def at_level(swept: IndexSweep, level: float) -> MatchedRecall | None:
    """What is to be read at one mean recall; None where that is not bracketed."""
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
    """By measure, `one` minus `other` at one mean recall, over the same resamples; None where it is not bracketed.

    Args:
        confidence: of the intervals; for all of m of them to hold together, 1 - 0.05 / m (Bonferroni).

    Raises:
        ValueError: the two were not asked the same number of queries.
    """
    if one.queries != other.queries:
        raise ValueError(f"{one.queries} queries and {other.queries}: only answers to the same queries pair")
    if at_level(one, level) is None or at_level(other, level) is None:
        return None
    found = {}
    for name in one.means:
        (mine, my_draws), (its, its_draws) = _read(one, name, level), _read(other, name, level)
        found[name] = _interval(mine - its, my_draws - its_draws, one.queries, confidence)
    return found


def deviations(indexes: Sequence[IndexSweep], level: float) -> Mapping[str, Mapping[str, Interval]]:
    """By index and measure, how far a value lies from the mean of all indexes, as a share of that mean (Fig. 3).

    Indexes for which the level is not bracketed are left out; fewer than two leave nothing.
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
    """A measure at a level, as it was seen and on each resample; NaN where the level lies outside."""
    seen = _Bracket.of(swept.means[RECALL][:, None], level).read(swept.means[name][:, None])
    return float(seen[0]), _Bracket.of(swept.drawn[RECALL], level).read(swept.drawn[name])


@dataclass(frozen=True)
class _Bracket:
    """Between which two points a level lies, for each of several draws.

    The first point, by growing effort, that reaches the level, and the one before it.
    """

    low: Ints
    high: Ints
    share: Floats  # of the way from the lower to the upper one
    inside: Flags

    @classmethod
    def of(cls, recall: Floats, level: float) -> _Bracket:
        """`recall`: shape (points, draws)."""
        reaches = recall >= level - LEVEL_TOLERANCE
        high = reaches.argmax(axis=0)
        low, every = np.maximum(high - 1, 0), np.arange(recall.shape[1])
        above, below = recall[high, every], recall[low, every]
        inside = reaches.any(axis=0) & ((high > 0) | (np.abs(above - level) <= LEVEL_TOLERANCE))
        apart = np.where(above > below, above - below, 1.0)
        return cls(low, high, np.where(above > below, (level - below) / apart, 1.0).clip(0, 1), inside)

    def read(self, values: Floats) -> Floats:
        """`values`: shape (points, draws); what stands at the level, NaN outside."""
        every = np.arange(values.shape[1])
        below, above = values[self.low, every], values[self.high, every]
        return np.where(self.inside, below + self.share * (above - below), np.nan)


def _interval(value: float, draws: Floats, queries: int, confidence: float = CONFIDENCE) -> Interval:
    """The percentiles of the draws around what was seen."""
    tail, known = (1 - confidence) / 2, draws[np.isfinite(draws)]
    low = high = np.nan
    if len(known) >= (1 - MAX_MISSING_SHARE) * len(draws):
        low, high = np.quantile(known, [tail, 1 - tail]).tolist()
    return Interval(value, low, high, confidence, queries, 0, "percentile")


def loss(values: Floats, exact: Floats, *, seed: int, draws: int = BOOTSTRAP_DRAWS) -> Interval:
    """1 - mean(values) / mean(exact) over the queries where both are defined, with its interval over paired resamples.

    Negative where the index happens to do better.

    Args:
        values, exact: shape (queries,); NaN where the measure is undefined.

    Raises:
        ValueError: the shapes differ, or the exact search has a mean of 0: nothing can be lost.
    """
    if values.shape != exact.shape:
        raise ValueError(f"paired values of the same queries are needed, got {values.shape} and {exact.shape}")
    valid = np.isfinite(values) & np.isfinite(exact)
    mine, truth = values[valid], exact[valid]
    if not truth.sum() > 0:
        raise ValueError("the exact search has a mean of 0")
    ours, theirs = resampled_means([mine, truth], draws, seed)
    known = theirs > 0
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(1 - ours[known] / theirs[known], [tail, 1 - tail]).tolist()
    seen = 1 - float(mine.mean() / truth.mean())
    return Interval(seen, low, high, CONFIDENCE, len(mine), int((~valid).sum()), "percentile")


def least_effort(losses: Sequence[Sequence[Interval]], limit: float) -> int | None:
    """The first of several efforts, in ascending order, all of whose losses are within the limit beyond doubt.

    Args:
        losses: by effort, what is lost by each question set and cutoff.
        limit: as a share, such as 0.01.

    Returns:
        Its place, or None where no effort suffices or nothing was measured.
    """
    fits = (at for at, found in enumerate(losses) if found and all(each.high <= limit for each in found))
    return next(fits, None)


RECALL_BINS = 10  # of recall, by its tenths; full recall has a bin of its own
MIN_BIN_ANSWERS = 10  # answers of a bin that is believed
NEAR_ACCURACY_SHARE = 0.7  # of the exact search's accuracy: what the paper's own choice amounts to


@dataclass(frozen=True)
class RecallBin:
    """Answers to questions of about one recall.

    Attributes:
        recall: its lower end, 0 to 1 in tenths.
        answers: how many.
        accuracy, exact: the share of correct ones, and that by the exact search on the same questions.
        ratio: accuracy / exact with its interval; NaN where the exact search is never right.
    """

    recall: float
    answers: int
    accuracy: float
    exact: float
    ratio: Interval


def accuracy_by_recall(recall: Floats, correct: Flags, exact: Flags, *, seed: int) -> tuple[RecallBin, ...]:
    """Bins of recall that hold an answer, ascending.

    Args:
        recall: shape (answers,), in 0..1.
        correct, exact: the same shape: whether the answer was correct, and that from the exact search.

    Raises:
        ValueError: the shapes differ.
    """
    if not recall.shape == correct.shape == exact.shape:
        raise ValueError("recall, correct and exact have a value for each answer")
    tenths = np.floor(recall * RECALL_BINS + EPSILON).astype(int)
    return tuple(
        _bin(tenth / RECALL_BINS, correct[tenths == tenth], exact[tenths == tenth], seed)
        for tenth in np.unique(tenths).tolist()
    )


def choose_delta(
    bins: Sequence[RecallBin], near: float = NEAR_ACCURACY_SHARE, least: int = MIN_BIN_ANSWERS
) -> float | None:
    """The smallest recall above 0 from which on every bin of `least` answers or more is near the exact search.

    Args:
        near: the share of the exact search's accuracy that is near enough.

    Returns:
        None where not even the highest bin is, or none holds enough answers.
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
