"""Prediction-powered means over queries, from a judge's labels of all passages and people's of a random few.

Angelopoulos, Duchi and Zrnic, "PPI++: Efficient Prediction-Powered Inference", 2023, for sums over passages that were
drawn with known chances (Horvitz and Thompson, 1952), clustered by query. A query's value is a sum over passages of a
weight that no label changes, times what the passage's label is worth. With f the judge's worth of a passage, y that by
people, w its weight and c the chance with which it was drawn, a query stands for

    z = sum_drawn w y / c  +  power * (sum_all w f - sum_drawn w f / c)  +  size * (sum_all w - sum_drawn w / c)

The brackets are 0 on average, whatever the judge does, so the mean of z is that of people's labels for any `power` and
`size`; both are chosen to make z vary least. A useless judge gets the power 0 and costs nothing. `size` keeps the
luck of drawing many or few passages out of it, as a mean does that is divided by what was drawn.

Since the brackets are 0 on average, the mean is the intercept of a regression of the first sum on them. The interval
treats queries as drawn from those that users might ask; draws of passages must be independent between
queries.

Prediction-powered ratios of means over queries, and means of any measure where whole queries were read.

Where every passage of some queries that were drawn at random was read, a query is what is sampled, and its value by
people's labels, whatever the measure, stands beside that by the judge's: nothing has to be linear in labels. Where the
measure is not defined for all queries, its mean is that of its values over that of "is defined".

A ratio A / B of two means is estimated by that of their estimates, and its interval by the delta method: that of the
mean of A - (A / B) B, over B.

Which items to read by chance, each with a probability that is known: what estimates of a judge's error rest on.

Every item has a number of its own, which hangs on the seed and its name alone (permanent random numbers: Brewer, Early
and Joyce, 1972). Those with the smallest numbers are drawn, within strata (a judge's grades), rare ones more often: a
share in proportion to the root of a stratum's size. Within one, every item has the same chance, and a larger draw holds
every smaller one, so that several are one that grows.

What a judge's grade is worth in people's: for each of its grades the one to be expected, learnt from those of both.

Each grade's mean by people is drawn towards what the judge's bias alone would make of it, the more the fewer cases
there are, and the map never falls from one grade to the next (isotonic regression). What it would do to others is told
by cross-fitting: each question's grades are predicted by a map of other questions. Where the judge was asked more than
once, the mean of its answers says more than the grade that came of them: it has a map of its own, if that comes nearer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Flags, Floats, Ints
from raggs.base.hashing import derive_seed, generator

RCOND, MIN_SPREAD = 1e-9, 1e-12
MIN_LABELLED_QUERIES = 10  # queries with a passage that people labelled; below, the variance is hardly known
SIGMAS = 4.0  # by which the weights of what was drawn may miss what there is


@dataclass(frozen=True)
class QueryTotals:
    """Sums over the passages of each query, each of shape (queries,).

    Attributes:
        people: of weight times people's worth over chance, drawn passages only.
        judge: of weight times the judge's worth, all passages.
        judge_drawn: of weight times the judge's worth over chance, drawn passages only.
        weight: of the weights, all passages.
        weight_drawn: of the weights over chance, drawn passages only.
        drawn: how many passages were drawn.
    """

    people: Floats
    judge: Floats
    judge_drawn: Floats
    weight: Floats
    weight_drawn: Floats
    drawn: Ints

    def __sub__(self, other: QueryTotals) -> QueryTotals:
        """Of the difference of two systems over the same queries; `drawn` counts where either has drawn passages."""
        return QueryTotals(
            self.people - other.people,
            self.judge - other.judge,
            self.judge_drawn - other.judge_drawn,
            self.weight - other.weight,
            self.weight_drawn - other.weight_drawn,
            np.maximum(self.drawn, other.drawn),
        )

    def times(self, factor: float) -> QueryTotals:
        """The same with every weight multiplied."""
        return QueryTotals(
            factor * self.people,
            factor * self.judge,
            factor * self.judge_drawn,
            factor * self.weight,
            factor * self.weight_drawn,
            self.drawn,
        )


@dataclass(frozen=True)
class CorrectedMean:
    """A mean over queries.

    Attributes:
        mean: NaN without queries.
        low, high: of the interval; NaN where fewer than 10 queries have a drawn passage.
        confidence: in 0..1.
        power: how far the judge was relied on, 0 (not at all) to 1.
        queries: all.
        informed: those with a drawn passage.
        drawn: passages.
    """

    mean: float
    low: float
    high: float
    confidence: float
    power: float
    queries: int
    informed: int
    drawn: int


def totals_of(
    query: npt.ArrayLike,
    weight: npt.ArrayLike,
    judge: npt.ArrayLike,
    people: npt.ArrayLike,
    chance: npt.ArrayLike,
    *,
    queries: int,
) -> QueryTotals:
    """The sums of passages, a row each.

    Args:
        query: shape (rows,), the number of the row's query.
        weight: shape (rows,), what the row's worth counts in its query's value.
        judge: shape (rows,), what the judge's label is worth.
        people: shape (rows,), what people's label is worth; NaN where the passage was not drawn.
        chance: shape (rows,), with which it was drawn, in 0 to 1; of rows that were not drawn it is not looked at.
        queries: how many there are, also of those without a row.

    Raises:
        ValueError: shapes differ, or a drawn row has no chance.
    """
    rows = np.asarray(query, dtype=np.int64)
    columns = [np.asarray(column, dtype=np.float64) for column in (weight, judge, people, chance)]
    if any(column.shape != rows.shape for column in columns):
        raise ValueError(f"columns of {[column.size for column in columns]} rows for {rows.size} passages")
    worth, machine, human, odds = columns
    drawn = ~np.isnan(human)
    if not ((odds[drawn] > 0) & (odds[drawn] <= 1)).all():
        raise ValueError("the chance of a drawn passage lies in 0 to 1")
    inverse = np.where(drawn, 1.0, 0.0) / np.where(drawn, odds, 1.0)

    def total(values: Floats) -> Floats:
        return np.bincount(rows, weights=values, minlength=queries).astype(np.float64)

    return QueryTotals(
        people=total(worth * inverse * np.where(drawn, human, 0.0)),
        judge=total(worth * machine),
        judge_drawn=total(worth * inverse * machine),
        weight=total(worth),
        weight_drawn=total(worth * inverse),
        drawn=np.bincount(rows[drawn & (worth != 0)], minlength=queries),
    )


def correct(totals: QueryTotals, *, power: float | None = None, confidence: float = 0.95) -> CorrectedMean:
    """The mean over queries that people's labels of all passages would give.

    Args:
        power: how far to rely on the judge; chosen where None. 0 uses people's labels alone.
        confidence: of the interval, in 0..1.
    """
    machine = totals.judge - totals.judge_drawn
    size = totals.weight - totals.weight_drawn
    best = _best_power(totals.people, machine, size) if power is None else power
    free = power is None and 0.0 < best < 1.0
    known = totals.people if free else totals.people + best * machine
    fitted = _fit(known, [machine, size] if free else [size])
    queries, informed = len(totals.drawn), int((totals.drawn > 0).sum())
    half = (
        fitted.error * _quantile(confidence, informed - fitted.used) if informed >= MIN_LABELLED_QUERIES else math.nan
    )
    mean = fitted.mean
    drawn = int(totals.drawn.sum())
    return CorrectedMean(mean, mean - half, mean + half, confidence, best, queries, informed, drawn)


def are_chances_implausible(totals: QueryTotals) -> bool:
    """Whether the chances cannot be those with which the passages were drawn.

    The weights of what was drawn, each over its chance, come to the weights of all on average. Where they miss them by
    more than four standard errors, the draw was not finished, or passages were left out of it.
    """
    missed = totals.weight - totals.weight_drawn
    if len(missed) < MIN_LABELLED_QUERIES:
        return False
    error = missed.std(ddof=1) / math.sqrt(len(missed))
    return bool(abs(missed.mean()) > SIGMAS * error + 1e-9)


@dataclass(frozen=True)
class _Fit:
    """A mean, its standard error, and how many numbers were estimated for it."""

    mean: float
    error: float
    used: int


def _best_power(people: Floats, machine: Floats, size: Floats) -> float:
    """The power in 0..1 that makes the mean vary least, beside the best `size`."""
    if len(people) < MIN_LABELLED_QUERIES:
        return 1.0
    design = _design(len(people), [machine, size])
    slopes = np.linalg.lstsq(design, people, rcond=RCOND)[0]
    return float(np.clip(-slopes[1], 0.0, 1.0))


def _fit(values: Floats, controls: list[Floats]) -> _Fit:
    """The mean of values once the controls are at their expectation, which is 0: the intercept of a regression.

    The standard error is that of MacKinnon and White, 1985 (HC3): queries that decide the slopes by themselves count
    for what they would miss without themselves, for few labels make for few such queries.
    """
    if not len(values):
        return _Fit(math.nan, math.nan, 0)
    design = _design(len(values), [control for control in controls if np.ptp(control) > MIN_SPREAD])
    inverse = np.linalg.pinv(design, rcond=RCOND)
    missed = values - design @ (inverse @ values)
    leverage = np.einsum("ij,ji->i", design, inverse)
    left = np.where(leverage < 1 - MIN_SPREAD, missed / np.maximum(1 - leverage, MIN_SPREAD), 0.0)
    return _Fit(float(inverse[0] @ values), float(np.sqrt(((inverse[0] * left) ** 2).sum())), design.shape[1])


def _design(rows: int, controls: list[Floats]) -> Floats:
    return np.stack([np.ones(rows), *controls], axis=1)


def _quantile(confidence: float, degrees: int) -> float:
    """Of Student's t, at the upper end of an interval."""
    from scipy.special import stdtrit  # late: scipy takes longer to import than most commands take

    return float(stdtrit(max(1, degrees), (1 + confidence) / 2))


