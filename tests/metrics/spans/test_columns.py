"""Places of several documents on one line, and what is counted there."""

from __future__ import annotations

import numpy as np
import pytest

from raggs.metrics.spans import DocumentOffsets, LengthScale, Spans
from raggs.metrics.spans.columns import union


def test_spans_of_two_documents_never_meet_on_the_line() -> None:
    line, spans = DocumentOffsets.of([10, 5]), Spans.of([(0, 0, 10), (1, 0, 5)])
    assert line.ends(spans)[0] < line.starts(spans)[1]
    assert line.length == 17


@pytest.mark.parametrize("row", [(0, 5, 4), (-1, 0, 1), (0, -1, 1)])
def test_what_is_no_span_is_refused(row: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="do not hold"):
        Spans.of([row])


def test_a_cut_token_counts_by_its_share_so_that_parts_add_up() -> None:
    line = DocumentOffsets.of([10, 4])
    ruler = LengthScale.tokens(line, [[0, 4, 8], [0, 2]], [10, 4])
    at = np.array([0, 2, 5, 10]), np.array([2, 5, 10, 10])
    assert ruler.between(*at).tolist() == [0.5, 0.75, 1.75, 0.0]
    assert ruler.between(np.array([11]), np.array([15])).tolist() == [2.0]


def test_two_tokens_in_one_character_both_count() -> None:
    ruler = LengthScale.tokens(DocumentOffsets.of([2]), [[0, 0, 1]], [2])
    assert ruler.between(np.array([0]), np.array([1])).tolist() == [2.0]


def test_a_union_counts_each_character_once_and_groups_apart() -> None:
    group, starts, ends = np.array([1, 0, 0, 0]), np.array([0, 5, 0, 2]), np.array([3, 6, 4, 3])
    assert union(3, group, starts, ends, 10, LengthScale.characters()).tolist() == [5.0, 3.0, 0.0]
