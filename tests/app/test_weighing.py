"""Weighing in a process of its own: as here, and never an error of the server's."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest
from support.reviewing import speak
from support.reviewpage import differing, judge_run, write_run

from raggs.app import serve
from raggs.app.review_plan import PlanInputs
from raggs.app.serve import BackgroundProcess, weigher
from raggs.base.artifacts import RetrieveRecord
from raggs.base.jsonl import write_records
from raggs.reviewing.deciding import Dispute, WeighedDisputes
from raggs.runs.manifests.open_run import OpenedRun, open_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[OpenedRun, Path, list[Dispute]]:
    """A run of two systems, somebody who contradicts its judge here and there, and where."""
    folder = tmp_path_factory.mktemp("made")
    run = judge_run(write_run(folder / "runs" / "demo"), lambda record: record.rank)
    lists = [
        RetrieveRecord(qid=f"q{query:05}", retriever=name, rank=rank + 1, doc_id=f"d{query}-{doc}", score=9.0 - rank)
        for name, docs in (("one", (0, 1, 2)), ("other", (3, 2, 1)))
        for query in range(3)
        for rank, doc in enumerate(docs)
    ]
    write_records(run / "retrieve.jsonl", lists)
    reviews = folder / "reviews"
    speak(run, reviews, lambda each, grade: 5 if each.rank == 1 else grade, reads=lambda each: each.rank < 3)
    opened = open_run(run)
    return opened, reviews, differing(opened, reviews)


def finished(ordered: WeighedDisputes, found: list[Dispute]) -> WeighedDisputes:
    """Wait until disputes are weighed."""
    while ordered.weighed(found) and ordered.running:
        pass
    return ordered


def test_a_process_of_its_own_gives_the_same_order_and_reasons(made: tuple[OpenedRun, Path, list[Dispute]]) -> None:
    run, reviews, found = made
    here, there = (
        finished(WeighedDisputes(weigher([run], reviews)), found),
        finished(WeighedDisputes(weigher([run], reviews, aside=BackgroundProcess())), found),
    )
    assert here.weights.impact
    assert any(here.weights.worth.values())
    assert here.weights.why
    one, other = here.weights, there.weights
    assert (one.told, one.worth, {**one.why}) == (other.told, other.worth, {**other.why})


@pytest.mark.parametrize(
    ("child", "told"),
    [
        ("raise SystemExit(3)", "the process that weighs disputes ended with code 3"),
        ("import sys; sys.stdin.readline()", "the process that weighs disputes returned no result"),
    ],
)
def test_a_process_that_fails_leaves_the_farthest_apart_first(
    made: tuple[OpenedRun, Path, list[Dispute]], child: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, reviews, found = made
    monkeypatch.setattr(serve, "CHILD", child)
    ordered = finished(WeighedDisputes(weigher([run], reviews, aside=BackgroundProcess())), found)
    apart = [each.apart for each in sorted(ordered.weighed(found), key=ordered.place)]
    assert (ordered.weights.impact, ordered.weights.told) == (False, told)
    assert apart == sorted(apart, reverse=True)


def test_it_ends_with_the_server(made: tuple[OpenedRun, Path, list[Dispute]], monkeypatch: pytest.MonkeyPatch) -> None:
    run, reviews, found = made
    monkeypatch.setattr(serve, "CHILD", "import time; time.sleep(600)")
    aside = BackgroundProcess()
    ordered = WeighedDisputes(weigher([run], reviews, aside=aside))
    waiting = threading.Thread(target=finished, args=[ordered, found])
    waiting.start()
    while aside._process is None:
        waiting.join(0.01)
    aside.close()
    waiting.join(20)
    assert ordered.weights.told == "the process that weighs disputes ended with code -9"
    again = finished(WeighedDisputes(weigher([run], reviews, aside=aside)), found)
    assert again.weights.told == "the server is stopping"


def test_a_process_that_ended_before_it_was_asked_has_a_code_and_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "CHILD", "raise SystemExit(3)")
    start = BackgroundProcess._start

    def ended(aside: BackgroundProcess) -> subprocess.Popen[bytes] | None:
        process = start(aside)
        assert process is not None and process.wait() == 3
        return process

    monkeypatch.setattr(BackgroundProcess, "_start", ended)
    asked = PlanInputs(run=Path("run"), folder=None, systems=(), measures=(), grades=())
    assert BackgroundProcess().weigh(asked).told == "the process that weighs disputes ended with code 3"
