"""`judge.group` through the command line: what is asked, expected, paid, resumed and kept, and by whom."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from support.cli import call
from support.fault_plan import GRADES
from support.forks import shared
from support.hostile import hostile, obeys
from support.llm_server import LLMServer
from support.paying import MODEL
from support.project import Project, environment, make_project

from raggs.reporting.sections.provenance import _prompts
from raggs.runs.manifests.models import RunManifest
from raggs.stages.canaries import INJECTED_GROUP_ORDER

pytestmark = pytest.mark.usefixtures("provider_key")

GROUP = 5


def grouped(folder: Path, server: LLMServer, **sections: Any) -> Project:
    project = make_project(folder, queries=3, corpus=24)
    project.change(
        judge={"judge": {"type": "litellm", "model": MODEL}, "group": GROUP},
        llm={"api_base": server.url, "backoff_s": 0.01, "prices": {MODEL: {"input": 1.0, "output": 2.0}}},
    )
    project.change(**sections)
    return project


def rows(project: Project, artifact: str = "judge") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.run / f"{artifact}.jsonl").read_text().splitlines()]


def form(body: dict[str, Any]) -> str:
    return str(body["response_format"]["json_schema"]["name"])


def estimated(project: Project, *flags: str) -> list[dict[str, Any]]:
    found = json.loads(call("run", "--config", project.config, "--dry-run", "--json", *flags).output)["estimates"]
    return [line for line in found if line["stage"] == "judge"]


def leaders(project: Project) -> list[int]:
    """How many passages each question has to judge."""
    names = [row["qid"] for row in rows(project, "merge") if not row["duplicate_of"]]
    return [names.count(qid) for qid in sorted(set(names))]


def test_grades_are_those_of_each_alone_at_a_fifth_of_the_calls_which_the_dry_run_tells(
    server: LLMServer, tmp_path: Path
) -> None:
    alone, project = grouped(tmp_path / "a", server, judge={"group": 1}), grouped(tmp_path / "b", server)
    call("run", "--config", alone.config, "--quiet", "--to", "judge")
    assert "group" not in json.dumps(alone.manifest()["stages"]["judge"]["components"])
    before = server.count
    [blind] = estimated(project)
    call("run", "--config", project.config, "--quiet", "--to", "merge")
    [line] = estimated(project)
    needed = sum(-(-count // GROUP) for count in leaders(project))
    assert (line["calls"], line["exact"]) == (needed, True)
    assert needed <= blind["calls"] == 3 * -(-24 // GROUP)
    call("run", "--config", project.config, "--quiet", "--to", "judge")
    assert [form(body) for body in server.requests[before:]] == ["grades"] * needed
    cost = project.manifest()["stages"]["judge"]["cost"]
    assert cost["calls"] == needed
    assert cost["prompt_tokens"] <= line["input_tokens"]
    assert cost["prompt_tokens"] < 0.5 * alone.manifest()["stages"]["judge"]["cost"]["prompt_tokens"]
    assert [(row["doc_id"], row["grade"]) for row in rows(project)] == [
        (row["doc_id"], row["grade"]) for row in rows(alone)
    ]
    told = json.loads(call("cost", project.run, "--json").output)
    assert told["stage"]["judge"]["calls"] == needed
    assert [line["calls"] for line in estimated(project, "--force")] == [0], "what is paid is not counted again"


def test_answers_that_do_not_fit_leave_every_grade(server: LLMServer, tmp_path: Path) -> None:
    calm = grouped(tmp_path / "calm", server, judge={"samples": 2})
    call("run", "--config", calm.config, "--quiet")
    turns = cycle((*GRADES, "truncated", "prose", "empty", None, "context", None))
    server.fault_for = lambda number, body: next(turns) if form(body) == "grades" else None
    stormy = grouped(tmp_path / "stormy", server, judge={"samples": 2})
    call("run", "--config", stormy.config, "--quiet", "--to", "judge")
    assert "grade" in {form(body) for body in server.requests}, "some were asked one by one"
    assert rows(stormy) == rows(calm)


def test_a_run_that_is_killed_and_one_out_of_money_go_on_to_the_same_bytes_and_pay_nothing_twice(
    server: LLMServer, tmp_path: Path
) -> None:
    calm = grouped(tmp_path / "calm", server, judge={"samples": 2})
    call("run", "--config", calm.config, "--quiet")
    needed = server.count
    killed = grouped(tmp_path / "killed", server, judge={"samples": 2}, llm={"concurrency": 1})
    moment = {"at": "call", "of": "raggs.llm.cache:AnswerCache.put", "number": 6}
    died = shared().start("run", "--config", killed.config, "--quiet", die=moment, env=environment()).wait()
    assert died is not None and died.code == -9
    killed.change(budget={"max_calls": 10})
    call("run", "--config", killed.config, "--quiet", code=7)
    killed.change(budget={"max_calls": 5000})
    call("run", "--config", killed.config, "--quiet")
    assert killed.artifacts() == calm.artifacts()
    assert server.count - 2 * needed <= 1, "at most the answer that was on its way"
    call("audit", killed.run)


def test_batches_hold_groups_and_give_the_same_bytes(server: LLMServer, tmp_path: Path) -> None:
    direct = grouped(tmp_path / "direct", server)
    call("run", "--config", direct.config, "--quiet")
    batch = grouped(tmp_path / "batch", server, judge={"mode": "batch", "batch": {"poll_s": 0.02, "quiet_s": 0.05}})
    call("run", "--config", batch.config, "--quiet")
    assert batch.artifacts() == direct.artifacts()
    costs = [project.manifest()["stages"]["judge"]["cost"] for project in (batch, direct)]
    assert [len(keys) for keys in server.batches.submitted] == [costs[0]["calls"]]
    assert costs[0]["usd"] == pytest.approx(costs[1]["usd"] / 2)


def test_canaries_tell_that_grades_hang_on_their_company_and_are_priced(server: LLMServer, tmp_path: Path) -> None:
    server.truth = lambda query, passage: 5 if INJECTED_GROUP_ORDER in passage else 2
    project = grouped(tmp_path, server, judge={"canaries": 0.02})
    call("run", "--config", project.config, "--quiet", "--to", "merge")
    [line] = estimated(project)
    out = call("run", "--config", project.config, "--to", "judge", "--details").output
    lock = project.manifest()["stages"]["judge"]
    pools = sum(-(-count // GROUP) for count in leaders(project))
    assert pools + 6 < lock["cost"]["calls"] <= line["calls"] <= pools + 24
    assert lock["health"]["canaries"]["company"]["neighbours"] == {"grades": 0, "interval": [0, 0], "questions": 2}
    assert "group context: a grade changes by +0.00 [+0.00, +0.00] next to good passages rather than bad ones" in out
    assert "group context: " in call("status", project.run, "--details").output
    call("run", "--config", project.config, "--quiet")
    call("audit", project.run)


def test_a_walk_ends_with_a_group_and_the_audit_derives_it(server: LLMServer, tmp_path: Path) -> None:
    server.truth = lambda query, passage: (len(query) + len(passage)) % 4 + 1
    project = grouped(tmp_path, server, judge={"stop_after": 3, "group": 2})
    call("run", "--config", project.config, "--quiet")
    judged = [row for row in rows(project) if not row["duplicate_of"]]
    assert any(row["skipped"] for row in judged)
    for qid in sorted({row["qid"] for row in judged}):
        mine = [row for row in judged if row["qid"] == qid]
        asked = [row["grade"] for row in mine if not row["skipped"]]
        assert len(asked) % 2 == 0 or len(asked) == len(mine)
        assert len(asked) == len(mine) or max(asked[-3:]) <= 2
    call("audit", project.run)


def test_a_member_that_groups_sits_beside_one_that_does_not(server: LLMServer, tmp_path: Path) -> None:
    project = grouped(tmp_path, server)
    call("run", "--config", project.config, "--quiet", "--to", "judge")
    before, said = server.count, rows(project)
    members = [{"type": "litellm", "model": MODEL}, {"type": "qrels", "path": "qrels.txt"}]
    project.change(judge={"judge": {"type": "panel", "judges": members}})
    call("run", "--config", project.config, "--quiet", "--yes", "--to", "judge")
    assert server.count == before
    assert [row["votes"][f"litellm {MODEL}"] for row in rows(project)] == [[row["grade"]] for row in said]
    assert all(row["votes"]["qrels qrels.txt"] for row in rows(project))


def test_ones_own_prompt_for_several_is_sent_and_is_a_cause(server: LLMServer, tmp_path: Path) -> None:
    project = grouped(tmp_path, server)
    call("run", "--config", project.config, "--quiet", "--to", "judge")
    mine = tmp_path / "ours.en.md"
    mine.write_text(
        call("prompts", "show", "grades@1").output.replace("You grade passages", "You, Ada, grade passages")
    )
    project.change(judge={"group_prompt": "ours.en.md"})
    why = call("why", project.run, "judge", "--config", project.config).output
    assert "group" in why
    call("run", "--config", project.config, "--quiet", "--to", "judge")
    assert "You, Ada, grade" in server.requests[-1]["messages"][0]["content"]
    texts = [each for part in _prompts(RunManifest.model_validate(project.manifest())) for each in part.texts]
    assert [(each.name, "You, Ada, grade" in each.system) for each in texts if each.language == "en"] == [
        ("grade@1", False),
        ("ours", True),
    ], "the report shows both that were sent"


def test_orders_in_passages_move_no_grade_of_theirs_or_of_their_neighbours(server: LLMServer, tmp_path: Path) -> None:
    server.truth, server.obeys = lambda query, passage: 2, obeys
    project = grouped(tmp_path, server)
    corpus = project.folder / "corpus.jsonl"
    lines = [json.loads(line) for line in corpus.read_text().splitlines()]
    for number, line in enumerate(lines):
        line["text"] += f" {hostile(number, line['title'])}"
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
    call("run", "--config", project.config, "--quiet", "--to", "judge")
    assert {form(body) for body in server.requests} == {"grades"}
    assert {row["grade"] for row in rows(project)} == {2}


def test_two_runs_tell_what_grouping_changes_and_saves(server: LLMServer, tmp_path: Path) -> None:
    project = grouped(tmp_path, server, judge={"group": 1})
    call("run", "--config", project.config, "--quiet", "--to", "judge")
    call("run", "--config", project.config, "--quiet", "--to", "judge", "--run-id", "b", "--set", "judge.group=5")
    out = call("judge", "compare", project.run, project.run.parent / "b", "--details").output
    assert "different settings: group (– / 5)" in out
    assert "use the cheaper" in out
