"""Groups of near-duplicates against the definition worked out by hand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.ranking.fusion import group_duplicates


def agreement(first: str, second: str) -> float:
    """2 L / (m + n) by the textbook table, for texts of plain words."""
    one, two = first.split(), second.split()
    table = [[0] * (len(two) + 1) for _ in range(len(one) + 1)]
    for i, left in enumerate(one):
        for j, right in enumerate(two):
            table[i + 1][j + 1] = table[i][j] + 1 if left == right else max(table[i][j + 1], table[i + 1][j])
    return 2 * table[-1][-1] / (len(one) + len(two))


def by_definition(texts, threshold):
    heads, leaders = [], []
    for position, text in enumerate(texts):
        leader = next((head for head in heads if agreement(text, texts[head]) >= threshold - 1e-9), position)
        if leader == position:
            heads.append(position)
        leaders.append(leader)
    return leaders


WORDS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12).map(" ".join)


@given(st.lists(WORDS, max_size=8), st.sampled_from([0.3, 0.5, 2 / 3, 0.8, 0.9, 0.95, 1.0]))
def test_the_shortcuts_change_nothing(texts, threshold):
    assert group_duplicates(texts, threshold) == by_definition(texts, threshold)


@given(st.lists(st.text(max_size=12), max_size=8), st.floats(0.01, 1))
def test_any_texts(texts, threshold):
    leaders = group_duplicates(texts, threshold)
    assert len(leaders) == len(texts)
    for position, leader in enumerate(leaders):
        assert leader <= position
        assert leaders[leader] == leader, "a representative represents itself"
        assert leader == leaders[texts.index(texts[position])], "equal texts share their group"


def test_case_punctuation_and_encoding_do_not_count():
    assert group_duplicates(["Café, crème!", "cafe\u0301 CRÈME", "cafe creme"], 1.0) == [0, 0, 2]


def test_the_threshold_is_inclusive():
    text = [f"w{number}" for number in range(20)]
    other = [*text[:19], "x"]
    pair = [" ".join(text), " ".join(other)]
    assert group_duplicates(pair, 0.95) == [0, 0]
    assert group_duplicates(pair, 0.951) == [0, 1]


def test_groups_are_not_chained():
    step = ["a b c d e f g h i j", "a b c d e f g h i x", "a b c d e f g h y x"]
    assert group_duplicates(step, 0.9) == [0, 0, 2]


def test_texts_without_words():
    assert group_duplicates(["", "…", "!!", " … ", "a"], 0.9) == [0, 1, 2, 1, 4]


def test_order_matters():
    assert group_duplicates(["dog bites man", "man bites dog"], 0.9) == [0, 1]


@pytest.mark.parametrize("threshold", [0, -1, 1.1, float("nan")])
def test_a_threshold_out_of_range(threshold):
    with pytest.raises(ValueError, match="at most 1"):
        group_duplicates(["a"], threshold)


def test_a_pool_of_a_hundred_passages():
    rng = random.Random(1)
    base = [[f"w{int(rng.paretovariate(0.7))}" for _ in range(200)] for _ in range(70)]
    copies = [[*passage[:-3], "x", "y", "z"] for passage in base[:30]]
    texts = [" ".join(passage) for passage in base + copies]
    assert group_duplicates(texts, 0.95) == [*range(70), *range(30)]
