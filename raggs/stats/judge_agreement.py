"""Uses for which a judge is valid, by its agreement with human grades, and comparison of two judges.

`judge_validity` applies thresholds; those of kappa are published. An answer is "yes" if the complete interval of each
statistic reaches its threshold, and "no" if the complete interval of one is below. In all other cases, it is "not yet",
usually with the number of further labels for "yes" if the statistics do not change. This number assumes that the width
of an interval decreases with the square root of the number of cases.

`judges_versus_humans` compares two judges on the same passages: which judge is nearer to the human grades? All values
are paired, because both judges and humans graded every case. Whole questions are resampled, as for a single judge.
Passages on which the judges agree count, but do not show which judge is nearer. So a verdict also needs passages on
which they differ.

`kappa_difference_test` tests whether two judges have the same kappa: the p value of a randomisation test that swaps the
two judges in random questions. `mean_grades` shows how a judge's bias depends on the human grade.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats, Ints
from raggs.base.hashing import generator
from raggs.stats.agreement import (
    BOOTSTRAP_DRAWS,
    FEWEST_CASES,
    FEWEST_CLUSTERS,
    GRADE_DIFFERENCES,
    GRADES,
    AgreementEstimate,
    Figure,
    JudgeHumanAgreement,
    check_confidence,
    estimate,
    kappa,
    mean_worth,
    resample_tables,
    tables_of,
)

Answer = Literal["yes", "no", "not yet"]

COMPARE_KAPPA = 0.4  # "moderate" (Landis and Koch, 1977); enough if the judge's errors affect all systems alike
ABSOLUTE_KAPPA = 0.6  # "substantial" (Landis and Koch, 1977)
ABSOLUTE_BIAS = 0.25  # maximum absolute bias, in grades
ROUNDING = 1e-6


@dataclass(frozen=True)
class JudgeValidity:
    """Whether a judge is valid for one use.

    Attributes:
        use: "comparing systems" or "absolute numbers".
        answer: "yes", "no" or "not yet".
        rule: the thresholds, in words.
        more: approximate number of further labels for "yes", or, with too few labels, for intervals. None if the answer
            is "yes" or "no", if a statistic is undefined, or if a value is not above its threshold.
    """

    use: str
    answer: Answer
    rule: str
    more: int | None


def judge_validity(checked: JudgeHumanAgreement) -> tuple[JudgeValidity, ...]:
    """Return whether the judge is valid for comparing systems, and whether it is valid for absolute numbers."""
    bias = AgreementEstimate(-abs(checked.bias.value), *_negative_bias_interval(checked.bias))
    return (
        _validity(checked, "comparing systems", f"kappa at least {COMPARE_KAPPA:g}", [(checked.kappa, COMPARE_KAPPA)]),
        _validity(
            checked,
            "absolute numbers",
            f"kappa at least {ABSOLUTE_KAPPA:g}, bias within {ABSOLUTE_BIAS:g} grades",
            [(checked.kappa, ABSOLUTE_KAPPA), (bias, -ABSOLUTE_BIAS)],
        ),
    )


def _negative_bias_interval(bias: AgreementEstimate) -> tuple[float, float]:
    """Return the interval of -|bias|, so that higher is better as for kappa."""
    ends = (-abs(bias.low), -abs(bias.high))
    return min(ends), 0.0 if bias.low <= 0 <= bias.high else max(ends)


def _validity(
    checked: JudgeHumanAgreement, use: str, rule: str, held: list[tuple[AgreementEstimate, float]]
) -> JudgeValidity:
    if checked.few:
        least = f"{rule}, by {FEWEST_CASES} grades of {FEWEST_CLUSTERS} questions or more"
        return JudgeValidity(
            use, "not yet", least, max(FEWEST_CASES - checked.cases, FEWEST_CLUSTERS - checked.clusters, 1)
        )
    if any(math.isnan(figure.low) for figure, _ in held):
        return JudgeValidity(use, "not yet", rule, None)
    if all(figure.low >= least for figure, least in held):
        return JudgeValidity(use, "yes", rule, None)
    if any(figure.high < least for figure, least in held):
        return JudgeValidity(use, "no", rule, None)
    needed = [_cases_needed(checked.cases, figure, least) for figure, least in held if figure.low < least]
    known = [cases for cases in needed if cases is not None]
    more = max(1, max(known) - checked.cases) if len(known) == len(needed) else None
    return JudgeValidity(use, "not yet", rule, more)


def _cases_needed(cases: int, figure: AgreementEstimate, least: float) -> int | None:
    """Return with how many cases the interval would exclude the threshold; None if the value is on the wrong side."""
    margin = figure.value - least
    return math.ceil(cases * ((figure.value - figure.low) / margin) ** 2 - ROUNDING) if margin > 0 else None


FEWEST_DIFFERING = 10  # with fewer passages on which the judges differ, single ones would determine the verdict

WinnerSide = Literal["first", "second"]


@dataclass(frozen=True)
class HumanAgreementGain:
    """A statistic of the agreement of two judges with human grades.

    Attributes:
        first, second: value of each judge.
        gain: paired difference, positive if the first judge is better.
    """

    first: AgreementEstimate
    second: AgreementEstimate
    gain: AgreementEstimate


@dataclass(frozen=True)
class JudgesVersusHumans:
    """Two judges compared with human grades.

    Attributes:
        cases: number of passages that both judges and a human graded.
        clusters: number of different questions among the cases.
        differing: number of cases on which the judges differ.
        first, second: number of cases on which the first, or the second, judge is nearer to the human grade.
        off: mean absolute difference from the human grade; the gain in it determines the winner.
        kappa: Cohen's kappa with quadratic weights.
        exact: share of grades equal to the human grade.
        confidence: confidence level of the intervals, in 0..1.
    """

    cases: int
    clusters: int
    differing: int
    first: int
    second: int
    off: HumanAgreementGain
    kappa: HumanAgreementGain
    exact: HumanAgreementGain
    confidence: float

    @property
    def few(self) -> bool:
        """Whether there are too few cases for a verdict."""
        scarce = self.cases < FEWEST_CASES or self.clusters < FEWEST_CLUSTERS
        return scarce or self.differing < FEWEST_DIFFERING

    @property
    def winner(self) -> WinnerSide | None:
        """The judge that is nearer to the human grades; None if the gain's interval includes 0, or cases are few."""
        gain = self.off.gain
        if self.few or math.isnan(gain.low) or gain.low <= 0 <= gain.high:
            return None
        return "first" if gain.low > 0 else "second"

    @property
    def more(self) -> int | None:
        """Approximate number of further cases for a verdict, if the statistics do not change.

        None if there is a verdict, or if no number of cases would give one.
        """
        if self.winner is not None:
            return None
        if self.few:
            return max(FEWEST_CASES - self.cases, FEWEST_DIFFERING - self.differing, FEWEST_CLUSTERS - self.clusters)
        gain = self.off.gain
        if abs(gain.value) < ROUNDING or math.isnan(gain.low):
            return None
        below = gain.value - gain.low if gain.value > 0 else gain.high - gain.value
        return max(1, math.ceil(self.cases * ((below / gain.value) ** 2 - 1) - ROUNDING))


