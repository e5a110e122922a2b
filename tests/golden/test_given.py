"""Questions in memory: the same query, whether it comes as an object, as a row, as a text or from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raggs.base.artifacts import Nugget, Query, QueryRecord, Reference, Span
from raggs.base.errors import DataError
from raggs.config.load import load_config
from raggs.golden.files import queries_of
from raggs.parts.workspace import open_queries

TEXT = "L’eau d’une “source” ?"
CORPUS, QUERIES = {"type": "jsonl", "path": "corpus.jsonl"}, {"type": "jsonl", "path": "queries.jsonl"}
WHOLE = Query(
    qid="q2",
    text="What is lift?",
    language="en",
    answer="a force",
    references=(Reference(text="Lift is a force.", doc_id="d1", span=Span(source="a.txt", start=0, end=16)),),
    nuggets=(Nugget(any=("force", "newton"), vital=False),),
    metadata={"topic": None, "level": 3},
)


def test_a_text_is_the_same_query_wherever_it_comes_from(tmp_path: Path) -> None:
    given = [
        {"q1": Query(qid="q1", text=TEXT)},
        [Query(qid="q1", text=TEXT)],
        {"q1": TEXT},
        [{"qid": "q1", "text": TEXT}],
    ]
    file = tmp_path / "queries.jsonl"
    file.write_text(json.dumps({"_id": "q1", "text": TEXT}) + "\n")
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "d1", "text": "water"}) + "\n")
    config = tmp_path / "raggs.yaml"
    config.write_text(
        json.dumps({"name": "demo", "corpus": CORPUS, "queries": QUERIES, "judge": {"judge": {"type": "reference"}}})
    )
    read = open_queries(load_config(config).run.queries)
    assert [queries_of(each) for each in given] == [dict(read)] * 4


def test_an_object_keeps_all_that_it_says() -> None:
    assert queries_of([WHOLE]) == {"q2": WHOLE}
    assert queries_of([QueryRecord.of(WHOLE)]) == {"q2": WHOLE}


def test_an_object_is_held_to_the_rules_of_files() -> None:
    with pytest.raises(DataError, match="no visible character"):
        queries_of([Query(qid="q1", text="\u200b")])
