"""The judge that reads its answers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.judging import graded, judge, ordered, passage, query, written

from raggs.base.errors import DataError, NotFoundError

LINES = [
    {"qid": "q1", "doc_id": "d1", "grade": 4, "reason": "says so"},
    {"qid": "q1", "doc_id": "d2", "fail": "refused"},
    {"qid": "q1", "doc_id": "d3", "grade": 5},
    {"qid": "q2", "order": ["d3", "d1"]},
    {"qid": "q2", "doc_id": "d4", "grade": 3},
    {"qid": "q3", "fail_orders": 2},
]
PASSAGES = [passage(f"d{number}", f"text {number}") for number in range(1, 6)]


def script(folder: Path, *lines: Any, **settings: Any) -> Any:
    return judge("scripted", path=written(folder / "s.jsonl", *map(json.dumps, lines)), **settings)


def test_grades_and_failures_are_as_written(tmp_path: Path) -> None:
    who = script(tmp_path, *LINES, default_grade=2)
    answers = [graded(who, query("q1"), each) for each in PASSAGES]
    assert [answer.grade for answer in answers] == [4, None, 5, 2, 2]
    assert answers[0].reason == "says so"
    assert answers[1].error == "refused"
    assert graded(who, query("q2"), PASSAGES[0]).grade == 2, "another query's grade does not count"


def test_orders_are_as_written_then_by_grade_then_by_id(tmp_path: Path) -> None:
    who = script(tmp_path, *LINES)
    assert ordered(who, query("q2"), PASSAGES) == ["d3", "d1", "d4", "d2", "d5"]
    assert ordered(who, query("q1"), PASSAGES[::-1]) == ["d3", "d1", "d2", "d4", "d5"]


def test_orders_fail_as_often_as_written(tmp_path: Path) -> None:
    who = script(tmp_path, *LINES)
    answers = [asyncio.run(who.order(query("q3"), PASSAGES)) for _ in range(3)]
    assert [answer.order is None for answer in answers] == [True, True, False]
    assert answers[0].error
    assert ordered(who, query("q2"), PASSAGES)[0] == "d3", "another query's orders do not fail"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"doc_id": "d1", "grade": 4}', "qid is missing"),
        ('{"qid": 1, "doc_id": "d1", "grade": 4}', "qid is missing or is not a string"),
        ('{"qid": "q1", "grade": 4}', "doc_id is missing"),
        ('{"qid": "q1", "doc_id": "d1"}', "got None"),
        ('{"qid": "q1", "doc_id": "d1", "grade": 0}', "got 0"),
        ('{"qid": "q1", "doc_id": "d1", "grade": 6}', "got 6"),
        ('{"qid": "q1", "doc_id": "d1", "grade": 3.5}', "got 3.5"),
        ('{"qid": "q1", "doc_id": "d1", "grade": true}', "got True"),
        ('{"qid": "q1", "doc_id": "d1", "grade": "4"}', "got '4'"),
        ('{"qid": "q1", "doc_id": "d0", "grade": 5}', "occur twice"),
        ('{"qid": "q1", "order": "d1"}', "not a list"),
        ('{"qid": "q1", "order": [1]}', "not a list of passage ids"),
        ('{"qid": "q1", "order": ["d1", "d1"]}', "twice"),
        ('{"qid": "q0", "order": ["d1"]}', "already"),
        ('{"qid": "q1", "fail_orders": -1}', "got -1"),
        ('{"qid": "q1", "fail_orders": true}', "got True"),
        ("[]", "not a JSON object"),
        ("{", "not valid JSON"),
    ],
)
def test_a_line_that_cannot_be_right_is_named(tmp_path: Path, line: str, problem: str) -> None:
    good = ['{"qid": "q1", "doc_id": "d0", "grade": 3}', '{"qid": "q0", "order": ["d0"]}']
    who = judge("scripted", path=written(tmp_path / "s.jsonl", *good, line))
    with pytest.raises(DataError) as caught:
        who.check([query("q1")])
    assert problem in str(caught.value)
    assert (caught.value.where, caught.value.line) == (str(tmp_path / "s.jsonl"), 3)


def test_a_script_about_other_queries_is_refused_an_empty_one_is_not(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no line is for a query of this run"):
        script(tmp_path, *LINES).check([query("q9")])
    script(tmp_path, *LINES).check([query("q9"), query("q2")])
    script(tmp_path).check([query("q9")])


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"none\.jsonl"):
        judge("scripted", path=tmp_path / "none.jsonl").check([query()])


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    lines = '{"qid": "q0", "doc_id": "d0", "grade": 4}', '{"qid": "q0", "doc_id": "d1", "fail": "refused"}'
    return {"path": written(folder / "labels.jsonl", *lines)}
