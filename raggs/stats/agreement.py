"""Agreement of labels beyond chance, accuracy given a hit, and agreement of a judge with human labels.

Coefficients of two or more judges (kappa, alpha): their intervals are percentile bootstrap intervals over units (Efron
and Tibshirani, 1993). A unit is one labelled item. Units with the same labels are interchangeable. So a resample is one
multinomial draw of how often each combination of labels occurs. NaN marks a missing label. Units without enough labels
are excluded and counted.

Accuracy given a hit: the share of correct answers among queries whose evidence was retrieved, with Wilson's interval.
Flags are 1, 0 or NaN (unknown). Queries with an unknown flag are excluded and counted.

Agreement of a judge with human labels: all statistics are computed from one table of counts. Rows are the judge's
grades, columns the human grades. Passages of one question are not independent, because a judge that misreads the
question may be wrong on all of them. The bootstrap therefore resamples whole questions (cluster bootstrap, Davison and
Hinkley, 1997, section 3.8). Each question has its own table, and a resample is a weighted sum of tables.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats, Ints
from raggs.base.hashing import generator

Weights = Literal["linear", "quadratic"]
MeasurementLevel = Literal["nominal", "ordinal", "interval"]

GRADES = (1, 2, 3, 4, 5)
BOOTSTRAP_DRAWS = 2_000
MAX_RATING_VALUES = 50  # maximum number of different ratings in `krippendorff_alpha`, whose work grows with its square


@dataclass(frozen=True)
class Agreement:
    """A coefficient of agreement: 1 is perfect, 0 is chance level, negative is worse than chance.

    Attributes:
        value: NaN if chance agreement is already perfect (only one label occurs) or if no unit was compared.
        low, high: bounds of the bootstrap interval. NaN with fewer than two units or if `value` is NaN.
        confidence: confidence level of the interval, in 0..1.
        units: number of units compared.
        missing: number of units excluded because they have too few labels.
        undefined: number of resamples excluded because they contain only one label, so the coefficient is undefined.
    """

    value: float
    low: float
    high: float
    confidence: float
    units: int
    missing: int
    undefined: int


@dataclass(frozen=True)
class Confusion:
    """Confusion matrix of two judges.

    Attributes:
        labels: labels of the rows and columns, in order.
        counts: number of units; one row per label of the first judge, one column per label of the second.
        missing: number of units without a label from at least one of the judges.
    """

    labels: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]
    missing: int

    @property
    def total(self) -> int:
        """Number of units labelled by both judges."""
        return sum(map(sum, self.counts))

    @property
    def observed(self) -> float:
        """Share of units with equal labels, in 0..1; NaN if there are no units."""
        equal = sum(row[place] for place, row in enumerate(self.counts))
        return equal / self.total if self.total else math.nan

    def kappa(self, weights: Weights | None = None) -> float:
        """Return Cohen's kappa without an interval; `weights` as in `cohen_kappa`."""
        return float(kappa_of(self.array, costs_of(len(self.labels), weights))[0])

    @property
    def array(self) -> Ints:
        """Counts as an array of shape (labels, labels)."""
        return np.array(self.counts, dtype=np.int64)


def confusion(first: npt.ArrayLike, second: npt.ArrayLike, *, labels: Sequence[float] = GRADES) -> Confusion:
    """Return the confusion matrix of two judges' labels.

    Args:
        first, second: shape (units,), NaN for a missing label.
        labels: all possible labels, in order.

    Raises:
        ValueError: the shapes differ, or a label is not in `labels`.
    """
    sides = ([None if math.isnan(label) else label for label in side.tolist()] for side in check_paired(first, second))
    return count_pairs(Counter(zip(*sides, strict=True)), labels=labels)


def count_pairs(
    pairs: Mapping[tuple[float | None, float | None], int], *, labels: Sequence[float] = GRADES
) -> Confusion:
    """Return the confusion matrix from counts of label pairs.

    Args:
        pairs: number of units per pair (label of the first judge, label of the second); None for a missing label.
        labels: all possible labels, in order.

    Raises:
        ValueError: a label is not in `labels`.
    """
    known = {pair: count for pair, count in pairs.items() if None not in pair}
    for one, other in known:
        if one not in labels or other not in labels:
            raise ValueError(
                f"the pair of labels {one:g}, {other:g} is not among the labels {', '.join(map(str, labels))}"
            )
    counts = tuple(tuple(known.get((one, other), 0) for other in labels) for one in labels)
    return Confusion(tuple(labels), counts, sum(pairs.values()) - sum(known.values()))


