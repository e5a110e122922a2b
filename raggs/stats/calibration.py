"""Calibration of the probabilities of grades that a judge states, by human labels.

A judge may state probabilities that are too high or too low, or that have no information beyond its grade. The
calibrated probabilities are (1 - w) softmax(log p / T) + w c, for stated probabilities p. The temperature T makes them
sharper (T < 1) or flatter (T > 1). c is the row of the confusion table for the judge's grade, which is the lower median
of p. The weight w is the share of the probability that depends only on the grade.

`fit_calibration` chooses T and w by maximum likelihood with weak priors, because a few labels cannot determine them.
Each row of the confusion table counts the labels of passages with this grade. The counts are combined with a slip model
as if it were ten labels. In the slip model, a grade differs by one from the label in about a quarter of the cases, and
in 2% of the cases it does not depend on the label. Each label is about as common as in the given labels. A label is
predicted from the counts of the other labels, so that the table does not look better than it is.

Accuracy of probabilities: `reliability` compares the predicted and observed frequencies of "the grade is at least k",
for k from 2 to 5. `calibration_error` summarises the table (ECE). `log_score` also rewards sharp probabilities.
`cross_validate` measures the effect of the calibration on queries that were not used for the fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.base.hashing import generator
from raggs.stats.agreement import AgreementEstimate, check_confidence
from raggs.stats.correction import assign_folds

GRADES = 5
MEDIAN_ROUNDING = 1e-9
MAX_SUM_ERROR = 1e-3  # largest deviation of the sum of probabilities from 1
SLIP = 0.25  # probability that a grade differs by one from the label, in the slip model
STRAY = 0.02  # probability in the slip model that the grade does not depend on the label
TABLE_PRIOR = 10.0  # weight of the slip model in each row of the confusion table, in labels
LABEL_PSEUDOCOUNT = 0.5  # added to the count of each label
LOG_TEMPERATURE_ERROR = 1.0  # standard deviation of the prior of log T, whose mean is 0
WEIGHT_PSEUDOCOUNT = 0.5  # exponent of w and of 1 - w in the prior of w, so that both stay above 0
LOG_TEMPERATURES = np.linspace(-3.0, 3.0, 61)  # first grid; each further grid covers two steps of the one before
ZOOMS = 4
BISECTION_STEPS = 60
LEAST_PROBABILITY = 1e-4  # lower probabilities of a label count as this one in the log score


@dataclass(frozen=True)
class DistributionCalibration:
    """How stated probabilities of the grades 1 to 5 become calibrated ones (see the module).

    Attributes:
        temperature: T, > 0; 1 leaves the probabilities unchanged.
        weight: w, 0 to 1: share of the probability that depends only on the grade.
        confusion: for each of the judge's grades, the probability of each label; five rows of five, each sums to 1.
    """

    temperature: float
    weight: float
    confusion: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ValueError: a value is out of range.
        """
        if not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise ValueError(f"temperature must be a finite number above 0, not {self.temperature}")
        if not 0 <= self.weight <= 1:
            raise ValueError(f"weight must be in 0 to 1, not {self.weight}")
        if len(self.confusion) != GRADES:
            raise ValueError(f"confusion needs five rows, not {len(self.confusion)}")
        for grade, row in enumerate(self.confusion, start=1):
            check_distribution(row, f"the row of confusion for grade {grade}")


def check_distribution(distribution: Sequence[float], what: str = "a distribution") -> None:
    """Check that there are five probabilities.

    Raises:
        ValueError: there are not five values, one is negative or not finite, or the sum is not 1 within 0.001. The
            message starts with `what`.
    """
    valid = len(distribution) == GRADES and all(0 <= each < math.inf for each in distribution)
    if not valid or abs(math.fsum(distribution) - 1.0) > MAX_SUM_ERROR:
        raise ValueError(f"{what} must have five probabilities with a sum of 1, not {list(distribution)}")


def lower_median(distribution: Sequence[float]) -> int:
    """Return the lowest grade, 1 to 5, such that this grade and all lower ones have at least half of the
    probability.
    """
    below, half = 0.0, math.fsum(distribution) / 2 - MEDIAN_ROUNDING
    for grade, chance in enumerate(distribution, start=1):
        below += chance
        if below >= half:
            return grade
    return GRADES


