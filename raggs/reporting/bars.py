"""Bars that are stacked of pieces: how much of a whole is what."""

from __future__ import annotations

from collections.abc import Sequence

from raggs.evaluation.models import Part

WIDE = 1000.0  # of a bar, in its own units


class Piece(Part):
    """A piece of a bar; `start` and `width` in units of which a bar has 1000, `text` its value as it is written."""

    kind: str
    text: str
    start: float
    width: float


def stacked(values: Sequence[tuple[str, float, str]], whole: float) -> tuple[Piece, ...]:
    """Pieces side by side.

    Args:
        values: kind, value and its text of each.
        whole: what fills a bar; above 0.
    """
    pieces, start = [], 0.0
    for kind, value, text in values:
        width = WIDE * value / whole
        pieces.append(Piece(kind=kind, text=text, start=round(start, 1), width=round(width, 1)))
        start += width
    return tuple(pieces)