FEWEST_WHOLE = 20  # queries that were read whole, on which the measure is defined; below, intervals hold too rarely
VARIED = 3  # of them, that have not the commonest value; below, they say next to nothing of how values vary


def correct_ratio(
    above: QueryTotals, below: QueryTotals, *, power: float | None = None, confidence: float = 0.95
) -> CorrectedMean:
    """The mean of `above` over that of `below`, as people's labels of all passages would give them.

    Args:
        power: how far to rely on the judge; chosen where None. 0 uses people's labels alone.
        confidence: of the interval, in 0..1.
    """
    under = correct(below, power=power).mean
    if not under > 0:
        found = correct(above, power=power, confidence=confidence)
        return replace(found, mean=math.nan, low=math.nan, high=math.nan)
    start = correct(above, power=power).mean / under
    left = correct(above - below.times(start), power=power, confidence=confidence)
    mean, low, high = (start + end / under for end in (left.mean, left.low, left.high))
    return replace(left, mean=mean, low=low, high=high)


def correct_values(
    judge: npt.ArrayLike,
    people: npt.ArrayLike,
    chance: npt.ArrayLike,
    *,
    power: float | None = None,
    confidence: float = 0.95,
) -> CorrectedMean:
    """The mean over queries of a measure, as people's labels of all passages would give it.

    Args:
        judge: shape (queries,), the values by the judge's labels; NaN where the measure is not defined.
        people: shape (queries,), those by people's, of queries that were read whole; NaN where it is not defined.
        chance: shape (queries,), with which each of these was drawn, in 0 to 1; NaN for all others.
        power: how far to rely on the judge; chosen where None. 0 uses people's labels alone.
        confidence: of the interval, in 0..1.

    Returns:
        The mean over queries on which the measure is defined. `drawn` counts queries. No interval where fewer than 20
        were read whole on which it is defined, or where all of these but two have one value.

    Raises:
        ValueError: shapes differ, or a chance is none.
    """
    columns: list[Floats] = [np.asarray(column, dtype=np.float64) for column in (judge, people, chance)]
    machine, human, odds = columns
    read = ~np.isnan(odds)
    known = read & ~np.isnan(human)
    if np.isnan(machine).any() or not known[read].all():
        values = _totals(np.nan_to_num(machine), np.nan_to_num(human), odds)
        defined = _totals((~np.isnan(machine)).astype(np.float64), known.astype(np.float64), odds)
        found = correct_ratio(values, defined, power=power, confidence=confidence)
    else:
        found = correct(_totals(machine, human, odds), power=power, confidence=confidence)
    if has_enough_values(human[known]):
        return found
    return replace(found, low=math.nan, high=math.nan)


