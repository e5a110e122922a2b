"""Rounding to half precision, bit by bit, and what the last step does with it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.precision import Scoring, rounded

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def bits(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.uint32).view(np.float32)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (0x3F800000, 0x3F800000),  # 1
        (0x3F808000, 0x3F800000),  # half way between 1 and the next: to the even one, below
        (0x3F818000, 0x3F820000),  # half way between the next and its neighbour: to the even one, above
        (0x3F808001, 0x3F810000),
        (0x3F807FFF, 0x3F800000),
        (0xBF818000, 0xBF820000),
        (0x80000000, 0x80000000),  # -0
        (0x7F7FFFFF, 0x7F800000),  # the greatest float32 is beyond the greatest bfloat16
    ],
)
def test_bf16_rounds_to_the_nearest_and_halves_to_even(before: int, after: int) -> None:
    assert rounded(bits(before), "bf16").view(np.uint32).tolist() == [after]


@given(FLOATS)
def test_bf16_is_the_nearest_of_both_neighbours(value: float) -> None:
    single = np.float32(value)
    low = (np.array([single]).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)[0]
    high = (np.array([low]).view(np.uint32) + np.uint32(0x10000)).view(np.float32)[0]
    found = rounded(np.array([single]), "bf16")[0]
    if np.isfinite(high):
        distances = [abs(float(single) - float(each)) for each in (low, high)]
        assert abs(float(single) - float(found)) == min(distances)
    assert rounded(np.array([found]), "bf16")[0] == found


def test_shapes_nan_and_infinity_stay() -> None:
    values = np.array([[np.nan, np.inf], [-np.inf, 0.1]], dtype=np.float32)[:, ::-1]
    for dtype in ("bf16", "f16"):
        found = rounded(values, dtype)
        assert found.shape == values.shape and found.dtype == np.float32
        assert np.isnan(found[0, 1]) and found[0, 0] == np.inf and found[1, 1] == -np.inf
    assert rounded(np.float32([1e6]), "f16")[0] == np.inf
    assert rounded(np.float32([0.1]), "f16")[0] == np.float32(np.float16(0.1))
    assert (rounded(values, "f32")[1] == values[1]).all()


def sigmoid(logits: np.ndarray) -> np.ndarray:
    return (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)


def largest_tie(scores: np.ndarray) -> int:
    return int(np.unique(scores, return_counts=True)[1].max())


def test_rounded_scores_tie_where_those_of_rounded_logits_do_not() -> None:
    """100 confident logits, as a reranker gives them: near 1 a sigmoid has few values in bf16."""
    logits = np.linspace(2.0, 9.0, 100, dtype=np.float32)
    plain, careful = (Scoring(dtype="bf16", high_precision=each) for each in (False, True))
    assert largest_tie(plain.last(sigmoid(plain.part(logits)))) >= 17
    assert largest_tie(careful.last(sigmoid(careful.part(logits)))) <= 4
    assert largest_tie(Scoring().last(sigmoid(Scoring().part(logits)))) == 1
