"""Entries a question, as other tools write them: what is listed counts, ids are made where there are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.rich import rich_golden

from raggs import open_golden
from raggs.app.export import import_set
from raggs.base.errors import DataError
from raggs.golden.formats import EXPORTERS

RAGAS = [
    {"user_input": "Why?", "reference": "So.", "reference_contexts": ["A text", "B"], "persona_name": "x"},
    {"user_input": "How?", "reference_contexts": ["B"], "reference_context_ids": [7]},
]
DEEPEVAL = [
    {"input": "Why?", "expected_output": "So.", "context": ["A text", "B"], "additional_metadata": {"references": "x"}},
    {"input": "How?", "context": ["B"]},
]
LANGSMITH = [
    {"inputs": {"input": "Why?"}, "outputs": {"output": "So.", "contexts": ["A text", "B"]}},
    {"inputs": {"question": "How?"}, "outputs": {"contexts": ["B"]}, "metadata": {"qid": "mine"}},
]
FORMATS = {
    "ragas": ("ragas.jsonl", RAGAS),
    "deepeval": ("goldens.json", DEEPEVAL),
    "langsmith": ("examples.jsonl", LANGSMITH),
}


def put(folder: Path, name: str, rows: object) -> Path:
    folder.mkdir(exist_ok=True)
    lines = isinstance(rows, list) and name.endswith(".jsonl")
    (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows) if lines else json.dumps(rows))
    return folder / name


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_listed_counts(name: str, tmp_path: Path) -> None:
    file, rows = FORMATS[name]
    path = put(tmp_path / "theirs", file, rows)
    for place, out in ((path.parent, tmp_path / "a"), (path, tmp_path / "b")):
        done = import_set(place, name, out)
        counts = {each.part: (each.came, each.count) for each in done.through}
        assert (counts["grades"], counts["questions"]) == (("read", 3), ("read", 2))
        golden = open_golden(out)
        assert {one.grade for query in golden.by_query("grades") for one in query.grades} == {1}
        by_text = {query.text: query for query in golden.queries()}
        assert by_text["Why?"].answer == "So." and by_text["How?"].answer is None
    assert (tmp_path / "a" / "judgments.jsonl").read_bytes() == (tmp_path / "b" / "judgments.jsonl").read_bytes()


def test_ids_that_are_given_stay(tmp_path: Path) -> None:
    import_set(put(tmp_path / "t", "ragas.jsonl", RAGAS), "ragas", tmp_path / "out")
    found = {one.doc_id for query in open_golden(tmp_path / "out").by_query("grades") for one in query.grades}
    assert "7" in found and sum(each.startswith("p-") for each in found) == 2


@pytest.mark.parametrize(
    ("name", "rows", "said"),
    [
        ("ragas", [{"user_input": ["a", "b"], "reference_contexts": ["x"]}], "the entry has no question"),
        ("ragas", [RAGAS[1] | {"reference_context_ids": [1, 2]}], "1 contexts and 2 ids"),
        ("ragas", [RAGAS[1] | {"reference_context_ids": ["a b"]}], "contains white space"),
        ("deepeval", {"goldens": []}, "expected a list"),
        ("langsmith", [{"inputs": {"question": "Who?"}, "outputs": {"answer": "I"}}], "contains no grades"),
    ],
)
def test_what_cannot_be_is_one_sentence(name: str, rows: object, said: str, tmp_path: Path) -> None:
    path = put(tmp_path / "theirs", FORMATS[name][0], rows)
    with pytest.raises(DataError, match=said):
        import_set(path, name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_table_of_others_and_one_that_was_changed(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text('Question;Passage;Score\nWhy?;"A;\ntext";4.0\nWhy?;B;0\nHow?;B;-1\n')
    done = import_set(path, "csv", tmp_path / "out")
    assert {each.part: each.count for each in done.through} == {"grades": 2, "unjudged": 1, "questions": 2, "texts": 2}
    EXPORTERS.load("csv")().write(rich_golden(), tmp_path / "ours")
    table = tmp_path / "ours" / "golden.csv"
    text = table.read_bytes().decode()
    table.write_bytes(text.replace('Its end",5,', 'Its end",2,', 1).encode())
    came = {each.part: each.came for each in import_set(tmp_path / "ours", None, tmp_path / "again").through}
    assert (came["grades"], came["order"], came["texts"]) == ("changed", "whole", "whole")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("question,grade\nWhy?,3\n", "a required column is missing"),
        ("qid,doc_id,grade\nq,d,good\n", "not an integer"),
        ("qid,doc_id,grade\nq,d,1\nq,d,2\n", "graded twice"),
        ("qid,doc_id,grade\nq,d\n", "2 columns, the header has 3"),
        ("qid,doc_id,grade\nq r,d,1\n", "contains white space"),
    ],
)
def test_a_table_that_cannot_be_is_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(DataError, match=said):
        import_set(tmp_path / "mine.csv", "csv", tmp_path / "out")
