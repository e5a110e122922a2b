"""`judge.mode: batch` from the command line: killed while it waits, refused, and with the bytes of direct calls."""

from __future__ import annotations

import json
import random

import pytest
from support.fault_plan import FaultPlan
from support.llm_server import LLMServer

BATCH = {"mode": "batch", "batch": {"poll_s": 0.05}}


@pytest.fixture
def project(b, request):
    """A project by batches (or with other settings of the judge) at a server; each test's in a folder of its own."""

    def made(server, name, judge=BATCH, **sections):
        return b.project(f"{request.node.name}/{name}", server.url, 2, judge=judge, **sections)

    return made


def graded(project):
    return project.manifest()["stages"]["judge"]


def test_killed_while_waiting_it_resumes_and_nothing_is_submitted_twice(b, project):
    with LLMServer() as server:
        direct = project(server, "direct", judge={})
        b.run(direct, 0)
        own = project(server, "batch")
        server.batches.polls = 0
        for _ in range(2):
            child = b.forks.start("run", "--config", own.config, "--quiet")
            polls = server.batches.seen.count("GET /batches/ID")
            looked = lambda polls=polls: server.batches.seen.count("GET /batches/ID") > polls + 1  # noqa: E731
            assert child.wait(looked) is None
            assert child.kill().code == -9
        assert len(server.batches.submitted) == 1
        server.batches.polls = 1
        b.run(own, 0)
        assert len(server.batches.submitted) == 1, "the batch was submitted again"
        assert own.artifacts() == direct.artifacts()
        cost, calls = graded(own)["cost"], graded(direct)["cost"]
        assert cost["calls"] == calls["calls"] == len(server.batches.submitted[0])
        assert cost["usd"] == pytest.approx(calls["usd"] / 2)


@pytest.mark.nightly
def test_killed_at_any_moment_no_question_is_submitted_twice(b, project):
    draw = random.Random(3)
    with LLMServer() as server:
        server.batches.polls = 3
        direct, own = project(server, "direct", judge={}), project(server, "batch")
        b.run(direct, 0)
        for _ in range(6):
            moment = {"at": "stage", "name": "judge", "after": draw.uniform(0.2, 1)}
            b.forks.raggs("run", "--config", own.config, "--quiet", die=moment)
        b.run(own, 0)
        assert own.artifacts() == direct.artifacts()
        keys = [key for batch in server.batches.submitted for key in batch]
        assert len(keys) == len(set(keys))


def test_sick_lines_change_no_grade(b, project):
    plan = FaultPlan(seed=4, share=0.5)
    with LLMServer() as server:
        direct, own = project(server, "direct", judge={}), project(server, "batch")
        b.run(direct, 0)
        server.fault_for = plan
        server.batches.endings = ["expired"]
        b.run(own, None, "--to", "judge")
        assert sum(plan.given.values()) > 10
        plan.sick = False
        b.run(own, 0)
        assert own.artifacts() == direct.artifacts()


def test_a_refused_key_while_waiting_stops_and_the_next_run_goes_on(b, project):
    with LLMServer() as server:
        server.batches.wire_faults["GET /batches/ID"] = ["401"]
        own = project(server, "batch")
        ended = b.run(own, 3)
        assert "OPENAI_API_KEY" in ended.err
        b.run(own, 0)
        assert len(server.batches.submitted) == 1


def test_the_dry_run_shows_the_price_of_batches(b, project):
    with LLMServer() as server:
        usd = []
        for judge in ({}, BATCH):
            own = project(server, "p", judge=judge, rank={"max_calls": 0})
            usd.append(json.loads(b.forks.raggs("run", "--config", own.config, "--dry-run", "--json").out)["usd"])
        assert server.batches.seen == []
    assert usd[1] == pytest.approx(usd[0] / 2)


