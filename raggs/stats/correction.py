"""Correction of scores by human labels of a random sample of passages or queries.

Prediction-powered means over queries (`correct`) combine a judge's labels of all passages with human labels of a random
sample. Method: Angelopoulos, Duchi and Zrnic, "PPI++: Efficient Prediction-Powered Inference", 2023. It is applied to
sums over passages drawn with known probabilities (Horvitz and Thompson, 1952), clustered by query. A query's value is a
sum over its passages: a weight that does not depend on labels, times the worth of the passage's label. Let f be the
worth of the judge's label, y that of the human label, w the weight and c the sampling probability. The estimate for a
query is

    z = sum_drawn w y / c  +  power * (sum_all w f - sum_drawn w f / c)  +  size * (sum_all w - sum_drawn w / c)

Both brackets have the expectation 0 for any judge. So for any fixed `power` and `size`, the mean of z estimates the
mean by human labels of all passages without bias. Both factors are chosen to minimise the variance of z (with fewer
than 10 queries, the power is 1). With more queries, an uninformative judge gets a power near 0. `size` corrects for
drawing more or fewer passages than expected, as dividing by the number drawn would. Since the brackets have the
expectation 0, the mean is the intercept of a regression of the first sum on them. The interval treats the queries as a
sample of possible user queries. Passages of different queries must be drawn independently.

Ratios of means (`correct_ratio`) and means of any measure (`correct_values`): if randomly drawn queries have human
labels for all passages, the query is the sampling unit. The query's value by human labels is paired with the value by
the judge's labels, so the measure need not be linear in the labels. If the measure is undefined for some queries, its
mean is a ratio: the mean of its values (0 if undefined) divided by the mean of the indicator "is defined". A ratio
A / B of two means is estimated by the ratio of their estimates. Its interval comes from the delta method: the interval
of the mean of A - (A / B) B, divided by B.

Random sampling (`draw`) selects items with known probabilities, on which estimates of a judge's error depend. Each item
has a permanent random number that depends only on the seed and the item's name (Brewer, Early and Joyce, 1972). Within
each stratum (judge grade), the items with the smallest numbers are drawn. A stratum's number of drawn items grows with
the square root of its size, so rare grades are sampled more densely. Within a stratum, all items have the same
probability. A larger sample contains an earlier one that is given as `held`, so a sample can be extended later. The
exception is a stratum in which other items now have the smallest numbers.

Grade calibration (`calibrate`) maps each grade of the judge to the expected human grade. The map is learnt from
passages with a judge grade and a human grade. The mean human grade per judge grade is shrunk towards the judge grade
plus the mean of human minus judge grades; the fewer cases, the more. The map never decreases (isotonic regression). Its
error is measured by five-fold cross-validation over questions: a map predicts only questions from which it was not
learnt. If the judge was called more than once, the mean of its answers carries more information than the final grade.
This mean then has a separate map. `GradeCalibration` contains it only if its error is smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Flags, Floats, Ints
from raggs.base.hashing import derive_seed, generator
from raggs.stats.distributions import student_quantile

RCOND, MIN_SPREAD = 1e-9, 1e-12
MIN_LABELLED_QUERIES = 10  # minimum number of queries with a human label; with fewer, the variance is too uncertain
SIGMAS = 4.0  # maximum difference between the two sums in `are_chances_implausible`, in standard errors


@dataclass(frozen=True)
class QueryTotals:
    """Sums over the passages of each query, each of shape (queries,).

    Attributes:
        people: weight times worth of the human label, divided by the sampling probability; drawn passages only.
        judge: weight times worth of the judge's label; all passages.
        judge_drawn: the same as `judge`, divided by the sampling probability; drawn passages only.
        weight: weights of all passages.
        weight_drawn: weights divided by the sampling probability; drawn passages only.
        drawn: number of drawn passages whose weight is not 0.
    """

    people: Floats
    judge: Floats
    judge_drawn: Floats
    weight: Floats
    weight_drawn: Floats
    drawn: Ints

    def __sub__(self, other: QueryTotals) -> QueryTotals:
        """Return the totals of the difference of two systems; `drawn` is the larger number of each query."""
        return QueryTotals(
            self.people - other.people,
            self.judge - other.judge,
            self.judge_drawn - other.judge_drawn,
            self.weight - other.weight,
            self.weight_drawn - other.weight_drawn,
            np.maximum(self.drawn, other.drawn),
        )

    def times(self, factor: float) -> QueryTotals:
        """Return the totals with every weight multiplied by `factor`."""
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
    """A corrected mean over queries.

    Attributes:
        mean: the corrected mean; NaN if there are no queries, or if the denominator of a ratio is not positive.
        low, high: bounds of the interval; NaN if `mean` is NaN, or if fewer than 10 queries have a drawn passage.
            `correct_values` requires more queries.
        confidence: confidence level, in 0..1.
        power: weight of the judge's labels, from 0 (ignored) to 1.
        queries: number of queries.
        informed: number of queries with a drawn passage.
        drawn: number of drawn passages.
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
    """Return the sums of each query from one row per passage.

    Args:
        query: shape (rows,), number of the row's query.
        weight: shape (rows,), weight of the passage in its query's value.
        judge: shape (rows,), worth of the judge's label.
        people: shape (rows,), worth of the human label; NaN if the passage was not drawn.
        chance: shape (rows,), sampling probability, above 0 and at most 1; ignored for rows that were not drawn.
        queries: number of queries, including queries without a row.

    Raises:
        ValueError: shapes differ, or the sampling probability of a drawn row is missing or out of range.
    """
    rows = np.asarray(query, dtype=np.int64)
    columns = [np.asarray(column, dtype=np.float64) for column in (weight, judge, people, chance)]
    if any(column.shape != rows.shape for column in columns):
        raise ValueError(
            f"columns of {[column.size for column in columns]} rows for {rows.size} passages: the numbers must be equal"
        )
    worth, machine, human, odds = columns
    drawn = ~np.isnan(human)
    if not ((odds[drawn] > 0) & (odds[drawn] <= 1)).all():
        raise ValueError("the sampling probability of a drawn passage must be above 0 and at most 1")
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
    """Estimate the mean over queries that human labels of all passages would give.

    Args:
        totals: sums of each query.
        power: weight of the judge's labels; None chooses it from the data (1 with fewer than 10 queries), 0 uses only
            human labels.
        confidence: confidence level of the interval, in 0..1.
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
    """Return whether the drawn passages contradict their sampling probabilities; False with fewer than 10 queries.

    The expected sum of the drawn weights, each divided by its probability, is the sum of all weights. If the two sums
    differ by more than four standard errors, probably the labelling was not finished, or drawn passages are missing.
    """
    missed = totals.weight - totals.weight_drawn
    if len(missed) < MIN_LABELLED_QUERIES:
        return False
    error = missed.std(ddof=1) / math.sqrt(len(missed))
    return bool(abs(missed.mean()) > SIGMAS * error + 1e-9)


@dataclass(frozen=True)
class _Fit:
    """A mean, its standard error, and the number of estimated coefficients."""

    mean: float
    error: float
    used: int


def _best_power(people: Floats, machine: Floats, size: Floats) -> float:
    """Return the power in 0..1 that minimises the variance of the mean, given the best `size`; 1 with fewer than 10
    queries.
    """
    if len(people) < MIN_LABELLED_QUERIES:
        return 1.0
    design = _design(len(people), [machine, size])
    slopes = np.linalg.lstsq(design, people, rcond=RCOND)[0]
    return float(np.clip(-slopes[1], 0.0, 1.0))


def _fit(values: Floats, controls: list[Floats]) -> _Fit:
    """Return the mean of the values, adjusted for controls whose expectation is 0: the intercept of a regression.

    The standard error is HC3 (MacKinnon and White, 1985). With few labels, single queries can determine the slopes. So
    each residual is divided by 1 - leverage, which gives the error of a fit without that query.
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
    """Return the quantile of Student's t for the upper bound of an interval."""
    return student_quantile(max(1, degrees), (1 + confidence) / 2)


