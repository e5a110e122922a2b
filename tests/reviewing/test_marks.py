"""What the queue knows of reviews is what folding says."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from raggs.parts.reviews import GradeReview, Review, Withdrawal, fold_reviews
from raggs.reviewing.session import ReviewMarks

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEYS = [("a" * 32, letter * 32) for letter in "bcde"]
HERE = KEYS[:3]  # the last is of another pool
STEP = st.tuples(
    st.sampled_from(["ada", "bo"]),
    st.sampled_from(["grade", "settle", "withdraw"]),
    st.sampled_from([*range(len(KEYS))]),
    st.sampled_from([None, 1, 5]),
    st.none() | st.integers(0, 20),
)


def lines_of(steps: list[tuple[str, str, int, int | None, int | None]]) -> list[Review]:
    lines: list[Review] = []
    for place, (who, kind, item, grade, old) in enumerate(steps):
        replaces = lines[old].id if old is not None and old < len(lines) else None
        query, passage = KEYS[item]
        if kind == "withdraw":
            named = replaces or "f" * 16
            lines.append(Withdrawal(who=who, at=NOON, qid="q", query=query, replaces=named, seconds=place))
            continue
        lines.append(
            GradeReview(
                who=who,
                at=NOON,
                qid="q",
                query=query,
                doc_id="d",
                passage=passage,
                grade=grade,
                settles=kind == "settle",
                replaces=replaces,
                seconds=place,
            )
        )
    return lines


@given(st.lists(STEP, max_size=20))
def test_marks_hold_what_folding_holds(steps: list[tuple[str, str, int, int | None, int | None]]) -> None:
    lines = lines_of(steps)
    held, marks = fold_reviews(lines), ReviewMarks({key: number for number, key in enumerate(HERE)})
    for line in lines:
        marks.note(line)
    for number, key in enumerate(HERE):
        words = held.grades.get(key, {})
        assert marks.words[number] == len(words)
        assert bool(marks.settled[number]) == (key in held.settling)
        decided = marks.decision(number)
        assert (decided and decided.line) == (held.settling[key].id if key in held.settling else None)
        assert [*marks.words_on(number)] == sorted(words)
        grades = [word.grade for word in words.values() if word.grade is not None and key not in held.settling]
        assert sorted(marks.undecided().get(number, [])) == sorted(grades)
        for who in ("ada", "bo"):
            mark = marks.person(who).marks.get(number)
            assert (mark and mark.line) == (words[who].id if who in words else None)
            assert (mark and mark.grade) == (words[who].grade if who in words else None)
            assert bool(marks.person(who).done[number]) == (who in words)
    for who in ("ada", "bo"):
        decided_by = [word.id for word in reversed(held.settling.values()) if word.who == who and word.key in HERE]
        assert [decision.line for decision in marks.decided_by(who)] == decided_by
        mine = [line for line in lines if any(line in held.grades.get(key, {}).values() for key in HERE)]
        last = next((line.id for line in reversed(mine) if line.who == who), None)
        found = marks.person(who).last()
        assert (found and found[0]) == last
