"""Sharpness and position bias of a judge on lists, and agreement of repeated orders of one list.

A Plackett-Luce judge picks the best of a list, then the best of the rest, and so on. Each pick follows the softmax of

    score = b * utility + f * z        z: +1/2 if the passage was shown first, -1/2 if last, evenly spaced between

with the sharpness b and the position bias f. A passage that is shown first instead of last gains f in log-odds, or
f / b in grades. Utilities are given in grades, from the posterior of the rank stage, so b is on the same scale as the
sharpness that the rank stage estimates. Errors in the utilities bias b slightly downwards. Both b and f are
maximum-likelihood estimates (Newton's method). A wide prior only keeps b finite for a judge without errors.

Repeated orders of one list: how far does a judge agree with itself, at which ranks, and how much does the shown
position matter? Run-to-run disagreement is the share of all pairs that two orders of the same passages rank
differently. Kendall's tau is 1 minus twice this share. The source reports 3 to 5% for identical inputs ("Practical RAG
Evaluation", 2025, section 3.4.1). Random orders have 50%.

One order of a complete list, combined with known grades (`with_grades`): the rank stage starts from grades, so two of
its rankings are similar even if the judge guesses. To measure the benefit of its calls, compare a ranking with one
order that uses the same grades. This order is that of the Plackett-Luce posterior with utilities normal around the
grades (`raggs.ranking.posterior`), at the sharpness that maximises the evidence. A judge that guesses then hardly
changes the order by grades, except among equal grades. A sharp judge determines the order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.ranking.posterior import (
    SHARPNESS,
    JudgedLists,
    JudgedOrders,
    JudgeModel,
    Prior,
    fit,
    one_blas_thread,
    stage_chances,
)

MAX_NEWTON_STEPS = 60
MAX_PARAMETER_STEP = 2.0  # largest change of a parameter per step of Newton's method
CLOSE = 1e-8
MIN_SHARPNESS = 0.25  # for a lower sharpness, the position bias in grades is undefined
PRIOR_SPREAD = 20.0  # standard deviation of the normal prior of both parameters


@dataclass(frozen=True)
class OrderPicks:
    """One order of a list, as features of its passages.

    Attributes:
        features: shape (n, 2): utility and z of each passage, in the judged order, best first.
    """

    features: Floats

    @classmethod
    def of(cls, utilities: Sequence[float], places: Sequence[int]) -> OrderPicks:
        """Return the order from each passage's utility and shown position (from 0), both best passage first."""
        shown = np.asarray(places, dtype=np.float64)
        z = 0.5 - shown / max(1, len(shown) - 1)
        return cls(np.stack([np.asarray(utilities, dtype=np.float64), z], axis=1))


@dataclass(frozen=True)
class SharpnessFit:
    """Parameters fitted to some orders: `sharpness` b, and `favour` f (position bias in log-odds)."""

    sharpness: float
    favour: float


FLAT = SharpnessFit(0.0, 0.0)


def fit_picks(orders: Sequence[OrderPicks], start: SharpnessFit = FLAT) -> SharpnessFit:
    """Return the maximum-likelihood sharpness and position bias; both are 0 if no order has two passages.

    The result does not depend on `start`.
    """
    at = np.array([start.sharpness, start.favour])
    for _ in range(MAX_NEWTON_STEPS):
        slope, information = -at / PRIOR_SPREAD**2, np.eye(2) / PRIOR_SPREAD**2
        for picks in orders:
            own = _stages(picks.features, at)
            slope, information = slope + own[0], information + own[1]
        step = np.linalg.solve(information, slope)
        at = at + np.clip(step, -MAX_PARAMETER_STEP, MAX_PARAMETER_STEP)
        if np.abs(step).max() < CLOSE:
            break
    return SharpnessFit(float(at[0]), float(at[1]))


@dataclass(frozen=True)
class PoolEstimates:
    """Jackknife pseudo-values of the estimates, one per pool; each of shape (pools,).

    Their mean is the estimate over all pools, corrected for bias. Resampling them gives intervals (Efron and
    Tibshirani, 1993, chapter 11). If there is only one pool, its value is the estimate itself.

    Attributes:
        sharpness, favour: b and f, the sharpness and the position bias in log-odds.
        grades: f / b, the gain of being shown first instead of last, in grades; NaN if b is below 0.25, with all pools
            or without this pool. Errors of the utilities reduce b and f alike, so they hardly change the ratio.
    """

    sharpness: Floats
    favour: Floats
    grades: Floats


def by_pool(pools: Sequence[Sequence[OrderPicks]]) -> PoolEstimates:
    """Fit sharpness and position bias to the orders of all pools; return the pseudo-values of the pools."""
    whole, count = _row(fit_picks([picks for pool in pools for picks in pool])), len(pools)
    if count < 2:
        return PoolEstimates(*(np.full(count, value) for value in whole))
    rest = ([each for at, pool in enumerate(pools) if at != out for each in pool] for out in range(count))
    left = np.array([_row(fit_picks(orders, SharpnessFit(whole[0], whole[1]))) for orders in rest])
    return PoolEstimates(*(count * np.array(whole) - (count - 1) * left).T)


def _row(found: SharpnessFit) -> tuple[float, float, float]:
    b, f = found.sharpness, found.favour
    return b, f, f / b if b >= MIN_SHARPNESS else np.nan


