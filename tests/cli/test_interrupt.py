"""Ctrl-C in mid-run. What kill -9 does is in tests/faults."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from support.project import environment, make_project, raggs


def test_ctrl_c_says_that_nothing_is_lost(tmp_path: Path) -> None:
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
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not (journal.exists() and journal.stat().st_size > 5000):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert errors.strip().splitlines()[-1] == (
        "raggs: interrupted; what is finished and what was paid for is kept, run again to go on"
    )
    assert "Traceback" not in errors
    assert raggs("run", "--config", project.config, "--quiet").returncode == 0
