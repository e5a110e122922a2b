"""A forest plot: a dot with its interval for each of several things, in rows; grey where it may be chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raggs.base.jsontypes import Number
from raggs.evaluation.svg import LINE, WIDTH, Drawing, Scale, shortened

LEFT, RIGHT, TOP = 300, WIDTH - 24, 66
STEP = LINE * 1.3  # between two rows
LETTERS = 42  # of a name


@dataclass(frozen=True)
class ForestRow:
    """One thing: its value with an interval, and whether that tells it from chance."""

    name: str
    value: float
    low: Number
    high: Number
    clear: bool = True


def forest(title: str, rows: Sequence[ForestRow], told: str, *, changes: bool) -> str:
    """The plot as SVG.

    Args:
        rows: at least one.
        told: what the scale is, below it.
        changes: whether values are changes, so that zero is marked and signs are shown.
    """
    foot = TOP + len(rows) * STEP + 8
    ends = [value for row in rows for value in (row.value, row.low, row.high) if value is not None]
    across = Scale.of([*ends, 0.0] if changes else ends, LEFT, RIGHT)
    drawing = Drawing(title, foot + 3.4 * LINE)
    for value in across.ticks():
        drawing.line(across.at(value), foot, across.at(value), TOP, "grid")
        words = (f"{value:+,.4g}" if value else "0") if changes else f"{value:,.4g}"
        drawing.text(across.at(value), foot + LINE, words, "soft", "middle")
    if changes:
        drawing.line(across.at(0), foot, across.at(0), TOP, "axis")
    for number, row in enumerate(rows):
        _row(drawing, row, across, TOP + (number + 0.8) * STEP)
    drawing.text((LEFT + RIGHT) / 2, foot + 2.2 * LINE, told, "soft", "middle")
    return drawing.svg()


def _row(drawing: Drawing, row: ForestRow, across: Scale, y: float) -> None:
    drawing.text(288, y + 4, shortened(row.name, LETTERS), "", "end")
    if row.low is not None and row.high is not None:
        drawing.line(across.at(row.low), y, across.at(row.high), y, "bar" if row.clear else "doubt")
    drawing.dot(across.at(row.value), y, "front" if row.clear else "doubtdot", row.name)
