"""A text cut at the first kind of separator that it holds, and what is still too long at the next kind.

Pieces are packed up to the size, kind by kind, as the splitter does that is known by this name: the sum of the pieces'
lengths counts, not the length of the chunk, and a piece of exactly the size is cut further. A tokenizer that sets marks
at the ends of a text (`special_tokens`) sets them once more at each join. A separator stays with the
piece that it begins (`keep: start`) or ends; white space at the ends of a chunk is taken off.

An overlap repeats whole pieces from the end of the chunk before, as many as fit into it; there is none where the
text was cut more finely.
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
    """Paragraphs, then lines, sentences, words and letters, packed up to a size; overlap on request."""

    class Config(OverlappingConfig):
        type: Literal["recursive"] = "recursive"
        separators: tuple[str, ...] = Field(
            SEPARATORS, min_length=1, description="where a text is cut, the best first; an empty one: between letters"
        )
        keep: Literal["start", "end"] = Field(
            "start", description="whether a separator begins the piece that follows it, or ends the one before"
        )

    config: Config

    def causes(self) -> Causes:
        found = super().causes()
        return {**found, "joins": "measured"} if self.config.special_tokens else found  # they once cost nothing

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
    """The chunks of a place, in order; without an overlap they leave no gap."""
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
    """Neighbours together up to the size; each chunk begins with the last pieces of the one before, up to the overlap.

    Args:
        run: places without a gap between them, with their lengths.
        join: what putting two of them together adds to their lengths.
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
    """The first separator that a place holds, and those after it; the last one where it holds none."""
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
    """Parts with their lengths, which are exact below the size."""
    listed = list(parts)
    return zip(listed, ruler.lengths([text[first:last] for first, last in listed], enough=size), strict=True)
