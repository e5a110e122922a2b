"""Overlapping spans by an index, against looking at every pair."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from raggs.metrics.spans import SpanIndex

STRETCHES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=20).map(
    lambda rows: [(start, start + length) for start, length in rows]
)


def columns(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


@given(spans=STRETCHES, asked=STRETCHES, touching=st.booleans())
def test_it_finds_what_looking_at_every_pair_finds(
    spans: list[tuple[int, int]], asked: list[tuple[int, int]], touching: bool
) -> None:
    asked = [(start, end) for start, end in asked if touching or end > start]
    found = SpanIndex(*columns(spans), touching=touching).overlapping(*columns(asked))
    naive = [
        (row, place)
        for row, (start, end) in enumerate(asked)
        for place, (first, last) in enumerate(spans)
        if (max(start, first) <= min(end, last) if touching else max(start, first) < min(end, last))
    ]
    assert list(zip(*map(np.ndarray.tolist, found), strict=True)) == naive


def test_overlapping_chunks_of_one_size_need_one_layer() -> None:
    starts = np.arange(0, 1000, 5)
    assert SpanIndex(starts, starts + 10).layers == 1


def test_spans_inside_each_other_need_a_layer_each() -> None:
    assert SpanIndex(np.array([0, 1, 2]), np.array([9, 8, 7])).layers == 3
