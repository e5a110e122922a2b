"""`raggs judge drift`: a server whose truth changes between the run and the check, and one whose truth does not."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import call
from support.llm_server import LLMServer
from support.project import Project, begin, make_project

from raggs.llm.ledger import LedgerLine, lines_in

MODEL = "openai/gpt-4.1-nano"
OLD, NEW = {"model": "gpt-4.1-nano-2025-04-14"}, {"model": "gpt-4.1-nano-2026-01-01"}
QUERIES = 24
CALLS = 30 + 20 + 7  # passages, repeats, and six canaries of which three share the grade of the original passage


def steady(query: str, passage: str) -> int:
    return len(query + passage) % 5 + 1


def noisy(truth: Callable[[str, str], int], seed: int) -> Callable[[str, str], int]:
    """The truth, off by one in four of ten answers, whatever the order of the calls."""
    times: Counter[tuple[str, str]] = Counter()

    def graded(query: str, passage: str) -> int:
        times[query, passage] += 1
        draw = random.Random(f"{seed} {query} {passage} {times[query, passage]}")
        return max(1, min(5, truth(query, passage) + draw.choice((0, 0, 0, 1, -1))))

    return graded


def generous(query: str, passage: str) -> int:
    return min(5, steady(query, passage) + 1)


@pytest.fixture
def project(server: LLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A run of 24 queries, graded by the old snapshot."""
    return graded_project(server, tmp_path, monkeypatch)


def graded_project(server: LLMServer, folder: Path, monkeypatch: pytest.MonkeyPatch, **judge: object) -> Project:
    made = make_project(folder / "project", queries=QUERIES, corpus=24)
    settings = {"judge": {"type": "litellm", "model": MODEL}, "canaries": 0.02, **judge}
    made.change(judge=settings, llm={"api_base": server.url, "backoff_s": 0.01}, rank=None)
    monkeypatch.chdir(made.folder)
    server.states, server.truth = OLD, noisy(steady, 1)
    call("run", "--config", made.config, "--quiet")
    return made


def drift(*options: object, code: int = 0, run: str = "runs/demo") -> str:
    result = call("judge", "drift", run, "--check", "c1", *options, code=code)
    return " ".join((result.stdout + result.stderr).split())


def result(name: str = "c1") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(f"runs/demo/drift/{name}.json").read_text())
    return found


def test_another_truth_is_drift_and_ends_with_code_7(project: Project, server: LLMServer) -> None:
    before, count = files_of(project), server.count
    server.states, server.truth = NEW, noisy(generous, 2)
    said = drift(code=7)
    assert "The judge has drifted: mean shift +" in said
    assert f"{MODEL} answered as {OLD['model']}, and now answers as {NEW['model']}." in said
    assert "the mean shift of grades is beyond its tolerance" in said
    assert f"--set judge.judge.model=openai/{NEW['model']} --dry-run" in said
    found = result()
    assert found["verdict"] == found["verdicts"]["shift"] == "drift"
    assert found["drift"]["agreement"]["bias"]["low"] > 0.25
    assert found["before"] == {MODEL: {OLD["model"]: found["before"][MODEL][OLD["model"]]}}
    assert set(found["now"][MODEL]) == {NEW["model"]}
    assert server.count - count == len([line for line in ledger() if line.outcome == "answered"])
    assert files_of(project) == before, "the run itself is unchanged"
    call("audit", "runs/demo")


def test_noise_alone_is_no_alarm(project: Project, server: LLMServer) -> None:
    server.truth = noisy(steady, 3)
    for number in range(8):
        said = drift("--check", f"c{number}")
        assert f"{MODEL} answers as {OLD['model']}, as in the run." in said
        assert result(f"c{number}")["verdict"] != "drift"
    equal = result("c0")["drift"]
    assert equal["agreement"]["exact"]["value"] < 0.9 and equal["noise"]["exact"]["value"] < 0.9, "it is noisy"


def files_of(project: Project) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in project.run.iterdir() if path.is_file()}


def ledger(name: str = "c1") -> list[LedgerLine]:
    return list(lines_in(Path(f"runs/demo/drift/{name}.ledger.jsonl")))


def test_the_same_name_pays_once_and_another_name_asks_again(project: Project, server: LLMServer) -> None:
    drift()
    count, first = server.count, Path("runs/demo/drift/c1.json").read_bytes()
    drift()
    assert server.count == count and Path("runs/demo/drift/c1.json").read_bytes() == first
    drift("--check", "c2")
    assert server.count > count
    assert [(each["qid"], each["doc_id"]) for each in result()["grades"]] == [
        (each["qid"], each["doc_id"]) for each in result("c2")["grades"]
    ], "the sample is fixed"


