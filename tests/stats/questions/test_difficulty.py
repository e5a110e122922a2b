"""Difficulty by how many systems find what answers."""

from __future__ import annotations

import numpy as np
import pytest

from raggs.stats.question_filters import difficulties


def test_levels_are_shares_of_the_systems() -> None:
    hits = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)
    found = difficulties(hits)
    assert [each.level for each in found] == ["easy", "easy", "medium", "unfound"]
    assert [each.found for each in found] == [3, 2, 1, 0]
    assert difficulties(np.array([[1, 0, 0, 0]], dtype=bool))[0].level == "hard"


def test_a_difficulty_needs_a_system() -> None:
    with pytest.raises(ValueError, match="at least one column"):
        difficulties(np.zeros((2, 0), dtype=bool))
