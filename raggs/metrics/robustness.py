"""How evenly queries are served: the distribution of recall, and the share of queries above each threshold.

Robustness-delta@K is the share of queries with recall >= delta (Wang et al. 2025); over all delta in 0..1 the area
under it is the mean recall.

Does the order of the systems depend on the parameters of RA-nWG? (Dallaire 2025, appendix A)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from raggs.base.arrays import Floats
from raggs.metrics.hits import Hits
from raggs.metrics.measures.ceilings import EPSILON
from raggs.metrics.measures.gains import RaNwg

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


ALPHAS = (0.0, 0.5, 1.0, 2.0)
CAPS4 = (0.75, 1.0)
CAPS3 = (0.20, 0.25, 0.33)
USUAL = (1.0, 1.0, 0.25)


@dataclass(frozen=True)
class Setting:
    """One point of the grid.

    Attributes:
        alpha, cap4, cap3: the parameters.
        means: mean RA-nWG by system.
        order: the systems, best first; equal means by name.
        swapped: pairs of systems whose order differs from that under the usual parameters.
    """

    alpha: float
    cap4: float
    cap3: float
    means: dict[str, float]
    order: tuple[str, ...]
    swapped: tuple[tuple[str, str], ...]


def sensitivity(systems: Mapping[str, Hits], *, k: int = 10) -> list[Setting]:
    """The whole grid, the usual parameters among it.

    Raises:
        DataError: the labels are not grades 1 to 5.
    """
    usual = _means(systems, k, *USUAL)
    return [_setting(systems, k, usual, *point) for point in product(ALPHAS, CAPS4, CAPS3)]


def _setting(
    systems: Mapping[str, Hits], k: int, usual: dict[str, float], alpha: float, cap4: float, cap3: float
) -> Setting:
    means = _means(systems, k, alpha, cap4, cap3)
    swapped = tuple(
        (one, other)
        for one, other in combinations(sorted(systems), 2)
        if (means[one] - means[other]) * (usual[one] - usual[other]) < 0
    )
    return Setting(alpha, cap4, cap3, means, tuple(sorted(means, key=lambda name: (-means[name], name))), swapped)


def _means(systems: Mapping[str, Hits], k: int, alpha: float, cap4: float, cap3: float) -> dict[str, float]:
    measure = RaNwg(k, {"alpha": alpha, "cap4": cap4, "cap3": cap3})
    found = {}
    for name, hits in systems.items():
        measure.check(hits)
        values = measure.score(hits)
        found[name] = float(values[np.isfinite(values)].mean()) if np.isfinite(values).any() else np.nan
    return found
