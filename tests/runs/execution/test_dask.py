"""Runs on a cluster: the bytes of a local run, whoever dies; one budget, one cache, one key."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, KilledWorker, LocalCluster
from support.elastic import fill
from support.llm_server import KEY, LLMServer
from support.project import Project, make_project, passages

from raggs.app.audit import audit
from raggs.app.run import open_runner, run
from raggs.app.worker import run_shard
from raggs.base.errors import BudgetError, NotFoundError, PrerequisiteError, ProviderError
from raggs.config.load import load_config
from raggs.runs.execution.channel import JudgeServer, ShardJob
from raggs.runs.execution.dask import _outcome
from raggs.runs.manifests.models import versions
from raggs.runs.plan import Selection
from raggs.stages import GOLDEN

PRICES = {"openai/test-model": {"input": 1.0, "output": 10.0}}
PANEL = {
    "type": "panel",
    "judges": [{"type": "litellm", "model": "openai/test-model"}, {"type": "qrels", "path": "qrels.txt"}],
}
SMALL = {
    "retrieve": {"retrievers": [{"type": "bm25", "k": 6}, {"type": "dense", "k": 6}]},
    "prune": {"min_keep": 5, "max_keep": 6},
    "rank": {"top": 3, "max_calls": 4},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    options: dict[str, Any] = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    patient = {"distributed.comm.timeouts.connect": "300s", "distributed.comm.timeouts.tcp": "300s"}
    with dask.config.set(patient), LocalCluster(n_workers=2, env={"OPENAI_API_KEY": "none"}, **options) as started:
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


def told(project: Project) -> dict[str, tuple[Any, ...]]:
    """What the manifest tells of each stage."""
    stages = project.manifest()["stages"]
    return {name: (lock["cost"]["calls"], lock["failed"], lock["health"]) for name, lock in stages.items()}


def booked(project: Project) -> Counter[tuple[str, ...]]:
    """The paid calls of the ledger."""
    lines = map(json.loads, (project.run / "llm.ledger.jsonl").read_text().splitlines())
    return Counter(
        (line["stage"], line["qid"], line["model"], line["task"], line["outcome"]) for line in lines if line["attempts"]
    )


def form(body: dict[str, Any]) -> str:
    return str(body["response_format"]["json_schema"]["name"])


class Storm:
    """Hears all that workers say, and kills the one that asks the sixth question of a kind, before it is answered."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.begun: dict[tuple[JudgeServer, int], list[str]] = {}  # who took each shard of each stage
        self.killed: dict[str, tuple[str, list[str]]] = {}  # by kind of question: who, and who took that one's shard

    def __call__(self, server: JudgeServer, event: tuple[float, dict[str, Any]]) -> None:
        message = event[1]
        kind, who = message.get("ask", "note"), message.get("mailbox", "")
        self.asked[kind] += 1
        if kind == "hello":
            self.begun.setdefault((server, message["shard"]), []).append(who)
        elif kind in ("grade", "order") and self.asked[kind] == 6:
            self.killed[kind] = (who, next(takers for takers in reversed(self.begun.values()) if takers[-1] == who))
            os.kill(int(who.split("-")[2]), signal.SIGKILL)
        HEAR(server, event)


HEAR = JudgeServer.hear


