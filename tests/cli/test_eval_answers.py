"""`raggs eval --answers`: a model answers from the top of each system, and checks its answers by the reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import invoke
from support.llm_server import LLMServer
from support.paying import MODEL
from support.project import Project, make_project, questions, raggs, write_lines

REFERENCES = {"q00": "The amber", "q01": "no passage has this", "q02": "The cedar"}  # q03 has none
ALL = ("-k", "40")  # the fused list has all evidence within 40, the others end at 15


@pytest.fixture
def golden(tmp_path: Path, server: LLMServer) -> Project:
    """A finished run whose queries have reference answers, all but one; grades cost nothing."""
    return made(tmp_path, server, REFERENCES)


def made(folder: Path, server: LLMServer, references: dict[str, str]) -> Project:
    project = make_project(folder, rank=None)
    rows = [{**row, "answer": references[row["_id"]]} if row["_id"] in references else row for row in questions(4)]
    write_lines(folder / "queries.jsonl", rows)
    project.change(llm={"api_base": server.url, "backoff_s": 0.01, "prices": {MODEL: {"input": 1.0, "output": 2.0}}})
    done = raggs("run", "--config", project.config, "-q")
    assert done.returncode == 0, done.stderr
    return project


def answered(project: Project, *more: object, out: str = "scores") -> Any:
    run, place = project.run, project.folder / out
    return invoke("eval", "-g", run, "-r", run, *ALL, "--out", place, "--answers", f"litellm:{MODEL}", *more)


def systems(project: Project, out: str = "scores") -> dict[str, dict[str, Any]]:
    report = json.loads((project.folder / out / "eval.json").read_text())
    return {system["name"]: system["answers"] for system in report["systems"]}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def spent(project: Project, out: str = "scores") -> list[dict[str, Any]]:
    return [line for line in lines(project.folder / out / "answers.ledger.jsonl") if line["attempts"]]


def test_answers_are_generated_checked_and_counted_by_system(golden: Project, server: LLMServer) -> None:
    done = answered(golden)
    assert done.exit_code == 0, done.output
    found = systems(golden)
    assert (found["fused"]["measure"], found["fused"]["hits"], found["fused"]["correct"]) == ("hit_all@40", 3, 2)
    assert found["fused"]["accuracy"] == pytest.approx(2 / 3)
    assert (found["bm25"]["hits"], found["bm25"]["correct"]) == (1, 0)
    assert found["dense"]["hits"] == 0
    assert "fused: Acc|hit_all@40 0.6667" in done.stdout
    assert "missing" not in found["bm25"], "without its evidence, an answer is not wanted"
    assert [found[name]["missing"] for name in ("dense", "fused")] == [1, 1], "q03 has no reference answer"
    assert "dense: 1 query with all evidence but an unknown answer" in done.stdout
    rows = {(row["system"], row["qid"]): row["correct"] for row in lines(golden.folder / "scores" / "answers.jsonl")}
    wrong = {("bm25", "q01"): False, ("fused", "q01"): False}
    assert rows == {("fused", "q00"): True, ("fused", "q02"): True, **wrong}


def test_every_call_is_in_the_ledger_and_a_rerun_costs_nothing(golden: Project, server: LLMServer) -> None:
    assert answered(golden).exit_code == 0
    booked = spent(golden)
    assert server.count == sum(line["attempts"] for line in booked) == 8
    assert sorted({line["task"] for line in booked}) == ["answer", "correct"]
    assert {line["stage"] for line in booked} == {"answers"}
    first = (golden.folder / "scores" / "answers.jsonl").read_bytes()
    again = answered(golden)
    assert again.exit_code == 0, again.output
    assert server.count == 8
    assert answered(golden, out="elsewhere").exit_code == 0
    assert (server.count, spent(golden, "elsewhere")) == (8, [])
    assert (golden.folder / "elsewhere" / "answers.jsonl").read_bytes() == first
    assert "$0.0000 spent now" in again.stderr


def test_a_dry_run_says_what_it_costs_and_calls_no_model(golden: Project, server: LLMServer) -> None:
    done = answered(golden, "--dry-run", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [(line["stage"], line["calls"], line["cached"]) for line in found["estimates"]] == [
        ("answer", 4, 0), ("correct", 4, 0)
    ]  # fmt: skip
    assert (found["max_usd"], server.count) == (1.0, 0)
    assert found["usd"] > 0
    assert not (golden.folder / "scores").exists()
    assert answered(golden).exit_code == 0
    after = json.loads(answered(golden, "--dry-run", "--json").stdout)
    assert [(line["calls"], line["cached"]) for line in after["estimates"]] == [(0, 4), (0, 4)]


def test_a_cap_ends_it_and_keeps_what_was_paid(golden: Project, server: LLMServer) -> None:
    server.delay_s = 0.01
    golden.change(llm={"concurrency": 1})
    assert raggs("run", "--config", golden.config, "-q").returncode == 0
    assert answered(golden, "--max-usd", "0.004").exit_code == 7
    paid = server.count
    assert 0 < paid < 8
    booked = spent(golden)
    assert sum(line["attempts"] for line in booked) == paid
    assert sum(line["usd"] for line in booked) <= 0.004
    assert not (golden.folder / "scores" / "answers.jsonl").exists()
    stopped = answered(golden, "--max-usd", "0.004")
    assert (stopped.exit_code, server.count) == (7, paid)
    assert "run the same command with a higher --max-usd" in stopped.stderr
    assert answered(golden).exit_code == 0
    assert server.count == 8, "no call is paid twice"
    assert systems(golden)["fused"]["correct"] == 2


def test_a_failed_answer_is_missing_and_not_wrong(golden: Project, server: LLMServer) -> None:
    def fault(number: int, body: dict[str, Any]) -> str | None:
        text = next(message["content"] for message in body["messages"] if message["role"] == "user")
        return "prose" if questions(4)[1]["text"] in text and "Passage A" in text else None

    server.fault_for = fault
    done = answered(golden)
    assert done.exit_code == 0, done.output
    found = systems(golden)["fused"]
    assert (found["hits"], found["correct"], found["accuracy"], found["missing"]) == (2, 2, 1.0, 2)
    assert "4 answers, 2 correct, 2 missing because a call failed" in done.stderr
    assert "not counted: 2 queries without a known answer" in " ".join(done.stdout.split())
    assert systems(golden)["bm25"]["hits"] == 0
    failed = [row for row in lines(golden.folder / "scores" / "answers.jsonl") if row["qid"] == "q01"]
    assert [row["correct"] for row in failed] == [None, None]
    assert all(row["error"] for row in failed)


def test_texts_are_guarded_and_keys_stay_out(golden: Project, server: LLMServer) -> None:
    from support.llm_server import FENCED, KEY

    assert answered(golden).exit_code == 0
    for body in server.requests:
        outside = FENCED.sub("", " ".join(message["content"] for message in body["messages"]))
        for told in ("amber", "cedar", "Where is the", "no passage has this"):
            assert told not in outside
    for file in (golden.folder / "scores").iterdir():
        assert KEY not in file.read_text()


def test_an_audit_evaluates_the_answers_again_and_calls_no_model(golden: Project, server: LLMServer) -> None:
    assert answered(golden).exit_code == 0
    count = server.count
    clean = invoke("audit", golden.folder / "scores")
    assert clean.exit_code == 0, clean.output
    file = golden.folder / "scores" / "answers.jsonl"
    file.write_text(file.read_text().replace('"correct": false', '"correct": true'))
    edited = invoke("audit", golden.folder / "scores")
    assert edited.exit_code == 5
    assert "answers.jsonl" in edited.output
    assert server.count == count
    given = invoke("eval", "-g", golden.run, "-r", golden.run, *ALL, "--correct", file, "--json")
    assert [system["answers"]["correct"] for system in json.loads(given.stdout)["systems"]][-1] == 3


def test_without_a_reference_answer_nothing_is_paid(tmp_path: Path, server: LLMServer) -> None:
    done = answered(made(tmp_path, server, {}))
    assert (done.exit_code, server.count) == (5, 0)
    assert "no judged query has a reference answer" in done.stderr
    assert "add `answer` to the queries" in done.stderr


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--answers", "litellm:m"), "--out"),
        (("--answers", "openai/m", "--out", "o"), "not a model"),
        (("--answers", "litellm:m", "--out", "o", "--correct", "c"), "--answers and --correct"),
        (("--answers", "litellm:m", "--out", "o", "--condensed"), "--condensed"),
        (("--max-usd", "1"), "add --answers"),
        (("--dry-run",), "add --answers"),
    ],
)
def test_options_that_cannot_be_together(golden: Project, more: tuple[str, ...], message: str) -> None:
    done = invoke("eval", "-g", golden.run, "-r", golden.run, *more)
    assert done.exit_code == 2, done.output
    assert message in done.stderr


def test_labels_in_a_file_have_no_texts_to_answer_from(golden: Project, server: LLMServer) -> None:
    done = invoke(
        "eval", "-g", golden.folder / "qrels.txt", "-r", golden.run, "--out", "o", "--answers", f"litellm:{MODEL}"
    )
    assert (done.exit_code, server.count) == (2, 0)
    assert "only a run of raggs has" in done.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"qid": "q00"}', "has no qid or no correct"),
        ('{"system": 3, "qid": "q00", "correct": 1}', "system 3 is not text"),
        ('{"qid": "q00", "correct": "yes"}', "is not true, false or null"),
        ('{"qid": "q00", "correct": 1}\n{"qid": "q00", "correct": 0}', "has two lines"),
    ],
)
def test_a_wrong_line_of_answers_is_named(golden: Project, line: str, message: str) -> None:
    file = golden.folder / "mine.jsonl"
    file.write_text(f"{line}\n")
    done = invoke("eval", "-g", golden.run, "-r", golden.run, "--correct", file)
    assert done.exit_code == 5
    assert message in done.stderr
    assert "mine.jsonl:" in done.stderr