PANEL = {"type": "panel", "judges": [{"type": "litellm", "model": f"openai/{name}"} for name in ("first", "second")]}
PRICES = {"prices": {f"openai/{name}": {"input": 1.0, "output": 2.0} for name in ("first", "second", "judge")}}


def same_at_half_the_price(b, project, server, judge):
    """Two runs, of which the one by batches is returned."""
    direct = project(server, "direct", judge=judge, llm=PRICES, rank={"max_calls": 2})
    own = project(server, "batch", judge={**judge, **BATCH}, llm=PRICES, rank={"max_calls": 2})
    b.run(direct, 0)
    b.run(own, 0)
    assert own.artifacts() == direct.artifacts()
    assert graded(own)["cost"]["calls"] == graded(direct)["cost"]["calls"]
    assert graded(own)["cost"]["usd"] == pytest.approx(graded(direct)["cost"]["usd"] / 2)
    return own


@pytest.mark.nightly
def test_each_member_of_a_panel_has_a_batch_with_all_samples(b, project):
    with LLMServer() as server:
        own = same_at_half_the_price(b, project, server, {"judge": PANEL, "samples": 2})
        sizes = [len(keys) for keys in server.batches.submitted]
        assert sizes == [graded(own)["cost"]["calls"] // 2] * 2
        told = json.loads(b.forks.raggs("cost", own.run, "--json").out)
        cost = graded(own)["cost"]
        assert told["stage"]["judge"]["calls"] == cost["calls"]
        assert told["stage"]["judge"]["usd"] == pytest.approx(cost["usd"])


def test_a_cascade_sends_the_good_judge_one_batch_after_that_of_the_cheap_one(b, project):
    with LLMServer() as server:
        own = same_at_half_the_price(b, project, server, {"judge": {**PANEL, "type": "cascade", "audit": 0.2}})
        cheap, good = map(len, server.batches.submitted)
        records = [json.loads(line) for line in (own.run / "judge.jsonl").read_text().splitlines()]
        leaders = [row for row in records if row["duplicate_of"] is None]
        assert cheap == len(leaders) > good == sum(row["judge"] == "litellm openai/second" for row in leaders) > 0


@pytest.mark.nightly
def test_a_walk_takes_one_batch_a_step_over_all_queries(b, project):
    with LLMServer(truth=lambda query, passage: (len(query) + len(passage)) % 4 + 1) as server:
        own = same_at_half_the_price(b, project, server, {"stop_after": 4})
        records = [json.loads(line) for line in (own.run / "judge.jsonl").read_text().splitlines()]
        pools = [[row for row in records if row["qid"] == qid] for qid in sorted({row["qid"] for row in records})]
        assert any(row["skipped"] for row in records)
        assert len(server.batches.submitted) == max(steps(pool, 4) for pool in pools)


def steps(pool, limit):
    """How often the walk down a pool waits for answers."""
    grades = [row["grade"] for row in pool if row["duplicate_of"] is None]
    low = done = count = 0
    while low < limit and done < len(grades):
        for grade in grades[done : done + limit - low]:
            done, low = done + 1, low + 1 if grade <= 2 else 0
        count += 1
    return count


def test_the_dry_run_names_each_model_that_is_asked_by_batches(b, project):
    with LLMServer() as server:
        own = project(server, "p", judge={"judge": PANEL, **BATCH}, llm=PRICES)
        lines = b.forks.raggs("run", "--config", own.config, "--dry-run").out
    for name in ("first", "second"):
        assert lines.count(f"openai/{name}, by batches") == 1
        assert lines.count(f"openai/{name}") == 3, "orders are asked directly; the last line says where calls go"


def test_progress_tells_the_batch_and_switching_to_batches_changes_nothing(b, project):
    with LLMServer() as server:
        own = project(server, "own")
        b.run(own, 0)
        own.change(judge={"mode": "direct"})
        ended = b.forks.raggs("run", "--config", own.config)
        assert "unchanged: embed, retrieve, merge, judge, prune, rank" in ended.err
