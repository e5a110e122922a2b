"""Near-duplicates: what is one text and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.fusion.duplicates import group_duplicates

LONG = " ".join(f"word{number}" for number in range(100))


def test_case_and_punctuation_do_not_tell_texts_apart() -> None:
    assert group_duplicates([LONG, "Other words entirely here.", LONG.upper() + "!"], 0.95) == [0, 1, 0]


def test_a_word_in_a_hundred_is_a_near_duplicate_and_a_word_in_ten_is_not() -> None:
    once = LONG.replace("word50 ", "changed ")
    often = " ".join(f"changed{number}" if number % 10 == 0 else f"word{number}" for number in range(100))
    # One changed word touches three of 98 shingles: 95 / 101 = .94.
    assert group_duplicates([LONG, once, often], 0.94) == [0, 0, 2]
    assert group_duplicates([LONG, once, often], 0.95) == [0, 1, 2]


def test_short_texts_are_compared_whole() -> None:
    assert group_duplicates(["yes", "no", " Yes ", "yes no"], 0.95) == [0, 1, 0, 3]


def test_a_chain_of_small_changes_does_not_join_its_ends() -> None:
    chain = [LONG]
    for number in range(0, 60, 3):
        chain.append(chain[-1].replace(f"word{number} ", f"new{number} "))
    groups = group_duplicates(chain, 0.9)
    assert groups[0] == 0
    assert groups[-1] != 0


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.1])
def test_thresholds_outside_the_range(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        group_duplicates(["a"], threshold)


@given(st.lists(st.text(max_size=30), max_size=12), st.floats(0.1, 1))
def test_representatives_represent_themselves_and_come_first(texts: list[str], threshold: float) -> None:
    groups = group_duplicates(texts, threshold)
    for position, leader in enumerate(groups):
        assert leader <= position
        assert groups[leader] == leader
    assert all(groups[position] == groups[texts.index(text)] for position, text in enumerate(texts))
