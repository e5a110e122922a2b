"""What each setting buys: the mean change of quality, latency or cost when one axis goes from one level to another.

A main effect is the mean over matched systems (see `LevelGrid`) of the change on each query; its interval is that of
the mean over queries, by resampling them: it speaks of other questions, not of other systems. Intervals are those of
single effects; `clear` allows for how many were looked at.

Must not choose a system: an effect averages over systems that nobody would ship.

How far what one setting buys depends on another one.

An interaction is how much more a change brings at one level of a second axis than at another (Montgomery, "Design and
Analysis of Experiments", chapter 5), over groups of four systems that are alike in all else. Of the many that a grid
has, the strongest are picked; `clear` allows for how many they were picked from, their intervals do not.

The change of a value by query, over matched systems, and what may be said of its mean.

Systems that differ in one setting alone, or in two: what the effect of a setting is read from.

A grid is rarely whole: cells are excepted, fail, or make no sense. So effects rest on matched systems, never on means
over unequal sets. A system that lacks a setting (a lexical search has no embedder) is matched with every level of it.

Must not look at values.

How much of a system's score is due to its own passages having been judged?

A golden set pooled from some systems flatters them: what only one of them found was judged because it took part, while
a newcomer's own finds are holes. Leaving a system's unique contributions unjudged puts it in the newcomer's place
(Zobel, "How reliable are the results of large-scale information retrieval experiments?", SIGIR 1998). Systems that
share a part (an embedder at several K) find the same passages, and are left out together, as one group.

Must not score: the caller does, with the judged sets that are given here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from raggs.base.arrays import Floats, Ints
from raggs.stats.resampling import RESAMPLE_DRAWS, checked_values, resampled_means

AxisLevel = str | int | float
LevelsByAxis = Mapping[str, AxisLevel | None]

MAX_PAIRED_LEVELS = 20  # beyond, levels are compared with the first one only
NO_LEVEL = -1


@dataclass(frozen=True)
class LevelGrid:
    """The levels of systems as numbers.

    Attributes:
        axes: names in order of appearance.
        levels: of each axis; numbers ascending, else in order of appearance.
        codes: shape (systems, axes), places in `levels`; -1 where a system lacks the axis.
    """

    axes: tuple[str, ...]
    levels: tuple[tuple[AxisLevel, ...], ...]
    codes: Ints

    @classmethod
    def of(cls, systems: Sequence[LevelsByAxis]) -> LevelGrid:
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
        return (
            combinations(range(count), 2) if count <= MAX_PAIRED_LEVELS else ((0, level) for level in range(1, count))
        )

    def pairs(self, axis: int, before: int, after: int) -> Ints:
        """Rows of shape (pairs, 2) at the two levels of one axis, alike in all else that both have."""
        ones, others = (np.flatnonzero(self.codes[:, axis] == level) for level in (before, after))
        rest = [each for each in range(len(self.axes)) if each != axis]
        alike = np.ones((ones.size, others.size), dtype=np.bool_)
        for each in rest:
            left, right = self.codes[ones, each][:, None], self.codes[others, each][None, :]
            alike &= (left == right) | (left == NO_LEVEL) | (right == NO_LEVEL)
        left, right = np.nonzero(alike)
        return np.stack([ones[left], others[right]], axis=1)

    def squares(self, axes: tuple[int, int]) -> list[Ints]:
        """For systems alike in all but two axes, the rows by level on both: shape (levels, levels), -1 if absent."""
        rest = [each for each in range(len(self.axes)) if each not in axes]
        shape = (len(self.levels[axes[0]]), len(self.levels[axes[1]]))
        found: dict[tuple[int, ...], Ints] = {}
        for row, codes in enumerate(self.codes):
            place = (int(codes[axes[0]]), int(codes[axes[1]]))
            if NO_LEVEL not in place:
                square = found.setdefault(tuple(codes[rest].tolist()), np.full(shape, NO_LEVEL, dtype=np.int64))
                square[place] = row
        return list(found.values())


def _ordered(values: Sequence[AxisLevel | None]) -> tuple[AxisLevel, ...]:
    known = list(dict.fromkeys(value for value in values if value is not None))
    numbers = [value for value in known if not isinstance(value, str)]
    return tuple(sorted(numbers)) if len(numbers) == len(known) else tuple(known)


def _code(places: Mapping[AxisLevel, int], level: AxisLevel | None) -> int:
    return NO_LEVEL if level is None else places[level]


CONFIDENCE = 0.95
MAX_MATCHED_VALUES = 1_000_000  # of matched values at a time: 8 MB each


class LevelChange(NamedTuple):
    """A change of level on one axis or on two, and what it does to each query.

    Attributes:
        axes, before, after: places of the axes and of their levels.
        groups: matched systems that it rests on, pairs or squares.
        by_query: shape (queries,), NaN where no group has a value.
    """

    axes: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    groups: int
    by_query: Floats

    @property
    def valid(self) -> Floats:
        return self.by_query[~np.isnan(self.by_query)]

    @property
    def queries(self) -> int:
        return int(self.valid.size)

    @property
    def mean(self) -> float:
        return float(self.valid.mean()) if self.queries else math.nan

    @property
    def error(self) -> float:
        """Standard error of the mean over queries."""
        return float(self.valid.std(ddof=1)) / math.sqrt(self.queries) if self.queries > 1 else math.inf

    def is_clear(self, alpha: float, compared: int) -> bool:
        """A t-test at alpha / compared; fewer queries than signs could ever reach that level are never enough."""
        level = alpha / compared
        if self.mean == 0 or self.queries < 1 - math.log2(level):
            return False
        t = abs(self.mean) / self.error if self.error > 0 else math.inf
        return 2 * float(stdtr(self.queries - 1, -t)) < level


def checked_matrix(systems: Sequence[LevelsByAxis], values: npt.ArrayLike, confidence: float) -> Floats:
    if not 0 < confidence < 1:
        raise ValueError(f"the confidence is {confidence}; it lies inside 0..1")
    return checked_values(values, len(systems))


def contrast(matrix: Floats, pairs: Ints) -> Floats:
    """By query the mean change over the pairs that have it; NaN where none has."""
    queries = matrix.shape[1]
    total, count = np.zeros(queries), np.zeros(queries)
    step = max(1, MAX_MATCHED_VALUES // max(queries, 1))
    for start in range(0, len(pairs), step):
        chunk = pairs[start : start + step]
        changes = matrix[chunk[:, 1]] - matrix[chunk[:, 0]]
        total += np.nansum(changes, axis=0)
        count += (~np.isnan(changes)).sum(axis=0)
    means = np.full(queries, math.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means


def bounds_of(rows: Sequence[Floats], seed: int, draws: int, confidence: float) -> list[tuple[float, float]]:
    """Percentile intervals of the rows' means over resampled queries; NaN below two valid queries."""
    if not rows:
        return []
    matrix = np.stack(rows)
    means = np.concatenate(list(resampled_means(matrix, draws=draws, seed=seed)))
    tail = (1 - confidence) / 2
    bounds = []
    for row, column in zip(matrix, means.T, strict=True):
        drawn = column[~np.isnan(column)]  # none of the row's valid queries may be in a draw
        low, high = np.quantile(drawn, [tail, 1 - tail]) if (~np.isnan(row)).sum() > 1 else (math.nan, math.nan)
        bounds.append((float(low), float(high)))
    return bounds


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
    before: AxisLevel
    after: AxisLevel
    change: float
    low: float
    high: float
    pairs: int
    queries: int
    clear: bool
    unjudged: bool = False


