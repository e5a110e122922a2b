"""The cluster itself: who may talk to it, what its workers are given, and what becomes of it when somebody dies."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import Client
from pydantic import ValidationError
from support.llm_server import LLMServer
from support.project import Project, environment, make_project

from raggs.base.errors import ConfigError, ProviderError
from raggs.runs.execution import cluster as cluster_module
from raggs.runs.execution.cluster import connect, local_cluster, passes
from raggs.runs.execution.dask import DaskExecution

PRICES = {"openai/test-model": {"input": 1.0, "output": 10.0}}
SMALL = {
    "embed": {"embedder": None},
    "retrieve": {"retrievers": [{"type": "bm25", "k": 6}]},
    "prune": {"min_keep": 5, "max_keep": 6},
    "rank": {"top": 3, "max_calls": 4},
}


def wait_for(what: Callable[[], object], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited for nothing"
        time.sleep(0.05)


class _Unanswered:
    """Client whose scheduler does not answer, or has no workers."""

    def __init__(self, _place: object, *, timeout: float, set_as_default: bool) -> None:
        if timeout < 1:
            raise TimeoutError("no answer")

    def wait_for_workers(self, _count: int, timeout: float) -> None:
        raise TimeoutError

    def close(self) -> None: ...


@pytest.mark.parametrize("patience_s", [0.5, 2.0])
@pytest.mark.parametrize(
    ("address", "remedies"),
    [
        (None, ["raise execution.connect_s"] * 2),
        (
            "tcp://host:8786",
            [
                "check execution.address, or start a scheduler: dask scheduler",
                "start workers: dask worker tcp://host:8786 --nthreads 1",
            ],
        ),
    ],
)
def test_the_remedy_for_a_missing_scheduler_or_worker_fits_the_place(
    monkeypatch: pytest.MonkeyPatch, address: str | None, remedies: list[str], patience_s: float
) -> None:
    monkeypatch.setattr(cluster_module, "distributed", lambda: SimpleNamespace(Client=_Unanswered))
    with pytest.raises(ProviderError) as caught:
        connect(address, object(), patience_s)
    assert caught.value.remedy == remedies[patience_s >= 1]


def test_nobody_else_of_the_machine_can_talk_to_it_and_it_offers_no_pages() -> None:
    cluster = local_cluster(1)
    try:
        client = connect(None, cluster, 60)
        with closing(client):
            address: str = client.scheduler_info()["address"]
            assert address.startswith("tls://127.0.0.1:")
            for foreign in (address.replace("tls://", "tcp://"), address):
                with pytest.raises((OSError, TypeError, ValueError, RuntimeError)):
                    Client(foreign, timeout=3, set_as_default=False)
            (worker,) = client.scheduler_info()["workers"].values()
            pages = [client.scheduler_info()["services"], worker["services"]]
            ports = [port for found in pages for port in found.values()]
            for port in ports:
                with socket.create_connection(("127.0.0.1", port), timeout=5) as asked:
                    asked.sendall(b"GET /info/main/workers.html HTTP/1.0\r\n\r\n")
                    assert b" 404 " in asked.recv(64)
            assert client.submit(sum, [1, 2]).result(timeout=60) == 3
    finally:
        cluster.close()


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "LC_ALL", "PYTHONPATH", "OMP_NUM_THREADS", "TZ", "ELASTIC_API_KEY", "CUDA_VISIBLE_DEVICES"]
)
def test_what_a_worker_needs_it_is_given(name: str) -> None:
    assert passes(name)


@pytest.mark.parametrize(
    "name",
    """OPENAI_API_KEY openai_api_key my_passphrase GITHUB_TOKEN DATABASE_URL PYTHON_KEYRING_TOKEN SSH_AUTH_SOCK
    HTTPS_PROXY PGPASS AWS_PROFILE anything DASK_GATEWAY_PASSWORD""".split(),  # noqa: SIM905
)
def test_all_else_it_is_not(name: str) -> None:
    assert not passes(name)


@pytest.mark.parametrize(
    "address",
    """tcp:// tcp://host tcp://:8786 tcp://host:0 tcp://host:99999 tcp://host:x tcp://[::1:8786 foo://host:1
    tcp://host:8786/path host:8786 tcp://host:-1 inproc://1:2 //host:1""".split(),  # noqa: SIM905
)
def test_an_address_that_is_none_is_refused_when_it_is_read(address: str) -> None:
    with pytest.raises(ValidationError, match="expected an address such as tcp://host:8786"):
        DaskExecution.Config(address=address)


