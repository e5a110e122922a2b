"""Dropping systems early: what is bad goes, the best one stays, whatever the queries are like."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raggs.decision import draw_order, halve
from raggs.decision.halving import log_capital
from raggs.seeds import generator

NAN = math.nan


def values(gains, queries, *names, noise=0.15):
    rng = generator(6, "halving", *names)
    hard = rng.beta(1.2, 1.2, queries)
    noisy = hard + np.array(gains)[:, None] + rng.normal(0, noise, (len(gains), queries))
    return np.clip(noisy, 0, 1).round(1)


def rounds(matrix, parts, **options):
    """Who is left after the parts, looked at in the order of the columns."""
    left = list(range(len(matrix)))
    for part in parts:
        names = [str(row) for row in left]
        done = halve(names, matrix[left, :part], total=matrix.shape[1], systems=len(matrix), **options)
        left = [int(name) for name in done.kept]
    return left


def test_what_is_bad_is_dropped_and_says_by_whom():
    matrix = values([0.0, -0.5, -0.02], 150)
    done = halve(["good", "bad", "near"], matrix[:, :50], total=150, systems=3)
    assert done.kept == ("good", "near") and done.queries == 50
    assert done.needed == pytest.approx(math.log(200))
    dropped = done.dropped[0]
    assert (dropped.name, dropped.by) in {("bad", "good"), ("bad", "near")}
    assert dropped.difference > 0.2 and dropped.evidence >= done.needed


@pytest.mark.parametrize("spread", [0.0, 0.05, 0.2])
def test_the_best_system_stays(spread):
    """At most 1 % may lose it; 150 sweeps without a loss are what that allows (p = .22 at exactly 1 %)."""
    for sweep in range(150):
        rng = generator(7, "gains", sweep, spread)
        matrix = values(rng.normal(0, spread, 8), 60, sweep, spread)
        matrix = matrix[:, draw_order(60, sweep)]
        means = matrix.mean(axis=1)
        best = np.flatnonzero(means >= means.max() - 1e-12)
        assert {*best.tolist()} & {*rounds(matrix, (10, 20, 40))}


def test_rare_and_total_failures_are_not_taken_for_steadiness():
    """Better by a little on 95 % of the queries, worthless on the rest: a t-test on a part without failures is sure."""
    lost = 0
    for sweep in range(100):
        matrix = np.full((2, 200), 0.9)
        matrix[0, :] = 0.92
        matrix[0, generator(sweep, "fail").choice(200, 10, replace=False)] = 0.0
        assert matrix[0].mean() < matrix[1].mean()
        lost += 1 not in rounds(matrix[:, draw_order(200, sweep)], (20, 40))
    assert lost <= 1


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.2, 0.5]))
def test_capital_rarely_grows_against_a_belief_that_is_true(seed, level):
    """Ville's inequality, over all orders of one set of gaps whose mean is exactly 0."""
    gaps = np.array([0.9, 0.4, 0.1, 0.1, -0.2, -0.3, -1.0, 0.0] * 3)
    rng = np.random.default_rng(seed)
    orders = np.stack([rng.permutation(gaps) for _ in range(200)])
    assert (log_capital(orders, gaps.size) >= -math.log(level)).mean() <= level + 4 * math.sqrt(
        level * (1 - level) / 200
    )


def test_what_can_no_longer_be_made_up_for_is_certain():
    gaps = np.array([[1.0, 1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0]])
    first, second = log_capital(gaps, 4)
    assert first == math.inf and second < math.inf
    assert log_capital(gaps[:, :3], 4)[0] == math.inf


def test_a_rival_that_costs_more_drops_nobody():
    matrix = values([0.0, -0.5], 100)
    may = np.array([[True, False], [True, True]])
    assert halve(["dear", "cheap"], matrix, total=100, systems=2, replaces=may).dropped == ()
    assert len(halve(["dear", "cheap"], matrix, total=100, systems=2).dropped) == 1


def test_undefined_queries_count_for_nobody():
    matrix = values([0.0, -0.5], 100)
    matrix[:, :30] = NAN
    assert [each.name for each in halve(["a", "b"], matrix, total=150, systems=2).dropped] == ["b"]
    matrix[1] = NAN
    assert halve(["a", "b"], matrix, total=150, systems=2).dropped == ()


def test_nothing_seen_or_nobody_to_compare_drops_nothing():
    assert halve(["a", "b"], np.zeros((2, 0)), total=5, systems=2).kept == ("a", "b")
    assert halve(["a"], np.zeros((1, 5)), total=5, systems=9).kept == ("a",)
    assert halve(["a", "b"], np.full((2, 5), 0.5), total=5, systems=2).kept == ("a", "b")


def test_the_order_is_random_and_whole():
    order = draw_order(150, 3)
    assert sorted(order) == list(range(150)) and order != tuple(range(150))
    assert order == draw_order(150, 3) != draw_order(150, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error": 0.0}, "0 < error"),
        ({"total": 3}, "4 queries <= total"),
        ({"systems": 1}, "2 names <= systems"),
        ({"span": 0.5}, "more than the span"),
        ({"replaces": [[True]]}, "2 x 2 systems"),
    ],
)
def test_impossible_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        halve(["a", "b"], [[1.0] * 4, [0.0] * 4], **{"total": 9, "systems": 2, **change})
