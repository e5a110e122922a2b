"""Pruning: whole grades from the best down, the last one cut by fused rank."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.pruning import prune


def kept(grades: list[int | None], low: int, high: int) -> list[int]:
    decisions = prune(grades, list(range(1, len(grades) + 1)), min_keep=low, max_keep=high)
    return [place for place, decision in enumerate(decisions) if decision.kept]


def test_whole_grades_are_kept_until_there_are_enough() -> None:
    assert kept([1, 5, 3, 3, 4, 2], 2, 6) == [1, 4]
    assert kept([1, 5, 3, 3, 4, 2], 3, 6) == [1, 2, 3, 4]


def test_the_last_grade_is_cut_by_fused_rank() -> None:
    decisions = prune([3, 5, 3, 3], [4, 1, 2, 3], min_keep=2, max_keep=3)
    assert [decision.kept for decision in decisions] == [False, True, True, True]
    assert decisions[0].why == "grade 3: cut at 3"


def test_what_has_no_grade_is_never_kept() -> None:
    assert kept([None, 1, None], 3, 3) == [1]
    assert prune([None], [1], min_keep=1, max_keep=1)[0].why == "no grade: the judge failed"


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="above max_keep"):
        prune([1], [1], min_keep=3, max_keep=2)
    with pytest.raises(ValueError, match="2 grades for 1 ranks"):
        prune([1, 2], [1], min_keep=1, max_keep=2)


@given(st.lists(st.sampled_from([None, 1, 2, 3, 4, 5]), max_size=40), st.integers(1, 20), st.integers(0, 20))
def test_the_rules_hold_for_any_pool(grades: list[int | None], low: int, extra: int) -> None:
    high = low + extra
    chosen = kept(grades, low, high)
    graded = [place for place, grade in enumerate(grades) if grade is not None]
    assert len(chosen) >= min(low, len(graded))
    assert len(chosen) <= high
    left = [place for place in graded if place not in chosen]
    # Nothing that is left has a better grade than anything kept, nor the same grade and a better fused rank.
    for out in left:
        assert all((-grades[place], place) < (-grades[out], out) for place in chosen)  # type: ignore[operator]
