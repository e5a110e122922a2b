"""Dropping systems early: what is bad goes, the best one stays, whatever the queries are like."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raggs.base.hashing import generator
from raggs.stats.resampling import draw_order, halve, log_capital

NAN = math.nan


def values(gains, queries, *names, noise=0.15):
    rng = generator(6, "halving", *names)
    hard = rng.beta(1.2, 1.2, queries)
    noisy = hard + np.array(gains)[:, None] + rng.normal(0, noise, (len(gains), queries))
    return np.clip(noisy, 0, 1).round(1)


def rounds(matrix, parts, **options):
    """Who is left after the parts, looked at in the order of the columns."""
    systems, queries = matrix.shape
    counts = np.zeros(systems, dtype=int)
    left = list(range(systems))
    for part in parts:
        counts[left] = part
        known = np.where(counts[:, None] > np.arange(part), matrix[:, :part], NAN)
        done = halve(list(map(str, range(systems))), known, total=queries, looked_at=counts.tolist(), **options)
        left = [int(name) for name in done.kept]
    return left


def test_what_is_bad_is_dropped_and_says_by_whom():
    matrix = values([0.0, -0.5, -0.02], 150)
    done = halve(["good", "bad", "near"], matrix[:, :50], total=150)
    assert done.kept == ("good", "near") and done.queries == 50
    assert done.needed == pytest.approx(math.log(100))
    dropped = done.dropped[0]
    assert dropped.name == "bad" and dropped.by in ("good", "near")
    assert dropped.difference > 0.2 and dropped.evidence >= done.needed


@pytest.mark.nightly(keep=1)
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


def capital(table, total, counts=None, allowed=None):
    table = np.array(table, dtype=float)
    counts = np.full(len(table), table.shape[1]) if counts is None else np.array(counts)
    allowed = np.ones((len(table), len(table)), dtype=bool) if allowed is None else allowed
    return log_capital(table, counts, allowed, total)


@pytest.mark.nightly
@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.2, 0.5]))
def test_capital_rarely_grows_against_the_best(seed, level):
    """Ville's inequality, over orders of one table in which all means are equal: each system is a best one."""
    rng = np.random.default_rng(seed)
    row = np.array([0.9, 0.4, 0.1, 0.1, 0.2, 0.3, 1.0, 0.0] * 3)
    table = np.stack([rng.permutation(row) for _ in range(5)])
    grown = [capital(table[:, rng.permutation(row.size)], row.size)[4] >= -math.log(level) for _ in range(200)]
    assert np.mean(grown) <= level + 4 * math.sqrt(level * (1 - level) / 200)


def test_what_can_no_longer_be_made_up_for_is_certain():
    far, near = [[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]], [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
    assert capital(far, 4)[1] == math.inf == capital([row[:3] for row in far], 4)[1]
    assert capital(far, 4)[0] == 0 and capital(near, 4).max() < math.inf


def test_those_dropped_before_play_no_part_later():
    """What is known of a system beyond its own queries, even by mistake, changes nothing."""
    matrix = values([0.0, -0.4, -0.02], 100)
    other = matrix.copy()
    other[1, 20:] = 1.0
    names, options = ["a", "b", "c"], {"total": 200, "looked_at": [100, 20, 100]}
    done = halve(names, matrix, **options)
    assert done == halve(names, other, **options) and "b" not in done.kept


def test_a_rival_that_costs_more_drops_nobody():
    matrix = values([0.0, -0.5], 100)
    may = np.array([[True, False], [True, True]])
    assert halve(["dear", "cheap"], matrix, total=100, replaces=may).dropped == ()
    assert len(halve(["dear", "cheap"], matrix, total=100).dropped) == 1


def test_undefined_queries_count_for_nobody():
    matrix = values([0.0, -0.5], 100)
    matrix[:, :30] = NAN
    assert [each.name for each in halve(["a", "b"], matrix, total=150).dropped] == ["b"]
    matrix[1] = NAN
    assert halve(["a", "b"], matrix, total=150).kept == ("a", "b")
    matrix[1, 50:] = 0.0
    assert len(halve(["a", "b"], matrix, total=150).dropped) == 1


def test_the_difference_is_a_mean_over_the_queries_that_count():
    matrix = np.array([[0.9] * 100, [0.3] * 100])
    matrix[:, ::2] = NAN
    matrix[0, 1::4] = NAN
    dropped = halve(["a", "b"], matrix, total=150).dropped
    assert [(each.name, each.by) for each in dropped] == [("b", "a")]
    assert dropped[0].difference == pytest.approx(0.6)


def test_a_system_that_failed_holds_nobody_up():
    matrix = values([0.0, -0.5, 0.0], 100)
    matrix[2] = NAN
    done = halve(["a", "b", "failed"], matrix, total=150)
    assert (done.kept, [(each.name, each.by) for each in done.dropped]) == (("a", "failed"), [("b", "a")])


def test_nothing_seen_or_nobody_to_compare_drops_nothing():
    assert halve(["a", "b"], np.zeros((2, 0)), total=5).kept == ("a", "b")
    assert halve(["a"], np.zeros((1, 5)), total=5).kept == ("a",)
    assert halve(["a", "b"], np.full((2, 5), 0.5), total=5).kept == ("a", "b")


def test_the_order_is_random_and_whole():
    order = draw_order(150, 3)
    assert sorted(order) == list(range(150)) and order != tuple(range(150))
    assert order == draw_order(150, 3) != draw_order(150, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error": 0.0}, "0 < error"),
        ({"total": 3}, "queries=4, total=3"),
        ({"looked_at": [4]}, "at most 4 queries"),
        ({"looked_at": [4, 5]}, "at most 4 queries"),
        ({"span": 0.5}, "more than the span"),
        ({"replaces": [[True]]}, "`replaces` must have the shape"),
    ],
)
def test_impossible_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        halve(["a", "b"], [[1.0] * 4, [0.0] * 4], **{"total": 9, **change})
