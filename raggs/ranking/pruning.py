"""Selection of the passages of a pool that are ranked: complete grades from the best down.

Input are grades and fused ranks, output is one decision per passage. The cost of ranking depends on the number of
passages, and the exact rank of a useless passage does not matter. Since a grade is coarse, passages of equal grade are
kept or dropped together. Only the last grade may be split by the retrievers' fused rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PruneDecision:
    """Whether a passage is ranked, and the rule that decided, as readable text."""

    kept: bool
    why: str


def prune(
    grades: Sequence[int | None], fused_ranks: Sequence[int], *, min_keep: int, max_keep: int
) -> list[PruneDecision]:
    """Keep passages of complete grades, best grade first, until at least `min_keep` passages are kept.

    The grade that reaches `min_keep` is the last. If it would exceed `max_keep`, its passages with the best fused ranks
    are kept up to `max_keep`. A passage without a grade is never kept.

    Args:
        grades: one per passage, higher is better; None if the judge failed.
        fused_ranks: one per passage, all different, lower is better.
        min_keep: at least 1.
        max_keep: at least `min_keep`.

    Returns:
        One decision per passage, in the given order.

    Raises:
        ValueError: the lengths differ, two ranks are equal, or not 1 <= `min_keep` <= `max_keep`.
    """
    if len(grades) != len(fused_ranks):
        raise ValueError(f"{len(grades)} grades and {len(fused_ranks)} ranks: the numbers must be equal")
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
