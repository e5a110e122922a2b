"""Evidence sets by annotators: the queue, how sets are stored, disputes, and what is not blind afterwards."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.project import environment
from support.reviewpage import ROOT, Visitor, command_of, judge_run, serving, state_evidence, write_run

from raggs.base.errors import DataError, NotFoundError, UsageError
from raggs.parts.reviews import EvidenceReview, GradeReview, ReviewStore, Withdrawal
from raggs.reviewing.evidence import MAX_CANDIDATES, EvidenceSession, EvidenceTask
from raggs.reviewing.pool import open_pool
from raggs.reviewing.session import LeaseHolder, Session, SessionSettings
from raggs.runs.manifests.open_run import open_run

STATED = {"q00000": [["d0-0", "d0-2"], ["d0-1"]]}


def make(folder: Path, questions: int = 3, passages: int = 4, *, blind: bool = True) -> EvidenceSession:
    """Passages have the grades 5, 4, 3 and 2; one query has stored sets."""
    run = state_evidence(write_run(folder / "runs" / "demo", questions, passages), STATED)
    judge_run(run, lambda each: max(1, 6 - each.rank))
    return reopened(folder, blind=blind)


def reopened(folder: Path, *, blind: bool = True) -> EvidenceSession:
    runs = [open_run(folder / "runs" / "demo")]
    store = ReviewStore(folder / "reviews")
    return EvidenceSession(runs, Session(open_pool(runs), store, SessionSettings(overlap=0, repeats=0, blind=blind)))


def answer(at: EvidenceSession, who: str, task: EvidenceTask, *sets: tuple[str, ...], settles: bool = False) -> str:
    view = task.first
    assert view is not None
    shown = [each.doc_id for each in view.passages]
    return at.note(who, view.query, shown, view.proposed, sets, "", None, settles=settles)


def lines(folder: Path) -> list[EvidenceReview]:
    return [line for line in ReviewStore(folder / "reviews").read() if isinstance(line, EvidenceReview)]


def test_stored_sets_come_first_with_the_best_passages(tmp_path: Path) -> None:
    at = make(tmp_path)
    task = at.upcoming("ada", seen=True)
    assert (task.done, task.left, task.differ) == (0, 3, 0)
    assert task.first is not None
    assert task.first.proposed == (("d0-0", "d0-2"), ("d0-1",))
    shown = [(each.doc_id, each.grade) for each in task.first.passages]
    assert shown == [("d0-0", 5), ("d0-1", 4), ("d0-2", 3)], "no passage of grade 2"
    assert task.first.passages[0].text == "Passage 0 on subject 0."
    assert {"subject", "0"} <= {*task.first.terms}


def test_a_query_without_sets_and_without_a_good_passage_is_not_offered(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 2, 3)
    judge_run(run, lambda each: 4 if each.doc_id == "d1-2" else 3)
    task = reopened(tmp_path).upcoming("ada", seen=True)
    assert task.left == 1
    assert task.first is not None
    assert [each.doc_id for each in task.first.passages] == ["d1-2", "d1-0", "d1-1"]


def test_few_passages_are_shown_and_those_of_sets_always(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "demo", 1, 30)
    state_evidence(run, {"q00000": [["d0-29", "elsewhere"]]})
    judge_run(run, lambda each: 1 if each.doc_id == "d0-29" else 4)
    view = reopened(tmp_path).upcoming("ada", seen=True).first
    assert view is not None
    assert len(view.passages) == MAX_CANDIDATES + 2
    assert [(each.doc_id, each.grade) for each in view.passages[-2:]] == [("d0-29", 1), ("elsewhere", None)]
    assert view.passages[-1].text == ""


def test_an_answer_is_stored_once_withdrawn_and_given_again(tmp_path: Path) -> None:
    at = make(tmp_path)
    task = at.upcoming("ada", seen=True)
    assert len({answer(at, "ada", task, ("d0-0", "d0-1")) for _ in range(2)}) == 1
    (line,) = lines(tmp_path)
    assert (line.sets, line.proposed, line.blind) == ((("d0-0", "d0-1"),), task.first and task.first.proposed, False)
    assert at.upcoming("ada", seen=True).left == 2
    assert reopened(tmp_path).upcoming("ada", seen=True).left == 2, "after a restart"
    assert at.upcoming("bo", seen=True).left == 3
    assert at.undo("ada").query == line.query
    assert at.upcoming("ada", seen=True).left == 3
    with pytest.raises(UsageError, match="no decision on evidence to undo"):
        at.undo("ada")
    with pytest.raises(UsageError, match="no decision on evidence to undo"):
        at.undo("bo", line.id)
    answer(at, "ada", task)
    assert [each.sets for each in lines(tmp_path)] == [(("d0-0", "d0-1"),), ()]
    assert [type(each) for each in ReviewStore(tmp_path / "reviews").read()] == [
        EvidenceReview,
        Withdrawal,
        EvidenceReview,
    ]


def test_skipped_queries_come_last(tmp_path: Path) -> None:
    at = make(tmp_path)
    later: list[str] = []
    for _ in range(3):
        view = at.upcoming("ada", later=later, seen=True).first
        assert view is not None and view.query not in later
        later.append(view.query)
    last = at.upcoming("ada", later=later, seen=True).first
    assert last is not None and last.query in later


def test_invalid_sets_are_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    at = make(tmp_path)
    task = at.upcoming("ada", seen=True)
    for sets, said in (
        ([()], "evidence set 1 is empty"),
        ([("d0-0", "d0-0")], "contains a passage twice"),
        ([("d0-0",), ("d0-0", "d0-1")], "contains all passages of set 1"),
        ([("d0-0",), ("d0-0",)], "contains all passages of set 2"),
        ([("d0-3",)], "passage d0-3 of an evidence set was not shown"),
    ):
        with pytest.raises(UsageError, match=said):
            answer(at, "ada", task, *sets)
    with pytest.raises(NotFoundError, match="no passage 'd1-0'"):
        answer(at, "ada", task, ("d1-0",))
    with pytest.raises(NotFoundError, match="unknown query"):
        at.note("ada", "0" * 32, ["d0-0"], (), (), "", None)
    assert lines(tmp_path) == []


def test_annotators_who_differ_are_adjudicated(tmp_path: Path) -> None:
    at = make(tmp_path)
    task = at.upcoming("ada", seen=True)
    answer(at, "ada", task, ("d0-1",), ("d0-0", "d0-2"))
    answer(at, "bo", task, ("d0-2", "d0-0"), ("d0-1",))
    assert at.upcoming("cy", "differ", seen=True).differ == 0, "the same sets in another order"
    answer(at, "cy", task, ("d0-1",))
    disputed = at.upcoming("cy", "differ", seen=True)
    assert disputed.differ == 1
    assert disputed.first is not None
    assert [(each.who, each.sets) for each in disputed.first.given] == [
        ("ada", (("d0-1",), ("d0-0", "d0-2"))),
        ("bo", (("d0-2", "d0-0"), ("d0-1",))),
        ("cy", (("d0-1",),)),
    ]
    line = answer(at, "dee", disputed, ("d0-1",), settles=True)
    assert answer(at, "dee", disputed, ("d0-1",), settles=True) == line
    with pytest.raises(UsageError, match="already adjudicated by dee"):
        answer(at, "ada", disputed, settles=True)
    assert at.upcoming("dee", "differ", seen=True).differ == 0
    assert at.upcoming("eve", seen=True).left == 2, "adjudicated queries are not asked again"
    at.undo("dee")
    assert at.upcoming("dee", "differ", seen=True).differ == 1


def test_what_an_annotator_sees_is_no_longer_blind(tmp_path: Path) -> None:
    at = make(tmp_path)
    hidden = at.upcoming("ada")
    assert (hidden.first, hidden.unblinds) == (None, 3)
    session, holder = at._session, LeaseHolder("ada", "tab")
    assert not session.shown.of("ada")
    assert at.upcoming("ada", seen=True).unblinds == 0
    assert len(session.shown.of("ada")) == 3
    for number, item in enumerate(session.pool.items):
        session.grade(holder, "".join(item.key), 3, "", float(number))
    graded = [line for line in ReviewStore(tmp_path / "reviews").read() if isinstance(line, GradeReview)]
    assert {line.doc_id for line in graded if not line.blind} == {"d0-0", "d0-1", "d0-2"}
    assert at.upcoming("ada").unblinds == 0, "all passages are graded"
    assert reopened(tmp_path, blind=False).upcoming("bo").unblinds == 0, "no label of this server is blind"


def test_sets_of_a_changed_text_are_asked_again(tmp_path: Path) -> None:
    at = make(tmp_path)
    task = at.upcoming("ada", seen=True)
    answer(at, "ada", task, ("d0-1",))
    answer(at, "bo", task)
    pool = tmp_path / "runs" / "demo" / "merge.jsonl"
    pool.write_text(pool.read_text().replace("Passage 1 on subject 0.", "Another text."))
    again = reopened(tmp_path)
    assert again.upcoming("ada", seen=True).left == 3
    assert again.upcoming("bo", seen=True).left == 3, "no set suffices, said of another text"
    assert again.upcoming("bo", "differ", seen=True).differ == 0


def test_an_invalid_line_is_an_error_with_its_line(tmp_path: Path) -> None:
    at = make(tmp_path)
    answer(at, "ada", at.upcoming("ada", seen=True), ("d0-1",))
    path = tmp_path / "reviews" / "reviews.jsonl"
    for old, new, said in (
        ('"sets":[["d0-1"]]', '"sets":[[]]', "evidence set 1 is empty"),
        ('"sets":[["d0-1"]]', '"sets":[["d0-1"],["d0-1"]]', "contains all passages of set"),
        ('"sets":[["d0-1"]]', '"sets":[["nothing"]]', "passage nothing of an evidence set was not shown"),
        ('"shown":["d0-0",', '"shown":["d0-1",', "each shown passage once"),
    ):
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(DataError, match=said) as error:
            ReviewStore(path.parent).read()
        assert error.value.line == 1
        path.write_text(text)


def test_the_routes_store_refuse_and_survive_a_kill(tmp_path: Path) -> None:
    make(tmp_path)
    run, me = tmp_path / "runs" / "demo", {"who": "ada", "tab": "t"}
    with serving(run) as (address, process):
        ada = Visitor(address)
        assert ada.post("/api/evidence/next", **me)["first"] is None
        first = ada.post("/api/evidence/next", **me, seen=True)["first"]
        shown = [each["doc_id"] for each in first["passages"]]
        body = {**me, "seen": True, "query": first["query"], "shown": shown, "proposed": first["proposed"]}
        for sets, status, words in (
            ([[]], 400, "evidence set 1 is empty"),
            ([["d0-0", "d0-0"]], 400, "contains a passage twice"),
            ([["d0-0"], ["d0-0", "d0-1"]], 400, "contains all passages of set 1"),
            ([["nothing"]], 404, "no passage 'nothing'"),
            ([["a b"]], 400, "sets"),
            ("d0-0", 400, "sets"),
            ([["d0-0"]] * 65, 400, "sets"),
        ):
            found = ada.refused("/api/evidence", **body, sets=sets)
            assert (found[0], words in found[1]) == (status, True), found
        assert ada.refused("/api/evidence", **{**body, "query": "0" * 32}, sets=[])[0] == 404
        assert ada.refused("/api/evidence", **{**body, "wanted": "some"}, sets=[])[0] == 400
        assert lines(tmp_path) == []
        answer = ada.post("/api/evidence", **{**body, "who": "Ada"}, sets=[["d0-1"]], seconds=2.5)
        assert (answer["done"], answer["left"]) == (1, 2)
        with subprocess.Popen(
            command_of(run), stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment()
        ) as second:
            assert "another server stores labels in this folder" in " ".join(second.communicate()[1].split())
        assert second.returncode not in (0, None)
        process.kill()
        process.wait()
    with serving(run) as (address, _):
        ada = Visitor(address)
        assert ada.post("/api/evidence/next", **me, seen=True)["done"] == 1, "also under another spelling of the name"
        assert (
            ada.post("/api/evidence", **{**body, "who": "Ada"}, sets=[["d0-1"]], seconds=2.5)["line"] == answer["line"]
        )
        assert ada.post("/api/evidence/undo", **me, seen=True)["first"]["query"] == first["query"]
    assert [(line.who, line.sets) for line in lines(tmp_path)] == [("Ada", (("d0-1",),))]
