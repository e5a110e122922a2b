"""Lines of logs: what is no question, and what is the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stats.personal_data import QuestionLines, fault, group_lines, merge_near_lines, near_duplicate_key, same_key


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("?!?", "no words"),
        ("12 34", "no words"),
        ("https://example.org/a-page", "no words"),
        ("Hello, thank you!", "small talk"),
        ("Bonjour, merci", "small talk"),
        ("install", "too short"),
        ("word " * 500, "too long"),
        ("install linux", None),
        ("How do I install it?", None),
        ("如何安装软件", None),
        ("安装", "too short"),
        ("help with https://example.org please", None),
    ],
)
def test_what_is_no_question_has_a_reason(text: str, reason: str | None) -> None:
    assert fault(text) == reason


def test_case_accents_and_punctuation_do_not_count() -> None:
    assert same_key("Où est  l'Église ?") == same_key("ou est l eglise")


def test_numbers_and_denial_tell_questions_apart() -> None:
    assert near_duplicate_key("error 404 again") != near_duplicate_key("error 403 again")
    assert near_duplicate_key("install with docker") != near_duplicate_key("install without docker")
    assert near_duplicate_key("How do I install?") == near_duplicate_key("how can i install it")


LINES = st.lists(st.tuples(st.sampled_from(["How so?", "how so", "Why?", "why", "WHY?", "when"]), st.integers(1, 5)))


@given(LINES)
def test_grouping_loses_no_line_and_keeps_the_most_frequent_spelling(rows: list[tuple[str, int]]) -> None:
    lines = [QuestionLines(text, number, count) for number, (text, count) in enumerate(rows)]
    found = group_lines(lines)
    assert sum(each.count for each in found) == sum(count for _, count in rows)
    assert len({same_key(each.text) for each in found}) == len(found)
    for each in found:
        own = [(text, count) for text, count in rows if same_key(text) == same_key(each.text)]
        totals = {text: sum(count for other, count in own if other == text) for text, _ in own}
        assert totals[each.text] == max(totals.values())
    assert [-each.count for each in found] == sorted(-each.count for each in found)


@given(st.integers(1, 8), st.data())
def test_merging_loses_no_line(count: int, data: st.DataObject) -> None:
    asked = [QuestionLines(f"question {row}", row, 9 - row) for row in range(count)]
    kept = data.draw(st.integers(1, count))
    into = [(row, data.draw(st.integers(0, kept - 1))) for row in range(kept, count)]
    found = merge_near_lines(asked, into)
    assert sum(each.count for each in found) == sum(each.count for each in asked)
    assert {each.text for each in found} == {f"question {row}" for row in range(kept)}
