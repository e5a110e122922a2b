"""`raggs questions gaps`: kinds of queries that a set misses, in a log with hidden topics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from support.cli import invoke
from support.traces import Searched, json_lines, langsmith

TOPICS = {
    "password": ["How do I reset my password?", "I forgot my password, how can I change it?", "change my password"],
    "refund": ["How do I get a refund for my order?", "refund policy for returned orders", "When is my refund paid?"],
    "wifi": ["How do I connect to the wifi network?", "wifi network is slow", "Which wifi network is for guests?"],
}
SEARCHES = [
    Searched(text, [("d", "", 0.5)], 1_700_000_000_000 + at, feedback=0.0 if topic == "wifi" else None)
    for topic, texts in TOPICS.items()
    for at, text in enumerate(3 * texts if topic == "wifi" else texts)
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("traces.jsonl").write_text(json_lines(langsmith([*SEARCHES, Searched("mail jane@example.com the refund")])))
    Path("set/qrels").mkdir(parents=True)
    texts = ["How can I reset the password?", "How is an order refunded, and when is the refund paid?"]
    Path("set/queries.jsonl").write_text(json_lines([{"_id": f"q{at}", "text": text} for at, text in enumerate(texts)]))
    Path("set/corpus.jsonl").write_text(json_lines([{"_id": "d", "text": "Anything."}]))
    Path("set/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\td\t1\nq1\td\t1\n")
    return tmp_path


def run(*words: str) -> Result:
    return invoke("questions", "gaps", *words)


def test_the_hidden_topic_is_the_gap(folder: Path) -> None:
    result = run("set", "--traces", "traces.jsonl", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    missed = [kind for kind in found["kinds"] if kind["missed"]]
    assert [set(kind["examples"]) for kind in missed if kind["queries"] > 1] == [set(TOPICS["wifi"])]
    assert missed[0]["signals"] == 1 and missed[0]["searches"] == 9 and missed[0]["labelled"] == 0
    assert found["coverage"]["low"] < found["coverage"]["share"] < found["coverage"]["high"]
    assert found["coverage"]["share"] == pytest.approx(
        1 - sum(k["searches"] * (1 - k["covered"]) for k in found["kinds"]) / 16
    )
    assert found["proposed"][0]["text"] in TOPICS["wifi"] and found["proposed"][0]["gain"] == 1
    assert "jane" not in result.stdout and found["masked"] == {"email": 1}


def test_the_default_output_is_short_and_names_the_next_command(folder: Path) -> None:
    result = run("set", "--traces", "traces.jsonl")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith("The 2 queries of the set cover ")
    assert len(lines) <= 25 and max(map(len, lines)) <= 80 and len(result.stdout.split()) <= 200
    assert "next: raggs questions gaps set --traces traces.jsonl --out next.jsonl" in lines
    assert "Personal data is masked in 1 search." in lines
    details = run("set", "--traces", "traces.jsonl", "--details")
    assert "Queries to label next" in details.stdout and "rule of the choice" in " ".join(details.stdout.split())


def test_proposed_queries_are_written_once_and_can_be_read(folder: Path) -> None:
    words = ("set", "--traces", "traces.jsonl", "--n", "4", "--out", "next.jsonl")
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert "next: raggs run --config raggs.yaml --set queries.path=next.jsonl --set name=next" in result.stdout
    rows = [json.loads(line) for line in Path("next.jsonl").read_text().splitlines()]
    assert len(rows) == 4 and rows[0]["metadata"]["negative"] == 3
    again = run(*words)
    assert again.exit_code == 2 and "next.jsonl exists" in again.output
    before = Path("next.jsonl").read_bytes()
    assert run(*words, "--force").exit_code == 0 and Path("next.jsonl").read_bytes() == before


def test_everything_covered(folder: Path) -> None:
    Path("a.jsonl").write_text(json_lines(langsmith([Searched("How can I reset the password?")])))
    result = run("set", "--traces", "a.jsonl")
    assert result.exit_code == 0, result.output
    assert "cover 100%" in result.stdout and "The set misses none of 1 kind of queries." in result.stdout
    assert "next:" not in result.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["none", "--traces", "traces.jsonl"], 4, "no such"),
        (["set", "--traces", "none.jsonl"], 4, "no such file"),
        (["set", "--traces", "set/corpus.jsonl"], 5, "the format of the traces is not recognised"),
        (["set", "--traces", "traces.jsonl", "--embedder", "wordlama"], 2, "did you mean 'wordllama'"),
        (["set", "--traces", "traces.jsonl", "--out", "a.txt"], 2, "unknown query format"),
    ],
)
def test_errors_name_the_place_and_the_remedy(folder: Path, words: list[str], code: int, said: str) -> None:
    result = run(*words)
    assert result.exit_code == code, result.output
    assert said in " ".join(result.output.split())
