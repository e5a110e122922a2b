"""From the spellings that people use to a query."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.artifacts import Nugget, Query, Reference, Span
from raggs.base.errors import DataError
from raggs.parts.queries.fields import query_of

PATH = Path("questions.any")


def read(**fields: Any) -> Query:
    return query_of({"_id": "q1", "text": "Why?", **fields}, PATH, 7)


@pytest.mark.parametrize("qid", ["_id", "id", "qid", "query_id"])
@pytest.mark.parametrize("text", ["text", "query", "question", "user_input"])
def test_spellings_of_id_and_text(qid: str, text: str) -> None:
    assert query_of({qid: "q1", text: "Why?"}, PATH, 1) == Query(qid="q1", text="Why?")


@pytest.mark.parametrize(
    ("name", "field"),
    [("lang", "language"), ("language", "language"), ("expected_answer", "answer"), ("answer", "answer")],
)
def test_spellings_of_language_and_answer(name: str, field: str) -> None:
    assert getattr(read(**{name: "fr"}), field) == "fr"


def test_what_has_no_known_spelling_is_metadata() -> None:
    query = read(metadata={"source": "forum"}, difficulty=3, id="another", lang=None)
    assert query.metadata == {"source": "forum", "difficulty": 3, "id": "another"}
    assert query.language is None


def test_references_and_nuggets_have_short_forms() -> None:
    query = read(
        references=["an excerpt", {"text": "another", "doc_id": "d1"}],
        nuggets=["one fact", {"any": "a|b"}, {"any": ["c", "d"], "vital": False}],
    )
    assert query.references == (Reference(text="an excerpt"), Reference(text="another", doc_id="d1"))
    assert query.nuggets == (Nugget(any=("one fact",)), Nugget(any=("a|b",)), Nugget(any=("c", "d"), vital=False))
    assert read(references="alone", nuggets="alone").references == (Reference(text="alone"),)
    assert read(references=None, nuggets=[]).nuggets == ()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"_id": ""}, "_id, id, qid or query_id: missing"),
        ({"_id": 5}, "query_id: missing, empty, or not a string"),
        ({"_id": "a b"}, "'a b' contains white space"),
        ({"_id": "a\u2003"}, "contains white space"),
        ({"text": " \n"}, "text, query, question or user_input: missing"),
        ({"text": ["x"]}, "not a string"),
        ({"text": "\u200b\u2060\ufeff \u00ad"}, "no visible character"),
        ({"_id": "#1"}, r"query id '#1' starts with #, which TREC files treat as a comment"),
        ({"_id": "a\0b"}, r"query id 'a\\x00b' contains a control character"),
        ({"_id": "\ufeffq"}, r"query id '\\ufeffq' contains a byte order mark"),
        ({"_id": "q\ud800"}, r"query id 'q\\ud800' contains a lone surrogate"),
        ({"references": [{"content": "x", "start_index": 0, "end_index": 1}]}, "reference 1 .*need corpus_id"),
        (
            {"references": [{"content": "x", "start_index": 3, "end_index": 1}], "corpus_id": "a"},
            "reference 1 .*from 3 to 1 is empty",
        ),
        ({"language": 3}, "query 'q1': language"),
        ({"references": [3]}, "reference 1 is a number"),
        ({"references": ["so", {"content": "x", "end_index": 3}]}, "reference 2 .*its start_index is missing"),
        ({"references": [{"content": "x", "score": 3}]}, "its key 'score' is unknown"),
        ({"references": [{"text": "x", "doc_id": 3}]}, "its doc_id is a number"),
        ({"references": [{"text": "x", "doc_id": {"a": 1}}]}, "its doc_id is an object"),
        ({"references": [{"text": "x", "span": [1, 2]}]}, "its span is not an object"),
        ({"references": [{"text": "x", "span": {"source": "", "start": 0, "end": 1}}]}, "the source of its span"),
        ({"references": [{"text": "x", "span": {"source": "a", "start": 0, "end": 1.5}}]}, "its end is 1.5, not"),
        ({"references": [{"text": "x", "span": {"source": "a", "start": True, "end": 1}}]}, "its start is True, not"),
        ({"references": [None]}, "reference 1 is null"),
        ({"references": [["a"]]}, "reference 1 is a list"),
        ({"references": [""]}, "reference 1 has no text"),
        ({"nuggets": {"vital": True}}, "nuggets.0.any"),
        ({"nuggets": [{"any": []}]}, "nuggets.0.any"),
        ({"nuggets": [{"any": ["x"], "weight": 2}]}, "nuggets.0.weight"),
        ({"nuggets": ["(unclosed"]}, r"nugget '\(unclosed' is not a regular expression"),
        ({"nuggets": [{"any": ["fine", "[z-a]"]}]}, "is not a regular expression"),
        ({"nuggets": ["a{99999999999}"]}, "is not a regular expression .*too large"),
        ({"nuggets": ["(" * 3000 + ")" * 3000]}, "is not a regular expression"),
        ({"nuggets": ["x*"]}, r"nugget 'x\*' matches every text"),
        ({"nuggets": [""]}, "nugget '' matches every text"),
        ({"metadata": "text"}, "metadata"),
        ({"metadata": {"when": date(2024, 1, 1)}}, "cannot be written as JSON"),
        ({"score": float("nan")}, "cannot be written as JSON"),
        ({3: "x"}, "metadata"),
    ],
)
def test_what_cannot_be_right_is_named(fields: dict[Any, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        query_of({"_id": "q1", "text": "Why?", **fields}, PATH, 7)
    assert (caught.value.where, caught.value.line) == ("questions.any", 7)
    assert caught.value.remedy


def test_half_of_a_surrogate_pair_becomes_a_character_everywhere() -> None:
    query = read(
        text="a\ud800", answer="\udfff", nuggets=["x\ud800"], references=["\ud800r"], note={"\ud800": ["\ud800"]}
    )
    assert (query.text, query.answer) == ("a\ufffd", "\ufffd")
    assert (query.nuggets[0].any, query.references[0].text) == (("x\ufffd",), "\ufffdr")
    assert query.metadata == {"note": {"\ufffd": ["\ufffd"]}}
    assert Query.model_validate_json(query.model_dump_json()) == query


def test_a_question_without_an_id_gets_one_of_its_text() -> None:
    (first, again, other) = (
        query_of(row, PATH, 1) for row in ({"text": "Why?"}, {"question": "Why?", "level": 2}, {"text": "How?"})
    )
    assert first.qid == again.qid and first.qid.startswith("q-") and len(first.qid) == 14
    assert other.qid != first.qid


def test_references_of_chunking_benchmarks() -> None:
    row = {"question": "Why?", "references": [{"content": "so", "start_index": 7, "end_index": 9}], "corpus_id": "a"}
    query = query_of(row, PATH, 1)
    assert query.references == (Reference(text="so", span=Span(source="a", start=7, end=9)),)
    assert query.metadata == {"corpus_id": "a"}


NAMES = st.sampled_from(["_id", "text", "language", "answer", "references", "nuggets", "metadata", "more"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["any", "text", "x"]), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(st.dictionaries(NAMES, VALUES))
def test_anything_at_all_is_a_query_or_a_named_fault(row: dict[str, Any]) -> None:
    try:
        query = query_of(row, PATH, 7)
    except DataError as error:
        assert error.line == 7
    else:
        assert Query.model_validate_json(query.model_dump_json()) == query


def test_a_document_in_place_of_a_question_is_refused_at_once() -> None:
    assert read(text="w " * 50_000).text
    with pytest.raises(DataError, match=r"any:7: the query has 100,001 characters, but the maximum is 100,000"):
        read(text="x" * 100_001)
    with pytest.raises(DataError, match=r"the earlier turns of the query have 100,\d\d\d characters"):
        read(text="x", history=["x" * 100_001])
