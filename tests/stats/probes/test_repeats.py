"""Orders of a simulated judge: what it does to pairs, to places and to the first of a list is read off its answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raggs.stats.intervals import bootstrap_mean
from raggs.stats.judge_sharpness import (
    ObservedOrder,
    OrderPicks,
    ReversedPairs,
    by_pool,
    disagreement,
    fit_picks,
    kept_by_place,
    mean_disagreement,
    mean_overlap,
    reversed_pairs,
)
from raggs.stats.order_agreement import kendall_tau_b

POOL = 40


def asked(
    utility: np.ndarray, shown: np.ndarray, sharpness: float, favour: float, rng: np.random.Generator
) -> ObservedOrder:
    """A judge of Plackett-Luce; `favour`: the log-odds that being shown first rather than last adds."""
    z = np.empty(len(shown))
    z[shown] = 0.5 - np.arange(len(shown)) / (len(shown) - 1)
    return ObservedOrder(shown, np.argsort(-(sharpness * utility + favour * z + rng.gumbel(size=len(utility)))))


def pools(sharpness: float, favour: float, seed: int, count: int = 10) -> list[tuple[np.ndarray, list[ObservedOrder]]]:
    """Pools of 40, each shown in two orders, and each of these twice."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        utility = rng.choice([1, 2, 3, 4, 5], POOL) + rng.normal(0, 0.35, POOL)
        showings = [rng.permutation(POOL) for _ in range(2)]
        found.append((utility, [asked(utility, shown, sharpness, favour, rng) for shown in showings for _ in range(2)]))
    return found


def picks(utility: np.ndarray, told: ObservedOrder) -> OrderPicks:
    return OrderPicks.of(utility[told.order], np.argsort(told.shown)[told.order])


def test_disagreement_is_taus_and_knows_which_showings_are_the_same() -> None:
    one, two = ObservedOrder.of("abcd", "abdc"), ObservedOrder.of("abcd", "acbd")
    assert disagreement(one, two) == pytest.approx(2 / 6)
    assert 1 - 2 * disagreement(one, two) == pytest.approx(kendall_tau_b("abdc", "acbd"))
    other = ObservedOrder.of("dcba", "dcba")
    assert mean_disagreement([one, two, other], same=True) == pytest.approx(2 / 6)
    assert mean_disagreement([one, two, other], same=False) == pytest.approx((5 + 5) / 12)
    assert mean_overlap([one, two], 2, same=True) == 0.5
    lone = ObservedOrder.of("a", "a")
    assert math.isnan(mean_disagreement([one], same=True)) and math.isnan(disagreement(lone, lone))


def test_neighbours_are_told_by_their_place() -> None:
    first, second = ObservedOrder.of("abcde", "abcde"), ObservedOrder.of("abcde", "bacde")
    assert kept_by_place([(first, second)], (2, 4, 9)).tolist() == pytest.approx([0.5, 1.0, math.nan], nan_ok=True)


def test_what_follows_the_showing_is_counted_both_ways() -> None:
    assert reversed_pairs([ObservedOrder.of("ab", "ab"), ObservedOrder.of("ba", "ba")]) == ReversedPairs(
        toward=1, away=0
    )
    assert reversed_pairs([ObservedOrder.of("ab", "ba"), ObservedOrder.of("ba", "ab")]) == ReversedPairs(
        toward=0, away=1
    )
    assert reversed_pairs([ObservedOrder.of("ab", "ab"), ObservedOrder.of("ba", "ab")]) == ReversedPairs(
        toward=0, away=0
    )
    assert math.isnan(reversed_pairs([ObservedOrder.of("ab", "ab"), ObservedOrder.of("ab", "ba")]).share), (
        "shown alike both times"
    )


def test_orders_of_other_passages_are_refused() -> None:
    with pytest.raises(ValueError, match="exactly once"):
        ObservedOrder.of("ab", "ac")


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize(("sharpness", "favour"), [(1.5, 0.0), (3.0, 1.2), (6.0, -2.0)])
def test_sharpness_and_favour_of_a_known_judge_lie_in_their_intervals(sharpness: float, favour: float) -> None:
    held = {"sharpness": 0, "favour": 0, "grades": 0, "toward": 0}
    for seed in range(6):
        world = pools(sharpness, favour, seed)
        found = by_pool([[picks(utility, told) for told in orders] for utility, orders in world])
        truths = {"sharpness": sharpness, "favour": favour, "grades": favour / sharpness}
        for name, truth in truths.items():
            interval = bootstrap_mean(getattr(found, name), seed=seed)
            held[name] += interval.low <= truth <= interval.high
        share = bootstrap_mean([reversed_pairs(orders).share for _, orders in world], seed=seed)
        held["toward"] += np.sign(favour) == (share.low > 0.5) - (share.high < 0.5)
    assert min(held.values()) >= 5, held  # of 6; ten pools make intervals of 95 % a little too short


def test_a_judge_that_never_errs_is_very_sharp_and_no_error() -> None:
    found = fit_picks([OrderPicks.of([5.0, 4.0, 1.0], [2, 0, 1])])
    assert 2 < found.sharpness < 100
    assert fit_picks([]).sharpness == 0
