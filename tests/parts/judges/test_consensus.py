"""What several grades come to."""

from __future__ import annotations

from statistics import median_low

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.parts.judges import lower_median, weighted_grade

GRADES = st.integers(1, 5)
MAYBE = st.one_of(st.none(), GRADES)


@pytest.mark.parametrize(
    ("grades", "expected"),
    [
        ([4], 4),
        ([None], None),
        ([], None),
        ([2, 5], 2),
        ([1, 5, 4], 4),
        ([2, 3, 4, 5], 3),
        ([None, 4], 4),
        ([None, None, 4], None),
        ([None, 3, 5], 3),
    ],
)
def test_the_lower_median_of_at_least_half(grades: list[int | None], expected: int | None) -> None:
    assert lower_median(grades) == expected


@given(st.lists(GRADES, min_size=1, max_size=7))
def test_without_failures_it_is_the_lower_median(grades: list[int]) -> None:
    assert lower_median(grades) == median_low(grades)


@pytest.mark.parametrize(
    ("grades", "weights", "expected"),
    [
        ([2, 5], [1, 1], 3),  # 3.5, a half goes down
        ([2, 5], [1, 2], 4),
        ([1, 5], [3, 1], 2),
        ([5, None], [1, 9], 5),
        ([5, None, None], [9, 1, 1], None),
        ([1, 2, 2], [0.1, 0.1, 0.1], 2),  # 1.67
        ([4, 5], [0.3, 0.3], 4),
    ],
)
def test_a_weighted_mean_is_rounded_a_half_down(
    grades: list[int | None], weights: list[float], expected: int | None
) -> None:
    assert weighted_grade(grades, weights) == expected


@given(st.lists(st.tuples(MAYBE, st.floats(0.01, 100)), min_size=1, max_size=6))
def test_a_weighted_grade_lies_among_those_given(pairs: list[tuple[int | None, float]]) -> None:
    grades, weights = [grade for grade, _ in pairs], [weight for _, weight in pairs]
    found, given_ = weighted_grade(grades, weights), [grade for grade in grades if grade is not None]
    assert (found is None) == (lower_median(grades) is None)
    assert found is None or min(given_) <= found <= max(given_)
