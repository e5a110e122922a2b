"""Rerankers that are paid, in a run: a server that fails a third of the time changes no list and hides no call."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.llm_reranks import SPOILT
from support.llm_server import LLMServer
from support.project import Project, environment, make_project, raggs
from support.reranking import KEY, KNOWN

from raggs.llm.ledger import LedgerLine

RERANKERS = ("litellm", "listwise", "pointwise")
TRANSPORT = ("429", "500", "503", "reset", "noise", "slow:5", "garbage", "cut body", "html")
CHAT = ("truncated", "empty", "refusal", "prose", "repeated label", "unknown label")
MARK = re.compile(r"data-[0-9a-f]+")


def trouble(seed: int):
    """At most two faults in a row for one question, by its words and not by the order of arrival."""
    turns: Counter[str] = Counter()

    def fault_for(number: int, body: dict[str, Any]) -> str | None:
        question = MARK.sub("", json.dumps(body.get("messages", [body])[:2], sort_keys=True))
        turns[question] += 1
        draw = random.Random(f"{seed} {question} {turns[question]}")
        if turns[question] > 2 or draw.random() > 0.35:
            return None
        return draw.choice((*TRANSPORT, *(SPOILT if "documents" in body else CHAT)))

    return fault_for


def project(folder: Path, **llm: Any) -> Project:
    entries = [
        {
            "type": "reranked",
            "name": kind,
            "of": {"type": "bm25", "k": 12},
            "by": {"type": kind, "model": KNOWN, **({"window": 6} if kind == "listwise" else {})},
            "k": 8,
        }
        for kind in RERANKERS
    ]
    settings = {"backoff_s": 0.001, "timeout_s": 2, "concurrency": 8, **llm}
    return make_project(folder, retrieve={"retrievers": entries}, llm=settings)


def run(made: Project, server: LLMServer, *more: str) -> str:
    known = environment(OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url)
    done = raggs("run", "--config", made.config, "--to", "retrieve", *more, env=known)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """The lists of a run without faults."""
    made = project(tmp_path_factory.mktemp("healthy") / "demo")
    with LLMServer() as server:
        run(made, server)
    return (made.run / "retrieve.jsonl").read_bytes()


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_server_that_fails_changes_no_list_and_every_call_is_in_the_ledger(healthy, seed, tmp_path):
    made = project(tmp_path / "demo")
    with LLMServer(fault_for=trouble(seed)) as server:
        run(made, server)
        assert (made.run / "retrieve.jsonl").read_bytes() == healthy
        lines = [
            LedgerLine.model_validate_json(line) for line in (made.run / "llm.ledger.jsonl").read_text().splitlines()
        ]
        assert sum(line.attempts for line in lines) == server.count
        assert {line.task for line in lines} == {"rerank", "relevance"}
        assert {line.stage for line in lines} == {"retrieve"}
        assert server.paid_twice == []
        asked = server.count
        run(made, server, "--force")
        assert server.count == asked, "a run from the cache asks nobody"


def test_the_dry_run_counts_them_and_the_doctor_knows_their_prices(tmp_path):
    made = project(tmp_path / "demo", prices={KNOWN: {"per_1k_searches": 2.0}})
    with LLMServer() as server:
        told = run(made, server, "--dry-run", "--json")
        lines = [line for line in json.loads(told)["estimates"] if line["stage"] == "retrieve"]
        assert [line["calls"] for line in lines] == [4, 4 * 3, 4 * 12]
        assert lines[0]["usd"] == pytest.approx(4 * 0.002)
        known = environment(OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url)
        assert f"{KNOWN}: $2 per 1,000 searches" in raggs("doctor", "--config", made.config, env=known).stdout
        assert server.count == 0
