"""Bias by human grade, and the test of two judges' kappa: hand-computed values, and the rate of false alarms."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from raggs.base.hashing import generator
from raggs.stats.agreement import check_labels
from raggs.stats.judge_agreement import kappa_difference_test, mean_grades


def test_mean_grades_by_hand() -> None:
    judge, people = [1, 2, 3, 5, 5], [1, 1, 4, 4, 5]
    found = mean_grades(judge, people, ["a", "b", "c", "d", "e"], seed=1)
    assert [each.value for each in found[::3]] == [1.5, 4.0]
    assert found[4].value == 5.0
    assert math.isnan(found[1].value) and math.isnan(found[2].value)
    assert all(math.isnan(each.low) for each in found), "five cases are too few for an interval"


def test_intervals_resample_whole_questions() -> None:
    # every question has one grade of the judge, so the mean is that of a few questions, not of many cases
    rng = generator(1, "bias")
    by_question = rng.integers(1, 6, 10)
    judge, people = np.repeat(by_question, 20), np.full(200, 3)
    clusters = [f"q{number // 20}" for number in range(200)]
    found = mean_grades(judge, people, clusters, seed=1)[2]
    alone = mean_grades(judge, people, [str(number) for number in range(200)], seed=1)[2]
    assert found.value == alone.value == pytest.approx(by_question.mean())
    assert found.half > 3 * alone.half


def kappa_of(judge: list[int], people: list[int]) -> float:
    """Cohen's kappa with quadratic weights, by its definition."""
    observed = sum((one - two) ** 2 for one, two in zip(judge, people, strict=True)) / len(judge)
    expected = sum((one - two) ** 2 for one, two in product(judge, people)) / len(judge) ** 2
    return 1 - observed / expected


def test_the_test_enumerates_what_the_definition_says() -> None:
    # two questions of two cases: four swaps, of which two have the observed difference and two that of mixed judges
    people, first, second = [1, 5, 2, 4], [1, 5, 2, 4], [2, 5, 2, 3]
    clusters = ["a", "a", "b", "b"]
    observed = abs(kappa_of(first, people) - kappa_of(second, people))
    mixed = abs(kappa_of([1, 5, 2, 3], people) - kappa_of([2, 5, 2, 4], people))
    assert mixed < observed
    p = kappa_difference_test(first, second, people, clusters, draws=20_000, seed=1)
    assert p == pytest.approx(0.5, abs=0.02)
    assert check_labels(second, people, clusters, seed=1).kappa.value == pytest.approx(kappa_of(second, people))


def test_ends_of_the_test() -> None:
    people = [1, 2, 3, 4, 5] * 20
    clusters = [f"q{number // 5}" for number in range(100)]
    off = [min(5, grade + 1) for grade in people]
    assert kappa_difference_test(people, people, people, clusters, seed=1) == 1.0
    assert kappa_difference_test(people, off, people, clusters, draws=999, seed=1) == pytest.approx(0.001)
    assert math.isnan(kappa_difference_test([3] * 100, people, [3] * 100, clusters, seed=1))
    assert math.isnan(kappa_difference_test([], [], [], [], seed=1))


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="1 to 5"):
        kappa_difference_test([6], [1], [1], ["a"], seed=1)
    with pytest.raises(ValueError, match="lengths"):
        mean_grades([1, 2], [1], ["a"], seed=1)
    with pytest.raises(ValueError, match="draws"):
        kappa_difference_test([1], [1], [1], ["a"], draws=0, seed=1)


def test_false_alarms_are_as_rare_as_promised() -> None:
    found = []
    for seed in range(100):
        rng = generator(seed, "alarms")
        people = rng.integers(1, 6, 120)
        sides = [np.clip(people + rng.integers(-1, 2, 120), 1, 5) for _ in range(2)]
        clusters = [f"q{number // 4}" for number in range(120)]
        found.append(kappa_difference_test(*sides, people, clusters, draws=199, seed=seed))
    assert np.mean(np.array(found) < 0.05) <= 0.11
    assert 0.35 < np.mean(np.array(found) < 0.5) < 0.65
