"""Main effects and interactions of settings on quality, latency or cost, and the effect of a system's own judgments.

An axis is a setting that varies between systems, and its levels are the setting's values. A main effect is the mean
change when one axis goes from one level to another, over matched systems (see `LevelGrid`). Its interval comes from
resampling queries, so it generalises to other queries, not to other systems. Each interval is valid for one effect;
`clear` corrects for the number of effects tested. Do not choose a system by main effects, because they average over
systems that would never be used.

An interaction is the difference between the effects of one axis at two levels of a second axis (Montgomery, "Design and
Analysis of Experiments", chapter 5). It is computed over groups of four systems that agree in all other settings. A
grid has many interactions, of which the strongest are selected. `clear` corrects for this selection, but the intervals
do not.

A grid is rarely complete: some systems are excluded or fail, and some combinations are meaningless. So effects are
based on matched systems that differ in one or two settings, never on means over different sets of systems. For main
effects, a system without a setting (a lexical search has no embedder) matches every level of this setting. Matching
does not use the systems' scores.

Leave-one-out: how much of a system's score comes from judgments that exist only because this system contributed to the
pool? A golden set is biased towards the systems that contributed. The passages that only one of these systems found are
judged, but the unique passages of a new system are not. Removing the judgments of a system's unique passages treats it
like a new system (Zobel, "How reliable are the results of large-scale information retrieval experiments?", SIGIR 1998).
Systems that share a component (one embedder at several K) find the same passages and are removed together, as one
group. The caller computes the scores from the reduced judgments.
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

from raggs.base.arrays import Floats, Ints
from raggs.stats.distributions import student_cdf
from raggs.stats.resampling import RESAMPLE_DRAWS, checked_values, resampled_means

AxisLevel = str | int | float
LevelsByAxis = Mapping[str, AxisLevel | None]

MAX_PAIRED_LEVELS = 20  # with more levels, each level is compared only with the first
NO_LEVEL = -1


@dataclass(frozen=True)
class LevelGrid:
    """Levels of all systems on all axes, encoded as numbers.

    Attributes:
        axes: names of the axes, in order of appearance.
        levels: levels of each axis, ascending if all are numbers, else in order of appearance.
        codes: shape (systems, axes), indices into `levels`; -1 if a system does not have the axis.
    """

    axes: tuple[str, ...]
    levels: tuple[tuple[AxisLevel, ...], ...]
    codes: Ints

    @classmethod
    def of(cls, systems: Sequence[LevelsByAxis]) -> LevelGrid:
        """Return the grid of the systems' levels by axis.

        If a system does not have an axis, its level is None or missing.
        """
        axes = tuple(dict.fromkeys(axis for system in systems for axis in system))
        levels = tuple(_ordered([system.get(axis) for system in systems]) for axis in axes)
        places = [{level: place for place, level in enumerate(known)} for known in levels]
        codes = [
            [_code(known, system.get(axis)) for axis, known in zip(axes, places, strict=True)] for system in systems
        ]
        return cls(axes, levels, np.array(codes, dtype=np.int64).reshape(len(systems), len(axes)))

    def changes(self, axis: int) -> Iterator[tuple[int, int]]:
        """Yield the pairs of levels to compare on an axis.

        These are all pairs, or with more than 20 levels, each level with the first.
        """
        count = len(self.levels[axis])
        return (
            combinations(range(count), 2) if count <= MAX_PAIRED_LEVELS else ((0, level) for level in range(1, count))
        )

    def pairs(self, axis: int, before: int, after: int) -> Ints:
        """Return the pairs of systems at the two levels of one axis, as row numbers of `codes`, shape (pairs, 2).

        The systems of a pair agree on all other axes that both have.
        """
        ones, others = (np.flatnonzero(self.codes[:, axis] == level) for level in (before, after))
        rest = [each for each in range(len(self.axes)) if each != axis]
        alike = np.ones((ones.size, others.size), dtype=np.bool_)
        for each in rest:
            left, right = self.codes[ones, each][:, None], self.codes[others, each][None, :]
            alike &= (left == right) | (left == NO_LEVEL) | (right == NO_LEVEL)
        left, right = np.nonzero(alike)
        return np.stack([ones[left], others[right]], axis=1)

    def squares(self, axes: tuple[int, int]) -> list[Ints]:
        """Return, for each set of systems that differ only in two axes, the row of the system at each pair of levels.

        Shape (levels, levels) for each set; -1 if no system has these levels.
        """
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
MAX_MATCHED_VALUES = 1_000_000  # matched values in memory at a time: 8 MB per array


class LevelChange(NamedTuple):
    """A change of level on one or two axes, and the change of each query's value.

    Attributes:
        axes, before, after: indices of the axes, and of their levels before and after the change.
        groups: number of matched groups of systems (pairs or squares).
        by_query: shape (queries,), change of each query's value; NaN if no group has a value.
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
        """Standard error of the mean over queries; infinite with fewer than two valid queries."""
        return float(self.valid.std(ddof=1)) / math.sqrt(self.queries) if self.queries > 1 else math.inf

    def is_clear(self, alpha: float, compared: int) -> bool:
        """Return whether a t-test is significant at alpha / compared.

        With so few queries that a sign test cannot reach this level, no change is significant.
        """
        level = alpha / compared
        if self.mean == 0 or self.queries < 1 - math.log2(level):
            return False
        t = abs(self.mean) / self.error if self.error > 0 else math.inf
        return 2 * student_cdf(self.queries - 1, -t) < level


