"""A judge against people: every figure of one table of grades, with intervals that know of questions.

Passages of one question are not independent: a judge that misreads the question errs on all of them. So whole
questions are resampled (the cluster bootstrap of Davison and Hinkley, 1997, section 3.8): each keeps a table of its
own, and a resample is a weighed sum of tables. Rows are the judge's grades, columns the people's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats, Ints
from raggs.base.seeds import generator
from raggs.stats.agreement.labels import (
    DRAWS,
    GRADES,
    beyond_chance,
    check_confidence,
    costs_of,
    difference_of,
    kappa_of,
)

FEWEST_CASES, FEWEST_CLUSTERS = 20, 5  # below, an interval says more about chance than about the judge

Figure = Callable[[Floats], Floats]  # tables of shape (draws, labels, ...) to values of shape (draws,)


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval.

    Attributes:
        value: NaN where it is not defined.
        low, high: the ends of the interval; NaN where there are too few cases.
    """

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Checked:
    """How a judge's grades stand to people's.

    Attributes:
        cases: grades that were compared.
        clusters: questions that they are of.
        kappa: Cohen's, with quadratic weights.
        alpha: Krippendorff's, ordinal.
        exact: the share of equal grades.
        within_one: the share of grades that are at most one apart.
        bias: the mean of the judge's grade less people's, in grades.
        leniency: the share that the judge graded higher, less the share that it graded lower.
        table: the counts, a row for each grade of the judge, a column for each of people.
        confidence: of the intervals, in 0..1.
    """

    cases: int
    clusters: int
    kappa: Estimate
    alpha: Estimate
    exact: Estimate
    within_one: Estimate
    bias: Estimate
    leniency: Estimate
    table: tuple[tuple[int, ...], ...]
    confidence: float

    @property
    def few(self) -> bool:
        """Whether there are too few cases, or of too few questions, for an interval."""
        return self.cases < FEWEST_CASES or self.clusters < FEWEST_CLUSTERS


def check_labels(
    judge: npt.ArrayLike,
    people: npt.ArrayLike,
    clusters: Sequence[str],
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int,
) -> Checked:
    """Compare two columns of grades.

    Args:
        judge, people: shape (cases,), grades 1 to 5.
        clusters: the question of each case.
        confidence, draws, seed: of the intervals.

    Raises:
        ValueError: the lengths differ, a grade is none, or an argument is out of its range.
    """
    check_confidence(confidence, draws)
    ours, theirs = np.asarray(judge, dtype=np.int64), np.asarray(people, dtype=np.int64)
    if not ours.shape == theirs.shape == (len(clusters),):
        raise ValueError(f"{ours.size} and {theirs.size} grades of {len(clusters)} questions do not make pairs")
    if ours.size and not (min(ours.min(), theirs.min()) >= 1 and max(ours.max(), theirs.max()) <= len(GRADES)):
        raise ValueError("grades are 1 to 5")
    tables = tables_of((ours, theirs), clusters)
    whole = tables.sum(axis=0)
    few = ours.size < FEWEST_CASES or len(tables) < FEWEST_CLUSTERS
    drawn = None if few else resampled(tables, draws, seed)
    found = {name: estimate(figure, whole, drawn, confidence) for name, figure in FIGURES.items()}
    counts = tuple(tuple(row) for row in whole.tolist())
    return Checked(cases=ours.size, clusters=len(tables), table=counts, confidence=confidence, **found)


def tables_of(columns: Sequence[Ints], clusters: Sequence[str]) -> Ints:
    """A table for each cluster, in the order of their first cases, with an axis of labels for each column of grades."""
    names = {name: number for number, name in enumerate(dict.fromkeys(clusters))}
    tables = np.zeros((len(names), *(len(GRADES),) * len(columns)), dtype=np.int64)
    places = np.array([names[name] for name in clusters], dtype=np.int64)
    np.add.at(tables, (places, *(column - 1 for column in columns)), 1)
    return tables


def resampled(tables: Ints, draws: int, seed: int) -> Floats:
    """The tables of resampled clusters, shape (draws, *of a table)."""
    clusters = len(tables)
    picked = generator(seed, "judge check", clusters).multinomial(clusters, np.full(clusters, 1 / clusters), size=draws)
    return np.tensordot(picked.astype(np.float64), tables.astype(np.float64), axes=1)  # whole numbers, so exact


def estimate(figure: Figure, whole: Ints, drawn: Floats | None, confidence: float) -> Estimate:
    """A figure of the table of all cases, with the interval that resampled ones give; None: without."""
    value = float(figure(whole[None].astype(np.float64))[0]) if whole.any() else math.nan
    if drawn is None or math.isnan(value):
        return Estimate(value, math.nan, math.nan)
    values = figure(drawn)
    tail = (1 - confidence) / 2
    low, high = np.quantile(values[~np.isnan(values)], [tail, 1 - tail])
    return Estimate(value, float(low), float(high))


def kappa(tables: Floats) -> Floats:
    """Cohen's kappa of each table, with quadratic weights."""
    return kappa_of(tables, costs_of(len(GRADES), "quadratic"))


def _alpha(tables: Floats) -> Floats:
    """Krippendorff's alpha of two raters, from the table of their pairs."""
    together = tables + tables.transpose(0, 2, 1)
    totals = together.sum(axis=2)
    difference = difference_of(totals, np.array(GRADES, dtype=np.float64), "ordinal")
    expected = (totals[:, :, None] * totals[:, None, :] * difference).sum(axis=(1, 2))
    return beyond_chance((together * difference).sum(axis=(1, 2)) * (totals.sum(axis=1) - 1), expected)


def mean_worth(worth: Floats) -> Figure:
    """The mean of what each cell is worth."""

    def figure(tables: Floats) -> Floats:
        total = tables.sum(axis=(1, 2))
        found: Floats = (tables * worth).sum(axis=(1, 2)) / np.where(total > 0, total, math.nan)
        return found

    return figure


STEPS = np.subtract.outer(np.array(GRADES), np.array(GRADES)).astype(np.float64)  # the judge's less people's
FIGURES: dict[str, Figure] = {
    "kappa": kappa,
    "alpha": _alpha,
    "exact": mean_worth((STEPS == 0).astype(np.float64)),
    "within_one": mean_worth((np.abs(STEPS) <= 1).astype(np.float64)),
    "bias": mean_worth(STEPS),
    "leniency": mean_worth(np.sign(STEPS)),
}
