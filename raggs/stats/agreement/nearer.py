"""Two judges on the same passages, with people as referee: which of them is nearer to what people say?

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
from raggs.stats.agreement.clustered import (
    FEWEST_CASES,
    FEWEST_CLUSTERS,
    STEPS,
    Estimate,
    Figure,
    estimate,
    kappa,
    mean_worth,
    resampled,
    tables_of,
)
from raggs.stats.agreement.labels import DRAWS, GRADES, check_confidence

FEWEST_DIFFERING = 10  # below, a handful of passages would decide
ROUNDING = 1e-6

Side = Literal["first", "second"]


@dataclass(frozen=True)
class Against:
    """A figure of both judges against people.

    Attributes:
        first, second: of each judge.
        gain: by how much the first is better, paired.
    """

    first: Estimate
    second: Estimate
    gain: Estimate


@dataclass(frozen=True)
class Nearer:
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
    off: Against
    kappa: Against
    exact: Against
    confidence: float

    @property
    def few(self) -> bool:
        """Whether there is too little for a verdict, whatever it says."""
        scarce = self.cases < FEWEST_CASES or self.clusters < FEWEST_CLUSTERS
        return scarce or self.differing < FEWEST_DIFFERING

    @property
    def winner(self) -> Side | None:
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


def nearer(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    people: npt.ArrayLike,
    clusters: Sequence[str],
    *,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int,
) -> Nearer:
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
    drawn = None if few else resampled(tables, draws, seed)
    ours, theirs, truth = columns
    ahead = np.abs(theirs - truth) - np.abs(ours - truth)

    def against(figure: Figure, sign: int) -> Against:
        def gain(tables: Floats) -> Floats:
            return sign * (figure(_first(tables)) - figure(_second(tables)))

        sides: tuple[Figure, ...] = (
            lambda tables: figure(_first(tables)),
            lambda tables: figure(_second(tables)),
            gain,
        )
        return Against(*(estimate(side, whole, drawn, confidence) for side in sides))

    return Nearer(
        cases=len(clusters),
        clusters=len(tables),
        differing=int((ours != theirs).sum()),
        first=int((ahead > 0).sum()),
        second=int((ahead < 0).sum()),
        off=against(mean_worth(np.abs(STEPS)), -1),
        kappa=against(kappa, 1),
        exact=against(mean_worth((STEPS == 0).astype(np.float64)), 1),
        confidence=confidence,
    )


def _first(tables: Floats) -> Floats:
    return np.asarray(tables.sum(axis=2))


def _second(tables: Floats) -> Floats:
    return np.asarray(tables.sum(axis=1))