def cohen_kappa(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    weights: Weights | None = None,
    labels: Sequence[float] = GRADES,
    confidence: float = 0.95,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int,
) -> Agreement:
    """Return Cohen's kappa with its interval.

    Kappa is 1 - sum(w O) / sum(w E). O are the observed shares of label pairs, and E the shares if the judges were
    independent. Sources: Cohen, 1960; for weights, Cohen, 1968.

    Args:
        first, second: shape (units,), NaN for a missing label.
        weights: weight of a disagreement between the i-th and the j-th label: 1 if None, |i - j| if "linear", (i - j)^2
            if "quadratic".
        labels: all possible labels, in order.
        confidence, draws, seed: confidence level, number of resamples and random seed of the bootstrap interval over
            units.

    Raises:
        ValueError: as for `confusion`, or another argument is out of its range.
    """
    table = confusion(first, second, labels=labels)
    costs = costs_of(len(labels), weights)
    return _agreement(table.array.ravel(), lambda drawn: kappa_of(drawn, costs), table.missing, confidence, draws, seed)


def krippendorff_alpha(
    ratings: npt.ArrayLike,
    *,
    level: MeasurementLevel = "ordinal",
    confidence: float = 0.95,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int,
) -> Agreement:
    """Return Krippendorff's alpha for any number of raters: 1 - observed / expected disagreement.

    Source: Krippendorff, "Content Analysis", chapter 12. Two different values disagree by 1 ("nominal"), by their
    squared distance ("interval"), or by the squared distance of their mid-ranks among all paired values ("ordinal").
    The ordinal form equals the usual sum over the values in between. The interval resamples units, not pairs.

    Args:
        ratings: shape (raters, units), NaN for a missing rating. Units with fewer than two ratings are excluded.
        level: level of measurement.
        confidence, draws, seed: confidence level, number of resamples and random seed of the bootstrap interval over
            units.

    Raises:
        ValueError: the array is not two-dimensional, a rating is infinite, there are more than 50 different ratings, or
            an argument is out of its range.
    """
    matrix = np.asarray(ratings, dtype=np.float64)
    if matrix.ndim != 2 or np.isinf(matrix).any():
        raise ValueError(f"ratings must be finite and of shape (raters, units), got shape {matrix.shape}")
    if level not in get_args(MeasurementLevel):
        raise ValueError(f"unknown level {level!r}; known: {', '.join(get_args(MeasurementLevel))}")
    values = np.unique(matrix[~np.isnan(matrix)])
    if values.size > MAX_RATING_VALUES:
        raise ValueError(f"{values.size} different ratings: alpha needs labels, not scores; round the ratings first")
    given = (matrix[:, :, None] == values).sum(axis=0)
    given = given[given.sum(axis=1) >= 2]
    kinds, counts = np.unique(given, axis=0, return_counts=True)
    pairs = _pairs(kinds)

    def alpha(drawn: Ints) -> Floats:
        found = np.tensordot(drawn, pairs, axes=1)
        totals = found.sum(axis=2)
        difference = difference_of(totals, values, level)
        expected = (totals[:, :, None] * totals[:, None, :] * difference).sum(axis=(1, 2))
        return beyond_chance((found * difference).sum(axis=(1, 2)) * (totals.sum(axis=1) - 1), expected)

    return _agreement(counts, alpha, matrix.shape[1] - len(given), confidence, draws, seed)


def costs_of(size: int, weights: Weights | None) -> Ints:
    """Return the weight of a disagreement for each pair of `size` labels, shape (size, size)."""
    powers = {None: 0, "linear": 1, "quadratic": 2}
    if weights not in powers:
        raise ValueError(f"unknown weights {weights!r}; known: None, linear, quadratic")
    steps = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return np.where(steps > 0, steps ** powers[weights], 0)