# minimum number of fully labelled queries with a defined value; with fewer, intervals have too low coverage
FEWEST_WHOLE = 20
# minimum number of these queries whose value is not the most common one; with fewer, the variance is unknown
VARIED = 3


def correct_ratio(
    above: QueryTotals, below: QueryTotals, *, power: float | None = None, confidence: float = 0.95
) -> CorrectedMean:
    """Estimate the ratio of two means, `above` / `below`, that human labels of all passages would give.

    Args:
        above, below: sums of each query for the numerator and the denominator.
        power: weight of the judge's labels; None chooses it from the data, 0 uses only human labels.
        confidence: confidence level of the interval, in 0..1.
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
    """Estimate the mean of a measure over queries that human labels of all passages would give.

    Args:
        judge: shape (queries,), values by the judge's labels; NaN if the measure is undefined.
        people: shape (queries,), values by human labels, for fully labelled queries; NaN if the measure is undefined.
        chance: shape (queries,), sampling probability of each fully labelled query, above 0 and at most 1; NaN for the
            others.
        power: weight of the judge's labels; None chooses it from the data, 0 uses only human labels.
        confidence: confidence level of the interval, in 0..1.

    Returns:
        The mean over the queries for which the measure is defined; `drawn` counts queries. The bounds are NaN if fewer
        than 20 fully labelled queries have a value, or if fewer than three of these differ from the most common value.

    Raises:
        ValueError: shapes differ, or a sampling probability is out of range.
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
    """Return whether fully labelled queries have enough values, and enough different ones, to estimate a variance."""
    if len(values) < FEWEST_WHOLE:
        return False
    _, times = np.unique(np.round(values, 9), return_counts=True)
    return bool(len(values) - times.max() >= VARIED)


