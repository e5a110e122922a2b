"""The map from a judge's grades to people's: what it learns, that it never falls, and whether it helps elsewhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize

from raggs.arrays import Floats
from raggs.correction import calibrate
from raggs.correction.calibration import _rising
from raggs.seeds import generator

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


@pytest.mark.parametrize(("judge", "people"), [([], []), ([1], [1, 2]), ([0], [1]), ([1], [6])])
def test_what_is_no_pair_of_grades_is_refused(judge: list[int], people: list[int]) -> None:
    with pytest.raises(ValueError, match="grades"):
        calibrate(judge, people, ["q"] * len(judge), seed=1)
