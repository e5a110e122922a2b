"""`raggs cost`: every call of every invocation, by stage, model and query, beside the estimate."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from support.cli import call, invoke
from support.llm_prefixes import Prefixes
from support.llm_server import LLMServer
from support.paying import MODEL
from support.project import Project, begin, make_project


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        pytest.param({}, (), id="small lists"),
        pytest.param({"judge": {"group": 4}, "rank": {"max_calls": 40}}, (), id="groups and long rankings"),
        pytest.param({"rank": {"max_calls": 20}}, ("--to", "judge"), id="grades alone"),
        pytest.param({"judge": {"samples": 3}}, (), id="samples"),
    ],
)
def test_what_is_expected_is_within_a_factor_of_two_and_the_bound_holds(
    server: LLMServer, project: Project, changes: dict[str, Any], flags: tuple[str, ...]
) -> None:
    """As docs/how-to/cut-cost.md says. The server counts four characters as a token, and its answers are short."""
    project.change(**changes)
    told = json.loads(call("run", "--config", project.config, "--dry-run", "--json", *flags).stdout)
    call("run", "--config", project.config, "--quiet", *flags)
    spent = cost(project)["total"]
    assert spent["calls"] == server.count
    assert told["usd_expected"] / 2 <= spent["usd"] <= 2 * told["usd_expected"]
    assert spent["usd"] <= told["usd_at_most"]


def cost(project: Project) -> dict:
    found: dict = json.loads(call("cost", project.run, "--json").stdout)
    return found


def test_sums_are_the_locks_and_agree_with_each_other(server: LLMServer, project: Project) -> None:
    server.faults = ["500", "grade 7"]
    call("run", "--config", project.config, "--quiet")
    found = cost(project)
    for name in ("judge", "rank"):
        lock = project.manifest()["stages"][name]["cost"]
        for field in ("calls", "cached", "prompt_tokens", "completion_tokens"):
            assert found["stage"][name][field] == lock[field], (name, field)
        assert found["stage"][name]["usd"] == pytest.approx(lock["usd"])
    for by in ("stage", "model", "query"):
        assert sum(entry["calls"] for entry in found[by].values()) == found["total"]["calls"] == server.count
        assert sum(entry["usd"] for entry in found[by].values()) == pytest.approx(found["total"]["usd"])
    assert sorted(found["query"]) == ["q00", "q01", "q02"]
    assert list(found["model"]) == [MODEL]
    assert found["total"]["unusable"] == 1


def test_the_estimate_stands_beside_the_actual(server: LLMServer, project: Project) -> None:
    before = json.loads(call("run", "--config", project.config, "--dry-run", "--json").stdout)["estimates"]
    call("run", "--config", project.config, "--quiet")
    found = cost(project)
    after = {line["stage"]: line for line in found["estimates"]}
    assert [line["stage"] for line in before] == ["judge", "rank"] == list(after)
    assert after["judge"]["calls"] == found["stage"]["judge"]["calls"], "the pools are known by now"
    assert after["rank"]["calls"] >= found["stage"]["rank"]["calls"]
    assert found["total"]["usd"] <= sum(line["usd"] for line in after.values())
    printed = call("cost", project.run, "--details").stdout
    assert f"{after['judge']['usd']:,.4f}" in printed
    assert "estimate of the dry run" in printed


def test_what_the_cache_saved_is_told_and_money_spent_before_stays(server: LLMServer, project: Project) -> None:
    call("run", "--config", project.config, "--quiet")
    first = cost(project)["stage"]["judge"]
    call("run", "--config", project.config, "--quiet", "--force")
    second = cost(project)["stage"]["judge"]  # what was ordered is in the journal, and is not even looked up
    assert second["usd"] == first["usd"]
    assert second["cached"] == first["answered"]
    assert second["saved_usd"] == 0, "the run reads answers that it paid for itself"
    assert "cached answers saved" not in call("cost", project.run).stdout
    call("run", "--config", project.config, "--quiet", "--run-id", "other")
    other = json.loads(call("cost", project.run.parent / "other", "--json").stdout)
    assert other["total"]["usd"] == 0
    assert other["stage"]["judge"]["saved_usd"] == pytest.approx(first["usd"])
    for run in (project.run, project.run.parent / "other"):
        call("audit", run)


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("calls", [9, 60])
def test_the_estimate_is_that_of_the_whole_run_however_often_it_stops(
    server: LLMServer, project: Project, calls: int
) -> None:
    call("run", "--config", project.config, "--quiet", "--max-calls", calls, code=7)
    before = cost(project)["estimates"]
    server.truth = lambda query, passage: 1 + len(passage) % 5
    call("run", "--config", project.config, "--quiet")
    assert cost(project)["estimates"] == before
    call("run", "--config", project.config, "--quiet", "--force")
    assert cost(project)["estimates"] == before
    call("run", "--config", project.config, "--quiet", "--set", "rank.max_calls=3", "--yes")
    changed = cost(project)["estimates"]
    assert changed[0] == before[0] and changed[1]["calls"] < before[1]["calls"]


def test_the_ledger_is_no_artifact_and_no_cause(server: LLMServer, project: Project) -> None:
    call("run", "--config", project.config, "--quiet")
    ledger = project.run / "llm.ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-5])
    assert "llm.ledger.jsonl" in call("audit", project.run, code=5).stdout, "the account is sealed with the rest"
    assert cost(project)["total"]["calls"] == server.count - 1
    ledger.unlink()
    assert "llm.ledger.jsonl" in call("audit", project.run, code=5).stdout
    assert "would run" not in call("status", project.run, "--config", project.config).stdout
    assert cost(project)["total"]["calls"] == 0
    assert "time" in json.loads(call("schema", "llm.ledger").stdout)["properties"]


def test_a_damaged_line_is_named(server: LLMServer, project: Project) -> None:
    call("run", "--config", project.config, "--quiet")
    ledger = project.run / "llm.ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"attempts":1', b'"attempts":-1', 1))
    result = invoke("cost", project.run)
    assert result.exit_code == 5
    assert "llm.ledger.jsonl:1" in result.stderr


def test_the_remedy_for_a_damaged_line_leaves_no_finding_and_pays_nothing(server: LLMServer, project: Project) -> None:
    call("run", "--config", project.config, "--quiet")
    ledger, paid = project.run / "llm.ledger.jsonl", server.count
    whole = ledger.read_bytes()
    ledger.write_bytes(whole.replace(b'"attempts":1', b'"attempts":-1', 1))
    result = invoke("run", "--config", project.config, "--force")
    assert "restore the file from a copy, or run with --run-id NAME" in result.stderr
    call("run", "--config", project.config, "--quiet", "--run-id", "anew")
    assert server.count == paid
    call("audit", project.run.parent / "anew")
    ledger.write_bytes(whole)
    call("audit", project.run)


def test_what_was_expected_is_kept_with_the_run_and_needs_no_inputs(server: LLMServer, project: Project) -> None:
    call("run", "--config", project.config, "--quiet")
    with_inputs = call("cost", project.run, "--details").stdout
    (project.folder / "queries.jsonl").unlink()
    project.config.unlink()
    assert "estimate of the dry run" in with_inputs
    assert call("cost", project.run, "--details").stdout == with_inputs


def test_a_run_without_a_model_costs_nothing(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=2, corpus=12)
    call("run", "--config", project.config, "--quiet")
    assert not (project.run / "llm.ledger.jsonl").exists()
    assert call("cost", project.run).stdout == "No language model was called: $0.00.\n"


def test_after_a_kill_calls_on_their_way_are_possibly_billed(server: LLMServer, project: Project) -> None:
    server.delay_s, concurrency = 0.05, 4
    project.change(llm={"concurrency": concurrency})
    process = begin("run", "--config", project.config, "--quiet", env=dict(os.environ))
    process.wait(until=lambda: server.count >= 20)
    process.kill()
    time.sleep(0.1)  # what has left arrives
    total, asked = cost(project)["total"], server.count
    assert asked <= total["calls"] <= asked + concurrency, "intents may be written whose calls did not leave"
    assert 1 <= total["unknown"] <= concurrency
    assert 0 < total["unknown_usd"] == pytest.approx(total["perhaps_usd"])
    sentence = f"possibly billed: {total['unknown']} calls without a recorded answer, for example after a kill "
    for command in (("cost", project.run), ("status", project.run)):
        assert sentence in " ".join(call(*command).stdout.split())
    assert sentence in " ".join(call("run", "--config", project.config).stdout.split())
    after = cost(project)["total"]
    assert after["calls"] == total["calls"] + server.count - asked
    assert after["unknown"] == total["unknown"]
    assert sentence in " ".join(call("audit", project.run).stdout.split())
    told = json.loads(call("status", project.run, "--json").stdout)["possibly_billed"]
    assert told == {"calls": after["unknown"], "usd": pytest.approx(after["unknown_usd"])}
    assert "unknown" in (project.run / "llm.ledger.jsonl").read_text()
    assert not (project.run / "llm.intents.jsonl").exists(), "all of them are in the ledger"


def test_what_an_embedder_is_expected_to_cost_is_kept_though_nobody_pays_the_judge(
    server: LLMServer, tmp_path: Path
) -> None:
    project = make_project(tmp_path, queries=3, corpus=24)
    model = "openai/small"
    project.change(
        embed={"embedder": {"type": "litellm", "model": model, "dims": 8}},
        llm={"api_base": server.url, "prices": {model: {"input": 1.0, "output": 0.0}}},
    )
    call("run", "--config", project.config, "--quiet", "--to", "embed")
    assert [line["who"] for line in cost(project)["estimates"]][:1] == [model]


def test_what_the_provider_remembered_is_told(server: LLMServer, project: Project) -> None:
    server.prefixes = Prefixes(least=128)
    price = {"input": 1.0, "output": 2.0, "cached_input": 0.1}
    project.change(llm={"prices": {MODEL: price}})
    call("run", "--config", project.config, "--quiet")
    found = cost(project)["total"]
    assert found["cached_tokens"] == sum(each.cached for each in server.prefixes.seen) > 0
    assert found["discount_usd"] == pytest.approx(0.9e-6 * found["cached_tokens"])
    told = " ".join(call("cost", project.run, "--details").stdout.split())
    assert f"{found['cached_tokens']:,} prompt tokens were cached by the provider (judge " in told
    call("audit", project.run)
