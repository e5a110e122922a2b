"""What holds after all lines: the latest word of each, agreement, decisions, and what was taken back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.artifacts import Passage, Query
from raggs.parts.reviews import (
    GradeReview,
    OrderReview,
    ReviewLine,
    Withdrawal,
    fold_reviews,
    key_of,
    passage_digest,
    question_digest,
)

QUERY = Query(qid="q1", text="Where is the otter?")
PASSAGE = Passage(doc_id="d1", title="Otters", text="In the inlet.")
KEY = key_of(QUERY, PASSAGE)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def word(
    who: str, grade: int | None, *, at: int = 0, settles: bool = False, replaces: str | None = None
) -> GradeReview:
    return GradeReview(
        who=who,
        at=NOON + timedelta(seconds=at),
        qid="q1",
        query=KEY[0],
        doc_id="d1",
        passage=KEY[1],
        grade=grade,
        settles=settles,
        replaces=replaces,
    )


def test_the_latest_word_counts_by_lines_and_not_by_clocks() -> None:
    held = fold_reviews([word("ada", 2, at=100), word("ada", 4, at=-100)])
    settled = held.settled(KEY)
    assert settled is not None
    assert (settled.grade, settled.by, settled.how) == (4, ("ada",), "one")


@pytest.mark.parametrize(
    ("grades", "grade", "how"),
    [([3, 3], 3, "agreed"), ([2, 5], 2, "median"), ([1, 4, 5], 4, "median"), ([None, 4], 4, "one")],
)
def test_several_reviewers(grades: list[int | None], grade: int, how: str) -> None:
    settled = fold_reviews(word(f"r{place}", each) for place, each in enumerate(grades)).settled(KEY)
    assert settled is not None
    assert (settled.grade, settled.how) == (grade, how)
    assert settled.conflict == (how == "median")


def test_a_decision_ends_a_conflict_and_stays_when_somebody_speaks_again() -> None:
    settled = fold_reviews([word("ada", 1), word("bo", 5), word("cy", 4, settles=True), word("ada", 2)]).settled(KEY)
    assert settled is not None
    assert (settled.grade, settled.how, settled.conflict) == (4, "settled", False)
    assert settled.by == ("bo", "ada", "cy")


def test_nobody_could_tell() -> None:
    held = fold_reviews([word("ada", None)])
    assert held.settled(KEY) is None
    assert not held.items()
    assert held.grades[KEY]["ada"].grade is None


def test_what_is_taken_back_holds_no_longer_and_only_its_author_can() -> None:
    first = word("ada", 2)
    back = Withdrawal(who="ada", at=NOON, qid="q1", query=KEY[0], replaces=first.id)
    assert not fold_reviews([first, back]).items()
    assert fold_reviews([first, back, word("ada", 5)]).items()[KEY].grade == 5
    foreign = Withdrawal(who="bo", at=NOON, qid="q1", query=KEY[0], replaces=first.id)
    held = fold_reviews([first, foreign])
    assert held.items()[KEY].grade == 2
    assert held.unmatched == [first.id]
    decided = word("ada", 4, settles=True)
    undecided = Withdrawal(who="ada", at=NOON, qid="q1", query=KEY[0], replaces=decided.id)
    assert fold_reviews([first, decided, undecided]).items()[KEY].grade == 2


def test_what_is_taken_back_was_never_said() -> None:
    first, again = word("ada", 2), word("ada", 5, at=60)
    undone = Withdrawal(who="ada", at=NOON, qid="q1", query=KEY[0], replaces=again.id)
    assert fold_reviews([first, again, undone]).items()[KEY].grade == 2, "a repetition undone leaves the first word"
    other = word("ada", 4, at=90, replaces=first.id)
    unchanged = Withdrawal(who="ada", at=NOON, qid="q1", query=KEY[0], replaces=other.id)
    assert fold_reviews([first, other]).items()[KEY].grade == 4
    assert fold_reviews([first, other, unchanged]).items()[KEY].grade == 2, "and so does a change undone"
    gone = Withdrawal(who="ada", at=NOON, qid="q1", query=KEY[0], replaces=first.id)
    assert not fold_reviews([first, again, undone, gone]).items()


def test_an_order_is_kept_by_the_passages_shown_and_its_groups_are_ties() -> None:
    shown = OrderReview(
        who="ada",
        at=NOON,
        qid="q1",
        query=question_digest(QUERY),
        shown=("a", "b", "c"),
        passages=tuple(passage_digest(Passage(doc_id=name, text=name)) for name in "abc"),
        order=(("c",), ("a", "b")),
    )
    held = fold_reviews([shown])
    assert shown.places == (1, 1, 0)
    assert list(held.orders.values()) == [{"ada": shown}]
    with pytest.raises(ValueError, match="contain each shown passage"):
        OrderReview(**{**dict(shown), "order": (("c",), ("a",))})


def test_words_on_other_texts_are_stale_and_words_travel_with_a_text() -> None:
    held = fold_reviews([word("ada", 2)])
    changed = Passage(doc_id="d1", title="Otters", text="In the outlet.")
    assert held.stale({("q1", "d1"): key_of(QUERY, changed)}) == [held.grades[KEY]["ada"]]
    assert held.stale({("q1", "d1"): KEY}) == []
    moved = key_of(Query(qid="q9", text=QUERY.text), Passage(doc_id="x#3", title="Otters", text=PASSAGE.text))
    settled = held.settled(moved)
    assert settled is not None, "the same question and the same passage under other ids"
    assert settled.grade == 2


grades = st.none() | st.integers(1, 5)
lines = st.lists(st.tuples(st.sampled_from(["ada", "bo"]), grades, st.booleans()), max_size=12)


@given(lines)
def test_a_fold_knows_nothing_of_ways_but_each_ones_latest_word(said: list[tuple[str, int | None, bool]]) -> None:
    words = [word(who, grade, at=at, settles=settles) for at, (who, grade, settles) in enumerate(said)]
    latest = {(each.who, each.settles): each for each in words}
    held, short = fold_reviews(words), fold_reviews(each for each in words if latest[each.who, each.settles] is each)
    assert held.items() == short.items()
    assert {key: set(each) for key, each in held.grades.items()} == {
        key: set(each) for key, each in short.grades.items()
    }


@given(lines)
def test_a_line_comes_back_as_it_was_written(said: list[tuple[str, int | None, bool]]) -> None:
    for at, (who, grade, settles) in enumerate(said):
        line = word(who, grade, at=at, settles=settles)
        again = ReviewLine.model_validate_json(line.model_dump_json()).root
        assert again == line
        assert again.id == line.id
