"""The judge that looks for the reference's words."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.judging import graded, judge, ordered, passage, query

from raggs.base.artifacts import Passage, Span
from raggs.base.errors import DataError
from raggs.parts.corpora.folder import FolderConfig, FolderCorpus

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "chunking"
WORDS = [f"{chr(97 + number)}{chr(97 + number)}{chr(97 + number)}{chr(97 + number)}" for number in range(20)]
EXCERPT = " ".join(WORDS)  # 20 words of 4 letters
QUESTION = query(references=[{"text": EXCERPT}])


def words(first: int, last: int) -> str:
    return " ".join(WORDS[first:last])


@pytest.mark.parametrize(
    ("text", "grade"),
    [
        (f"Before it. {EXCERPT} After it.", 5),
        (EXCERPT.upper().replace(" ", ",\n"), 5),  # case, punctuation and line breaks do not matter
        (words(0, 16), 5),  # 0.8
        (words(0, 15), 4),
        (words(5, 15), 4),  # half
        (words(0, 5), 3),  # a quarter
        (words(0, 4), 2),
        (words(0, 2), 1),  # a run too short
        ("nothing of it", 1),
        (" filler ".join(WORDS), 1),  # every word, but scattered
        (f"{words(10, 20)} and {words(0, 10)}", 5),  # where a run stands does not matter
        (f"{words(0, 5)}. {words(0, 5)}. {words(0, 5)}. {words(0, 5)}.", 3),  # said four times, covered once
    ],
)
def test_the_grade_follows_the_covered_share(text: str, grade: int) -> None:
    assert graded(judge("reference", min_run=3), QUESTION, passage("d", text)).grade == grade


def test_characters_count_not_words() -> None:
    question = query(references=[{"text": "a b c d extraordinarily incomprehensible misunderstandings"}])
    who = judge("reference", min_run=3)
    assert graded(who, question, passage("d", "a b c d")).grade == 2  # 4 of 7 words, 4 of 52 characters


def test_the_best_covered_excerpt_gives_the_grade() -> None:
    question = query(references=[{"text": "one two three four"}, {"text": EXCERPT}])
    answer = graded(judge("reference"), question, passage("d", "one two three four"))
    assert (answer.grade, answer.reason) == (5, "covers 100% of the best matching reference")


def test_a_short_excerpt_must_be_there_as_a_whole() -> None:
    question = query(references=[{"text": "Yield expression."}])
    assert graded(judge("reference"), question, passage("d", "the yield expression is")).grade == 5
    assert graded(judge("reference"), question, passage("d", "yield an expression")).grade == 1


def test_the_shortest_run_can_be_set() -> None:
    assert graded(judge("reference", min_run=1), QUESTION, passage("d", " filler ".join(WORDS))).grade == 5
    assert graded(judge("reference", min_run=6), QUESTION, passage("d", words(0, 5))).grade == 1


def test_spellings_of_the_same_letters_match() -> None:
    question = query(references=[{"text": "l'e\u0301te\u0301 a\u0300 l'office"}])  # accents as marks of their own
    assert graded(judge("reference"), question, passage("d", "L'\u00c9T\u00c9 \u00e0 l'o\ufb03ce")).grade == 5


def test_orders_go_by_characters_covered_over_all_excerpts_then_by_density() -> None:
    question = query(references=[{"text": EXCERPT}, {"text": "one two three four"}])
    passages = [
        passage("none", "nothing"),
        passage("long", words(0, 10) + " filler" * 50),
        passage("both", f"{words(0, 10)} one two three four" + " filler" * 90),
        passage("short", words(0, 10)),
    ]
    assert ordered(judge("reference"), question, passages) == ["both", "short", "long", "none"]


@given(st.lists(st.integers(0, 20), min_size=5, max_size=5), st.data())
def test_the_order_of_presentation_changes_nothing(cuts: list[int], data: st.DataObject) -> None:
    passages = [passage(f"d{place}", words(0, cut) or "none") for place, cut in enumerate(cuts)]
    shown = data.draw(st.permutations(passages))
    assert ordered(judge("reference"), QUESTION, shown) == ordered(judge("reference"), QUESTION, passages)


@given(st.lists(st.sampled_from(WORDS[:6]), max_size=40), st.lists(st.sampled_from(WORDS[:6]), max_size=40))
def test_more_text_never_covers_less(some: list[str], more: list[str]) -> None:
    less = graded(judge("reference"), QUESTION, passage("d", " ".join(some) or "none")).grade
    grown = graded(judge("reference"), QUESTION, passage("d", " ".join([*some, *more]) or "none")).grade
    assert less is not None
    assert grown is not None
    assert grown >= less


def test_a_question_without_words_in_its_references_is_refused() -> None:
    who = judge("reference")
    who.check([QUESTION])
    for lacking in [query("q9"), query("q9", references=[{"text": "…!"}])]:
        with pytest.raises(DataError, match="q9 has no reference"):
            who.check([lacking])


@pytest.mark.skipif(not DATA.exists(), reason="the chunking data are not there")
def test_real_excerpts_are_found_where_they_stand_and_hardly_elsewhere() -> None:
    """Questions about a speech, with the places of their excerpts, against its passages with theirs."""
    config = FolderConfig(path=DATA / "corpora", patterns=("state_of_the_union.md",))
    passages = list(FolderCorpus(config).passages())
    with (DATA / "questions.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["corpus_id"] == "state_of_the_union"]
    who, whole, chance, others = judge("reference"), 0, 0, 0
    for number, row in enumerate(rows):
        excerpts = json.loads(row["references"])
        question = query(f"q{number}", references=[{"text": excerpt["content"]} for excerpt in excerpts])
        for each in passages:
            grade, place = graded(who, question, each).grade, each.span
            assert grade is not None
            assert place is not None
            inside = [place.start <= it["start_index"] and it["end_index"] <= place.end for it in excerpts]
            apart = [place.end <= it["start_index"] or it["end_index"] <= place.start for it in excerpts]
            if any(inside):
                assert grade == 5
                whole += 1
            elif all(apart):
                others += 1
                chance += grade > 1
    assert whole > 60
    assert chance / others < 0.01


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {}


def test_places_count_where_both_are_known() -> None:
    place = {"source": "animals", "start": 100, "end": 200}
    asked = query(references=[{"text": EXCERPT, "span": place}])
    who = judge("reference")

    def grade(source: str, start: int, end: int, text: str = "other words") -> int | None:
        span = Span(source=source, start=start, end=end)
        found = Passage(doc_id=f"{source}:{start}-{end}:{len(text)}", text=text, span=span)
        return graded(who, asked, found).grade

    ends = (0, 100), (0, 101), (100, 125), (0, 150), (90, 180)
    assert [grade("animals.md", *each) for each in ends] == [1, 2, 3, 4, 5]
    assert grade("animals", 50, 300) == 5
    assert grade("plants.md", 50, 300, EXCERPT) == 1  # the same words elsewhere
    assert grade("animals.md", 300, 500, EXCERPT) == 1
    assert graded(who, asked, passage("nowhere", EXCERPT)).grade == 5  # a passage without a place: by words


def test_near_duplicates_are_told_apart_by_their_places_alone() -> None:
    who, place = judge("reference"), {"source": "animals", "start": 100, "end": 200}
    placed = query(references=[{"text": EXCERPT, "span": place}])
    here, there, near = (
        Passage(doc_id=f"at{at}", text=EXCERPT, span=Span(source="animals.md", start=at, end=at + 100))
        for at in (100, 700, 900)
    )
    assert who.apart(placed, here, there)
    assert not who.apart(placed, there, near)
    assert not who.apart(QUESTION, here, there), "without a place of the excerpt the same words are as good"
    assert not who.apart(placed, here, passage("nowhere", EXCERPT + " more"))
    members = [{"type": "reference"}, {"type": "reference", "min_run": 2}]
    assert judge("panel", judges=members).apart(placed, here, there)


def test_an_excerpt_without_offsets_that_several_passages_hold_is_told() -> None:
    who = judge("reference")
    for doc_id in ("d1", "d2", "d2", "d3"):
        graded(who, QUESTION, passage(doc_id, f"{doc_id} {EXCERPT}"))
    graded(who, query("q2", references=[{"text": "one two three"}]), passage("d1", "one two three"))
    [told] = who.remarks()
    assert "query q1: 3 passages" in told
    assert "no offsets" in told
    assert list(judge("panel", judges=[{"type": "reference"}, {"type": "reference", "min_run": 2}]).remarks()) == []
