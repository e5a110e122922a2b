"""How far what one setting buys depends on another one.

An interaction is how much more a change brings at one level of a second axis than at another (Montgomery, "Design and
Analysis of Experiments", chapter 5), over groups of four systems that are alike in all else. Of the many that a grid
has, the strongest are picked; `clear` allows for how many they were picked from, their intervals do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats, Ints
from raggs.stats.decision.changes import CONFIDENCE, Found, bounds_of, checked_matrix, contrast
from raggs.stats.decision.matching import Grid, Level, Levels
from raggs.stats.decision.resamples import DRAWS


@dataclass(frozen=True)
class Interaction:
    """How much more the change of the first axis brings once the second one has changed.

    Attributes:
        axes: first and second.
        before, after: the levels on both axes before and after their changes.
        change: (after, after) - (before, after) - ((after, before) - (before, before)), as `Effect.change`.
        low, high, queries: as in `Effect`. Chosen as the strongest of many, it is likely to be overstated.
        squares: groups of four matched systems that it rests on.
        compared: interactions that it was chosen from.
        clear: not 0 beyond doubt, with Bonferroni's correction over all that were compared, whatever unjudged
            passages turn out to be.
        unjudged: clear as labels stand, and not if unjudged passages turn out otherwise.
    """

    axes: tuple[str, str]
    before: tuple[Level, Level]
    after: tuple[Level, Level]
    change: float
    low: float
    high: float
    squares: int
    queries: int
    compared: int
    clear: bool
    unjudged: bool = False


ReversibleSquares = Callable[[Floats, Ints, Callable[[Floats], object]], bool]


def strongest_interactions(
    systems: Sequence[Levels],
    values: npt.ArrayLike,
    *,
    seed: int,
    most: int = 2,
    draws: int = DRAWS,
    confidence: float = CONFIDENCE,
    reversible: ReversibleSquares | None = None,
) -> tuple[Interaction, ...]:
    """The strongest interaction of each pair of axes, of the strongest pairs: those surely farthest from 0 come first.

    Args:
        most: how many pairs of axes.
        systems, values, seed, draws, confidence: as in `main_effects`; here a system is matched only with such as lack
            the same axes.
        reversible: whether unjudged passages could change what is said of an interaction by query, over squares of
            systems, shape (squares, 4): before and after at the first level, then at the second one.

    Raises:
        ValueError: as `main_effects`.
    """
    matrix, grid = checked_matrix(systems, values, confidence), Grid.of(systems)
    width = NormalDist().inv_cdf((1 + confidence) / 2)
    compared, best = 0, []
    for axes in combinations(range(len(grid.axes)), 2):
        strongest, strength = None, -math.inf
        for each, squares in _interactions(matrix, grid, axes):
            compared += 1
            surely = abs(each.mean) - width * each.error
            if surely > strength:
                strongest, strength = (each, squares), surely
        if strongest is not None:
            best.append((strength, strongest))
    best.sort(key=lambda item: -item[0])
    chosen = [each for _, each in best[:most]]
    found = [each for each, _ in chosen]
    bounds = bounds_of([each.by_query for each in found], seed, draws, confidence)
    level = (1 - confidence, compared)
    doubted = [_is_reversible(each, squares, level, reversible) for each, squares in chosen]
    return tuple(
        _interaction(grid, each, ends, level, unjudged=doubt)
        for each, ends, doubt in zip(found, bounds, doubted, strict=True)
    )


def _is_reversible(found: Found, squares: Ints, level: tuple[float, int], asks: ReversibleSquares | None) -> bool:
    if asks is None or not found.is_clear(*level):
        return False

    def says(row: Floats) -> object:
        moved = found._replace(by_query=row)
        return moved.is_clear(*level), moved.mean > 0

    return asks(found.by_query, squares, says)


def _interactions(matrix: Floats, grid: Grid, axes: tuple[int, int]) -> Iterator[tuple[Found, Ints]]:
    squares = grid.squares(axes)
    stacked = np.stack(squares) if squares else np.zeros((0, 0, 0), dtype=np.int64)
    for before, after in grid.changes(axes[0]):
        for low, high in grid.changes(axes[1]) if len(stacked) else ():
            corners = stacked[:, [before, after, before, after], [low, low, high, high]]
            whole = corners[(corners >= 0).all(axis=1)]
            if len(whole):
                at_low, at_high = (matrix[whole[:, place + 1]] - matrix[whole[:, place]] for place in (0, 2))
                both = np.concatenate([at_low, at_high])
                pairs = np.stack([np.arange(len(whole)), np.arange(len(whole)) + len(whole)], axis=1)
                yield Found(axes, (before, low), (after, high), len(whole), contrast(both, pairs)), whole


def _interaction(
    grid: Grid, found: Found, ends: tuple[float, float], level: tuple[float, int], *, unjudged: bool
) -> Interaction:
    (one, other), (low, high) = found.axes, ends
    return Interaction(
        axes=(grid.axes[one], grid.axes[other]),
        before=(grid.levels[one][found.before[0]], grid.levels[other][found.before[1]]),
        after=(grid.levels[one][found.after[0]], grid.levels[other][found.after[1]]),
        change=found.mean,
        low=low,
        high=high,
        squares=found.groups,
        queries=found.queries,
        compared=level[1],
        clear=found.is_clear(*level) and not unjudged,
        unjudged=unjudged,
    )
