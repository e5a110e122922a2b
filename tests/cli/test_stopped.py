"""A stage that was stopped by its budget or by its user: what is done is used, what is missing is named."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from support.cli import call
from support.llm_server import KEY, LLMServer
from support.project import Project, begin, make_project

Calm = tuple[dict[str, bytes], int]


def paid(folder: Path, server: LLMServer) -> Project:
    project = make_project(folder, queries=6, corpus=24)
    llm = {"api_base": server.url, "concurrency": 4, "prices": {"openai/judge": {"input": 1.0, "output": 2.0}}}
    project.change(judge={"judge": {"type": "litellm", "model": "openai/judge"}}, llm=llm)
    return project


def done(project: Project, artifact: str) -> list[str]:
    lines = (project.run / f"{artifact}.partial.jsonl").read_text().splitlines()
    return list(dict.fromkeys(json.loads(line)["qid"] for line in lines))


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Calm:
    """The artifacts of an undisturbed run, and how many calls it made."""
    with pytest.MonkeyPatch.context() as patch, LLMServer() as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        project = paid(tmp_path_factory.mktemp("calm"), server)
        call("run", "--config", project.config, "--quiet")
        return project.artifacts(), server.count


def goes_on(project: Project, calm: Calm, server: LLMServer) -> None:
    """The next run ends with the bytes of an undisturbed one, and pays nothing twice."""
    project.change(budget={"max_calls": 5000})
    call("run", "--config", project.config, "--quiet")
    artifacts, calls = calm
    assert server.count == calls, "something was paid for twice"
    assert project.artifacts() == artifacts
    assert not list(project.run.glob("*.partial.jsonl"))
    call("audit", project.run)


def test_grades_that_the_budget_paid_for_are_evaluated_and_exported(
    server: LLMServer, tmp_path: Path, calm: Calm
) -> None:
    project = paid(tmp_path / "own", server)
    project.change(budget={"max_calls": 70})
    errors = call("run", "--config", project.config, code=7).stderr
    assert "judge: the queries that are done can be evaluated and exported" in errors
    finished = done(project, "judge")
    assert 1 <= len(finished) < 6
    missing = [f"q{number:02}" for number in range(6) if f"q{number:02}" not in finished]
    told = f"stage judge was stopped: {len(missing)} quer"
    out = call("eval", "-g", project.run, "-r", project.run).stdout
    assert told in " ".join(out.split()) and missing[0] in out
    errors = call("export", project.run, "--format", "trec", "--out", tmp_path / "trec").stderr
    assert told in errors
    qrels = (tmp_path / "trec" / "qrels.txt").read_text().split("\n")
    assert {line.split()[0] for line in qrels if line} == set(finished)
    out = call("eval", "-g", tmp_path / "trec", "-r", project.run).stdout
    assert told in " ".join(out.split()), "labels of a part of the questions are told as such"
    out = call("status", project.run).stdout
    assert f"stopped: {len(finished)} of 6 queries done" in out
    [row] = [line for line in out.splitlines() if line.startswith("judge")]
    assert f"{json.loads(call('cost', project.run, '--json').stdout)['stage']['judge']['usd']:,.4f}" in row
    goes_on(project, calm, server)


@pytest.mark.nightly
def test_rankings_that_are_done_are_exported(server: LLMServer, tmp_path: Path, calm: Calm) -> None:
    project = paid(tmp_path / "own", server)
    call("run", "--config", project.config, "--quiet", "--to", "prune")
    project.change(budget={"max_calls": server.count + 40})
    call("run", "--config", project.config, "--quiet", code=7)
    assert len(done(project, "rank")) == 6
    assert "6 of 6 queries done, " in call("status", project.run).stdout
    errors = call("export", project.run, "--format", "jsonl", "--out", tmp_path / "jsonl").stderr
    assert "stage rank was stopped" in errors and "ended early" in errors
    out = call("eval", "-g", project.run, "-r", project.run).stdout
    assert "stage rank was stopped" in out
    goes_on(project, calm, server)


@pytest.mark.nightly
def test_ctrl_c_leaves_what_is_done(server: LLMServer, tmp_path: Path, calm: Calm) -> None:
    project = paid(tmp_path / "own", server)
    server.delay_s = 0.1
    process = begin("run", "--config", project.config, "--quiet")
    process.wait(until=lambda: server.count >= 80)
    process.send_signal(signal.SIGTERM)
    assert process.end().code == 143
    assert 1 <= len(done(project, "judge")) < 6
    call("audit", project.run, code=7)
    server.delay_s = 0
    goes_on(project, calm, server)


def test_a_whole_result_is_not_replaced_by_a_part(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server)
    call("run", "--config", project.config, "--quiet")
    before = project.artifacts()
    project.change(judge={"samples": 2}, budget={"max_calls": server.count + 70})
    call("run", "--config", project.config, "--quiet", code=7)
    assert project.artifacts() == before
    assert "was stopped" not in call("eval", "-g", project.run, "-r", project.run).stdout


def test_what_came_before_has_changed_so_the_part_is_gone(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server)
    project.change(budget={"max_calls": 70})
    call("run", "--config", project.config, "--quiet", code=7)
    assert done(project, "judge")
    project.change(merge={"depth": 5})
    call("run", "--config", project.config, "--quiet", "--to", "merge")
    assert not list(project.run.glob("*.partial.jsonl"))


def test_what_is_judged_is_ranked_evaluated_and_exported(server: LLMServer, tmp_path: Path, calm: Calm) -> None:
    project = paid(tmp_path / "own", server)
    project.change(budget={"max_calls": 70})
    call("run", "--config", project.config, "--quiet", code=7)
    finished, status = done(project, "judge"), json.loads(call("status", project.run, "--json").stdout)
    out = call("run", "--config", project.config, "--partial", "--set", "budget.max_calls=5000").stdout
    assert "prune and rank finished for the queries that judge has done" in out and f"{6 - len(finished)} quer" in out
    assert done(project, "prune") == done(project, "rank") == finished
    assert not {"judge", "prune", "rank"} & project.manifest()["stages"].keys()
    now = json.loads(call("status", project.run, "--json").stdout)
    assert now["stages"]["judge"]["usd"] == status["stages"]["judge"]["usd"], "judge was asked nothing"
    assert now["stages"]["rank"]["begun"] == f"{len(finished)} of 6 queries done"
    assert json.loads(call("cost", project.run, "--json").stdout)["total"]["calls"] == server.count
    errors = call("export", project.run, "--format", "jsonl", "--out", tmp_path / "jsonl").stderr
    assert f"stage judge was stopped: {6 - len(finished)} quer" in errors
    assert "stage judge was stopped" in call("eval", "-g", project.run, "-r", project.run).stdout
    asked = server.count
    call("run", "--config", project.config, "--partial", "--quiet")
    assert server.count == asked, "what was ordered is in the journal"
    goes_on(project, calm, server)


@pytest.mark.nightly
def test_a_ranking_in_part_may_end_itself(server: LLMServer, tmp_path: Path, calm: Calm) -> None:
    project = paid(tmp_path / "own", server)
    project.change(budget={"max_calls": 70})
    call("run", "--config", project.config, "--quiet", code=7)
    finished, cap = done(project, "judge"), server.count + 14
    flags = ("--partial", "--set", f"budget.max_calls={cap}", "--set", "llm.concurrency=1")
    errors = call("run", "--config", project.config, *flags, code=7).stderr
    assert "rank: the queries that are done can be evaluated and exported" in errors
    assert done(project, "rank") == finished
    told = json.loads(call("status", project.run, "--json").stdout)
    short = told["bought"]["short"]
    assert 1 <= short < len(finished), "the others are ranked to the end"
    assert told["stages"]["rank"]["begun"].startswith(f"{len(finished)} of 6 queries done, {short} ranking")
    errors = call("export", project.run, "--format", "jsonl", "--out", tmp_path / "jsonl").stderr
    assert "stage judge was stopped" in errors and "stage rank was stopped" in errors
    goes_on(project, calm, server)


def test_a_part_of_something_else_is_not_gone_on_with(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path / "own", server)
    part = ("run", "--config", project.config, "--quiet", "--partial")
    assert "no run here" in call(*part, code=4).stderr
    call("run", "--config", project.config, "--quiet", "--to", "merge")
    assert "no stage was stopped" in call(*part, code=5).stderr
    project.change(budget={"max_calls": 70})
    call("run", "--config", project.config, "--quiet", code=7)
    before = (project.run / "judge.partial.jsonl").read_bytes()
    assert "with other settings or inputs" in call(*part, "--set", "judge.judge.model=openai/other", code=5).stderr
    assert "stage merge is out of date" in call(*part, "--set", "merge.depth=5", code=5).stderr
    assert "--partial can only be combined" in call(*part, "--force", code=2).stderr
    assert (project.run / "judge.partial.jsonl").read_bytes() == before
    call("run", "--config", project.config, "--quiet", "--set", "budget.max_calls=5000")
    assert "no stage was stopped" in call(*part, code=5).stderr


def test_a_part_of_other_settings_is_not_left_for_the_next_attempt(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server)
    project.change(budget={"max_calls": 70})
    call("run", "--config", project.config, "--quiet", code=7)
    assert done(project, "judge")
    call("run", "--config", project.config, "--quiet", "--set", "judge.samples=2", code=7)
    assert not list(project.run.glob("*.partial.jsonl"))
