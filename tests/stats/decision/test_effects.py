"""Effects against what was put into made-up grids: whole, with holes, and with settings that some systems lack."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.hashing import generator
from raggs.stats.effects import main_effects, main_shifts, strongest_interactions
from raggs.stats.resampling import resampled_means

NAN = math.nan
GRID = [
    {"embedder": e, "k": k, "reranker": r}
    for e, k, r in itertools.product(("small", "large"), (50, 100), ("none", "ce"))
]


def made(levels, gain, queries=80, noise=0.02):
    """By query: how easy it is, what the levels add, and noise."""
    rng = generator(8, "effects", queries)
    easy = rng.uniform(0.2, 0.6, queries)
    return np.stack([easy + gain(**each) + rng.normal(0, noise, queries) for each in levels])


def gain(embedder="small", k=50, reranker="none"):
    both = 0.06 * (embedder == "large" and reranker == "ce")
    return 0.1 * (reranker == "ce") + 0.04 * (embedder == "large") + both


def by_change(effects):
    return {(each.axis, each.before, each.after): each for each in effects}


def test_the_effects_that_were_put_in_are_found():
    effects = by_change(main_effects(GRID, made(GRID, gain), seed=1))
    assert list(effects) == [("embedder", "small", "large"), ("k", 50, 100), ("reranker", "none", "ce")]
    for change, expected in zip(effects.values(), (0.07, 0.0, 0.13), strict=True):
        assert change.pairs == 4 and change.queries == 80
        assert change.change == pytest.approx(expected, abs=0.004)
        assert change.low < change.change < change.high and change.high - change.low < 0.01
        assert change.clear is (expected > 0)


def test_intervals_are_percentiles_of_the_resampled_change():
    values = made(GRID, gain)
    effect = main_effects(GRID, values, seed=3, draws=400, confidence=0.9)[2]
    change = (values[1::2] - values[::2]).mean(axis=0)
    means = np.concatenate(list(resampled_means(change[None, :], draws=400, seed=3)))[:, 0]
    assert (effect.low, effect.high) == pytest.approx(tuple(np.quantile(means, [0.05, 0.95])), rel=1e-9)


def test_the_interaction_that_was_put_in_is_found():
    first, second = strongest_interactions(GRID, made(GRID, gain), seed=1)
    assert first.axes == ("embedder", "reranker") and first.clear and not second.clear
    assert (first.before, first.after) == (("small", "none"), ("large", "ce"))
    assert first.change == pytest.approx(0.06, abs=0.006) and first.low < first.change < first.high
    assert first.squares == 2 and first.compared == 3


def test_holes_in_the_grid_leave_matched_pairs():
    """The good half lacks its bad partner: means over unequal sets would credit k with the reranker's gain."""
    holes = [each for each in GRID if not (each["reranker"] == "none" and each["k"] == 100)]
    values = made(holes, gain)
    effects = by_change(main_effects(holes, values, seed=1))
    assert effects["k", 50, 100].change == pytest.approx(0, abs=0.01) and effects["k", 50, 100].pairs == 2
    naive = [values[[each["k"] == k for each in holes]].mean() for k in (50, 100)]
    assert naive[1] - naive[0] > 0.03


def test_a_setting_that_a_system_lacks_matches_all():
    levels = [{"mode": "dense", "embedder": e, "k": k} for e in ("a", "b") for k in (50, 100)]
    levels += [{"mode": "lexical", "embedder": None, "k": k} for k in (50, 100)]
    effects = by_change(main_effects(levels, made(levels, lambda mode, **rest: 0.1 * (mode == "dense")), seed=1))
    assert effects["mode", "dense", "lexical"].pairs == 4
    assert effects["mode", "dense", "lexical"].change == pytest.approx(-0.1, abs=0.01)
    assert effects["embedder", "a", "b"].pairs == 2 and effects["k", 50, 100].pairs == 3


def test_a_system_beside_the_grid_plays_no_part():
    levels = [*GRID, {}]
    values = np.vstack([made(GRID, gain), np.ones((1, 80))])
    assert main_effects(levels, values, seed=1) == main_effects(GRID, values[:-1], seed=1)