def apply_calibration(distribution: Sequence[float], calibration: DistributionCalibration) -> tuple[float, ...]:
    """Return the calibrated probabilities of the grades 1 to 5. Their sum is 1.

    Raises:
        ValueError: `distribution` is not five probabilities.
    """
    check_distribution(distribution)
    highest = max(distribution)
    shares = [(each / highest) ** (1.0 / calibration.temperature) for each in distribution]
    total, weight = math.fsum(shares), calibration.weight
    row = calibration.confusion[lower_median(distribution) - 1]
    mixed = [(1.0 - weight) * share / total + weight * chance for share, chance in zip(shares, row, strict=True)]
    whole = math.fsum(mixed)
    return tuple(each / whole for each in mixed)


def fit_calibration(distributions: Sequence[Sequence[float]], labels: Sequence[int]) -> DistributionCalibration:
    """Return the calibration with the highest posterior probability, given human labels. The same input gives
    bit-identical results.

    Args:
        distributions: stated probabilities of the grades 1 to 5, one row per labelled passage.
        labels: the human label of each passage, 1 to 5. Without any label, the result is the prior.

    Raises:
        ValueError: the numbers of rows and labels differ, or one of them is invalid.
    """
    rows, known = _rows_and_labels(distributions, labels)
    if not known.size:
        return DistributionCalibration(1.0, 0.5, _as_rows(_slip_table(np.zeros(GRADES))))
    grades = np.array([lower_median(row) - 1 for row in distributions])
    counts = np.zeros((GRADES, GRADES))
    np.add.at(counts, (grades, known), 1.0)
    prior = TABLE_PRIOR * _slip_table(counts.sum(axis=0))
    table = counts + prior
    by_grade = (table[grades, known] - 1.0) / (table[grades].sum(axis=1) - 1.0)  # without the label itself
    with np.errstate(divide="ignore"):  # a probability of 0 has the logarithm -inf
        logs = np.log(rows)
    logs -= logs.max(axis=1, keepdims=True)
    temperatures = LOG_TEMPERATURES
    for _ in range(ZOOMS):
        heights = [_best_weight(logs, known, by_grade, float(each))[0] for each in temperatures]
        best, step = float(temperatures[int(np.argmax(heights))]), float(temperatures[1] - temperatures[0])
        temperatures = np.linspace(best - step, best + step, 41)
    weight = _best_weight(logs, known, by_grade, best)[1]
    return DistributionCalibration(math.exp(best), weight, _as_rows(table / table.sum(axis=1, keepdims=True)))


def _best_weight(logs: Floats, known: Ints, by_grade: Floats, log_temperature: float) -> tuple[float, float]:
    """Return the highest log-posterior for a temperature, and the weight w that has it.

    The log-posterior is strictly concave in w, so the only zero of its derivative is found by bisection.
    """
    shares = np.exp(logs / math.exp(log_temperature))
    stated = shares[np.arange(known.size), known] / shares.sum(axis=1)
    low, high = 0.0, 1.0
    for _ in range(BISECTION_STEPS):
        weight = (low + high) / 2
        slope = ((by_grade - stated) / (stated + weight * (by_grade - stated))).sum()
        if slope + WEIGHT_PSEUDOCOUNT / weight - WEIGHT_PSEUDOCOUNT / (1.0 - weight) > 0:
            low = weight
        else:
            high = weight
    weight = (low + high) / 2
    likelihood = float(np.log(stated + weight * (by_grade - stated)).sum())
    prior = WEIGHT_PSEUDOCOUNT * (math.log(weight) + math.log1p(-weight))
    return likelihood + prior - (log_temperature / LOG_TEMPERATURE_ERROR) ** 2 / 2, weight