def kappa_of(tables: Ints | Floats, costs: Ints) -> Floats:
    """Return kappa for each table, shape (tables,). A table has the shape of `costs`, or is flattened.

    Counts become floats, because their products can exceed 2^63.
    """
    given = tables.reshape(-1, *costs.shape).astype(np.float64)
    chance = given.sum(axis=2)[:, :, None] * given.sum(axis=1)[:, None, :]
    observed = (costs * given).sum(axis=(1, 2)) * given.sum(axis=(1, 2))
    return beyond_chance(observed, (costs * chance).sum(axis=(1, 2)))


def _pairs(kinds: Ints) -> Floats:
    """Return the coincidence matrix of one unit of each kind, shape (kinds, values, values).

    Each ordered pair of a unit's ratings counts 1 / (ratings - 1), so the matrix of a unit sums to its number of
    ratings.
    """
    diagonal = np.eye(kinds.shape[1]) * kinds[:, None, :]
    together = kinds[:, :, None] * kinds[:, None, :] - diagonal
    return np.asarray(together / (kinds.sum(axis=1)[:, None, None] - 1))


def difference_of(totals: Floats, values: Floats, level: MeasurementLevel) -> Floats:
    """Return the disagreement of each pair of values for each resample, shape (resamples or 1, values, values)."""
    if level == "nominal":
        return 1 - np.eye(values.size)[None]
    places = values[None] if level == "interval" else totals.cumsum(axis=1) - totals / 2
    return np.asarray((places[:, :, None] - places[:, None, :]) ** 2)


def check_paired(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return both inputs as float64 arrays of shape (units,).

    Raises:
        ValueError: the shapes differ or are not one-dimensional.
    """
    ours, theirs = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if ours.ndim != 1 or ours.shape != theirs.shape:
        raise ValueError(f"expected two arrays of the same length, got shapes {ours.shape}, {theirs.shape}")
    return ours, theirs


def beyond_chance(observed: Floats | Ints, expected: Floats | Ints) -> Floats:
    """Return 1 - observed / expected; NaN if the expected disagreement is 0."""
    possible = expected > 0
    return np.where(possible, 1 - observed / np.where(possible, expected, 1), math.nan)


def _agreement(
    counts: Ints, coefficient: Callable[[Ints], Floats], missing: int, confidence: float, draws: int, seed: int
) -> Agreement:
    """Return the coefficient and its bootstrap interval; `counts` is how often each combination of labels occurs."""
    check_confidence(confidence, draws)
    units = int(counts.sum())
    value = float(coefficient(counts[None])[0]) if units else math.nan
    if units < 2 or math.isnan(value):
        return Agreement(value, math.nan, math.nan, confidence, units, missing, 0)
    resamples = generator(seed, "agreement", units).multinomial(units, counts / units, size=draws)
    drawn = coefficient(resamples)
    defined = drawn[~np.isnan(drawn)]
    tail = (1 - confidence) / 2
    low, high = np.quantile(defined, [tail, 1 - tail]) if defined.size else (math.nan, math.nan)
    return Agreement(value, float(low), float(high), confidence, units, missing, draws - defined.size)


def check_confidence(confidence: float, draws: int) -> None:
    """Check the parameters of a bootstrap interval.

    Raises:
        ValueError: `confidence` is not strictly between 0 and 1, or `draws` is below 1.
    """
    if not (0 < confidence < 1 and draws >= 1):
        raise ValueError(f"0 < confidence < 1 <= draws does not hold for confidence={confidence}, draws={draws}")


def wilson(count: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval (Wilson, 1927) of the share `count` / `total`; (0, 1) if `total` is 0.

    Raises:
        ValueError: `count` is not in 0..total, or the confidence is not strictly between 0 and 1.
    """
    check_confidence(confidence, draws=1)
    if not 0 <= count <= total:
        raise ValueError(f"0 <= count <= total does not hold for count={count}, total={total}")
    if not total:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, square = count / total, z**2 / total
    centre = (share + square / 2) / (1 + square)
    half = z / (1 + square) * math.sqrt(share * (1 - share) / total + square / (4 * total))
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True)
class AccuracyGivenHit:
    """Acc|Hit@K: the share of correct answers among queries for which retrieval returned the evidence.

    Attributes:
        value: correct / hits; NaN if there are no hits.
        low, high: bounds of Wilson's score interval; 0 and 1 if there are no hits.
        confidence: confidence level of the interval, in 0..1.
        correct: number of hits with a correct answer.
        hits: number of queries with a hit and a known answer flag.
        missed: number of queries without a hit.
        missing: number of queries excluded: the hit flag is unknown, or there is a hit but the answer flag is unknown.
    """

    value: float
    low: float
    high: float
    confidence: float
    correct: int
    hits: int
    missed: int
    missing: int


