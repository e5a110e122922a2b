"""What a judge may be used for, by stated thresholds on how its grades stand to people's.

An answer is "yes" or "no" where the whole interval lies on one side of the threshold, else "not yet", with how many
judgments more would tell if the figures stayed: an interval narrows with the root of the cases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from raggs.stats.agreement.clustered import FEWEST_CASES, FEWEST_CLUSTERS, Checked, Estimate

Answer = Literal["yes", "no", "not yet"]

COMPARE_KAPPA = 0.4  # "moderate" of Landis and Koch, 1977: errors of such a judge hit all systems alike
ABSOLUTE_KAPPA = 0.6  # "substantial"
ABSOLUTE_BIAS = 0.25  # grades; a number is off by as much of a grade
ROUNDING = 1e-6


@dataclass(frozen=True)
class Trust:
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


def trust(checked: Checked) -> tuple[Trust, ...]:
    """Whether systems may be compared by the judge's grades, and whether its numbers may be taken as they are."""
    bias = Estimate(-abs(checked.bias.value), *_folded(checked.bias))
    return (
        _told(checked, "comparing systems", f"kappa at least {COMPARE_KAPPA:g}", [(checked.kappa, COMPARE_KAPPA)]),
        _told(
            checked,
            "absolute numbers",
            f"kappa at least {ABSOLUTE_KAPPA:g}, bias within {ABSOLUTE_BIAS:g} grades",
            [(checked.kappa, ABSOLUTE_KAPPA), (bias, -ABSOLUTE_BIAS)],
        ),
    )


def _folded(bias: Estimate) -> tuple[float, float]:
    """The interval of -|bias|."""
    ends = (-abs(bias.low), -abs(bias.high))
    return min(ends), 0.0 if bias.low <= 0 <= bias.high else max(ends)


def _told(checked: Checked, use: str, rule: str, held: list[tuple[Estimate, float]]) -> Trust:
    if checked.few:
        least = f"{rule}, by {FEWEST_CASES} grades of {FEWEST_CLUSTERS} questions or more"
        return Trust(use, "not yet", least, max(FEWEST_CASES - checked.cases, FEWEST_CLUSTERS - checked.clusters, 1))
    if any(math.isnan(figure.low) for figure, _ in held):
        return Trust(use, "not yet", rule, None)
    if all(figure.low >= least for figure, least in held):
        return Trust(use, "yes", rule, None)
    if any(figure.high < least for figure, least in held):
        return Trust(use, "no", rule, None)
    needed = [_needed(checked.cases, figure, least) for figure, least in held if figure.low < least]
    known = [cases for cases in needed if cases is not None]
    more = max(1, max(known) - checked.cases) if len(known) == len(needed) else None
    return Trust(use, "not yet", rule, more)


def _needed(cases: int, figure: Estimate, least: float) -> int | None:
    """Cases at which the interval would clear the threshold; None where the value itself does not."""
    margin = figure.value - least
    return math.ceil(cases * ((figure.value - figure.low) / margin) ** 2 - ROUNDING) if margin > 0 else None
