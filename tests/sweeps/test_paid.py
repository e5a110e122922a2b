"""Sweeps whose parts are paid: a server that fails changes no list, and nothing is paid for twice."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.llm_reranks import SPOILT
from support.llm_server import KEY, LLMServer
from support.paidsweeps import EMBEDDER, RERANKERS, REWRITER, booked, calls, paid_sweep, usd, usd_of
from support.sweeping import SweepProject

pytestmark = pytest.mark.usefixtures("provider_key")

TRANSPORT = ("429", "500", "503", "reset", "noise", "garbage", "cut body", "html")
CHAT = ("truncated", "empty", "refusal", "prose", "unknown label")
VECTORS = ("shorter answer", "wrong dimension", "nan", "infinity", "null", "same index")
MARK = re.compile(r"data-[0-9a-f]+")


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Lists and scores where nothing fails."""
    with pytest.MonkeyPatch.context() as patch, LLMServer() as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        project = paid_sweep(tmp_path_factory.mktemp("healthy"), server)
        project.call()
        return project.files()


def planned(project: SweepProject) -> dict[str, float]:
    """Calls and USD of a dry run."""
    lines = json.loads(project.call("--dry-run", "--json").stdout)["paid"]
    return {name: sum(line[name] for line in lines) for name in ("calls", "usd")}


def rows(project: SweepProject) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads((project.out / "sweep.json").read_text())["systems"]}


def kind(body: dict[str, Any]) -> str:
    return str(body["model"]).rpartition("/")[2]


def test_what_the_server_counts_is_what_the_ledger_says_and_no_more_than_was_planned(
    server: LLMServer, tmp_path: Path
) -> None:
    project = paid_sweep(tmp_path, server)
    plan = planned(project)
    assert server.count == 0
    assert not project.out.exists()
    project.call("--quiet")
    assert server.count == calls(project) <= plan["calls"]
    assert sum(map(usd_of, server.requests)) <= usd(project) <= plan["usd"]
    assert not server.paid_twice
    asked = server.count
    assert planned(project) == {"calls": 0, "usd": 0}
    assert "unchanged" in project.call().stdout
    assert server.count == asked


def test_a_rewriter_without_a_price_has_an_unknown_cost(server: LLMServer, tmp_path: Path) -> None:
    project = paid_sweep(tmp_path, server, axes={"reranker": ["none"]})
    project.change(prices={EMBEDDER: {"input": 1.0, "output": 2.0}}, budget={"max_usd": None})
    project.call("--quiet")
    for row in rows(project).values():
        lines = {line["model"]: line["price"] for line in row["cost"]["lines"]}
        assert lines[EMBEDDER] == 1.0
        assert (row["cost"]["embed"] is None) is (REWRITER in lines)
        assert lines.get(REWRITER) is None
    assert sum(REWRITER in name for name in map(str, rows(project).values())) == 1


def test_a_custom_retriever_of_several_systems_is_planned_once(server: LLMServer, tmp_path: Path) -> None:
    by = {"type": "pointwise", "model": RERANKERS["pointwise"]}
    own = {"type": "reranked", "of": {"type": "bm25", "k": 6}, "by": by}
    axes = {"rewrite": ["none"], "mode": [own], "k": [4, 6]}
    other = {"type": "litellm", "model": RERANKERS["litellm"]}
    project = paid_sweep(tmp_path, server, axes={**axes, "reranker": ["none", other]})
    lines = json.loads(project.call("--dry-run", "--json").stdout)["paid"]
    assert sum(line["calls"] for line in lines if line["model"] == RERANKERS["pointwise"]) == 4 * 6
    project.call("--quiet")
    assert Counter(map(kind, server.requests))["pointer"] <= 4 * 6
    assert not server.paid_twice


def test_a_dry_run_asks_nobody_though_the_answers_are_gone(server: LLMServer, tmp_path: Path) -> None:
    project = paid_sweep(tmp_path, server)
    project.call("--quiet")
    asked, lines = server.count, len(booked(project))
    answers = [path for path in (tmp_path / "runs").rglob("*") if path.name.startswith("cache.db")]
    assert answers
    for path in answers:
        path.unlink()
    project.call("--dry-run")
    assert (server.count, len(booked(project))) == (asked, lines)


