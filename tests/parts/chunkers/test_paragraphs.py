"""Cutting texts into passages: nothing lost, nothing twice, nothing too long, places exact."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.parts.chunkers.paragraphs import UNSPACED, heading_of, pack_paragraphs

BREAKS = ["\n", "\n\n", "\r\n\r\n", "\n \t\n", " ", "\u00a0", "\u2028", "\x0c"]
WORDS = ["word", "Two words.", "one two three four. Five six! Seven", "«Oui.» Non", "…", "- a\n- b\n- c", "a\x0cb"]
HEADINGS = ["# Heading", "Title\n=====", "***\nOver\n***", "## ", "#"]
PIECES = st.sampled_from(BREAKS + WORDS + HEADINGS)
TEXTS = st.one_of(
    st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join), st.lists(PIECES, max_size=40).map(" ".join)
)


@given(TEXTS, st.integers(1, 12))
def test_chunks_are_slices_in_order_that_cover_every_word(text: str, max_words: int) -> None:
    chunks = pack_paragraphs(text, max_words)
    end = 0
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.text == chunk.text.strip() != ""
        assert chunk.start >= end
        assert not text[end : chunk.start].strip()
        assert len(chunk.text.split()) <= max_words
        end = chunk.end
    assert not text[end:].strip()
    assert [word for chunk in chunks for word in chunk.text.split()] == text.split()


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(9, 20))
def test_neighbours_are_joined_whenever_they_fit(lengths: list[int], max_words: int) -> None:
    text = "\n\n".join(" ".join(["w"] * length) for length in lengths)
    chunks = pack_paragraphs(text, max_words)
    for chunk, following in pairwise(chunks):
        first_paragraph = following.text.split("\n\n")[0]
        assert len(chunk.text.split()) + len(first_paragraph.split()) > max_words


def texts(source: str, max_words: int) -> list[str]:
    return [chunk.text for chunk in pack_paragraphs(source, max_words)]


def test_a_long_paragraph_is_cut_at_sentences_then_lines_then_words() -> None:
    assert texts("One two three. Four five six. Seven.", 4) == ["One two three.", "Four five six. Seven."]
    assert texts('He said "no more." She left early.', 4) == ['He said "no more."', "She left early."]
    assert texts("a b c\nd e f\ng h i", 4) == ["a b c", "d e f", "g h i"]
    assert texts("a b c d e f g", 3) == ["a b c", "d e f", "g"]


def test_windows_line_ends_separate_paragraphs() -> None:
    assert texts("a b c\r\n\r\nd e f", 4) == ["a b c", "d e f"]


@pytest.mark.parametrize("heading", ["# News", "### News ###", "News\n----", "****\nNews\n****"])
def test_a_heading_goes_with_what_follows(heading: str) -> None:
    size = len(heading.split())
    found = texts(f"one two three four five\n\n{heading}\n\nsix seven eight", 5 + size)
    assert found == ["one two three four five", f"{heading}\n\nsix seven eight"]


def test_a_heading_before_a_long_paragraph_goes_with_its_first_sentence() -> None:
    found = texts("x y z\n\n# Top\n\nOne two three. Four five six seven eight.", 7)
    assert found == ["x y z", "# Top\n\nOne two three.", "Four five six seven eight."]


SECTION = st.tuples(
    st.lists(st.sampled_from(["# 1. Intro", "## What? Why!", "Title\n====="]), max_size=2),
    st.lists(st.sampled_from(["word", "end.", "line\n"]), min_size=1, max_size=25).map(" ".join),
)


@given(st.lists(SECTION, min_size=1, max_size=6), st.integers(7, 20))
def test_a_heading_is_never_parted_from_its_first_words(sections: list[tuple[list[str], str]], max_words: int) -> None:
    text, ties = "", []  # where headings begin, and where the first word below them stands
    for headings, body in sections:
        above = "".join(f"{heading}\n\n" for heading in headings)
        if headings:
            ties.append((len(text), len(text) + len(above)))
        text += f"{above}{body.strip()}\n\n"
    chunks = pack_paragraphs(text, max_words)
    for heading, first_word in ties:
        assert any(chunk.start <= heading and first_word < chunk.end for chunk in chunks)


def test_headings_that_fill_a_passage_are_cut_like_any_text() -> None:
    assert texts("# One two three\n\n# Four five\n\nsix", 4) == ["# One two three", "# Four five\n\nsix"]


def test_headings_at_the_end_and_in_a_row_are_kept() -> None:
    assert texts("# One\n\n## Two\n\ntext here", 6) == ["# One\n\n## Two\n\ntext here"]
    assert texts("text here\n\n# The end", 3) == ["text here", "# The end"]


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("# A title\n\ntext", "A title"),
        ("intro\n\n## About C# ##\ntext", "About C#"),
        ('The "yield" statement\n*********************\n\ntext', 'The "yield" statement'),
        ("====\nOver\n====\n\ntext", "Over"),
        ("no heading\n\n#nor here, a hashtag", None),
        ("", None),
    ],
)
def test_the_first_heading_is_the_title(text: str, heading: str | None) -> None:
    assert heading_of(text) == heading


def test_no_text_and_no_room() -> None:
    assert pack_paragraphs("") == []
    assert pack_paragraphs(" \n\n\t ") == []
    with pytest.raises(ValueError, match="max_words must be at least 1, got 0"):
        pack_paragraphs("text", 0)


def contract_case(folder: Path, request: pytest.FixtureRequest) -> dict[str, Any]:
    return {}


CONTRACT_VARIANTS = [{"max_words": 20}]


@pytest.mark.parametrize("text", ["翼の揚力は角度と速度によって決まる。" * 300, "x" * 9_000, "ปีกเครื่องบิน" * 600])
def test_texts_without_spaces_are_cut_too(text: str) -> None:
    source = f"Some words first.\n\n{text}\n\nSome words last."
    chunks = pack_paragraphs(source)
    assert max(len(chunk.text) for chunk in chunks) <= 630
    assert "".join("".join(chunk.text.split()) for chunk in chunks) == "".join(source.split())
    assert all(source[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    if "。" in text:
        assert all(chunk.text.endswith("。") for chunk in chunks[1:-1])


def test_a_long_address_changes_no_cut_of_the_words_around_it() -> None:
    words = " ".join(f"word{number}" for number in range(150))
    address = "https://example.org/" + "a" * 379
    assert len(address) == UNSPACED - 1
    assert texts(f"{words}\n\n{address}", 200) == [f"{words}\n\n{address}"]
    assert texts(f"{words}\n\n{address}a", 200)[0] == words
