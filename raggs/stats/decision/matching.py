"""Systems that differ in one setting alone, or in two: what the effect of a setting is read from.

A grid is rarely whole: cells are excepted, fail, or make no sense. So effects rest on matched systems, never on means
over unequal sets. A system that lacks a setting (a lexical search has no embedder) is matched with every level of it.

Must not look at values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from raggs.base.arrays import Ints

Level = str | int | float
Levels = Mapping[str, Level | None]

MOST_LEVELS = 20  # beyond, levels are compared with the first one only
LACKS = -1


@dataclass(frozen=True)
class Grid:
    """The levels of systems as numbers.

    Attributes:
        axes: names in order of appearance.
        levels: of each axis; numbers ascending, else in order of appearance.
        codes: shape (systems, axes), places in `levels`; -1 where a system lacks the axis.
    """

    axes: tuple[str, ...]
    levels: tuple[tuple[Level, ...], ...]
    codes: Ints

    @classmethod
    def of(cls, systems: Sequence[Levels]) -> Grid:
        """The grid of the systems' levels by axis; None, or an axis that is not named, is one that a system lacks."""
        axes = tuple(dict.fromkeys(axis for system in systems for axis in system))
        levels = tuple(_ordered([system.get(axis) for system in systems]) for axis in axes)
        places = [{level: place for place, level in enumerate(known)} for known in levels]
        codes = [
            [_code(known, system.get(axis)) for axis, known in zip(axes, places, strict=True)] for system in systems
        ]
        return cls(axes, levels, np.array(codes, dtype=np.int64).reshape(len(systems), len(axes)))

    def changes(self, axis: int) -> Iterator[tuple[int, int]]:
        """Changes of level on an axis: each pair of levels, or each from the first one where there are many."""
        count = len(self.levels[axis])
        return combinations(range(count), 2) if count <= MOST_LEVELS else ((0, level) for level in range(1, count))

    def pairs(self, axis: int, before: int, after: int) -> Ints:
        """Rows of shape (pairs, 2) at the two levels of one axis, alike in all else that both have."""
        ones, others = (np.flatnonzero(self.codes[:, axis] == level) for level in (before, after))
        rest = [each for each in range(len(self.axes)) if each != axis]
        alike = np.ones((ones.size, others.size), dtype=np.bool_)
        for each in rest:
            left, right = self.codes[ones, each][:, None], self.codes[others, each][None, :]
            alike &= (left == right) | (left == LACKS) | (right == LACKS)
        left, right = np.nonzero(alike)
        return np.stack([ones[left], others[right]], axis=1)

    def squares(self, axes: tuple[int, int]) -> list[Ints]:
        """For systems alike in all but two axes, the rows by level on both: shape (levels, levels), -1 if absent."""
        rest = [each for each in range(len(self.axes)) if each not in axes]
        shape = (len(self.levels[axes[0]]), len(self.levels[axes[1]]))
        found: dict[tuple[int, ...], Ints] = {}
        for row, codes in enumerate(self.codes):
            place = (int(codes[axes[0]]), int(codes[axes[1]]))
            if LACKS not in place:
                square = found.setdefault(tuple(codes[rest].tolist()), np.full(shape, LACKS, dtype=np.int64))
                square[place] = row
        return list(found.values())


def _ordered(values: Sequence[Level | None]) -> tuple[Level, ...]:
    known = list(dict.fromkeys(value for value in values if value is not None))
    numbers = [value for value in known if not isinstance(value, str)]
    return tuple(sorted(numbers)) if len(numbers) == len(known) else tuple(known)


def _code(places: Mapping[Level, int], level: Level | None) -> int:
    return LACKS if level is None else places[level]