def checked_matrix(systems: Sequence[LevelsByAxis], values: npt.ArrayLike, confidence: float) -> Floats:
    if not 0 < confidence < 1:
        raise ValueError(f"the confidence must be strictly between 0 and 1, got {confidence}")
    return checked_values(values, len(systems))


def contrast(matrix: Floats, pairs: Ints) -> Floats:
    """Return the mean change of each query over the pairs with a value; NaN if no pair has a value."""
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
    """Return percentile intervals of the rows' means over resampled queries; NaN with fewer than two valid queries."""
    if not rows:
        return []
    matrix = np.stack(rows)
    means = np.concatenate(list(resampled_means(matrix, draws=draws, seed=seed)))
    tail = (1 - confidence) / 2
    bounds = []
    for row, column in zip(matrix, means.T, strict=True):
        drawn = column[~np.isnan(column)]  # a resample may lack all of the row's valid queries
        low, high = np.quantile(drawn, [tail, 1 - tail]) if (~np.isnan(row)).sum() > 1 else (math.nan, math.nan)
        bounds.append((float(low), float(high)))
    return bounds


@dataclass(frozen=True)
class Effect:
    """Effect that a change on one axis has on a measure.

    Attributes:
        axis, before, after: the change of level.
        change: mean over queries of the mean change over pairs, in the unit of the measure; NaN if no query is valid.
        low, high: interval of `change` over resampled queries; NaN with fewer than two valid queries.
        pairs: number of matched pairs of systems.
        queries: number of queries for which both systems of at least one pair have a value.
        clear: significantly different from 0, with Bonferroni's correction over all effects computed together, for any
            labels of the unjudged passages.
        unjudged: significant with the current labels, but labels of unjudged passages could change that.
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
    """Effect that a change on one axis has on a quantity with one value per system, such as cost or median latency.

    Attributes:
        axis, before, after: the change of level.
        change: mean change over the pairs for which both values are known, in the unit of the quantity.
        least, most: minimum and maximum change over these pairs.
        pairs: number of these pairs, at least 1.
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
    """Return the effect of each change of level for which there are matched systems.

    Args:
        systems: levels of each system by axis; None or a missing axis if it does not have one. A system outside the
            grid has no axes and is ignored.
        values: values of a measure, shape (systems, queries); NaN if undefined.
        seed: random seed.
        draws: number of resamples, at least 1.
        confidence: confidence level of the intervals, strictly between 0 and 1.
        reversible: returns whether labels of unjudged passages could change a statement about a change per query, given
            the pairs of systems of shape (pairs, 2). None if all passages are judged.

    Returns:
        Effects ordered by axis, then by levels before and after. An axis with more than 20 levels has only changes from
        the first level.

    Raises:
        ValueError: the shape is wrong, a value is infinite, or an argument is out of its range.
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
    """Return the effects on a quantity with one value per system (None if unknown), without intervals.

    Raises:
        ValueError: the number of figures is not the number of systems, or a figure is infinite.
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
    """How much the effect of the first axis differs between two levels of the second axis.

    Attributes:
        axes: names of the first and the second axis.
        before, after: levels of both axes, before and after the change.
        change: (after, after) - (before, after) - ((after, before) - (before, before)), averaged as in `Effect.change`.
        low, high: as in `Effect`. Selecting the strongest of many tends to overestimate the change.
        squares: number of groups of four matched systems.
        queries: number of queries for which all four systems of at least one group have a value.
        compared: number of interactions from which this one was selected.
        clear: significantly different from 0, with Bonferroni's correction over all interactions compared, for any
            labels of the unjudged passages.
        unjudged: significant with the current labels, but labels of unjudged passages could change that.
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
    """Return the strongest interaction of each pair of axes, for the `most` strongest pairs of axes.

    Interactions are ranked by the absolute change minus the half-width of its normal confidence interval.

    Args:
        most: maximum number of pairs of axes.
        systems, values, seed, draws, confidence: as in `main_effects`, except that a system only matches systems that
            lack the same axes.
        reversible: returns whether labels of unjudged passages could change a statement about an interaction per query,
            given squares of systems of shape (squares, 4): before and after at the first level, then at the second.

    Raises:
        ValueError: as for `main_effects`.
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


