"""Runs on a cluster: the bytes of a local run, whoever dies; one budget, one cache, one key."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, KilledWorker, LocalCluster
from support.llm_server import LLMServer
from support.project import Project, make_project

from raggs.config.api import open_runner, run
from raggs.config.load import load_config
from raggs.config.worker import run_shard
from raggs.errors import BudgetError, NotFoundError, PrerequisiteError, ProviderError
from raggs.execution.dask import _outcome
from raggs.execution.shards import Job
from raggs.manifests.models import versions
from raggs.pipeline.plan import Selection

KEY = "sk-test-0123456789abcdef"
PRICES = {"openai/test-model": {"input": 1.0, "output": 10.0}}
SMALL = {
    "retrieve": {"retrievers": [{"type": "bm25", "k": 6}, {"type": "dense", "k": 6}]},
    "prune": {"min_keep": 5, "max_keep": 6},
    "rank": {"top": 3, "max_calls": 4},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    options: dict[str, Any] = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=2, env={"OPENAI_API_KEY": "none"}, **options) as started:
        yield started


@pytest.fixture
def key(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process alone: the workers have none."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def on(cluster: LocalCluster, shards: int = 64) -> dict[str, Any]:
    return {"type": "dask", "address": cluster.scheduler_address, "shards": shards}


def asking(server: LLMServer, **llm: Any) -> dict[str, Any]:
    """Settings of a project whose judge is a language model."""
    judge = {"type": "litellm", "model": "openai/test-model"}
    settings = {"api_base": server.url, "prices": PRICES, "requests_per_minute": None, "concurrency": 3, **llm}
    return {**SMALL, "judge": {"judge": judge}, "llm": settings}


def calls(project: Project) -> dict[str, tuple[int, int]]:
    return {name: (lock["cost"]["calls"], lock["failed"]) for name, lock in project.manifest()["stages"].items()}


def form(body: dict[str, Any]) -> str:
    return str(body["response_format"]["json_schema"]["name"])


def test_two_killed_workers_change_no_byte_and_cost_no_call(tmp_path: Path, cluster: LocalCluster, key: None) -> None:
    with LLMServer(delay_s=0.005) as server:
        calm = make_project(tmp_path / "calm", queries=3, **asking(server))
        run(calm.config)
        paid, server.requests = sorted(map(form, server.requests)), []
        seen: list[str] = []
        killed: dict[str, int] = {}

        def kill(number: int, body: dict[str, Any]) -> None:
            """One worker in the middle of the judge stage, the other one in the middle of the rank stage."""
            seen.append(form(body))
            if seen.count(seen[-1]) == 6:
                killed[seen[-1]] = cluster.workers[len(killed)].pid
                os.kill(killed[seen[-1]], signal.SIGKILL)

        server.fault_for = kill
        stormy = make_project(tmp_path / "stormy", queries=3, execution=on(cluster, 512), **asking(server))
        run(stormy.config)
        assert sorted(killed) == ["grade", "order"]
        assert stormy.artifacts() == calm.artifacts()
        assert sorted(map(form, server.requests)) == paid
        assert server.peak <= 3, "the client's concurrency holds for all workers together"
    assert calls(stormy) == calls(calm)
    assert not (stormy.run / ".shards").exists()
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        assert set(client.run(os.getenv, "OPENAI_API_KEY").values()) == {"none"}
        events = client.get_events()
    begun: dict[tuple[str, int], set[str]] = {}
    for topic in filter(lambda name: name.startswith("raggs-questions"), events):
        for _, message in events[topic]:
            if message.get("ask") == "hello":
                begun.setdefault((topic, message["shard"]), set()).add(message["mailbox"])
    assert sum(len(workers) == 2 for workers in begun.values()) >= 2, "both died at work, and others took their shards"
    assert KEY not in str(events)
    assert "amber" not in str(events), "texts do not travel through the scheduler"


def test_the_budget_is_one_for_all_workers(tmp_path: Path, cluster: LocalCluster, key: None) -> None:
    with LLMServer() as server:
        project = make_project(tmp_path, queries=6, execution=on(cluster), budget={"max_calls": 7}, **asking(server))
        with pytest.raises(BudgetError, match="7 of 7 calls"):
            run(project.config)
        assert server.count == 7
        project.change(budget={"max_calls": 1000})
        done = run(project.config)
        assert done.failed == 0
        assert done.manifest.stages["judge"].cost.cached == 7


def test_workers_of_this_machine_are_started_without_secrets_and_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", KEY)
    local = make_project(tmp_path / "local", queries=3, **SMALL)
    spread = make_project(tmp_path / "spread", queries=3, execution={"type": "dask", "workers": 2}, **SMALL)
    run(local.config)
    with open_runner(load_config(spread.config)) as runner:
        runner.run(Selection())
        client: Any = runner.execution._client  # type: ignore[attr-defined]
        assert len(client.scheduler_info()["workers"]) == 2
        assert set(client.run(os.getenv, "SOME_API_KEY").values()) == {""}
        pids = client.run(os.getpid).values()
    assert spread.artifacts() == local.artifacts()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_execution_is_no_cause_of_a_result(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=2, **SMALL)
    run(project.config)
    project.change(execution={"type": "dask", "address": "tcp://nowhere.invalid:1"})
    assert run(project.config).ran == {}


def test_a_scheduler_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raggs.execution.dask.CONNECT_S", 1)
    project = make_project(tmp_path, queries=2, execution={"type": "dask", "address": "tcp://127.0.0.1:1"})
    with pytest.raises(ProviderError, match=r"^tcp://127.0.0.1:1: no scheduler answers .* — check execution.address"):
        run(project.config)


def test_without_the_extra_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    project = make_project(tmp_path, queries=2, execution={"type": "dask"})
    with pytest.raises(PrerequisiteError) as caught:
        run(project.config)
    assert caught.value.remedy == 'pip install "raggs[distributed]"'


def test_an_error_of_a_worker_comes_back_as_it_was(
    tmp_path: Path, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raggs.execution.dask.versions", lambda: {**versions(), "numpy": "0.1", "python": "2.7"})
    project = make_project(tmp_path, queries=2, execution=on(cluster), **SMALL)
    with pytest.raises(PrerequisiteError, match=r"a worker has numpy \S+, this machine 0.1") as caught:
        run(project.config)
    assert caught.value.remedy == "install the same versions on all workers"
    assert project.run.joinpath("embed.jsonl").exists(), "what was finished before is kept"
    assert not project.run.joinpath(".shards").exists()


def test_a_worker_that_does_not_see_the_workspace_says_so(tmp_path: Path) -> None:
    job = Job(
        stage="merge",
        config="",
        folder=tmp_path / "elsewhere",
        passages=tmp_path,
        topic="",
        asks=None,
        causes={},
        versions=versions(),
    )
    with pytest.raises(NotFoundError, match="does not see the workspace — put it on a file system"):
        run_shard(job.model_dump_json(), 0)


class Ended:
    """A future of dask's that has ended."""

    def __init__(self, error: Exception | None = None, cancelled: bool = False) -> None:
        self.error = error
        self.cancelled = lambda: cancelled

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        call(self)

    def result(self) -> None:
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize(
    ("future", "kind", "message"),
    [
        (Ended(KilledWorker("shard", None, 3)), ProviderError, "shard 7 was given up: every worker that took it died"),
        (Ended(ModuleNotFoundError("No module named 'raggs'")), PrerequisiteError, "a worker cannot run raggs"),
        (Ended(cancelled=True), ProviderError, "the connection to the scheduler was lost"),
        (Ended(NotFoundError("no such file")), NotFoundError, "no such file"),
    ],
)
def test_what_ends_a_shard_is_told(future: Ended, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        asyncio.run(_outcome(future, 7))
    assert asyncio.run(_outcome(Ended(), 7)) == 7