def judges_versus_humans(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    people: npt.ArrayLike,
    clusters: Sequence[str],
    *,
    confidence: float = 0.95,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int,
) -> JudgesVersusHumans:
    """Compare two judges' grades with human grades.

    Args:
        first, second, people: shape (cases,), grades of the judges and of humans, 1 to 5.
        clusters: the question of each case.
        confidence, draws, seed: confidence level, number of resamples and random seed of the bootstrap intervals.

    Raises:
        ValueError: the lengths differ, a grade is not 1 to 5, or an argument is out of its range.
    """
    check_confidence(confidence, draws)
    columns = _grade_columns((first, second, people), clusters)
    tables = tables_of(columns, clusters)
    whole = tables.sum(axis=0)
    few = len(clusters) < FEWEST_CASES or len(tables) < FEWEST_CLUSTERS
    drawn = None if few else resample_tables(tables, draws, seed)
    ours, theirs, truth = columns
    ahead = np.abs(theirs - truth) - np.abs(ours - truth)

    def against(figure: Figure, sign: int) -> HumanAgreementGain:
        def gain(tables: Floats) -> Floats:
            return sign * (figure(_first_judge_table(tables)) - figure(_second(tables)))

        sides: tuple[Figure, ...] = (
            lambda tables: figure(_first_judge_table(tables)),
            lambda tables: figure(_second(tables)),
            gain,
        )
        return HumanAgreementGain(*(estimate(side, whole, drawn, confidence) for side in sides))

    return JudgesVersusHumans(
        cases=len(clusters),
        clusters=len(tables),
        differing=int((ours != theirs).sum()),
        first=int((ahead > 0).sum()),
        second=int((ahead < 0).sum()),
        off=against(mean_worth(np.abs(GRADE_DIFFERENCES)), -1),
        kappa=against(kappa, 1),
        exact=against(mean_worth((GRADE_DIFFERENCES == 0).astype(np.float64)), 1),
        confidence=confidence,
    )