def accuracy_given_hit(correct: npt.ArrayLike, hit: npt.ArrayLike, *, confidence: float = 0.95) -> AccuracyGivenHit:
    """Return the answer accuracy over the queries whose complete evidence was retrieved, with Wilson's interval.

    Args:
        correct: shape (queries,), 1 if the answer is correct, 0 if not, NaN if unknown.
        hit: shape (queries,), 1 if the complete evidence is in the top K, else 0; NaN if undefined.
        confidence: strictly between 0 and 1.

    Raises:
        ValueError: the shapes differ, a flag is not 0, 1 or NaN, or the confidence is out of its range.
    """
    answers, hits = check_paired(correct, hit)
    check_confidence(confidence, draws=1)
    for flags in (answers, hits):
        if not np.isin(flags[~np.isnan(flags)], (0, 1)).all():
            raise ValueError("flags must be 0, 1 or NaN")
    found = answers[(hits == 1) & ~np.isnan(answers)]
    right, total, missed = int(found.sum()), found.size, int((hits == 0).sum())
    missing = hits.size - missed - total
    low, high = wilson(right, total, confidence)
    if not total:
        return AccuracyGivenHit(math.nan, low, high, confidence, 0, 0, missed, missing)
    return AccuracyGivenHit(right / total, low, high, confidence, right, total, missed, missing)


FEWEST_CASES, FEWEST_CLUSTERS = 20, 5  # with fewer cases or questions, intervals are too unreliable to report

# computes one value per resample, shape (draws,), from tables of shape (draws, labels, ...)
Figure = Callable[[Floats], Floats]


@dataclass(frozen=True)
class AgreementEstimate:
    """A statistic with its interval.

    Attributes:
        value: NaN if the statistic is undefined.
        low, high: bounds of the interval; NaN if there are too few cases, or if `value` is NaN.
    """

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class JudgeHumanAgreement:
    """Agreement of a judge's grades with human grades.

    Attributes:
        cases: number of grade pairs compared.
        clusters: number of different questions among the cases.
        kappa: Cohen's kappa with quadratic weights.
        alpha: Krippendorff's alpha, ordinal.
        exact: share of cases with equal grades.
        within_one: share of cases whose two grades differ by at most one.
        bias: mean difference, judge grade minus human grade.
        leniency: share of cases that the judge graded higher than the human, minus the share graded lower.
        table: counts, one row per judge grade, one column per human grade.
        confidence: confidence level of the intervals, in 0..1.
    """

    cases: int
    clusters: int
    kappa: AgreementEstimate
    alpha: AgreementEstimate
    exact: AgreementEstimate
    within_one: AgreementEstimate
    bias: AgreementEstimate
    leniency: AgreementEstimate
    table: tuple[tuple[int, ...], ...]
    confidence: float

    @property
    def few(self) -> bool:
        """Whether there are too few cases or too few questions for an interval."""
        return self.cases < FEWEST_CASES or self.clusters < FEWEST_CLUSTERS


