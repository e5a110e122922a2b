"""Proper-name margins: how much of a score hangs on the name, how much on the topic; what changing it costs.

A question "Which works by A on T?" is scored against five candidates: C1 the right author and topic, C2a and C2b other
authors on the same topic, C3 the right author on another topic, C4 neither. Source: "Practical RAG Evaluation" (2025),
sections 4.2 and 4.3, appendix A.2 and A.3.

Scores and margins have the shape (runs, questions): the questions are the same in all runs, what stands beside them is
drawn anew in each. Nothing here knows what gave the scores, nor by what the texts were changed.

How well something cheap says what something dear will do: a rank correlation over the things that were changed.

The dear side is known question by question, so that its interval is over resampled questions; the cheap side is taken
as it was measured. Pure: numbers in, a frozen result out.

What noise takes from a figure, and what a rewriter brings back: paired over questions.

A figure is a cosine to an ideal text or a measure of retrieval; of each question there is one without noise, one with,
and one after rewriting. Source: "Practical RAG Evaluation" (2025), section 4.4 and appendix A.4, which gives the
mean cosines and their drop; the intervals and the share brought back are added here.

Pure: one value a question in, NaN where it is undefined; it knows neither texts nor who rewrote them.
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
LEAST_BASE = 0.02  # of a base margin that percentages are taken of
CONFIDENCE = 0.95


class MarginBounds(NamedTuple):
    """The ends of a 95% interval; NaN where fewer than two values are there to tell."""

    low: float
    high: float


@dataclass(frozen=True)
class Margins:
    """The three margins, each of shape (runs, questions), in the unit of the scores.

    Attributes:
        name: s(C1) - max(s(C2a), s(C2b)): what the right name is worth.
        topic: s(C1) - s(C3): what the right topic is worth.
        both: s(C1) - s(C4).
    """

    name: Floats
    topic: Floats
    both: Floats


@dataclass(frozen=True)
class MarginMean:
    """A mean over questions and runs.

    Attributes:
        value: the mean of the runs' means; NaN where nothing is defined.
        spread: standard deviation between the runs' means (n - 1); NaN for one run.
        by_runs: bootstrap over the runs' means: how far other impostors would move it.
        by_questions: bootstrap over the questions' means: how far other questions would move it.
        count: cells with a value, of runs times questions.
    """

    value: float
    spread: float
    by_runs: MarginBounds
    by_questions: MarginBounds
    count: int


@dataclass(frozen=True)
class MarginChange:
    """What an ablation does to a margin.

    Attributes:
        percent: mean of (ablated - base) / base * 100 over the cells whose base is at least `LEAST_BASE`.
        of_means: the same of the two means over all cells, in percent: no small base can blow it up.
        of_means_bounds: of that, over resampled questions.
        absolute: mean of ablated - base over all cells, in the unit of the scores.
        left_out: cells whose base is too small for a percentage.
    """

    percent: MarginMean
    of_means: float
    of_means_bounds: MarginBounds
    absolute: MarginMean
    left_out: int


def margins(scores: Floats) -> Margins:
    """The margins of bundles.

    Args:
        scores: shape (runs, questions, 5), the candidates in the order of `ROLES`; higher is better.

    Raises:
        ValueError: another shape, or a score that is not finite.
    """
    found = np.asarray(scores, dtype=np.float64)
    if found.ndim != 3 or found.shape[2] != len(ROLES):
        raise ValueError(f"scores of shape (runs, questions, {len(ROLES)}) are needed, got {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError("a score is not finite")
    right, first, second, topic, neither = np.moveaxis(found, 2, 0)
    return Margins(right - np.maximum(first, second), right - topic, right - neither)


def mean_of(values: Floats, *, seed: int) -> MarginMean:
    """The mean of `values`, shape (runs, questions), with its spread and intervals; NaN where there is no value.

    A run or a question without any value is left out.

    Raises:
        ValueError: another shape, or an infinite value.
    """
    if values.ndim != 2:
        raise ValueError(f"values of shape (runs, questions) are needed, got {values.shape}")
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
    """What became of margins, cell by cell, shape (runs, questions).

    Args:
        ablated, base: of the same questions, runs and impostors.
        seed: of the resamples.
        least: bases below it have no percentage; above 0.

    Raises:
        ValueError: the shapes differ, or `least` is not above 0.
    """
    if ablated.shape != base.shape:
        raise ValueError(f"margins of the same cells are needed, got the shapes {ablated.shape} and {base.shape}")
    if not least > 0:
        raise ValueError(f"percentages are of bases above 0, got {least}")
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
    """The mean of `above` by that of `below`, shape (runs, questions), with its interval over resampled questions.

    NaN where the mean below is not above 0: a ratio to a margin that is none, or the wrong way round, says nothing.
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
    """Along one axis, over what is there; lines with nothing are left out."""
    counts = there.sum(axis=axis)
    sums = np.where(there, values, 0.0).sum(axis=axis)
    found: Floats = sums[counts > 0] / counts[counts > 0]
    return found


