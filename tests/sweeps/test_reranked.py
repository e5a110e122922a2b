"""Paid rerankers in a sweep: their lists, their times and their price at each k, and a provider that fails."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from support.llm_reranks import relevance
from support.llm_server import LLMServer
from support.reranking import KNOWN
from support.sweeping import make_sweep

from raggs.app.sweep import load_sweep, plan_sweep

PAID = {"type": "litellm", "model": KNOWN}
SEARCH = {KNOWN: {"per_1k_searches": 2.0}}


@pytest.fixture
def server(server: LLMServer, monkeypatch: pytest.MonkeyPatch) -> LLMServer:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    return server


def paid_sweep(folder: Path, reranker=PAID, **sections):
    axes = {"mode": "lexical", "k": [5, 10, 20], "reranker": ["none", reranker]}
    settings = {"axes": axes, "prices": SEARCH, "llm": {"backoff_s": 0.001}, "duplicates": None, **sections}
    return make_sweep(folder, **settings)


def test_each_pair_is_paid_for_once_and_each_k_has_a_time_of_its_own(tmp_path, server):
    server.delay_s = 0.02
    project = paid_sweep(tmp_path)
    plan = sum(line.calls for line in plan_sweep(load_sweep(project.config)).paid)
    report = project.sweep().report
    rows = {row.k: row for row in report.systems if row.latency.rerank is not None}
    assert sorted(rows) == [5, 10, 20], [row.failed for row in report.systems]
    for k, row in rows.items():
        assert row.latency.rerank.p50 >= 20, k
        assert row.latency.rerank.paid
        assert row.cost.rerank == pytest.approx(2.0), "a search for each of 1,000 questions, at any k"
    sizes = Counter(len(request["documents"]) for request in server.requests)
    assert sizes == {5: 6 + 6, 10: 6 + 3, 20: 3}, "six questions, and three that are timed again where k is another"
    asked = server.count
    assert asked <= plan
    again = paid_sweep(tmp_path).sweep().report
    assert server.count == asked
    assert again.choice == report.choice
    elsewhere = paid_sweep(tmp_path, name="elsewhere").sweep().report
    assert {row.k: row.latency.rerank for row in elsewhere.systems if row.latency.rerank is not None}.keys() == {
        5,
        10,
        20,
    }
    assert server.count == asked, "the times are kept too"


def test_its_lists_are_in_the_order_of_its_scores(tmp_path, server):
    project = paid_sweep(tmp_path)
    report = project.sweep().report
    asked, texts = (
        {row["_id"]: f"{row.get('title', '')}\n{row['text']}".strip() for row in map(json.loads, file.open())}
        for file in (tmp_path / "queries.jsonl", tmp_path / "corpus.jsonl")
    )
    rows = [row for row in report.systems if row.latency.rerank is not None]
    assert len(rows) == 3
    for row in rows:
        lists: dict[str, list[str]] = {}
        for line in (project.out / str(row.file)).read_text().splitlines():
            qid, _, doc_id, *_ = line.split()
            lists.setdefault(qid, []).append(doc_id)
        for qid, docs in lists.items():
            scores = [relevance(asked[qid], texts[doc_id]) for doc_id in docs]
            assert len(scores) == row.k and scores == sorted(scores, reverse=True)


def test_a_provider_that_dies_leaves_the_others(tmp_path, server):
    server.fault_for = lambda number, body: "500" if number > 4 else None
    report = paid_sweep(tmp_path, llm={"backoff_s": 0.001, "max_attempts": 2}).sweep().report
    named = {row.name: row.failed for row in report.systems}
    assert [name for name, failed in named.items() if failed is None] == [
        name for name in named if "litellm" not in name and KNOWN not in name
    ]
    assert all("the provider failed" in failed for failed in named.values() if failed)
