"""Positions of labels in plots, so that they do not cover each other, markers or lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from raggs.base.text import text_width

LINE_HEIGHT = 20.0


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Return whether two boxes overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    @classmethod
    def around(cls, x: float, y: float, radius: float) -> Self:
        """Return the box around a marker."""
        return cls(x - radius, y - radius, x + radius, y + radius)

    @classmethod
    def of_line(cls, one: tuple[float, float], other: tuple[float, float]) -> Self:
        """Return the box of a horizontal or vertical line."""
        (left, right), (top, bottom) = (sorted(ends) for ends in zip(one, other, strict=True))
        return cls(left - 1, top - 1, right + 1, bottom + 1)


def place_label(
    x: float, y: float, words: str, taken: list[Box], inside: Box, reach: float = 200
) -> tuple[float, float] | None:
    """Return and reserve a free position for the label of the point (x, y); None if there is none."""
    wide, high = text_width(words), 15.0
    for far in filter(lambda far: far <= reach, (8, 15, 24, *range(36, 200, 14))):
        for dx, dy in ((1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1), (1, 0), (-1, 0)):
            left = x + dx * min(far, 60) - (wide if dx < 0 else wide / 2 if dx == 0 else 0)
            if dy:
                left = min(max(left, inside.left), inside.right - wide)
            base = y + dy * far + (high if dy > 0 else high / 2 if dy == 0 else 0) - 3
            box = Box(left, base - high + 3, left + wide, base + 4)
            held = box.left >= inside.left and box.right <= inside.right and box.top >= inside.top
            if held and box.bottom <= inside.bottom and not any(box.meets(other) for other in taken):
                taken.append(box)
                return left, base
    return None


def free_height(left: float, foot: float, wide: float, top: float, marks: Sequence[Box]) -> float:
    """Return the lowest baseline from `foot` up to `top` at which a text covers no mark; `foot` if there is none."""
    y = foot
    while y >= top:
        box = Box(left, y - 13, left + wide, y + 4)
        if not any(box.meets(other) for other in marks):
            return y
        y -= LINE_HEIGHT
    return foot


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions near the wanted positions, at least `gap` apart, in order and between `low` and `high` if
    possible.
    """
    order = sorted(range(len(wanted)), key=lambda at: (wanted[at], at))
    placed = [0.0] * len(wanted)
    floor = low
    for at in order:
        placed[at] = max(wanted[at], floor)
        floor = placed[at] + gap
    ceiling = high
    for at in reversed(order):
        placed[at] = min(placed[at], ceiling)
        ceiling = placed[at] - gap
    return placed
