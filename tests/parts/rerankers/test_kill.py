"""A process that is killed in the midst of paid work has kept every answer that it was sent."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from support.judging import passage
from support.llm_server import LLMServer

from raggs.llm import BudgetSettings, LLMSettings
from raggs.parts.rerankers import REGISTRY
from raggs.parts.workspace import Workspace

MODEL = "openai/gpt-5-nano"
QUESTIONS = 12
ANSWERED = 6  # requests that are answered before the server falls silent
WORKER = """
import asyncio, sys
sys.path[:0] = sys.argv[3:]
from pathlib import Path
from parts.rerankers.test_kill import work
work(sys.argv[1], Path(sys.argv[2]), print)
"""


def work(kind, folder, tell):
    """Rerank the passages of twelve questions, two calls at a time."""
    windows = {"window": 2} if kind == "listwise" else {}
    spec = REGISTRY.load(kind).Config(type=kind, model=MODEL, **windows)
    workspace = Workspace(folder, LLMSettings(concurrency=2), BudgetSettings(max_usd=1))
    who = workspace.reranker(spec)

    async def all_of_them():
        for number in range(QUESTIONS):
            found = await who.rerank(f"question {number}", "en", [passage(f"p{at}", f"text {at}") for at in range(4)])
            tell(*(each.doc_id for each in found.ranked), flush=True)

    workspace.loop.run(all_of_them())
    workspace.close()


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize(("kind", "at_once"), [("litellm", 1), ("listwise", 1), ("pointwise", 2)])
def test_after_a_kill_nothing_is_paid_twice(kind, at_once, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none-of-your-business")
    asked = []

    def fault_for(number, body):
        asked.append(body)
        return None if len(asked) <= ANSWERED else "slow:60"

    with LLMServer(fault_for=fault_for) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        command = [sys.executable, "-c", WORKER, kind, str(tmp_path / "runs"), *sys.path]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while len(asked) < ANSWERED + at_once and time.monotonic() < deadline:  # then all that was sent is kept
            time.sleep(0.01)
        child.kill()
        child.communicate()
        assert len(asked) == server.count == ANSWERED + at_once
        server.fault_for = None
        lines, fresh = [], []
        work(kind, tmp_path / "runs", lambda *ids, flush: lines.append(ids))
        assert server.paid_twice == []
        different = {json.dumps(body, sort_keys=True) for body in server.requests}
        assert server.count - len(different) == at_once, "only those that were not answered come again"
        work(kind, tmp_path / "fresh", lambda *ids, flush: fresh.append(ids))
        assert lines == fresh
