"""The map from a judge's grades to people's: what it learns, that it never falls, and whether it helps elsewhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize

from raggs.base.arrays import Floats
from raggs.base.hashing import generator
from raggs.stats.correction import _rising, calibrate

pairs = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=40)


def questions(count: int) -> list[str]:
    return [f"q{number // 5}" for number in range(count)]


def test_a_generous_judge_is_brought_down() -> None:
    rng = generator(1, "calibration")
    people = rng.integers(1, 6, 1000)
    judge = np.minimum(people + 1, 5)
    found = calibrate(judge, people, questions(1000), seed=1)
    assert found.expected[1] == pytest.approx(1.0, abs=0.05)
    assert found.expected[2] == pytest.approx(2.0, abs=0.05)
    assert found.expected[4] == pytest.approx(4.5, abs=0.1)
    assert found.cases == tuple((judge == grade).sum() for grade in range(1, 6))
    assert found.helps
    assert found.error == pytest.approx(math.sqrt(((judge - people) ** 2).mean()))
    assert found.error_mapped < 0.5 * found.error


def test_a_right_judge_is_left_alone() -> None:
    grades = [1, 2, 3, 4, 5] * 20
    found = calibrate(grades, grades, questions(100), seed=1)
    assert found.expected == pytest.approx((1.0, 2.0, 3.0, 4.0, 5.0))
    assert (found.error, found.error_mapped) == pytest.approx((0.0, 0.0))
    assert not found.helps


def test_few_cases_are_hardly_believed() -> None:
    """One 5 that people call a 1, among a hundred grades that agree, does not make all 5s worth 1."""
    found = calibrate([1, 2, 3, 4] * 25 + [5], [1, 2, 3, 4] * 25 + [1], questions(101), seed=1)
    assert 4.0 < found.expected[4] < 5.0


@given(pairs)
def test_the_map_never_falls_and_stays_among_the_grades(given_: list[tuple[int, int]]) -> None:
    judge, people = zip(*given_, strict=True)
    found = calibrate(judge, people, questions(len(judge)), seed=1)
    assert list(found.expected) == sorted(found.expected)
    assert found.expected[0] >= 1.0
    assert found.expected[4] <= 5.0
    assert math.isnan(found.error_mapped) == (len(judge) <= 5), "one question leaves none to learn from"


@pytest.mark.skipif(not hasattr(optimize, "isotonic_regression"), reason="scipy has it from 1.12 on")
@given(
    arrays(np.float64, 6, elements=st.floats(1, 5)),
    arrays(np.float64, 6, elements=st.floats(0.5, 9)),
)
def test_rising_values_are_those_of_scipy(values: Floats, weights: Floats) -> None:
    assert _rising(values, weights) == pytest.approx(optimize.isotonic_regression(values, weights=weights).x)


@pytest.mark.parametrize(
    ("judge", "people", "message"),
    [
        ([], [], "at least one pair of grades"),
        ([1], [1, 2], "the lengths must be equal"),
        ([0], [1], "grades must be 1 to 5"),
        ([1], [6], "grades must be 1 to 5"),
    ],
)
def test_what_is_no_pair_of_grades_is_refused(judge: list[int], people: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        calibrate(judge, people, ["q"] * len(judge), seed=1)


def test_the_mean_of_several_answers_says_more_than_the_grade_that_came_of_them() -> None:
    """A judge a grade too high on half of its answers, asked three times: how often tells what it is worth."""
    rng = generator(2, "answers")
    people = rng.integers(1, 6, 600)
    answers = np.clip(people[:, None] + (rng.random((600, 3)) < 0.5), 1, 5)
    judge = np.sort(answers, axis=1)[:, 1]
    found = calibrate(judge, people, questions(600), seed=1, means=answers.mean(axis=1))
    assert found.error_by_mean < 0.7 * found.error_mapped < 0.7 * found.error
    assert [point.mean for point in found.by_mean] == sorted({*answers.mean(axis=1).round(6).tolist()})
    expected = [point.expected for point in found.by_mean]
    assert expected == sorted(expected)
    assert 1.0 <= expected[0] <= expected[-1] <= 5.0
    assert sum(point.cases for point in found.by_mean) == 600
    assert calibrate(judge, people, questions(600), seed=1).expected == found.expected, "the map of the grade stays"


def test_a_mean_that_comes_no_nearer_has_no_map() -> None:
    rng = generator(3, "answers")
    people = rng.integers(1, 6, 300)
    found = calibrate(people, people, questions(300), seed=1, means=rng.uniform(1, 5, 300))
    assert found.by_mean == ()
    assert found.error_by_mean > found.error_mapped
    assert math.isnan(calibrate(people, people, questions(300), seed=1).error_by_mean)
