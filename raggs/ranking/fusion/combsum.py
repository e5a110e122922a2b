"""The sum of normalised scores. Fox and Shaw, "Combination of multiple searches", TREC-2, 1994.

Scores are min-max normalised within each list, since retrievers count in different units; a list whose scores are all
equal gives 1 to each.
"""

from __future__ import annotations

import math

from raggs.ranking.fusion.base import Fusion, ScoredList


class CombSum(Fusion):
    """The sum of scores, each list scaled to 0..1."""

    def points(self, hits: ScoredList) -> list[float]:
        """Scores min-max normalised within the list; 1 each where all are equal."""
        if not hits:
            return []
        scores = [score for _, score in hits]
        low, high = min(scores), max(scores)
        if low == high:
            return [1.0] * len(scores)
        unit = 1.0 if math.isfinite(high - low) else 0.5  # halves of huge scores, so that their difference stays finite
        return [(score * unit - low * unit) / (high * unit - low * unit) for score in scores]
