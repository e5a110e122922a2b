"""`raggs chunks make`: cuts that are paid, made once, in a step of their own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import Result
from support.cli import invoke
from support.llm_server import KEY, LLMServer
from support.project import begin

from raggs.parts.indexes.passages import PassageStore

PIECE = "The keeper of lighthouse {name} wrote letter number {number} to the harbour that evening, as he was used to."
CONFIG = """
workspace: runs
name: demo
corpus:
  type: folder
  path: docs
  chunker: {type: llm, model: openai/gpt-4o-mini, piece: 25, window: 200}
queries: {type: jsonl, path: queries.jsonl}
embed: {embedder: null}
retrieve: {retrievers: [{type: bm25, k: 5}]}
judge: {judge: {type: litellm, model: openai/gpt-4o-mini}}
"""


@pytest.fixture
def folder(tmp_path: Path, server: LLMServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "docs").mkdir()
    for name in "abc":
        lines = (PIECE.format(name=name, number=number) for number in range(30))
        (tmp_path / "docs" / f"{name}.md").write_text("\n".join(lines))
    (tmp_path / "queries.jsonl").write_text('{"qid": "q1", "text": "What did the keeper of lighthouse b write?"}\n')
    (tmp_path / "raggs.yaml").write_text(CONFIG)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(*words: str) -> Result:
    return invoke("chunks", "make", "--config", "raggs.yaml", *words)


def test_a_dry_run_sends_and_writes_nothing(folder: Path, server: LLMServer) -> None:
    before = sorted(folder.rglob("*"))
    told = json.loads(make("--dry-run", "--json").stdout)
    (line,) = told["estimates"]
    assert (told["cut"], told["before"], line["who"], line["exact"]) == (3, 0, "openai/gpt-4o-mini", False)
    assert 9 <= line["calls"] <= 18 and line["input_tokens"] > 1000 and 0 < told["usd"] < told["usd_at_most"]
    assert "3 documents to chunk" in make("--dry-run").stdout
    assert server.count == 0
    assert sorted(folder.rglob("*")) == before


def test_cuts_are_made_booked_and_then_found_by_a_run(folder: Path, server: LLMServer) -> None:
    made = make()
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith("3 documents chunked, 0 already chunked; ")
    lines = [json.loads(line) for line in (folder / "runs" / "chunks.ledger.jsonl").read_text().splitlines()]
    assert {(line["stage"], line["task"]) for line in lines} == {("chunks", "split")}
    count = server.count
    assert len(lines) == count
    ran = invoke("run", "--config", "raggs.yaml", "--to", "merge", "--quiet")
    assert ran.exit_code == 0, ran.output
    shown = json.loads(invoke("chunks", "show", "--config", "raggs.yaml", "--json").stdout)
    assert [len(file["chunks"]) for file in shown["files"]] == [10, 10, 10]
    assert make().stdout == "0 documents chunked, 3 already chunked\n"
    assert server.count == count
    assert KEY not in "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--config", "raggs.yaml", "--yes"),
        ("run", "--config", "raggs.yaml", "--dry-run"),
        ("validate", "raggs.yaml"),
        ("chunks", "show", "--config", "raggs.yaml"),
    ],
)
def test_nobody_else_pays_for_cuts(folder: Path, server: LLMServer, words: tuple[str, ...]) -> None:
    result = invoke(*words)
    assert server.count == 0
    if words[0] != "validate":
        assert result.exit_code == 3
        assert "raggs chunks make" in result.output


def test_the_budget_holds_over_all_invocations(folder: Path, server: LLMServer) -> None:
    stopped = make("--max-usd", "0.0005")
    assert stopped.exit_code == 7, stopped.output
    count = server.count
    assert make("--max-usd", "0.0005").exit_code == 7
    assert server.count - count <= 1
    assert make().exit_code == 0
    assert not server.paid_twice


def test_a_document_that_cannot_be_had_keeps_no_other_one_back(folder: Path, server: LLMServer) -> None:
    server.fault_for = lambda _, body: "400" if "lighthouse b" in str(body) else None
    result = make()
    assert result.exit_code == 7
    assert result.stdout.startswith("2 documents chunked, 0 already chunked; ")
    assert "b.md could not be chunked" in result.stderr
    server.fault_for = None
    assert make().stdout.startswith("1 document chunked, 2 already chunked; ")
    assert not server.paid_twice


def test_windows_without_an_answer_of_use_are_told(folder: Path, server: LLMServer) -> None:
    server.fault_for = lambda _, body: "split descending" if "lighthouse b" in str(body) else None
    result = make()
    assert result.exit_code == 0
    assert "had no usable answer and were split at their ends" in result.stdout


def test_what_no_answer_came_for_is_asked_again_on_request(folder: Path, server: LLMServer) -> None:
    server.fault_for = lambda _, body: "split descending" if "lighthouse b" in str(body) else None
    make()
    show = ("chunks", "show", "--config", "raggs.yaml", "--json")
    run = ("run", "--config", "raggs.yaml", "--to", "merge", "--quiet")
    assert invoke(*run).exit_code == 0
    before = [len(file["chunks"]) for file in json.loads(invoke(*show).stdout)["files"]]
    server.fault_for, count = None, server.count
    assert make().stdout == "0 documents chunked, 3 already chunked\n"
    assert json.loads(make("--again", "--dry-run", "--json").stdout)["cut"] == 1
    assert server.count == count
    assert make("--again").stdout.startswith("1 document chunked, 2 already chunked; ")
    assert [len(file["chunks"]) for file in json.loads(invoke(*show).stdout)["files"]] == [10, 10, 10] != before
    assert make("--again").stdout == "0 documents chunked, 3 already chunked\n"
    assert invoke(*run).exit_code == 0
    stored = [PassageStore.open(path) for path in (folder / "runs" / ".cache" / "corpora").glob("*/passages.sqlite")]
    assert sorted(map(len, stored)) == [sum(before), 30], "other cuts are other passages"
    for store in stored:
        store.close()


def test_what_stands_before_a_document_s_text_is_not_shown(folder: Path, server: LLMServer) -> None:
    path = folder / "docs" / "a.md"
    path.write_text(f"---\ntitle: Secret letters\n---\n{path.read_text()}")
    assert make().exit_code == 0
    assert not any("Secret" in str(body) for body in server.requests)
    shown = json.loads(invoke("chunks", "show", "--config", "raggs.yaml", "--json").stdout)
    assert [len(file["chunks"]) for file in shown["files"]] == [10, 10, 10]


def test_killed_and_resumed_nothing_is_paid_twice(folder: Path, server: LLMServer) -> None:
    server.delay_s = 0.05
    words = ("chunks", "make", "--config", "raggs.yaml", "--set", "llm.concurrency=1")
    process = begin(*words, env=dict(os.environ))
    process.wait(until=lambda: server.count >= 6)
    process.kill()
    count = server.count
    assert 6 <= count < 12
    assert make().exit_code == 0
    # the call that was on its way when the process died has no answer that anybody could keep
    assert len(server.paid_twice) <= 1
    whole = {json.dumps(body, sort_keys=True) for body in server.requests}
    assert server.count - len(whole) <= 1


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--set", "corpus.chunker={type: markdown}"), 2, "the chunker of this corpus is not paid"),
        (("--set", "corpus.chunker=null"), 2, "the chunker of this corpus is not paid"),
        (("--set", "corpus.chunker.window=40"), 5, "must be at least twice piece"),
    ],
)
def test_what_cannot_be_made_is_refused(folder: Path, words: tuple[str, ...], code: int, told: str) -> None:
    result = make(*words)
    assert (result.exit_code, told in result.output) == (code, True), result.output


def test_without_a_key_nothing_begins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    result = make()
    assert result.exit_code == 3
    assert "OPENAI_API_KEY" in result.output
    assert make("--dry-run").exit_code == 0


def test_the_configuration_is_an_argument_or_lies_here(folder: Path) -> None:
    shown = invoke("chunks", "make", "--dry-run", "--config", "raggs.yaml").stdout
    assert invoke("chunks", "make", "--dry-run").stdout == shown != ""
    assert invoke("chunks", "make", "raggs.yaml", "--dry-run").stdout == shown


def test_a_resumed_cut_stops_at_another_snapshot(folder: Path, server: LLMServer) -> None:
    server.states = {"model": "old-1"}
    assert make("--set", "budget.max_calls=3", "--set", "llm.concurrency=1").exit_code == 7
    server.states = {"model": "new-2"}
    stopped = make()
    assert (
        stopped.exit_code == 7
        and "now answers as new-2, but earlier answers of this run are from old-1" in stopped.stderr
    )
    assert make("--allow-mixed").exit_code == 0
    assert not server.paid_twice
