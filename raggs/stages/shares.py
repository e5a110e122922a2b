"""How the budget of a set was spread over its questions, as counts for the lock."""

from __future__ import annotations

from collections.abc import Sequence

SPENT, SHARING, ENDED = "calls of all", "questions that share", "ended before"
LEVELS = {"least": 0.0, "quarter": 0.25, "half": 0.5, "three quarters": 0.75, "most": 1.0}  # quantiles of the calls


def spread(shares: Sequence[int], ended: int) -> dict[str, int]:
    """By what calls each question got; `ended`: questions that ended before the budget did."""
    line = sorted(shares)
    if not line:
        return {}
    levels = {name: line[round(share * (len(line) - 1))] for name, share in LEVELS.items()}
    return {SPENT: sum(line), SHARING: len(line), ENDED: ended, **levels}
