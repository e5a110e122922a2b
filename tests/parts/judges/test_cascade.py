"""A cascade: the good judge where it matters, where cheap grades differ, and by a draw that is the same each time."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.contracts import settings_of
from support.judging import graded, judge, ordered, passage, query, written
from support.people import grade, kept

from raggs.base.artifacts import MergeRecord
from raggs.parts.judges.composite import CascadeConfig
from raggs.stages.judge import combine
from raggs.stages.judge_health import cascade_statistics

QUERY = query()
PASSAGES = [passage(f"d{number}", "text") for number in range(400)]


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    members = [{"type": name, **settings_of("judges", name, folder, request)} for name in ("nuggets", "scripted")]
    return {"judges": members, "audit": 0.2}


def member(folder: Path, name: str, *rows: dict[str, Any], default: int = 1) -> dict[str, Any]:
    lines = [json.dumps({"qid": "q1", **row}) for row in rows]
    return {"type": "scripted", "path": written(folder / f"{name}.jsonl", *lines), "default_grade": default}


def says(folder: Path, name: str, said: int | str) -> dict[str, Any]:
    row = {"grade": said} if isinstance(said, int) else {"fail": said}
    return member(folder, name, {"doc_id": "d0", **row})


def cascade(folder: Path, cheap: int | str, good: int | str, **settings: Any) -> Any:
    members = [says(folder, "cheap", cheap), says(folder, "good", good)]
    return judge("cascade", **{"judges": members, "audit": 0, **settings})


@pytest.mark.parametrize(
    ("cheap", "good", "ask_from", "grade", "by"),
    [
        (2, 5, 3, 2, "cheap"),
        (3, 1, 3, 1, "good"),
        (5, 4, 3, 4, "good"),
        (3, 1, 4, 3, "cheap"),
        (5, 1, None, 5, "cheap"),
        ("busy", 2, None, 2, "good"),
    ],
)
def test_the_good_one_decides_where_it_matters_or_the_cheap_one_fails(
    tmp_path: Path, cheap: int | str, good: int, ask_from: int | None, grade: int, by: str
) -> None:
    found = graded(cascade(tmp_path, cheap, good, ask_from=ask_from), QUERY, PASSAGES[0])
    assert (found.grade, found.error, found.by) == (grade, None, f"scripted {by}.jsonl")
    votes = {"scripted cheap.jsonl": None if cheap == "busy" else cheap}
    expected = votes | ({"scripted good.jsonl": good} if by == "good" else {})
    assert {name: vote.grade for name, vote in found.votes.items()} == expected


def test_a_good_one_that_fails_is_a_failure_and_the_cheap_grade_does_not_take_its_place(tmp_path: Path) -> None:
    for settings in ({}, {"ask_from": None, "audit": 1}):
        found = graded(cascade(tmp_path, 4, "busy", **settings), QUERY, PASSAGES[0])
        assert (found.grade, found.error) == (None, "scripted good.jsonl: busy")
        assert found.votes["scripted cheap.jsonl"].grade == 4


def test_cheap_ones_that_differ_are_not_believed(tmp_path: Path) -> None:
    labels = written(tmp_path / "labels.txt", *(f"q1 0 {each.doc_id} 2" for each in PASSAGES))
    noisy = {"type": "qrels", "path": labels, "grade_noise": 0.3}
    good = {"type": "scripted", "path": written(tmp_path / "good.jsonl"), "default_grade": 4}
    again = judge("cascade", judges=[noisy, good], samples=2, ask_from=None, audit=0)
    two = judge("cascade", judges=[noisy, {**noisy, "seed": 1}, good], ask_from=None, audit=0)
    for who, names in (
        (again, ["qrels labels.txt", "qrels labels.txt #sample 2"]),
        (two, ["qrels labels.txt", "qrels labels.txt #2"]),
    ):
        for each in PASSAGES[:60]:
            found = graded(who, QUERY, each)
            cheap = {found.votes[name].grade for name in names}
            if len(cheap) == 1:
                assert ({found.grade}, list(found.votes)) == (cheap, names)
            else:
                assert (found.grade, list(found.votes)) == (4, [*names, "scripted good.jsonl"])


def test_samples_of_a_cascade_are_samples_of_the_cheap_one_that_no_other_has(tmp_path: Path) -> None:
    labels = written(tmp_path / "labels.txt", "q1 0 d0 3")
    noisy = {"type": "qrels", "path": labels, "grade_noise": 0.5}
    alone = judge("qrels", **{name: value for name, value in noisy.items() if name != "type"})
    who = judge("cascade", judges=[noisy, says(tmp_path, "good", 1)], samples=3, audit=0)
    found = [
        vote.grade for number in range(2) for vote in [*graded(who, QUERY, PASSAGES[0], number).votes.values()][:3]
    ]
    assert found == [graded(alone, QUERY, PASSAGES[0], number).grade for number in range(6)]


def test_the_draw_is_of_its_share_and_the_same_whoever_asks_when(tmp_path: Path) -> None:
    def drawn(share: float) -> set[str]:
        who = cascade(tmp_path, 1, 1, ask_from=None, audit=share)
        return {each.doc_id for each in PASSAGES if len(graded(who, QUERY, each).votes) == 2}

    assert len(drawn(0)) == 0 < 20 < len(drawn(0.1)) < 60 < len(drawn(1)) == 400
    assert drawn(0.05) <= drawn(0.1) == drawn(0.1)


def test_orders_are_those_of_the_good_one_unless_the_cheap_one_is_to_order(tmp_path: Path) -> None:
    members = [member(tmp_path, "cheap", {"order": ["d0", "d1"]}), member(tmp_path, "good", {"order": ["d1", "d0"]})]
    for order, expected in (("good", ["d1", "d0"]), ("cheap", ["d0", "d1"])):
        who = judge("cascade", judges=members, order=order)
        assert ordered(who, QUERY, PASSAGES[:2]) == expected
        assert asyncio.run(who.order(QUERY, PASSAGES[:2])).by == f"scripted {order}.jsonl"


def test_what_decides_is_a_cause_of_grades_and_who_orders_of_orders(tmp_path: Path) -> None:
    plain: dict[str, Any] = {"samples": 1, "ask_from": 3, "audit": 0.1}
    same = [
        {task: who.causes(task) for task in ("grade", "order")}
        for change in ({}, {"samples": 2}, {"ask_from": 4}, {"audit": 0.2}, {"order": "cheap"})
        for who in [cascade(tmp_path, 3, 4, **{**plain, **change})]
    ]
    assert len({json.dumps(each["grade"]) for each in same[:4]}) == 4
    assert same[4]["grade"] == same[0]["grade"]
    assert [each["order"] == same[0]["order"] for each in same] == [True, True, True, True, False]


def test_nobody_overrules_people_and_no_judge_stands_there_twice(tmp_path: Path) -> None:
    one = says(tmp_path, "one", 3)
    for wrong in ([one], [one, one], [{"type": "human"}, one], [{"type": "panel", "judges": [one, one]}, one]):
        with pytest.raises(ValidationError):
            CascadeConfig(judges=wrong)


def test_what_people_say_is_no_grade_of_the_cheap_judge(tmp_path: Path) -> None:
    inner = {"type": "cascade", "judges": [says(tmp_path, "cheap", 4), says(tmp_path, "good", 2)], "audit": 0}
    reviews = kept(tmp_path / "reviews", grade(QUERY, PASSAGES[0], "ada", 5))
    who = judge("panel", rule="first", judges=[{"type": "human", "reviews": reviews}, inner])
    shown = [PASSAGES[0], passage("d1", "another text")]
    said, count = [graded(who, QUERY, each) for each in shown], cascade_statistics(who.config)
    assert count is not None
    for each, found in zip(shown, said, strict=True):
        merged = MergeRecord(qid="q1", rank=1, doc_id=each.doc_id, score=1.0, sources={}, text="text")
        count.see(combine(merged, [found], who.name))
    assert [each.by for each in said] == ["human: ada", "scripted cheap.jsonl"]
    health = count.health()
    assert health is not None
    assert list(health.grades) == ["1"]


def test_behind_people_it_is_asked_where_they_did_not_speak_and_its_votes_are_kept(tmp_path: Path) -> None:
    inner = {"type": "cascade", "judges": [says(tmp_path, "cheap", 4), says(tmp_path, "good", 2)], "audit": 0}
    who = judge("panel", rule="first", judges=[{"type": "human", "reviews": tmp_path}, inner])
    found = graded(who, QUERY, PASSAGES[0])
    assert (found.grade, found.by) == (2, "scripted good.jsonl")
    assert list(found.votes) == ["scripted cheap.jsonl", "scripted good.jsonl"]
