"""The leaf of array types: float32 as JSON writes it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.arrays import shortest_float, shortest_floats

floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(("value", "written"), [(0.1, "0.1"), (1 / 3, "0.33333334"), (1e-30, "1e-30"), (-2.5, "-2.5")])
def test_a_float32_is_written_with_no_digit_too_many(value, written):
    assert json.dumps(shortest_float(value)) == written


@pytest.mark.nightly
@given(st.lists(floats))
def test_the_digits_read_back_as_the_same_float32(values):
    row = np.array(values, dtype=np.float32)
    shortest = shortest_floats(row)
    assert shortest == [shortest_float(value) for value in row]
    assert np.array_equal(np.array(shortest, dtype=np.float32), row)
