"""A question's sheet: what is on it and what is not, and that its size can be stated."""

from __future__ import annotations

from typing import Any

import pytest

from raggs.base.artifacts import Placement, RankingRecord, RankRecord, Span
from raggs.golden.base import LabelRecord
from raggs.golden.views import (
    SHEETS,
    HitView,
    HumanLabel,
    PassageView,
    QuestionView,
    ReturnedHits,
    kind_of,
    rank_of_position,
    sheet_json,
    sheet_of,
)
from raggs.runs.manifests.rank_messages import STOPS


def place(rank: int, *below: str) -> RankRecord:
    return RankRecord(
        qid="q",
        rank=rank,
        doc_id="d",
        grade=5,
        score=5.0 - rank,
        sigma=0.25,
        confidence=0.91234,
        rank_low=rank,
        rank_high=rank + 1,
        membership=1.0,
        exposures=3,
        locks_out=below,
    )


def label(doc_id: str, grade: int | None, **more: Any) -> LabelRecord:
    return LabelRecord(qid="q", doc_id=doc_id, grade=grade, **more)


def view() -> QuestionView:
    """Three passages that are ranked, one that is not, and one that no system shows at its top."""
    passages = (
        PassageView("worst", 1, judged=label("worst", 1), cut="grade 1"),
        PassageView("second", 2, {"bm25": Placement(rank=2, score=1.0)}, "Title", "x" * 100, place=place(2)),
        PassageView(
            "best",
            3,
            span=Span(source="a.md", start=3, end=9),
            judged=label("best", 5, judge="human: ada", reason="so"),
            place=place(1, "second", "third"),
            words=(HumanLabel("ada", 5, "yes"), HumanLabel("bo", None, settles=True)),
        ),
        PassageView("third", 4, place=place(3), duplicate_of="second"),
        PassageView("last", 5, judged=label("last", None, error="no answer")),
    )
    lists = (
        ReturnedHits(
            "bm25", (HitView(1, "worst", 2.0, 1), HitView(2, "far", 1.5, None), HitView(3, "last", 1.0, None)), 3
        ),
    )
    metadata = {"type": "fact", "page": 3, "list": [1], "none": ""}
    course = RankingRecord(qid="q", calls=4, skipped=0, stop_reason="cap", expected_inversions=1.2345)
    return QuestionView(
        "q1", "What?", language="en", metadata=metadata, passages=passages, course=course, systems=lists
    )


def test_the_order_stands_first_and_lists_point_to_rows() -> None:
    sheet = sheet_of(view(), 2)
    assert [row.id for row in sheet.rows] == ["best", "second", "third", "worst", "last"]
    assert [(each.system, each.found, each.hits) for each in sheet.lists] == [("bm25", 3, (3, "far", 4))]
    best, second, third, worst, last = sheet.rows
    assert (best.locked, best.sure, best.by, best.said, best.where) == (True, 0.912, "human", "so", "a.md 3–9")
    assert best.below == ("second", "third")
    assert (second.locked, second.sure, third.sure) == (False, 0.912, None)
    assert (third.twin, worst.cut, worst.rank, last.grade, last.said) == ("second", "grade 1", None, None, "no answer")
    assert (sheet.top, sheet.doubt, sheet.stopped, sheet.kind, sheet.pool) == (2, 1.23, STOPS["cap"], "fact", 5)
    assert sheet.facts == (("page", "3"),)


def test_a_short_sheet_holds_what_systems_show_at_their_top() -> None:
    sheet = sheet_of(view(), 2, depth=2)
    assert [row.id for row in sheet.rows] == ["best", "second", "third", "worst"]
    assert sheet.lists[0].hits == (3, "far")
    assert (sheet.lists[0].found, sheet.pool) == (3, 5)
    assert sheet.rows[1].text == "x" * 100


def test_where_no_system_is_known_a_short_sheet_shows_the_best_of_the_rest() -> None:
    labels = tuple(PassageView(f"d{number}", judged=label(f"d{number}", number % 5 + 1)) for number in range(60))
    sheet = sheet_of(QuestionView("q", passages=labels), 0, depth=10)
    assert [row.grade for row in sheet.rows] == sorted((number % 5 + 1 for number in range(60)), reverse=True)[:50]
    assert sheet.pool == 60


def test_the_answers_that_a_grade_was_made_of_are_told_where_there_were_several() -> None:
    def votes(**more: object) -> str:
        return PassageView("d", judged=label("d", 3, **more)).votes

    assert votes(samples=(3,)) == votes() == PassageView("d").votes == ""
    assert votes(samples=(4, 3, None)) == "4 3 –"
    assert votes(samples=(4, 3), votes={"one": (4, 3), "other": (None, 2)}) == "one 4 3; other – 2"


def test_what_goes_without_saying_is_not_written_and_comes_back() -> None:
    sheet = sheet_of(view(), 2)
    written = sheet_json(sheet)
    assert b"rewrite" not in written
    assert SHEETS.validate_json(written) == sheet


def test_a_question_without_anything_has_a_sheet() -> None:
    assert sheet_json(sheet_of(QuestionView("q"), 5)) == b'{"id":"q"}'


def test_its_kind_is_what_its_author_calls_so() -> None:
    assert [kind_of(each) for each in ({"kind": "list"}, {"type": "why"}, {"type": 3}, {})] == ["list", "why", "", ""]


@pytest.mark.parametrize(("position", "rank"), [(1, 1), (2, 3), (3, 4), (4, 7), (5, 8), (9, 12)])
def test_a_position_without_near_duplicates_has_a_rank_in_the_list(position: int, rank: int) -> None:
    assert rank_of_position(position, (1, 3, 4, 7)) == rank
    assert rank_of_position(position, ()) == position
