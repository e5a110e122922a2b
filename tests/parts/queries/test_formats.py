"""JSON lines, CSV and YAML: the same questions, each with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raggs.base.artifacts import Nugget, Query, Reference, Span
from raggs.base.errors import DataError, NotFoundError
from raggs.parts.queries import REGISTRY

JSONL = """{"_id": "q2", "text": "Où est-ce ?", "language": "fr", "answer": "Là.", "level": "2"}

{"_id": "q1", "text": "Why,\\nor how?", "references": ["so"], "nuggets": ["\\\\bso\\\\b"]}
"""
CSV = """_id,question,language,answer,level,references,nuggets
q2,Où est-ce ?,fr,Là.,2,,

q1,"Why,
or how?",,,,"[""so""]","[""\\\\bso\\\\b""]"
"""
YAML = """# by hand
- _id: q2
  text: Où est-ce ?
  language: fr
  answer: Là.
  level: "2"
- {_id: q1, text: "Why,\\nor how?", references: [so], nuggets: ['\\bso\\b']}
"""
WANTED = [
    Query(qid="q2", text="Où est-ce ?", language="fr", answer="Là.", metadata={"level": "2"}),
    Query(qid="q1", text="Why,\nor how?", references=(Reference(text="so"),), nuggets=(Nugget(any=("\\bso\\b",)),)),
]
FORMATS = {"jsonl": (JSONL, [1, 3]), "csv": (CSV, [2, 4]), "yaml": (YAML, [2, 7])}


def reader(kind: str, folder: Path, content: str | bytes, **settings: Any) -> Any:
    path = folder / f"questions.{kind}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    adapter: Any = REGISTRY.load(kind)
    return adapter(adapter.Config(path=path, **settings))


def fault(kind: str, folder: Path, content: str | bytes, **settings: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        list(reader(kind, folder, content, **settings).queries())
    assert caught.value.where == str(folder / f"questions.{kind}")
    assert caught.value.remedy
    return caught.value


def test_every_format_is_tested_here() -> None:
    assert {*FORMATS, "traces"} == set(REGISTRY)  # traces are in test_traces.py


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_questions_with_their_lines(kind: str, tmp_path: Path) -> None:
    content, lines = FORMATS[kind]
    assert list(reader(kind, tmp_path, content).queries()) == list(zip(lines, WANTED, strict=True))
    assert list(reader(kind, tmp_path, "\ufeff" + content).queries()) == list(zip(lines, WANTED, strict=True))


@pytest.mark.parametrize("kind", FORMATS)
def test_windows_line_ends_change_no_line_number(kind: str, tmp_path: Path) -> None:
    content, lines = FORMATS[kind]
    found = reader(kind, tmp_path, content.replace("\n", "\r\n")).queries()
    assert [line for line, _ in found] == lines


@pytest.mark.parametrize("kind", FORMATS)
def test_an_empty_file_holds_no_queries(kind: str, tmp_path: Path) -> None:
    for content in ("", "\n \n", "\ufeff"):
        assert list(reader(kind, tmp_path, content).queries()) == []


@pytest.mark.parametrize("kind", FORMATS)
def test_files_that_cannot_be_read(kind: str, tmp_path: Path) -> None:
    error = fault(kind, tmp_path, (FORMATS[kind][0].splitlines()[0] + "\n").encode() + b"\xff\n")
    assert "not UTF-8" in error.message
    assert error.line == 2
    adapter: Any = REGISTRY.load(kind)
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(NotFoundError) as caught:
            list(adapter(adapter.Config(path=path)).queries())
        assert caught.value.where == str(path)
        assert caught.value.remedy


# --- CSV ---


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        ("_id,note\nq1,x\n", "no column text or query", 1),
        ("_id;question\nq1;x\n", "no column text or query", 1),
        ("_id,text,text\nq1,x,y\n", "duplicate column name", 1),
        ("_id,text\nq1,x\nq2,y,z\n", "3 columns, the header has 2", 3),
        ('_id,text\nq1,"a\nb"\nq2\n', "1 columns, the header has 2", 4),
        ('_id,text\nq1,x\nq2,"open\n\n', "not valid CSV", 3),
        ('_id,text\nq1,"x"y\n', "not valid CSV", 2),
        ("_id,text\nq1,x\n,y\n", "_id, id, qid or query_id: missing", 3),
        ("_id,text,nuggets\nq1,x,plain words\n", "column nuggets is not valid JSON", 2),
        ('_id,text,nuggets\nq1,x,"[""(""]"\n', "is not a regular expression", 2),
    ],
)
def test_csv_that_cannot_be_right(content: str, message: str, line: int, tmp_path: Path) -> None:
    error = fault("csv", tmp_path, content)
    assert message in error.message
    assert error.line == line


def test_other_delimiters(tmp_path: Path) -> None:
    for mark in (";", "\t", "|"):
        content = f"id{mark} question\nq1{mark}Why, and how?\n"
        assert list(reader("csv", tmp_path, content, delimiter=mark).queries()) == [
            (2, Query(qid="q1", text="Why, and how?"))
        ]
    assert "queries.delimiter" in (fault("csv", tmp_path, "id;question\nq1;Why?\n").remedy or "")


def test_a_line_break_of_another_kind_does_not_end_a_row(tmp_path: Path) -> None:
    ((_, query),) = reader("csv", tmp_path, "id,text\nq1,one\u2028two\x0cthree\n").queries()
    assert query.text == "one\u2028two\x0cthree"


# --- YAML ---


def test_ids_questions_and_dates_are_what_their_author_wrote(tmp_path: Path) -> None:
    content = "- {_id: 007, text: 1999, asked: 2024-05-06, level: 3, ready: yes}\n- {_id: no, text: true}\n"
    (_, first), (_, second) = reader("yaml", tmp_path, content).queries()
    assert first == Query(qid="007", text="1999", metadata={"asked": "2024-05-06", "level": 3, "ready": True})
    assert second == Query(qid="no", text="true")


def test_anchors_and_merges_work(tmp_path: Path) -> None:
    content = "- &base\n  _id: q1\n  text: Why?\n  language: fr\n- <<: *base\n  _id: q2\n"
    (_, _), (line, second) = reader("yaml", tmp_path, content).queries()
    assert (line, second) == (5, Query(qid="q2", text="Why?", language="fr"))


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        ("queries:\n- _id: q1\n", "not a list of queries", None),
        ("- _id: q1\n  text: x\n- just words\n", "not a mapping", 3),
        ("- _id: q1\n  text: x\n  text: y\n", "key 'text' occurs twice", 3),
        ("- _id: q1\n  text: x\n- _id: [q2\n", "not valid YAML", 4),
        ("- _id: q1\n  text: !!python/name:os.system\n  other: !!python/name:os.system\n", "not valid YAML", 2),
        ("- {_id: q1, text: x, ? [a] : b}\n", "not valid YAML", 1),
        ("- _id: q1\n  text: x\n- _id: q2\n", "text, query, question or user_input: missing", 3),
        ("- {_id: q1, text: x, more: .nan}\n", "cannot be written as JSON", 1),
        ("- {_id: q1, text: x, more: &a [*a]}\n", "cannot be written as JSON", 1),
        ("- _id: q1\n  text: x\n  nuggets: ['(']\n", "is not a regular expression", 1),
    ],
)
def test_yaml_that_cannot_be_right(content: str, message: str, line: int | None, tmp_path: Path) -> None:
    error = fault("yaml", tmp_path, content)
    assert message in error.message
    assert error.line == line


# --- JSON lines ---


@pytest.mark.parametrize(
    ("line", "message"), [("[]", "not a JSON object"), ("{", "not valid JSON"), ('{"_id": "q2"}', "text, query")]
)
def test_json_lines_that_cannot_be_right(line: str, message: str, tmp_path: Path) -> None:
    error = fault("jsonl", tmp_path, '{"_id": "q1", "text": "x"}\n\n' + line + "\n")
    assert message in error.message
    assert error.line == 3


# --- without ids ---


def test_the_table_of_a_chunking_benchmark_as_it_is(tmp_path: Path) -> None:
    content = (
        "question,references,corpus_id\n"
        '"Who, then?","[{""content"": ""the cat"", ""start_index"": 4, ""end_index"": 11}]",animals\n'
        'When?,"[{""content"": ""now"", ""start_index"": 0, ""end_index"": 3}]",times\n'
    )
    (_, who), (_, when) = reader("csv", tmp_path, content).queries()
    assert who.references == (Reference(text="the cat", span=Span(source="animals", start=4, end=11)),)
    assert (who.text, who.metadata) == ("Who, then?", {"corpus_id": "animals"})
    again = list(reader("csv", tmp_path, "corpus_id,question\ntimes,When?\n").queries())
    assert again[0][1].qid == when.qid != who.qid
    lines = list(reader("jsonl", tmp_path, '{"question": "When?"}\n').queries())
    assert lines[0][1].qid == when.qid


def test_metadata_of_a_table_is_json(tmp_path: Path) -> None:
    content = 'question,metadata,level\nWhy?,"{""deep"": [1]}",2\n'
    [(_, query)] = reader("csv", tmp_path, content).queries()
    assert query.metadata == {"deep": [1], "level": "2"}
    assert "column metadata is not valid JSON" in str(fault("csv", tmp_path, "question,metadata\nWhy?,plain\n"))
