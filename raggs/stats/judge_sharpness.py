"""How sharp a judge is on long lists, and what it gives to the place where a passage is shown.

A judge of Plackett-Luce picks the best of a list, then the best of what is left, each pick by the softmax of

    score = b * utility + f * z        z: +1/2 where the passage was shown first, -1/2 last, evenly between

with sharpness b and favour f, the log-odds that being shown first rather than last adds; f / b is the same in grades.
Utilities are known, in grades: from the posterior of the rank stage, so that b is on the scale of its own sharpness.
They are not free of error, which makes b a little too small. Found by maximum likelihood (Newton's steps), with a wide
prior that only keeps b finite where a judge never errs.

The same list ordered again: how far a judge agrees with itself, where in the list, and what the place shown did.

Run-to-run disagreement is the share of all pairs that two orders of the same passages put the other way round, and
Kendall's tau is 1 - 2 of it ("Practical RAG Evaluation", 2025, section 3.4.1: 3 to 5% for identical inputs). A
coin has a half.

One order of a whole list, read together with the grades that are known beforehand.

The rank stage starts from grades, and grades alone make two of its rankings alike, whatever the judge says of the
batches. So what its calls buy is told against one order that knows the same grades: the posterior of Plackett-Luce with
utilities normal around the grades (`raggs.ranking.posterior`), at the sharpness that the order makes most likely. A
judge that guesses adds nothing to the grades this way, and a sharp one is believed.
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
MAX_PARAMETER_STEP = 2.0  # largest move of a parameter in one step
CLOSE = 1e-8
MIN_SHARPNESS = 0.25  # sharpness below which grades are no scale
PRIOR_SPREAD = 20.0  # of the prior of both parameters, normal around 0


@dataclass(frozen=True)
class OrderPicks:
    """One order.

    Attributes:
        features: shape (n, 2): utility and z of each passage, in the judged order, best first.
    """

    features: Floats

    @classmethod
    def of(cls, utilities: Sequence[float], places: Sequence[int]) -> OrderPicks:
        """From the utility of each passage, best first, and the place from 0 at which it was shown."""
        shown = np.asarray(places, dtype=np.float64)
        z = 0.5 - shown / max(1, len(shown) - 1)
        return cls(np.stack([np.asarray(utilities, dtype=np.float64), z], axis=1))


@dataclass(frozen=True)
class SharpnessFit:
    """Of some orders: `sharpness` b, and `favour` f in log-odds."""

    sharpness: float
    favour: float


FLAT = SharpnessFit(0.0, 0.0)


def fit_picks(orders: Sequence[OrderPicks], start: SharpnessFit = FLAT) -> SharpnessFit:
    """The most likely sharpness and favour, from any start; 0 and 0 without an order of two passages."""
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


def by_pool(pools: Sequence[Sequence[OrderPicks]]) -> PoolEstimates:
    """The estimates of the orders of each pool."""
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
    """Gradient and information of one order, summed over its picks: what was picked less what was expected."""
    chances = stage_chances(features @ at)
    expected = chances @ features
    slope = (features - expected).sum(axis=0)
    weights = chances.sum(axis=0)
    information = (features * weights[:, None]).T @ features - expected.T @ expected
    return slope, information


@dataclass(frozen=True)
class ObservedOrder:
    """One order of some passages.

    Attributes:
        shown: shape (n,): the passages, as numbers from 0, in the order in which they were shown.
        order: shape (n,): the same, best first.
    """

    shown: Ints
    order: Ints

    @classmethod
    def of(cls, shown: Sequence[str], order: Sequence[str]) -> ObservedOrder:
        """From ids.

        Raises:
            ValueError: an id stands twice, or they are not the same ids.
        """
        numbers = {name: number for number, name in enumerate(sorted(shown))}
        if len(numbers) != len(shown) or sorted(order) != sorted(shown):
            raise ValueError("an order holds each passage that was shown exactly once")
        return cls(*(np.array([numbers[name] for name in names], dtype=np.int64) for names in (shown, order)))

    @property
    def alike(self) -> bytes:
        """Equal where the same was shown in the same order."""
        return self.shown.tobytes()


@dataclass(frozen=True)
class ReversedPairs:
    """Pairs that came out otherwise where they were shown the other way round.

    Attributes:
        toward, away: whose earlier one won both times, and whose later one did; a fair judge has as many of each.
    """

    toward: int
    away: int

    @property
    def share(self) -> float:
        """Of those that turned, where the earlier one won; NaN where none did."""
        both = self.toward + self.away
        return self.toward / both if both else math.nan


def disagreement(first: ObservedOrder, second: ObservedOrder) -> float:
    """The share of pairs in another order, 0..1; NaN below two passages."""
    size = len(first.order)
    if size < 2:
        return math.nan
    return float((_precedence(first.order) != _precedence(second.order)).sum() / (size * (size - 1)))


def mean_disagreement(orders: Sequence[ObservedOrder], *, same: bool) -> float:
    """Over all pairs of orders: of one showing where `same`, else of two; NaN without such a pair."""
    pairs = [pair for pair in combinations(orders, 2) if (pair[0].alike == pair[1].alike) == same]
    return float(np.mean([disagreement(*pair) for pair in pairs])) if pairs else math.nan


def mean_overlap(orders: Sequence[ObservedOrder], k: int, *, same: bool) -> float:
    """The share of the first `k` that two orders have in common, over pairs of orders as in `mean_disagreement`."""
    pairs = [pair for pair in combinations(orders, 2) if (pair[0].alike == pair[1].alike) == same]
    tops = [[set(each.order[:k].tolist()) for each in pair] for pair in pairs]
    return float(np.mean([len(one & other) / max(1, len(one)) for one, other in tops])) if tops else math.nan


def neighbours_kept(first: ObservedOrder, second: ObservedOrder) -> Flags:
    """Shape (n - 1,): whether the passages at places i and i + 1 of the first stand in that order in the second."""
    rank = np.argsort(second.order)
    return np.asarray(rank[first.order[:-1]] < rank[first.order[1:]])


def kept_by_place(pairs: Sequence[tuple[ObservedOrder, ObservedOrder]], ends: Sequence[int]) -> Floats:
    """How often neighbours are kept, by where they stand in the first order of each pair; NaN of an empty part.

    Args:
        pairs: of orders.
        ends: the last place of each part, rising; the first part begins at place 1.
    """
    kept = [neighbours_kept(first, second) for first, second in pairs]
    none = np.zeros(0, dtype=np.bool_)
    parts = [np.concatenate([none, *(row[low:high] for row in kept)]) for low, high in _spans(ends)]
    return np.array([float(part.mean()) if part.size else math.nan for part in parts])


def reversed_pairs(orders: Sequence[ObservedOrder]) -> ReversedPairs:
    """Pairs of passages that turned between showings, over all pairs of orders that showed them the other way round."""
    toward = away = 0
    for first, second in combinations(orders, 2):
        shown, other = _precedence(first.shown), _precedence(second.shown)
        one, two = _precedence(first.order), _precedence(second.order)
        swapped = np.triu((shown != other) & (one != two), 1)
        followed = int((swapped & (one == shown)).sum())
        toward, away = toward + followed, away + int(swapped.sum()) - followed
    return ReversedPairs(toward, away)


def _precedence(order: Ints) -> Flags:
    """Shape (n, n): whether one passage stands before another."""
    rank = np.argsort(order)
    return np.asarray(rank[:, None] < rank[None, :])


def _spans(ends: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip([0, *ends[:-1]], ends, strict=True))


UTILITY_SPREAD = 0.65  # of the utilities around the grades, as engines are tuned to


@one_blas_thread
def with_grades(told: ObservedOrder, grades: Floats) -> ObservedOrder:
    """The order by the posterior means; equal ones as the judge had them.

    Args:
        grades: shape (n,), of the passages by their numbers.
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
