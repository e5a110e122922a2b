"""Questions placed in documents, and everything that can be wrong with a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from raggs.base.artifacts import Query, Reference, Span
from raggs.base.errors import DataError
from raggs.chunking.documents import Documents
from raggs.chunking.questions import ReferencedQuestions, place_questions

DOCUMENTS = Documents(Path("docs"), ("guide.md", "news.txt"), ("One two three. One two.", "Two more words."))
FILE = Path("questions.csv")


def reference(text: str, start: int | None = None, source: str = "guide") -> Reference:
    span = None if start is None else Span(source=source, start=start, end=start + len(text))
    return Reference(text=text, span=span)


def placed(*references: Reference, corpus: str | None = None) -> ReferencedQuestions:
    metadata = {} if corpus is None else {"corpus_id": corpus}
    asked = Query(qid="q1", text="Which?", references=references, metadata=metadata)
    return place_questions({"q1": asked}, DOCUMENTS, FILE)


def rows(asked: ReferencedQuestions) -> list[tuple[int, int, int]]:
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
        "1 excerpt without offsets located by text; 1 occur more than once, and the first occurrence is used",
        "question q1: excerpt 'One two' occurs 2 times; guide.md[0:7] is used",
    )


def test_it_is_searched_for_in_the_document_of_its_question() -> None:
    assert rows(placed(reference("wo"), corpus="news")) == [(1, 1, 3)]


def test_questions_without_references_are_left_out_and_counted() -> None:
    queries = {
        "a": Query(qid="a", text="No answer?"),
        "b": Query(qid="b", text="Which?", references=(reference("One two", 0),)),
    }
    asked = place_questions(queries, DOCUMENTS, FILE)
    assert (asked.ids, asked.notes) == (("b",), ("1 question without references ignored",))


@pytest.mark.parametrize(
    ("references", "told"),
    [
        (
            [reference("three.", 7)],
            r"question q1: excerpt 'three.' is not the text at guide\[7:13\] — it is at 8",
        ),
        ([reference("three.", 70)], r"guide\[70:76\], which has 23 characters — it is at 8"),
        ([reference("One two", 0), reference("One two", 0)], "excerpts 'One two' and 'One two' are the same — remove"),
        ([reference("four", 0)], "excerpt 'four' is not the text at .* the document does not contain it"),
        ([reference("four")], "question q1: excerpt 'four' is not in any document"),
        ([reference("One", 0, "guides")], "question q1: its document 'guides' is not in docs — did you mean .guide"),
        ([reference("two three", 4), reference("One two", 0)], "excerpts 'One two' and 'two three' overlap"),
        ([], "no question has references"),
    ],
)
def test_what_does_not_fit_is_told_with_question_and_excerpt(references: list[Reference], told: str) -> None:
    with pytest.raises(DataError, match=told):
        placed(*references)


def test_many_excerpts_that_stand_twice_are_told_in_part() -> None:
    text = " ".join(f"w{number}" for number in range(100, 120))
    documents = Documents(Path("docs"), ("a.md",), (f"{text} {text}",))
    queries = {
        f"q{number}": Query(qid=f"q{number}", text="Which?", references=(Reference(text=f"w{number}"),))
        for number in range(100, 120)
    }
    notes = place_questions(queries, documents, FILE).notes
    assert len(notes) == 12
    assert notes[1] == "question q100: excerpt 'w100' occurs 2 times; a.md[0:4] is used"
    assert notes[-1] == "and 10 more excerpts that occur more than once; add offsets"


def test_the_line_of_the_question_is_told() -> None:
    queries = {"q1": Query(qid="q1", text="Which?", references=(reference("four", 0),))}
    with pytest.raises(DataError, match=r"questions\.csv:7: question q1"):
        place_questions(queries, DOCUMENTS, FILE, {"q1": 7})


def test_offsets_that_count_other_line_ends_are_told() -> None:
    documents = Documents(Path("docs"), ("a.md",), ("One\r\ntwo\r\nthree",))
    queries = {"q1": Query(qid="q1", text="Which?", references=(reference("three", 8, "a"),))}
    with pytest.raises(DataError, match="as one character: save the file"):
        place_questions(queries, documents, FILE)


def test_a_name_without_its_ending_that_several_documents_have() -> None:
    documents = Documents(Path("docs"), ("a.md", "a.txt", "b", "b.md"), ("One", "One", "One", "One"))
    assert documents.number("b") == 2
    assert documents.number("a") is None
    assert documents.missing("a") == "it may be a.md or a.txt: add the extension"
