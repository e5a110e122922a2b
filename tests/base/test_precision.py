"""Rounding to half precision, bit by bit, and what the last step does with it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.arrays import round_to_dtype
from raggs.base.precision import PrecisionSettings

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
    assert round_to_dtype(bits(before), "bf16").view(np.uint32).tolist() == [after]


@given(FLOATS)
def test_bf16_is_the_nearest_of_both_neighbours(value: float) -> None:
    single = np.float32(value)
    low = (np.array([single]).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)[0]
    high = (np.array([low]).view(np.uint32) + np.uint32(0x10000)).view(np.float32)[0]
    found = round_to_dtype(np.array([single]), "bf16")[0]
    if np.isfinite(high):
        distances = [abs(float(single) - float(each)) for each in (low, high)]
        assert abs(float(single) - float(found)) == min(distances)
    assert round_to_dtype(np.array([found]), "bf16")[0] == found


def test_shapes_nan_and_infinity_stay() -> None:
    values = np.array([[np.nan, np.inf], [-np.inf, 0.1]], dtype=np.float32)[:, ::-1]
    for dtype in ("bf16", "f16"):
        found = round_to_dtype(values, dtype)
        assert found.shape == values.shape and found.dtype == np.float32
        assert np.isnan(found[0, 1]) and found[0, 0] == np.inf and found[1, 1] == -np.inf
    assert round_to_dtype(np.float32([1e6]), "f16")[0] == np.inf
    assert round_to_dtype(np.float32([0.1]), "f16")[0] == np.float32(np.float16(0.1))
    assert (round_to_dtype(values, "f32")[1] == values[1]).all()


def sigmoid(logits: np.ndarray) -> np.ndarray:
    return (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)


def largest_tie(scores: np.ndarray) -> int:
    return int(np.unique(scores, return_counts=True)[1].max())


def test_rounded_scores_tie_where_those_of_rounded_logits_do_not() -> None:
    """100 confident logits, as a reranker gives them: near 1 a sigmoid has few values in bf16."""
    logits = np.linspace(2.0, 9.0, 100, dtype=np.float32)
    plain, careful = (PrecisionSettings(dtype="bf16", high_precision=each) for each in (False, True))
    assert largest_tie(plain.last(sigmoid(plain.part(logits)))) >= 17
    assert largest_tie(careful.last(sigmoid(careful.part(logits)))) <= 4
    assert largest_tie(PrecisionSettings().last(sigmoid(PrecisionSettings().part(logits)))) == 1


# The logits, each a bfloat16, behind a published list of 94 scores that a reranker gave to the candidates of one query
# (reliable evaluation at low precision, appendix B): the list is the sigmoid of them in float32.
LOGITS = """
7.5625 7.3125 7.25 7.125 7.0625 6.75 6.75 6.6875 6.5625 6.375 6.0625 6.0625 6 6 5.9375 5.875 5.875 5.8125 5.75
5.6875 5.6875 5.5 5.4375 5.4375 5.3125 5.3125 5.25 5.1875 5.1875 5.125 5.125 5.125 5 5 5 4.875 4.75 4.75 4.75
4.6875 4.6875 4.625 4.5625 4.5 4.5 4.4375 4.4375 4.375 4.25 4.125 4 3.8125 3.75 3.625 3.5 3.4375 3.4375 3.4375
3.375 3.375 3.25 3.1875 3.1875 3.1875 3.125 3.125 3.125 3.125 3.0625 3 3 2.9375 2.9375 2.875 2.875 2.875 2.75
2.75 2.625 2.0625 2 2 1.9375 1.875 1.25 0.4375 0.0625 -0.125 -0.625 -0.8125 -0.9375 -1.5625 -2.375 -3.6875
""".split()  # noqa: SIM905
PUBLISHED = {0: 0.99948066, 1: 0.99933332, 2: 0.99929035, 7: 0.9987551, -5: 0.30735803, -2: 0.08509904, -1: 0.02442309}


def test_a_published_list_has_ties_of_4_and_of_19_where_its_scores_are_rounded() -> None:
    logits = np.array(LOGITS, dtype=np.float32)
    careful, plain = (PrecisionSettings(dtype="bf16", high_precision=each) for each in (True, False))
    assert (careful.part(logits) == logits).all(), "they are bfloat16 already"
    scores = careful.last(sigmoid(careful.part(logits)))
    assert {place: float(scores[place]) for place in PUBLISHED} == pytest.approx(PUBLISHED, abs=8e-8)
    assert largest_tie(scores) == 4
    assert largest_tie(plain.last(sigmoid(plain.part(logits)))) == 19
