"""Select the passages of a pool that are ranked: all passages of the best grade, then of the next grades.

The input is a grade and a fused rank per passage, the output one decision per passage. The cost of ranking depends on
the number of passages, and the exact rank of a useless passage does not matter. Since grades are coarse, passages of
equal grade are kept or dropped together. Only the lowest grade that is kept may be split, by mean grade if the judge
returned distributions of grades, then by fused rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PruneDecision:
    """Whether a passage is ranked, and the rule that decided this, as readable text."""

    kept: bool
    why: str


def prune(
    grades: Sequence[int | None],
    fused_ranks: Sequence[int],
    *,
    min_keep: int,
    max_keep: int,
    mean_grades: Sequence[float | None] | None = None,
) -> list[PruneDecision]:
    """Keep all passages of the best grade, then of the next grades, until at least `min_keep` passages are kept.

    The grade that reaches `min_keep` is the last to be kept. If there are more than `max_keep` passages up to this
    grade, those of the last grade with the lowest mean grades, then with the worst fused ranks, are dropped. A passage
    without a grade is never kept.

    Args:
        grades: one grade per passage, higher is better; None if the judge failed.
        fused_ranks: one rank per passage, all different, lower is better.
        min_keep: minimum number of passages to keep, at least 1.
        max_keep: maximum number of passages to keep, at least `min_keep`.
        mean_grades: per passage, the mean of its distribution of grades, or None if only the grade is known. The mean
            decides before the fused rank.

    Returns:
        One decision per passage, in the given order.

    Raises:
        ValueError: the lengths differ, two ranks are equal, or `min_keep` and `max_keep` are out of range.
    """
    if len(grades) != len(fused_ranks):
        raise ValueError(f"{len(grades)} grades and {len(fused_ranks)} ranks: the numbers must be equal")
    if mean_grades is not None and len(mean_grades) != len(grades):
        raise ValueError(f"{len(grades)} grades and {len(mean_grades)} mean grades: the numbers must be equal")
    if len(set(fused_ranks)) != len(fused_ranks):
        raise ValueError("two passages have the same fused rank")
    if not 1 <= min_keep <= max_keep:
        raise ValueError(f"1 <= min_keep <= max_keep does not hold for min_keep={min_keep}, max_keep={max_keep}")
    known = [None] * len(grades) if mean_grades is None else mean_grades
    rule = "fused rank" if mean_grades is None else "mean grade and fused rank"
    decisions = [PruneDecision(False, "no grade")] * len(grades)
    kept = 0
    for grade in sorted({grade for grade in grades if grade is not None}, reverse=True):
        members = [(place, known[place]) for place, other in enumerate(grades) if other == grade]
        bucket = sorted((-float(grade if mean is None else mean), fused_ranks[place], place) for place, mean in members)
        room = 0 if kept >= min_keep else max_keep - kept
        full = f"not needed, {kept} better passages are enough" if kept >= min_keep else f"cut at {max_keep} by {rule}"
        for number, (_, _, place) in enumerate(bucket):
            decisions[place] = PruneDecision(
                number < room, f"grade {grade}" if number < room else f"grade {grade}, {full}"
            )
        kept += min(room, len(bucket))
    return decisions