USEFUL = 4  # lowest grade that N-Recall4+ counts
UNJUDGED = -1


@dataclass(frozen=True)
class Contribution:
    """Judged passages that only one group of systems contributed to the pool.

    Attributes:
        group, systems: name of the group and its members.
        unique: row numbers of the judged passages that only this group contributed, ascending.
        useful: number of these passages with a useful grade.
        share: share of these passages among all judged passages, in 0..1; 0 if nothing is judged.
    """

    group: str
    systems: tuple[str, ...]
    unique: Ints
    useful: int
    share: float

    @property
    def judged(self) -> int:
        """Number of unique judged passages."""
        return len(self.unique)


@dataclass(frozen=True)
class LeaveOneOutLoss:
    """Loss of a system's score if its group's unique contributions counted as unjudged.

    Attributes:
        system, group: the system and its group.
        score, without: score with all judgments, and without the group's unique contributions.
        fall: `score` minus `without`, in the unit of the measure.
        relative: `fall` divided by `score`; None if the score is 0.
        overtaken_by: systems outside the group that rank above this one only without these judgments.
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
    """Return the unique contributions of each group.

    Args:
        grade: grade of each passage of each query in the pools, one row per passage; negative if unjudged.
        pools: by system, row numbers of the passages that it contributed to the pool (its list down to the pool depth).
        groups: group of each system; a missing system forms a separate group.
        useful: lowest useful grade.

    Returns:
        Contributions in the order of the groups' first systems.
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
    """Return the grades with the group's unique contributions set to unjudged (-1)."""
    left: Ints = grade.copy()
    left[contribution.unique] = UNJUDGED
    return left


def leave_one_out_losses(
    contributed: Collection[Contribution], scores: Mapping[str, float], left_out: Mapping[str, Mapping[str, float]]
) -> tuple[LeaveOneOutLoss, ...]:
    """Return the leave-one-out loss of each system, the largest first.

    Args:
        contributed: contributions of the groups.
        scores: scores of all systems with all judgments; higher is better.
        left_out: by group, scores of all systems with the judgments from `grades_without`.

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
