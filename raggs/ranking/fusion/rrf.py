"""Reciprocal rank fusion.

Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods",
SIGIR 2009, where k = 60.
"""

from __future__ import annotations

from raggs.ranking.fusion.base import Fusion, ScoredList


class Rrf(Fusion):
    """Reciprocal rank fusion: the sum of 1 / (k + rank).

    Args:
        k: how little the first ranks stand out, >= 1; `merge.k` gives it.

    Raises:
        ValueError: k is below 1.
    """

    def __init__(self, k: float = 60) -> None:
        if k < 1:
            raise ValueError(f"k is {k}; it must be at least 1")
        self.k = k

    def points(self, hits: ScoredList) -> list[float]:
        """1 / (k + rank), ranks from 1."""
        return [1 / (self.k + rank) for rank in range(1, len(hits) + 1)]
