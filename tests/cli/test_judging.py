"""Depth, samples and panels through the command line: what is asked, told, kept, resumed and estimated."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.cli import call
from support.llm_server import LLMServer
from support.project import Project, make_project

from raggs.base.files import hash_file

pytestmark = pytest.mark.usefixtures("provider_key")

PRICES = {f"openai/{name}": {"input": 1.0, "output": 2.0} for name in ("first", "second")}
NOISY: dict[str, Any] = {"type": "qrels", "path": "qrels.txt", "beta": 3.0, "grade_noise": 0.3}


def rows(project: Project, artifact: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.run / f"{artifact}.jsonl").read_text().splitlines()]


def paid(folder: Path, url: str, **sections: object) -> Project:
    """A project with one model as its judge, unless `sections` names another."""
    project = make_project(folder, queries=3, corpus=24)
    llm = {"api_base": url, "prices": PRICES, "backoff_s": 0.02, "concurrency": 8}
    project.change(judge={"judge": {"type": "litellm", "model": "openai/first"}}, llm=llm)
    project.change(**sections)
    return project


def panel(*models: str) -> dict[str, Any]:
    return {"type": "panel", "judges": [{"type": "litellm", "model": f"openai/{model}"} for model in models]}


def test_a_shallow_run_says_what_it_saved_and_ranks_and_exports_only_what_was_judged(tmp_path: Path) -> None:
    project = make_project(tmp_path, judge={"stop_after": 2})
    out = call("run", "--config", project.config, "--details").output
    judged = rows(project, "judge")
    skipped = {(row["qid"], row["doc_id"]) for row in judged if row["skipped"]}
    assert 0 < len(skipped) < len(judged)
    lock = project.manifest()["stages"]["judge"]
    assert lock["failed"] == 0
    assert lock["health"]["depth"]["saved"] == len(skipped)
    assert f"depth: {len(skipped)} of {len(judged)} judgments saved" in out
    for row in rows(project, "prune"):
        if (row["qid"], row["doc_id"]) in skipped:
            assert (row["grade"], row["kept"], row["why"]) == (
                None,
                False,
                "not judged, after 2 grades of 2 or less in a row",
            )
    assert not skipped & {(row["qid"], row["doc_id"]) for row in rows(project, "rank")}
    call("audit", project.run)
    call("export", project.run, "--format", "trec", "--out", tmp_path / "out")
    exported = [line.split() for line in (tmp_path / "out" / "qrels.txt").read_text().splitlines()]
    assert {(qid, doc_id) for qid, _, doc_id, _ in exported} == {(r["qid"], r["doc_id"]) for r in judged} - skipped
    meta = json.loads((tmp_path / "out" / "qrels.txt.meta.json").read_text())
    assert meta["provenance"]["depth"]["saved"] == len(skipped)


def test_another_depth_judges_again_and_an_unlimited_one_gives_the_whole_pool(tmp_path: Path) -> None:
    shallow, whole = make_project(tmp_path / "a", judge={"stop_after": 2}), make_project(tmp_path / "b")
    for project in (shallow, whole):
        call("run", "--config", project.config, "--quiet")
    shallow.change(judge={"stop_after": None})
    done = json.loads(call("run", "--config", shallow.config, "--json").output)["ran"]
    assert done["judge"] == ["config.stop_after changed (2 -> None)"]
    assert shallow.artifacts() == whole.artifacts()


def test_a_walk_stopped_by_the_budget_or_by_failures_goes_on_to_the_bytes_of_a_calm_one(tmp_path: Path) -> None:
    sick = True
    with LLMServer(
        fault_for=lambda number, body: "grade 7" if sick and "pearl 15" in json.dumps(body) else None
    ) as server:
        stormy = paid(tmp_path / "stormy", server.url, judge={"stop_after": 3}, budget={"max_calls": 10})
        calm = paid(tmp_path / "calm", server.url, judge={"stop_after": 3})
        assert "budget.max_calls" in call("run", "--config", stormy.config, "--quiet", code=7).output
        stormy.change(budget={"max_calls": 5000})
        call("run", "--config", stormy.config, "--quiet", code=7)
        failed = [row for row in rows(stormy, "judge") if row["error"]]
        assert failed
        assert all(row["grade"] is None and row["skipped"] is None for row in failed)
        sick = False
        call("run", "--config", stormy.config, "--quiet")
        before = server.count
        call("run", "--config", calm.config, "--quiet")
        needed = server.count - before
    assert stormy.artifacts() == calm.artifacts()
    judged = [row for row in rows(calm, "judge") if not row["skipped"] and not row["duplicate_of"]]
    assert len(judged) < len(rows(calm, "judge"))
    assert calm.manifest()["stages"]["judge"]["cost"]["calls"] == len(judged) < needed


def test_the_dry_run_of_a_walk_is_an_upper_bound(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server.url, judge={"stop_after": 2, "samples": 2})
    call("run", "--config", project.config, "--quiet", "--to", "merge")
    assert "≤ " in call("run", "--config", project.config, "--dry-run").output.split("judge ")[-1].splitlines()[0]
    [line] = [
        each
        for each in json.loads(call("run", "--config", project.config, "--dry-run", "--json").output)["estimates"]
        if each["stage"] == "judge"
    ]
    leaders = sum(row["duplicate_of"] is None for row in rows(project, "merge"))
    assert (line["calls"], line["exact"]) == (2 * leaders, False)
    call("run", "--config", project.config, "--quiet")
    assert 0 < project.manifest()["stages"]["judge"]["cost"]["calls"] < line["calls"]


def test_samples_are_asked_anew_kept_and_compared(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server.url, judge={"samples": 3}, rank={"max_calls": 0})
    out = call("run", "--config", project.config, "--details").output
    leaders = [row for row in rows(project, "judge") if not row["duplicate_of"]]
    assert server.count == 3 * len(leaders)
    assert all(len(set(row["grades"])) == 1 and len(row["grades"]) == 3 for row in leaders)
    assert "samples: 3 per passage, 100% unanimous; pairs of samples agree" in out
    assert project.manifest()["stages"]["judge"]["health"]["samples"]["passages"] == len(leaders)


def test_a_panel_of_models_asks_pays_and_estimates_each_of_them(server: LLMServer, tmp_path: Path) -> None:
    project = paid(tmp_path, server.url, judge={"judge": panel("first", "second")})
    estimates = json.loads(call("run", "--config", project.config, "--dry-run", "--json").output)["estimates"]
    assert [(line["stage"], line["who"]) for line in estimates] == [
        (stage, f"openai/{model}") for stage in ("judge", "rank") for model in ("first", "second")
    ]
    assert server.count == 0
    call("run", "--config", project.config, "--quiet")
    cost = {name: lock["cost"] for name, lock in project.manifest()["stages"].items()}
    asked = [body["model"] for body in server.requests]
    assert asked.count("first") == asked.count("second") == len(asked) / 2
    for stage in ("judge", "rank"):
        lines = [line for line in estimates if line["stage"] == stage]
        assert 0 < cost[stage]["calls"] <= sum(line["calls"] for line in lines)
        assert cost[stage]["usd"] <= sum(line["usd"] for line in lines)
    for row in rows(project, "judge"):
        votes = {name: grades[0] for name, grades in row["votes"].items()}
        assert list(votes) == ["litellm openai/first", "litellm openai/second"]
        assert row["grade"] == min(votes.values())
    call("audit", project.run)


def test_a_panel_tells_how_its_members_agree(tmp_path: Path) -> None:
    members = [{**NOISY, "seed": seed} for seed in (1, 2)] + [{**NOISY, "grade_noise": 0.0}]
    project = make_project(tmp_path, judge={"judge": {"type": "panel", "judges": members}})
    out = call("run", "--config", project.config, "--details").output
    told = project.manifest()["stages"]["judge"]["health"]["panel"]
    assert list(told["members"]) == ["qrels qrels.txt", "qrels qrels.txt #2", "qrels qrels.txt #3"]
    assert len(told["agreement"]) == 3
    assert all(0.4 < pair["exact"] < 0.9 and 0.7 < pair["kappa"] < 1 for pair in told["agreement"])
    assert "panel: qrels qrels.txt gave" in out
    assert "qrels qrels.txt and qrels qrels.txt #2 agree" in out
    assert "quadratic kappa" in out


def test_a_member_that_fails_leaves_the_others_to_decide_and_is_told(tmp_path: Path) -> None:
    with LLMServer(fault_for=lambda number, body: "refusal" if body["model"] == "second" else None) as server:
        project = paid(tmp_path, server.url, judge={"judge": panel("first", "second")})
        out = call("run", "--config", project.config, "--details").output
    assert all(row["grade"] and row["error"] for row in rows(project, "judge"))
    lock = project.manifest()["stages"]["judge"]
    assert (lock["failed"], lock["health"]["panel"]["members"]["litellm openai/second"]["given"]) == (0, 0)
    assert "warning: litellm openai/second gave no grade" in out


def test_the_key_and_the_price_of_every_member_are_looked_at_first(tmp_path: Path) -> None:
    project = make_project(
        tmp_path, judge={"judge": panel("gpt-5-mini", "no-such-model-of-mine")}, budget={"max_usd": 1}
    )
    out = call("doctor", "--config", project.config, code=3).output
    assert "no-such-model-of-mine" in out
    assert "no-such-model-of-mine" in call("run", "--config", project.config, "--quiet", code=5).output


def test_a_mistake_in_a_member_is_told_with_its_line_and_the_nearest_name(tmp_path: Path) -> None:
    project = make_project(tmp_path, judge={"judge": {"type": "panel", "judges": [{"type": "nuggets"}, NOISY]}})
    for wrong, told in (
        ({"type": "nugets"}, "did you mean 'nuggets'"),
        ({"type": "litellm", "modle": "openai/x"}, "did you mean 'model'"),
        ({"type": "panel", "judges": []}, "needs at least 2 entries, got 0"),
    ):
        project.change(judge={"judge": {"type": "panel", "judges": [wrong, NOISY]}})
        message = call("validate", "--config", project.config, code=5).output
        assert told in message
        assert "raggs.yaml:" in message


def test_a_copied_run_of_a_panel_is_up_to_date(tmp_path: Path) -> None:
    members = [{**NOISY, "seed": seed} for seed in (1, 2)]
    project = make_project(tmp_path / "one", judge={"judge": {"type": "panel", "judges": members}, "stop_after": 4})
    call("run", "--config", project.config, "--quiet")
    shutil.copytree(project.folder, tmp_path / "two")
    copied = Project(tmp_path / "two")
    assert json.loads(call("run", "--config", copied.config, "--json").output)["ran"] == {}
    call("run", "--config", copied.config, "--force", "--quiet")
    assert copied.artifacts() == project.artifacts()


def first_with(found: list[dict[str, Any]], key: str) -> int:
    return next(place for place, row in enumerate(found) if row[key] and not row["duplicate_of"])


def forge(project: Project, place: int, **fields: Any) -> str:
    """Change a judge record, mend the hash of its file, and give what the audit says."""
    path = project.run / "judge.jsonl"
    lines = path.read_text().splitlines()
    lines[place] = json.dumps({**json.loads(lines[place]), **fields}, separators=(",", ":"))
    path.write_text("".join(line + "\n" for line in lines))
    manifest = project.manifest()
    output = manifest["stages"]["judge"]["outputs"]["judge.jsonl"]
    output["sha256"], output["bytes"] = hash_file(path), path.stat().st_size
    (project.run / "manifest.json").write_text(json.dumps(manifest))
    return call("audit", project.run, "--details", code=5).output


LIES: list[tuple[str, dict[str, Any], str]] = [
    ("grade", {"grades": [5, 5, 5], "grade": 4}, "grade is '4', but '5' when recomputed"),
    ("grade", {"grade": None, "grades": [], "votes": {}, "judge": "", "skipped": "not judged"}, "grades is '()'"),
    ("skipped", {"skipped": None, "error": "busy"}, "skipped is 'None', but 'not judged, after 2"),
    ("skipped", {"skipped": None, "grade": 5, "grades": [5, 5, 5], "judge": "x"}, "grade is '5'"),
]


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(("kind", "lie", "told"), LIES)
def test_the_audit_derives_grades_and_the_end_of_each_walk(
    tmp_path: Path, kind: str, lie: dict[str, Any], told: str
) -> None:
    project = make_project(tmp_path, judge={"stop_after": 2, "samples": 3}, rank={"max_calls": 0})
    call("run", "--config", project.config, "--quiet")
    call("audit", project.run)
    place = first_with(rows(project, "judge"), kind)
    assert f"judge.jsonl:{place + 1}: {told}" in forge(project, place, **lie)
