"""A cascade that is killed at any moment of the judge stage ends with the bytes of a calm one."""

from __future__ import annotations

import random

import pytest
from support.llm_server import LLMServer

MEMBERS = [{"type": "litellm", "model": f"openai/{name}"} for name in ("small", "big")]
JUDGE = {"judge": {"type": "cascade", "judges": MEMBERS, "samples": 2, "ask_from": 4, "audit": 0.3}}
LLM = {"prices": {f"openai/{name}": {"input": 1.0, "output": 2.0} for name in ("small", "big")}, "concurrency": 3}


@pytest.mark.nightly
def test_killed_at_any_moment_it_goes_on_where_it_was(b):
    draw = random.Random(5)
    with LLMServer(delay_s=0.01) as server:
        calm, own = (
            b.project(f"cascade/{name}", server.url, 2, judge=JUDGE, llm=LLM, rank={"max_calls": 2})
            for name in ("calm", "killed")
        )
        b.run(calm, 0)
        needed, server.requests = server.count, []
        server._answered.clear()
        kills = 0
        for _ in range(3):
            moment = {"at": "stage", "name": "judge", "after": draw.uniform(0.1, 0.5)}
            kills += b.forks.raggs("run", "--config", own.config, "--quiet", die=moment).code == -9
        b.run(own, 0)
        assert kills > 0
        assert own.artifacts() == calm.artifacts()
        assert server.count - needed <= 3 * kills, "more than what was on its way was paid again"