Reversible = Callable[[Floats, Ints, Callable[[Floats], object]], bool]


@dataclass(frozen=True)
class FigureEffect:
    """What a change of one axis does to a figure that a system has once: its cost, its median latency.

    Attributes:
        axis, before, after: the change.
        change: mean over the pairs where both are known, in the unit of the figure.
        least, most: over the pairs.
        pairs: that it rests on, at least 1.
    """

    axis: str
    before: AxisLevel
    after: AxisLevel
    change: float
    least: float
    most: float
    pairs: int


def main_effects(
    systems: Sequence[LevelsByAxis],
    values: npt.ArrayLike,
    *,
    seed: int,
    draws: int = RESAMPLE_DRAWS,
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
    matrix, grid = checked_matrix(systems, values, confidence), LevelGrid.of(systems)
    found = [
        LevelChange((axis,), (before,), (after,), len(pairs), contrast(matrix, pairs))
        for axis in range(len(grid.axes))
        for before, after in grid.changes(axis)
        if len(pairs := grid.pairs(axis, before, after))
    ]
    bounds = bounds_of([each.by_query for each in found], seed, draws, confidence)
    level = (1 - confidence, len(found))

    def unjudged(each: LevelChange) -> bool:
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


def main_shifts(systems: Sequence[LevelsByAxis], figures: Sequence[float | None]) -> tuple[FigureEffect, ...]:
    """The same for a figure that each system has once, None where it is unknown: without an interval.

    Raises:
        ValueError: not one figure a system, or one that is not finite.
    """
    row = np.array([math.nan if figure is None else figure for figure in figures], dtype=np.float64)
    matrix, grid = checked_values(row[:, None], len(systems)), LevelGrid.of(systems)
    shifts = []
    for axis, name in enumerate(grid.axes):
        for before, after in grid.changes(axis):
            pairs = grid.pairs(axis, before, after)
            changes = matrix[pairs[:, 1], 0] - matrix[pairs[:, 0], 0]
            known = changes[~np.isnan(changes)]
            if known.size:
                levels = grid.levels[axis]
                of = (float(known.mean()), float(known.min()), float(known.max()))
                shifts.append(FigureEffect(name, levels[before], levels[after], *of, known.size))
    return tuple(shifts)


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
    before: tuple[AxisLevel, AxisLevel]
    after: tuple[AxisLevel, AxisLevel]
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
    systems: Sequence[LevelsByAxis],
    values: npt.ArrayLike,
    *,
    seed: int,
    most: int = 2,
    draws: int = RESAMPLE_DRAWS,
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
    matrix, grid = checked_matrix(systems, values, confidence), LevelGrid.of(systems)
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


def _is_reversible(found: LevelChange, squares: Ints, level: tuple[float, int], asks: ReversibleSquares | None) -> bool:
    if asks is None or not found.is_clear(*level):
        return False

    def says(row: Floats) -> object:
        moved = found._replace(by_query=row)
        return moved.is_clear(*level), moved.mean > 0

    return asks(found.by_query, squares, says)


def _interactions(matrix: Floats, grid: LevelGrid, axes: tuple[int, int]) -> Iterator[tuple[LevelChange, Ints]]:
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
                yield LevelChange(axes, (before, low), (after, high), len(whole), contrast(both, pairs)), whole


def _interaction(
    grid: LevelGrid, found: LevelChange, ends: tuple[float, float], level: tuple[float, int], *, unjudged: bool
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


USEFUL = 4  # grades from here on are what N-Recall4+ counts
UNJUDGED = -1


@dataclass(frozen=True)
class Contribution:
    """What a group alone brought into the pool.

    Attributes:
        group, systems: its name and its members.
        unique: rows of the judged passages that no system outside of the group contributed, ascending.
        useful: how many of them are of a useful grade.
        share: of all judged passages, in 0..1; 0 where nothing is judged.
    """

    group: str
    systems: tuple[str, ...]
    unique: Ints
    useful: int
    share: float

    @property
    def judged(self) -> int:
        """How many passages they are."""
        return len(self.unique)


@dataclass(frozen=True)
class LeaveOneOutLoss:
    """What a system loses when its group's unique contributions are unjudged.

    Attributes:
        system, group: whose.
        score, without: with all judgments, and without the group's own.
        fall: score minus without, in the unit of the measure.
        relative: of the score; None where that is 0.
        overtaken_by: systems outside of the group that were behind and are ahead then, in their order.
    """

    system: str
    group: str
    score: float
    without: float
    fall: float
    relative: float | None
    overtaken_by: tuple[str, ...]


def contributions(
    grade: Ints, pools: Mapping[str, Ints], groups: Mapping[str, str] | None = None, useful: int = USEFUL
) -> tuple[Contribution, ...]:
    """The unique contributions of each group.

    Args:
        grade: of each judged passage of each query, a row each; below 0 for one that is not judged after all.
        pools: by system, the rows of the judged passages that it brought into the pool: its top to the pool's depth.
        groups: by system, the group that it is left out with; itself where not named.
        useful: the least useful grade.

    Returns:
        In the order of the groups' first systems.
    """
    members: dict[str, list[str]] = {}
    for system in pools:
        members.setdefault((groups or {}).get(system, system), []).append(system)
    brought_by, owner = np.zeros(len(grade), dtype=np.int64), np.zeros(len(grade), dtype=np.int64)
    for place, systems in enumerate(members.values()):
        rows = np.zeros(len(grade), dtype=np.bool_)
        for system in systems:
            rows[pools[system]] = True
        brought_by += rows
        owner[rows] = place
    judged = grade >= 0
    alone = np.flatnonzero((brought_by == 1) & judged)
    alone = alone[np.argsort(owner[alone], kind="stable")]
    ends = np.searchsorted(owner[alone], np.arange(len(members) + 1))
    total = int(judged.sum())
    return tuple(
        _contribution(group, tuple(systems), alone[ends[place] : ends[place + 1]], grade, useful, total)
        for place, (group, systems) in enumerate(members.items())
    )


def _contribution(
    group: str, systems: tuple[str, ...], unique: Ints, grade: Ints, useful: int, total: int
) -> Contribution:
    share = unique.size / total if total else 0.0
    return Contribution(group, systems, unique, useful=int((grade[unique] >= useful).sum()), share=share)


def grades_without(grade: Ints, contribution: Contribution) -> Ints:
    """The grades that there would be, had the group not taken part: its unique contributions are unjudged (-1)."""
    left: Ints = grade.copy()
    left[contribution.unique] = UNJUDGED
    return left


def leave_one_out_losses(
    contributed: Collection[Contribution], scores: Mapping[str, float], left_out: Mapping[str, Mapping[str, float]]
) -> tuple[LeaveOneOutLoss, ...]:
    """What each system loses, the greatest fall first.

    Args:
        contributed: the groups.
        scores: of all systems with all judgments; higher is better.
        left_out: by group, the scores of all systems with the judgments of `without`.

    Raises:
        KeyError: a system or group has no score.
    """
    found = [
        _leave_one_out_loss(system, each, scores, left_out[each.group])
        for each in contributed
        for system in each.systems
    ]
    return tuple(sorted(found, key=lambda fall: (-fall.fall, fall.system)))


def _leave_one_out_loss(
    system: str, own: Contribution, scores: Mapping[str, float], alone: Mapping[str, float]
) -> LeaveOneOutLoss:
    fall = scores[system] - alone[system]
    return LeaveOneOutLoss(
        system=system,
        group=own.group,
        score=scores[system],
        without=alone[system],
        fall=fall,
        relative=fall / scores[system] if scores[system] else None,
        overtaken_by=tuple(
            other
            for other in scores
            if other not in own.systems and scores[other] <= scores[system] and alone[other] > alone[system]
        ),
    )
