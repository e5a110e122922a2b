"""Ctrl-C, SIGTERM and SIGHUP in mid-run. What kill -9 does is in tests/faults."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.forks import Child
from support.llm_server import LLMServer
from support.project import Project, begin, environment, make_project, raggs

KEY = {"OPENAI_API_KEY": "sk-test-0123456789abcdefghijklmnop"}
SENTENCE = "raggs: interrupted; finished results and paid answers are kept (to resume, run the same command again)"


def forked(*arguments: object) -> Child:
    return begin(*arguments, env=environment(**KEY))


def started(*arguments: object, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """With Python's start, behind what ignores a signal."""
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "raggs", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**KEY),
    )


def wait_for(there: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not there():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def paid_project(folder: Path, server: LLMServer) -> Project:
    project = make_project(folder, queries=3, corpus=24)
    project.change(
        judge={"judge": {"type": "litellm", "model": "openai/judge"}},
        llm={"api_base": server.url, "concurrency": 4, "prices": {"openai/judge": {"input": 1.0, "output": 2.0}}},
        budget={"max_usd": None},  # under a cap calls begin one by one
    )
    return project


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_calls_on_their_way_arrive_and_are_not_paid_again(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with LLMServer(delay_s=1.0) as server:
        project = paid_project(tmp_path / "own", server)
        process = forked("run", "--config", project.config, "--quiet")
        assert process.wait(until=lambda: server.count >= 6) is None
        process.send_signal(number)
        ended = process.end()
        assert (ended.code, ended.err) == (code, SENTENCE + "\n")
        stopped = server.count
        assert stopped < 20, "no more calls are made"
        server.delay_s = 0
        again = raggs("run", "--config", project.config, "--quiet", env=environment(**KEY))
        assert again.returncode == 0, again.stderr
        total = server.count
        calm = paid_project(tmp_path / "calm", server)
        assert raggs("run", "--config", calm.config, "--quiet", env=environment(**KEY)).returncode == 0
        assert server.count - total == total, "calls in flight were paid again"
        assert project.artifacts() == calm.artifacts()


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_stops_at_once(tmp_path: Path, number: signal.Signals) -> None:
    with LLMServer(delay_s=120) as server:
        project = paid_project(tmp_path, server)
        process = forked("run", "--config", project.config, "--quiet")
        assert process.wait(until=lambda: server.count >= 4) is None
        process.send_signal(number)
        time.sleep(0.5)
        assert process.poll() is None, "it waits for the calls on their way"
        process.send_signal(number)
        ended = process.end(8)  # less than it would wait for calls
        assert ended.code == 128 + number
        assert "Traceback" not in ended.err and "destroyed" not in ended.err


def test_a_hang_up_after_another_signal_is_no_second_one(tmp_path: Path) -> None:
    """Service managers and shells send both."""
    with LLMServer(delay_s=2.0) as server:
        project = paid_project(tmp_path, server)
        process = forked("run", "--config", project.config, "--quiet")
        assert process.wait(until=lambda: server.count >= 4) is None
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
        ended = process.end()
        assert ended.code in (143, 129), "which is heard first is the system's choice"
        assert ended.err == SENTENCE + "\n"


@pytest.mark.nightly
def test_what_nohup_ignores_stays_ignored(tmp_path: Path) -> None:
    with LLMServer(delay_s=0.2) as server:
        project = paid_project(tmp_path, server)
        process = started("run", "--config", project.config, "--quiet", prefix=("nohup",))
        wait_for(lambda: server.count >= 4, process)
        process.send_signal(signal.SIGHUP)
        server.delay_s = 0
        process.communicate(timeout=120)
        assert process.returncode == 0


BACKGROUND = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")  # as a shell that has no jobs begins them


def test_in_the_background_ctrl_c_stays_ignored_and_a_signal_stops_in_good_order(tmp_path: Path) -> None:
    with LLMServer(delay_s=0.5) as server:
        project = paid_project(tmp_path, server)
        process = started("run", "--config", project.config, "--quiet", prefix=BACKGROUND)
        wait_for(lambda: server.count >= 4, process)
        process.send_signal(signal.SIGINT)
        wait_for(lambda: server.count >= 12, process)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (143, SENTENCE + "\n")


WORK = """import asyncio, os, signal, sys
from raggs.cli.stopping import stopping
from raggs.base.loops import open_loop

async def inner():
    os.kill(os.getpid(), signal.SIGTERM)
    return "whole"

async def work():
    task = asyncio.ensure_future(inner())
    try:
        await asyncio.sleep(60)
    finally:
        print(await task, flush=True)

with stopping() as stop, open_loop() as loop:
    try:
        loop.run(work())
    except KeyboardInterrupt:
        print("stopped", stop.exit_code, flush=True)
os.kill(os.getpid(), signal.SIGINT)
print("ignored", flush=True)
"""


def test_a_signal_in_the_background_breaks_no_task_in_its_midst() -> None:
    command = [*BACKGROUND, sys.executable, "-c", WORK]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60)
    assert (done.stdout, done.stderr) == ("whole\nstopped 143\nignored\n", "")


MOMENT = """import atexit, os, signal, sys, time
import raggs.app.catalog

def ctrl_c(*_):
    os.kill(os.getpid(), signal.SIGINT)

class Finder:
    def find_spec(self, name, *_):
        if name == "typer":
            ctrl_c()

class Gone:
    def __del__(self):
        ctrl_c()

def swallowed(*_):
    Gone()
    time.sleep(60)

def compiled(*_):
    exec("ctrl_c()")

def leaving(*_):
    atexit.register(ctrl_c)
    raise SystemExit

raggs.app.catalog.catalog = {"swallowed": swallowed, "compiled": compiled, "exit": leaving}.get(sys.argv[1])
if sys.argv[1] == "import":
    sys.meta_path.insert(0, Finder())
from raggs.cli import main
sys.argv = ["raggs", "list", "retrievers"]
main()
"""


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("moment", ["import", "swallowed", "compiled", "exit"])
def test_ctrl_c_ends_with_its_sentence_whenever_it_comes(tmp_path: Path, moment: str) -> None:
    """While modules are read; where code beneath Python swallows it, or code compiled on the way; at the end."""
    (tmp_path / "moments.py").write_text(MOMENT)
    command = [sys.executable, "-m", "moments", moment]  # as a module: only then Python ends by the signal
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (130, SENTENCE + "\n")


@pytest.mark.nightly
def test_ctrl_c_says_that_nothing_is_lost(tmp_path: Path) -> None:
    project = make_project(
        tmp_path, queries=60, corpus=60, rank={"top": 20, "max_calls": 400}, prune={"min_keep": 40, "max_keep": 60}
    )
    process = begin("run", "--config", project.config)
    journal = project.run / "rank.journal.jsonl"
    process.wait(until=lambda: journal.exists() and journal.stat().st_size > 5000)
    process.send_signal(signal.SIGINT)
    ended = process.end(300)
    assert ended.code == 130, ended.err
    errors = ended.err
    assert errors.strip().splitlines()[-1] == SENTENCE
    assert "Traceback" not in errors
    assert raggs("run", "--config", project.config, "--quiet").returncode == 0
