"""Which parts of the documents are shown to whoever asks questions about them.

The documents are tiled into windows of about one size, and the windows are put in an order in which every part has its
turn. In each beginning of that order a document has as many windows as its share of all characters says, give or take
one or two; those of one document lie evenly over it; and no character is shown again before all have been shown. A
longer order begins with the shorter one, so asking for more changes nothing that was asked.

A document of `n` windows and `L` characters gets the places (i + u) / L, i = 0..n-1, with one random u in [0, 1): the
divisor method of apportionment with a random offset. Which of its windows comes i-th follows the golden ratio.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count as count_up
from itertools import islice

from raggs.base.seeds import generator

SIZE = 4000  # characters, as in the report
GOLDEN = (5**0.5 - 1) / 2
# Where a cut may stand, and how far it moves for that, as a share of a window.
BREAKS = ((re.compile(r"\n\s*\n"), 0.1), (re.compile(r"\s+"), 1.0))
WORD = re.compile(r"\w")


@dataclass(frozen=True, order=True)
class Window:
    """Characters of one document.

    Attributes:
        document: its number, from 0.
        start, end: the first character, and the first one after the last; neither is white space.
    """

    document: int
    start: int
    end: int


def stratified_windows(texts: Sequence[str], count: int, seed: int, *, size: int = SIZE) -> tuple[Window, ...]:
    """`count` windows in an order in which every part of the documents has its turn (see the module).

    A document of at most `size` characters is one window. Others are cut into equal parts of at most that, and the cuts
    moved to a blank line less than a tenth of a part away, or else to the nearest white space; a word as long as a
    part (a page of Chinese) is cut where it falls. When all windows are used, others are cut, a quarter to three
    quarters of a part further on.

    Args:
        texts: of the documents; windows hold at least one letter or digit.
        seed: of the order and of the later cuts.

    Returns:
        Fewer than `count` only if no document has a word: none.

    Raises:
        ValueError: `count` is below 0 or `size` below 1.
    """
    if count < 0 or size < 1:
        raise ValueError(f"{count} windows of {size} characters: both must be positive")
    rounds = (_round(texts, number, seed, size) for number in count_up())
    if not (first := next(rounds)):
        return ()
    return tuple(islice(_chain(first, rounds), count))


def _chain(first: list[Window], rounds: Iterator[list[Window]]) -> Iterator[Window]:
    yield from first
    for windows in rounds:
        yield from windows


def _round(texts: Sequence[str], number: int, seed: int, size: int) -> list[Window]:
    """Every part of every document once, in order."""
    placed: list[tuple[float, Window]] = []
    for document, text in enumerate(texts):
        chance = generator(seed, "windows", number, document)
        offset, turn, shift = chance.random(3).tolist()
        edges = _edges(text, size, (0.25 + 0.5 * shift) if number else 0.0)
        cells = [cell for cell in map(Window, [document] * len(edges), edges, edges[1:]) if _holds(text, cell)]
        spread = sorted(range(len(cells)), key=lambda cell: (turn + cell * GOLDEN) % 1.0)
        placed += [((place + offset) / len(text), cells[cell]) for place, cell in enumerate(spread)]
    return [_trim(texts[window.document], window) for _, window in sorted(placed)]


def _holds(text: str, window: Window) -> bool:
    return WORD.search(text, window.start, window.end) is not None


def _edges(text: str, size: int, shift: float) -> list[int]:
    """Where a text is cut, its start and end included.

    Args:
        shift: of a window, by which cuts move; the first and the last window are then shorter.
    """
    parts = max(1, -(-len(text) // size))
    width = len(text) / parts
    if parts == 1:
        return [0, len(text)]
    wanted = [(place + shift) * width for place in range(parts) if place + shift > 0]
    cuts = (_cut(text, round(place), width) for place in wanted)
    return sorted({0, *cuts, len(text)})


def _cut(text: str, place: int, width: float) -> int:
    """The nearest place to cut at: a blank line that is near, else white space no further than a part away."""
    for pattern, share in BREAKS:
        reach = max(1, int(share * width))
        found = [match.end() for match in pattern.finditer(text, max(0, place - reach), place + reach)]
        if found:
            return min(found, key=lambda cut: abs(cut - place))
    return place


def _trim(text: str, window: Window) -> Window:
    """The same without white space at its ends."""
    held = text[window.start : window.end]
    start = window.start + len(held) - len(held.lstrip())
    return Window(window.document, start, start + len(held.strip()))
