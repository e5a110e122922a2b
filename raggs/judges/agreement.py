"""What several grades of one passage come to, and how far those who gave them agree.

Pure: grades in 1..5 in, None where there is none. At least half of those asked must have answered, else there is no
grade: what a few say when most fail is no consensus.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median_low
from typing import Any

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


class Agreement:
    """Pairs of grades that two gave to the same passages, counted as they come."""

    def __init__(self) -> None:
        self._pairs: Counter[tuple[int, int]] = Counter()

    def add(self, first: int | None, second: int | None) -> None:
        """Count a passage that both graded; any other says nothing."""
        if first is not None and second is not None:
            self._pairs[first, second] += 1

    @property
    def exact(self) -> float | None:
        """Share of equal grades, in 0..1; None without a pair."""
        total = self._pairs.total()
        return sum(count for (a, b), count in self._pairs.items() if a == b) / total if total else None

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance, at most 1, disagreement weighed by its square (Cohen 1968).

        None where chance leaves nothing to agree on: without a pair, or when all grades are the same.
        """
        total = self._pairs.total()
        firsts: Counter[int] = Counter()
        seconds: Counter[int] = Counter()
        for (first, second), count in self._pairs.items():
            firsts[first] += count
            seconds[second] += count
        by_chance = sum((a - b) ** 2 * m * n for a, m in firsts.items() for b, n in seconds.items())
        observed = sum((a - b) ** 2 * count for (a, b), count in self._pairs.items())
        return 1 - total * observed / by_chance if by_chance else None

    def summary(self) -> dict[str, Any]:
        """Plain values for a manifest."""
        return {"pairs": self._pairs.total(), "exact": rounded(self.exact), "kappa": rounded(self.kappa)}


def rounded(value: float | None) -> float | None:
    """Four digits, as manifests keep rates."""
    return None if value is None else round(value, 4)
