"""Judged text by place, against every character by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.artifacts import Passage, Span
from raggs.base.errors import DataError
from raggs.golden.places import JudgedText, same_documents

TEXT = "abcdefghijklmnopqrstuvwxyz"
PLACES = st.tuples(st.integers(0, 25), st.integers(1, 8)).map(lambda row: (row[0], min(26, row[0] + row[1])))


def passage(place: tuple[int, int], text: str = TEXT) -> Passage:
    return Passage(doc_id="p", text=text[slice(*place)], span=Span(source="f", start=place[0], end=place[1]))


@given(judged=st.lists(PLACES, min_size=1, max_size=8), asked=PLACES, changed=st.integers(0, 25))
def test_a_change_is_found_where_it_was_judged_and_only_there(
    judged: list[tuple[int, int]], asked: tuple[int, int], changed: int
) -> None:
    canvas = JudgedText("set")
    for place in judged:
        canvas.paint(passage(place))
    assert canvas.check(passage(asked), "there").start == asked[0]
    other = passage(asked, TEXT[:changed] + "!" + TEXT[changed + 1 :])
    seen = asked[0] <= changed < asked[1] and any(start <= changed < end for start, end in judged)
    if seen:
        with pytest.raises(DataError, match="has changed"):
            canvas.check(other, "there")
    else:
        canvas.check(other, "there")


@given(judged=st.lists(PLACES, min_size=2, max_size=6), changed=st.integers(0, 25), which=st.integers(0, 5))
def test_judged_passages_must_have_one_text_where_they_overlap(
    judged: list[tuple[int, int]], changed: int, which: int
) -> None:
    judged = list(dict.fromkeys(judged))
    odd = judged[which % len(judged)]
    canvas = JudgedText("set")
    for place in judged:
        canvas.paint(passage(place, TEXT[:changed] + "!" + TEXT[changed + 1 :] if place == odd else TEXT))
    others = [place for place in judged if place != odd]
    if odd[0] <= changed < odd[1] and any(start <= changed < end for start, end in others):
        with pytest.raises(DataError, match="has changed"):
            canvas.check(passage((0, 1)), "there")
    elif not odd[0] <= changed < odd[1]:
        canvas.check(passage((0, 26)), "there")


def test_what_is_no_run_has_no_documents(tmp_path) -> None:
    assert not same_documents(tmp_path, tmp_path / "none")
