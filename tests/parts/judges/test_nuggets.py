"""The judge that counts facts."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.judging import graded, judge, ordered, passage, query

from raggs.base.artifacts import Nugget
from raggs.base.errors import DataError
from raggs.base.judge_health import reason_in_words
from raggs.base.settings import Pattern

VITAL = [{"any": ["alpha"]}, {"any": ["beta", "b[eé]ta"]}]
OKAY = [{"any": ["gamma"], "vital": False}, {"any": ["delta"], "vital": False}]
QUESTION = query(nuggets=VITAL + OKAY)  # weights 1, 1, 0.5, 0.5: 3 in all


@pytest.mark.parametrize(
    ("text", "grade"),
    [
        ("nothing of it", 1),
        ("gamma", 2),  # 0.5 of 3
        ("gamma delta", 3),  # 1 of 3
        ("ALPHA", 3),  # case does not matter
        ("alpha gamma", 4),  # 1.5 of 3, exactly the threshold
        ("alpha\nbéta", 4),  # 2 of 3
        ("alpha beta gamma", 5),  # 2.5 of 3
        ("alpha beta gamma delta", 5),
    ],
)
def test_the_grade_follows_the_weight_of_the_nuggets_held(text: str, grade: int) -> None:
    assert graded(judge("nuggets"), QUESTION, passage("d", text)).grade == grade


def test_the_reason_says_what_was_counted() -> None:
    answer = graded(judge("nuggets"), QUESTION, passage("d", "alpha gamma"))
    assert answer.reason == "holds 2 of 4 nuggets, weight 1.5 of 3"
    assert reason_in_words(answer.reason) == "states 2 of the 4 facts of a full answer (50% by their weights)"


@pytest.mark.parametrize("reason", ["", "holds 1 of 2 nuggets, weight - of -", "holds 0 of 0 nuggets, weight 0 of 0"])
def test_other_reasons_are_shown_as_stored(reason: str) -> None:
    assert reason_in_words(reason) == reason


def test_two_patterns_of_one_nugget_count_once() -> None:
    one = query(nuggets=[{"any": ["alpha", "omega"]}, {"any": ["x"]}, {"any": ["y"]}, {"any": ["z"]}])
    assert graded(judge("nuggets"), one, passage("d", "alpha omega")).grade == 3  # 1 of 4, not 2 of 4


def test_a_passage_is_searched_once_for_a_question_and_few_are_remembered(monkeypatch) -> None:
    searched = []
    within = Pattern.within
    monkeypatch.setattr(Pattern, "within", lambda self, text: searched.append(text) or within(self, text))
    monkeypatch.setattr("raggs.parts.judges.nuggets.MAX_REMEMBERED_PASSAGES", 2)
    counting, pair = judge("nuggets"), [passage("a", "alpha"), passage("b", "beta")]
    one, other = query(nuggets=[{"any": ["alpha"]}]), query("q2", nuggets=[{"any": ["beta"]}])
    for _ in range(3):
        assert [graded(counting, one, each).grade for each in pair] == [5, 1]
        assert ordered(counting, one, pair) == ["a", "b"]
    assert len(searched) == 2
    assert ordered(counting, other, pair) == ["b", "a"]
    assert ordered(counting, one, pair) == ["a", "b"]
    assert len(searched) == 6


def test_the_title_counts_and_a_pattern_may_span_lines() -> None:
    assert graded(judge("nuggets"), query(nuggets=[{"any": ["alpha"]}]), passage("d", "x", "Alpha")).grade == 5
    assert graded(judge("nuggets"), query(nuggets=[{"any": ["a.*z"]}]), passage("d", "a\nz")).grade == 5


def test_thresholds_can_be_set_and_must_rise() -> None:
    strict = judge("nuggets", thresholds=(0.5, 0.9, 1.0))
    assert graded(strict, QUESTION, passage("d", "alpha gamma")).grade == 3
    assert graded(strict, QUESTION, passage("d", "alpha beta gamma")).grade == 3
    for wrong in [(0.5, 0.5, 0.8), (0.8, 0.5, 0.9), (0, 0.5, 0.8), (0.2, 0.5, 1.1)]:
        with pytest.raises(ValidationError):
            judge("nuggets", thresholds=wrong)


def test_orders_go_by_coverage_then_by_density() -> None:
    passages = [
        passage("long", "alpha " + "filler " * 50),
        passage("none", "nothing"),
        passage("most", "alpha beta " + "filler " * 90),
        passage("short", "alpha filler"),
    ]
    assert ordered(judge("nuggets"), QUESTION, passages) == ["most", "short", "long", "none"]


@given(st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "x", "y"]), min_size=4, max_size=4), st.data())
def test_the_order_of_presentation_changes_nothing(texts: list[str], data: st.DataObject) -> None:
    passages = [passage(f"d{place}", text) for place, text in enumerate(texts)]  # twins happen
    shown = data.draw(st.permutations(passages))
    assert ordered(judge("nuggets"), QUESTION, shown) == ordered(judge("nuggets"), QUESTION, passages)


def test_equals_are_not_ordered_by_their_ids() -> None:
    """Whoever named the passages must not decide."""
    texts = [f"alpha filler{number}" for number in range(5)]
    names = ["a", "b", "c", "d", "e"]
    orders = {
        tuple(
            ordered(judge("nuggets"), QUESTION, [passage(name, text) for name, text in zip(each, texts, strict=True)])
        )
        for each in list(permutations(names))[:24]
    }
    assert len(orders) > 1


def test_a_question_without_nuggets_is_refused() -> None:
    who = judge("nuggets")
    who.check([QUESTION])
    with pytest.raises(DataError, match="q9 has no nuggets"):
        who.check([QUESTION, query("q9")])


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {}


def test_a_pattern_may_be_written_for_the_text_as_it_is_or_after_hygiene():
    who, text = judge("nuggets"), passage("p", "Le de\u0301bit : 10 km² par jour")
    for pattern in ("débit : 10 km2", "km²", "de\u0301bit"):
        asked = query(nuggets=(Nugget(any=(pattern,)),))
        assert graded(who, asked, text).grade == 5, pattern
