"""What several grades come to, and how far they agree."""

from __future__ import annotations

from statistics import median_low

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.judges.agreement import Agreement, lower_median, weighted_grade

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


def counted(pairs: list[tuple[int | None, int | None]]) -> Agreement:
    found = Agreement()
    for first, second in pairs:
        found.add(first, second)
    return found


@given(st.lists(st.tuples(MAYBE, MAYBE), max_size=40))
def test_kappa_is_one_minus_observed_over_expected_disagreement(pairs: list[tuple[int | None, int | None]]) -> None:
    found, both = counted(pairs), [(a, b) for a, b in pairs if a is not None and b is not None]
    table = np.zeros((5, 5))
    for first, second in both:
        table[first - 1, second - 1] += 1
    cost = np.subtract.outer(np.arange(5), np.arange(5)) ** 2
    chance = np.outer(table.sum(1), table.sum(0)) / max(1, len(both))
    expected = (cost * chance).sum()
    if expected == 0:
        assert found.kappa is None
    else:
        assert found.kappa == pytest.approx(1 - (cost * table).sum() / expected)
    assert found.exact == (pytest.approx(np.trace(table) / len(both)) if both else None)


def test_kappa_of_a_table_worked_by_hand() -> None:
    # Disagreement seen: 1 of 4 by one grade, 0.25; by chance, margins (2, 2) and (1, 3) of grades 1 and 2: 0.5.
    assert counted([(1, 1), (1, 2), (2, 2), (2, 2)]).summary() == {"pairs": 4, "exact": 0.75, "kappa": 0.5}


def test_nothing_to_compare_is_no_number() -> None:
    assert counted([(None, 3), (2, None)]).summary() == {"pairs": 0, "exact": None, "kappa": None}
    assert counted([(3, 3)]).summary() == {"pairs": 1, "exact": 1.0, "kappa": None}
