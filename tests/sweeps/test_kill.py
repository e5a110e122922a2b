"""A sweep that is killed or stopped at any moment goes on to what an undisturbed one gives, and pays nothing twice."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.forks import Child
from support.llm_server import KEY, LLMServer
from support.paidsweeps import EMBEDDER, calls, paid_sweep
from support.project import begin, environment, raggs
from support.sweeping import SweepProject

KILLS = int(os.environ.get("SWEEP_KILLS", "3"))
AXES = {"embedder": [{"type": "litellm", "model": EMBEDDER, "dims": 8}, {"type": "wordllama", "dims": 64}]}
MOST = 70  # requests of the whole sweep, about
CONCURRENCY = 3
LATENCY = {"passes": 2, "warmup": 1, "queries": 3}


class Silent:
    """Answers so many requests, and is then silent."""

    def __init__(self) -> None:
        self.left: float = float("inf")
        self.waiting = 0

    def __call__(self, number: int, body: dict[str, Any]) -> str | None:
        self.left -= 1
        if self.left >= 0:
            return None
        self.waiting += 1
        return "slow:600"


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer(fault_for=Silent()) as running:
        yield running


def start(project: SweepProject) -> Child:
    return begin("sweep", "--config", project.config, "--quiet", env=environment(OPENAI_API_KEY=KEY))


def make(folder: Path, server: LLMServer) -> SweepProject:
    llm = {"timeout_s": 60, "concurrency": CONCURRENCY}
    return paid_sweep(folder, server, axes=AXES, llm=llm, latency=LATENCY, search={"type": "exhaustive"})


def calm_since(child: Child, server: LLMServer) -> None:
    """What was answered has arrived: as many calls wait as may be made at once, or no more come."""
    silent, seen, since = server.fault_for, server.count, time.monotonic()
    assert isinstance(silent, Silent)
    while child.poll() is None and silent.waiting < CONCURRENCY and time.monotonic() - since < 0.3:
        if server.count != seen:
            seen, since = server.count, time.monotonic()
        time.sleep(0.01)


def finish(project: SweepProject) -> None:
    done = raggs("sweep", "--config", project.config, "--quiet", env=environment(OPENAI_API_KEY=KEY))
    assert done.returncode == 0, done.stdout + done.stderr


def test_kills_at_random_moments_change_no_list_and_no_score(server: LLMServer, tmp_path: Path) -> None:
    project, draw, silent, killed = make(tmp_path / "own", server), random.Random(KILLS), server.fault_for, 0
    assert isinstance(silent, Silent)
    with LLMServer() as other:
        calm = make(tmp_path / "calm", other)
        finish(calm)
    for number in range(KILLS):
        silent.left, silent.waiting = draw.randrange(MOST // KILLS + 2), 0
        patience = draw.uniform(0.1, 4) if number % 3 == 2 else 60
        child, latest = start(project), time.monotonic() + patience
        child.wait(until=lambda latest=latest: silent.waiting > 0 or time.monotonic() > latest)
        calm_since(child, server)
        killed += child.kill().code == -signal.SIGKILL
        silent.left = float("inf")
    finish(project)
    assert killed, "the sweep was over before anything happened to it"
    assert project.files() == calm.files()
    assert len(server.paid_twice) <= CONCURRENCY * killed, "no more than the answers that were on their way"
    assert other.count <= server.count <= other.count + CONCURRENCY * KILLS, "those that were on their way come again"
    assert calls(project) <= server.count
    assert raggs("audit", project.out).returncode == 0


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_it_as_it_stops_a_run(server: LLMServer, tmp_path: Path, number: int, code: int) -> None:
    project, silent = make(tmp_path, server), server.fault_for
    assert isinstance(silent, Silent)
    server.delay_s = 0.05
    process = start(project)
    process.wait(until=lambda: server.count >= 15)
    process.send_signal(number)
    ended = process.end()
    assert ended.code == code, ended.err
    errors = ended.err
    assert "interrupted; finished results and paid answers are kept" in errors
    assert "Traceback" not in errors and "never awaited" not in errors
    assert not project.out.joinpath("manifest.json").exists()
    server.delay_s = 0
    finish(project)
    assert server.paid_twice == []
    assert calls(project) == server.count, "calls on their way arrived, and are in the ledger"
