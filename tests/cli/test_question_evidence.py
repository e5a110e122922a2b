"""`raggs questions evidence`: a model proposes evidence sets from the best passages, and verifies each of them."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import invoke
from support.llm_server import KEY, LLMServer
from support.paying import MODEL
from support.people import evidence as people_evidence
from support.people import kept, pools
from support.project import Project, begin, environment, make_project, questions, raggs, write_lines

from raggs.app.question_evidence import MAX_SETS, read_sets
from raggs.golden.sources import open_golden

LABELS = ("A", "B", "C", "D")


@pytest.fixture
def golden(tmp_path: Path, server: LLMServer) -> Project:
    """A finished run whose grades cost nothing. The command reads the settings that are stored in the run."""
    project = make_project(tmp_path, rank=None)
    prices = {MODEL: {"input": 1.0, "output": 2.0}}
    project.change(llm={"api_base": server.url, "backoff_s": 0.01, "concurrency": 1, "prices": prices})
    done = raggs("run", "--config", project.config, "-q")
    assert done.returncode == 0, done.stderr
    return project


def found_by(project: Project, *more: object) -> Any:
    out = project.folder / "made" / "queries.jsonl"
    return invoke("questions", "evidence", project.run, "--out", out, "--judge", f"litellm:{MODEL}", *more)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def records(project: Project) -> dict[str, dict[str, Any]]:
    return {row["qid"]: row for row in lines(project.folder / "made" / "queries.evidence.jsonl")}


def evidence(project: Project) -> dict[str, Any]:
    return {row["_id"]: row.get("evidence") for row in lines(project.folder / "made" / "queries.jsonl")}


def two_parts(server: LLMServer) -> None:
    """The two best passages suffice together, and only together; the third is proposed alone, in vain."""
    best: dict[str, list[str]] = {}

    def proposed(query: str, passages: list[str]) -> list[list[int]]:
        best[query] = passages[:2]
        return [[2], [1, 0]]

    server.evidence = proposed
    server.suffices = lambda query, passages: {*best[query]} <= {*passages}


def test_verified_sets_are_written_and_the_others_only_recorded(golden: Project, server: LLMServer) -> None:
    two_parts(server)
    done = found_by(golden)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "4 evidence sets of 4 queries passed the verification" in said
    assert "4 queries of these need several passages." in said
    assert "Rejected of 8 proposed sets: 4 insufficient." in said
    for qid, row in records(golden).items():
        shown = row["shown"]
        assert [(each["passages"], each["verdict"]) for each in row["sets"]] == [
            ([shown[2]], "insufficient"),
            ([shown[0], shown[1]], "verified"),
        ]
        assert evidence(golden)[qid] == [[shown[0], shown[1]]]
        assert (row["status"], row["model"]) == ("verified", MODEL)
        assert len(shown) <= 8


def test_the_model_sees_good_passages_only_and_a_verdict_only_its_own(golden: Project, server: LLMServer) -> None:
    two_parts(server)
    found_by(golden)
    forms = Counter(body["response_format"]["json_schema"]["name"] for body in server.requests)
    assert forms == {"evidence": 4, "suffices": 4 * (1 + 1 + 2)}
    graded = {
        (query.qid, record.doc_id): record
        for query in open_golden(golden.run).by_query("grades")
        for record in query.grades
    }
    for qid, row in records(golden).items():
        assert all(graded[qid, doc_id].grade in (4, 5) for doc_id in row["shown"])
        assert all(graded[qid, doc_id].duplicate_of is None for doc_id in row["shown"])
    sizes = Counter(
        body["messages"][-1]["content"].count("Passage ")
        for body in server.requests
        if body["response_format"]["json_schema"]["name"] == "suffices"
    )
    assert sizes == {1: 12, 2: 4}, "a single passage, the pair, and the pair without either passage"


def test_a_set_that_suffices_without_a_passage_is_not_minimal(golden: Project, server: LLMServer) -> None:
    server.evidence = lambda query, passages: [[0, 1]]
    done = found_by(golden)
    assert done.exit_code == 0, done.output
    assert {each["verdict"] for row in records(golden).values() for each in row["sets"]} == {"not minimal"}
    assert {*evidence(golden).values()} == {None}
    assert "4 no combination passed" in " ".join(done.stdout.split())


def test_no_combination_is_an_answer(golden: Project, server: LLMServer) -> None:
    server.evidence = lambda query, passages: []
    assert found_by(golden).exit_code == 0
    assert {row["status"] for row in records(golden).values()} == {"none"}


def test_a_rerun_costs_nothing_and_writes_the_same_bytes(golden: Project, server: LLMServer) -> None:
    two_parts(server)
    found_by(golden)
    count, first = server.count, {path.name: path.read_bytes() for path in (golden.folder / "made").glob("*.jsonl")}
    refused = found_by(golden)
    assert refused.exit_code == 2 and "--force" in refused.stderr
    assert found_by(golden, "--force").exit_code == 0
    assert server.count == count
    again = {path.name: path.read_bytes() for path in (golden.folder / "made").glob("*.jsonl")}
    del first["queries.evidence.ledger.jsonl"], again["queries.evidence.ledger.jsonl"]
    assert again == first
    assert server.paid_twice == []


def test_a_failed_call_leaves_the_query_without_evidence_until_it_succeeds(golden: Project, server: LLMServer) -> None:
    two_parts(server)
    server.fault_for = lambda number, body: "policy" if number == 4 else None
    done = found_by(golden)
    assert done.exit_code == 7, done.output
    failed = [qid for qid, row in records(golden).items() if row["status"] == "failed"]
    assert len(failed) == 1 and evidence(golden)[failed[0]] is None and records(golden)[failed[0]]["error"]
    assert "1 of 4 queries have no evidence because a call failed" in done.stderr
    assert "to try these queries again, run the same command" in " ".join(done.stderr.split())
    server.fault_for = None
    before = server.count
    assert found_by(golden).exit_code == 0
    assert evidence(golden)[failed[0]] is not None
    assert 0 < server.count - before <= 5 and server.paid_twice == []


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".yaml"])
def test_failed_queries_are_tried_again_unless_the_file_was_edited(
    golden: Project, server: LLMServer, suffix: str
) -> None:
    two_parts(server)
    server.fault_for = lambda number, body: "policy" if number == 4 else None
    out = golden.folder / "made" / f"queries{suffix}"
    words = ("questions", "evidence", golden.run, "--out", out, "--judge", f"litellm:{MODEL}")
    assert invoke(*words).exit_code == 7
    server.fault_for = None
    written = out.read_text(encoding="utf-8")
    out.write_text(written.replace("?", "??", 1), encoding="utf-8")
    refused = invoke(*words)
    assert refused.exit_code == 2 and "--force" in refused.stderr
    out.write_text(written, encoding="utf-8")
    assert invoke(*words).exit_code == 0
    assert all(row["status"] == "verified" for row in records(golden).values())
    refused = invoke(*words)
    assert refused.exit_code == 2 and "exists" in refused.stderr, "nothing is left to try again"
    assert server.paid_twice == []


def test_an_answer_against_the_rules_is_not_guessed(golden: Project, server: LLMServer) -> None:
    server.evidence = lambda query, passages: [[0], [0, 1]]
    done = found_by(golden)
    assert done.exit_code == 7
    assert {*evidence(golden).values()} == {None}
    assert all("contain all labels of another list" in row["error"] for row in records(golden).values())


def test_a_dry_run_calls_nothing_and_writes_nothing(golden: Project, server: LLMServer) -> None:
    found = found_by(golden, "--dry-run", "--json")
    assert found.exit_code == 0, found.output
    assert server.count == 0 and not (golden.folder / "made").exists()
    assert '"calls": 4' in found.stdout and '"calls": 12' in found.stdout


def test_the_cap_ends_the_command_before_it_writes(golden: Project, server: LLMServer) -> None:
    done = found_by(golden, "--max-usd", "0.0000001")
    assert done.exit_code == 7 and "--max-usd" in done.stderr
    assert not (golden.folder / "made" / "queries.jsonl").exists()


def test_stated_evidence_stays_and_the_queries_lead_to_the_measure(golden: Project, server: LLMServer) -> None:
    two_parts(server)
    rows = questions(4)
    rows[0]["evidence"] = [["p001", "p002"]]
    write_lines(golden.folder / "queries.jsonl", rows)
    assert raggs("run", "--config", golden.config, "-q").returncode == 0
    assert found_by(golden).exit_code == 0
    assert records(golden)["q00"] == {"qid": "q00", "status": "stated"}
    assert evidence(golden)["q00"] == [["p001", "p002"]]
    golden.change(queries={"type": "jsonl", "path": "made/queries.jsonl"})
    assert raggs("run", "--config", golden.config, "-q").returncode == 0
    scored = raggs("eval", "-g", golden.run, "-r", golden.run, "-m", "complete@10", "--json")
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)["systems"][0]["scores"]["complete@10"]["valid"] == 4


def test_evidence_of_annotators_stays_without_a_call(golden: Project, server: LLMServer) -> None:
    two_parts(server)
    asked = pools(golden.run)
    (one, pool), (other, few) = asked["q00"], asked["q01"]
    reviews = kept(
        golden.folder / "reviews",
        people_evidence(one, pool[:3], "ada", [pool[2].doc_id]),
        people_evidence(other, few[:3], "ada"),
    )
    assert reviews.is_dir()
    done = found_by(golden)
    assert done.exit_code == 0, done.output
    assert "2 with evidence from annotators" in " ".join(done.stdout.split())
    assert [records(golden)[qid] for qid in ("q00", "q01")] == [
        {"qid": "q00", "status": "reviewed"},
        {"qid": "q01", "status": "reviewed"},
    ]
    assert [evidence(golden)[qid] for qid in ("q00", "q01")] == [[[pool[2].doc_id]], None]
    forms = Counter(body["response_format"]["json_schema"]["name"] for body in server.requests)
    assert forms["evidence"] == 2


def test_a_run_without_a_model_needs_one(golden: Project) -> None:
    found = invoke("questions", "evidence", golden.run, "--out", golden.folder / "q.jsonl")
    assert found.exit_code == 2 and "pass --judge litellm:" in found.stderr
    wrong = invoke("questions", "evidence", golden.run, "--out", golden.folder / "q.jsonl", "--judge", "gpt")
    assert wrong.exit_code == 2 and "not a model" in wrong.stderr


@given(st.recursive(st.none() | st.integers() | st.sampled_from([*LABELS, "E", "a", ""]), st.lists))
def test_any_answer_gives_valid_sets_or_an_error(sets: object) -> None:
    try:
        found = read_sets({"sets": sets}, LABELS)  # type: ignore[dict-item]
    except ValueError:
        return
    assert len(found) <= MAX_SETS
    assert all(each and list(each) == sorted({*each}) and max(each) < len(LABELS) for each in found)
    assert not any(one is not other and {*one} <= {*other} for one in found for other in found)


@pytest.mark.parametrize("number", [2, 5])
def test_a_killed_command_pays_nothing_twice_and_writes_the_same_bytes(
    golden: Project, server: LLMServer, tmp_path: Path, number: int
) -> None:
    two_parts(server)
    killed = golden.copied(tmp_path / "killed")
    start = server.count

    def kill(asked: int, _body: dict[str, Any]) -> str | None:
        if asked + 1 - start < number:
            return None
        os.kill(process.pid, signal.SIGKILL)
        return "500"  # nobody hears an answer

    server.fault_for = kill
    out = killed.folder / "made" / "queries.jsonl"
    words = ("questions", "evidence", killed.run, "--out", out, "--judge", f"litellm:{MODEL}")
    process = begin(*words, env=environment(OPENAI_API_KEY=KEY))
    try:
        assert process.end().code == -9
    finally:
        server.fault_for = None
    assert not out.exists()
    done = found_by(killed)
    assert done.exit_code == 0, done.output
    assert not server.paid_twice
    server._answered.clear()  # the command below makes the same requests, with a cache of its own
    assert found_by(golden).exit_code == 0
    for name in ("queries.jsonl", "queries.evidence.jsonl"):
        assert (golden.folder / "made" / name).read_bytes() == (killed.folder / "made" / name).read_bytes()
