"""How sharp a judge is on long lists, and what it gives to the place where a passage is shown.

A judge of Plackett-Luce picks the best of a list, then the best of what is left, each pick by the softmax of

    score = b * utility + f * z        z: +1/2 where the passage was shown first, -1/2 last, evenly between

with sharpness b and favour f, the log-odds that being shown first rather than last adds; f / b is the same in grades.
Utilities are known, in grades: from the posterior of the rank stage, so that b is on the scale of its own sharpness.
They are not free of error, which makes b a little too small. Found by maximum likelihood (Newton's steps), with a wide
prior that only keeps b finite where a judge never errs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats
from raggs.ranking.likelihood import stage_chances

STEPS = 60
STRIDE = 2.0  # largest move of a parameter in one step
CLOSE = 1e-8
LEAST = 0.25  # sharpness below which grades are no scale
SPREAD = 20.0  # of the prior of both parameters, normal around 0


@dataclass(frozen=True)
class Picks:
    """One order.

    Attributes:
        features: shape (n, 2): utility and z of each passage, in the judged order, best first.
    """

    features: Floats

    @classmethod
    def of(cls, utilities: Sequence[float], places: Sequence[int]) -> Picks:
        """From the utility of each passage, best first, and the place from 0 at which it was shown."""
        shown = np.asarray(places, dtype=np.float64)
        z = 0.5 - shown / max(1, len(shown) - 1)
        return cls(np.stack([np.asarray(utilities, dtype=np.float64), z], axis=1))


@dataclass(frozen=True)
class Fitted:
    """Of some orders: `sharpness` b, and `favour` f in log-odds."""

    sharpness: float
    favour: float


FLAT = Fitted(0.0, 0.0)


def fit_picks(orders: Sequence[Picks], start: Fitted = FLAT) -> Fitted:
    """The most likely sharpness and favour, from any start; 0 and 0 without an order of two passages."""
    at = np.array([start.sharpness, start.favour])
    for _ in range(STEPS):
        slope, information = -at / SPREAD**2, np.eye(2) / SPREAD**2
        for picks in orders:
            own = _stages(picks.features, at)
            slope, information = slope + own[0], information + own[1]
        step = np.linalg.solve(information, slope)
        at = at + np.clip(step, -STRIDE, STRIDE)
        if np.abs(step).max() < CLOSE:
            break
    return Fitted(float(at[0]), float(at[1]))


@dataclass(frozen=True)
class ByPool:
    """Estimates over all pools as one value a pool, whose mean they are: jackknife's pseudo-values.

    So that resampled pools give intervals (Efron and Tibshirani, 1993, chapter 11). Shapes (pools,).

    Attributes:
        sharpness, favour: b and f.
        grades: f / b, what being shown first rather than last adds, in grades; NaN where b is near 0. Errors of the
            utilities make b and f too small alike, and leave this as it is.
    """

    sharpness: Floats
    favour: Floats
    grades: Floats


def by_pool(pools: Sequence[Sequence[Picks]]) -> ByPool:
    """The estimates of the orders of each pool."""
    whole, count = _row(fit_picks([picks for pool in pools for picks in pool])), len(pools)
    if count < 2:
        return ByPool(*(np.full(count, value) for value in whole))
    rest = ([each for at, pool in enumerate(pools) if at != out for each in pool] for out in range(count))
    left = np.array([_row(fit_picks(orders, Fitted(whole[0], whole[1]))) for orders in rest])
    return ByPool(*(count * np.array(whole) - (count - 1) * left).T)


def _row(found: Fitted) -> tuple[float, float, float]:
    b, f = found.sharpness, found.favour
    return b, f, f / b if b >= LEAST else np.nan


def _stages(features: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Gradient and information of one order, summed over its picks: what was picked less what was expected."""
    chances = stage_chances(features @ at)
    expected = chances @ features
    slope = (features - expected).sum(axis=0)
    weights = chances.sum(axis=0)
    information = (features * weights[:, None]).T @ features - expected.T @ expected
    return slope, information
