"""The judge `human`: people's words as grades and orders, silence where there are none, and what of them is a cause."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.judging import NO_CONTEXT, graded, judge, ordered, passage, query
from support.people import grade, kept, order

from raggs.base.errors import DataError
from raggs.parts.judges.human import NO_ORDER, NOT_REVIEWED, REVIEWER_UNSURE, UNDECIDED, HumanConfig, HumanJudge

JUDGES_ANY_QUERY = True
QUERY = query()
ONE, OTHER, THIRD = (passage(name, f"about {name}") for name in ("d1", "d2", "d3"))


def test_the_grade_is_what_people_settled_and_the_reason_names_them(tmp_path: Path) -> None:
    folder = kept(
        tmp_path,
        grade(QUERY, ONE, "ada", 4, note="names the limit"),
        grade(QUERY, ONE, "bo", 4),
        grade(QUERY, OTHER, "ada", 2),
        grade(QUERY, OTHER, "bo", 5),
        grade(QUERY, THIRD, "bo", 3),
    )
    who = judge("human", reviews=folder)
    agreed = graded(who, QUERY, ONE)
    assert (agreed.grade, agreed.by, agreed.reason) == (
        4,
        "human: ada, bo",
        "ada, bo: agreed; ada: names the limit",
    )
    assert graded(who, QUERY, OTHER).grade == 2
    assert graded(who, QUERY, OTHER).reason == "ada, bo: different grades; their lower median"
    assert (graded(who, QUERY, THIRD).grade, graded(who, QUERY, THIRD).reason) == (3, "bo")
    strict = graded(judge("human", reviews=folder, conflicts="abstain"), QUERY, OTHER)
    assert (strict.grade, strict.error, strict.silent) == (None, None, UNDECIDED)


def test_a_decision_among_people_counts(tmp_path: Path) -> None:
    folder = kept(
        tmp_path,
        grade(QUERY, ONE, "ada", 2),
        grade(QUERY, ONE, "bo", 5),
        grade(QUERY, ONE, "cy", 4, settles=True, note="the table"),
    )
    found = graded(judge("human", reviews=folder, conflicts="abstain"), QUERY, ONE)
    assert (found.grade, found.reason) == (4, "ada, bo, cy: settled; cy: the table")


def test_it_abstains_where_nobody_spoke_or_nobody_could_tell(tmp_path: Path) -> None:
    who = judge("human", reviews=kept(tmp_path, grade(QUERY, ONE, "ada", None)))
    assert (graded(who, QUERY, ONE).silent, graded(who, QUERY, OTHER).silent) == (REVIEWER_UNSURE, NOT_REVIEWED)
    assert graded(who, QUERY, ONE).error is None
    assert graded(judge("human", reviews=tmp_path / "none yet"), QUERY, ONE).silent == NOT_REVIEWED


def test_only_those_reviewers_count_that_are_named(tmp_path: Path) -> None:
    folder = kept(tmp_path, grade(QUERY, ONE, "ada", 1), grade(QUERY, ONE, "bo", 5))
    found = graded(judge("human", reviews=folder, reviewers=["bo"]), QUERY, ONE)
    assert (found.grade, found.by) == (5, "human: bo")


def test_the_word_follows_the_text_and_what_changed_is_told(tmp_path: Path) -> None:
    who = judge("human", reviews=kept(tmp_path, grade(QUERY, ONE, "ada", 4), grade(QUERY, OTHER, "ada", 4)))
    moved = ONE.model_copy(update={"doc_id": "elsewhere"})
    changed = OTHER.model_copy(update={"text": "about something new"})
    assert graded(who, QUERY, moved).grade == 4
    assert graded(who, QUERY, changed).silent == NOT_REVIEWED
    said = list(who.remarks())
    assert said[0] == "human labels grade 1 of the 2 passages requested"
    assert said[-1] == "not used: 1 label for passages or queries whose text has changed since"


def test_a_damaged_line_is_found_before_anything_is_asked(tmp_path: Path) -> None:
    folder = kept(tmp_path, grade(QUERY, ONE, "ada", 4))
    text = (folder / "reviews.jsonl").read_text()
    (folder / "reviews.jsonl").write_text(text + text.replace('"grade":4', '"grade":7'))
    with pytest.raises(DataError) as caught:
        judge("human", reviews=folder).check([QUERY])
    assert caught.value.line == 2


def test_an_order_that_covers_what_is_shown_answers_and_equals_say_nothing(tmp_path: Path) -> None:
    folder = kept(tmp_path, order(QUERY, [ONE, OTHER, THIRD], "ada", ["d3"], ["d1"], ["d2"]))
    who = judge("human", reviews=folder)
    assert ordered(who, QUERY, [ONE, OTHER]) == ["d1", "d2"]
    assert ordered(who, QUERY, [OTHER, ONE, THIRD]) == ["d3", "d1", "d2"]
    assert asyncio.run(who.order(QUERY, [ONE, OTHER])).by == "human: ada"
    beyond = asyncio.run(who.order(QUERY, [ONE, passage("d9", "new")]))
    assert (beyond.order, beyond.error, beyond.silent) == (None, None, NO_ORDER)
    ties = kept(tmp_path / "ties", order(QUERY, [ONE, OTHER, THIRD], "ada", ["d3", "d1"], ["d2"]))
    tied = judge("human", reviews=ties)
    assert asyncio.run(tied.order(QUERY, [ONE, THIRD])).silent == NO_ORDER
    assert ordered(tied, QUERY, [OTHER, THIRD]) == ["d3", "d2"]


def test_only_words_on_the_questions_of_the_run_are_causes(tmp_path: Path) -> None:
    def causes(folder: Path, task: Any) -> Any:
        context: Any = SimpleNamespace(**{**vars(NO_CONTEXT), "questions": lambda: [QUERY]})
        return HumanJudge(HumanConfig(reviews=folder), context).causes(task)

    folder = kept(tmp_path, grade(QUERY, ONE, "ada", 4))
    before = {task: causes(folder, task) for task in ("grade", "order")}
    kept(folder, grade(query("q2", text="Another one?"), ONE, "ada", 1))
    assert {task: causes(folder, task) for task in ("grade", "order")} == before
    kept(folder, grade(QUERY, OTHER, "ada", 1))
    assert causes(folder, "order") == before["order"]
    assert causes(folder, "grade") != before["grade"]


def test_the_same_word_said_again_changes_nothing(tmp_path: Path) -> None:
    first = grade(QUERY, ONE, "ada", 4)
    before = judge("human", reviews=kept(tmp_path, first)).causes("grade")
    kept(tmp_path, grade(QUERY, ONE, "ada", 4, seconds=3.0))
    assert judge("human", reviews=tmp_path).causes("grade") == before


def test_answers_are_neither_exact_repeats_nor_failures() -> None:
    assert HumanJudge.exact({})
    assert replace(graded(judge("human", reviews=Path("nowhere")), QUERY, ONE), silent=None).grade is None


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    question, passages = query("q1"), [passage(f"d{number}", text) for number, text in enumerate(("nothing", "beta"))]
    kept(folder, grade(question, passages[0], "ada", 2), order(question, passages, "ada", ["d1"], ["d0"]))
    (folder / ".lock").unlink()
    return {"reviews": folder}


def contract_more() -> str:
    """Lines that change what people said, of both kinds."""
    question, passages = query("q1"), [passage("d0", "nothing"), passage("d1", "beta")]
    lines = (grade(question, passages[1], "bo", 5), order(question, passages, "bo", ["d0"], ["d1"]))
    return "\n".join(line.model_dump_json() for line in lines)