def _totals(judge: Floats, people: Floats, chance: Floats) -> QueryTotals:
    """Return the totals for one value per query: each query counts as one passage of weight 1."""
    said = np.where(np.isnan(chance), math.nan, people)
    return totals_of(np.arange(len(judge)), np.ones(len(judge)), judge, said, chance, queries=len(judge))


@dataclass(frozen=True)
class RandomSample:
    """A random sample of items with their sampling probabilities.

    Attributes:
        items: numbers of the drawn items, in random order, so that the first items of any number are a random sample,
            too.
        chance: shape (items drawn,), the sampling probability of each drawn item, in 0..1.
    """

    items: Ints
    chance: Floats


def sampling_numbers(seed: int, names: Iterable[str]) -> Floats:
    """Return a random number in 0..1 for each name, shape (names,); it depends only on the seed and the name."""
    return np.array([derive_seed(seed, "draw", name) / 2.0**64 for name in names], dtype=np.float64)


def draw(stratum: Ints, lot: Floats, count: int, held: Flags | None = None) -> RandomSample:
    """Draw a stratified random sample of items without replacement.

    If `count` is below the number of strata, all items are treated as one stratum.

    Args:
        stratum: shape (items,), number of each item's stratum.
        lot: shape (items,), random number of each item in 0..1, from `sampling_numbers`.
        count: sample size; if there are fewer items, all are drawn.
        held: shape (items,), which items an earlier draw with the same numbers took. They are drawn again, even if the
            sample then exceeds `count`. If a stratum has changed so that its smallest numbers are others, its earlier
            items are ignored, because their probabilities would be wrong.
    """
    _, inside, sizes = np.unique(stratum, return_inverse=True, return_counts=True)
    if count < len(sizes):  # a stratum without a drawn item would have the probability 0
        inside, sizes = np.zeros(len(stratum), dtype=np.int64), np.array([len(stratum)])
    by_stratum = np.lexsort((lot, inside))
    place = np.empty(len(stratum), dtype=np.int64)
    place[by_stratum] = np.arange(len(stratum)) - (np.cumsum(sizes) - sizes)[inside[by_stratum]]
    wanted = _shared_out(sizes, min(count, len(stratum)))
    if held is not None:
        np.maximum(wanted, _earlier_counts(inside[held], place[held], len(sizes)), out=wanted)
    chosen = np.flatnonzero(place < wanted[inside])
    # Items with small numbers were selected, so sorting by the numbers would not be random: sort by their last bits.
    items = chosen[np.argsort(lot[chosen] * 2.0**20 % 1.0, kind="stable")]
    return RandomSample(items, (wanted / sizes)[inside[items]])


def _earlier_counts(inside: Ints, place: Ints, strata: int) -> Ints:
    """Return how many items of each stratum an earlier draw took; 0 if others now have the smallest numbers."""
    last = np.zeros(strata, dtype=np.int64)
    np.maximum.at(last, inside, place + 1)
    found: Ints = np.where(np.bincount(inside, minlength=strata) == last, last, 0)
    return found


def _shared_out(sizes: Ints, count: int) -> Ints:
    """Return the sample size of each stratum, `count` in total; no sample size decreases if `count` increases.

    A stratum's share is about proportional to the square root of its size (Webster's method, which is monotone); each
    stratum gets at least one item if possible.
    """
    most = np.minimum(sizes, count)
    stratum = np.repeat(np.arange(len(sizes)), most)
    earlier = np.arange(len(stratum)) - np.repeat(np.cumsum(most) - most, most)  # items of the stratum before this one
    claim = np.where(earlier > 0, np.sqrt(sizes)[stratum] / (earlier + 0.5), math.inf)
    return np.bincount(stratum[np.argsort(-claim, kind="stable")[:count]], minlength=len(sizes))


GRADES = 5
PRIOR = 5.0  # weight of the prior (judge grade plus mean of human minus judge grades), as a number of cases
CROSS_VALIDATION_FOLDS = 5


