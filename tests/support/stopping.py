"""A run that is killed once a server has been asked so often, and what of it was booked."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from support.llm_server import LLMServer
from support.project import Project, begin


def stop_at(server: LLMServer, project: Project, number: int) -> None:
    """Run until the server has been asked so often, then kill -9."""

    def kill(asked: int, _body: dict[str, Any]) -> str | None:
        if asked + 1 >= number:
            os.kill(process.pid, signal.SIGKILL)
        return None

    server.fault_for = kill
    process = begin("run", "--config", project.config, "-q", "--yes")
    try:
        assert process.end().code == -9
    finally:
        server.fault_for = None


def booked(folder: Path) -> int:
    """Calls in the ledgers below a folder; a call is booked when its answer is in the cache."""
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("llm.ledger.jsonl"))
