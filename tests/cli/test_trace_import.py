"""`raggs questions import` of traces: queries, the logged retriever as a system of `raggs eval`, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from support.cli import invoke
from support.traces import Searched, json_lines, langfuse, otlp

from raggs.parts.queries.fields import made_id

CORPUS = {
    "p1": "Press the button for ten seconds to reset the clock.",
    "p2": "The manual is in the box.",
    "p3": "Soap.",
}
SEARCHES = [
    Searched("How do I reset the clock?", [("p1", "", 0.9), ("p2", "", 0.5)], latency_ms=120, feedback=1.0),
    Searched("Where is the manual?", [("x", CORPUS["p2"], 0.8), ("p1", "", 0.7), ("gone", "?", 0.1)], feedback=0.0),
    Searched("My name is John Smith, can I wash it?", [("p3", "", 0.3)], latency_ms=900),
]
LABELS = {SEARCHES[0].query: "p1", SEARCHES[1].query: "p1", "My name is [NAME], can I wash it?": "p3"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = ({"_id": name, "text": text} for name, text in CORPUS.items())
    (tmp_path / "corpus.jsonl").write_text(json_lines(list(rows)))
    (tmp_path / "traces.jsonl").write_text(json_lines(otlp(SEARCHES)))
    (tmp_path / "raggs.yaml").write_text(
        "corpus: {type: jsonl, path: corpus.jsonl}\nqueries: {type: traces, path: traces.jsonl}\n"
        "retrieve: {retrievers: [{type: bm25}]}\njudge: {judge: {type: qrels, path: qrels.txt}}\nname: demo\n"
    )
    (tmp_path / "qrels.txt").write_text("".join(f"{made_id(text)} 0 {doc} 1\n" for text, doc in LABELS.items()))
    return tmp_path


def run(*words: str) -> Result:
    return invoke("questions", "import", *words)


def rows(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_traces_become_queries_and_a_run_file(folder: Path) -> None:
    result = run("traces.jsonl", "--run-file", "logged.jsonl", "--config", "raggs.yaml")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "3 queries from 3 searches and 0 requests without a search"
    assert "personal data masked: name 1" in lines
    assert "signals: negative 1, positive 1" in lines
    assert "documents in the corpus: 4 found by id, 1 by text, 1 not found" in lines
    assert lines[-1] == "next: raggs eval --golden RUN --run logged=logged.jsonl"
    assert len(lines) <= 25 and len(result.stdout.split()) <= 200
    queries = {row["text"]: row for row in rows("questions.jsonl")}
    assert set(queries) == {SEARCHES[0].query, SEARCHES[1].query, "My name is [NAME], can I wash it?"}
    logged = [row for row in rows("logged.jsonl") if row["qid"] == queries[SEARCHES[1].query]["_id"]]
    assert [(row["doc_id"][:8], row["rank"], row["score"]) for row in logged] == [
        ("p2", 1, 0.8), ("p1", 2, 0.7), ("unmapped", 3, 0.1),
    ]  # fmt: skip
    assert {row["latency_ms"] for row in logged} == {100.0}
    everything = "".join(path.read_text() for path in folder.glob("*.jsonl") if path.name != "traces.jsonl")
    assert "Smith" not in everything


@pytest.mark.parametrize("name", ["logged.jsonl", "logged.csv", "logged.trec"])
def test_the_logged_retriever_is_a_system_of_eval(folder: Path, name: str) -> None:
    done = run("traces.jsonl", "--run-file", name, "--config", "raggs.yaml", "--quiet")
    assert done.exit_code == 0, done.output
    result = invoke("eval", "-g", "qrels.txt", "-r", f"logged={name}", "-m", "mrr@10", "--json")
    assert result.exit_code == 0, result.output
    assert f"{(1 + 1 / 2 + 1) / 3:.6f}" in result.stdout


def test_queries_of_traces_run_and_the_ids_of_a_golden_set_are_used(folder: Path) -> None:
    made = invoke("run", "--config", "raggs.yaml", "--yes", "--quiet")
    assert made.exit_code == 0, made.output
    again = run("traces.jsonl", "--run-file", "logged.jsonl", "-c", "raggs.yaml", "-g", "runs/demo")
    assert again.exit_code == 0, again.output
    assert "golden set: 3 of 3 queries in the log" in again.stdout
    assert "next: raggs eval --golden runs/demo --run logged=logged.jsonl" in again.stdout
    named = rows("runs/demo/queries.jsonl")
    assert {row["qid"] for row in rows("logged.jsonl")} == {row["qid"] for row in named}
    assert "Smith" not in (folder / "runs" / "demo" / "queries.jsonl").read_text()


def test_ids_of_a_golden_set_replace_those_of_the_words(folder: Path) -> None:
    Path("set/qrels").mkdir(parents=True)
    Path("set/queries.jsonl").write_text(json_lines([{"_id": "q1", "text": "how do I RESET the clock"}]))
    Path("set/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tp1\t1\n")
    Path("set/corpus.jsonl").write_text(Path("corpus.jsonl").read_text())
    result = run("traces.jsonl", "--run-file", "logged.trec", "-g", "set")
    assert result.exit_code == 0, result.output
    assert "golden set: 1 of 1 query in the log" in result.stdout
    assert (
        Path("logged.trec").read_text().startswith("q1 Q0 p1 1 0.9 logged\n")
        or "q1 Q0 p1 1 0.9" in Path("logged.trec").read_text()
    )


def test_a_dry_run_writes_nothing_and_json_has_every_count(folder: Path) -> None:
    result = run("traces.jsonl", "--run-file", "logged.jsonl", "--dry-run", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["queries"] == found["searches"] == 3 and found["files"] == []
    assert found["masked"] == {"name": 1} and found["signals"]["negative"] == 1
    assert found["documents"] == {"logged": 6, "repeated": 0}
    assert not Path("questions.jsonl").exists() and not Path("logged.jsonl").exists()


def test_several_files_are_joined(folder: Path) -> None:
    every = langfuse(SEARCHES)
    Path("observations.jsonl").write_text(json_lines([row for row in every if "type" in row]))
    Path("scores.jsonl").write_text(json_lines([row for row in every if "type" not in row]))
    result = run("scores.jsonl", "observations.jsonl", "--dry-run", "--json")
    assert json.loads(result.stdout)["signals"]["negative"] == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["traces.jsonl", "--format", "otpl"], 2, "did you mean 'otlp'"),
        (["traces.jsonl", "--run-file", "a.xml"], 2, "unknown format of a run file"),
        (["traces.jsonl", "--allow", "phones"], 2, "did you mean 'phone'"),
        (["traces.jsonl", "users.txt"], 2, "traces.jsonl contains traces, and users.txt is a log"),
        (["users.txt", "--run-file", "a.jsonl"], 2, "--run-file is only for traces"),
        (["broken.jsonl"], 5, "broken.jsonl:2: not valid JSON"),
        (["other.json"], 5, "the format of the traces is not recognised"),
        (["traces.jsonl", "--retriever", "none"], 0, "omitted: another retriever 3"),
        (["traces.jsonl", "--format", "langsmith"], 5, "the traces contain no query of a user"),
        (["traces.jsonl", "--out", "raggs.yaml"], 2, "raggs.yaml exists"),
        (["gone.jsonl", "--format", "otlp"], 4, "no such file"),
    ],
)
def test_errors_name_the_place_and_the_remedy(folder: Path, words: list[str], code: int, said: str) -> None:
    Path("users.txt").write_text("How do I reset it?\n")
    Path("other.json").write_text("[{}]")
    first, second, third = Path("traces.jsonl").read_text().splitlines()
    Path("broken.jsonl").write_text("\n".join([first, second[:100], third]))
    result = run(*words)
    assert result.exit_code == code, result.output
    assert said in " ".join(result.output.split())


def test_broken_lines_are_skipped_and_counted_on_request(folder: Path) -> None:
    first, second, third = Path("traces.jsonl").read_text().splitlines()
    Path("broken.jsonl").write_text("\n".join([first, second[:100], third]))
    result = run("broken.jsonl", "--skip-invalid")
    assert result.exit_code == 0, result.output
    assert "omitted: broken line 1" in result.stdout and "2 queries from 2 searches" in result.stdout