@dataclass(frozen=True)
class CalibrationPoint:
    """The expected human grade (1 to 5) for a mean of several judge answers, learnt from `cases` passages."""

    mean: float
    expected: float
    cases: int


@dataclass(frozen=True)
class GradeCalibration:
    """A map from a judge's grades to expected human grades.

    Attributes:
        expected: expected human grade for each of the judge's grades 1 to 5; never decreasing.
        cases: number of cases for each of the judge's grades.
        error: root mean squared difference between human and judge grades.
        error_mapped: the same for mapped judge grades, on questions not used to learn the map; NaN with fewer than two
            questions.
        by_mean: points of the map from the mean of the judge's answers, ascending, linear between points. Empty if the
            judge was called once, if there are fewer than two questions, or if this map is not more accurate than the
            map of the grade.
        error_by_mean: as `error_mapped`, for the map from means; also NaN if the judge was called once.
    """

    expected: tuple[float, ...]
    cases: tuple[int, ...]
    error: float
    error_mapped: float
    by_mean: tuple[CalibrationPoint, ...] = ()
    error_by_mean: float = math.nan

    @property
    def helps(self) -> bool:
        """Whether the map reduces the error on questions that were not used to learn it."""
        return self.error_mapped < self.error


def calibrate(
    judge: npt.ArrayLike,
    people: npt.ArrayLike,
    clusters: Sequence[str],
    *,
    seed: int,
    means: npt.ArrayLike | None = None,
) -> GradeCalibration:
    """Learn the map from the judge's grades to human grades.

    Args:
        judge, people: shape (cases,), the judge's and the human grades, 1 to 5; at least one case.
        clusters: the question of each case.
        seed: random seed of the folds.
        means: shape (cases,), mean of the judge's answers in each case, in 1 to 5; None if the judge was called once.

    Raises:
        ValueError: the lengths differ, no case is given, or a grade is not 1 to 5.
    """
    ours, theirs = np.asarray(judge, dtype=np.int64), np.asarray(people, dtype=np.int64)
    if not ours.size:
        raise ValueError("at least one pair of grades is needed")
    if not ours.shape == theirs.shape == (len(clusters),):
        raise ValueError(
            f"{ours.size} and {theirs.size} grades and {len(clusters)} question ids: the lengths must be equal"
        )
    if min(ours.min(), theirs.min()) < 1 or max(ours.max(), theirs.max()) > GRADES:
        raise ValueError("grades must be 1 to 5")
    fold = assign_folds(clusters, seed)
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
    """Predict each case by a map learnt from the other folds; return NaN if there is only one fold."""
    found = np.full(known.size, np.nan)
    parts = np.unique(fold)
    for number in parts if len(parts) > 1 else ():
        held = fold == number
        found[held] = predict(known[~held], people[~held], known[held])
    return found


def _calibration_points(means: Floats, people: Ints) -> list[CalibrationPoint]:
    """Return the map from means of answers to expected human grades, learnt as in `_map`."""
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
    """Return the expected human grade for each of the judge's grades, shape (grades,)."""
    cases = np.bincount(_grade_index(judge), minlength=GRADES).astype(np.float64)
    sums = np.bincount(_grade_index(judge), weights=people, minlength=GRADES)
    prior = np.arange(1, GRADES + 1) + float((people - judge).mean())
    means = (sums + PRIOR * prior) / (cases + PRIOR)
    return np.clip(_rising(means, cases + PRIOR), 1.0, float(GRADES))


def _rising(values: Floats, weights: Floats) -> Floats:
    """Return the non-decreasing values that are closest by weighted least squares (isotonic regression)."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, size = value, weight, 1
        while pools and pools[-1][0] > mean:
            before, held, count = pools.pop()
            mean, total, size = (before * held + mean * total) / (held + total), held + total, size + count
        pools.append((mean, total, size))
    return np.repeat([mean for mean, _, _ in pools], [size for _, _, size in pools])


def assign_folds(clusters: Sequence[str], seed: int) -> Ints:
    """Return the fold of each case. Questions are shuffled and assigned to the five folds in turn."""
    names = sorted(set(clusters))
    order = generator(seed, "calibration", len(names)).permutation(len(names))
    fold = {names[place]: turn % CROSS_VALIDATION_FOLDS for turn, place in enumerate(order.tolist())}
    return np.array([fold[name] for name in clusters], dtype=np.int64)


def _error(predicted: Floats, truth: Ints) -> float:
    return math.sqrt(float(((predicted - truth) ** 2).mean()))
