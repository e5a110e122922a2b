"""A run knows which snapshot of a model answered, says when there were two, and stops before it mixes them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import call, invoke
from support.llm_server import LLMServer
from support.paying import MODEL, paying
from support.project import Project, make_project

OLD, NEW = {"model": "judge-2025-08-07"}, {"model": "judge-2026-01-01"}
MOST_ON_THEIR_WAY = 16  # llm.concurrency
MIXED = "openai/judge answered with 2 versions, which may grade differently: judge-2025-08-07 ("


@pytest.fixture
def paid(server: LLMServer, tmp_path: Path) -> Project:
    return paying(tmp_path / "project", server)


def run(project: Project, *flags: object, code: int = 0) -> str:
    result = call("run", "--config", project.config, *flags, code=code)
    return result.stdout + result.stderr


def records(project: Project, artifact: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.run / f"{artifact}.jsonl").read_text().splitlines()]


def table(project: Project, stage: str) -> dict[str, Any]:
    found: dict[str, Any] = project.manifest()["stages"][stage].get("answerers", {})
    return found


def stopped(project: Project, server: LLMServer) -> None:
    """A run that the old snapshot has begun."""
    server.states = OLD
    run(project, "--quiet", "--max-calls", 12, code=7)


def test_each_answer_names_its_answerer(server: LLMServer, paid: Project) -> None:
    server.states = lambda number: {**OLD, "system_fingerprint": f"fp_{number % 2}", "provider": "Together"}
    said = run(paid, "--details")
    assert "model versions of openai/judge: judge-2025-08-07 (" in said and ", 2 fingerprints" in said
    for stage, artifact in (("judge", "judge"), ("rank", "rank.journal")):
        known = table(paid, stage)
        assert {each["fingerprint"] for each in known.values()} == {"fp_0", "fp_1"}
        assert {(each["asked"], each["provider"], each["model"]) for each in known.values()} == {
            (MODEL, "Together", "judge-2025-08-07")
        }
        named = [record for record in records(paid, artifact) if not record.get("duplicate_of")]
        for key, each in known.items():
            assert sum(record["answerers"] == [key] for record in named) == each["answers"]
        assert sum(each["answers"] for each in known.values()) == len(named)
    keys = {line["answerer"] for line in records(paid, "llm.ledger")}
    assert keys == {*table(paid, "judge"), *table(paid, "rank")}
    rows = sqlite3.connect(paid.folder / "runs" / ".cache" / "llm" / "cache.db").execute("SELECT value FROM Cache")
    cached = [json.loads(value) for (value,) in rows]
    assert len(cached) == server.count and {row["by"]["model"] for row in cached} == {"judge-2025-08-07"}
    call("audit", paid.run)


def test_a_resumed_run_stops_at_another_snapshot_and_loses_no_answer(server: LLMServer, paid: Project) -> None:
    stopped(paid, server)
    server.states = NEW
    said = run(paid, "--quiet", code=7)
    assert "now answers as judge-2026-01-01, but earlier answers of this run are from judge-2025-08-07" in said
    assert "pass --allow-mixed to continue with both" in said and len(said.splitlines()) == 1
    assert "judge" not in paid.manifest()["stages"]
    paid_for = server.count
    assert paid_for <= 12 + MOST_ON_THEIR_WAY
    run(paid, "--quiet", code=7)
    assert server.count <= paid_for + MOST_ON_THEIR_WAY
    assert MIXED in " ".join(run(paid, "--allow-mixed").split())
    assert server.paid_twice == []
    assert all(MIXED in " ".join(call(word, paid.run).stdout.split()) for word in ("status", "audit"))
    assert MIXED in " ".join(run(paid).split()), "also where there is nothing to do"
    snapshots = json.loads(call("status", paid.run, "--json").stdout)["snapshots"]
    assert set(snapshots[MODEL]) == {"judge-2025-08-07", "judge-2026-01-01"}
    run(paid, "--quiet", "--force")


def test_a_rank_stage_does_not_go_on_with_another_snapshot_than_the_grades(server: LLMServer, paid: Project) -> None:
    server.states = OLD
    run(paid, "--quiet", "--to", "judge")
    (paid.run / "llm.ledger.jsonl").unlink()
    server.states = NEW
    assert "now answers as judge-2026-01-01" in run(paid, "--quiet", code=7), "locks know it, too"


def test_fingerprints_and_silence_stop_nothing(server: LLMServer, paid: Project) -> None:
    server.states = {**OLD, "system_fingerprint": "fp_0"}
    run(paid, "--quiet", "--max-calls", 12, code=7)
    server.states = {**OLD, "system_fingerprint": "fp_1"}
    run(paid, "--quiet", "--max-calls", 24, code=7)
    server.states = {"model": None}
    assert "answers from an unnamed model" in run(paid, "--details")


def test_a_resumed_run_has_the_bytes_of_an_undisturbed_one(server: LLMServer, tmp_path: Path) -> None:
    server.states = lambda number: {**OLD, "system_fingerprint": f"fp_{number % 3}"}
    whole, begun = paying(tmp_path / "whole", server), paying(tmp_path / "begun", server)
    run(begun, "--quiet", "--max-calls", 12, code=7)
    run(begun, "--quiet", "--max-calls", 60, code=7)
    run(begun, "--quiet")
    (whole.folder / "runs").mkdir()
    (begun.folder / "runs" / ".cache").rename(whole.folder / "runs" / ".cache")
    run(whole, "--quiet")
    assert whole.artifacts() == begun.artifacts()
    for stage in ("judge", "rank"):
        assert table(whole, stage) == table(begun, stage)


def test_answers_of_an_earlier_version_are_said_to_name_nobody(server: LLMServer, paid: Project) -> None:
    run(paid, "--quiet", "--to", "judge")
    database = sqlite3.connect(paid.folder / "runs" / ".cache" / "llm" / "cache.db")
    for key, value in database.execute("SELECT key, value FROM Cache").fetchall():
        row = {name: each for name, each in json.loads(value).items() if name != "by"}
        database.execute("UPDATE Cache SET value = ? WHERE key = ?", (json.dumps(row), key))
    database.commit()
    asked = server.count
    said = run(paid, "--to", "judge", "--run-id", "again", "--details")
    assert server.count == asked
    assert "model versions of openai/judge: " in said and "answers without a recorded version" in said


def members(project: Project, kind: str) -> None:
    models = [{"type": "litellm", "model": f"openai/{name}"} for name in ("cheap", "good")]
    project.change(judge={"judge": {"type": kind, "judges": models}}, llm={"prices": prices("cheap", "good")})


def prices(*names: str) -> dict[str, Any]:
    return {f"openai/{name}": {"input": 1.0, "output": 2.0} for name in names}


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(lambda project: members(project, "panel"), id="panel"),
        pytest.param(lambda project: members(project, "cascade"), id="cascade"),
        pytest.param(lambda project: project.change(judge={"group": 3}), id="group"),
        pytest.param(lambda project: project.change(judge={"samples": 3}), id="samples"),
        pytest.param(lambda project: project.change(judge={"mode": "batch", "batch": {"poll_s": 0.05}}), id="batch"),
    ],
)
def test_whoever_judges_and_however_answerers_are_named(
    server: LLMServer, paid: Project, setting: Callable[[Project], None]
) -> None:
    setting(paid)
    run(paid, "--quiet")
    for stage, artifact in (("judge", "judge"), ("rank", "rank.journal")):
        known = table(paid, stage)
        named = {key for record in records(paid, artifact) for key in record["answerers"]}
        assert named == set(known) != set()
        assert all(record["answerers"] for record in records(paid, artifact))
        assert {each["asked"] for each in known.values()} <= {MODEL, "openai/cheap", "openai/good"}
    votes = [record for record in records(paid, "judge") if len(record["votes"]) == 2]
    assert all(len(record["answerers"]) == 2 for record in votes)
    call("audit", paid.run)


def test_a_stage_without_a_judge_keeps_who_answered_in_its_lock(server: LLMServer, tmp_path: Path) -> None:
    embed = {
        "embedder": {"type": "litellm", "model": "openai/small", "dims": 8},
        "rewrite": {"type": "llm", "model": "openai/writer"},
    }
    project = make_project(tmp_path, queries=3, corpus=24, embed=embed)
    project.change(llm={"api_base": server.url, "prices": prices("small", "writer")})
    server.states = {"system_fingerprint": "fp_0"}
    run(project, "--quiet", "--to", "retrieve")
    assert {each["asked"] for each in table(project, "embed").values()} == {"openai/small", "openai/writer"}
    assert {each["model"] for each in table(project, "retrieve").values()} == {"small"}
    call("audit", project.run, code=7)
    server.states = {"model": "small-2"}
    project.change(queries={"type": "jsonl", "path": "more.jsonl"}, embed={"rewrite": {"type": "none"}})
    more = [{"_id": f"q{number:02}", "text": f"What of {number}?"} for number in range(5)]
    (project.folder / "more.jsonl").write_text("".join(json.dumps(each) + "\n" for each in more))
    said = run(project, "--quiet", "--to", "embed", code=7)
    assert "openai/small now answers as small-2" in said, "vectors of two models do not fit together"


def test_a_judge_by_rule_leaves_no_trace(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=2, corpus=12)
    assert "answered by" not in run(project)
    for path in project.run.rglob("*"):
        assert not path.is_file() or b"answerer" not in path.read_bytes(), path


def test_a_forged_answerer_is_found(server: LLMServer, paid: Project) -> None:
    run(paid, "--quiet")
    path = paid.run / "judge.jsonl"
    [key] = table(paid, "judge")
    path.write_text(path.read_text().replace(key, "0123456789", 1))
    result = invoke("audit", paid.run)
    assert result.exit_code == 5 and "judge.jsonl:1" in result.stdout


def test_eval_says_that_grades_come_from_two_versions(server: LLMServer, paid: Project, tmp_path: Path) -> None:
    server.states = OLD
    run(paid, "--quiet", "--to", "judge")
    one = " ".join(call("eval", "-g", paid.run, "-r", paid.run).stdout.split())
    assert "versions of" not in one
    paid.change(name="mixed")
    server.states = lambda number: OLD if number % 2 else NEW
    (paid.folder / "runs" / ".cache" / "llm" / "cache.db").unlink()
    run(paid, "--quiet", "--allow-mixed")
    made = paid.folder / "runs" / "mixed"
    counts = {
        each["model"]: each["answers"]
        for each in json.loads((made / "manifest.json").read_text())["stages"]["judge"]["answerers"].values()
    }
    named = ", ".join(f"{model} ({count})" for model, count in sorted(counts.items()))
    sentence = f"Grades come from 2 versions of {MODEL}, which may grade differently: {named}."
    assert sentence in " ".join(call("eval", "-g", made, "-r", made).stdout.split())
    call("export", made, "--format", "beir", "--out", tmp_path / "set")
    assert sentence in " ".join(call("eval", "-g", tmp_path / "set", "-r", made).stdout.split()), "an export keeps it"
