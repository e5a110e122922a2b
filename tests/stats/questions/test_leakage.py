"""Leakage by its formula, and what is said of a set of questions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stats.question_filters import WordWeights, leakage, summarise_leakage

WORDS = st.lists(st.sampled_from("abcdefg"), max_size=8)
TEXTS = st.lists(WORDS, max_size=8)


@given(question=WORDS, excerpts=TEXTS, corpus=TEXTS)
def test_it_is_its_formula(question: list[str], excerpts: list[list[str]], corpus: list[list[str]]) -> None:
    def idf(word: str) -> float:
        held = sum(word in text for text in corpus)
        return math.log(1 + (len(corpus) - held + 0.5) / (held + 0.5))

    asked = set(question)
    copied = {word for word in asked if any(word in excerpt for excerpt in excerpts)}
    found = leakage(question, excerpts, WordWeights.of(corpus))
    if not asked:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(sum(map(idf, copied)) / sum(map(idf, asked)))
        assert 0 <= found <= 1


def test_a_rare_word_that_is_copied_weighs_more_than_a_common_one() -> None:
    weights = WordWeights.of([["pool", "the"], ["the"], ["the"]])
    assert leakage(["pool", "the"], [["pool"]], weights) > 0.8
    assert leakage(["pool", "the"], [["the"]], weights) < 0.2


def test_a_set_of_copied_questions_is_warned_about() -> None:
    found = summarise_leakage([0.1, 0.85, 0.9, 1.0, math.nan])
    assert (found.count, found.high, sum(found.histogram)) == (4, 0.75, 4)
    assert found.histogram[1] == found.histogram[8] == 1 and found.histogram[9] == 2
    assert found.warning is not None and found.warning.startswith("75% of the questions copy")
    assert summarise_leakage([0.1, 0.2, 0.9]).warning is None


def test_no_question_has_no_leakage() -> None:
    found = summarise_leakage([])
    assert found.count == 0 and math.isnan(found.mean) and found.warning is None
