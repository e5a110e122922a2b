"""Bootstrap intervals of means over queries: how far a score would move with other questions of the same kind.

Efron and Tibshirani, "An Introduction to the Bootstrap", 1993: percentile (chapter 13) and BCa (chapter 14). For a
mean, the jackknife that BCa needs has a closed form, and a resample is a vector of counts, so that many measures
share one matrix of counts. A measure's interval depends on its own valid values and the seed alone, never on which
measures are computed beside it.

Not for a handful of queries: below about ten, both methods give intervals that are too short.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Floats
from raggs.base.hashing import generator

Method = Literal["bca", "percentile"]

BOOTSTRAP_DRAWS = 2_000
MAX_COUNT_CELLS = 2_000_000  # of the matrix of counts at a time: 16 MB
CACHED_MATRICES = 6  # such matrices, for measures that are defined on different numbers of queries
RELATIVE_TOLERANCE = 1e-12  # relative: below it, two means differ by rounding only


NORMAL = NormalDist()


@dataclass(frozen=True)
class Interval:
    """A mean and the interval of plausible values around it.

    Attributes:
        mean: over the valid queries; NaN where there is none.
        low, high: the bounds; NaN below two valid queries, both equal to the mean where all values are equal.
        confidence: in 0..1.
        count: valid queries.
        missing: queries left out because the measure is undefined there.
        method: "bca" or "percentile".
    """

    mean: float
    low: float
    high: float
    confidence: float
    count: int
    missing: int
    method: Method

    def __iter__(self) -> Iterator[float]:
        """The bounds, so that ``low, high = interval``."""
        return iter((self.low, self.high))


def bootstrap_mean(
    values: npt.ArrayLike, *, method: Method = "bca", confidence: float = 0.95, draws: int = BOOTSTRAP_DRAWS, seed: int
) -> Interval:
    """The mean of `values`, shape (queries,), with its interval; as `bootstrap_means` for one measure.

    Raises:
        ValueError: as `bootstrap_means`.
    """
    row = np.asarray(values, dtype=np.float64)
    if row.ndim != 1:
        raise ValueError(f"one value a query is needed, got the shape {row.shape}")
    return bootstrap_means(row[None, :], method=method, confidence=confidence, draws=draws, seed=seed)[0]


def bootstrap_means(
    values: npt.ArrayLike, *, method: Method = "bca", confidence: float = 0.95, draws: int = BOOTSTRAP_DRAWS, seed: int
) -> tuple[Interval, ...]:
    """The mean of each measure over its valid queries, with its interval.

    Args:
        values: shape (measures, queries); NaN where a measure is undefined for a query.
        method: "bca" corrects the percentiles for bias and skew; "percentile" takes them as they are.
        confidence: inside 0..1.
        draws: resamples of the queries; at least 1. 2,000 place a bound to about 6% of a standard error.
        seed: of the run.

    Returns:
        One interval for each measure, in their order.

    Raises:
        ValueError: the shape is not two-dimensional, a value is infinite, or an argument is out of its range.
    """
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"(measures, queries) are needed, got the shape {matrix.shape}")
    if np.isinf(matrix).any():
        raise ValueError("a value is infinite; use NaN where a measure is undefined")
    if method not in get_args(Method):
        raise ValueError(f"unknown method {method!r}; known: {', '.join(get_args(Method))}")
    if not (0 < confidence < 1 and draws >= 1):
        raise ValueError(f"0 < confidence < 1 <= draws does not hold for confidence={confidence}, draws={draws}")
    samples = [row[~np.isnan(row)] for row in matrix]
    bounds = (
        _interval_bounds(sample, means, method, confidence)
        for sample, means in zip(samples, resampled_means(samples, draws, seed), strict=True)
    )
    return tuple(
        Interval(_mean(sample), low, high, confidence, sample.size, matrix.shape[1] - sample.size, method)
        for sample, (low, high) in zip(samples, bounds, strict=True)
    )


def resampled_means(samples: Sequence[Floats], draws: int, seed: int, cells: int = MAX_COUNT_CELLS) -> list[Floats]:
    """For each sample the means of `draws` resamples with replacement; samples of equal size share their resamples.

    Args:
        cells: of the matrix of counts that are held at a time.
    """
    means = [np.full(draws, math.nan) for _ in samples]
    for size in sorted({sample.size for sample in samples if sample.size}):
        rows = [row for row, sample in enumerate(samples) if sample.size == size]
        for chunk, counts in _shared_resamples(size, draws, seed, cells):
            for row in rows:
                # One product each, and none of BLAS's: those would round by the number of rows, and of threads.
                means[row][chunk] = np.einsum("ij,j->i", counts, samples[row]) / size
    return means


def _shared_resamples(size: int, draws: int, seed: int, cells: int) -> Iterable[tuple[slice, Floats]]:
    """As `_resamples`; those that fit into one chunk are kept for the next system."""
    return _cached_resamples(size, draws, seed) if size * draws <= cells else _resamples(size, draws, seed, cells)


@lru_cache(maxsize=CACHED_MATRICES)
def _cached_resamples(size: int, draws: int, seed: int) -> tuple[tuple[slice, Floats], ...]:
    return tuple(_resamples(size, draws, seed, size * draws))


def _resamples(size: int, draws: int, seed: int, cells: int) -> Iterator[tuple[slice, Floats]]:
    """How often each of `size` queries is drawn, a chunk of the draws at a time: shape (chunk, size)."""
    rng, step = generator(seed, "bootstrap", size), max(1, cells // size)
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        drawn = rng.integers(size, size=(rows, size)) + size * np.arange(rows)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size)
        yield slice(start, start + rows), counts.astype(np.float64)


def _mean(sample: Floats) -> float:
    return float(sample.mean()) if sample.size else math.nan


def _interval_bounds(sample: Floats, means: Floats, method: Method, confidence: float) -> tuple[float, float]:
    mean = _mean(sample)
    if sample.size < 2:
        return math.nan, math.nan
    if np.ptp(sample) <= RELATIVE_TOLERANCE * np.abs(sample).max():
        return mean, mean
    tail = (1 - confidence) / 2
    levels = np.array([tail, 1 - tail])
    low, high = np.quantile(means, bca_levels(sample, means, levels) if method == "bca" else levels)
    return float(low), float(high)


def bca_levels(sample: Floats, means: Floats, levels: Floats) -> Floats:
    """The percentiles of the resampled means that BCa reads instead of `levels`.

    With u the deviations from the mean, the acceleration of a mean is sum u^3 / (6 (sum u^2)^1.5), at most 1/6.
    Resampled means equal to the mean count as half below it.
    """
    mean, fuzz = _mean(sample), RELATIVE_TOLERANCE * np.abs(sample).max()
    below = ((means < mean - fuzz).mean() + (means <= mean + fuzz).mean()) / 2
    half = 1 / (2 * means.size)
    bias = NORMAL.inv_cdf(min(max(float(below), half), 1 - half))
    u = (sample - mean) / np.abs(sample - mean).max()
    acceleration = (u**3).sum() / (6 * (u @ u) ** 1.5)
    z = bias + np.array([NORMAL.inv_cdf(level) for level in levels.tolist()])
    shifted = bias + z / np.maximum(1 - acceleration * z, RELATIVE_TOLERANCE)
    return np.array([NORMAL.cdf(value) for value in shifted.tolist()])
