"""Which passages of a graded pool are worth ranking.

A pure library. Whole grades are kept from 5 down until there are at least `min_keep`; the last grade taken is cut
where the total would pass `max_keep`, by fused rank. What has no grade is never kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Decision:
    """Whether a passage is ranked, and by which rule."""

    kept: bool
    why: str


def prune(grades: Sequence[int | None], ranks: Sequence[int], *, min_keep: int, max_keep: int) -> list[Decision]:
    """A decision for each passage.

    Args:
        grades: 1..5, or None where the judge failed.
        ranks: fused ranks, lower is better, all different; aligned with `grades`.
        min_keep: grades are taken whole until at least this many are kept.
        max_keep: no more than this many are kept; at least `min_keep`.

    Raises:
        ValueError: lengths differ, or `min_keep` > `max_keep`.
    """
    if len(grades) != len(ranks):
        raise ValueError(f"{len(grades)} grades for {len(ranks)} ranks")
    if min_keep > max_keep:
        raise ValueError(f"min_keep ({min_keep}) is above max_keep ({max_keep})")
    decisions = [Decision(False, "no grade: the judge failed")] * len(grades)
    kept = 0
    for grade in sorted({grade for grade in grades if grade is not None}, reverse=True):
        bucket = sorted((place for place, found in enumerate(grades) if found == grade), key=lambda place: ranks[place])
        room = max_keep - kept if kept < min_keep else 0
        for order, place in enumerate(bucket):
            decisions[place] = _decide(grade, order < room, enough=room == 0, max_keep=max_keep)
        kept += min(room, len(bucket))
    return decisions


def _decide(grade: int, kept: bool, *, enough: bool, max_keep: int) -> Decision:
    if kept:
        return Decision(True, f"grade {grade}")
    return Decision(False, f"grade {grade}: enough of better grades" if enough else f"grade {grade}: cut at {max_keep}")
