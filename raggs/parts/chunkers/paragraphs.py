"""Whole paragraphs packed into passages of bounded length.

Paragraphs are separated by blank lines. Each passage contains as many paragraphs as fit. A paragraph that is too long
is split at sentence ends, a long sentence at its lines, and a long line at its words. A heading (Markdown ``#`` or
underlined) forms one block with the paragraph that follows it. The heading is not separated from the first words of
this paragraph, except if headings fill a whole passage. Every chunk is an exact slice of the source, so an offset in a
chunk maps to an offset in the file.

A run of at least `UNSPACED` characters without white space (Chinese, Thai, base64) counts as one word per
`CHARACTERS_PER_WORD` characters. Such a run may be split at full stops. If its parts are still too long, they may be
split after every `RUN_SPLIT_CHARS` characters.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Set
from itertools import pairwise
from typing import Literal

from pydantic import Field

from raggs.parts.chunkers import Chunk, Chunker, ChunkerConfig, Document, TextRange

LINE = re.compile(r"[^\n]+\n?|\n")
MARKDOWN_HEADING = re.compile(r"#{1,6}\s+\S")
HEADING_MARKS = re.compile(r"\A#{1,6}\s+|\s+#+\s*\Z")
UNDERLINED = re.compile(r"(?:([=*#~^\"-])\1{2,}\s*\n)?[^\n]+\n([=*#~^\"-])\2{2,}")
# Split points of a text that is too long, in order of preference; always at white space.
SPLIT_PATTERNS = (re.compile(r"[.!?…][\"'”’»)\]]*\s+"), re.compile(r"\n"), re.compile(r"\s+"))
UNSPACED = 400
CHARACTERS_PER_WORD = 3
RUN_SPLIT_CHARS = 30
LONG_RUN = re.compile(rf"\S{{{UNSPACED},}}")
RUN_CUTS = (re.compile(r"[。！？．]+[」』）”’]*"), re.compile(rf"\S{{{RUN_SPLIT_CHARS}}}"))


class ParagraphsChunker(Chunker):
    """Whole paragraphs, packed up to a number of words; headings stay with the paragraph that follows."""

    class Config(ChunkerConfig):
        type: Literal["paragraphs"] = "paragraphs"
        max_words: int = Field(200, ge=20, description="maximum words per chunk")

    config: Config

    def places(self, document: Document) -> Iterator[TextRange]:
        yield from _pack(document.text, self.config.max_words, _unmarked(document))


def pack_paragraphs(text: str, max_words: int = 200) -> list[Chunk]:
    """Split `text` into chunks of at most `max_words` words, in order, without overlap, covering every word.

    Raises:
        ValueError: `max_words` < 1.
    """
    if max_words < 1:
        raise ValueError(f"max_words must be at least 1, got {max_words}")
    return [Chunk(text[start:end], start, end) for start, end in _pack(text, max_words)]


def heading_of(text: str) -> str | None:
    """Return the first heading of a text, without its markup, or None."""
    for start, end in _paragraphs(text):
        paragraph = text[start:end]
        if MARKDOWN_HEADING.match(paragraph):
            return HEADING_MARKS.sub("", paragraph).strip()
        underlined = UNDERLINED.match(paragraph)
        if underlined:
            return underlined[0].splitlines()[-2].strip()
    return None


def has_long_runs(text: str) -> bool:
    """Return whether a text contains runs without white space that are long enough to be split."""
    # each long run fills one of these windows; checking the windows is faster than checking all words
    half = UNSPACED // 2
    windows = (text[at : at + half] for at in range(0, len(text), half))
    return any(window.split(None, 1) == [window] for window in windows) and LONG_RUN.search(text) is not None


class _WordCounter:
    """Counts the words in ranges of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._runs = [found.span() for found in LONG_RUN.finditer(text)] if has_long_runs(text) else []
        self._ends = [end for _, end in self._runs]
        self.cuts = (*SPLIT_PATTERNS, *RUN_CUTS) if self._runs else SPLIT_PATTERNS

    def __call__(self, start: int, end: int) -> int:
        """Return the number of words in the characters from `start` to `end`."""
        count = len(self._text[start:end].split())
        for at in range(bisect_right(self._ends, start), len(self._runs)):
            first, last = self._runs[at]
            if first >= end:
                break
            count += -(-(min(last, end) - max(first, start)) // CHARACTERS_PER_WORD) - 1
        return count


def _unmarked(document: Document) -> Set[int]:
    """Return the offsets of headings that are not marked up in the text."""
    if document.marked or document.blocks is None:
        return frozenset()
    return {block.start for block in document.blocks() if block.kind == "heading"}


def _pack(text: str, max_words: int, unmarked: Set[int] = frozenset()) -> Iterator[TextRange]:
    open_start = open_end = words = 0
    words_in = _WordCounter(text)
    for block_start, body, block_end in _blocks(text, unmarked):
        whole = body if words_in(block_start, body) < max_words else block_start
        for start, end in _split_pieces(text, block_start, whole, block_end, max_words, words_in):
            count = words_in(start, end)
            if words and words + count > max_words:
                yield open_start, open_end
                words = 0
            open_start, open_end = (open_start if words else start), end
            words += count
    if words:
        yield open_start, open_end


def _blocks(text: str, unmarked: Set[int]) -> Iterator[tuple[int, int, int]]:
    """Yield paragraphs with the headings above them: start of the headings, start and end of the paragraph."""
    opened: int | None = None
    start = end = 0
    for start, end in _paragraphs(text):
        first = start if opened is None else opened
        if start in unmarked or _is_heading(text[start:end]):
            opened = first
        else:
            yield first, start, end
            opened = None
    if opened is not None:
        yield opened, start, end


def _paragraphs(text: str) -> Iterator[TextRange]:
    """Yield groups of lines between blank lines; a heading line with markup is a separate group."""
    opened: int | None = None
    for line in LINE.finditer(text):
        blank, marked = not line.group().strip(), MARKDOWN_HEADING.match(line.group()) is not None
        if opened is not None and (blank or marked):
            yield _trim(text, opened, line.start())
            opened = None
        if marked:
            yield _trim(text, *line.span())
        elif not blank and opened is None:
            opened = line.start()
    if opened is not None:
        yield _trim(text, opened, len(text))


def _split_pieces(
    text: str, start: int, body: int, end: int, max_words: int, words_in: _WordCounter, level: int = 0
) -> Iterator[TextRange]:
    """Yield the range if it is short enough, otherwise its parts, split after `body` at the first pattern that
    occurs.
    """
    if level == len(words_in.cuts) or words_in(start, end) <= max_words:
        yield start, end
        return
    edges = [start, *(match.end() for match in words_in.cuts[level].finditer(text, body, end)), end]
    for first, last in pairwise(edges):
        if text[first:last].strip():
            inner, stop = _trim(text, first, last)
            yield from _split_pieces(text, inner, max(inner, body), stop, max_words, words_in, level + 1)


def _trim(text: str, start: int, end: int) -> TextRange:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())


def _is_heading(paragraph: str) -> bool:
    return MARKDOWN_HEADING.match(paragraph) is not None or UNDERLINED.fullmatch(paragraph) is not None
