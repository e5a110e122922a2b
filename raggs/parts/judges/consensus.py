"""What several grades of one passage come to.

Pure: grades in 1..5 in, None where there is none. At least half of those asked must have answered, else there is no
grade: what a few say when most fail is no consensus.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median_low

EPSILON = 1e-9  # a weighted mean may miss a half by its last bit


def quorum(asked: int, answered: int) -> bool:
    """Whether enough have answered: one, and at least half."""
    return answered > 0 and 2 * answered >= asked


def lower_median(grades: Sequence[int | None]) -> int | None:
    """The median of the grades there are, of two middle ones the lower; None without a quorum.

    On a tie the caution of the lower grade is meant: what half of the judges doubt is not promoted.
    """
    given = [grade for grade in grades if grade is not None]
    return median_low(given) if quorum(len(grades), len(given)) else None


def weighted_grade(grades: Sequence[int | None], weights: Sequence[float]) -> int | None:
    """The weighted mean of the grades there are, rounded to the nearest grade, a half down; None without a quorum.

    The quorum counts heads, not weights. `weights` are above 0, one for each of `grades`.
    """
    given = [(grade, weight) for grade, weight in zip(grades, weights, strict=True) if grade is not None]
    if not quorum(len(grades), len(given)):
        return None
    mean = sum(grade * weight for grade, weight in given) / sum(weight for _, weight in given)
    return math.ceil(mean - 0.5 - EPSILON)
