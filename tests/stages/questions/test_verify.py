"""An excerpt is in its window letter for letter, or its question goes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stages.questions.records import AskRecord, SampleRecord, VerifyRecord, Window
from raggs.stages.questions.verify import verify

TEXT = "A keel is oak.\nA mast is pine.\n\nA keel is oak. Sails are linen, ropes are hemp."


def verified(*excerpts: str, kind: Any = "fact", texts: tuple[str, ...] = (TEXT,), **more: Any) -> VerifyRecord:
    windows = tuple(
        Window(source=f"{number}.md", start=100, end=100 + len(text), text=text) for number, text in enumerate(texts)
    )
    sample = SampleRecord(qid="q1", kind=kind, language="en", windows=windows)
    given = {"question": "What?", "excerpts": excerpts, "asker": "me", **more}
    return verify(sample, AskRecord(qid="q1", **given))


def places(record: VerifyRecord) -> list[tuple[str, int, int]]:
    return [(each.span.source, each.span.start, each.span.end) for each in record.references if each.span]


def test_an_excerpt_has_its_place_in_the_document() -> None:
    found = verified(" A mast is pine.\n")
    assert found.rejected is None
    assert places(found) == [("0.md", 115, 130)]
    assert [each.text for each in found.references] == ["A mast is pine."]


def test_white_space_may_differ_and_what_is_kept_is_the_text_of_the_document() -> None:
    (reference,) = verified("is oak. A mast  is\tpine. A keel").references
    assert reference.text == "is oak.\nA mast is pine.\n\nA keel"


def test_overlapping_excerpts_become_one_and_come_in_order() -> None:
    found = verified("ropes are hemp", "A mast is", "is pine.", "A mast is")
    assert [each.text for each in found.references] == ["A mast is pine.", "ropes are hemp"]


@pytest.mark.parametrize(
    ("excerpts", "kind", "reason"),
    [
        (("A keel is elm.",), "fact", "not verbatim"),
        (("A keel is oak.", "A mast is pine!"), "fact", "not verbatim"),
        (("A mastis pine.",), "fact", "not verbatim"),
        (("a keel is oak.",), "fact", "not verbatim"),
        ((" .",), "fact", "not verbatim"),
        ((), "list", "no excerpt"),
        (("A keel is oak.",), "unanswerable", "not unanswerable"),
        (("A keel is elm.",), "unanswerable", "not verbatim"),
    ],
)
def test_what_goes_is_told_by_its_reason(excerpts: tuple[str, ...], kind: str, reason: str) -> None:
    found = verified(*excerpts, kind=kind)
    assert (found.rejected, found.references) == (reason, ())


def test_a_comparison_needs_both_texts() -> None:
    two = (TEXT, "Anchors are iron.")
    assert verified("A keel is oak.", kind="comparison", texts=two).rejected == "one-sided"
    found = verified("Anchors are iron.", "A keel is oak.", kind="comparison", texts=two)
    assert places(found) == [("0.md", 100, 114), ("1.md", 100, 117)]


def test_an_unanswerable_question_and_a_failure() -> None:
    assert verified(kind="unanswerable").rejected is None
    failed = verified(question=None, error="refused")
    assert (failed.rejected, failed.detail) == ("no answer", "refused")


def test_a_passage_without_a_place_is_named_by_its_id() -> None:
    window = Window(source="p1", start=0, end=len(TEXT), text=TEXT, doc_id="p1")
    sample = SampleRecord(qid="q1", kind="fact", language="en", windows=(window,))
    (reference,) = verify(sample, AskRecord(qid="q1", question="?", excerpts=("A mast",), asker="me")).references
    assert (reference.doc_id, reference.span) == ("p1", None)


@given(st.text(st.sampled_from("ab \n.é😀"), min_size=1, max_size=60), st.data())
def test_whatever_is_kept_stands_there(text: str, data: st.DataObject) -> None:
    cut = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).map(lambda ends: text[min(ends) : max(ends)])
    excerpts = data.draw(st.lists(cut | st.text(st.sampled_from("ab \n."), max_size=9), max_size=5))
    found = verified(*excerpts, texts=(text,))
    if found.rejected is None:
        for reference in found.references:
            assert reference.span is not None
            assert text[reference.span.start - 100 : reference.span.end - 100] == reference.text
        ends = [end for _, start, end in places(found)]
        assert all(start >= end for (_, start, _), end in zip(places(found)[1:], ends, strict=False))
        kept = ["".join(reference.text.split()) for reference in found.references]
        assert all(any("".join(each.split()) in text for text in kept) for each in excerpts)