def _slip_table(label_counts: Floats) -> Floats:
    """Return the probability of each label given each grade in the slip model, shape (5, 5)."""
    shares = (label_counts + LABEL_PSEUDOCOUNT) / (label_counts + LABEL_PSEUDOCOUNT).sum()
    given = np.full((GRADES, GRADES), STRAY / GRADES)  # given[g, d]: probability that a passage with label d gets g
    for label in range(GRADES):
        for off, chance in ((-1, SLIP / 2), (0, 1 - SLIP), (1, SLIP / 2)):
            given[min(max(label + off, 0), GRADES - 1), label] += (1 - STRAY) * chance
    joint = given * shares
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def _as_rows(table: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in table.tolist())


def _rows_and_labels(distributions: Sequence[Sequence[float]], labels: Sequence[int]) -> tuple[Floats, Ints]:
    """Return the distributions, shape (cases, 5), each divided by its sum, and the labels minus 1."""
    if len(distributions) != len(labels):
        raise ValueError(f"each distribution needs a label: {len(distributions)} distributions, {len(labels)} labels")
    for row in distributions:
        check_distribution(row)
    if wrong := [label for label in labels if label not in range(1, GRADES + 1)]:
        raise ValueError(f"labels must be 1 to {GRADES}, not {wrong[0]}")
    rows = np.array(distributions, dtype=np.float64).reshape(-1, GRADES)
    return rows / rows.sum(axis=1, keepdims=True), np.array(labels, dtype=np.int64) - 1


@dataclass(frozen=True)
class ReliabilityBin:
    """Predictions of one range of probabilities.

    Attributes:
        low, high: the range, from `low` to below `high`; the last range includes 1.
        predicted: mean predicted probability.
        observed: share of the predicted events that are true.
        count: number of predictions.
    """

    low: float
    high: float
    predicted: float
    observed: float
    count: int


