"""Prediction-powered ratios of means over queries, and means of any measure where whole queries were read.

Where every passage of some queries that were drawn at random was read, a query is what is sampled, and its value by
people's labels, whatever the measure, stands beside that by the judge's: nothing has to be linear in labels. Where the
measure is not defined for all queries, its mean is that of its values over that of "is defined".

A ratio A / B of two means is estimated by that of their estimates, and its interval by the delta method: that of the
mean of A - (A / B) B, over B.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats
from raggs.stats.correction.estimates import Corrected, Totals, correct, totals_of

FEWEST_WHOLE = 20  # queries that were read whole, on which the measure is defined; below, intervals hold too rarely
VARIED = 3  # of them, that have not the commonest value; below, they say next to nothing of how values vary


def correct_ratio(above: Totals, below: Totals, *, power: float | None = None, confidence: float = 0.95) -> Corrected:
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
) -> Corrected:
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
    if enough(human[known]):
        return found
    return replace(found, low=math.nan, high=math.nan)


def enough(values: Floats) -> bool:
    """Whether values of queries that were read whole can tell how all vary."""
    if len(values) < FEWEST_WHOLE:
        return False
    _, times = np.unique(np.round(values, 9), return_counts=True)
    return bool(len(values) - times.max() >= VARIED)


def _totals(judge: Floats, people: Floats, chance: Floats) -> Totals:
    """Of queries, each of which is a row of weight 1."""
    said = np.where(np.isnan(chance), math.nan, people)
    return totals_of(np.arange(len(judge)), np.ones(len(judge)), judge, said, chance, queries=len(judge))