def test_killed_and_resumed_nothing_is_paid_twice(project: Project, server: LLMServer) -> None:
    server.truth = generous  # equal requests have equal answers, so both results are comparable
    count, server.delay_s = server.count, 0.05
    process = begin("judge", "drift", "runs/demo", "--check", "c1", "--quiet", env=dict(os.environ))
    process.wait(until=lambda: server.count >= count + 20)
    process.kill()
    assert server.count < count + CALLS and not Path("runs/demo/drift/c1.json").exists()
    server.delay_s = 0.0
    drift(code=7)
    unknown = sum(line.attempts for line in ledger() if line.outcome == "unknown")
    answered = sum(line.attempts for line in ledger() if line.outcome == "answered")
    assert answered <= server.count - count <= answered + unknown
    drift("--check", "calm", code=7)
    assert answered == sum(line.attempts for line in ledger("calm")), "as many calls as without a kill"
    resumed, calm = result(), result("calm")
    for each in (resumed, calm):
        del each["check"], each["usd"]
    assert resumed == calm


def test_the_default_costs_below_a_cent_and_a_dry_run_says_so(project: Project, server: LLMServer) -> None:
    count = server.count
    told = json.loads(call("judge", "drift", "runs/demo", "--check", "c1", "--dry-run", "--json").stdout)
    assert server.count == count and not Path("runs/demo/drift").exists()
    calls = sum(line["calls"] for line in told["estimates"])
    assert 0 < told["usd"] < 0.01
    drift()
    assert 0.8 * calls < server.count - count <= calls, "the dry run counts equal calls of canaries separately"
    assert 0 < result()["usd"] <= told["usd"]


def test_the_budget_ends_the_check_and_a_larger_one_continues_it(project: Project, server: LLMServer) -> None:
    count = server.count
    said = drift("--max-usd", 0.001, code=7)
    assert "paid answers are cached; to continue, run the same command with --max-usd" in said
    half = server.count
    assert half - count < CALLS
    drift()
    answered = sum(line.attempts for line in ledger() if line.outcome == "answered")
    assert server.count - count == answered


def test_failed_judgments_end_with_code_7_and_are_retried(project: Project, server: LLMServer) -> None:
    server.fault_for = lambda number, body: "400" if number % 10 == 0 else None
    said = drift(code=7)
    assert "failed — run the same command again to retry them" in said
    server.fault_for, count = None, server.count
    drift()
    assert 0 < server.count - count < CALLS / 2, "a failed answer repeats its passage, not the others"


def test_samples_of_the_run_show_the_noise(server: LLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graded_project(server, tmp_path, monkeypatch, samples=2)
    said = drift()
    assert "The judge's own noise is known from several grades of the run." in said
    found = result()
    assert found["noise_from"] == "run" and all(len(each["now"]) == 1 for each in found["grades"])
    assert found["drift"]["noise"]["cases"] == 30


def test_groups_are_shown_as_in_the_run(server: LLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graded_project(server, tmp_path, monkeypatch, group=4)
    shown = {json.dumps(body["messages"]) for body in server.requests}
    before = server.count
    drift("--canaries", 0, "--passages", 40)
    asked = {json.dumps(body["messages"]) for body in server.requests[before:]}
    assert asked and asked <= shown, "the same requests, word for word"
    assert len(result()["grades"]) >= 36


def test_single_passages_are_asked_about_word_for_word(project: Project, server: LLMServer) -> None:
    shown = {json.dumps(body) for body in server.requests}
    before = server.count
    drift("--canaries", 0)
    assert {json.dumps(body) for body in server.requests[before:]} <= shown


def test_a_changed_prompt_is_an_error_before_any_call(
    server: LLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = tmp_path / "mine.md"
    prompt.write_text(call("prompts", "show", "grade@1").stdout)
    graded_project(server, tmp_path, monkeypatch, prompt=str(prompt))
    prompt.write_text(prompt.read_text().replace("You grade passages", "You grade texts", 1))
    count = server.count
    assert "the judge has changed since the run" in drift(code=5)
    assert server.count == count


def test_a_judge_without_a_model_cannot_drift(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_project(tmp_path / "local", queries=2, rank=None)
    monkeypatch.chdir(made.folder)
    call("run", "--config", made.config, "--quiet")
    assert "the judge calls no model, so it cannot drift" in drift(code=5)
    assert "is not a name" in call("judge", "drift", "runs/demo", "--check", "../c", code=2).stderr


def test_the_output_is_short(project: Project) -> None:
    shown = call("judge", "drift", "runs/demo", "--check", "c1").stdout
    lines = shown.splitlines()
    assert len(lines) <= 25 and len(shown.split()) <= 200 and max(map(len, lines)) <= 100
    assert sum(line.startswith("next: ") for line in lines) == 1