def test_an_address_that_dask_cannot_use_is_told() -> None:
    with pytest.raises(ConfigError, match=r"dask cannot use this address .*distributed.comm.tls"):
        connect("tls://127.0.0.1:9", None, 3)


# --- who dies ---


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A scheduler with one worker, as its users start them; its address and its process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    quick = environment(DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="4s", OPENAI_API_KEY="none")
    begin = [sys.executable, "-m", "dask"]
    port = address.rpartition(":")[2]
    options: dict[str, Any] = {"env": quick, "text": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    main = subprocess.Popen([*begin, "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"], **options)
    worker = subprocess.Popen([*begin, "worker", address, "--nthreads", "1", "--no-dashboard"], cwd=tmp_path, **options)
    try:
        yield address, main
    finally:
        for process in (worker, main):
            process.kill()
            process.wait()


def begin(project: Project) -> subprocess.Popen[str]:
    quick = environment(DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="4s", OPENAI_API_KEY="none")
    command = [sys.executable, "-m", "raggs", "run", "--quiet", "--config", str(project.config)]
    return subprocess.Popen(command, env=quick, text=True, stderr=subprocess.PIPE, start_new_session=True)


def asking(folder: Path, server: LLMServer, execution: dict[str, Any]) -> Project:
    judge = {"judge": {"type": "litellm", "model": "openai/test-model"}}
    llm = {"api_base": server.url, "prices": PRICES, "concurrency": 1}
    return make_project(folder, queries=2, corpus=12, judge=judge, llm=llm, execution=execution, **SMALL)


def test_after_a_client_died_the_next_run_waits_for_nobody_and_a_lost_scheduler_is_one_sentence(
    tmp_path: Path, scheduler: tuple[str, subprocess.Popen[str]]
) -> None:
    address, main = scheduler
    execution: dict[str, Any] = {"type": "dask", "address": address, "shards": 2, "connect_s": 60}
    with LLMServer(delay_s=1.0) as server:
        first = begin(asking(tmp_path / "one", server, execution))
        wait_for(lambda: server.count >= 2)
        first.kill()
        first.wait()
        # The worker is there by now; and so long a client looks for a scheduler that is gone.
        second = begin(asking(tmp_path / "two", server, {**execution, "connect_s": 8}))
        asked = server.count
        wait_for(lambda: server.count >= asked + 3, seconds=60)  # not the five minutes of a silent client
        main.kill()
        _, told = second.communicate(timeout=90)
    assert second.returncode == 6
    (line,) = told.splitlines()
    assert line == "raggs: the connection to the scheduler was lost — run again: paid answers are cached"


@pytest.mark.nightly(keep=1)
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="counts processes by /proc")
@pytest.mark.parametrize("early", [True, False])
def test_an_interrupt_leaves_no_process_behind(early: bool, tmp_path: Path) -> None:
    with LLMServer(delay_s=1.0) as server:
        project = asking(tmp_path, server, {"type": "dask", "workers": 1, "shards": 2})
        run = begin(project)
        wait_for(lambda: (project.run / ".incomplete-retrieve").exists() if early else server.count >= 2)
        if early:
            time.sleep(0.5)  # while the processes are begun
        os.kill(run.pid, signal.SIGINT)
        _, told = run.communicate(timeout=90)
    assert run.returncode == 130
    assert told.splitlines() == [
        "raggs: interrupted; finished results and paid answers are kept (to resume, run the same command again)"
    ]
    wait_for(lambda: not alive(run.pid), seconds=20)


def alive(session: int) -> list[str]:
    """The processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX" and int(fields[3]) == session:
            found.append(stat.parent.name)
    return found
