"""`raggs chunks place`: excerpts get their places, and questions another format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import invoke

TEXT = "Dogs bark at night. Cats sleep. Dogs bark at dawn.\n"
JSONL = """{"_id": "q2", "text": "Who sleeps?", "references": ["Cats sleep."]}
{"_id": "q1", "text": "Who barks?", "references": [{"text": "Dogs bark", "doc_id": null}], "kind": "fact"}
{"_id": "q0", "text": "Why?"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pets.md").write_text(TEXT)
    (tmp_path / "q.jsonl").write_text(JSONL)
    return tmp_path


def call(questions: str, to: str, *more: str) -> Any:
    return invoke("chunks", "place", "--corpus", "docs", "--questions", questions, "--to", to, *more)


def test_a_table_of_benchmarks_comes_of_questions_without_offsets(folder: Path) -> None:
    done = call("q.jsonl", "q.csv")
    assert done.exit_code == 0, done.output
    assert "q.csv: 3 questions, 2 excerpts with offsets" in done.stdout
    assert "question q1: excerpt 'Dogs bark' occurs 2 times; pets.md[0:9] is used" in done.stdout
    lines = (folder / "q.csv").read_text().splitlines()
    assert lines[0] == "_id,question,references,corpus_id,kind"
    assert lines[1].startswith(
        'q2,Who sleeps?,"[{""content"": ""Cats sleep."", ""start_index"": 20, ""end_index"": 31}]"'
    )
    assert lines[3] == "q0,Why?,,,"
    assert call("q.csv", "again.csv", "-q").stdout == ""
    assert (folder / "again.csv").read_bytes() == (folder / "q.csv").read_bytes()


def test_what_was_placed_is_evaluated_as_before(folder: Path) -> None:
    reports = []
    for name in ("q.jsonl", "q.yaml"):
        if name != "q.jsonl":
            assert call("q.jsonl", name).exit_code == 0
        words = ["--corpus", "docs", "--questions", name, "--chunkers", "recursive:5", "--out", "out", "--json"]
        done = invoke("chunks", "eval", *words)
        assert done.exit_code == 0, done.output
        reports.append(json.loads(done.stdout)["systems"])
    assert reports[0] == reports[1]


def test_what_cannot_be_is_said(folder: Path) -> None:
    assert call("q.jsonl", "q.jsonl").exit_code == 2
    assert call("q.jsonl", "q.txt").exit_code == 2
    assert call("none.jsonl", "q.csv").exit_code == 4
    (folder / "q.jsonl").write_text('{"text": "Who?", "references": ["Birds sing"]}\n')
    done = call("q.jsonl", "new.csv")
    assert done.exit_code == 5
    assert "q.jsonl:1: question" in done.stderr
    assert not (folder / "new.csv").exists()