def trouble(seed: int) -> Any:
    """At most two faults in a row for one question, by its words and not by the order of arrival."""
    turns: Counter[str] = Counter()

    def fault_for(number: int, body: dict[str, Any]) -> str | None:
        question = MARK.sub("", json.dumps(body.get("messages", [body])[:2], sort_keys=True))
        turns[question] += 1
        draw = random.Random(f"{seed} {question} {turns[question]}")
        if turns[question] > 2 or draw.random() > 0.35:
            return None
        own = VECTORS if "input" in body else SPOILT if "documents" in body else CHAT
        return draw.choice((*TRANSPORT, *own))

    return fault_for


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_server_that_fails_changes_no_list_and_no_score(healthy: dict[str, bytes], seed: int, tmp_path: Path) -> None:
    with LLMServer(fault_for=trouble(seed)) as server:
        project = paid_sweep(tmp_path, server)
        project.call("--quiet")
        assert project.files() == healthy
        assert calls(project) == server.count
        assert not server.paid_twice


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("dying", [EMBEDDER, REWRITER, *RERANKERS.values()])
def test_systems_whose_provider_dies_are_named_and_the_next_sweep_finishes_them(
    healthy: dict[str, bytes], dying: str, tmp_path: Path
) -> None:
    turns: Counter[str] = Counter()
    sick = True

    def fault_for(number: int, body: dict[str, Any]) -> str | None:
        turns[kind(body)] += 1
        return "500" if sick and kind(body) in dying and turns[kind(body)] > 2 else None

    with LLMServer(fault_for=fault_for) as server:
        project = paid_sweep(tmp_path, server, llm={"max_attempts": 2, "outage_after": 3})
        errors = project.call("--quiet", code=7).stderr
        told = dying.rpartition("/")[2]
        lost = {name for name, row in rows(project).items() if row["failed"]}
        assert lost == {name for name in rows(project) if told in name}
        assert all(name in errors for name in lost)
        whole = json.loads(healthy["scores"])
        for name, row in rows(project).items():
            if name in lost:
                assert row["file"] is None and not row["scores"] and row["failed"]
            else:
                assert row["scores"] == whole[name][0]
                assert (project.out / row["file"]).read_bytes() == healthy[Path(row["file"]).name]
        sick = False
        plan, asked = planned(project), server.count
        project.call("--quiet")
        assert project.files() == healthy
        assert calls(project) == server.count <= asked + plan["calls"]
        assert not server.paid_twice


def test_a_list_that_was_reranked_in_part_is_no_list(healthy: dict[str, bytes], tmp_path: Path) -> None:
    """One window's question fails for good: the window would stay in the order of the retriever."""
    sick = True

    def fault_for(number: int, body: dict[str, Any]) -> str | None:
        text = json.dumps(body)
        return "400" if sick and kind(body) == "orderer" and text.count("Passage C") == 0 else None

    listwise = {"type": "listwise", "model": RERANKERS["listwise"], "window": 4, "step": 4}
    with LLMServer(fault_for=fault_for) as server:
        project = paid_sweep(tmp_path, server, axes={"rewrite": "none", "reranker": ["none", listwise]})
        errors = project.call("--quiet", code=7).stderr
        [lost] = [row for row in rows(project).values() if row["failed"]]
        assert "4 of 4 lists could not be reranked whole" in lost["failed"]
        assert lost["name"] in errors
        sick = False
        project.call("--quiet")
        assert not server.paid_twice
        assert not [row for row in rows(project).values() if row["failed"]]


def waits(project: SweepProject) -> dict[str, Any]:
    """By system, the time until its question is embedded."""
    return {name: row["latency"]["embed"] for name, row in rows(project).items()}


def test_times_of_paid_calls_are_kept_where_their_answers_are(server: LLMServer, tmp_path: Path) -> None:
    project = paid_sweep(tmp_path, server)
    project.call("--quiet")
    asked, first = server.count, waits(project)
    project.change(name="again")
    project.call("--quiet")
    report = json.loads((tmp_path / "sweeps" / "again" / "sweep.json").read_text())
    assert {row["name"]: row["latency"]["embed"] for row in report["systems"]} == first
    assert server.count == asked
    assert not [note for note in report["notes"] if "not timed" in note]


def test_an_answer_from_the_cache_is_never_a_time(server: LLMServer, tmp_path: Path) -> None:
    """All answers were paid for by another one's work: a few calls that nobody has made tell how long one takes."""
    project = paid_sweep(tmp_path, server, axes={"reranker": "none"})
    project.call("--quiet")
    shutil.rmtree(project.out)
    shutil.rmtree(tmp_path / "runs" / ".cache" / "sweeps")
    asked, server.delay_s = server.count, 0.05
    plan = planned(project)
    project.call("--quiet")
    assert server.count - asked == 2 * 3 == calls(project) <= plan["calls"], (
        "three questions of a rewriter and embedder"
    )
    assert not server.paid_twice
    assert all(wait["p50"] >= 50 and wait["calls"] == 3 for wait in waits(project).values())


