"""Patterns that would backtrack for ever are failures, and never a wait."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.artifacts import Nugget, Passage, Query
from raggs.base.errors import DataError
from raggs.base.settings import Pattern, SlowPatternError
from raggs.parts.judges import JudgeContext
from raggs.parts.judges.nuggets import NuggetJudge, NuggetsConfig
from raggs.parts.queries.fields import query_of

SLOW = [
    (r"(a+)+$", "a" * 60 + "!"),
    (r"(a|aa)+$", "a" * 80 + "!"),
    (r"^(a|a?)+$", "a" * 80 + "!"),
    (r"(.*a){25}$", "a" * 60 + "!"),
    (r"(\w+\s?)+$", "word " * 30 + "!"),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 80 + "!"),
]


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raggs.base.settings.PATIENCE_S", 0.05)


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize(("pattern", "text"), SLOW)
def test_a_judgment_fails_and_names_the_pattern(pattern: str, text: str) -> None:
    judge = NuggetJudge(NuggetsConfig(), JudgeContext.__new__(JudgeContext))
    query = Query(qid="q", text="?", nuggets=(Nugget(any=(pattern,)),))
    passages = [Passage(doc_id=f"p{number}", title="", text=text) for number in range(3)]
    for passage in passages:
        judgment = asyncio.run(judge.grade(query, passage))
        if judgment.grade is None:
            assert "took longer than" in str(judgment.error)
            assert pattern[:20] in str(judgment.error).replace("\\\\", "\\")
        else:  # the engine sees through this one
            assert judgment.grade == 1
    ordering = asyncio.run(judge.order(query, passages))
    assert ordering.order is not None or "took longer than" in str(ordering.error)


def test_one_of_them_is_slow_indeed() -> None:
    with pytest.raises(SlowPatternError):
        Pattern(r"(.*a){25}$").within("ab" * 200 + "!")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "is not a regular expression"),
        ("a" * 10_001, "is not a regular expression"),
        ("(" * 5000 + ")" * 5000, "is not a regular expression"),
        ("a{99999999999999999999}", "is not a regular expression"),
        ("(?P<x>a)(?P<x>b)", "is not a regular expression"),
        (r"\N{NO SUCH NAME}", "is not a regular expression"),
        ("a*", "matches every text"),
        ("(?i:)", "matches every text"),
    ],
)
def test_a_pattern_that_cannot_be_is_told_with_its_line(pattern: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        query_of({"_id": "q", "text": "x", "nuggets": [{"any": [pattern]}]}, Path("q.jsonl"), 7)
    assert caught.value.line == 7


@given(
    st.lists(st.sampled_from(["amber", r"\bcedar\b", "[a-f]+", "(x|y)z", r"\d{2,3}", ".", r"\s", "é", "ß", "^", "$"])),
    st.text(alphabet="amber cdfxyz019éÉßSsİi"),
)
def test_it_finds_what_re_finds(parts: list[str], text: str) -> None:
    import re

    pattern = "".join(parts)
    assert Pattern(pattern).within(text) == (re.search(pattern, text, re.IGNORECASE) is not None)
