"""Edited passages and the labels that they keep: by the rules of projection, and by the words of the query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.artifacts import Query
from raggs.golden.aligning import MIN_STRETCH, EditedPassage, QueryWords, SharedText, align, single_spaced

OLD = "The pump was checked in May. It leaks oil at the valve. The crew left at noon."
QUERIES = QueryWords({"q": Query(qid="q", text="Where does the pump leak?", language="en")})


def label(new: str, grades: dict[str, int], **old: str):
    texts = {name: single_spaced(text) for name, text in old.items()}
    found = {name: align(text, single_spaced(new)) for name, text in texts.items()}
    edited = EditedPassage("n", single_spaced(new), {name: each for name, each in found.items() if each.stretches})
    return edited.label("q", grades, QUERIES)


def test_line_breaks_do_not_matter():
    assert align(single_spaced("one  two\nthree four"), single_spaced("zero one two three\tfour five")).whole


def test_a_passage_that_contains_another_completely_keeps_a_high_grade():
    kept = label(f"{OLD} A pump of another ship leaks, too.", {"o": 5}, o=OLD)
    assert kept is not None
    assert (kept.grade, kept.doc_ids, kept.how) == (5, ("o",), "kept")


def test_a_lower_grade_is_kept_only_without_words_of_the_query():
    assert label(f"{OLD} The sky is blue.", {"o": 3}, o=OLD).grade == 3
    assert label(f"{OLD} A second pump leaks.", {"o": 3}, o=OLD) is None


def test_too_little_judged_text_keeps_no_low_grade():
    assert label(f"{OLD} {'The sky is blue and wide here. ' * 9}", {"o": 1}, o=OLD) is None


@pytest.mark.parametrize(("grade", "kept"), [(1, 1), (2, None), (5, None)])
def test_an_edited_passage_keeps_only_the_lowest_grade(grade, kept):
    found = label(OLD.replace("The crew left at noon.", "The crew slept."), {"o": grade}, o=OLD)
    assert (found and found.grade) == kept
    assert found is None or found.how == "irrelevant"


def test_an_irrelevant_passage_is_judged_again_if_a_word_of_the_query_is_new():
    assert label(OLD.replace("The crew left at noon.", "Pumps leak."), {"o": 1}, o=OLD) is None


def test_the_parts_of_a_split_passage_are_judged_unless_it_was_irrelevant():
    half = OLD[: len(OLD) // 2].rpartition(" ")[0]
    assert label(half, {"o": 1}, o=OLD).grade == 1
    assert label(half, {"o": 4}, o=OLD) is None


def test_merged_passages_have_the_higher_grade():
    other = "Nobody knows whether the tide was high on that day of spring."
    kept = label(f"{OLD} {other}", {"o": 5, "p": 1}, o=OLD, p=other)
    assert (kept.grade, set(kept.doc_ids), kept.doc_ids[0]) == (5, {"o", "p"}, "o")


def test_a_passage_without_a_label_for_the_query_gets_none():
    assert label(f"{OLD} The sky is blue.", {}, o=OLD) is None


def test_shared_text_is_found_without_ids():
    texts = {f"d{number}": single_spaced(f"{OLD} Number {number} of the log.") for number in range(40)}
    found = SharedText(texts).aligned(
        "new", single_spaced("An entry. It leaks oil at the valve. The crew left at noon. End.")
    )
    assert found is not None
    assert set(found.alignments) <= set(texts)


def test_unrelated_text_is_not_aligned():
    assert (
        SharedText({"d1": single_spaced(OLD)}).aligned("d2", "Bread needs flour, water, salt and much time to rise.")
        is None
    )


WORD = st.text("abcdef", min_size=1, max_size=6)
TEXT = st.lists(WORD, min_size=1, max_size=40).map(" ".join)


@given(TEXT, TEXT)
def test_stretches_ascend_and_are_common_text(old, new):
    found = align(old, new)
    ends = [0, *(end for _, end in found.stretches)]
    assert all(before <= start < end for before, (start, end) in zip(ends, found.stretches, strict=False))
    for start, end in found.stretches:
        assert f" {new[start:end]} " in f" {old} "
        assert found.whole or len(new[start:end].split()) >= min(MIN_STRETCH, len(new.split()))


@given(TEXT, TEXT, TEXT)
def test_a_contained_text_is_whole(before, text, after):
    assert align(text, f"{before} {text} {after}").whole
