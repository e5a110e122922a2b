"""Bootstrap intervals of means over queries: how much a score would vary with other queries of the same kind.

Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993: percentile intervals (chapter 13) and BCa
intervals (chapter 14). For a mean, the jackknife in BCa has a closed form. A resample is a vector that counts how often
each query was drawn, so all measures share one matrix of counts. A measure's interval depends only on its own valid
values and the seed, never on the other measures.

Do not use these intervals for fewer than about ten queries: both methods then give intervals that are too short.
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
MAX_COUNT_CELLS = 2_000_000  # cells of the count matrix in memory at a time: 16 MB
# number of cached count matrices; measures that are defined for different numbers of queries need different ones
CACHED_MATRICES = 6
RELATIVE_TOLERANCE = 1e-12  # means whose relative difference is below this differ only by rounding


NORMAL = NormalDist()


@dataclass(frozen=True)
class Interval:
    """A mean over queries with its confidence interval.

    Attributes:
        mean: mean over the valid queries; NaN if there are no valid queries.
        low, high: bounds of the interval. NaN with fewer than two valid queries; equal to the mean if all values are
            equal.
        confidence: confidence level, in 0..1.
        count: number of valid queries.
        missing: number of queries for which the measure is undefined.
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
        """Yield the bounds, so that ``low, high = interval`` works."""
        return iter((self.low, self.high))


def bootstrap_mean(
    values: npt.ArrayLike, *, method: Method = "bca", confidence: float = 0.95, draws: int = BOOTSTRAP_DRAWS, seed: int
) -> Interval:
    """Return the mean of one measure, shape (queries,), with its interval; see `bootstrap_means`.

    Raises:
        ValueError: as for `bootstrap_means`.
    """
    row = np.asarray(values, dtype=np.float64)
    if row.ndim != 1:
        raise ValueError(f"expected a one-dimensional array with one value per query, got shape {row.shape}")
    return bootstrap_means(row[None, :], method=method, confidence=confidence, draws=draws, seed=seed)[0]


def bootstrap_means(
    values: npt.ArrayLike, *, method: Method = "bca", confidence: float = 0.95, draws: int = BOOTSTRAP_DRAWS, seed: int
) -> tuple[Interval, ...]:
    """Return the mean of each measure over its valid queries, with its bootstrap interval.

    Args:
        values: shape (measures, queries); NaN if a measure is undefined for a query.
        method: "bca" corrects the percentiles for bias and skewness; "percentile" uses them unchanged.
        confidence: strictly between 0 and 1.
        draws: number of resamples, at least 1. With 2,000, the Monte Carlo error of a bound is about 6% of a standard
            error.
        seed: random seed.

    Returns:
        One interval per measure, in the order of the rows.

    Raises:
        ValueError: the array is not two-dimensional, a value is infinite, or an argument is out of its range.
    """
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"expected an array of shape (measures, queries), got shape {matrix.shape}")
    if np.isinf(matrix).any():
        raise ValueError("a value is infinite; use NaN if a measure is undefined")
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
    """Return the means of `draws` resamples of each sample.

    Samples of equal size share their resamples.

    Args:
        cells: maximum number of cells of the count matrix in memory at a time.
    """
    means = [np.full(draws, math.nan) for _ in samples]
    for size in sorted({sample.size for sample in samples if sample.size}):
        rows = [row for row, sample in enumerate(samples) if sample.size == size]
        for chunk, counts in _shared_resamples(size, draws, seed, cells):
            for row in rows:
                # One einsum per row, because the rounding of a BLAS product depends on the number of rows and threads.
                means[row][chunk] = np.einsum("ij,j->i", counts, samples[row]) / size
    return means


def _shared_resamples(size: int, draws: int, seed: int, cells: int) -> Iterable[tuple[slice, Floats]]:
    """Return the resamples as `_resamples` does. If they fit into one block, they are cached for the next system."""
    return _cached_resamples(size, draws, seed) if size * draws <= cells else _resamples(size, draws, seed, cells)


@lru_cache(maxsize=CACHED_MATRICES)
def _cached_resamples(size: int, draws: int, seed: int) -> tuple[tuple[slice, Floats], ...]:
    return tuple(_resamples(size, draws, seed, size * draws))


def _resamples(size: int, draws: int, seed: int, cells: int) -> Iterator[tuple[slice, Floats]]:
    """Yield how often each of `size` queries is drawn, in blocks of draws of shape (block, size)."""
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
    """Return the percentiles of the resampled means that BCa uses instead of `levels`.

    With u the deviations from the mean, the acceleration of a mean is sum u^3 / (6 (sum u^2)^1.5), at most 1/6. A
    resampled mean that equals the mean counts half as below it.
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
