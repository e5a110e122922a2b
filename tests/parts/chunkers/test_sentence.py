"""Whole sentences: where one ends and where it does not, and what the next chunk repeats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raggs.parts.chunkers import Document
from raggs.parts.chunkers.sentence import SentenceChunker, sentences


def cut(text: str, size: int, overlap: int = 0, **settings: Any) -> list[str]:
    chunker = SentenceChunker(SentenceChunker.Config(size=size, overlap=overlap, unit="characters", **settings))
    return [chunk.text for chunk in chunker.chunk(Document(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One two. Three!  Four?", ["One two. ", "Three!  ", "Four?"]),
        ('He said "no more." She left.', ['He said "no more." ', "She left."]),
        ("Dr. J. Smith, e.g. in Fig. 3, agrees. So do we.", ["Dr. J. Smith, e.g. in Fig. 3, agrees. ", "So do we."]),
        ("It is 3.14 or so... or not. Yes", ["It is 3.14 or so... ", "or not. ", "Yes"]),
        ("1. First\n2. Second", ["1. First\n2. Second"]),
        ("A title\n\nA text. More", ["A title\n\n", "A text. ", "More"]),
        ("A title\r\n\r\nA text", ["A title\r\n\r\n", "A text"]),
        ("翼の揚力。それは何か？", ["翼の揚力。", "それは何か？"]),
        ("Voir M. Dupont (cf. p. 3). « Oui. » Non.", ["Voir M. Dupont (cf. p. 3). ", "« Oui. ", "» Non."]),
    ],
)
def test_where_sentences_end(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == expected


def test_sentences_are_packed_and_the_last_ones_repeated() -> None:
    text = "Aa bb. Cc dd. Ee ff. Gg hh."
    assert cut(text, 14) == ["Aa bb. Cc dd.", "Ee ff. Gg hh."]
    assert cut(text, 14, 7) == ["Aa bb. Cc dd.", "Cc dd. Ee ff.", "Ee ff. Gg hh."]


def test_a_long_sentence_is_cut_at_lines_then_words() -> None:
    assert cut("aa bb\ncc dd ee ff. Gg.", 9) == ["aa bb\ncc", "dd ee", "ff. Gg."]


@pytest.mark.parametrize("text", ["." * 50_000 + "x", ('."' * 25_000) + "x", "\n" + " " * 50_000 + "x", "a. " * 20_000])
def test_what_looks_like_many_ends_is_read_once(text: str) -> None:
    assert "".join(text[start:end] for start, end in sentences(text)) == text


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {}


CONTRACT_VARIANTS = [{"size": 40, "overlap": 20, "unit": "characters"}, {"size": 10, "overlap": 4}]
