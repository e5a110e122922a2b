"""How well something cheap says what something dear will do: a rank correlation over the things that were changed.

The dear side is known question by question, so that its interval is over resampled questions; the cheap side is taken
as it was measured. Pure: numbers in, a frozen result out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics.stats.intervals import resampled_means
from raggs.stats.agreement.orders import spearman

DRAWS = 1000
FEWEST = 3  # points of which a rank correlation says anything
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Prediction:
    """A rank correlation, in -1..1.

    Attributes:
        spearman: of the cheap values with the means of the dear ones, ties at their mean rank; NaN below three points,
            or where one side does not vary.
        low, high: 95% percentile interval over resampled questions; NaN where no draw has a correlation.
        points: how many things were changed.
    """

    spearman: float
    low: float
    high: float
    points: int


def predict(cheap: Floats, dear: Floats, *, seed: int) -> Prediction:
    """How well `cheap` orders the means of `dear`.

    Args:
        cheap: shape (points,).
        dear: shape (points, questions), of the same questions in the same order.
        seed: of the resamples.

    Raises:
        ValueError: the shapes do not fit, or a value is not finite.
    """
    if dear.ndim != 2 or cheap.shape != dear.shape[:1]:
        raise ValueError(f"a row of questions for each point is needed, got the shapes {cheap.shape} and {dear.shape}")
    if not (np.isfinite(cheap).all() and np.isfinite(dear).all()):
        raise ValueError("a value is not finite")
    points, questions = dear.shape
    if points < FEWEST or not questions:
        return Prediction(math.nan, math.nan, math.nan, points)
    drawn = np.array(resampled_means(list(dear), DRAWS, seed))
    found = np.array([_correlation(cheap, column) for column in drawn.T])
    told = found[~np.isnan(found)]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(told, [tail, 1 - tail]) if told.size else (math.nan, math.nan)
    return Prediction(_correlation(cheap, dear.mean(axis=1)), float(low), float(high), points)


def _correlation(first: Floats, second: Floats) -> float:
    ours, theirs = (dict(zip(map(str, range(len(each))), each.tolist(), strict=True)) for each in (first, second))
    return spearman(ours, theirs)
