"""The pool cut to what is worth ranking: whole grades from the best down.

Pure: grades and fused ranks in, one decision for each passage out. Ranking is paid by the passage, and what
the judge found useless needs no exact place; but a grade is coarse, so passages of equal grade stay or go
together, except in the last bucket, which the retrievers' fused rank may cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PruneDecision:
    """Whether a passage is ranked, and the rule that decided, for people."""

    kept: bool
    why: str


def prune(
    grades: Sequence[int | None], fused_ranks: Sequence[int], *, min_keep: int, max_keep: int
) -> list[PruneDecision]:
    """Keep whole buckets of equal grade, best grade first, until at least `min_keep` passages are kept.

    The bucket that reaches `min_keep` is the last; where it would pass `max_keep`, its best fused ranks fill
    the places up to `max_keep`. A passage without a grade is never kept.

    Args:
        grades: one for each passage, higher is better; None where the judge failed.
        fused_ranks: one for each passage, all different, lower is better.
        min_keep: at least 1.
        max_keep: at least `min_keep`.

    Returns:
        One decision for each passage, in the order given.

    Raises:
        ValueError: the lengths differ, two ranks are equal, or the bounds do not fit.
    """
    if len(grades) != len(fused_ranks):
        raise ValueError(f"{len(grades)} grades for {len(fused_ranks)} ranks")
    if len(set(fused_ranks)) != len(fused_ranks):
        raise ValueError("two passages have the same fused rank")
    if not 1 <= min_keep <= max_keep:
        raise ValueError(f"1 <= min_keep <= max_keep does not hold for min_keep={min_keep}, max_keep={max_keep}")
    decisions = [PruneDecision(False, "no grade")] * len(grades)
    kept = 0
    for grade in sorted({grade for grade in grades if grade is not None}, reverse=True):
        bucket = sorted((fused_ranks[place], place) for place, other in enumerate(grades) if other == grade)
        room = 0 if kept >= min_keep else max_keep - kept
        full = (
            f"not needed, {kept} better passages are enough" if kept >= min_keep else f"cut at {max_keep} by fused rank"
        )
        for number, (_, place) in enumerate(bucket):
            decisions[place] = PruneDecision(
                number < room, f"grade {grade}" if number < room else f"grade {grade}, {full}"
            )
        kept += min(room, len(bucket))
    return decisions
