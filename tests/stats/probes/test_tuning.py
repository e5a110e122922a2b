"""The least effort within a limit: by the interval's end, not by what was seen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raggs.stats.index_loss import least_effort, loss
from raggs.stats.intervals import Interval


def of(seen: float, high: float) -> Interval:
    return Interval(seen, 0.0, high, 0.95, 50, 0, "percentile")


def test_a_loss_is_a_share_of_what_the_exact_search_has() -> None:
    exact, mine = np.array([0.8, 0.4, np.nan, 0.6]), np.array([0.8, 0.4, 0.5, 0.3])
    found = loss(mine, exact, seed=1)
    assert found.mean == pytest.approx(1 - 1.5 / 1.8)
    assert (found.count, found.missing) == (3, 1)
    assert found.low == pytest.approx(0) and found.high > found.mean


def test_no_loss_is_none_and_a_gain_is_negative() -> None:
    values = np.array([0.2, 0.5, 0.9])
    assert loss(values, values, seed=1).high == pytest.approx(0, abs=1e-12)
    assert loss(values + 0.1, values, seed=1).high < 0


def test_where_nothing_can_be_lost_that_is_said() -> None:
    with pytest.raises(ValueError, match="mean of 0"):
        loss(np.zeros(3), np.zeros(3), seed=1)
    with pytest.raises(ValueError, match="for the same queries"):
        loss(np.zeros(3), np.ones(2), seed=1)


def test_the_first_effort_that_is_within_the_limit_beyond_doubt() -> None:
    losses = [
        [of(0.03, 0.05), of(0.02, 0.03)],
        [of(0.005, 0.02), of(0.001, 0.002)],  # seen to be within, but that may be luck
        [of(0.004, 0.009), of(0.006, 0.011)],  # at 10, and not at 30
        [of(0.003, 0.008), of(0.004, 0.01)],
        [of(0.0, 0.0), of(0.0, 0.0)],
    ]
    assert least_effort(losses, 0.01) == 3
    assert least_effort(losses, 0.001) == 4
    assert least_effort(losses[:3], 0.001) is None
    assert least_effort([[]], 0.01) is None
    assert least_effort([[of(0.0, math.nan)]], 0.01) is None  # what is in no known doubt is not beyond it
