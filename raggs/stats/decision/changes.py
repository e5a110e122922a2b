"""The change of a value by query, over matched systems, and what may be said of its mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from raggs.base.arrays import Floats, Ints
from raggs.stats.decision.matching import Levels
from raggs.stats.decision.resamples import checked_values, resampled_means

CONFIDENCE = 0.95
CELLS = 1_000_000  # of matched values at a time: 8 MB each


class Found(NamedTuple):
    """A change of level on one axis or on two, and what it does to each query.

    Attributes:
        axes, before, after: places of the axes and of their levels.
        groups: matched systems that it rests on, pairs or squares.
        by_query: shape (queries,), NaN where no group has a value.
    """

    axes: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    groups: int
    by_query: Floats

    @property
    def valid(self) -> Floats:
        return self.by_query[~np.isnan(self.by_query)]

    @property
    def queries(self) -> int:
        return int(self.valid.size)

    @property
    def mean(self) -> float:
        return float(self.valid.mean()) if self.queries else math.nan

    @property
    def error(self) -> float:
        """Standard error of the mean over queries."""
        return float(self.valid.std(ddof=1)) / math.sqrt(self.queries) if self.queries > 1 else math.inf

    def is_clear(self, alpha: float, compared: int) -> bool:
        """A t-test at alpha / compared; fewer queries than signs could ever reach that level are never enough."""
        level = alpha / compared
        if self.mean == 0 or self.queries < 1 - math.log2(level):
            return False
        t = abs(self.mean) / self.error if self.error > 0 else math.inf
        return 2 * float(stdtr(self.queries - 1, -t)) < level


def checked_matrix(systems: Sequence[Levels], values: npt.ArrayLike, confidence: float) -> Floats:
    if not 0 < confidence < 1:
        raise ValueError(f"the confidence is {confidence}; it lies inside 0..1")
    return checked_values(values, len(systems))


def contrast(matrix: Floats, pairs: Ints) -> Floats:
    """By query the mean change over the pairs that have it; NaN where none has."""
    queries = matrix.shape[1]
    total, count = np.zeros(queries), np.zeros(queries)
    step = max(1, CELLS // max(queries, 1))
    for start in range(0, len(pairs), step):
        chunk = pairs[start : start + step]
        changes = matrix[chunk[:, 1]] - matrix[chunk[:, 0]]
        total += np.nansum(changes, axis=0)
        count += (~np.isnan(changes)).sum(axis=0)
    means = np.full(queries, math.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means


def bounds_of(rows: Sequence[Floats], seed: int, draws: int, confidence: float) -> list[tuple[float, float]]:
    """Percentile intervals of the rows' means over resampled queries; NaN below two valid queries."""
    if not rows:
        return []
    matrix = np.stack(rows)
    means = np.concatenate(list(resampled_means(matrix, draws=draws, seed=seed)))
    tail = (1 - confidence) / 2
    bounds = []
    for row, column in zip(matrix, means.T, strict=True):
        drawn = column[~np.isnan(column)]  # none of the row's valid queries may be in a draw
        low, high = np.quantile(drawn, [tail, 1 - tail]) if (~np.isnan(row)).sum() > 1 else (math.nan, math.nan)
        bounds.append((float(low), float(high)))
    return bounds
