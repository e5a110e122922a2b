"""How often a system would win: against draws made one by one, and what is said of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raggs.base.hashing import generator
from raggs.stats.choice import ChoiceLimits, choose
from raggs.stats.front import Candidate
from raggs.stats.resampling import find_winners, resampled_means

NAN = math.nan


def share_of(winners, name):
    return {each.name: each.share for each in winners.shares}.get(name, 0.0)


def systems(values, usd=(1.0, 1.0, 1.0), ms=(100.0, 100.0, 100.0), k=(50, 50, 50)):
    means = np.nanmean(values, axis=1)
    return [
        Candidate(f"s{row}", usd[row], ms[row], (float(mean),), k[row], 500.0)
        for row, mean in enumerate(means.tolist())
    ]


def noisy(*gains, queries=200):
    rng = generator(5, "winners")
    hard = rng.uniform(0.2, 0.8, queries)
    return np.clip(hard + rng.normal(0, 0.1, (len(gains), queries)) + np.array(gains)[:, None], 0, 1)


def test_means_are_those_of_draws_made_one_by_one():
    values = noisy(0.0, 0.1, queries=30)
    values[0, 3:6] = NAN
    means = np.concatenate(list(resampled_means(values, draws=50, seed=4)))
    drawn = generator(4, "decision", 30).integers(30, size=(50, 30))
    expected = [[np.nanmean(row[draw]) for row in values] for draw in drawn]
    assert means == pytest.approx(np.array(expected), rel=1e-12)


@given(arrays(np.float64, (4, 12), elements=st.sampled_from([0.0, 0.25, 1.0, NAN])))
def test_a_systems_means_do_not_depend_on_the_others(values):
    together = np.concatenate(list(resampled_means(values, draws=7, seed=1)))
    for row in range(4):
        alone = np.concatenate(list(resampled_means(values[row : row + 1], draws=7, seed=1)))
        assert np.array_equal(alone[:, 0], together[:, row], equal_nan=True)


def test_chunks_of_draws_do_not_matter(monkeypatch):
    values = noisy(0.0, 0.1, queries=30)
    whole = np.concatenate(list(resampled_means(values, draws=20, seed=4)))
    monkeypatch.setattr("raggs.stats.resampling.MAX_COUNT_CELLS", 90)
    assert np.array_equal(np.concatenate(list(resampled_means(values, draws=20, seed=4))), whole)


def test_a_clear_winner_is_told_apart():
    values = noisy(0.0, 0.1, 0.02)
    winners = find_winners(systems(values), values, seed=1)
    assert winners.told_apart and winners.rivals == ("s1",) and winners.none == 0
    found = "s1 is chosen in 100% of 1,000 resamples of the 200 queries."
    assert winners.sentence == f"The choice hardly depends on the sample of queries: {found}"


def test_noise_is_not_told_apart():
    values = noisy(0.05, 0.05, 0.0)
    winners = find_winners(systems(values), values, seed=1)
    assert not winners.told_apart and set(winners.rivals) == {"s0", "s1"}
    assert share_of(winners, "s0") + share_of(winners, "s1") == pytest.approx(1) and share_of(winners, "s2") == 0
    assert winners.sentence.startswith("The winner is inconclusive: s")


def test_a_crowd_is_named_in_part():
    values = noisy(*[0.05] * 9, queries=20)
    candidates = [Candidate(str(row), 1.0, 100.0, (0.5,), 50) for row in range(9)]
    winners = find_winners(candidates, values, seed=1)
    assert len(winners.rivals) > 4 and f"% and {len(winners.rivals) - 3} more systems (" in winners.sentence


def test_equal_systems_are_a_matter_of_k():
    values = noisy(0.0)[[0, 0, 0]]
    winners = find_winners(systems(values, k=(200, 50, 100)), values, seed=1, draws=50)
    assert winners.rivals == ("s1",) and winners.told_apart


def test_of_systems_equal_on_every_query_the_choice_wins():
    values = noisy(0.2)[[0, 0]]
    mean = float(values[0].mean())
    worse_elsewhere = Candidate("quick", 1.0, 1.0, (mean, 0.5), 50)
    candidates = [worse_elsewhere, Candidate("sound", 1.0, 1.2, (mean, 0.6), 50)]
    assert choose(candidates).winner.name == "sound"
    assert find_winners(candidates, values, seed=1, draws=50).rivals == ("sound",)


def test_limits_are_held_in_each_draw():
    values = noisy(0.3, 0.1, 0.0)
    candidates = systems(values, usd=(9.0, None, 1.0), ms=(100.0, 100.0, 300.0))
    assert find_winners(candidates, values, ChoiceLimits(usd_per_1k=2), seed=1).rivals == ("s2",)
    assert find_winners(candidates, values, ChoiceLimits(latency_ms=200), seed=1).rivals == ("s0",)
    nobody = find_winners(candidates, values, ChoiceLimits(latency_ms=1), seed=1)
    assert (nobody.shares, nobody.none, nobody.told_apart) == ((), 1.0, False)
    assert nobody.sentence == "No system meets the limits in any of 1,000 resamples of the 200 queries."


def test_a_target_may_be_reached_in_some_draws_only():
    values = noisy(0.0, -0.3, -0.3)
    target = float(values[0].mean())
    winners = find_winners(systems(values), values, ChoiceLimits(quality=target), seed=1)
    assert 0.3 < winners.none < 0.7 and share_of(winners, "s0") == pytest.approx(1 - winners.none)
    assert winners.rivals == () and "no system meets the limits" in winners.sentence


def test_a_target_prefers_the_fast_then_the_cheap():
    values = noisy(0.3, 0.0, 0.0)
    candidates = systems(values, usd=(1.0, 3.0, 2.0), ms=(400.0, 100.0, 160.0))
    limits = ChoiceLimits(quality=0.2)
    assert (
        find_winners(candidates, values, limits, seed=1).rivals == ("s2",) == (choose(candidates, limits).winner.name,)
    )


def test_missing_values_are_left_out():
    values = noisy(0.0, 0.05, 0.0)
    values[:, :50] = NAN
    values[2] = NAN
    values[2, 0] = 1.0  # in few draws at all
    candidates = systems(values)
    assert share_of(find_winners(candidates, values, seed=1), "s2") == pytest.approx(1 - (1 - 1 / 200) ** 200, abs=0.05)


def test_equal_input_gives_equal_results():
    values = noisy(0.05, 0.05, 0.0)
    once, again = (find_winners(systems(values), values, seed=3, draws=200) for _ in range(2))
    assert once == again != find_winners(systems(values), values, seed=4, draws=200)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.zeros((2, 5)), {}, "one row of values per system"),
        (np.full((3, 5), math.inf), {}, "infinite"),
        (np.zeros((3, 5)), {"confidence": 1.0}, "strictly between 0 and 1"),
        (np.zeros((3, 5)), {"draws": 0}, "the number of draws must be at least 1"),
    ],
)
def test_impossible_input_is_refused(values, options, message):
    with pytest.raises(ValueError, match=message):
        find_winners(systems(np.zeros((3, 5))), values, seed=1, **options)


def test_a_winner_by_few_queries_is_a_hint() -> None:
    pair = [Candidate("a", 1.0, 100.0, (0.9,), 10, 200.0), Candidate("b", 1.0, 100.0, (0.1,), 10, 200.0)]
    for count, told in (
        (1, "a is chosen in 100% of 50 resamples of one query (fewer than 10 queries: only an indication)."),
        (9, "a is chosen in 100% of 50 resamples of the 9 queries (fewer than 10 queries: only an indication)."),
        (
            10,
            "The choice hardly depends on the sample of queries: "
            "a is chosen in 100% of 50 resamples of the 10 queries.",
        ),
    ):
        values = np.array([[0.9] * count, [0.1] * count])
        assert find_winners(pair, values, seed=0, draws=50).sentence == told