def _first_judge_table(tables: Floats) -> Floats:
    return np.asarray(tables.sum(axis=2))


def _second(tables: Floats) -> Floats:
    return np.asarray(tables.sum(axis=1))


def _grade_columns(columns: Sequence[npt.ArrayLike], clusters: Sequence[str]) -> list[Ints]:
    """Return columns of grades as arrays of shape (cases,).

    Raises:
        ValueError: the lengths differ, or a grade is not 1 to 5.
    """
    found = [np.asarray(column, dtype=np.int64) for column in columns]
    if any(column.shape != (len(clusters),) for column in found):
        raise ValueError(
            f"{[column.size for column in found]} grades and {len(clusters)} question ids: the lengths must be equal"
        )
    if any(column.size and not 1 <= column.min() <= column.max() <= len(GRADES) for column in found):
        raise ValueError("grades must be 1 to 5")
    return found


RANDOM_SWAPS = 10_000
EQUAL_WITHIN = 1e-12  # differences of kappa that are closer differ only by rounding


def kappa_difference_test(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    people: npt.ArrayLike,
    clusters: Sequence[str],
    *,
    draws: int = RANDOM_SWAPS,
    seed: int,
) -> float:
    """Return the two-sided p value of the difference between two judges' kappa with human grades.

    Under the null hypothesis, each question's grades could have come from either judge. The test swaps the judges in
    random questions and counts the draws whose difference is at least as large (Smucker, Allan and Carterette, 2007). p
    is (count + 1) / (draws + 1). The result is 1 if both judges have the same counts of grade pairs in every question,
    and NaN if a kappa is undefined.

    Args:
        first, second, people: shape (cases,), grades of the judges and of humans, 1 to 5.
        clusters: the question of each case.
        draws: number of random swaps, at least 1.
        seed: random seed.

    Raises:
        ValueError: the lengths differ, a grade is not 1 to 5, or `draws` is below 1.
    """
    check_confidence(0.95, draws)
    tables = tables_of(_grade_columns((first, second, people), clusters), clusters).astype(np.float64)
    ours, theirs = _first_judge_table(tables), _second(tables)
    observed = _kappa_difference(ours.sum(axis=0)[None], theirs.sum(axis=0)[None])[0] if len(tables) else math.nan
    differing = np.flatnonzero((ours != theirs).any(axis=(1, 2)))
    if math.isnan(observed) or not differing.size:
        return float(observed) if math.isnan(observed) else 1.0
    swapped = generator(seed, "kappa difference", len(tables)).random((draws, differing.size)) < 0.5
    moved = np.tensordot(swapped.astype(np.float64), (theirs - ours)[differing], axes=1)
    found = _kappa_difference(ours.sum(axis=0) + moved, theirs.sum(axis=0) - moved)
    return float(((np.abs(found) >= abs(observed) - EQUAL_WITHIN).sum() + 1) / (draws + 1))


def _kappa_difference(ours: Floats, theirs: Floats) -> Floats:
    return kappa(ours) - kappa(theirs)


def mean_grades(
    judge: npt.ArrayLike,
    people: npt.ArrayLike,
    clusters: Sequence[str],
    *,
    confidence: float = 0.95,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int,
) -> tuple[AgreementEstimate, ...]:
    """Return the judge's mean grade for each human grade from 1 to 5; NaN for human grades that do not occur.

    The intervals resample whole questions. They are NaN if there are too few cases or questions.

    Args:
        judge, people: shape (cases,), the judge's and the human grades, 1 to 5.
        clusters: the question of each case.
        confidence, draws, seed: confidence level, number of resamples and random seed of the bootstrap intervals.

    Raises:
        ValueError: the lengths differ, a grade is not 1 to 5, or an argument is out of its range.
    """
    check_confidence(confidence, draws)
    tables = tables_of(_grade_columns((judge, people), clusters), clusters)
    whole = tables.sum(axis=0)
    few = len(clusters) < FEWEST_CASES or len(tables) < FEWEST_CLUSTERS
    drawn = None if few else resample_tables(tables, draws, seed)
    return tuple(estimate(_mean_in_column(place), whole, drawn, confidence) for place in range(len(GRADES)))


def _mean_in_column(place: int) -> Figure:
    """Return a function that computes the mean row grade of one column of a table; NaN if the column is empty."""

    def figure(tables: Floats) -> Floats:
        counts = tables[:, :, place]
        total = counts.sum(axis=1)
        return np.asarray((counts * np.array(GRADES)).sum(axis=1) / np.where(total > 0, total, math.nan))

    return figure
