"""Wilcoxon's signed-rank test, for 21 differences or more: fewer flip their signs (`stats.paired`).

The same p as `scipy.stats.wilcoxon`, which the tests hold it to. It is here because importing
`scipy.stats` takes half a second, and neither the ranks nor their distribution need it.
"""

from __future__ import annotations

import math

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.light import distributions

ALL_SUMS = 50  # untied differences up to which the distribution of the rank sum is counted; beyond, it is normal


def mean_ranks(values: Floats) -> tuple[Floats, Floats]:
    """Shape (n,): the rank of each value from 1, equal ones sharing their mean; and how often each value is there."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place], count.astype(np.float64)


def signed_rank_test(differences: Floats) -> float:
    """Two-sided p: exact up to 50 differences without ties, otherwise of the normal distribution, ties corrected for.

    Args:
        differences: shape (n,), none 0; at least one.

    Source: Wilcoxon, "Individual comparisons by ranking methods", 1945.
    """
    ranks, ties = mean_ranks(np.abs(differences))
    positive = float(ranks[differences > 0].sum())
    if differences.size <= ALL_SUMS and (ties == 1).all():
        return _exact(positive, differences.size)
    return _normal(positive, differences.size, ties)


def _exact(positive: float, n: int) -> float:
    """Of the sum of the positive ranks, each of 1 to n being positive or not with the same chance."""
    chances = np.ones(1)
    for rank in range(1, n + 1):
        more = np.zeros(chances.size + rank)
        more[: chances.size] = chances * 0.5
        more[-chances.size :] += chances * 0.5
        chances = more
    lesser = int(min(positive, n * (n + 1) // 2 - positive))
    return min(1.0, 2 * float(chances[: lesser + 1].sum()))


def _normal(positive: float, n: int, ties: Floats) -> float:
    variance = (n * (n + 1.0) * (2.0 * n + 1.0) - (ties**3 - ties).sum() / 2) / 24
    z = (positive - n * (n + 1.0) * 0.25) / math.sqrt(variance)
    return float(2 * distributions().ndtr(-abs(z)))
