"""How evenly queries are served: the distribution of recall, and the share of queries above each threshold.

Robustness-delta@K is the share of queries with recall >= delta (Wang et al. 2025); over all delta in 0..1 the area
under it is the mean recall.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics.measures.robustness import EPSILON

DELTAS = tuple(round(step / 10, 1) for step in range(1, 11))
PERCENTS = (1, 5, 10, 25, 50)


@dataclass(frozen=True)
class RecallProfile:
    """The distribution of recall over queries.

    Attributes:
        mean: mean recall.
        shares: for each delta in 0.1 .. 1.0, the share of queries with at least that recall.
        area: under the whole curve; equal to the mean but for rounding.
        zero: share of queries with no relevant passage at all.
        histogram: queries in [0, 0.1), [0.1, 0.2), ..., [0.9, 1], 10 counts.
        percentiles: recall that all but the worst p % of the queries reach, by p in 1, 5, 10, 25, 50.
    """

    mean: float
    shares: dict[float, float]
    area: float
    zero: float
    histogram: tuple[int, ...]
    percentiles: dict[int, float]


def recall_profile(recall: Floats) -> RecallProfile:
    """The distribution of `recall`, shape (queries,), in 0..1; NaN is left out.

    Raises:
        ValueError: no value, or one outside 0..1.
    """
    values = np.sort(recall[np.isfinite(recall)])
    if not len(values) or values[0] < 0 or values[-1] > 1 + EPSILON:
        raise ValueError("recall values in 0 to 1 are needed")
    steps = np.diff(values, prepend=0.0)
    above = 1.0 - np.arange(len(values)) / len(values)
    bins = np.minimum((values * 10 + EPSILON).astype(int), 9)
    return RecallProfile(
        mean=float(values.mean()),
        shares={delta: float((values >= delta - EPSILON).mean()) for delta in DELTAS},
        area=float(steps @ above),
        zero=float((values == 0).mean()),
        histogram=tuple(np.bincount(bins, minlength=10).tolist()),
        percentiles={p: float(np.percentile(values, p, method="lower")) for p in PERCENTS},
    )


def true_recall(returned: list[list[str]], truth: list[list[str]], k: int) -> Floats:
    """Shape (queries,): the share of the exact `k` nearest passages among the `k` returned ones.

    Raises:
        ValueError: not as many lists as truths.
    """
    if len(returned) != len(truth):
        raise ValueError(f"{len(returned)} lists and {len(truth)} truths")
    pairs = zip(returned, truth, strict=True)
    return np.array([len(set(found[:k]) & set(exact[:k])) / k for found, exact in pairs])
