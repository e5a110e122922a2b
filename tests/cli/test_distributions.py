"""A judge that states probabilities, through the command line: counted, resumed, audited."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from support.cli import call, invoke
from support.forks import Child
from support.llm_server import LLMServer
from support.project import Project, begin, environment, make_project, raggs

pytestmark = pytest.mark.usefixtures("provider_key")

KEY = {"OPENAI_API_KEY": "sk-test-0123456789abcdefghijklmnop"}
MODEL = "openai/judge"


def stating(folder: Path, url: str, answers: str, **sections: Any) -> Project:
    """A project whose judge is a model that states probabilities."""
    project = make_project(folder, queries=3, corpus=24)
    llm = {"api_base": url, "prices": {MODEL: {"input": 1.0, "output": 2.0}}, "backoff_s": 0.02, "concurrency": 4}
    project.change(judge={"judge": {"type": "litellm", "model": MODEL, "answers": answers}}, llm=llm)
    project.change(rank={"max_calls": 6}, **sections)
    return project


def rows(project: Project, artifact: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.run / f"{artifact}.jsonl").read_text().splitlines()]


def ledger_calls(project: Project) -> int:
    """The requests of all invocations, as the ledger has them."""
    return sum(line.get("attempts", 0) for line in rows(project, "llm.ledger"))


@pytest.mark.parametrize("answers", ["decision", "logprobs", "auto"])
def test_probabilities_are_recorded_audited_and_counted(tmp_path: Path, answers: str) -> None:
    with LLMServer() as server:
        project = stating(tmp_path, server.url, answers)
        call("run", "--config", project.config)
        source = "decision" if answers == "decision" else "logprobs"
        for row in rows(project, "judge"):
            assert sum(round(10_000 * share) for share in row["distribution"]) == 10_000
            below = [sum(row["distribution"][:grade]) for grade in range(6)]
            assert below[row["grade"] - 1] < 0.5 <= below[row["grade"]] + 1e-9
            assert row["distribution_source"] == source
        stated = {(row["qid"], row["doc_id"]): row["distribution"] for row in rows(project, "judge")}
        assert all(row["distribution"] == stated[row["qid"], row["doc_id"]] for row in rows(project, "prune"))
        journal = rows(project, "rank.journal")
        assert journal
        assert all(("best" in row) == (answers == "decision") for row in journal)
        for row in journal if answers == "decision" else ():
            assert row["best"] == sorted(row["best"], reverse=True)
            assert sum(round(10_000 * share) for share in row["best"]) == 10_000
        assert ledger_calls(project) == server.count
        call("audit", project.run)
        call("run", "--config", project.config)
        assert ledger_calls(project) == server.count, "nothing is paid again"


def test_an_audit_finds_a_grade_that_contradicts_its_probabilities(tmp_path: Path) -> None:
    with LLMServer() as server:
        project = stating(tmp_path, server.url, "decision")
        call("run", "--config", project.config, "--to", "judge")
    path = project.run / "judge.jsonl"
    row = rows(project, "judge")[0]
    other = row["grade"] % 5 + 1
    text = path.read_text()
    changed = text.replace(
        f'"grade":{row["grade"]},"grades":[{row["grade"]}]', f'"grade":{other},"grades":[{other}]', 1
    )
    assert changed != text
    path.write_text(changed)
    assert "judge.jsonl:1" in call("audit", project.run, code=5).output


@pytest.mark.parametrize("answers", ["decision", "logprobs"])
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path: Path, answers: str) -> None:
    with LLMServer(delay_s=0.05) as server:
        project = stating(tmp_path / "own", server.url, answers, budget={"max_usd": None})
        for calls in (10, 50):
            process: Child = begin("run", "--config", project.config, "--quiet", env=environment(**KEY))
            assert process.wait(until=lambda calls=calls: server.count >= calls) is None
            process.send_signal(signal.SIGKILL)
            process.end()
        server.delay_s = 0
        again = raggs("run", "--config", project.config, "--quiet", env=environment(**KEY))
        assert again.returncode == 0, again.stderr
        calm = stating(tmp_path / "calm", server.url, answers, budget={"max_usd": None})
        assert raggs("run", "--config", calm.config, "--quiet", env=environment(**KEY)).returncode == 0
        assert project.artifacts() == calm.artifacts()


@pytest.mark.parametrize("answers", ["decision", "logprobs"])
def test_a_dry_run_counts_the_calls_of_the_judge(tmp_path: Path, answers: str) -> None:
    with LLMServer() as server:
        project = stating(tmp_path, server.url, answers)
        call("run", "--config", project.config, "--to", "merge")
        shown = json.loads(call("run", "--config", project.config, "--dry-run", "--json").stdout)
        assert server.count == 0
        lines = [line for line in shown["estimates"] if line["stage"] == "judge"]
        call("run", "--config", project.config, "--to", "judge")
        assert [line["calls"] for line in lines] == [server.count]
        assert [line["output_tokens"] for line in lines] == [0 if answers == "decision" else 2 * server.count]


@pytest.mark.parametrize("rule", ["median", "first"])
def test_a_panel_has_a_distribution_only_if_all_members_have_one(tmp_path: Path, rule: str) -> None:
    with LLMServer() as server:
        project = stating(tmp_path, server.url, "decision")
        members = [{"type": "litellm", "model": MODEL, "answers": answers} for answers in ("decision", "logprobs")]
        whole = {"type": "panel", "judges": members, "rule": rule}
        project.change(judge={"judge": whole})
        call("run", "--config", project.config)
        assert all(len(row["distribution"]) == 5 for row in rows(project, "judge"))
        assert all(("distribution_source" in row) == (rule == "first") for row in rows(project, "judge"))
        call("audit", project.run)
        members[1]["answers"] = "text"
        project.change(judge={"judge": whole})
        call("run", "--config", project.config, "--yes")
        assert all(("distribution" in row) == (rule == "first") for row in rows(project, "judge"))
        call("audit", project.run)


def test_samples_are_averaged(tmp_path: Path) -> None:
    faults = {1: "labels win", 2: "truncated list"}
    with LLMServer(fault_for=lambda number, body: faults.get(number)) as server:
        project = stating(tmp_path, server.url, "decision")
        project.change(judge={"samples": 2})
        call("run", "--config", project.config)
        assert all(len(row["grades"]) == 2 and row["distribution"] for row in rows(project, "judge"))
        call("audit", project.run)


def test_the_doctor_tests_the_form_of_answers_by_one_call(tmp_path: Path) -> None:
    with LLMServer() as server:
        text = stating(tmp_path / "text", server.url, "text")
        assert "confirmed" not in call("doctor", "--config", text.config).output
        assert server.count == 0
        auto = stating(tmp_path / "auto", server.url, "auto")
        shown = " ".join(call("doctor", "--config", auto.config).output.split())
        assert "answers: logprobs, confirmed by one call" in shown
        assert server.count == 1
        server.faults = ["refused"] * 3
        decided = stating(tmp_path / "decided", server.url, "decision")
        assert "answers: decision is not usable" in " ".join(
            invoke("doctor", "--config", decided.config).output.split()
        )
