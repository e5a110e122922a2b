"""The split into dev and test: by name alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stats.question_filters import part_of


@given(key=st.text(), seed=st.integers(), small=st.floats(0, 1), large=st.floats(0, 1))
def test_a_larger_share_keeps_what_a_smaller_one_held(key: str, seed: int, small: float, large: float) -> None:
    if part_of(key, seed, min(small, large)) == "dev":
        assert part_of(key, seed, max(small, large)) == "dev"


def test_shares_hold_in_the_mean_and_seeds_differ() -> None:
    keys = [f"q{number}" for number in range(2000)]
    dev = {key for key in keys if part_of(key, 0, 0.3) == "dev"}
    assert 520 < len(dev) < 680
    other = {key for key in keys if part_of(key, 1, 0.3) == "dev"}
    assert 120 < len(dev & other) < 240


def test_all_or_nothing() -> None:
    assert part_of("a", 0, 1.0) == "dev"
    assert part_of("a", 0, 0.0) == "test"
    with pytest.raises(ValueError, match="the share of dev"):
        part_of("a", 0, 1.5)
