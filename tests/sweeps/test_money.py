"""Money in a sweep: a budget that ends in its midst, holes that are judged for money, and sweeps in a running loop."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from support.llm_server import KEY, LLMServer
from support.paidsweeps import booked, calls, paid_sweep, usd
from support.paying import paying
from support.project import begin, environment
from support.stopping import booked as booked_calls
from support.sweeping import SweepProject, make_sweep

from raggs.app.audit import audit
from raggs.app.run import run
from raggs.app.sweep import choose_again, judge_holes, load_sweep, plan_sweep, sweep
from raggs.base.errors import PrerequisiteError
from raggs.sweeps.judgments import read_holes

pytestmark = pytest.mark.usefixtures("provider_key")


def rows(project: SweepProject) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads((project.out / "sweep.json").read_text())["systems"]}


def test_a_budget_that_ends_in_its_midst_leaves_what_is_finished(server: LLMServer, tmp_path: Path) -> None:
    with LLMServer() as other:
        calm = paid_sweep(tmp_path / "calm", other)
        calm.call("--quiet")
    project = paid_sweep(tmp_path / "own", server)
    cap = usd(calm) / 2
    errors = project.call("--quiet", "--max-usd", f"{cap:.6f}", code=7).stderr
    assert usd(project) <= cap
    lost = [name for name, row in rows(project).items() if row["failed"]]
    assert 0 < len(lost) < len(rows(project))
    assert all(name in errors for name in lost)
    assert f"next: raggs sweep --config {project.config} --max-usd USD" in errors
    whole = rows(calm)
    assert all(row["scores"] == whole[name]["scores"] for name, row in rows(project).items() if not row["failed"])
    asked = server.count
    project.call("--quiet", "--max-usd", f"{cap:.6f}", code=7)
    assert server.count - asked <= 1, "the money is spent"
    project.call("--quiet")
    assert project.files() == calm.files()
    assert not server.paid_twice
    assert calls(project) == server.count == other.count


@pytest.fixture
def judged(server: LLMServer, tmp_path: Path) -> SweepProject:
    """A sweep over a golden run whose judge is paid."""
    golden = paying(tmp_path / "golden", server)
    golden.change(merge={"depth": 6}, judge={"stop_after": None})
    run(golden.config)
    project = make_sweep(tmp_path, count=3, size=24, golden="golden/runs/demo", workspace="golden/runs")
    project.call("--quiet")
    server.requests.clear()
    server.paid_twice.clear()
    return project


def in_order(project: SweepProject) -> list[tuple[str, str]]:
    return [(record.qid, record.doc_id) for record in read_holes(project.out) if record.grade is not None]


def test_holes_are_judged_as_far_as_the_money_goes_and_then_on(
    server: LLMServer, judged: SweepProject, tmp_path: Path
) -> None:
    golden = tmp_path / "golden" / "runs" / "demo"
    before = {path: path.read_bytes() for path in golden.iterdir() if path.is_file()}
    errors = judged.call("--judge-holes", "--max-usd", "0.004", code=7).stderr
    assert "the budget is used up" in errors
    assert "next: raggs sweep" in errors and "--judge-holes" in errors
    some = in_order(judged)
    assert some
    assert usd(judged) <= 0.004
    assert server.count == calls(judged)
    judged.call("--judge-holes", "--max-usd", "2")
    every = in_order(judged)
    assert every[: len(some)] == some
    assert len(every) == len(set(every)) > len(some)
    assert server.count == calls(judged) and not server.paid_twice
    assert not [hole for row in rows(judged).values() for hole in row["holes"].values() if hole]
    assert {path: path.read_bytes() for path in before} == before
    assert audit(golden).ok and audit(judged.out).ok
    asked = server.count
    assert "0 unjudged passages" in judged.call("--judge-holes", "--max-usd", "2").stderr
    assert server.count == asked


@pytest.mark.nightly
def test_a_kill_while_holes_are_judged_costs_nothing(server: LLMServer, judged: SweepProject, tmp_path: Path) -> None:
    answered = 9
    asked: list[object] = []
    server.fault_for = lambda number, body: asked.append(body) or (None if len(asked) <= answered else "slow:600")
    words = ("sweep", "--config", judged.config, "--judge-holes", "--quiet")
    before = booked_calls(tmp_path)
    process = begin(*words, env=environment(OPENAI_API_KEY=KEY))
    process.wait(until=lambda: booked_calls(tmp_path) >= before + answered)
    time.sleep(0.3)  # those that wait have reached the server
    process.kill()
    waiting, server.fault_for = len(asked) - answered, None
    judged.call("--judge-holes", "--quiet")
    assert not server.paid_twice
    assert len(in_order(judged)) == len(set(in_order(judged))) == server.count - waiting
    assert audit(tmp_path / "golden" / "runs" / "demo").ok and audit(judged.out).ok


def test_a_sweep_works_in_a_loop_that_runs(server: LLMServer, judged: SweepProject, tmp_path: Path) -> None:
    project = paid_sweep(tmp_path / "own", server, axes={"k": [4]})

    async def notebook() -> None:
        config = load_sweep(project.config)
        assert plan_sweep(config).paid
        result = sweep(config)
        assert not [row.failed for row in result.report.systems if row.failed]
        assert plan_sweep(config).paid == ()
        assert choose_again(config).report.choice == result.report.choice
        assert sweep(config).unchanged
        assert judge_holes(load_sweep(judged.config)).graded

    asyncio.run(notebook())
    assert calls(project) == sum(line["attempts"] for line in booked(project))
    assert not server.paid_twice


def test_who_may_be_asked_is_settled_in_a_loop_too(server: LLMServer, tmp_path: Path) -> None:
    project = paid_sweep(tmp_path, server, llm={"api_base": "https://nobody.invalid/v1"})
    asked: list[object] = []

    async def notebook() -> None:
        with pytest.raises(PrerequisiteError, match=r"nobody\.invalid"):
            sweep(project.config, approve=lambda new: bool(asked.append(new)))

    asyncio.run(notebook())
    assert len(asked) == 1
    assert server.count == 0
