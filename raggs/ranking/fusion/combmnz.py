"""CombSUM in favour of what many lists found. Fox and Shaw, "Combination of multiple searches", TREC-2, 1994."""

from __future__ import annotations

from raggs.ranking.fusion.combsum import CombSum


class CombMnz(CombSum):
    """CombSUM times the number of lists that found the passage."""

    def total(self, points: float, lists: int) -> float:
        """The sum, once for each list that found the passage."""
        return points * lists
