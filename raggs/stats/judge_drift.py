"""Drift of a judge: does it still grade the same passages in the same way?

The same passages are graded twice, earlier and now. If the judge did not change, an earlier and a new grade of a
passage are two draws from the same distribution. So their expected difference is 0, and they are equal as often as two
repeated grades, on average. Three quantities are tested, each with an interval:

- Shift: mean of the new grade minus the earlier grade, over resampled queries.
- Lost agreement: share of equal repeated grades, minus share of equal earlier and new grades. Both shares are of the
  same passages, and whole queries are resampled. The judge's own noise affects both shares alike.
- Lost canaries: share of hidden control items that passed earlier, minus the share now. The interval combines two
  Wilson intervals (Newcombe, 1998, method 10).

An interval that is entirely beyond the tolerance is an alarm. An interval that is entirely within it shows that the
quantity did not drift. In all other cases, the quantity is inconclusive. `JudgeDrift.verdict` combines the three
results.
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
    GRADES,
    AgreementEstimate,
    JudgeHumanAgreement,
    check_labels,
    estimate,
    resample_tables,
    tables_of,
    wilson,
)

DriftVerdict = Literal["drift", "no drift", "inconclusive"]
SHIFT_TOLERANCE = 0.25  # grades; the same bias as `raggs.stats.judge_agreement.ABSOLUTE_BIAS` allows
AGREEMENT_TOLERANCE = 0.1  # loss of equal grades, or of passed canaries, as a share


@dataclass(frozen=True)
class DriftTolerance:
    """Limits of the changes.

    Attributes:
        shift: largest mean change of a grade, in grades, up or down.
        agreement: largest loss of equal grades beyond the judge's own noise, and of passed canaries, as shares in 0..1.
    """

    shift: float = SHIFT_TOLERANCE
    agreement: float = AGREEMENT_TOLERANCE


@dataclass(frozen=True)
class RepeatedGrades:
    """Passages with two grades from one time (earlier or now), and one grade from the other time.

    Attributes:
        first, second: two grades of each passage from one time, 1 to 5.
        other: a grade of each passage from the other time, 1 to 5.
        clusters: the query of each passage.
    """

    first: Sequence[int]
    second: Sequence[int]
    other: Sequence[int]
    clusters: Sequence[str]


@dataclass(frozen=True)
class CanaryCounts:
    """Number of graded canaries, and how many of them passed."""

    passed: int
    total: int


@dataclass(frozen=True)
class JudgeDrift:
    """How a judge's grades changed.

    Attributes:
        agreement: agreement of new and earlier grades; the new grades are in the rows, and the bias is the shift.
        noise: agreement of repeated grades from one time; None if no passage has any.
        lost_agreement: share of equal repeated grades minus share of equal earlier and new grades.
        lost_canaries: share of passed canaries, earlier minus now; NaN if they were not graded at both times.
        tolerance: limits of the changes.
    """

    agreement: JudgeHumanAgreement
    noise: JudgeHumanAgreement | None
    lost_agreement: AgreementEstimate
    lost_canaries: AgreementEstimate
    tolerance: DriftTolerance

    @property
    def verdict(self) -> DriftVerdict:
        """Drift if one of the three changes is beyond its tolerance. There is no drift if the shift is within its
        tolerance, and nothing else is beyond its own.
        """
        parts = self.parts
        if "drift" in parts.values():
            return "drift"
        return parts["shift"]

    @property
    def parts(self) -> dict[Literal["shift", "agreement", "canaries"], DriftVerdict]:
        """The verdict of each change."""
        return {
            "shift": _verdict(self.agreement.bias, self.tolerance.shift, both_sides=True),
            "agreement": _verdict(self.lost_agreement, self.tolerance.agreement),
            "canaries": _verdict(self.lost_canaries, self.tolerance.agreement),
        }


def _verdict(found: AgreementEstimate, tolerance: float, *, both_sides: bool = False) -> DriftVerdict:
    if math.isnan(found.low):
        return "inconclusive"
    if found.low > tolerance or (both_sides and found.high < -tolerance):
        return "drift"
    return "no drift" if found.high <= tolerance and (not both_sides or found.low >= -tolerance) else "inconclusive"


def measure_drift(
    before: npt.ArrayLike,
    now: npt.ArrayLike,
    clusters: Sequence[str],
    repeated: RepeatedGrades | None = None,
    canaries: tuple[CanaryCounts, CanaryCounts] | None = None,
    *,
    tolerance: DriftTolerance | None = None,
    confidence: float = 0.95,
    draws: int = BOOTSTRAP_DRAWS,
    seed: int,
) -> JudgeDrift:
    """Compare the earlier and the new grades of the same passages.

    Args:
        before, now: shape (passages,), grades from 1 to 5.
        clusters: the query of each passage.
        repeated: passages with two grades from one time; None if there are none.
        canaries: counts of earlier and of new canaries; None if they were not graded at both times.
        tolerance: limits of the changes (default: `DriftTolerance()`).
        confidence, draws, seed: confidence level, number of resamples and random seed of the bootstrap intervals.

    Raises:
        ValueError: the lengths differ, a grade is not 1 to 5, or an argument is out of its range.
    """
    noise, lost = None, AgreementEstimate(math.nan, math.nan, math.nan)
    if repeated is not None and len(repeated.first):
        noise = check_labels(
            repeated.first, repeated.second, repeated.clusters, confidence=confidence, draws=draws, seed=seed
        )
        lost = _lost_agreement(repeated, confidence, draws, seed)
    return JudgeDrift(
        agreement=check_labels(now, before, clusters, confidence=confidence, draws=draws, seed=seed),
        noise=noise,
        lost_agreement=lost,
        lost_canaries=_lost_share(canaries, confidence),
        tolerance=tolerance or DriftTolerance(),
    )


def _lost_agreement(repeated: RepeatedGrades, confidence: float, draws: int, seed: int) -> AgreementEstimate:
    columns = [np.asarray(side, dtype=np.int64) for side in (repeated.first, repeated.second, repeated.other)]
    tables = tables_of(columns, repeated.clusters)
    few = len(repeated.first) < FEWEST_CASES or len(tables) < FEWEST_CLUSTERS
    drawn = None if few else resample_tables(tables, draws, seed)
    return estimate(_mean_loss, tables.sum(axis=0), drawn, confidence)


def _mean_loss(tables: Floats) -> Floats:
    """Return share of equal first and second grades minus share of equal first and other grades, shape (draws,)."""
    first, second, other = np.meshgrid(*(np.arange(len(GRADES)),) * 3, indexing="ij")
    loss = (first == second).astype(np.float64) - (first == other)
    found: Floats = (tables * loss).sum(axis=(1, 2, 3)) / tables.sum(axis=(1, 2, 3))
    return found


def _lost_share(canaries: tuple[CanaryCounts, CanaryCounts] | None, confidence: float) -> AgreementEstimate:
    """Return the first share minus the second, with Newcombe's interval; NaN without data."""
    if canaries is None or not all(each.total for each in canaries):
        return AgreementEstimate(math.nan, math.nan, math.nan)
    one, other = (each.passed / each.total for each in canaries)
    (low, high), (other_low, other_high) = (wilson(each.passed, each.total, confidence) for each in canaries)
    down = math.hypot(one - low, other_high - other)
    up = math.hypot(high - one, other - other_low)
    return AgreementEstimate(one - other, one - other - down, one - other + up)
