"""A budget that ends leaves the best set that it can buy, says what it lacks, and asks nobody until it is raised."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import call
from support.llm_server import LLMServer
from support.project import Project, make_project

from raggs.app.audit import audit

QIDS = [f"q{number:02}" for number in range(5)]


@pytest.fixture(scope="module")
def server() -> Iterator[LLMServer]:
    with pytest.MonkeyPatch.context() as patch, LLMServer() as running:
        patch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        yield running


@pytest.fixture(scope="module")
def calm(server: LLMServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, int, int]:
    """A run that nothing ends, with the calls of its grades and of its orders."""
    project, before = asking(tmp_path_factory.mktemp("calm"), server), server.count
    call("run", "--config", project.config, "--quiet", "--to", "judge")
    grades = server.count - before
    call("run", "--config", project.config, "--quiet")
    return project, grades, server.count - before - grades


def asking(folder: Path, server: LLMServer, **sections: object) -> Project:
    project = make_project(folder, queries=len(QIDS), corpus=20)
    llm = {"api_base": server.url, "concurrency": 4, "prices": {"openai/judge": {"input": 1.0, "output": 2.0}}}
    project.change(judge={"judge": {"type": "litellm", "model": "openai/judge"}}, llm=llm, **sections)
    return project


def ended(project: Project, *flags: object) -> dict:
    """What a run says of which the budget ends."""
    done = call("run", "--config", project.config, "--json", *flags, code=7)
    told = json.loads(done.stdout)
    assert told["error"] in done.stderr and "budget.max_" in done.stderr
    return told


def records(project: Project, artifact: str) -> list[dict]:
    part = project.run / f"{artifact}.partial.jsonl"
    return [json.loads(line) for line in part.read_text().splitlines()] if part.exists() else []


def parts(project: Project) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(project.run.glob("*.partial.jsonl"))}


def is_usable(project: Project, told: dict, out: Path) -> None:
    """All that reads a set reads it, and says what it lacks."""
    assert not audit(project.run).findings
    assert "because the budget is used up (budget.max_" in " ".join(call("audit", project.run, code=7).stdout.split())
    graded = told["bought"]["graded"]
    said = f"{graded} of {len(QIDS)} queries fully graded"
    assert said in " ".join(call("status", project.run).stdout.split())
    assert json.loads(call("status", project.run, "--json").stdout)["bought"] == told["bought"]
    missing = [qid for lacks in told["lacks"].values() for qid in lacks["left"]]
    whole = [qid for qid in QIDS if qid not in missing]
    assert len(whole) == graded
    report = call("eval", "-g", project.run, "-r", project.run).stdout
    assert "because the budget is used up (budget.max_" in " ".join(report.split())
    for form, file in (("trec", "qrels.txt"), ("beir", "qrels/test.tsv"), ("jsonl", "golden.jsonl")):
        errors = call("export", project.run, "--format", form, "--out", out / form).stderr
        assert "because the budget is used up (budget.max_" in errors
        text = (out / form / file).read_text()
        assert all(qid not in text for qid in missing) and all(qid in text for qid in whole), form
    call("report", project.run, "--out", out / "report.html")
    assert "because the budget is used up" in (out / "report.html").read_text()
    short = told["lacks"]["rank"]["short"][0]
    assert "the budget ended" in call("show", project.run, short, "--details").stdout
    assert "stopped: the budget ended" in call("why", project.run, "--query", short, "--details").stdout
    for qid in missing:
        assert f"query '{qid}' is omitted" in call("why", project.run, "--query", qid, code=4).stderr


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("cap", ["0.3 of grades", "0.66 of grades", "0.99 of grades", "0.5 of orders"])
def test_a_budget_that_ends_leaves_a_usable_set(
    cap: str, server: LLMServer, calm: tuple[Project, int, int], tmp_path: Path
) -> None:
    whole, grades, orders = calm
    share, stage = float(cap.split()[0]), cap.split()[2]
    most = round(share * grades) if stage == "grades" else grades + round(share * orders)
    project = asking(tmp_path / "own", server, budget={"max_calls": most})
    before = server.count
    told = ended(project)
    assert server.count - before == most
    bought, short = told["bought"], set(told["lacks"]["rank"]["short"])
    assert bought["cap"] == {"setting": "budget.max_calls", "limit": most, "spent": most}
    assert bought["graded"] >= int(share * len(QIDS)) - 1 if stage == "grades" else bought["graded"] == len(QIDS)
    assert bought["ranked"] == bought["graded"] and bought["short"] == len(short) > 0
    assert {
        each["qid"] for each in records(project, "rank.queries") if each["stop_reason"] == "the budget ended"
    } == short
    assert all(each["grade"] is not None for each in records(project, "judge"))
    first = parts(project)
    assert ended(project) == told and parts(project) == first and server.count - before == most, "nobody is asked again"
    if cap != "0.99 of grades":
        is_usable(project, told, tmp_path)
    call("run", "--config", project.config, "--quiet", "--max-calls", 5000)
    assert server.count - before == grades + orders, "something was paid for twice"
    assert project.artifacts() == whole.artifacts() and not parts(project)
    call("audit", project.run)


def test_what_another_run_has_paid_for_is_of_the_set_though_queries_before_it_are_not(
    server: LLMServer, tmp_path: Path
) -> None:
    project = asking(tmp_path / "own", server)
    questions = project.folder / "queries.jsonl"
    lines = questions.read_text()
    questions.write_text(lines.splitlines(keepends=True)[3])
    call("run", "--config", project.config, "--quiet", "--to", "judge", "--run-id", "other")
    questions.write_text(lines)
    told = ended(project, "--max-calls", 5)
    assert told["lacks"]["judge"]["left"] == ["q00", "q01", "q02", "q04"]
    assert {each["qid"] for each in records(project, "rank")} == {"q03"}
    is_usable(project, told, tmp_path)


def test_walks_that_the_money_ends_leave_one_query_in_the_middle(server: LLMServer, tmp_path: Path) -> None:
    """With 16 calls at once, and walks of three, as many as five would go on side by side."""
    project = asking(tmp_path, server, budget={"max_calls": 45})
    project.change(judge={"stop_after": 3}, llm={"concurrency": 16})
    told = ended(project, "--to", "judge")
    lines = [json.loads(line) for line in (project.run / "llm.ledger.jsonl").read_text().splitlines()]
    paid = {line["qid"] for line in lines if line["usd"]}
    assert len(paid) > 1 and len(paid & set(told["lacks"]["judge"]["left"])) <= 1
