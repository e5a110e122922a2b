"""The server that the other tests trust: what it says when nothing is wrong, and that it does obey."""

from __future__ import annotations

import json

import httpx
import pytest
from support.fault_plan import EITHER, GRADE, ORDER, TRANSPORT, UNREADABLE, FaultPlan
from support.hostile import ORDERS, hostile, obeys
from support.llm_server import LLMServer


def ask(server, content):
    body = {"model": "m", "messages": [{"role": "user", "content": content}]}
    answer = httpx.post(f"{server.url}/chat/completions", json=body, timeout=20).json()
    return json.loads(answer["choices"][0]["message"]["content"])


def test_it_speaks_embeddings_and_refuses_unknown_paths():
    with LLMServer(dims=3) as server:
        body = {"model": "e", "input": ["a", "some words"]}
        rows = httpx.post(f"{server.url}/embeddings", json=body, timeout=20).json()["data"]
        assert [len(row["embedding"]) for row in rows] == [3, 3]
        assert rows[0]["embedding"] != rows[1]["embedding"]
        assert httpx.get(f"{server.url}/models", timeout=20).status_code == 404


@pytest.mark.nightly(keep=5)
@pytest.mark.parametrize("number", range(len(ORDERS)))
def test_it_obeys_each_hostile_passage_that_leaves_its_fence(number):
    text = hostile(number, "weather")
    with LLMServer(truth=lambda *_: 1) as server:
        server.obeys = obeys
        held = f"<data-0a>\nq\n</data-0a>\n<data-0b>\n{text}\n</data-0b>"
        assert ask(server, held)["grade"] == 1
        assert ask(server, held.replace("data-0b", "data"))["grade"] == 5


def test_a_plan_depends_on_seed_and_question_only():
    bodies = [{"messages": [{"role": "user", "content": f"<data-{n:x}> {n}"}]} for n in range(2000)]
    first, second = FaultPlan(3, 0.2), FaultPlan(3, 0.2)
    forward = {n: first(0, bodies[n]) for n in range(2000)}
    backward = {n: second(9, bodies[n]) for n in reversed(range(2000))}
    assert forward == backward
    assert sum(first.given.values()) == pytest.approx(400, abs=80)
    assert set(first.given) == {*TRANSPORT, *UNREADABLE, *EITHER, *GRADE}
    assert first(0, {**bodies[0], "response_format": {"json_schema": {"name": "order"}}}) not in GRADE
    assert not set(ORDER) & set(first.given)
    first.sick = False
    assert first(0, bodies[0]) is None
