"""Sweeps whose parts are paid: a server that fails changes no list, and nothing is paid for twice."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.llm_reranks import SPOILT
from support.llm_server import LLMServer
from support.paidsweeps import EMBEDDER, KEY, RERANKERS, REWRITER, booked, calls, paid_sweep, usd, usd_of
from support.sweeping import SweepProject
from typer.testing import CliRunner

from raggs.cli.app import app

TRANSPORT = ("429", "500", "503", "reset", "noise", "garbage", "cut body", "html")
CHAT = ("truncated", "empty", "refusal", "prose", "unknown label")
VECTORS = ("shorter answer", "wrong dimension", "nan", "infinity", "null", "same index")
MARK = re.compile(r"data-[0-9a-f]+")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer() as running:
        yield running


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Lists and scores where nothing fails."""
    with pytest.MonkeyPatch.context() as patch, LLMServer() as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        project = paid_sweep(tmp_path_factory.mktemp("healthy"), server)
        call(project)
        return project.files()


def call(project: SweepProject, *more: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["sweep", "--config", str(project.config), *more])
    assert result.exit_code == code, f"{result.stdout}\n{result.stderr}"
    return result.stdout, result.stderr


def planned(project: SweepProject) -> dict[str, float]:
    """Calls and USD of a dry run."""
    lines = json.loads(call(project, "--dry-run", "--json")[0])["paid"]
    return {name: sum(line[name] for line in lines) for name in ("calls", "usd")}


def rows(project: SweepProject) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads((project.out / "sweep.json").read_text())["systems"]}


def kind(body: dict[str, Any]) -> str:
    return str(body["model"]).rpartition("/")[2]


def test_what_the_server_counts_is_what_the_ledger_says_and_no_more_than_was_planned(
    server: LLMServer, tmp_path: Path
) -> None:
    project = paid_sweep(tmp_path, server)
    plan = planned(project)
    assert server.count == 0
    assert not project.out.exists()
    call(project, "--quiet")
    assert server.count == calls(project) <= plan["calls"]
    assert sum(map(usd_of, server.requests)) <= usd(project) <= plan["usd"]
    assert not server.paid_twice
    asked = server.count
    assert planned(project) == {"calls": 0, "usd": 0}
    assert "unchanged" in call(project)[0]
    assert server.count == asked


def test_a_dry_run_asks_nobody_though_the_answers_are_gone(server: LLMServer, tmp_path: Path) -> None:
    project = paid_sweep(tmp_path, server)
    call(project, "--quiet")
    asked, lines = server.count, len(booked(project))
    answers = [path for path in (tmp_path / "runs").rglob("*") if path.name.startswith("cache.db")]
    assert answers
    for path in answers:
        path.unlink()
    call(project, "--dry-run")
    assert (server.count, len(booked(project))) == (asked, lines)


def trouble(seed: int) -> Any:
    """At most two faults in a row for one question, by its words and not by the order of arrival."""
    turns: Counter[str] = Counter()

    def fault_for(number: int, body: dict[str, Any]) -> str | None:
        question = MARK.sub("", json.dumps(body.get("messages", [body])[:2], sort_keys=True))
        turns[question] += 1
        draw = random.Random(f"{seed} {question} {turns[question]}")
        if turns[question] > 2 or draw.random() > 0.35:
            return None
        own = VECTORS if "input" in body else SPOILT if "documents" in body else CHAT
        return draw.choice((*TRANSPORT, *own))

    return fault_for


@pytest.mark.parametrize("seed", [1, 2])
def test_a_server_that_fails_changes_no_list_and_no_score(healthy: dict[str, bytes], seed: int, tmp_path: Path) -> None:
    with LLMServer(fault_for=trouble(seed)) as server:
        project = paid_sweep(tmp_path, server)
        call(project, "--quiet")
        assert project.files() == healthy
        assert calls(project) == server.count
        assert not server.paid_twice


@pytest.mark.parametrize("dying", [EMBEDDER, REWRITER, *RERANKERS.values()])
def test_systems_whose_provider_dies_are_named_and_the_next_sweep_finishes_them(
    healthy: dict[str, bytes], dying: str, tmp_path: Path
) -> None:
    turns: Counter[str] = Counter()
    sick = True

    def fault_for(number: int, body: dict[str, Any]) -> str | None:
        turns[kind(body)] += 1
        return "500" if sick and kind(body) in dying and turns[kind(body)] > 2 else None

    with LLMServer(fault_for=fault_for) as server:
        project = paid_sweep(tmp_path, server, llm={"max_attempts": 2, "outage_after": 3})
        _, errors = call(project, "--quiet", code=7)
        told = dying.rpartition("/")[2]
        lost = {name for name, row in rows(project).items() if row["failed"]}
        assert lost == {name for name in rows(project) if told in name}
        assert all(name in errors for name in lost)
        whole = json.loads(healthy["scores"])
        for name, row in rows(project).items():
            if name in lost:
                assert row["file"] is None and not row["scores"] and row["failed"]
            else:
                assert row["scores"] == whole[name][0]
                assert (project.out / row["file"]).read_bytes() == healthy[Path(row["file"]).name]
        sick = False
        plan, asked = planned(project), server.count
        call(project, "--quiet")
        assert project.files() == healthy
        assert calls(project) == server.count <= asked + plan["calls"]
        assert not server.paid_twice


def test_a_list_that_was_reranked_in_part_is_no_list(healthy: dict[str, bytes], tmp_path: Path) -> None:
    """One window's question fails for good: the window would stay in the order of the retriever."""
    sick = True

    def fault_for(number: int, body: dict[str, Any]) -> str | None:
        text = json.dumps(body)
        return "400" if sick and kind(body) == "orderer" and text.count("Passage C") == 0 else None

    listwise = {"type": "listwise", "model": RERANKERS["listwise"], "window": 4, "step": 4}
    with LLMServer(fault_for=fault_for) as server:
        project = paid_sweep(tmp_path, server, axes={"rewrite": "none", "reranker": ["none", listwise]})
        _, errors = call(project, "--quiet", code=7)
        [lost] = [row for row in rows(project).values() if row["failed"]]
        assert "4 of 4 lists could not be reranked whole" in lost["failed"]
        assert lost["name"] in errors
        sick = False
        call(project, "--quiet")
        assert not server.paid_twice
        assert not [row for row in rows(project).values() if row["failed"]]