def test_two_killed_workers_change_no_byte_and_cost_no_call(
    tmp_path: Path, cluster: LocalCluster, key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One in the middle of the judge stage, one in the middle of the rank stage; a panel asked twice; canaries."""
    storm = Storm()
    monkeypatch.setattr(JudgeServer, "hear", lambda server, event: storm(server, event))
    with LLMServer(delay_s=0.002) as server:
        judge = {"judge": PANEL, "samples": 2, "stop_after": 4, "canaries": 0.1}
        calm = make_project(tmp_path / "calm", queries=3, **{**asking(server), "judge": judge})
        run(calm.config)
        paid, server.requests = sorted(map(form, server.requests)), []
        stormy = make_project(
            tmp_path / "stormy", queries=3, execution=on(cluster, 512), **{**asking(server), "judge": judge}
        )
        run(stormy.config)
        assert stormy.artifacts() == calm.artifacts()
        assert sorted(map(form, server.requests)) == paid
        assert server.peak <= 3, "the client's concurrency holds for all workers together"
    assert sorted(storm.killed) == ["grade", "order"]
    for who, takers in storm.killed.values():
        assert takers[-1] != who, "it died at work, and another one took its shard"
    assert told(stormy) == told(calm)
    assert told(calm)["judge"][2]["canaries"]["passed"]["total"] >= 5
    assert booked(stormy) == booked(calm)
    assert not (stormy.run / ".shards").exists()
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        assert set(client.run(os.getenv, "OPENAI_API_KEY").values()) <= {"none"}
        events = str(client.get_events())
    assert KEY not in events
    assert "amber" not in events, "texts do not travel through the scheduler"


@pytest.mark.nightly
def test_batches_are_as_large_as_in_a_local_run(tmp_path: Path, cluster: LocalCluster, key: None) -> None:
    """However many shards there are: a batch takes hours, and one for each shard after the other would take days."""
    judge = {"judge": PANEL, "mode": "batch", "batch": {"poll_s": 0.02, "quiet_s": 0.1}, "stop_after": 8}
    with LLMServer() as server:
        local = make_project(tmp_path / "local", queries=4, **{**asking(server), "judge": judge})
        run(local.config)
        batches, asked = list(map(len, server.batches.submitted)), sorted(map(form, server.requests))
        server.batches.submitted, server.requests = [], []
        spread = make_project(
            tmp_path / "spread", queries=4, execution=on(cluster), **{**asking(server), "judge": judge}
        )
        run(spread.config)
        assert list(map(len, server.batches.submitted)) == batches
        assert sorted(map(form, server.requests)) == asked
    assert spread.artifacts() == local.artifacts()
    assert told(spread) == told(local)
    assert booked(spread) == booked(local)


@pytest.mark.nightly
def test_passages_that_are_graded_together_travel_together(tmp_path: Path, cluster: LocalCluster, key: None) -> None:
    with LLMServer() as server:
        judge = {"judge": PANEL, "group": 3, "samples": 2, "stop_after": 4}
        local = make_project(tmp_path / "local", queries=3, **{**asking(server), "judge": judge})
        run(local.config)
        asked, server.requests = sorted(map(form, server.requests)), []
        assert "grades" in asked
        spread = make_project(
            tmp_path / "spread", queries=3, execution=on(cluster), **{**asking(server), "judge": judge}
        )
        run(spread.config)
        assert sorted(map(form, server.requests)) == asked
    assert spread.artifacts() == local.artifacts()
    assert told(spread) == told(local)


@pytest.mark.nightly
def test_a_cascade_asks_the_same_on_workers(tmp_path: Path, cluster: LocalCluster, key: None) -> None:
    judge = {"judge": {**PANEL, "type": "cascade", "ask_from": 4, "audit": 0.3, "order": "cheap"}, "samples": 2}
    with LLMServer() as server:
        local = make_project(tmp_path / "local", queries=3, **{**asking(server), "judge": judge})
        spread = make_project(
            tmp_path / "spread", queries=3, execution=on(cluster), **{**asking(server), "judge": judge}
        )
        run(local.config)
        run(spread.config)
    assert spread.artifacts() == local.artifacts()
    assert told(spread) == told(local)
    assert booked(spread) == booked(local)
    assert told(local)["judge"][2]["cascade"]["asked"]["count"] > 0


SHARED = {"top": 5, "max_calls": 12, "budget": {"calls": 20}}


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("rank", [SHARED, {**SHARED, "batch_size": "auto"}, None])
def test_rankings_that_share_a_budget_and_a_set_without_any_are_those_of_a_local_run(
    tmp_path: Path, cluster: LocalCluster, rank: dict[str, Any] | None
) -> None:
    """The former are made in one process, since whose turn it is hangs on all answers; the other stages on workers."""
    local = make_project(tmp_path / "local", queries=3, rank=rank)
    spread = make_project(tmp_path / "spread", queries=3, rank=rank, execution=on(cluster))
    for project in (local, spread):
        run(project.config)
    made = {path.name: path.read_bytes() for path in local.run.glob("*.jsonl")}
    assert {path.name: path.read_bytes() for path in spread.run.glob("*.jsonl")} == made
    assert ("rank.journal.jsonl" in made) == (rank is not None)
    assert told(spread) == told(local) and not audit(spread.run).findings


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
    monkeypatch.setenv("ELASTIC_API_KEY", "for the search server")
    local = make_project(tmp_path / "local", queries=3, **SMALL)
    spread = make_project(tmp_path / "spread", queries=3, execution={"type": "dask", "workers": 2}, **SMALL)
    run(local.config)
    with open_runner(load_config(spread.config)) as runner:
        runner.run(Selection(GOLDEN.order))
        client: Any = runner.execution._client  # type: ignore[attr-defined]
        client.wait_for_workers(2, timeout=60)  # one is enough to begin
        assert len(client.scheduler_info()["workers"]) == 2
        assert set(client.run(os.getenv, "SOME_API_KEY").values()) == {""}
        assert set(client.run(os.getenv, "ELASTIC_API_KEY").values()) == {"for the search server"}
        pids = client.run(os.getpid).values()
    assert spread.artifacts() == local.artifacts()
    deadline = time.monotonic() + 60
    while (left := [pid for pid in pids if lives(pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.nightly
def test_workers_search_and_read_an_index_of_elasticsearch(
    tmp_path: Path, cluster: LocalCluster, elastic_url: str
) -> None:
    documents = {each["_id"]: {"title": each["title"], "text": each["text"]} for each in passages(20)}
    place = {"url": elastic_url, "index": fill(elastic_url, documents)}
    indexed = {**SMALL, "retrieve": {"retrievers": [{"type": "elasticsearch", "k": 6, **place}]}}
    local, spread = (make_project(tmp_path / name, queries=3, **indexed) for name in ("local", "spread"))
    spread.change(execution=on(cluster))
    for project in (local, spread):
        settings = {**project.settings(), "corpus": {"type": "elasticsearch", **place}}
        project.config.write_text(json.dumps(settings))
        run(project.config)
    assert spread.artifacts() == local.artifacts()
    assert not list(spread.folder.rglob("*.sqlite")), "nothing of the index is copied"


def test_the_execution_is_no_cause_of_a_result(tmp_path: Path) -> None:
    project = make_project(tmp_path, queries=2, **SMALL)
    run(project.config)
    project.change(execution={"type": "dask", "address": "tcp://nowhere.invalid:1"})
    assert run(project.config).ran == {}


def test_a_scheduler_that_does_not_answer_is_named(tmp_path: Path) -> None:
    nowhere = {"type": "dask", "address": "tcp://127.0.0.1:1", "connect_s": 1}
    project = make_project(tmp_path, queries=2, execution=nowhere)
    with pytest.raises(ProviderError, match=r"^tcp://127.0.0.1:1: no scheduler answers .* — check execution.address"):
        run(project.config)


def test_without_the_extra_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    project = make_project(tmp_path, queries=2, execution={"type": "dask"})
    with pytest.raises(PrerequisiteError) as caught:
        run(project.config)
    assert caught.value.remedy == 'pip install ".[distributed]" in a clone of raggs'


def test_an_error_of_a_worker_comes_back_as_it_was(
    tmp_path: Path, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raggs.runs.execution.dask.versions", lambda: {**versions(), "numpy": "0.1", "python": "2.7"})
    project = make_project(tmp_path, queries=2, execution=on(cluster), **SMALL)
    with pytest.raises(PrerequisiteError, match=r"a worker has numpy \S+ and this machine 0.1") as caught:
        run(project.config)
    assert caught.value.remedy == "install the same versions on all workers"
    assert project.run.joinpath("embed.jsonl").exists(), "what was finished before is kept"
    assert not project.run.joinpath(".shards").exists()


def test_a_worker_that_does_not_see_the_workspace_says_so(tmp_path: Path) -> None:
    job = ShardJob(
        stage="merge",
        config="",
        folder=tmp_path / "elsewhere",
        passages=tmp_path,
        topic="",
        asks=None,
        embedder="",
        dims=0,
        causes={},
        versions=versions(),
    )
    with pytest.raises(NotFoundError, match="cannot access the workspace — put the workspace on a file system"):
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
        (Ended(KilledWorker("shard", None, 3)), ProviderError, "shard 7 failed: every worker that processed it died"),
        (Ended(ModuleNotFoundError("No module named 'raggs'")), PrerequisiteError, "a worker cannot run raggs"),
        (Ended(cancelled=True), ProviderError, "the connection to the scheduler was lost"),
        (Ended(NotFoundError("no such file")), NotFoundError, "no such file"),
    ],
)
def test_what_ends_a_shard_is_told(future: Ended, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        asyncio.run(_outcome(future, 7))
    assert asyncio.run(_outcome(Ended(), 7)) == 7
