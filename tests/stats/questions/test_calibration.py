"""The search for a threshold, with somebody who knows it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stats.question_filters import ThresholdSearch, furthest_excerpt, histogram, nearest_earlier

COSINES = st.lists(st.floats(0, 1), max_size=60).map(lambda values: np.array(values, dtype=np.float64))


@given(cosines=COSINES, true=st.floats(0, 1))
def test_it_ends_and_shows_no_pair_twice(cosines: np.ndarray, true: float) -> None:
    search, shown = ThresholdSearch(cosines), []
    while (row := search.standing().row) is not None:
        shown.append(row)
        search.answer(bool(cosines[row] > true))
        assert len(shown) <= 3 * 7
    assert len(set(shown)) == len(shown)


@given(true=st.floats(0.05, 0.95), seed=st.integers(0, 9))
def test_it_finds_a_threshold_that_parts_the_pairs(true: float, seed: int) -> None:
    cosines = np.random.default_rng(seed).uniform(0, 1, 2000)
    search = ThresholdSearch(cosines)
    while (row := search.standing().row) is not None:
        search.answer(bool(cosines[row] > true))
    assert search.standing().threshold == pytest.approx(true, abs=0.015)


def test_one_odd_pair_does_not_decide() -> None:
    cosines = np.linspace(0, 1, 101)
    search = ThresholdSearch(cosines)
    search.answer(False)
    search.answer(True)
    search.answer(True)
    assert search.standing().high == 0.5


@given(cosines=COSINES, answers=st.lists(st.booleans(), max_size=10))
def test_taking_back_forgets(cosines: np.ndarray, answers: list[bool]) -> None:
    search = ThresholdSearch(cosines)
    before = [search.standing()]
    for each in answers:
        search.answer(each)
        before.append(search.standing())
    for standing in reversed(before[:-1]):
        assert search.undo()
        assert search.standing() == standing
    assert not search.undo()


def test_no_pairs_need_no_look() -> None:
    assert ThresholdSearch(np.empty(0)).standing().row is None
    assert ThresholdSearch(np.array([0.5])).standing().threshold == 0.5


def test_pairs_are_each_question_and_its_nearest_before_it() -> None:
    vectors = np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32)
    cosines, nearest = nearest_earlier(vectors)
    assert nearest == [0, 1]
    assert cosines == pytest.approx([0, 0.8])
    assert nearest_earlier(vectors[:0])[1] == []


def test_of_several_excerpts_the_furthest_counts() -> None:
    cosines, rows = furthest_excerpt(np.array([0.9, 0.2, 0.5]), [1, 1, 0])
    assert (cosines.tolist(), rows) == ([0.5, 0.2], [2, 1])


def test_a_histogram_counts_all() -> None:
    found = histogram(np.array([-0.5, 0.0, 0.5, 1.0]), bins=2)
    assert found == ((0.0, 2), (0.5, 2))
