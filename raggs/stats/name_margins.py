"""Statistics of the name and noise diagnoses: margins of proper names, their prediction, and recovery from noise.

Margins: how much of a score depends on the name, and how much on the topic? A question "Which works by A on T?" is
scored against five candidates. C1 has the right author and topic. C2a and C2b have another author on the same topic, C3
the right author on another topic, and C4 another author on another topic. Source: "Practical RAG Evaluation" (2025),
sections 4.2 and 4.3, appendix A.2 and A.3. Scores and margins have the shape (runs, questions). All runs have the same
questions; the candidates other than C1 are drawn again in each run. The functions do not depend on the model that
produced the scores.

Prediction: how well does a cheap measurement predict an expensive one? The answer is a rank correlation over several
changes. The expensive measurement is known per question, so the interval comes from resampled questions. The cheap one
is treated as exact.

Noise and rewriting: each question has a value without noise, with noise, and after rewriting. A value is the cosine to
an ideal text, or a retrieval measure. Comparisons are paired over questions. Source: section 4.4 and appendix A.4,
which report the mean cosines and their drop. The intervals and the recovered share are additions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from raggs.base.arrays import Flags, Floats
from raggs.stats.intervals import BOOTSTRAP_DRAWS as intervals_DRAWS
from raggs.stats.intervals import Interval, bootstrap_mean, resampled_means
from raggs.stats.order_agreement import kendall_tau_b, overlap_at_k, spearman

ROLES = ("C1", "C2a", "C2b", "C3", "C4")
LEAST_BASE = 0.02  # smallest base margin for which percentages are computed
CONFIDENCE = 0.95


class MarginBounds(NamedTuple):
    """Bounds of a 95% interval; NaN with fewer than two values, or if a resample has no defined ratio."""

    low: float
    high: float


@dataclass(frozen=True)
class Margins:
    """The three margins, each of shape (runs, questions), in the unit of the scores.

    Attributes:
        name: s(C1) - max(s(C2a), s(C2b)): gain from the right name.
        topic: s(C1) - s(C3): gain from the right topic.
        both: s(C1) - s(C4): gain from the right name and topic.
    """

    name: Floats
    topic: Floats
    both: Floats


@dataclass(frozen=True)
class MarginMean:
    """A mean over questions and runs.

    Attributes:
        value: mean of the runs' means; NaN if there are no values.
        spread: standard deviation between the runs' means (n - 1); NaN for one run.
        by_runs: bootstrap interval over the runs' means; shows the variation with other distractors.
        by_questions: bootstrap interval over the questions' means; shows the variation with other questions.
        count: number of (run, question) cells with a value.
    """

    value: float
    spread: float
    by_runs: MarginBounds
    by_questions: MarginBounds
    count: int


@dataclass(frozen=True)
class MarginChange:
    """Effect of an ablation, such as a removed name, on a margin.

    Attributes:
        percent: mean of (ablated - base) / base * 100 over the cells whose base is at least `least`.
        of_means: relative change of the mean over all cells, in percent; not inflated by small bases.
        of_means_bounds: interval of `of_means` over resampled questions.
        absolute: mean of ablated - base over all cells, in the unit of the scores.
        left_out: number of cells whose base is too small for a percentage.
    """

    percent: MarginMean
    of_means: float
    of_means_bounds: MarginBounds
    absolute: MarginMean
    left_out: int


def margins(scores: Floats) -> Margins:
    """Return the margins of scored candidates.

    Args:
        scores: shape (runs, questions, 5), the candidates in the order of `ROLES`; higher is better.

    Raises:
        ValueError: the shape is wrong, or a score is not finite.
    """
    found = np.asarray(scores, dtype=np.float64)
    if found.ndim != 3 or found.shape[2] != len(ROLES):
        raise ValueError(f"expected scores of shape (runs, questions, {len(ROLES)}), got {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError("a score is not finite")
    right, first, second, topic, neither = np.moveaxis(found, 2, 0)
    return Margins(right - np.maximum(first, second), right - topic, right - neither)


def mean_of(values: Floats, *, seed: int) -> MarginMean:
    """Return the mean of `values`, shape (runs, questions), with its spread and intervals; NaN cells are ignored.

    A run or a question without any value is excluded.

    Raises:
        ValueError: the shape is wrong, or a value is infinite.
    """
    if values.ndim != 2:
        raise ValueError(f"expected values of shape (runs, questions), got {values.shape}")
    there = ~np.isnan(values)
    by_run, by_question = _means(values, there, 1), _means(values, there, 0)
    return MarginMean(
        value=float(by_run.mean()) if by_run.size else math.nan,
        spread=float(by_run.std(ddof=1)) if by_run.size > 1 else math.nan,
        by_runs=MarginBounds(*bootstrap_mean(by_run, confidence=CONFIDENCE, seed=seed)),
        by_questions=MarginBounds(*bootstrap_mean(by_question, confidence=CONFIDENCE, seed=seed)),
        count=int(there.sum()),
    )


def margin_change(ablated: Floats, base: Floats, *, seed: int, least: float = LEAST_BASE) -> MarginChange:
    """Compare margins with and without an ablation, paired by run and question.

    Args:
        ablated, base: margins for the same questions, runs and distractors.
        seed: random seed of the resamples.
        least: smallest base for which a percentage is computed; above 0.

    Raises:
        ValueError: the shapes differ, or `least` is not above 0.
    """
    if ablated.shape != base.shape:
        raise ValueError(f"expected two arrays of margins of the same shape, got {ablated.shape} and {base.shape}")
    if not least > 0:
        raise ValueError(f"`least` must be above 0, got {least}")
    large = base >= least
    percent = np.divide(ablated - base, base, out=np.full(base.shape, math.nan), where=large) * 100
    share, bounds = ratio(ablated - base, base, seed=seed)
    return MarginChange(
        percent=mean_of(percent, seed=seed),
        of_means=share * 100,
        of_means_bounds=MarginBounds(bounds.low * 100, bounds.high * 100),
        absolute=mean_of(ablated - base, seed=seed),
        left_out=int(base.size - large.sum()),
    )


def ratio(above: Floats, below: Floats, *, seed: int) -> tuple[float, MarginBounds]:
    """Return mean(above) / mean(below), both of shape (runs, questions), with its interval over questions.

    NaN if the mean of `below` is 0 or negative, because a ratio to such a margin is meaningless. The bounds are NaN if
    this is so in any resample, or if there is only one question.
    """
    upper, lower = above.mean(axis=0), below.mean(axis=0)
    draws = resampled_means([upper, lower], intervals_DRAWS, seed)
    value, drawn = _ratio(upper.mean(), lower.mean()), [_ratio(*pair) for pair in zip(*draws, strict=True)]
    if upper.size < 2 or np.isnan(drawn).any():
        return value, MarginBounds(math.nan, math.nan)
    tail = (1 - CONFIDENCE) / 2
    return value, MarginBounds(*map(float, np.quantile(drawn, [tail, 1 - tail])))


def _ratio(above: float, below: float) -> float:
    return float(above / below) if below > 0 else math.nan


def _means(values: Floats, there: Flags, axis: int) -> Floats:
    """Return means along one axis over the defined values; rows without a defined value are excluded."""
    counts = there.sum(axis=axis)
    sums = np.where(there, values, 0.0).sum(axis=axis)
    found: Floats = sums[counts > 0] / counts[counts > 0]
    return found


PREDICTION_DRAWS = 1000
MIN_POINTS = 3  # minimum points for a rank correlation


@dataclass(frozen=True)
class Prediction:
    """How well a cheap measurement predicts an expensive one: their rank correlation, in -1..1.

    Attributes:
        spearman: correlation of the cheap values with the means of the expensive ones, ties at their mean rank; NaN
            with fewer than three points, or if one side does not vary.
        low, high: 95% percentile interval over resampled questions; NaN if no resample has a correlation.
        points: number of changes compared.
    """

    spearman: float
    low: float
    high: float
    points: int


def predict(cheap: Floats, dear: Floats, *, seed: int) -> Prediction:
    """Return how well `cheap` predicts the order of the means of `dear`.

    Args:
        cheap: shape (points,), the cheap value of each change.
        dear: shape (points, questions), the expensive values of each change, for the same questions in the same order.
        seed: random seed of the resamples.

    Raises:
        ValueError: the shapes do not match, or a value is not finite.
    """
    if dear.ndim != 2 or cheap.shape != dear.shape[:1]:
        raise ValueError(f"expected one row of questions per point, got shapes {cheap.shape} and {dear.shape}")
    if not (np.isfinite(cheap).all() and np.isfinite(dear).all()):
        raise ValueError("a value is not finite")
    points, questions = dear.shape
    if points < MIN_POINTS or not questions:
        return Prediction(math.nan, math.nan, math.nan, points)
    drawn = np.array(resampled_means(list(dear), PREDICTION_DRAWS, seed))
    found = np.array([_correlation(cheap, column) for column in drawn.T])
    told = found[~np.isnan(found)]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(told, [tail, 1 - tail]) if told.size else (math.nan, math.nan)
    return Prediction(_correlation(cheap, dear.mean(axis=1)), float(low), float(high), points)


def _correlation(first: Floats, second: Floats) -> float:
    ours, theirs = (dict(zip(map(str, range(len(each))), each.tolist(), strict=True)) for each in (first, second))
    return spearman(ours, theirs)


TAIL_PERCENT = 2.5  # percent of the resamples beyond each bound of an interval


@dataclass(frozen=True)
class RecoveredShare:
    """The share of a loss that was recovered; NaN if the loss is not significant.

    Attributes:
        value: 1 if everything was recovered, negative if the values became worse.
        low, high: 95% interval over resampled questions.
    """

    value: float
    low: float
    high: float


NO_SHARE = RecoveredShare(math.nan, math.nan, math.nan)


def noise_change(before: Floats, after: Floats, seed: int) -> Interval:
    """Return the mean of after - before with its interval, over the questions that have both values."""
    return bootstrap_mean(after - before, seed=seed)


def percent(before: Floats, after: Floats) -> float:
    """Return the change of the mean in percent, over the questions that have both values; NaN if the first mean is
    0.
    """
    both = ~np.isnan(before - after)
    base = float(before[both].sum())
    return 100 * (float(after[both].sum()) - base) / base if base else math.nan


def recovered_share(plain: Floats, noisy: Floats, rewritten: Floats, seed: int) -> RecoveredShare:
    """Return the recovered share of the loss by noise: (rewritten - noisy) / (plain - noisy), as a ratio of means.

    NaN if the interval of the loss is not above 0, because a share of such a loss is meaningless. Also NaN with fewer
    than two questions that have all three values.
    """
    valid = ~np.isnan(plain + noisy + rewritten)
    lost, back = (plain - noisy)[valid], (rewritten - noisy)[valid]
    if lost.size < 2 or not bootstrap_mean(lost, seed=seed).low > 0:
        return NO_SHARE
    drawn_lost, drawn_back = resampled_means([lost, back], intervals_DRAWS, seed)
    shares = drawn_back[drawn_lost > 0] / drawn_lost[drawn_lost > 0]
    low, high = np.percentile(shares, [TAIL_PERCENT, 100 - TAIL_PERCENT])
    return RecoveredShare(float(back.mean() / lost.mean()), float(low), float(high))


def overlaps(first: Sequence[Sequence[str]], second: Sequence[Sequence[str]], k: int) -> Floats:
    """Return, for each question, the share of the first `k` passages that both lists contain."""
    return _pairwise(first, second, k, lambda one, other: overlap_at_k(one, other, k))


def taus(first: Sequence[Sequence[str]], second: Sequence[Sequence[str]], k: int) -> Floats:
    """Return Kendall's tau of each question over passages in both top `k`; NaN with fewer than two."""
    return _pairwise(first, second, k, kendall_tau_b)


def _pairwise(
    first: Sequence[Sequence[str]],
    second: Sequence[Sequence[str]],
    k: int,
    compare: Callable[[Sequence[str], Sequence[str]], float],
) -> Floats:
    return np.array([compare(one[:k], other[:k]) for one, other in zip(first, second, strict=True)], dtype=np.float64)
