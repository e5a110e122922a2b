"""The least effort whose loss against the exact search is small enough, beyond doubt.

Dallaire, "Practical RAG Evaluation", 2025, section 5.3: raise efSearch until the loss against flat at 10 and 30 is at
most 1 to 2%, then stop. Here a loss counts as small enough when the upper end of its interval over queries is: one
that was merely seen to be small may be luck.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics.stats import Interval
from raggs.metrics.stats.intervals import resampled_means

DRAWS = 2_000
CONFIDENCE = 0.95


def loss(values: Floats, exact: Floats, *, seed: int, draws: int = DRAWS) -> Interval:
    """1 - mean(values) / mean(exact) over the queries where both are defined, with its interval over paired resamples.

    Negative where the index happens to do better.

    Args:
        values, exact: shape (queries,); NaN where the measure is undefined.

    Raises:
        ValueError: the shapes differ, or the exact search has a mean of 0: nothing can be lost.
    """
    if values.shape != exact.shape:
        raise ValueError(f"paired values of the same queries are needed, got {values.shape} and {exact.shape}")
    valid = np.isfinite(values) & np.isfinite(exact)
    mine, truth = values[valid], exact[valid]
    if not truth.sum() > 0:
        raise ValueError("the exact search has a mean of 0")
    ours, theirs = resampled_means([mine, truth], draws, seed)
    known = theirs > 0
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(1 - ours[known] / theirs[known], [tail, 1 - tail]).tolist()
    seen = 1 - float(mine.mean() / truth.mean())
    return Interval(seen, low, high, CONFIDENCE, len(mine), int((~valid).sum()), "percentile")


def least_effort(losses: Sequence[Sequence[Interval]], limit: float) -> int | None:
    """The first of several efforts, in ascending order, all of whose losses are within the limit beyond doubt.

    Args:
        losses: by effort, what is lost by each question set and cutoff.
        limit: as a share, such as 0.01.

    Returns:
        Its place, or None where no effort suffices or nothing was measured.
    """
    fits = (at for at, found in enumerate(losses) if found and all(each.high <= limit for each in found))
    return next(fits, None)
