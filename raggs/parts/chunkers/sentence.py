"""Chunking by whole sentences with overlap, and by fixed windows of tokens.

Sentences: a sentence ends with its paragraph, or with a full stop, question mark, exclamation mark or ellipsis that
white space follows. Chinese and Japanese marks need no white space. A full stop after an abbreviation, an initial or a
list number does not end a sentence. A sentence that is longer than a chunk is split at its lines, then at its words,
then between characters. English and French abbreviations are known. Any other abbreviation causes an additional split,
but no text is lost.

Tokens: windows with a fixed number of tokens, regardless of content, as a baseline for the other chunkers. The text is
tokenized once. A chunk extends from its first token to the start of the token after its last one, so that no text is
lost between chunks. A character that consists of several tokens is not split; it belongs to the chunk of its first
token.
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
LOOKED_AT = 24  # characters before a full stop that are searched for an abbreviation


class SentenceChunker(SizedChunker):
    """Whole sentences up to a size, with an overlap of whole sentences."""

    class Config(OverlappingConfig):
        type: Literal["sentence"] = "sentence"
        size: int = Field(500, ge=1, le=1_000_000, description="maximum chunk size, in `unit`")
        overlap: int = Field(70, ge=0, description="maximum overlap with the previous chunk, in `unit`")

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
    """Return the ranges of a text's sentences, without a gap between them."""
    edges = [0, *(found.end() for found in SENTENCE_END.finditer(text) if not _goes_on(text, found)), len(text)]
    return ((first, last) for first, last in pairwise(edges) if last > first)


def _goes_on(text: str, found: re.Match[str]) -> bool:
    """Return whether the sentence continues after a full stop: after an abbreviation, an initial or a list number."""
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
    """Windows of a fixed number of tokens or characters, with optional overlap; may split words."""

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
