"""A depth that is routed, beside fixed ones: whose list each question has, what that takes, what cannot be read."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.cli import invoke
from support.llm_server import LLMServer
from support.paidsweeps import paid_sweep
from support.reranking import KNOWN
from support.sweeping import SweepProject, make_sweep

from raggs.app.sweep import SweepResult, load_sweep, plan_sweep
from raggs.parts.rerankers import RerankedPassage, Reranking
from raggs.sweeps.reranking import combined_reranking

BASE, DEEP = 12, 20
WHEN = {"head_margin": 0.1}
ROUTED = {"type": "routed", "base": BASE, "deep": DEEP, "when": WHEN}


def routed(**when: Any) -> dict[str, Any]:
    return {**ROUTED, "when": when}


def lists(project: SweepProject, name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (project.out / "runs" / f"{name}.trec").read_text().splitlines():
        qid, _, doc, *_ = line.split()
        found.setdefault(qid, []).append(doc)
    return found


def axes(mode: object, *depths: object, **more: object) -> dict[str, object]:
    return {"embedder": {"type": "wordllama", "dims": 64}, "mode": mode, "k": list(depths), **more}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[SweepProject, SweepResult]:
    grid = axes(["dense", "lexical", "hybrid"], BASE, DEEP, ROUTED)
    project = make_sweep(tmp_path_factory.mktemp("routed"), axes=grid, prices={"generator": {"input": 1.0}})
    return project, project.sweep()


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_each_question_has_the_shallow_or_the_deep_list_and_the_row_says_how_many(swept: Any, mode: str) -> None:
    project, result = swept
    rows = {row.name: row for row in result.report.systems}
    name = next(name for name in rows if name.startswith(mode) and name.endswith("routed"))
    shallow, deep = (lists(project, name.replace("routed", f"k{k}")) for k in (BASE, DEEP))
    found = lists(project, name)
    chosen = [found[qid] == deep[qid] for qid in found]
    assert all(found[qid] == (deep if far else shallow)[qid] for qid, far in zip(found, chosen, strict=True))
    assert 0 < sum(chosen) < len(chosen)
    assert rows[name].escalated == pytest.approx(sum(chosen) / len(chosen))
    assert rows[name].mean_k == pytest.approx(BASE + rows[name].escalated * (DEEP - BASE))
    assert rows[name].latency.total is not None and rows[name].cost.total is not None
    assert rows[name.replace("routed", f"k{BASE}")].escalated is None


def test_what_a_mode_has_no_signal_for_is_left_out_with_a_reason_and_fixed_depths_alone_are_an_axis(swept: Any) -> None:
    _, result = swept
    assert any("k routed: when.head_margin needs a vector search" in why for why in result.report.left_out)
    assert {(part.against, part.level) for part in result.report.effects if part.axis == "k"} == {("12", "20")}
    assert {part.k for part in result.report.steps} == {DEEP}
    assert any(row.name.endswith("routed") for row in result.report.systems)


def test_another_threshold_is_another_system_and_the_same_one_is_kept(swept: Any) -> None:
    project, result = swept
    again = project.sweep().report
    assert [row.fingerprint for row in again.systems] == [row.fingerprint for row in result.report.systems]
    prints = {row.fingerprint for row in result.report.systems if row.name.endswith("routed")}
    project.change(axes=axes("dense", routed(head_margin=0.2)))
    assert not prints & {row.fingerprint for row in project.sweep().report.systems}


@pytest.fixture
def server(server: LLMServer, monkeypatch: pytest.MonkeyPatch) -> LLMServer:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    return server


def test_a_paid_reranker_reads_more_for_those_questions_alone_and_entropy_makes_it_read_twice(
    tmp_path: Path, server: LLMServer
) -> None:
    settings: dict[str, Any] = {"prices": {KNOWN: {"per_1k_searches": 2.0}}, "duplicates": None}
    settings |= {"latency": {"passes": 1, "warmup": 0, "queries": 1}, "llm": {"backoff_s": 0.001}}
    by = {"type": "litellm", "model": KNOWN}
    project = make_sweep(tmp_path / "margin", axes=axes("dense", ROUTED, reranker=[by]), **settings)
    plan = sum(line.calls for line in plan_sweep(load_sweep(project.config)).paid)
    (row,) = project.sweep().report.systems
    deep = round(6 * (row.escalated or 0))
    sizes = Counter(len(request["documents"]) for request in server.requests)
    assert 0 < deep < 6 and sizes == {BASE: 6 - deep, DEEP: deep} and server.count <= plan
    assert row.cost is not None and row.cost.rerank == pytest.approx(2.0)
    server.requests.clear()
    twice_read = make_sweep(tmp_path / "entropy", axes=axes("dense", routed(entropy=0.0), reranker=[by]), **settings)
    (row,) = twice_read.sweep().report.systems
    sizes = Counter(len(request["documents"]) for request in server.requests)
    assert row.escalated == 1 and sizes == {BASE: 6, DEEP - BASE: 6}, "what was read before is not read again"
    count = server.count
    assert all(line.calls == 0 for line in plan_sweep(load_sweep(twice_read.config)).paid) and server.count == count


def test_vectors_that_only_tell_a_signal_are_paid_for_too(tmp_path: Path, server: LLMServer) -> None:
    depth = {"type": "routed", "base": 3, "deep": 6, "when": {"rewrite": 0.0}}
    more = {"rewrite": ["clean"], "k": [6, depth], "reranker": ["none"]}
    project = paid_sweep(tmp_path, server, axes=more, latency={"passes": 1, "warmup": 0, "queries": 1})
    rows = {row.levels["k"]: row for row in project.sweep().report.systems}
    assert rows["routed"].cost.embed == pytest.approx(2 * rows["6"].cost.embed) and rows["6"].cost.embed > 0
    count = server.count
    project.sweep()
    assert server.count == count


def test_reading_twice_takes_both_unless_scores_hang_on_nothing_else() -> None:
    def reranking(count: int, ms: float) -> Reranking:
        ranked = tuple(RerankedPassage(str(at), 0.0) for at in range(count))
        return Reranking(ranked, tokens=count, ms=ms, calls=1, usd=count / 1000)

    shallow, deep = reranking(50, 300.0), reranking(100, 500.0)
    alone = combined_reranking(shallow, deep, independent=True)
    assert (alone.ms, alone.tokens, alone.usd) == (300 + 300, 100, 0.1)  # the second call reads fifty
    together = combined_reranking(shallow, deep, independent=False)
    assert (together.ms, together.tokens, together.calls) == (800, 150, 2)
    assert together.usd == pytest.approx(0.15)


@pytest.mark.nightly(keep=3)
@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"axes": axes("dense", {**ROUTED, "deep": 5})}, "must be greater than base (12)"),
        ({"axes": axes("dense", routed())}, "no signal has a threshold"),
        ({"axes": axes("dense", {**ROUTED, "wen": {}})}, "unknown key"),
        ({"axes": axes("dense", routed(entropy=0.5))}, "no system is left"),
        ({"systems": {"mine": {"mode": "lexical", "k": ROUTED}}}, "system 'mine': when.head_margin needs"),
        ({"axes": axes("dense", routed(rewrite=0.1), rewrite=["none"])}, "no system is left"),
        ({"axes": axes("dense", 0)}, "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path: Path, keys: dict[str, Any], told: str) -> None:
    project = make_sweep(tmp_path, **keys)
    result = invoke("sweep", "--config", project.config, "--dry-run")
    assert result.exit_code != 0 and "Traceback" not in result.output
    assert told in " ".join(result.output.split()), json.dumps(result.output)
