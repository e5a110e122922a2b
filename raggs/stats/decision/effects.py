"""What each setting buys: the mean change of quality, latency or cost when one axis goes from one level to another.

A main effect is the mean over matched systems (see `matching`) of the change on each query; its interval is that of the
mean over queries, by resampling them: it speaks of other questions, not of other systems. Intervals are those of
single effects; `clear` allows for how many were looked at.

Must not choose a system: an effect averages over systems that nobody would ship.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats, Ints
from raggs.stats.decision.changes import CONFIDENCE, Found, bounds_of, checked_matrix, contrast
from raggs.stats.decision.matching import Grid, Level, Levels
from raggs.stats.decision.resamples import DRAWS, checked_values


@dataclass(frozen=True)
class Effect:
    """What a change of one axis does to a measure.

    Attributes:
        axis, before, after: the change.
        change: mean over queries of the mean over pairs, in the unit of the measure; NaN where no query is valid.
        low, high: bounds of `change` under resampled queries; NaN below two valid queries.
        pairs: matched systems that it rests on.
        queries: with a value in both systems of some pair.
        clear: not 0 beyond doubt, with Bonferroni's correction over all effects computed together, whatever unjudged
            passages turn out to be.
        unjudged: clear as labels stand, and not if unjudged passages turn out otherwise.
    """

    axis: str
    before: Level
    after: Level
    change: float
    low: float
    high: float
    pairs: int
    queries: int
    clear: bool
    unjudged: bool = False


Reversible = Callable[[Floats, Ints, Callable[[Floats], object]], bool]


@dataclass(frozen=True)
class Shift:
    """What a change of one axis does to a figure that a system has once: its cost, its median latency.

    Attributes:
        axis, before, after: the change.
        change: mean over the pairs where both are known, in the unit of the figure.
        least, most: over the pairs.
        pairs: that it rests on, at least 1.
    """

    axis: str
    before: Level
    after: Level
    change: float
    least: float
    most: float
    pairs: int


def main_effects(
    systems: Sequence[Levels],
    values: npt.ArrayLike,
    *,
    seed: int,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
    reversible: Reversible | None = None,
) -> tuple[Effect, ...]:
    """The effect of each change of level that matched systems show.

    Args:
        systems: each one's level by axis; None, or no such axis, where it lacks one. A system that stands beside the
            grid has no axis, and plays no part.
        values: of a measure, shape (systems, queries); NaN where it is undefined.
        seed: of the run.
        draws: at least 1.
        confidence: of the intervals, inside 0..1.
        reversible: whether unjudged passages could change what is said of a change by query, over pairs of systems,
            shape (pairs, 2); left out where there are none.

    Returns:
        By axis, then level before and after. Beyond 20 levels of an axis, changes from the first one only.

    Raises:
        ValueError: another shape, an infinite value, an argument out of its range.
    """
    matrix, grid = checked_matrix(systems, values, confidence), Grid.of(systems)
    found = [
        Found((axis,), (before,), (after,), len(pairs), contrast(matrix, pairs))
        for axis in range(len(grid.axes))
        for before, after in grid.changes(axis)
        if len(pairs := grid.pairs(axis, before, after))
    ]
    bounds = bounds_of([each.by_query for each in found], seed, draws, confidence)
    level = (1 - confidence, len(found))

    def unjudged(each: Found) -> bool:
        if reversible is None or not each.is_clear(*level):
            return False
        (axis,), (before,), (after,) = each.axes, each.before, each.after

        def says(row: Floats) -> object:
            moved = each._replace(by_query=row)
            return moved.is_clear(*level), moved.mean > 0

        return reversible(each.by_query, grid.pairs(axis, before, after), says)

    doubted = [unjudged(each) for each in found]
    return tuple(
        Effect(
            axis=grid.axes[each.axes[0]],
            before=grid.levels[each.axes[0]][each.before[0]],
            after=grid.levels[each.axes[0]][each.after[0]],
            change=each.mean,
            low=low,
            high=high,
            pairs=each.groups,
            queries=each.queries,
            clear=each.is_clear(*level) and not doubt,
            unjudged=doubt,
        )
        for each, (low, high), doubt in zip(found, bounds, doubted, strict=True)
    )


def main_shifts(systems: Sequence[Levels], figures: Sequence[float | None]) -> tuple[Shift, ...]:
    """The same for a figure that each system has once, None where it is unknown: without an interval.

    Raises:
        ValueError: not one figure a system, or one that is not finite.
    """
    row = np.array([math.nan if figure is None else figure for figure in figures], dtype=np.float64)
    matrix, grid = checked_values(row[:, None], len(systems)), Grid.of(systems)
    shifts = []
    for axis, name in enumerate(grid.axes):
        for before, after in grid.changes(axis):
            pairs = grid.pairs(axis, before, after)
            changes = matrix[pairs[:, 1], 0] - matrix[pairs[:, 0], 0]
            known = changes[~np.isnan(changes)]
            if known.size:
                levels = grid.levels[axis]
                of = (float(known.mean()), float(known.min()), float(known.max()))
                shifts.append(Shift(name, levels[before], levels[after], *of, known.size))
    return tuple(shifts)
