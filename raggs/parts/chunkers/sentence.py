"""Whole sentences, packed up to a size, each chunk beginning with the last sentences of the one before.

A sentence ends with its full stop, question or exclamation mark and the white space after it, or with its paragraph.
A stop after an abbreviation, an initial or a number of a list ends none. A sentence that is longer than a chunk is cut
at its lines, then at its words. English and French abbreviations are known; what is not known costs a cut too many,
never a word.

Windows of so many tokens, whatever they hold: the plainest way to cut, and a yardstick for the others.

The text becomes tokens once; a chunk begins where its first token does and ends where the next one begins, so that
nothing is lost between two chunks. A character of several tokens is not cut: it belongs to the chunk of its first one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

from pydantic import Field

from raggs.parts.chunkers import Document, TextRange
from raggs.parts.chunkers.recursive import pack_pieces
from raggs.parts.chunkers.sizes import (
    LINES,
    WORD_BREAK,
    OverlappingConfig,
    SizedChunker,
    drop_repeated_ranges,
    split_to_fit,
)

SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?:\s+|\Z)|[。！？]+\s*|\n[^\S\n]*\n\s*")
ABBREVIATIONS = frozenset(
    re.split(
        r"\s+",
        "mr mrs ms dr prof st jr sr vs etc fig figs nos vol pp p eq ref refs sec ch cf al approx inc ltd co corp dept "
        "e.g i.e a.m p.m u.s mm mme mlle chap éd env",
    )
)
LAST_WORD = re.compile(r"([^\W_]+(?:\.[^\W_]+)*)\.\s*\Z")
LOOKED_AT = 24  # characters before a stop in which an abbreviation is looked for


class SentenceChunker(SizedChunker):
    """Whole sentences up to a size, with an overlap of whole sentences."""

    class Config(OverlappingConfig):
        type: Literal["sentence"] = "sentence"
        size: int = Field(500, ge=1, le=1_000_000, description="the most that a chunk holds, in `unit`")
        overlap: int = Field(70, ge=0, description="how much of a chunk's end the next one repeats at most, in `unit`")

    config: Config

    def places(self, document: Document) -> Iterator[TextRange]:
        text = document.text
        run = [part for sentence in sentences(text) for part in self._parts(text, sentence)]
        lengths = self.ruler.lengths([text[start:end] for start, end in run])
        measured = list(zip(run, lengths, strict=True))
        yield from drop_repeated_ranges(text, pack_pieces(measured, self.config.size, self.config.overlap))

    def _parts(self, text: str, sentence: TextRange) -> Iterator[TextRange]:
        yield from split_to_fit(text, sentence, self.config.size, self.ruler, (LINES, WORD_BREAK))


def sentences(text: str) -> Iterator[TextRange]:
    """Where the sentences of a text stand, without a gap between them."""
    edges = [0, *(found.end() for found in SENTENCE_END.finditer(text) if not _goes_on(text, found)), len(text)]
    return ((first, last) for first, last in pairwise(edges) if last > first)


def _goes_on(text: str, found: re.Match[str]) -> bool:
    """Whether a stop ends no sentence, since it belongs to an abbreviation, an initial or a list's number."""
    if found[0].rstrip() != "." or "\n\n" in found[0]:
        return False
    word = LAST_WORD.search(text, max(0, found.start() - LOOKED_AT), found.start() + 1)
    if word is None:
        return False
    before = text[max(0, word.start() - 1) : word.start()]
    if word[1].isdigit():
        return before in ("", "\n")
    return word[1].lower() in ABBREVIATIONS or (len(word[1]) == 1 and word[1].isupper() and word[1] != "I")


class TokenChunker(SizedChunker):
    """Windows of a number of tokens or characters, with or without overlap; sentences and words are torn."""

    class Config(OverlappingConfig):
        type: Literal["token"] = "token"

    config: Config

    def places(self, document: Document) -> Iterator[TextRange]:
        text = document.text
        borders = [0, *self.ruler.borders(text)[1:], len(text)]
        last, step = len(borders) - 1, self.config.size - self.config.overlap
        reached = 0
        for first in range(0, last, step):
            end = min(first + self.config.size, last)
            if borders[end] > reached:
                yield borders[first], borders[end]
                reached = borders[end]
            if end == last:
                return
