"""Lengths of texts."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.parts.chunkers import sizes
from raggs.parts.chunkers.sizes import MeasuredConfig, TextSizer

WORDS = [
    "a",
    "word",
    "I'm",
    "don't",
    "x1y2",
    "12345",
    "...",
    "é",
    "e\u0301",
    "翼の揚力",
    "A",
    "/",
    "--",
    "\u00a0",
    "🛩️",
    "'ll",
]
SPACES = [" ", " ", " ", "  ", "\n", " \n", "\t", "\u2028", ""]
TEXTS = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SPACES)), max_size=60).map(
    lambda pairs: "".join(word + space for word, space in pairs)
)


class Config(MeasuredConfig):
    type: Literal["measured"] = "measured"


@pytest.mark.parametrize("unit", ["cl100k", "o200k"])
@given(texts=st.lists(TEXTS, max_size=4), enough=st.integers(1, 30))
def test_lengths_below_what_is_enough_are_exact_and_others_suffice(unit: str, texts: list[str], enough: int) -> None:
    ruler = TextSizer(Config.model_validate({"type": "measured", "unit": unit}))
    exact = ruler.lengths(texts)
    found = ruler.lengths(texts, enough)
    assert [min(each, enough) for each in found] == [min(each, enough) for each in exact]
    assert all(one <= other for one, other in zip(found, exact, strict=True))


def test_of_a_long_text_the_beginning_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    count = sizes.count_tokens
    monkeypatch.setattr(
        sizes, "count_tokens", lambda texts, vocabulary: seen.extend(map(len, texts)) or count(texts, vocabulary)
    )
    text = "many words " * 10_000
    assert TextSizer(Config()).lengths([text], enough=100)[0] >= 100
    assert sum(seen) < 1000
