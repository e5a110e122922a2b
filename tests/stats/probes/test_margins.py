"""Margins by hand, what is left out of percentages, and whose resamples an interval is of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raggs.stats.name_margins import margin_change, margins, mean_of, ratio

BUNDLE = [0.9, 0.6, 0.7, 0.5, 0.3]


def test_the_margins_of_one_bundle():
    found = margins(np.array([[BUNDLE]]))
    assert found.name == pytest.approx(0.2)  # against the better impostor
    assert found.topic == pytest.approx(0.4)
    assert found.both == pytest.approx(0.6)


@pytest.mark.parametrize("scores", [np.zeros((2, 5)), np.zeros((2, 3, 4)), np.full((1, 1, 5), np.nan)])
def test_other_scores_are_refused(scores):
    with pytest.raises(ValueError, match=r"shape|finite"):
        margins(scores)


def test_a_mean_is_that_of_the_runs_means_and_its_spread_is_between_them():
    found = mean_of(np.array([[1.0, 3.0], [2.0, math.nan], [math.nan, math.nan]]), seed=1)
    assert found.value == 2.0
    assert found.spread == 0.0
    assert found.count == 3
    assert mean_of(np.array([[1.0, 3.0], [2.0, 6.0]]), seed=1).spread == pytest.approx(math.sqrt(2))


def test_one_run_has_no_spread_and_no_interval_over_runs():
    found = mean_of(np.array([[1.0, 2.0, 3.0]]), seed=1)
    assert math.isnan(found.spread) and math.isnan(found.by_runs.low)
    assert found.by_questions.low < 2 < found.by_questions.high


def test_intervals_over_runs_and_over_questions_differ():
    hard = np.tile(np.linspace(0, 1, 40), (5, 1)) + np.arange(5)[:, None] * 0.001  # questions differ, runs do not
    found = mean_of(hard, seed=3)
    assert found.by_runs.high - found.by_runs.low < 0.01 < found.by_questions.high - found.by_questions.low


def test_small_bases_have_no_percentage_but_count_in_the_means():
    base, ablated = np.array([[0.4, 0.019, -0.2]]), np.array([[0.1, 0.5, 0.0]])
    found = margin_change(ablated, base, seed=1)
    assert found.percent.value == pytest.approx(-75)
    assert found.left_out == 2
    assert found.absolute.value == pytest.approx((-0.3 + 0.481 + 0.2) / 3)
    assert found.of_means == pytest.approx((0.6 - 0.219) / 0.219 * 100)


def test_a_base_at_the_limit_counts():
    assert margin_change(np.array([[0.0, 0.0]]), np.array([[0.02, 0.02]]), seed=1).left_out == 0


def test_the_ratio_of_means_is_not_the_mean_of_ratios():
    found = margin_change(np.array([[0.1, 0.8]]), np.array([[0.2, 0.8]]), seed=1)
    assert found.percent.value == pytest.approx(-25)
    assert found.of_means == pytest.approx(-10)


def test_no_ratio_to_a_margin_that_is_none():
    value, bounds = ratio(np.array([[0.1, 0.2]]), np.array([[0.1, -0.1]]), seed=1)
    assert math.isnan(value) and math.isnan(bounds.low)


def test_the_interval_of_a_ratio_holds_it_and_needs_nothing_but_the_seed():
    rng = np.random.default_rng(2)
    below = rng.uniform(0.2, 0.4, (3, 60))
    above = below * 0.55 + rng.normal(0, 0.01, below.shape)
    value, bounds = ratio(above, below, seed=7)
    assert bounds.low < value < bounds.high
    assert value == pytest.approx(0.55, abs=0.01)
    assert ratio(above, below, seed=7) == (value, bounds)
