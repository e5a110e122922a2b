"""What noise takes from a figure, and what a rewriter brings back: paired over questions.

A figure is a cosine to an ideal text or a measure of retrieval; of each question there is one without noise, one with,
and one after rewriting. Source: "Practical RAG Evaluation" (2025), section 4.4 and appendix A.4, which gives the
mean cosines and their drop; the intervals and the share brought back are added here.

Pure: one value a question in, NaN where it is undefined; it knows neither texts nor who rewrote them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats
from raggs.stats.agreement import kendall_tau_b, overlap_at_k
from raggs.stats.comparison import Interval, bootstrap_mean
from raggs.stats.comparison.intervals import DRAWS, resampled_means

TAIL = 2.5  # percent beyond each end of an interval


@dataclass(frozen=True)
class Share:
    """A share of a loss that was made good; NaN where the loss itself may be none.

    Attributes:
        value: 1 where all is back, below 0 where it got worse.
        low, high: 95% over resampled questions.
    """

    value: float
    low: float
    high: float


NO_SHARE = Share(math.nan, math.nan, math.nan)


def change(before: Floats, after: Floats, seed: int) -> Interval:
    """The mean difference, with its interval over the questions that have both values."""
    return bootstrap_mean(after - before, seed=seed)


def percent(before: Floats, after: Floats) -> float:
    """The change of the mean in percent, over the questions that have both values; NaN of a mean of 0."""
    both = ~np.isnan(before - after)
    base = float(before[both].sum())
    return 100 * (float(after[both].sum()) - base) / base if base else math.nan


def regained(plain: Floats, noisy: Floats, rewritten: Floats, seed: int) -> Share:
    """What share of the loss by noise a rewriter brings back: (rewritten - noisy) / (plain - noisy), of their means.

    NaN where the interval of the loss does not leave 0 out: a share of what may be nothing says nothing.
    """
    valid = ~np.isnan(plain + noisy + rewritten)
    lost, back = (plain - noisy)[valid], (rewritten - noisy)[valid]
    if lost.size < 2 or not bootstrap_mean(lost, seed=seed).low > 0:
        return NO_SHARE
    drawn_lost, drawn_back = resampled_means([lost, back], DRAWS, seed)
    shares = drawn_back[drawn_lost > 0] / drawn_lost[drawn_lost > 0]
    low, high = np.percentile(shares, [TAIL, 100 - TAIL])
    return Share(float(back.mean() / lost.mean()), float(low), float(high))


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
