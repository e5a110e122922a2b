from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.metrics.bottleneck import DELTAS, recall_profile

RECALLS = st.lists(st.tuples(st.integers(0, 10), st.integers(1, 10)).map(lambda pair: min(pair) / pair[1]), min_size=1)


@given(RECALLS)
def test_the_area_under_the_curve_is_the_mean(values):
    profile = recall_profile(np.array(values))
    assert profile.area == pytest.approx(profile.mean) == pytest.approx(np.mean(values))


@given(RECALLS)
def test_shares_fall_histograms_add_up_and_percentiles_rise(values):
    profile = recall_profile(np.array(values))
    assert tuple(profile.shares) == DELTAS
    shares = list(profile.shares.values())
    assert shares == sorted(shares, reverse=True)
    assert sum(profile.histogram) == len(values)
    assert profile.zero == sum(value == 0 for value in values) / len(values)
    reached = list(profile.percentiles.values())
    assert reached == sorted(reached)
    assert set(reached) <= set(values)


def test_a_recall_of_3_in_10_reaches_a_delta_of_0_3():
    profile = recall_profile(np.array([0.1 + 0.2, 3 / 10, 0.29, 1.0]))
    assert profile.shares[0.3] == 0.75
    assert profile.histogram == (0, 0, 1, 2, 0, 0, 0, 0, 0, 1)
    assert profile.shares[1.0] == 0.25


def test_undefined_queries_are_left_out():
    assert recall_profile(np.array([math.nan, 0.5])) == recall_profile(np.array([0.5]))


@pytest.mark.parametrize("values", [[], [math.nan], [-0.1, 0.5], [1.1]])
def test_what_is_no_recall_is_refused(values):
    with pytest.raises(ValueError, match="0 to 1"):
        recall_profile(np.array(values))
