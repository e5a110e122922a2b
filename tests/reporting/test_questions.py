"""The report's questions: the table's figures, the two lists of ten, and sheets that come back as they were packed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.project import make_project
from support.reports import facts

from raggs import load_config, run
from raggs.app.report import ReportRequest, gather
from raggs.golden.questions import GoldenQuestions
from raggs.golden.views import HumanLabelLine, QuestionSheet, ReturnedList, SheetPassage, sheet_of
from raggs.reporting.base import ReportFacts
from raggs.reporting.page import MAX_PASSAGE_CHARS, MAX_TEXT_BYTES, SheetPacking
from raggs.reporting.sections.questions import DEEP, QuestionsSection

FIELDS = (
    "p",
    "grade",
    "by",
    "rank",
    "low",
    "high",
    "sure",
    "locked",
    "score",
    "sigma",
    "twin",
    "said",
    "cut",
    "words",
    "below",
    "votes",
)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> ReportFacts:
    project = make_project(tmp_path_factory.mktemp("asked"), queries=12, corpus=30, rank={"top": 3, "max_calls": 3})
    folder = run(load_config(project.config)).store.folder
    return gather(ReportRequest(folder, out=Path("r.html")))


def test_a_line_says_what_systems_make_of_a_question(given: ReportFacts) -> None:
    part = QuestionsSection().data(given)
    assert part is not None
    assert given.report is not None
    assert part.systems == ("bm25", "dense", "fused")
    for line, view in zip(part.lines, GoldenQuestions(given.golden), strict=True):
        assert (line.id, line.text, line.pool) == (view.qid, view.text, len(view.passages))
        assert line.good == sum((grade or 0) >= 4 for grade in view.grades.values())
        assert line.doubt == round(view.course.expected_inversions, 2)
        found = [given.report.per_query[name][part.measure][line.id] for name in part.systems]
        assert line.scores == tuple(round(value, 4) for value in found)
        assert all(0 <= loss <= 1 for loss in line.losses)


def test_the_lists_of_ten_are_the_extremes(given: ReportFacts) -> None:
    part = QuestionsSection().data(given)
    assert part is not None
    doubts = sorted((line.doubt for line in part.lines), reverse=True)
    assert [float(each.value) for each in part.unsure] == [round(doubt, 1) for doubt in doubts[:10]]
    spans = sorted((max(line.scores) - min(line.scores) for line in part.lines), reverse=True)
    assert [each.value for each in part.apart] == [f"{span:.3f}" for span in spans[:10] if span > 0]
    assert part.widest == sum(f"{span:.3f}" == part.apart[0].value for span in spans)


def test_a_packed_sheet_holds_what_the_question_has(given: ReportFacts) -> None:
    part = QuestionsSection().data(given)
    assert part is not None
    asked = GoldenQuestions(given.golden, given.systems, depth=DEEP)
    for line, packed in zip(part.lines, part.sheets, strict=True):
        sheet = sheet_of(asked.view(line.id), asked.top, depth=DEEP)
        *head, rows, lists = json.loads(packed)
        assert head == [sheet.rewrite, sheet.answer, [], sheet.top, part.names.index(sheet.stopped), sheet.pool]
        for row, values in zip(sheet.rows, rows, strict=True):
            told = dict(zip(FIELDS, values, strict=False))
            assert part.passages[told["p"]][:2] == (row.id, row.title)
            assert (told.get("grade", 0) - 1 if told.get("grade") else None, part.names[told["by"]]) == (
                row.grade,
                row.by,
            )
            here = [each.id for each in sheet.rows]
            assert [here[place] for place in told.get("below", [])] == [each for each in row.below if each in here]
            assert told.get("votes", "") == row.votes
            assert row.rank or told.get("low") == row.pooled
            assert (told.get("rank", 0), told.get("sure", 0)) == (
                row.rank or 0,
                0 if row.rank is None else -1 if row.sure is None else round(row.sure, 2),
            )
        for each, (name, found, hits) in zip(sheet.lists, lists, strict=True):
            assert (part.names[name], found, tuple(hits)) == (each.system, each.found, each.hits)


def test_texts_are_left_out_where_they_must_not_travel(given: ReportFacts) -> None:
    part = QuestionsSection().data(replace(given, texts=False))
    assert part is not None
    assert {each[3] for each in part.passages} == {""}
    assert {each[1] for each in part.passages} == {""}


def test_labels_alone_have_questions_and_a_set_without_any_has_no_section() -> None:
    part = QuestionsSection().data(facts())
    assert part is not None
    assert [line.doubt for line in part.lines] == [None] * len(part.lines)
    assert part.unsure == ()


def test_all_texts_together_have_a_limit_and_short_ones_stay_whole() -> None:
    packing = SheetPacking(texts=True)
    rows = tuple(
        SheetPassage(f"p{number}", text="x" * (100 if number % 2 else MAX_PASSAGE_CHARS)) for number in range(6_000)
    )
    packing.pack(QuestionSheet("q", rows=rows))
    found = list(packing.passages())
    assert sum(len(text) for *_, text, _ in found) <= MAX_TEXT_BYTES
    assert {len(text) for *_, text, _ in found[1::2]} == {100}
    assert all(len(text) + more == len(row.text) for (*_, text, more), row in zip(found, rows, strict=True))
    few = SheetPacking(texts=True)
    few.pack(QuestionSheet("q", rows=rows[:3]))
    assert [more for *_, more in few.passages()] == [0, 0, 0]


def test_what_would_turn_the_order_of_letters_is_an_escape_in_the_innermost_text() -> None:
    packing = SheetPacking(texts=True)
    word = HumanLabelLine("ada", None, "a\u202eb")
    row = SheetPassage("d", said="x\u202ey", words=(word,))
    packed = packing.pack(
        QuestionSheet("q", rewrite="\u2066z", rows=(row,), lists=(ReturnedList("bm25", 2, (0, "far")),))
    )
    rewrite, *_, rows, lists = json.loads(packed)
    assert (rewrite, rows[0][11], rows[0][13]) == ("\\u2066z", "x\\u202ey", [["ada", 0, "a\\u202eb", 0]])
    assert lists == [[1, 2, [0, -2]]]
    assert [each[0] for each in packing.passages()] == ["d", "far"]