PREDICTION_DRAWS = 1000
MIN_POINTS = 3  # points of which a rank correlation says anything


@dataclass(frozen=True)
class Prediction:
    """A rank correlation, in -1..1.

    Attributes:
        spearman: of the cheap values with the means of the dear ones, ties at their mean rank; NaN below three points,
            or where one side does not vary.
        low, high: 95% percentile interval over resampled questions; NaN where no draw has a correlation.
        points: how many things were changed.
    """

    spearman: float
    low: float
    high: float
    points: int


def predict(cheap: Floats, dear: Floats, *, seed: int) -> Prediction:
    """How well `cheap` orders the means of `dear`.

    Args:
        cheap: shape (points,).
        dear: shape (points, questions), of the same questions in the same order.
        seed: of the resamples.

    Raises:
        ValueError: the shapes do not fit, or a value is not finite.
    """
    if dear.ndim != 2 or cheap.shape != dear.shape[:1]:
        raise ValueError(f"a row of questions for each point is needed, got the shapes {cheap.shape} and {dear.shape}")
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


TAIL_PERCENT = 2.5  # percent beyond each end of an interval


@dataclass(frozen=True)
class RecoveredShare:
    """A share of a loss that was made good; NaN where the loss itself may be none.

    Attributes:
        value: 1 where all is back, below 0 where it got worse.
        low, high: 95% over resampled questions.
    """

    value: float
    low: float
    high: float


NO_SHARE = RecoveredShare(math.nan, math.nan, math.nan)


def noise_change(before: Floats, after: Floats, seed: int) -> Interval:
    """The mean difference, with its interval over the questions that have both values."""
    return bootstrap_mean(after - before, seed=seed)


def percent(before: Floats, after: Floats) -> float:
    """The change of the mean in percent, over the questions that have both values; NaN of a mean of 0."""
    both = ~np.isnan(before - after)
    base = float(before[both].sum())
    return 100 * (float(after[both].sum()) - base) / base if base else math.nan


def recovered_share(plain: Floats, noisy: Floats, rewritten: Floats, seed: int) -> RecoveredShare:
    """What share of the loss by noise a rewriter brings back: (rewritten - noisy) / (plain - noisy), of their means.

    NaN where the interval of the loss does not leave 0 out: a share of what may be nothing says nothing.
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
    """Of each question, the share of the first `k` passages that two lists have in common."""
    return _pairwise(first, second, k, lambda one, other: overlap_at_k(one, other, k))


def taus(first: Sequence[Sequence[str]], second: Sequence[Sequence[str]], k: int) -> Floats:
    """Of each question, Kendall's tau over the passages that both have among their first `k`; NaN below two."""
    return _pairwise(first, second, k, kendall_tau_b)


def _pairwise(
    first: Sequence[Sequence[str]],
    second: Sequence[Sequence[str]],
    k: int,
    compare: Callable[[Sequence[str], Sequence[str]], float],
) -> Floats:
    return np.array([compare(one[:k], other[:k]) for one, other in zip(first, second, strict=True)], dtype=np.float64)