def has_enough_values(values: Floats) -> bool:
    """Whether values of queries that were read whole can tell how all vary."""
    if len(values) < FEWEST_WHOLE:
        return False
    _, times = np.unique(np.round(values, 9), return_counts=True)
    return bool(len(values) - times.max() >= VARIED)


def _totals(judge: Floats, people: Floats, chance: Floats) -> QueryTotals:
    """Of queries, each of which is a row of weight 1."""
    said = np.where(np.isnan(chance), math.nan, people)
    return totals_of(np.arange(len(judge)), np.ones(len(judge)), judge, said, chance, queries=len(judge))


@dataclass(frozen=True)
class RandomSample:
    """A random part.

    Attributes:
        items: their numbers, in an order that is random too: who stops early has read a random part of it.
        chance: shape (items drawn,), the probability with which each was drawn, in 0..1.
    """

    items: Ints
    chance: Floats


def sampling_numbers(seed: int, names: Iterable[str]) -> Floats:
    """Shape (names,): a number in 0..1 for each, by seed and name alone."""
    return np.array([derive_seed(seed, "draw", name) / 2.0**64 for name in names], dtype=np.float64)


def draw(stratum: Ints, lot: Floats, count: int, held: Flags | None = None) -> RandomSample:
    """Draw items without replacement, at random within strata.

    Args:
        stratum: shape (items,), a number for the stratum of each.
        lot: shape (items,), the number of each in 0..1, as `sampling_numbers` gives it.
        count: how many; all where there are no more.
        held: shape (items,), what was drawn before by the same numbers: it is drawn again, also where that makes more
            than `count`. In strata where it is not what those numbers draw (the strata are others now) it does not
            count, for the chances would not be what they say.
    """
    _, inside, sizes = np.unique(stratum, return_inverse=True, return_counts=True)
    if count < len(sizes):  # a stratum of which none is drawn would have no chance
        inside, sizes = np.zeros(len(stratum), dtype=np.int64), np.array([len(stratum)])
    by_stratum = np.lexsort((lot, inside))
    place = np.empty(len(stratum), dtype=np.int64)
    place[by_stratum] = np.arange(len(stratum)) - (np.cumsum(sizes) - sizes)[inside[by_stratum]]
    wanted = _shared_out(sizes, min(count, len(stratum)))
    if held is not None:
        np.maximum(wanted, _earlier_counts(inside[held], place[held], len(sizes)), out=wanted)
    chosen = np.flatnonzero(place < wanted[inside])
    # An order that does not hang on the number's size, by which items were drawn.
    items = chosen[np.argsort(lot[chosen] * 2.0**20 % 1.0, kind="stable")]
    return RandomSample(items, (wanted / sizes)[inside[items]])


