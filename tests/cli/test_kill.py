"""kill -9 in mid-run, again and again: what comes out in the end has the bytes of an undisturbed run."""

from __future__ import annotations

import random
import time
from pathlib import Path

from support.project import make_project, raggs, run_and_kill

KILLS = 20
SECTIONS = {"rank": {"top": 8, "max_calls": 60}, "prune": {"min_keep": 20, "max_keep": 25}}


def test_twenty_kills_change_no_byte(tmp_path: Path) -> None:
    calm = make_project(tmp_path / "calm", queries=40, corpus=60, **SECTIONS)
    clock = time.perf_counter()
    assert raggs("run", "--config", calm.config, "--quiet").returncode == 0
    whole = time.perf_counter() - clock

    moments = random.Random(11)
    killed = rounds = 0
    while killed < KILLS:
        rounds += 1
        # A run that survived its round is thrown away, so that every kill meets work in progress.
        stormy = make_project(tmp_path / f"storm{rounds}", queries=40, corpus=60, **SECTIONS)
        while killed < KILLS and run_and_kill(stormy.config, moments.uniform(0.2, whole)):
            killed += 1
        done = raggs("run", "--config", stormy.config, "--quiet")
        assert done.returncode == 0, done.stderr
        assert stormy.artifacts() == calm.artifacts()
        assert raggs("audit", stormy.run).returncode == 0
        assert not list(stormy.run.glob(".tmp-*"))
        assert not list(stormy.run.glob(".incomplete-*"))


def test_ctrl_c_says_that_nothing_is_lost(tmp_path: Path) -> None:
    import signal
    import subprocess
    import sys

    from support.project import environment

    project = make_project(
        tmp_path, queries=60, corpus=60, rank={"top": 20, "max_calls": 400}, prune={"min_keep": 40, "max_keep": 60}
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "raggs", "run", "--config", str(project.config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    journal = project.run / "rank.journal.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (journal.exists() and journal.stat().st_size > 5000):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert errors.strip().splitlines()[-1] == (
        "raggs: interrupted; what is finished and what was paid for is kept, run again to go on"
    )
    assert "Traceback" not in errors
    assert raggs("run", "--config", project.config, "--quiet").returncode == 0
