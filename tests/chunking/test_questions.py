"""Questions placed in documents, and everything that can be wrong with a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from raggs.artifacts import Query, Reference, Span
from raggs.chunking.documents import Documents
from raggs.chunking.questions import Asked, place_questions
from raggs.errors import DataError

DOCUMENTS = Documents(Path("docs"), ("guide.md", "news.txt"), ("One two three. One two.", "Two more words."))
FILE = Path("questions.csv")


def reference(text: str, start: int | None = None, source: str = "guide") -> Reference:
    span = None if start is None else Span(source=source, start=start, end=start + len(text))
    return Reference(text=text, span=span)


def placed(*references: Reference, corpus: str | None = None) -> Asked:
    metadata = {} if corpus is None else {"corpus_id": corpus}
    asked = Query(qid="q1", text="Which?", references=references, metadata=metadata)
    return place_questions({"q1": asked}, DOCUMENTS, FILE)


def rows(asked: Asked) -> list[tuple[int, int, int]]:
    spans = asked.questions.references
    return list(zip(spans.document.tolist(), spans.start.tolist(), spans.end.tolist(), strict=True))


def test_given_offsets_count_where_a_text_stands_twice() -> None:
    assert rows(placed(reference("One two", 15))) == [(0, 15, 22)]


def test_a_document_may_be_named_without_its_ending() -> None:
    assert rows(placed(reference("more", 4, "news"))) == rows(placed(reference("more", 4, "news.txt"))) == [(1, 4, 8)]


def test_an_excerpt_without_offsets_is_searched_for_and_that_is_told() -> None:
    asked = placed(reference("One two"))
    assert rows(asked) == [(0, 0, 7)]
    assert asked.notes == (
        "1 excerpt without offsets searched for by text; 1 found in several places, of which the first counts",
    )


def test_it_is_searched_for_in_the_document_of_its_question() -> None:
    assert rows(placed(reference("wo"), corpus="news")) == [(1, 1, 3)]


def test_questions_without_references_are_left_out_and_counted() -> None:
    queries = {
        "a": Query(qid="a", text="No answer?"),
        "b": Query(qid="b", text="Which?", references=(reference("One two", 0),)),
    }
    asked = place_questions(queries, DOCUMENTS, FILE)
    assert (asked.ids, asked.notes) == (("b",), ("1 question without references left out",))


@pytest.mark.parametrize(
    ("references", "told"),
    [
        (
            [reference("three.", 7)],
            r"question q1: excerpt 'three.' is not what stands at guide\[7:13\] — it stands at 8",
        ),
        ([reference("four", 0)], "excerpt 'four' is not what stands at .* it stands nowhere in that document"),
        ([reference("four")], "question q1: excerpt 'four' is nowhere in the documents"),
        ([reference("One", 0, "guides")], "question q1: its document 'guides' is not in docs — did you mean .guide"),
        ([reference("two three", 4), reference("One two", 0)], "excerpts 'One two' and 'two three' overlap"),
        ([], "no question has references"),
    ],
)
def test_what_does_not_fit_is_told_with_question_and_excerpt(references: list[Reference], told: str) -> None:
    with pytest.raises(DataError, match=told):
        placed(*references)