def reliability(
    distributions: Sequence[Sequence[float]], labels: Sequence[int], bins: int = 10
) -> tuple[ReliabilityBin, ...]:
    """Return the reliability table of the predictions "the grade is at least k", for k from 2 to 5. Each passage has
    four predictions.

    Args:
        distributions: probabilities of the grades 1 to 5, one row per labelled passage.
        labels: the human label of each passage, 1 to 5.
        bins: number of ranges of equal width. The table omits ranges without predictions.

    Raises:
        ValueError: the numbers of rows and labels differ, one of them is invalid, or `bins` is below 1.
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, not {bins}")
    rows, known = _rows_and_labels(distributions, labels)
    predicted = np.clip(rows[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:], 0.0, 1.0).ravel()
    true = (known[:, None] >= np.arange(1, GRADES)).ravel()
    places = np.minimum((predicted * bins).astype(np.int64), bins - 1)
    return tuple(
        ReliabilityBin(
            place / bins, (place + 1) / bins, float(predicted[own].mean()), float(true[own].mean()), int(own.sum())
        )
        for place in range(bins)
        if (own := places == place).any()
    )


def calibration_error(table: Sequence[ReliabilityBin]) -> float:
    """Return the expected calibration error (ECE): the mean difference of predicted and observed frequencies, weighted
    by the number of predictions; NaN for an empty table.
    """
    total = sum(each.count for each in table)
    return math.fsum(each.count * abs(each.predicted - each.observed) for each in table) / total if total else math.nan


def log_score(distributions: Sequence[Sequence[float]], labels: Sequence[int]) -> float:
    """Return the mean of -log p(label), in nats: 0 is perfect, log 5 = 1.61 is the score of five equal probabilities.
    NaN without labels.

    A probability below 0.0001 counts as 0.0001, so that one wrong label does not dominate the mean.

    Raises:
        ValueError: the numbers of rows and labels differ, or one of them is invalid.
    """
    rows, known = _rows_and_labels(distributions, labels)
    stated = rows[np.arange(known.size), known]
    return float(-np.log(np.maximum(stated, LEAST_PROBABILITY)).mean()) if known.size else math.nan


RELIABILITY_BINS = 10
CROSS_VALIDATION_DRAWS = 2_000


@dataclass(frozen=True)
class CalibrationEffect:
    """A measure of accuracy, as stated and after calibration, and the change. Intervals resample clusters."""

    before: AgreementEstimate
    after: AgreementEstimate
    change: AgreementEstimate


@dataclass(frozen=True)
class CrossValidation:
    """Accuracy of probabilities before and after calibration, on clusters that were not used for the fit.

    Attributes:
        log_score: mean of -log p(label); lower is better.
        error: expected calibration error (ECE), in 0..1; lower is better. With few labels, it is biased upwards.
        exact: share of labels that equal the grade, the lower median; in 0..1.
    """

    log_score: CalibrationEffect
    error: CalibrationEffect
    exact: CalibrationEffect


def cross_validate(
    distributions: Sequence[Sequence[float]],
    labels: Sequence[int],
    clusters: Sequence[str],
    *,
    seed: int,
    confidence: float = 0.95,
    draws: int = CROSS_VALIDATION_DRAWS,
) -> CrossValidation:
    """Measure the effect of the calibration by five-fold cross-validation over clusters.

    Args:
        distributions: stated probabilities of the grades 1 to 5, one row per labelled passage.
        labels: the human label of each passage, 1 to 5.
        clusters: the query of each passage; at least two different ones.
        seed: random seed of the folds and of the bootstrap.
        confidence: confidence level of the intervals, in 0..1.
        draws: number of resamples of clusters.

    Raises:
        ValueError: the lengths differ, a value is invalid, or there is only one cluster.
    """
    check_confidence(confidence, draws)
    rows, known = _rows_and_labels(distributions, labels)
    if len(clusters) != known.size:
        raise ValueError(f"each label needs a cluster: {known.size} labels, {len(clusters)} clusters")
    if len(set(clusters)) < 2:
        raise ValueError("the labels are from fewer than two clusters, but cross-validation needs at least two")
    fold, calibrated = assign_folds(clusters, seed), np.empty_like(rows)
    for number in np.unique(fold):
        fit = fold != number
        found = fit_calibration([tuple(row) for row in rows[fit].tolist()], (known[fit] + 1).tolist())
        calibrated[~fit] = [apply_calibration(row, found) for row in rows[~fit].tolist()]
    names = {name: place for place, name in enumerate(dict.fromkeys(clusters))}
    place = np.array([names[name] for name in clusters], dtype=np.int64)
    chosen = generator(seed, "cross-validation", len(names)).multinomial(
        len(names), np.full(len(names), 1 / len(names)), size=draws
    )
    weights = np.concatenate([np.ones((1, len(names))), chosen])  # the first row is the whole sample
    before, after = (_accuracy(each, known, place, weights) for each in (rows, calibrated))
    return CrossValidation(
        *(
            CalibrationEffect(*(_interval(values, confidence) for values in (one, two, two - one)))
            for one, two in zip(before, after, strict=True)
        )
    )


def _accuracy(rows: Floats, known: Ints, place: Ints, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the log score, the ECE and the share of exact grades for each row of cluster weights."""
    size, cases = weights.shape[1], np.arange(known.size)
    count = weights @ np.bincount(place, minlength=size)
    losses = -np.log(np.maximum(rows[cases, known], LEAST_PROBABILITY))
    right = np.array([lower_median(row) for row in rows.tolist()]) - 1 == known
    score, exact = (weights @ np.bincount(place, weights=each, minlength=size) / count for each in (losses, right))
    predicted = np.clip(rows[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:], 0.0, 1.0)
    missed = predicted - (known[:, None] >= np.arange(1, GRADES))
    bins = np.minimum((predicted * RELIABILITY_BINS).astype(np.int64), RELIABILITY_BINS - 1)
    sums = np.zeros((size, RELIABILITY_BINS))
    np.add.at(sums, (np.repeat(place, GRADES - 1), bins.ravel()), missed.ravel())
    return score, np.abs(weights @ sums).sum(axis=1) / (count * (GRADES - 1)), exact


def _interval(values: Floats, confidence: float) -> AgreementEstimate:
    """Return the first value (of the whole sample) with the percentile interval of the others (of the resamples).

    The interval is shifted so that the mean of the resamples equals the first value, because resampled calibration
    errors are biased upwards.
    """
    tail, value = (1 - confidence) / 2, float(values[0])
    low, high = (np.quantile(values[1:], [tail, 1 - tail]) - values[1:].mean() + value).tolist()
    return AgreementEstimate(value, low, high)
