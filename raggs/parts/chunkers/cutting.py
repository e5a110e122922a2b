"""Cutting a text that is too long at the best places that it has, and packing what is short.

Places here leave no gap: each piece reaches to the next one, so that nothing is lost whatever is packed, and lengths
add up. White space at the ends is taken off once a chunk is whole (`trimmed`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from raggs.parts.chunkers.base import Place
from raggs.parts.chunkers.sizes import Ruler

LINES = re.compile(r"\n")
WORDS = re.compile(r"\s+")
SENTENCES = re.compile(r"[.!?…][\"'”’»)\]]*\s+|[。！？]")
CUTS = (SENTENCES, LINES, WORDS)


def pieces(text: str, place: Place, room: int, ruler: Ruler, cuts: Sequence[re.Pattern[str]] = CUTS) -> Iterator[Place]:
    """A place itself where it fits into `room`, else its parts between the best kind of cuts that makes them fit.

    The last kind of cut is between any two characters, so that nothing but one character is longer than `room`.
    """
    yield from _fitting(text, [place], room, ruler, cuts)


def _fitting(
    text: str, places: Sequence[Place], room: int, ruler: Ruler, cuts: Sequence[re.Pattern[str]]
) -> Iterator[Place]:
    """See `pieces`; all places are measured together, which is faster."""
    lengths = ruler.lengths([text[start:end] for start, end in places], enough=room + 1)
    for (start, end), length in zip(places, lengths, strict=True):
        if end - start <= 1 or length <= room:
            yield start, end
        elif not cuts:
            yield from joined(((at, at + 1) for at in range(start, end)), text, room, ruler)
        else:
            edges = [start, *(found.end() for found in cuts[0].finditer(text, start, end) if found.end() < end), end]
            yield from _fitting(text, list(pairwise(edges)), room, ruler, cuts[1:])


def joined(parts: Iterable[Place], text: str, room: int, ruler: Ruler) -> Iterator[Place]:
    """Neighbours put together as long as the sum of their lengths fits into `room`."""
    listed = list(parts)
    start = end = total = 0
    for part, length in zip(listed, ruler.lengths([text[first:last] for first, last in listed]), strict=True):
        if end > start and total + length > room:
            yield start, end
            start = end
        if end == start:
            start, total = part[0], 0
        end, total = part[1], total + length
    if end > start:
        yield start, end


def trimmed(text: str, place: Place) -> Place:
    """A place without the white space at its ends; an empty one where there is nothing else."""
    part = text[slice(*place)]
    start = place[0] + len(part) - len(part.lstrip())
    return start, max(start, place[0] + len(part.rstrip()))


def fresh(text: str, places: Iterable[Place]) -> Iterator[Place]:
    """Places without the white space at their ends, and without those that add nothing else to the one before."""
    reached = 0
    for place in places:
        start, end = trimmed(text, place)
        if end > max(start, reached):
            yield start, end
            reached = end