def _earlier_counts(inside: Ints, place: Ints, strata: int) -> Ints:
    """How many of each stratum an earlier draw took; 0 where it did not take those with the smallest numbers."""
    last = np.zeros(strata, dtype=np.int64)
    np.maximum.at(last, inside, place + 1)
    found: Ints = np.where(np.bincount(inside, minlength=strata) == last, last, 0)
    return found


def _shared_out(sizes: Ints, count: int) -> Ints:
    """How many of each stratum: by roots of sizes, one at least, none above its size, `count` in all."""
    given = np.zeros(len(sizes), dtype=np.int64)
    while (rest := count - int(given.sum())) > 0:
        room = given < sizes
        weights = np.where(room, np.sqrt(sizes), 0.0)
        ideal = rest * weights / weights.sum()
        more = np.minimum(ideal.astype(np.int64), sizes - given)
        if not more.any():
            best = np.argsort(-ideal, kind="stable")[:rest]
            more[best] = np.minimum(1, sizes - given)[best]
        given += more
    while count >= len(sizes) and not given.all():
        given[np.argmax(given)] -= 1
        given[np.argmin(given)] += 1
    return given


GRADES = 5
PRIOR = 5.0  # cases that the judge's bias counts for
CROSS_VALIDATION_FOLDS = 5


