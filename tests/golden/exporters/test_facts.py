"""What came with a question or a passage goes with it into every export, and comes back equal."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from raggs.base.artifacts import Nugget, Passage, Query, Reference, Span
from raggs.golden.formats import EXPORTERS, ExportOptions
from raggs.parts.corpora.jsonl import JsonlConfig, JsonlCorpus
from raggs.parts.queries.fields import load_queries
from raggs.parts.queries.formats import JsonlQueries, JsonlQueriesConfig

ASKED = Query(
    qid="q1",
    text="Où ?\nEt quand\u2028?",
    language="fr",
    answer="Ici",
    references=(Reference(text="ici même", doc_id="d1", span=Span(source="a.md", start=3, end=11)),),
    nuggets=(Nugget(any=("ici",), vital=False),),
    metadata={"text": "not the question", "depth": [1, {"two": None}]},
)
HELD = Passage(
    doc_id="d1",
    title="Ici",
    text="C'est ici même.",
    span=Span(source="a.md", start=0, end=15),
    metadata={"span": "mine", "page": 3},
)


@pytest.fixture
def full(golden):
    queries = []
    for query in golden().by_query():
        pool = tuple(HELD if passage.doc_id == "d1" else passage for passage in query.pool)
        queries.append(replace(query, query=ASKED if query.qid == "q1" else query.query, pool=pool))
    return golden(queries)


@pytest.mark.parametrize("name", ["beir", "jsonl"])
def test_questions_come_back_with_all_that_came_with_them(name, full, tmp_path):
    EXPORTERS.load(name)().write(full, tmp_path)
    path = tmp_path / "queries.jsonl"
    assert list(load_queries(JsonlQueries(JsonlQueriesConfig(path=path)), path).values()) == list(full.queries())


@pytest.mark.parametrize("corpus", [None, [HELD]])
def test_passages_come_back_with_place_and_metadata(corpus, full, tmp_path):
    EXPORTERS.load("beir")(ExportOptions(corpus=corpus)).write(full, tmp_path)
    found = {passage.doc_id: passage for passage in JsonlCorpus(JsonlConfig(path=tmp_path / "corpus.jsonl")).passages()}
    assert found["d1"] == HELD
    assert len(found) == (8 if corpus is None else 1)


def test_a_line_of_the_golden_set_says_it_all(full, tmp_path):
    EXPORTERS.load("jsonl")().write(full, tmp_path)
    row = json.loads((tmp_path / "golden.jsonl").read_text().splitlines()[1])
    assert (row["doc_id"], row["language"], row["answer"]) == ("d1", "fr", "Ici")
    assert row["references"][0]["span"] == {"source": "a.md", "start": 3, "end": 11}
    assert row["query_metadata"] == ASKED.metadata
    assert (row["span"]["end"], row["metadata"]) == (15, HELD.metadata)
