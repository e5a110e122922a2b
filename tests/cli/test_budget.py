"""Caps on the command line: they hold over all invocations, and what ends them says how to go on."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from support.cli import call, invoke
from support.llm_server import LLMServer
from support.paying import paying
from support.project import Project

from raggs.app.run import RunForecast
from raggs.base.hashing import hash_value
from raggs.cli.runs import confirm_cost
from raggs.runs.manifests.costs import cost
from raggs.runs.manifests.models import CostEstimate
from raggs.runs.manifests.reasons import NeverRun


@pytest.fixture
def project(server: LLMServer, tmp_path: Path) -> Project:
    """So dear that a few calls spend a dollar."""
    return paying(tmp_path, server, usd=100.0)


def spent(project: Project, run: str = "demo") -> float:
    return cost(project.folder / "runs" / run).spent.total.usd


@pytest.mark.parametrize(("usd", "price"), [(0.5, "about $1.50"), (None, "at an unknown price")])
def test_the_confirmation_names_every_paid_model(
    usd: float | None, price: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr("raggs.cli.runs.agree", lambda question, **_: seen.append(question) or True)
    rest = {"stage": "judge", "input_tokens": 1, "output_tokens": 1, "exact": True}
    lines = (
        CostEstimate(**rest, calls=3, usd=1.0, who="openai/a"),
        CostEstimate(**rest, calls=2, usd=usd, who="openai/b"),
        CostEstimate(**rest, calls=9, usd=0.0, who="own (local)"),
        CostEstimate(**rest, calls=0, cached=4, usd=None, who="openai/cached"),
    )
    confirm_cost(RunForecast({"judge": (NeverRun(),)}, lines), 2.0)
    assert seen == [f"Up to 5 calls to openai/a and openai/b, {price} (cap $2.00). Continue?"]


def test_three_invocations_under_one_cap_spend_no_more_than_it(project: Project) -> None:
    for _ in range(3):
        errors = call("run", "--config", project.config, "--quiet", "--max-usd", 0.5, code=7).stderr
        assert re.search(r"the budget is used up: 0\.4\d+ of 0\.5000 USD spent", errors), errors
    assert 0.3 < spent(project) <= 0.5


def test_the_end_of_the_budget_names_the_command_that_goes_on(server: LLMServer, project: Project) -> None:
    flags = ("--config", project.config, "--run-id", "other one".replace(" ", "-"), "--set", "rank.top=4")
    errors = call("run", *flags, "--quiet", "--max-usd", 0.5, code=7).stderr
    found = re.search(r"remaining: up to [\d,]+ calls at an estimated [\d.]+ USD — .* to resume: raggs (.*)", errors)
    assert found, errors
    command = shlex.split(found[1])
    assert command[:5] == ["run", *map(str, flags[:4])]
    assert command[5:7] == ["--set", "rank.top=4"]
    assert command[7] == "--set"
    assert command[8].startswith("budget.max_usd=")
    assert len(command) == 9
    call(*command, "--quiet")
    assert 0.5 < spent(project, "other-one") <= float(command[8].partition("=")[2])


def test_calls_are_the_runs_too_and_an_invocation_has_caps_of_its_own(server: LLMServer, project: Project) -> None:
    for _ in range(2):
        call("run", "--config", project.config, "--quiet", "--max-calls", 10, code=7)
    assert server.count <= 10
    more = ("--set", "budget.max_usd=null", "--set", "budget.max_calls_per_invocation=5")
    errors = [call("run", "--config", project.config, "--quiet", *more, code=7).stderr for _ in range(2)]
    assert 15 <= server.count <= 20
    assert errors[0].strip().endswith("budget.max_usd=null --set budget.max_calls_per_invocation=5")


def test_the_same_model_at_another_address_does_not_run_again(server: LLMServer, project: Project) -> None:
    call("run", "--config", project.config, "--quiet", "--max-usd", 50)
    paid, before = server.count, project.artifacts()
    with LLMServer() as elsewhere:
        project.change(llm={"api_base": elsewhere.url})
        call("run", "--config", project.config, "--quiet")
        call("run", "--config", project.config, "--quiet", "--force")
        assert (server.count, elsewhere.count) == (paid, 0)
    assert project.artifacts() == before


def test_a_lock_that_names_an_address_as_a_cause_is_still_up_to_date(server: LLMServer, project: Project) -> None:
    call("run", "--config", project.config, "--quiet", "--max-usd", 50)
    path = project.run / "manifest.json"
    manifest = project.manifest()
    for lock in (manifest["stages"]["judge"], manifest["stages"]["rank"]):
        lock["components"]["judge"]["llm"]["api_base"] = "http://localhost:1/v1"
        lock["fingerprint"] = hash_value(lock["components"])
    path.write_text(json.dumps({**manifest, "seal": None}))  # the version that had it did not seal
    result = invoke("run", "--config", project.config)
    assert "Nothing to do" in result.stdout, result.stderr


PAID = r"judge would run again \((?:config\.)?judge.* changed .*\), and replace results for which \d\.\d+ USD were paid"


def test_a_changed_judge_does_not_replace_paid_results_unasked(server: LLMServer, project: Project) -> None:
    flags = ("run", "--config", project.config, "--quiet")
    call(*flags, "--max-usd", 50)
    before, paid = project.artifacts(), server.count
    project.change(judge={"judge": {"type": "litellm", "model": "openai/other"}}, budget={"max_usd": None})
    errors = call(*flags, code=2).stderr
    assert re.search(PAID, errors), errors
    assert "pass --yes to replace them" in errors
    assert (project.artifacts(), server.count) == (before, paid)
    call(*flags, "--yes", "--to", "judge")
    assert server.count > paid
    errors = call(*flags[:-1], "--force").stderr
    assert re.search(r"note: rank would run again .* results for which \d\.\d+ USD were paid", errors), errors


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize(
    "more",
    [{"judge": {"samples": 2}}, {"rank": {"max_calls": 9}}, {"prune": {"max_keep": 9}}],
    ids=["samples", "calls", "prune"],
)
def test_what_keeps_paid_answers_is_not_asked_about(server: LLMServer, project: Project, more: dict) -> None:
    call("run", "--config", project.config, "--quiet", "--max-usd", 50, "--set", "rank.max_calls=2")
    project.change(**more)
    call("run", "--config", project.config, "--quiet", "--max-usd", 50, "--set", "rank.top=4")