@dataclass(frozen=True)
class CalibrationPoint:
    """What a mean of several answers is worth: the grade to be expected from people, 1 to 5, by so many cases."""

    mean: float
    expected: float
    cases: int


@dataclass(frozen=True)
class GradeCalibration:
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
    by_mean: tuple[CalibrationPoint, ...] = ()
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
) -> GradeCalibration:
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
    fold = _assign_folds(clusters, seed)
    mapped = _cross_validated(
        ours.astype(np.float64), theirs, fold, lambda known, said, asked: _map(known, said)[_grade_index(asked)]
    )
    found = GradeCalibration(
        expected=tuple(_map(ours.astype(np.float64), theirs).tolist()),
        cases=tuple(np.bincount(ours - 1, minlength=GRADES).tolist()),
        error=_error(ours.astype(np.float64), theirs),
        error_mapped=_error(mapped, theirs),
    )
    if means is None:
        return found
    answers: Floats = np.asarray(means, dtype=np.float64)
    error = _error(
        _cross_validated(answers, theirs, fold, lambda *given: _interpolate(_calibration_points(*given[:2]), given[2])),
        theirs,
    )
    nearer = error < found.error_mapped
    return replace(found, by_mean=tuple(_calibration_points(answers, theirs)) if nearer else (), error_by_mean=error)


def _cross_validated(
    known: Floats, people: Ints, fold: Ints, predict: Callable[[Floats, Ints, Floats], Floats]
) -> Floats:
    """What maps of other questions say of each case; NaN where there is one fold."""
    found = np.full(known.size, np.nan)
    parts = np.unique(fold)
    for number in parts if len(parts) > 1 else ():
        held = fold == number
        found[held] = predict(known[~held], people[~held], known[held])
    return found


def _calibration_points(means: Floats, people: Ints) -> list[CalibrationPoint]:
    """As `_map`, of means of answers."""
    values, place = np.unique(means.round(6), return_inverse=True)
    cases = np.bincount(place).astype(np.float64)
    prior = values + float((people - means).mean())
    expected = (np.bincount(place, weights=people) + PRIOR * prior) / (cases + PRIOR)
    rising = np.clip(_rising(expected, cases + PRIOR), 1.0, float(GRADES))
    return [
        CalibrationPoint(*each)
        for each in zip(values.tolist(), rising.tolist(), cases.astype(int).tolist(), strict=True)
    ]


def _interpolate(points: list[CalibrationPoint], means: Floats) -> Floats:
    found: Floats = np.interp(means, [point.mean for point in points], [point.expected for point in points])
    return found


def _grade_index(grades: Floats) -> Ints:
    return grades.astype(np.int64) - 1


def _map(judge: Floats, people: Ints) -> Floats:
    """Shape (grades,)."""
    cases = np.bincount(_grade_index(judge), minlength=GRADES).astype(np.float64)
    sums = np.bincount(_grade_index(judge), weights=people, minlength=GRADES)
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


def _assign_folds(clusters: Sequence[str], seed: int) -> Ints:
    """The fold of each case: whole questions, dealt out after shuffling."""
    names = sorted(set(clusters))
    order = generator(seed, "calibration", len(names)).permutation(len(names))
    fold = {names[place]: turn % CROSS_VALIDATION_FOLDS for turn, place in enumerate(order.tolist())}
    return np.array([fold[name] for name in clusters], dtype=np.int64)


def _error(predicted: Floats, truth: Ints) -> float:
    return math.sqrt(float(((predicted - truth) ** 2).mean()))
