"""What a judge may be used for, by stated thresholds on how its grades stand to people's.

An answer is "yes" or "no" where the whole interval lies on one side of the threshold, else "not yet", with how many
judgments more would tell if the figures stayed: an interval narrows with the root of the cases.

Two judges on the same passages, with people as referee: which of them is nearer to what people say?

All figures are paired: both judges and people graded every case. Whole questions are resampled, as where one judge is
checked. Passages on which the two judges agree count, and tell nothing of which is nearer: so a verdict also asks
for some on which they differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats
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

COMPARE_KAPPA = 0.4  # "moderate" of Landis and Koch, 1977: errors of such a judge hit all systems alike
ABSOLUTE_KAPPA = 0.6  # "substantial"
ABSOLUTE_BIAS = 0.25  # grades; a number is off by as much of a grade
ROUNDING = 1e-6


@dataclass(frozen=True)
class JudgeValidity:
    """Whether a judge may be used for something.

    Attributes:
        use: what for.
        answer: whether.
        rule: the threshold.
        more: about how many more judgments would tell; None where it is told, or where more would hardly tell.
    """

    use: str
    answer: Answer
    rule: str
    more: int | None


def judge_validity(checked: JudgeHumanAgreement) -> tuple[JudgeValidity, ...]:
    """Whether systems may be compared by the judge's grades, and whether its numbers may be taken as they are."""
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
    """The interval of -|bias|."""
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
    """Cases at which the interval would clear the threshold; None where the value itself does not."""
    margin = figure.value - least
    return math.ceil(cases * ((figure.value - figure.low) / margin) ** 2 - ROUNDING) if margin > 0 else None


FEWEST_DIFFERING = 10  # below, a handful of passages would decide

WinnerSide = Literal["first", "second"]


@dataclass(frozen=True)
class HumanAgreementGain:
    """A figure of both judges against people.

    Attributes:
        first, second: of each judge.
        gain: by how much the first is better, paired.
    """

    first: AgreementEstimate
    second: AgreementEstimate
    gain: AgreementEstimate


@dataclass(frozen=True)
class JudgesVersusHumans:
    """How two judges stand to people.

    Attributes:
        cases: passages that both judges and people graded.
        clusters: questions that they are of.
        differing: of the cases, those on which the judges differ.
        first, second: of those, on how many the one is nearer to people, and the other; on the rest neither is.
        off: how many grades a judge is off people's, on average; its gain decides.
        kappa: Cohen's, with quadratic weights.
        exact: the share of grades equal to people's.
        confidence: of the intervals, in 0..1.
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
        """Whether there is too little for a verdict, whatever it says."""
        scarce = self.cases < FEWEST_CASES or self.clusters < FEWEST_CLUSTERS
        return scarce or self.differing < FEWEST_DIFFERING

    @property
    def winner(self) -> WinnerSide | None:
        """Who is nearer, where the interval of the gain leaves no doubt."""
        gain = self.off.gain
        if self.few or math.isnan(gain.low) or gain.low <= 0 <= gain.high:
            return None
        return "first" if gain.low > 0 else "second"

    @property
    def more(self) -> int | None:
        """About how many more cases would tell, if the figures stayed; None where it is told, or never would be."""
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
    """Compare two judges' grades with people's.

    Args:
        first, second, people: shape (cases,), grades 1 to 5.
        clusters: the question of each case.
        confidence, draws, seed: of the intervals.

    Raises:
        ValueError: the lengths differ, a grade is none, or an argument is out of its range.
    """
    check_confidence(confidence, draws)
    columns = [np.asarray(column, dtype=np.int64) for column in (first, second, people)]
    if any(column.shape != (len(clusters),) for column in columns):
        raise ValueError(f"{[column.size for column in columns]} grades of {len(clusters)} questions are no triples")
    if any(column.size and not 1 <= column.min() <= column.max() <= len(GRADES) for column in columns):
        raise ValueError("grades are 1 to 5")
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
