"""Recursive chunking: splits a text at the first separator that occurs in it, and long pieces at the next separators.

Pieces are packed up to the size, as in LangChain's recursive splitter. The limit applies to the sum of the pieces'
lengths, not to the length of the chunk. A piece whose length equals the size is split further. If the tokenizer adds
special tokens to each text (`special_tokens`), they count again at each join. A separator stays with the piece that it
starts (`keep: start`) or ends (`keep: end`). White space at both ends of a chunk is removed.

An overlap repeats as many whole pieces from the end of the previous chunk as fit. Neighbouring chunks do not overlap if
their pieces were split at different separators.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

from pydantic import Field

from raggs.base.settings import Causes
from raggs.parts.chunkers import Document, TextRange
from raggs.parts.chunkers.sizes import OverlappingConfig, SizedChunker, TextSizer, drop_repeated_ranges

SEPARATORS = ("\n\n", "\n", ".", "?", "!", " ", "")


class RecursiveChunker(SizedChunker):
    """Splits at paragraphs, lines, sentences, words, then characters, up to a size; optional overlap."""

    class Config(OverlappingConfig):
        type: Literal["recursive"] = "recursive"
        separators: tuple[str, ...] = Field(
            SEPARATORS,
            min_length=1,
            description="separators in order of preference; an empty string splits between characters",
        )
        keep: Literal["start", "end"] = Field(
            "start", description="position of a separator: start of the following piece, or end of the previous one"
        )

    config: Config

    def causes(self) -> Causes:
        found = super().causes()
        # earlier versions did not count special tokens at joins
        return {**found, "joins": "measured"} if self.config.special_tokens else found

    def places(self, document: Document) -> Iterator[TextRange]:
        text = document.text
        found = recursive(
            text,
            (0, len(text)),
            self.ruler,
            self.config.size,
            overlap=self.config.overlap,
            separators=self.config.separators,
            at_end=self.config.keep == "end",
        )
        yield from drop_repeated_ranges(text, found)


def recursive(
    text: str,
    place: TextRange,
    ruler: TextSizer,
    size: int,
    *,
    overlap: int = 0,
    separators: Sequence[str] = SEPARATORS,
    at_end: bool = False,
) -> Iterator[TextRange]:
    """Yield the chunks of a range, in order; without an overlap they are adjacent."""
    separator, finer = _first_separator(text, place, separators)
    join = ruler.lengths([""])[0]
    run: list[tuple[TextRange, int]] = []
    for part, length in _measured(text, _split(text, place, separator, at_end=at_end), ruler, size):
        if length < size:
            run.append((part, length))
            continue
        yield from pack_pieces(run, size, overlap, join)
        run = []
        if finer:
            yield from recursive(text, part, ruler, size, overlap=overlap, separators=finer, at_end=at_end)
        else:
            yield part
    yield from pack_pieces(run, size, overlap, join)


def pack_pieces(
    run: Sequence[tuple[TextRange, int]], size: int, overlap: int = 0, join: int = 0
) -> Iterator[TextRange]:
    """Join neighbouring pieces up to the size; each chunk repeats the last pieces of the previous one, up to the
    overlap.

    Args:
        run: adjacent ranges with their lengths.
        join: length that is added when two pieces are joined.
    """
    held: deque[tuple[TextRange, int]] = deque()
    total = 0
    for part, length in run:
        if held and total + join + length > size:
            yield held[0][0][0], held[-1][0][1]
            while held and (total > overlap or total + join + length > size):
                total -= held.popleft()[1] + (join if held else 0)
        total += length + (join if held else 0)
        held.append((part, length))
    if held:
        yield held[0][0][0], held[-1][0][1]


def _first_separator(text: str, place: TextRange, separators: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the first separator that occurs in a range, and the separators after it; the last one if none occurs."""
    for number, separator in enumerate(separators):
        if not separator:
            return "", ()
        if text.find(separator, *place) >= 0:
            return separator, separators[number + 1 :]
    return separators[-1], ()


def _split(text: str, place: TextRange, separator: str, *, at_end: bool) -> Iterator[TextRange]:
    start, end = place
    if not separator:
        return zip(range(start, end), range(start + 1, end + 1), strict=True)
    found = re.compile(re.escape(separator)).finditer(text, start, end)
    edges = [start, *(match.end() if at_end else match.start() for match in found), end]
    return ((first, last) for first, last in pairwise(edges) if last > first)


def _measured(text: str, parts: Iterator[TextRange], ruler: TextSizer, size: int) -> Iterator[tuple[TextRange, int]]:
    """Return the parts with their lengths. Lengths of `size` or more may be lower bounds."""
    listed = list(parts)
    return zip(listed, ruler.lengths([text[first:last] for first, last in listed], enough=size), strict=True)
