"""Two groups of questions: what chance makes is not found, what was planted is, and sizes are what they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ttest_ind

from raggs.stats.comparison import contrasts, permutation_tests

WORLDS = 200


def _groups(rng: np.random.Generator, questions: int, kinds: int = 12) -> np.ndarray:
    """Groupings that overlap, as traits of questions do, each with at least six questions on a side."""
    latent = rng.normal(size=questions)
    rows = [(0.6 * latent + rng.normal(size=questions)) for _ in range(kinds)]
    return np.array([row > np.sort(row)[-int(rng.integers(6, questions // 2))] for row in rows], dtype=np.float64)


@pytest.mark.nightly
def test_chance_is_found_in_one_family_of_twenty_at_most() -> None:
    rng, found = np.random.default_rng(5), 0
    for world in range(WORLDS):
        values = np.round(rng.beta(0.6, 0.8, size=48), 1)  # many zeros, ones and ties, as scores have
        found += any(each.clear for each in contrasts(values, _groups(rng, 48), seed=world, draws=999))
    error = math.sqrt(0.05 * 0.95 / WORLDS)
    assert found / WORLDS <= 0.05 + error


def test_a_planted_difference_is_found_and_covered() -> None:
    rng = np.random.default_rng(2)
    groups = _groups(rng, 90)
    values = rng.normal(0.6, 0.2, size=90) - 0.35 * groups[3]
    found = contrasts(values, groups, seed=1)
    assert found[3].clear and found[3].low <= -0.35 <= found[3].high
    assert found[3].effect_low <= -0.35 / 0.2 <= found[3].effect_high
    assert found[3].having == groups[3].sum() and found[3].lacking == 90 - groups[3].sum()


def test_the_test_agrees_with_students_where_both_hold_and_ranks_all_alike() -> None:
    rng = np.random.default_rng(3)
    values, groups = rng.normal(size=60), _groups(rng, 60, kinds=4)
    for p, row in zip(permutation_tests(values, groups, seed=1), groups, strict=True):
        assert p == pytest.approx(ttest_ind(values[row == 1], values[row == 0]).pvalue, abs=0.015)


def test_questions_without_a_value_or_of_unknown_group_are_left_out() -> None:
    values = np.array([0.1, 0.2, 0.8, 0.9, np.nan, 0.5])
    (found,) = contrasts(values, np.array([[0, 0, 1, 1, 1, np.nan]]), seed=1)
    assert (found.having, found.lacking) == (2, 2)
    assert found.difference == pytest.approx(0.7)


def test_equal_values_differ_by_chance_alone() -> None:
    (found,) = contrasts(np.full(10, 0.5), np.array([[1.0] * 5 + [0.0] * 5]), seed=1)
    assert found.p == 1.0 and not found.clear and math.isnan(found.effect)


def test_a_group_of_one_is_refused() -> None:
    with pytest.raises(ValueError, match="two questions"):
        contrasts(np.arange(4.0), np.array([[1.0, 0.0, 0.0, 0.0]]), seed=1)