def _stages(features: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Return gradient (observed minus expected features) and information of one order, summed over its picks."""
    chances = stage_chances(features @ at)
    expected = chances @ features
    slope = (features - expected).sum(axis=0)
    weights = chances.sum(axis=0)
    information = (features * weights[:, None]).T @ features - expected.T @ expected
    return slope, information


@dataclass(frozen=True)
class ObservedOrder:
    """An order that a judge gave to some passages.

    Attributes:
        shown: shape (n,), numbers of the passages from 0, in the order in which they were shown.
        order: shape (n,), the same numbers, best first.
    """

    shown: Ints
    order: Ints

    @classmethod
    def of(cls, shown: Sequence[str], order: Sequence[str]) -> ObservedOrder:
        """Return the order from ids.

        Raises:
            ValueError: an id occurs twice, or the two lists have different ids.
        """
        numbers = {name: number for number, name in enumerate(sorted(shown))}
        if len(numbers) != len(shown) or sorted(order) != sorted(shown):
            raise ValueError("an order must contain each shown passage exactly once")
        return cls(*(np.array([numbers[name] for name in names], dtype=np.int64) for names in (shown, order)))

    @property
    def alike(self) -> bytes:
        """Key of the shown order: two orders have the same key if their passages were shown in the same order."""
        return self.shown.tobytes()


@dataclass(frozen=True)
class ReversedPairs:
    """Pairs of passages whose order changed when they were shown in the opposite order.

    Attributes:
        toward, away: number of pairs whose first-shown (last-shown) passage won both times. The two numbers
            are equal on average for a judge without position bias.
    """

    toward: int
    away: int

    @property
    def share(self) -> float:
        """Share of changed pairs whose first-shown passage won; NaN if no pair changed."""
        both = self.toward + self.away
        return self.toward / both if both else math.nan


def disagreement(first: ObservedOrder, second: ObservedOrder) -> float:
    """Return the share of passage pairs that two orders rank differently, 0..1; NaN with fewer than two passages."""
    size = len(first.order)
    if size < 2:
        return math.nan
    return float((_precedence(first.order) != _precedence(second.order)).sum() / (size * (size - 1)))


def mean_disagreement(orders: Sequence[ObservedOrder], *, same: bool) -> float:
    """Return the mean disagreement over pairs of orders; NaN if there are no such pairs.

    With `same`, only pairs with the same shown order count, else only pairs with different shown orders.
    """
    pairs = [pair for pair in combinations(orders, 2) if (pair[0].alike == pair[1].alike) == same]
    return float(np.mean([disagreement(*pair) for pair in pairs])) if pairs else math.nan


def mean_overlap(orders: Sequence[ObservedOrder], k: int, *, same: bool) -> float:
    """Return the mean share of common passages among the first `k`, over pairs of orders as in `mean_disagreement`."""
    pairs = [pair for pair in combinations(orders, 2) if (pair[0].alike == pair[1].alike) == same]
    tops = [[set(each.order[:k].tolist()) for each in pair] for pair in pairs]
    return float(np.mean([len(one & other) / max(1, len(one)) for one, other in tops])) if tops else math.nan


def neighbours_kept(first: ObservedOrder, second: ObservedOrder) -> Flags:
    """Return which neighbours of the first order (ranks i and i + 1) have the same order in the second, shape (n -
    1,).
    """
    rank = np.argsort(second.order)
    return np.asarray(rank[first.order[:-1]] < rank[first.order[1:]])


def kept_by_place(pairs: Sequence[tuple[ObservedOrder, ObservedOrder]], ends: Sequence[int]) -> Floats:
    """Return how often neighbours keep their order, by range of ranks; NaN for an empty range.

    The rank of a pair of neighbours is that of its higher-ranked passage in the first order.

    Args:
        pairs: pairs of orders.
        ends: last rank of each range, ascending; the first range starts at rank 1.
    """
    kept = [neighbours_kept(first, second) for first, second in pairs]
    none = np.zeros(0, dtype=np.bool_)
    parts = [np.concatenate([none, *(row[low:high] for row in kept)]) for low, high in _spans(ends)]
    return np.array([float(part.mean()) if part.size else math.nan for part in parts])


def reversed_pairs(orders: Sequence[ObservedOrder]) -> ReversedPairs:
    """Count the passage pairs whose order changed, over all pairs of orders that showed them the other way round."""
    toward = away = 0
    for first, second in combinations(orders, 2):
        shown, other = _precedence(first.shown), _precedence(second.shown)
        one, two = _precedence(first.order), _precedence(second.order)
        swapped = np.triu((shown != other) & (one != two), 1)
        followed = int((swapped & (one == shown)).sum())
        toward, away = toward + followed, away + int(swapped.sum()) - followed
    return ReversedPairs(toward, away)


def _precedence(order: Ints) -> Flags:
    """Return whether the row's passage precedes the column's, shape (n, n)."""
    rank = np.argsort(order)
    return np.asarray(rank[:, None] < rank[None, :])


def _spans(ends: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip([0, *ends[:-1]], ends, strict=True))


UTILITY_SPREAD = 0.65  # standard deviation of the utilities around the grades, similar to that of the engine `bayes`


@one_blas_thread
def with_grades(told: ObservedOrder, grades: Floats) -> ObservedOrder:
    """Return the order by posterior means of grades and judge's order; tied passages keep the judge's order.

    Args:
        told: the judge's order.
        grades: shape (n,), grade of each passage by its number.
    """
    size = len(told.order)
    if size < 2:
        return told
    places = np.empty(size, dtype=np.int64)
    places[told.shown] = np.arange(size)
    lists = JudgedLists(told.order[None], places[told.order][None], np.ones(1))
    judged = JudgedOrders((lists,), JudgeModel(np.zeros(size)))
    prior = Prior(grades.astype(np.float64), np.full(size, 1 / UTILITY_SPREAD**2))
    fits = [fit(prior, judged, sharpness, prior.mean) for sharpness in SHARPNESS]
    best = max(fits, key=lambda each: each.evidence)
    return ObservedOrder(told.shown, told.order[np.argsort(-best.mean[told.order], kind="stable")])
