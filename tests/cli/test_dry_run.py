"""`raggs run --dry-run` of a run that has paid for something already: what it says is what is paid."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.cli import call, invoke
from support.llm_server import LLMServer
from support.project import Project, make_project

from raggs.app.diagnose import DiagnoseRequest


def paid(folder: Path, server: LLMServer, model: str = "openai/judge", **sections: Any) -> Project:
    project = make_project(folder, queries=3, corpus=24, **sections)
    llm = {"api_base": server.url, "backoff_s": 0.01, "prices": {model: {"input": 1.0, "output": 2.0}}}
    project.change(judge={"judge": {"type": "litellm", "model": model}}, llm=llm)
    return project


def expected(project: Project, *flags: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call("run", "--config", project.config, "--dry-run", "--json", *flags).stdout)
    return {**found, **{line["stage"]: line for line in found["estimates"]}}


def files(folder: Path) -> dict[Path, int]:
    """Times of all files, without paid answers and the notes on verified corpora, which depend on the clock."""
    found = (path for path in folder.rglob("*") if path.is_file() and "llm" not in path.parts)
    return {path: path.stat().st_mtime_ns for path in found if path.name != "verified.json"}


def test_what_is_cached_and_journalled_costs_nothing(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server)
    call("run", "--config", project.config, "--quiet")
    asked, before = server.count, files(project.folder)
    found = expected(project, "--force", "--from", "judge")
    assert files(project.folder) == before
    locks = project.manifest()["stages"]
    assert (found["usd"], found["usd_at_most"]) == (0, 0)
    assert (found["judge"]["calls"], found["judge"]["cached"]) == (0, locks["judge"]["cost"]["calls"])
    assert (found["rank"]["calls"], found["rank"]["cached"]) == (0, locks["rank"]["cost"]["calls"])
    assert found["rank"]["exact"]
    assert "estimated cost: $0.0000 (" in call("run", "--config", project.config, "--dry-run", "--force").stdout
    call("run", "--config", project.config, "--quiet", "--force")
    assert server.count == asked
    (project.run / "rank.journal.jsonl").unlink()
    assert expected(project)["rank"]["cached"] == locks["rank"]["cost"]["calls"], "the cache holds the orders too"


def test_what_is_left_is_counted(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server, budget={"max_calls": 17})
    call("run", "--config", project.config, "--quiet", code=7)
    project.change(budget={"max_calls": 5000})
    found = expected(project)
    assert found["judge"]["exact"] and found["judge"]["cached"] == 17
    assert not found["rank"]["exact"]
    call("run", "--config", project.config, "--quiet", "--to", "judge")
    cost = project.manifest()["stages"]["judge"]["cost"]
    assert (cost["calls"], cost["cached"]) == (found["judge"]["calls"], 17)
    assert cost["usd"] <= found["judge"]["usd"]
    project.change(budget={"max_calls": server.count + 7})
    call("run", "--config", project.config, "--quiet", code=7)
    project.change(budget={"max_calls": 5000})
    left = expected(project)["rank"]
    assert left["cached"] == 7
    assert left["calls"] <= found["rank"]["calls"] - 7
    call("run", "--config", project.config, "--quiet")
    assert project.manifest()["stages"]["rank"]["cost"]["calls"] <= left["calls"]


def test_a_panel_counts_for_each_member(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server)
    call("run", "--config", project.config, "--quiet")
    once = project.manifest()["stages"]["judge"]["cost"]["calls"]
    members = [{"type": "litellm", "model": "openai/judge"}, {"type": "litellm", "model": "openai/other"}]
    prices = {model: {"input": 1.0, "output": 2.0} for model in ("openai/judge", "openai/other")}
    project.change(judge={"judge": {"type": "panel", "judges": members}}, llm={"prices": prices})
    lines = {(line["stage"], line["who"]): line for line in expected(project)["estimates"]}
    mine, other = lines["judge", "openai/judge"], lines["judge", "openai/other"]
    assert (mine["calls"], mine["cached"]) == (0, once)
    assert (other["calls"], other["cached"]) == (once, 0)


def test_rewrites_are_looked_up(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server, embed={"rewrite": {"type": "llm", "model": "openai/judge"}})
    assert expected(project)["embed"]["calls"] == 3
    call("run", "--config", project.config, "--quiet", "--to", "embed")
    found = expected(project, "--force")["embed"]
    assert (found["calls"], found["cached"]) == (0, 3)


def test_vectors_are_looked_up(server: LLMServer, tmp_path: Path) -> None:
    embedder = {"type": "litellm", "model": "openai/judge", "dims": 8, "batch": 5}
    project = paid(tmp_path, server, embed={"embedder": embedder})

    def lines(*flags: str) -> dict[str, tuple[int, int, bool]]:
        found = expected(project, *flags)["estimates"]
        return {each["stage"]: (each["calls"], each["cached"], each["exact"]) for each in found[:2]}

    assert lines() == {"embed": (1, 0, True), "retrieve": (5, 0, True)}
    before = expected(project)
    call("run", "--config", project.config, "--quiet", "--to", "retrieve")
    locks = project.manifest()["stages"]
    assert [locks[name]["cost"]["calls"] for name in ("embed", "retrieve")] == [1, 5] == [1, server.count - 1]
    spent = locks["embed"]["cost"]["usd"] + locks["retrieve"]["cost"]["usd"]
    assert 0 < spent <= before["embed"]["usd"] + before["retrieve"]["usd"]
    assert lines("--force") == {"embed": (0, 3, True), "retrieve": (0, 0, True)}, "the index holds the vectors"
    call("cache", "clear", "--workspace", project.folder / "runs", "--what", "vectors")
    assert lines("--force", "--run-id", "another") == {"embed": (0, 3, True), "retrieve": (0, 24, True)}
    asked = server.count
    call("run", "--config", project.config, "--quiet", "--to", "retrieve", "--run-id", "another")
    assert server.count == asked


def test_a_rewrite_that_is_missing_makes_its_vector_a_guess(server: LLMServer, tmp_path: Path) -> None:
    embedder = {"type": "litellm", "model": "openai/judge", "dims": 8}
    embed = {"embedder": embedder, "rewrite": {"type": "llm", "model": "openai/judge"}}
    project = paid(tmp_path, server, embed=embed)
    [line, *_] = expected(project)["estimates"]
    assert (line["stage"], line["calls"], line["exact"]) == ("embed", 1, False)


def test_pools_that_are_not_known_are_said_to_be(server: LLMServer, tmp_path: Path) -> None:
    project, told = paid(tmp_path, server), "the pools are unknown until merge has run"
    assert told in call("run", "--config", project.config, "--dry-run").stdout
    call("run", "--config", project.config, "--quiet")
    again = ("run", "--config", project.config, "--run-id", "again")
    assert told in call(*again, "--dry-run").stdout
    call(*again, "--quiet", "--to", "merge")
    printed = call(*again, "--dry-run").stdout
    assert told not in printed and "estimated cost: $0.0000" in printed


def test_a_call_takes_as_many_tokens_before_its_pool_is_known_as_after(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server)
    before = expected(project)["judge"]
    call("run", "--config", project.config, "--quiet", "--to", "merge")
    after = expected(project)["judge"]
    assert (before["exact"], after["exact"]) == (False, True)
    assert before["calls"] >= after["calls"]
    each = [line["input_tokens"] / line["calls"] for line in (before, after)]
    assert each[0] == pytest.approx(each[1], rel=0.03)


def test_a_ranking_that_is_dearer_than_the_grades_is_advised_against(server: LLMServer, tmp_path: Path) -> None:
    told = "ranking costs more than grading: more queries would distinguish systems better for the same money"
    project = paid(tmp_path, server, rank={"max_calls": 80})
    assert told in call("run", "--config", project.config, "--dry-run").stdout
    assert told not in call("run", "--config", project.config, "--dry-run", "--set", "rank.max_calls=1").stdout


def test_hidden_reasoning_is_assumed_until_the_ledger_knows(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server, "openai/gpt-5-mini")
    first = expected(project)
    assert first["judge"]["hidden_tokens"] == 1000
    assert first["judge"]["output_tokens"] == 1060 * first["judge"]["calls"]
    told = call("run", "--config", project.config, "--dry-run").stdout
    assert "1,000 tokens of hidden reasoning are assumed per answer of openai/gpt-5-mini" in told
    assert "estimated cost: expected about $" in told and "the cap may stop the run earlier" not in told
    assert "the cap may stop the run earlier" in call("run", project.config, "--dry-run", "--max-usd", "0.001").stdout
    project.change(budget={"max_calls": 17})
    call("run", "--config", project.config, "--quiet", code=7)
    ledger = [json.loads(line) for line in (project.run / "llm.ledger.jsonl").read_text().splitlines()]
    mean = sum(line["completion_tokens"] for line in ledger) / len(ledger)
    then = expected(project)["judge"]
    assert then["hidden_tokens"] == 0
    assert mean <= then["output_tokens"] / then["calls"] < mean + 1


def test_the_first_long_answers_lengthen_what_is_assumed_of_all(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server)
    server.fault_for = lambda number, body: "hidden"
    project.change(budget={"max_calls": 2})
    ended = invoke("run", "--config", project.config, "--quiet")
    assert ended.exit_code == 7
    then = expected(project)
    for stage in ("judge", "rank"):
        assert then[stage]["output_tokens"] / then[stage]["calls"] >= 19_900
    left = then["judge"]["usd"] + then["rank"]["usd"]
    said = re.search(r"at an estimated ([\d,.]+) USD", ended.stderr)
    assert said is not None
    assert float(said[1].replace(",", "")) == pytest.approx(left, rel=0.01)


def test_at_most_counts_corrections(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server)
    found = expected(project)
    assert found["usd_at_most"] == pytest.approx(3 * found["usd"])
    assert "every answer is corrected twice" in call("run", "--config", project.config, "--dry-run").stdout
    server.fault_for = lambda number, body: "grade 7" if len(body["messages"]) < 3 else None
    call("run", "--config", project.config, "--quiet")
    spent = sum(lock["cost"]["usd"] for lock in project.manifest()["stages"].values())
    assert spent <= found["usd_at_most"]


def test_what_a_provider_is_likely_to_remember_is_told_and_not_taken_off(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server)
    project.change(llm={"prices": {"openai/judge": {"input": 1.0, "output": 2.0, "cached_input": 0.1}}})
    shipped = expected(project)
    told = "prompt caching by the provider may reduce this"
    assert "discount_usd" not in shipped["judge"], "the prompt that comes with raggs is too short"
    assert told not in call("run", "--config", project.config, "--dry-run").stdout
    (project.folder / "mine.md").write_text(
        f"# system\n\n{'Grade it. ' * 700}\n\n# user\n\n{{{{query}}}} {{{{passage}}}}\n"
    )
    project.change(judge={"prompt": "mine.md"})
    longer = expected(project)["judge"]
    assert 0.5 * longer["usd"] < longer["discount_usd"] < longer["usd"]
    assert longer["usd"] > shipped["judge"]["usd"], "an upper bound all the same"
    assert told in " ".join(call("run", "--config", project.config, "--dry-run").stdout.split())


def test_lists_that_the_judges_model_cannot_read_are_refused_before_anything_is_paid(
    server: LLMServer, tmp_path: Path
) -> None:
    project = paid(tmp_path, server, "openai/gpt-4")  # reads 8,192 tokens
    rows = [{"_id": f"p{at}", "text": f"The amber {at} " * 150} for at in range(24)]
    (project.folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    call("run", "--config", project.config, "--dry-run")
    for size in ("20", "auto"):
        result = invoke("run", "-c", project.config, "--set", f"rank.batch_size={size}", "--yes")
        assert result.exit_code == 5 and server.count == 0
        told = " ".join(result.stderr.split())
        assert "lists of 20 passages of about" in told and "the 8,192 tokens of the context of openai/gpt-4" in told
    fitting = re.search(r"set rank.batch_size to (\d+) or less", told)
    assert fitting is not None
    call("run", "--config", project.config, "--dry-run", "--set", f"rank.batch_size={fitting[1]}")


def test_a_dry_run_says_where_the_calls_would_go(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server)
    host = server.url.split("/")[2]
    assert expected(project)["targets"] == [{"model": "openai/judge", "host": host, "key": "OPENAI_API_KEY"}]
    told = " ".join(call("run", "--config", project.config, "--dry-run").stdout.split())
    assert f"calls of openai/judge go to {host} with the key in OPENAI_API_KEY" in told
    project.change(llm={"models": {"openai/judge": {"api_key_env": "MY_KEY"}}, "api_base": None})
    assert expected(project)["targets"] == [{"model": "openai/judge", "host": "api.openai.com", "key": "MY_KEY"}]
    assert not server.count


def test_a_sweep_and_a_diagnosis_call_the_servers_of_the_run_that_made_the_set(
    server: LLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `llm` of its own, a sweep sent the passages and the user's key to the provider's own address."""
    project = paid(tmp_path, server)
    call("run", "--config", project.config, "--quiet")
    reranker = {"type": "pointwise", "model": "openai/pointer"}
    sweep = {
        "name": "s",
        "workspace": "runs",
        "golden": str(project.run),
        "axes": {"mode": ["lexical"], "k": [5], "reranker": ["none", reranker]},
        "prices": {"openai/pointer": {"input": 1.0, "output": 2.0}},
        "cutoffs": [3],
    }
    file = project.folder / "sweep.yaml"
    file.write_text(json.dumps(sweep))
    host = server.url.split("/")[2]
    found = json.loads(call("sweep", "--config", file, "--dry-run", "--json").stdout)
    assert found["targets"] == [{"model": "openai/pointer", "host": host, "key": "OPENAI_API_KEY"}]
    assert f"go to {host}" in " ".join(call("sweep", "--config", file, "--dry-run").stdout.split())
    before = server.count
    call("sweep", "--config", file, "--quiet")
    assert server.count > before, "the sweep's reranker asked the server of the run"
    sweep["llm"] = {"concurrency": 2, "models": {"openai/pointer": {"api_key_env": "MINE"}}}
    file.write_text(json.dumps(sweep))
    found = json.loads(call("sweep", "--config", file, "--dry-run", "--json", "--set", "name=t").stdout)
    assert {target["host"] for target in found["targets"]} <= {host}
    assert DiagnoseRequest(kind="noise", golden=project.run).llm.base_of("openai/any") == server.url