def check_labels(
    judge: npt.ArrayLike,
    people: npt.ArrayLike,
    clusters: Sequence[str],
    *,
    confidence: float = 0.95,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int,
) -> JudgeHumanAgreement:
    """Compare a judge's grades with human grades.

    Args:
        judge, people: shape (cases,), the judge's and the human grades, 1 to 5.
        clusters: the question of each case.
        confidence, draws, seed: confidence level, number of resamples and random seed of the bootstrap intervals.

    Raises:
        ValueError: the lengths differ, a grade is not 1 to 5, or an argument is out of its range.
    """
    check_confidence(confidence, draws)
    ours, theirs = np.asarray(judge, dtype=np.int64), np.asarray(people, dtype=np.int64)
    if not ours.shape == theirs.shape == (len(clusters),):
        raise ValueError(
            f"{ours.size} and {theirs.size} grades and {len(clusters)} question ids: the lengths must be equal"
        )
    if ours.size and not (min(ours.min(), theirs.min()) >= 1 and max(ours.max(), theirs.max()) <= len(GRADES)):
        raise ValueError("grades must be 1 to 5")
    tables = tables_of((ours, theirs), clusters)
    whole = tables.sum(axis=0)
    few = ours.size < FEWEST_CASES or len(tables) < FEWEST_CLUSTERS
    drawn = None if few else resample_tables(tables, draws, seed)
    found = {name: estimate(figure, whole, drawn, confidence) for name, figure in AGREEMENT_STATISTICS.items()}
    counts = tuple(tuple(row) for row in whole.tolist())
    return JudgeHumanAgreement(cases=ours.size, clusters=len(tables), table=counts, confidence=confidence, **found)


def tables_of(columns: Sequence[Ints], clusters: Sequence[str]) -> Ints:
    """Return one table of counts per cluster, in the order of first occurrence. A table has one axis per column of
    grades.
    """
    names = {name: number for number, name in enumerate(dict.fromkeys(clusters))}
    tables = np.zeros((len(names), *(len(GRADES),) * len(columns)), dtype=np.int64)
    places = np.array([names[name] for name in clusters], dtype=np.int64)
    np.add.at(tables, (places, *(column - 1 for column in columns)), 1)
    return tables


def resample_tables(tables: Ints, draws: int, seed: int) -> Floats:
    """Return one table per draw: the sum of the tables of resampled clusters, shape (draws, *shape of one table)."""
    clusters = len(tables)
    picked = generator(seed, "judge check", clusters).multinomial(clusters, np.full(clusters, 1 / clusters), size=draws)
    # exact, because all numbers are whole
    return np.tensordot(picked.astype(np.float64), tables.astype(np.float64), axes=1)


def estimate(figure: Figure, whole: Ints, drawn: Floats | None, confidence: float) -> AgreementEstimate:
    """Return a statistic of the total table. Its interval comes from the resampled tables; NaN if `drawn` is None."""
    value = float(figure(whole[None].astype(np.float64))[0]) if whole.any() else math.nan
    if drawn is None or math.isnan(value):
        return AgreementEstimate(value, math.nan, math.nan)
    values = figure(drawn)
    tail = (1 - confidence) / 2
    low, high = np.quantile(values[~np.isnan(values)], [tail, 1 - tail])
    return AgreementEstimate(value, float(low), float(high))


def kappa(tables: Floats) -> Floats:
    """Return Cohen's kappa with quadratic weights for each table."""
    return kappa_of(tables, costs_of(len(GRADES), "quadratic"))


def _alpha(tables: Floats) -> Floats:
    """Return Krippendorff's alpha of two raters for each table of grade pairs."""
    together = tables + tables.transpose(0, 2, 1)
    totals = together.sum(axis=2)
    difference = difference_of(totals, np.array(GRADES, dtype=np.float64), "ordinal")
    expected = (totals[:, :, None] * totals[:, None, :] * difference).sum(axis=(1, 2))
    return beyond_chance((together * difference).sum(axis=(1, 2)) * (totals.sum(axis=1) - 1), expected)


def mean_worth(worth: Floats) -> Figure:
    """Return a function that computes the mean of `worth` over the cells of a table, weighted by their counts."""

    def figure(tables: Floats) -> Floats:
        total = tables.sum(axis=(1, 2))
        found: Floats = (tables * worth).sum(axis=(1, 2)) / np.where(total > 0, total, math.nan)
        return found

    return figure


# judge grade minus human grade
GRADE_DIFFERENCES = np.subtract.outer(np.array(GRADES), np.array(GRADES)).astype(np.float64)
AGREEMENT_STATISTICS: dict[str, Figure] = {
    "kappa": kappa,
    "alpha": _alpha,
    "exact": mean_worth((GRADE_DIFFERENCES == 0).astype(np.float64)),
    "within_one": mean_worth((np.abs(GRADE_DIFFERENCES) <= 1).astype(np.float64)),
    "bias": mean_worth(GRADE_DIFFERENCES),
    "leniency": mean_worth(np.sign(GRADE_DIFFERENCES)),
}
