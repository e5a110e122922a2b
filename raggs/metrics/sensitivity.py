"""Does the order of the systems depend on the parameters of RA-nWG? (Dallaire 2025, appendix A)"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from raggs.metrics.hits import Hits
from raggs.metrics.measures.ra_nwg import RaNwg

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