def test_missing_values_are_left_out_by_query():
    values = made(GRID, gain)
    values[:, :30] = NAN
    values[0, 30:40] = NAN
    effects = main_effects(GRID, values, seed=1)
    assert {each.queries for each in effects} == {50}
    assert effects[2].change == pytest.approx(0.13, abs=0.01)


def test_where_nothing_is_valid_nothing_is_said():
    effects = main_effects(GRID[:2], np.full((2, 5), NAN), seed=1)
    assert [each.axis for each in effects] == ["reranker"]
    assert math.isnan(effects[0].change) and math.isnan(effects[0].low) and not effects[0].clear
    assert main_effects([], np.zeros((0, 5)), seed=1) == () == strongest_interactions([], np.zeros((0, 5)), seed=1)


@given(st.lists(st.sampled_from(GRID), unique_by=str, min_size=1), st.randoms())
def test_effects_are_means_over_all_pairs(levels, random):
    """Against the definition, pair by pair."""
    values = np.array([[random.random() for _ in range(4)] for _ in levels])
    for effect in main_effects(levels, values, seed=1, draws=5):
        changes = [
            (values[b] - values[a]).mean()
            for a, one in enumerate(levels)
            for b, other in enumerate(levels)
            if one[effect.axis] == effect.before
            and other[effect.axis] == effect.after
            and all(one[axis] == other[axis] for axis in one if axis != effect.axis)
        ]
        assert len(changes) == effect.pairs and effect.change == pytest.approx(np.mean(changes))


def test_numbers_are_in_order_and_many_levels_are_compared_with_the_first():
    levels = [{"k": k} for k in (200, 50, 100)]
    changes = [(each.before, each.after) for each in main_effects(levels, np.zeros((3, 5)), seed=1, draws=1)]
    assert changes == [(50, 100), (50, 200), (100, 200)]
    levels = [{"k": k} for k in range(30)]
    assert len(main_effects(levels, np.zeros((30, 5)), seed=1, draws=1)) == 29


def test_chunks_of_pairs_do_not_matter(monkeypatch):
    whole = main_effects(GRID, made(GRID, gain), seed=1)
    monkeypatch.setattr("raggs.stats.effects.MAX_MATCHED_VALUES", 80)
    for one, other in zip(whole, main_effects(GRID, made(GRID, gain), seed=1), strict=True):
        assert one.change == pytest.approx(other.change, rel=1e-12)


@pytest.mark.nightly
def test_noise_is_rarely_clear():
    """20 effects on nothing, 100 times: at 5 % over all of them together."""
    levels = [{"index": level} for level in "abcdef"]
    rng = generator(2, "noise")
    clear = [
        any(each.clear for each in main_effects(levels, rng.normal(size=(6, 30)), seed=1, draws=2)) for _ in range(100)
    ]
    assert sum(clear) <= 12


def test_few_queries_are_never_clear():
    levels = [{"k": 50}, {"k": 100}]
    assert not main_effects(levels, [[0.0] * 5, [1.0] * 5], seed=1)[0].clear
    assert main_effects(levels, [[0.0] * 6, [1.0] * 6], seed=1)[0].clear


def test_shifts_of_cost_and_latency():
    figures = [1.0, 3.0, 1.0, None, 2.0, 5.0, 2.0, 5.5]
    shifts = {each.axis: each for each in main_shifts(GRID, figures)}
    assert shifts["reranker"].change == pytest.approx((2 + 3 + 3.5) / 3) and shifts["reranker"].pairs == 3
    assert (shifts["reranker"].least, shifts["reranker"].most) == (2.0, 3.5)
    assert shifts["embedder"].pairs == 3 and main_shifts(GRID, [None] * 8) == ()


def test_impossible_input_is_refused():
    with pytest.raises(ValueError, match="one row of values per system"):
        main_effects(GRID, np.zeros((2, 3)), seed=1)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        strongest_interactions(GRID, np.zeros((8, 3)), seed=1, confidence=0)
    with pytest.raises(ValueError, match="infinite"):
        main_shifts(GRID, [math.inf] * 8)
