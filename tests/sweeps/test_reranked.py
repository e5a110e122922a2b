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

from raggs.app.audit import audit
from raggs.app.sweep import load_sweep, plan_sweep
from raggs.base.files import hash_file
from raggs.metrics import GradeScale, Qrels, Run, evaluate
from raggs.sweeps.reranking import WEIGHTS
from raggs.sweeps.store import SweepStore

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


def boosted(weight):
    return {"type": "boosted", "by": PAID, "weight": weight}


def fitted_sweep(folder: Path, **sections):
    axes = {"mode": "lexical", "k": 10, "reranker": ["none", PAID, boosted(0.5), boosted("fit")]}
    return paid_sweep(folder, axes=axes, **sections)


def lists_of(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        qid, _, doc_id, *_ = line.split()
        found.setdefault(qid, []).append(doc_id)
    return found


def fitted_row(report):
    (row,) = [row for row in report.systems if row.fit is not None]
    return row


def test_a_weight_is_chosen_on_the_other_half_and_the_reranker_is_paid_once_for_all_weights(tmp_path, server):
    project = fitted_sweep(tmp_path)
    alone = paid_sweep(tmp_path / "alone", axes={"mode": "lexical", "k": 10, "reranker": ["none", PAID]})
    assert plan_sweep(load_sweep(project.config)).paid == plan_sweep(load_sweep(alone.config)).paid
    report = project.sweep().report
    assert not [row.failed for row in report.systems if row.failed]
    assert server.count == 6, "a call a question, for the plain reranker, a given weight and a fitted one"
    row = fitted_row(report)
    part = row.fit
    halves = {qid: part.chosen[0 if qid in part.first else 1] for qid in lists_of(project.out / row.file)}
    assert len(part.first) == 3 and len(halves) == 6
    by_weight = {weight: lists_of(project.out / name) for weight, name in zip(WEIGHTS, part.files, strict=True)}
    own = lists_of(project.out / row.file)
    assert own == {qid: by_weight[weight][qid] for qid, weight in halves.items()}
    plain, given = (lists_of(project.out / each.file) for each in report.systems[1:3])
    assert by_weight[0.0] == plain
    assert by_weight[0.5] == given != plain
    assert row.cost.rerank == report.systems[1].cost.rerank
    assert row.latency.rerank is not None and row.latency.rerank.p50 >= report.systems[1].latency.rerank.p50
    (line,) = [each for each in report.notes if each.startswith(f"{row.name}: weight")]
    assert f"weight {part.chosen[0]:g} on 3 queries and {part.chosen[1]:g} on the others" in line
    assert line in " ".join((project.out / "sweep.md").read_text().split())
    again = fitted_sweep(tmp_path, name="elsewhere").sweep().report
    assert server.count == 6, "what it read is kept"
    assert fitted_row(again).fit.chosen == part.chosen


def test_each_weight_is_the_best_of_the_half_that_it_is_not_used_for(tmp_path, server):
    project = fitted_sweep(tmp_path)
    report = project.sweep().report
    part = fitted_row(report).fit
    first = report.quality[0]
    assert part.measure == first
    labels: dict[str, dict[str, int]] = {}
    for line in (tmp_path / "qrels.txt").read_text().splitlines():
        qid, _, doc_id, grade = line.split()
        labels.setdefault(qid, {})[doc_id] = int(grade)
    values: dict[float, dict[str, float]] = {}
    for weight, name in zip(WEIGHTS, part.files, strict=True):
        lists = lists_of(project.out / name)
        run = {qid: {doc_id: -float(at) for at, doc_id in enumerate(docs)} for qid, docs in lists.items()}
        values[weight] = dict(evaluate(Qrels.of(labels, GradeScale.of(1, 5)), Run.of(run), [first]).per_query[first])
    assert len({tuple(each.values()) for each in values.values()}) > 1, "a weight changes scores"
    for chosen, inside in zip(part.chosen, (False, True), strict=True):
        means = {
            weight: sum(value for qid, value in each.items() if (qid in part.first) == inside)
            for weight, each in values.items()
        }
        assert means[chosen] == pytest.approx(max(means.values()))


def rehash(folder: Path) -> None:
    store = SweepStore(folder)
    manifest = store.manifest()
    files = {name: hash_file(folder / name) for name in manifest.files}
    (folder / "manifest.json").write_text(manifest.model_copy(update={"files": files}).sealed().model_dump_json())


def test_an_audit_chooses_the_weights_again(tmp_path, server):
    project = fitted_sweep(tmp_path)
    row = fitted_row(project.sweep().report)
    assert audit(project.out).ok
    path = project.out / "systems.jsonl"
    lines = path.read_text()
    edited = [json.loads(line) for line in lines.splitlines()]
    edited[-1]["fit"]["chosen"] = [9.0, 9.0]
    path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in edited))
    rehash(project.out)
    assert any(
        "weights differ from those computed from the lists of each weight" in each.message
        for each in audit(project.out).findings
    )
    path.write_text(lines)
    shown, other = project.out / row.file, row.fit.files[WEIGHTS.index(2.0 if 2.0 not in row.fit.chosen else 0.0)]
    shown.write_bytes((project.out / other).read_bytes())
    rehash(project.out)
    assert any("its lists do not match its weights" in each.message for each in audit(project.out).findings)


def test_too_few_questions_leave_the_system_unfinished_and_the_others_whole(tmp_path, server):
    axes = {"mode": "lexical", "k": 10, "reranker": [PAID, boosted("fit")]}
    made = [row.failed for row in paid_sweep(tmp_path, axes=axes, count=1).sweep().report.systems]
    assert made[0] is None and "weight: fit needs queries in both halves" in made[1]


def test_a_depth_that_is_routed_has_no_weight_to_fit(tmp_path, server):
    routed = {"base": 5, "deep": 10, "when": {"entropy": 0.5}}
    axes = {"mode": "lexical", "k": [10, routed], "reranker": [boosted("fit")]}
    report = paid_sweep(tmp_path, axes=axes).sweep().report
    assert any("weight: fit needs the same number of candidates" in each for each in report.left_out)
    assert len(report.systems) == 1
