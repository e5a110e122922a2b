"""What a judge's grade is worth in people's: for each of its grades the one to be expected, learnt from those of both.

Each grade's mean by people is drawn towards what the judge's bias alone would make of it, the more the fewer cases
there are, and the map never falls from one grade to the next (isotonic regression). What it would do to others is told
by cross-fitting: each question's grades are predicted by a map of other questions. Where the judge was asked more than
once, the mean of its answers says more than the grade that came of them: it has a map of its own, if that comes nearer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats, Ints
from raggs.base.seeds import generator

GRADES = 5
PRIOR = 5.0  # cases that the judge's bias counts for
FOLDS = 5


@dataclass(frozen=True)
class Point:
    """What a mean of several answers is worth: the grade to be expected from people, 1 to 5, by so many cases."""

    mean: float
    expected: float
    cases: int


@dataclass(frozen=True)
class Calibration:
    """A map from a judge's grades to those to be expected from people.

    Attributes:
        expected: for the judge's grades 1 to 5, in 1 to 5, never falling.
        cases: on how many grades each rests.
        error: the root of the mean squared difference of people's grades and the judge's.
        error_mapped: the same after the map, on questions that it was not learnt from; NaN below two questions.
        by_mean: the map of the mean of the judge's answers, ascending, straight between its points; empty where it was
            asked once, or where that comes no nearer than the map of the grade.
        error_by_mean: as `error_mapped`, by this map; NaN where the judge was asked once.
    """

    expected: tuple[float, ...]
    cases: tuple[int, ...]
    error: float
    error_mapped: float
    by_mean: tuple[Point, ...] = ()
    error_by_mean: float = math.nan

    @property
    def helps(self) -> bool:
        """Whether the map came nearer to people on questions that it had not seen."""
        return self.error_mapped < self.error


def calibrate(
    judge: npt.ArrayLike,
    people: npt.ArrayLike,
    clusters: Sequence[str],
    *,
    seed: int,
    means: npt.ArrayLike | None = None,
) -> Calibration:
    """Learn the map.

    Args:
        judge, people: shape (cases,), grades 1 to 5; at least one.
        clusters: the question of each case.
        seed: of the folds.
        means: shape (cases,), the mean of the judge's answers in each, in 1 to 5; left out where it was asked once.

    Raises:
        ValueError: the lengths differ, there is no case, or a grade is none.
    """
    ours, theirs = np.asarray(judge, dtype=np.int64), np.asarray(people, dtype=np.int64)
    if not ours.shape == theirs.shape == (len(clusters),) or not ours.size:
        raise ValueError(f"{ours.size} and {theirs.size} grades of {len(clusters)} questions do not make pairs")
    if min(ours.min(), theirs.min()) < 1 or max(ours.max(), theirs.max()) > GRADES:
        raise ValueError("grades are 1 to 5")
    fold = _folds(clusters, seed)
    mapped = _crossed(
        ours.astype(np.float64), theirs, fold, lambda known, said, asked: _map(known, said)[_place(asked)]
    )
    found = Calibration(
        expected=tuple(_map(ours.astype(np.float64), theirs).tolist()),
        cases=tuple(np.bincount(ours - 1, minlength=GRADES).tolist()),
        error=_error(ours.astype(np.float64), theirs),
        error_mapped=_error(mapped, theirs),
    )
    if means is None:
        return found
    answers: Floats = np.asarray(means, dtype=np.float64)
    error = _error(_crossed(answers, theirs, fold, lambda *given: _between(_points(*given[:2]), given[2])), theirs)
    nearer = error < found.error_mapped
    return replace(found, by_mean=tuple(_points(answers, theirs)) if nearer else (), error_by_mean=error)


def _crossed(known: Floats, people: Ints, fold: Ints, predict: Callable[[Floats, Ints, Floats], Floats]) -> Floats:
    """What maps of other questions say of each case; NaN where there is one fold."""
    found = np.full(known.size, np.nan)
    parts = np.unique(fold)
    for number in parts if len(parts) > 1 else ():
        held = fold == number
        found[held] = predict(known[~held], people[~held], known[held])
    return found


def _points(means: Floats, people: Ints) -> list[Point]:
    """As `_map`, of means of answers."""
    values, place = np.unique(means.round(6), return_inverse=True)
    cases = np.bincount(place).astype(np.float64)
    prior = values + float((people - means).mean())
    expected = (np.bincount(place, weights=people) + PRIOR * prior) / (cases + PRIOR)
    rising = np.clip(_rising(expected, cases + PRIOR), 1.0, float(GRADES))
    return [Point(*each) for each in zip(values.tolist(), rising.tolist(), cases.astype(int).tolist(), strict=True)]


def _between(points: list[Point], means: Floats) -> Floats:
    found: Floats = np.interp(means, [point.mean for point in points], [point.expected for point in points])
    return found


def _place(grades: Floats) -> Ints:
    return grades.astype(np.int64) - 1


def _map(judge: Floats, people: Ints) -> Floats:
    """Shape (grades,)."""
    cases = np.bincount(_place(judge), minlength=GRADES).astype(np.float64)
    sums = np.bincount(_place(judge), weights=people, minlength=GRADES)
    prior = np.arange(1, GRADES + 1) + float((people - judge).mean())
    means = (sums + PRIOR * prior) / (cases + PRIOR)
    return np.clip(_rising(means, cases + PRIOR), 1.0, float(GRADES))


def _rising(values: Floats, weights: Floats) -> Floats:
    """The nearest values that never fall, by weighted squares."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, size = value, weight, 1
        while pools and pools[-1][0] > mean:
            before, held, count = pools.pop()
            mean, total, size = (before * held + mean * total) / (held + total), held + total, size + count
        pools.append((mean, total, size))
    return np.repeat([mean for mean, _, _ in pools], [size for _, _, size in pools])


def _folds(clusters: Sequence[str], seed: int) -> Ints:
    """The fold of each case: whole questions, dealt out after shuffling."""
    names = sorted(set(clusters))
    order = generator(seed, "calibration", len(names)).permutation(len(names))
    fold = {names[place]: turn % FOLDS for turn, place in enumerate(order.tolist())}
    return np.array([fold[name] for name in clusters], dtype=np.int64)


def _error(predicted: Floats, truth: Ints) -> float:
    return math.sqrt(float(((predicted - truth) ** 2).mean()))
