"""Whole paragraphs packed into passages of bounded length.

Paragraphs are separated by blank lines. As many as fit are packed into one passage; a paragraph that is longer than
a passage is cut at the ends of its sentences, and a sentence that is longer at its words. A heading is never the end
of a passage: it opens the next one. Every chunk is an exact slice of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

PARAGRAPH = re.compile(r"\S.*?(?=\n[ \t]*\n|\s*\Z)", re.DOTALL)
SENTENCE = re.compile(r"\S.*?(?:[.!?…](?=\s)|\Z)", re.DOTALL)
WORD = re.compile(r"\S+")
HEADING = re.compile(r"#{1,6}\s")
UNDERLINE = re.compile(r"[^\n]+\n([=*\-~^])\1{2,}\s*\Z")

Span = tuple[int, int]


@dataclass(frozen=True)
class Chunk:
    """A slice of a text: ``source[start:end] == text``."""

    text: str
    start: int
    end: int


def pack_paragraphs(text: str, max_words: int = 200) -> list[Chunk]:
    """Cut `text` into chunks of at most `max_words` words, in order, without overlap, covering every word.

    Raises:
        ValueError: `max_words` < 1.
    """
    if max_words < 1:
        raise ValueError(f"max_words is {max_words}; at least 1")
    return [Chunk(text[start:end], start, end) for start, end in _pack(text, max_words)]


def _pack(text: str, max_words: int) -> Iterator[Span]:
    start = end = words = 0
    heading: int | None = None  # where a run of headings at the end of the open chunk begins
    for piece_start, piece_end in _pieces(text, max_words):
        count = _count(text, piece_start, piece_end)
        if words and words + count > max_words:
            cut = end if heading is None or heading <= start else heading
            yield start, len(text[:cut].rstrip())
            start = piece_start if cut == end else cut
            words = _count(text, start, end) if cut != end else 0
            if words and words + count > max_words:
                yield start, end
                start, words = piece_start, 0
        if not words:
            start = piece_start
        is_heading = _is_heading(text[piece_start:piece_end])
        heading = (piece_start if heading is None else heading) if is_heading else None
        end, words = piece_end, words + count
    if words:
        yield start, end


def _pieces(text: str, max_words: int) -> Iterator[Span]:
    """Paragraphs, or where they are too long their sentences, or runs of words."""
    for start, end in _spans(PARAGRAPH, text, 0, len(text)):
        if _count(text, start, end) <= max_words:
            yield start, end
            continue
        for first, last in _spans(SENTENCE, text, start, end):
            words = list(_spans(WORD, text, first, last))
            for place in range(0, len(words), max_words):
                run = words[place : place + max_words]
                yield run[0][0], run[-1][1]


def _spans(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[Span]:
    for match in pattern.finditer(text[start:end]):
        found = match.group().rstrip()
        if found:
            yield start + match.start(), start + match.start() + len(found)


def _count(text: str, start: int, end: int) -> int:
    return len(text[start:end].split())


def _is_heading(paragraph: str) -> bool:
    return ("\n" not in paragraph and bool(HEADING.match(paragraph))) or bool(UNDERLINE.fullmatch(paragraph))