def test_calls_for_the_time_alone_are_planned_and_may_fail(server: LLMServer, tmp_path: Path) -> None:
    project = paid_sweep(tmp_path, server, axes={"reranker": "none"})
    project.call("--quiet")
    shutil.rmtree(project.out)
    for path in (tmp_path / "runs" / ".cache" / "sweeps").iterdir():
        if '"ms"' in path.read_text():
            path.unlink()
    before, asked = planned(project), server.count
    assert before["calls"] == 2 * 3
    server.fault_for = lambda number, body: "500"
    project.change(llm={**project.settings()["llm"], "max_attempts": 1})
    errors = project.call().stderr
    assert "its latency is unknown" in errors
    assert server.count - asked == 2, "who does not answer once is not asked again for the time alone"
    assert not [row for row in rows(project).values() if row["failed"]]
    assert set(waits(project).values()) == {None}


def test_a_retriever_of_ones_own_that_is_paid_is_planned_and_neither_timed_nor_priced(
    server: LLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"type": "reranked", "of": {"type": "bm25", "k": 6}, "by": {"type": "litellm", "model": RERANKERS["litellm"]}}
    axes = {"rewrite": "none", "reranker": "none", "embedder": "wordllama", "mode": ["lexical", own]}
    project = paid_sweep(tmp_path, server, axes=axes)
    plan = planned(project)
    with monkeypatch.context() as patch:
        patch.delenv("OPENAI_API_KEY")
        assert "needs OPENAI_API_KEY" in project.call(code=3).stderr
    project.call("--quiet")
    assert server.count == calls(project) == plan["calls"] == 4
    [row] = [row for row in rows(project).values() if row["name"].startswith("reranked")]
    assert row["latency"]["total"] is None
    assert row["cost"]["total"] is None
    assert planned(project)["calls"] == 0


def test_a_thousand_questions_cost_what_the_server_was_paid(server: LLMServer, tmp_path: Path) -> None:
    project = paid_sweep(tmp_path, server)
    project.call("--quiet")
    for name, row in rows(project).items():
        lines = [line for line in booked(project) if line["outcome"] == "answered"]
        told = name.rpartition("-")[2]
        paid = sum(line["usd"] for line in lines if line["stage"] == "rerank" and line["model"].endswith(told))
        assert row["cost"]["rerank"] == pytest.approx(1000 * paid / 4)
        rewriting = sum(line["usd"] for line in lines if line["stage"].startswith("rewrite by") and "rewriter" in name)
        questions = [body for body in server.requests if "input" in body and len(body["input"]) == 1]
        embedding = sum(map(usd_of, questions))
        assert row["cost"]["embed"] == pytest.approx(1000 * (rewriting + embedding) / 4, rel=0.2), "tokens by our count"
    rerank = sum(map(usd_of, (body for body in server.requests if "documents" in body)))
    assert rerank == pytest.approx(
        sum(line["usd"] for line in booked(project) if line["model"] == RERANKERS["litellm"])
    )


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("search", [{"type": "exhaustive"}, {"type": "halving", "queries": [2, "all"]}])
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("401", "the provider rejected the key for openai/orderer"),
        ("404", "the provider does not know the model openai/orderer"),
    ],
)
def test_a_key_or_a_model_that_one_provider_refuses_stops_its_systems_alone(
    tmp_path: Path, search: dict[str, Any], fault: str, said: str
) -> None:
    with LLMServer(fault_for=lambda number, body: fault if kind(body) == "orderer" else None) as server:
        project = paid_sweep(tmp_path, server, search=search)
        errors = project.call("--quiet", code=7).stderr
        lost = {name for name, row in rows(project).items() if row["failed"]}
        assert lost == {name for name in rows(project) if "orderer" in name}
        assert said in errors
        server.fault_for = None
        project.call("--quiet")
        assert not server.paid_twice
        assert calls(project) == server.count


def test_a_resumed_sweep_stops_at_another_snapshot(server: LLMServer, tmp_path: Path) -> None:
    project = paid_sweep(tmp_path, server)
    server.states = {"model": "old-1"}
    project.call("--quiet", "--set", "budget.max_calls=6", code=7)
    server.states = {"model": "new-2"}
    said = project.call("--quiet", code=7).stderr
    assert "now answers as new-2, but earlier answers of this run are from old-1" in said and "--allow-mixed" in said
    project.call("--quiet", code=7)
    project.call("--quiet", "--allow-mixed")
    assert not server.paid_twice
