"""Runs with a language model as the judge, against a real server on this machine that misbehaves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.cli import call
from support.llm_server import KEY, LLMServer, no_truth
from support.project import Project, make_project, questions

pytestmark = pytest.mark.usefixtures("provider_key")

PRICES = {"openai/judge": {"input": 1.0, "output": 2.0}}


def provider_project(folder: Path, url: str, **sections: object) -> Project:
    project = make_project(folder, queries=3, corpus=24, **sections)
    project.change(
        judge={"judge": {"type": "litellm", "model": "openai/judge"}},
        llm={"api_base": url, "prices": PRICES, "backoff_s": 0.02, "concurrency": 8},
        retrieve={"retrievers": [{"type": "bm25", "k": 10}, {"type": "dense", "k": 10}]},
    )
    return project


def rows(project: Project, artifact: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (project.run / f"{artifact}.jsonl").read_text().splitlines()]


def expected_grades(project: Project) -> dict[tuple[str, str], int]:
    texts = {question["_id"]: question["text"] for question in questions(3)}
    return {
        (row["qid"], row["doc_id"]): no_truth(texts[row["qid"]], f"{row['title']}\n{row['text']}")
        for row in rows(project, "merge")
    }


def graded(project: Project) -> dict[tuple[str, str], int | None]:
    return {(row["qid"], row["doc_id"]): row["grade"] for row in rows(project, "judge")}


def test_grades_are_the_servers_and_nothing_is_asked_twice(server: LLMServer, tmp_path: Path) -> None:
    project = provider_project(tmp_path, server.url)
    out = call("run", "--config", project.config).stdout
    assert graded(project) == expected_grades(project)
    asked = server.count
    cost = {name: lock["cost"] for name, lock in project.manifest()["stages"].items()}
    assert sum(stage["calls"] for stage in cost.values()) == asked
    assert cost["judge"]["usd"] == pytest.approx(
        (cost["judge"]["prompt_tokens"] + 2 * cost["judge"]["completion_tokens"]) / 1e6
    )
    assert re.search(r"\(\$\d+\.\d+, \d+ calls, \d+\.\d s\)", out)
    before = project.artifacts()
    call("run", "--config", project.config, "--force", "--quiet")
    assert server.count == asked, "a cached answer was paid for again"
    assert project.artifacts() == before
    call("audit", project.run)


def test_no_identifier_in_any_prompt_and_no_key_in_any_file(server: LLMServer, tmp_path: Path) -> None:
    project = provider_project(tmp_path, server.url)
    call("run", "--config", project.config, "--quiet")
    sent = json.dumps([body["messages"] for body in server.requests])
    assert not [doc_id for _, doc_id in graded(project) if doc_id in sent]
    holders = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert holders == []


def test_what_failed_is_told_and_healed_by_the_next_run(tmp_path: Path) -> None:
    calm = provider_project(tmp_path / "calm", "set below")
    project = provider_project(tmp_path / "own", "set below")
    sick = True
    with LLMServer(
        fault_for=lambda number, body: "grade 7" if sick and "pearl 15" in json.dumps(body) else None
    ) as server:
        for each in (calm, project):
            each.change(llm={"api_base": server.url})
        errors = call("run", "--config", project.config, code=7).stderr
        assert "failed; run again to retry (q0" in errors
        failed = [row for row in rows(project, "judge") if row["grade"] is None]
        assert failed
        assert all("7" in str(row["raw"]) and row["error"] for row in failed)
        pruned = {(row["qid"], row["doc_id"]): row for row in rows(project, "prune")}
        assert all(not pruned[row["qid"], row["doc_id"]]["kept"] for row in failed)
        out = call("status", project.run).stdout
        assert "failed; the next run retries them" in out
        sick = False
        paid = server.count
        call("run", "--config", project.config, "--quiet")
        assert graded(project) == expected_grades(project)
        judged = sum("Passage A" not in json.dumps(body) for body in server.requests[paid:])
        assert judged == len(failed)
        call("run", "--config", calm.config, "--quiet")
        assert project.artifacts() == calm.artifacts()


def test_the_budget_stops_in_good_order_and_a_higher_one_goes_on(server: LLMServer, tmp_path: Path) -> None:
    project = provider_project(tmp_path / "own", server.url, budget={"max_calls": 17})
    errors = call("run", "--config", project.config, "--quiet", code=7).stderr
    assert "budget.max_calls" in errors
    assert server.count <= 17
    project.change(budget={"max_calls": 5000})
    call("run", "--config", project.config, "--quiet")
    together = server.count
    calm = provider_project(tmp_path / "calm", server.url)
    call("run", "--config", calm.config, "--quiet")
    assert server.count - together == together, "something was paid for twice"
    assert project.artifacts() == calm.artifacts()


def test_a_refused_key_stops_at_once_without_showing_it(tmp_path: Path) -> None:
    with LLMServer(fault_for=lambda number, body: "401" if number > 5 else None) as server:
        project = provider_project(tmp_path, server.url)
        errors = call("run", "--config", project.config, "--quiet", code=3).stderr
    assert "OPENAI_API_KEY" in errors
    assert KEY not in errors
    assert len(errors.strip().splitlines()) == 1


def test_the_dry_run_asks_nobody_and_estimates(server: LLMServer, tmp_path: Path) -> None:
    project = provider_project(tmp_path, server.url)
    estimate = json.loads(call("run", "--config", project.config, "--dry-run", "--json").stdout)
    assert server.count == 0
    assert 0 < estimate["usd"] < 5
    call("run", "--config", project.config, "--quiet")
    spent = sum(lock["cost"]["usd"] for lock in project.manifest()["stages"].values())
    assert spent <= estimate["usd"], "the estimate is an upper bound"


def test_a_changed_prompt_asks_again_and_says_which(server: LLMServer, tmp_path: Path) -> None:
    import raggs.prompts

    folder = Path(raggs.prompts.__file__).parent
    project = provider_project(tmp_path, server.url)
    own = project.folder / "mine.md"
    own.write_text((folder / "grade@1.en.md").read_text(encoding="utf-8"), encoding="utf-8")
    project.change(judge={"prompt": "mine.md"})
    call("run", "--config", project.config, "--quiet")
    asked = server.count
    own.write_text(own.read_text(encoding="utf-8").replace("# system", "# system\nBe strict.", 1), encoding="utf-8")
    ran = json.loads(call("run", "--config", project.config, "--json", "--yes").stdout)["ran"]
    assert set(ran) == {"judge"}, "the grades did not change, so nothing after judge may run"
    assert any("judge.prompt changed" in reason for reason in ran["judge"])
    assert server.count - asked == len(graded(project))


def test_a_changed_rewrite_prompt_embeds_again(server: LLMServer, tmp_path: Path) -> None:
    import raggs.prompts

    folder = Path(raggs.prompts.__file__).parent
    project = provider_project(tmp_path, server.url)
    own = project.folder / "rewrite.md"
    own.write_text((folder / "rewrite@1.en.md").read_text(encoding="utf-8"), encoding="utf-8")
    project.change(embed={"rewrite": {"type": "llm", "model": "openai/judge", "prompt": "rewrite.md"}})
    call("run", "--config", project.config, "--quiet")
    assert project.manifest()["stages"]["embed"]["cost"]["calls"] == 3
    own.write_text(own.read_text(encoding="utf-8").replace("# system", "# system\nBe brief.", 1), encoding="utf-8")
    ran = json.loads(call("run", "--config", project.config, "--json").stdout)["ran"]
    assert any("rewriter.prompt changed" in reason for reason in ran["embed"])


def test_the_dry_run_estimates_a_prompt_that_is_not_in_english(server: LLMServer, tmp_path: Path) -> None:
    import raggs.prompts

    folder = Path(raggs.prompts.__file__).parent
    project = provider_project(tmp_path, server.url)
    own = project.folder / "mine.fr.md"
    own.write_text((folder / "grade@1.fr.md").read_text(encoding="utf-8"), encoding="utf-8")
    project.change(judge={"prompt": "mine.fr.md"})
    assert json.loads(call("run", "--config", project.config, "--dry-run", "--json").stdout)["usd"] > 0
