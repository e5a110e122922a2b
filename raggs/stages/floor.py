"""Passages that are not worth an order, below the others: by grade, then fused rank, and marked.

Nobody was asked about them, and what is said of them says so: equals are as good as tied, between others the grades
alone speak, each place of their block is plausible, and they have no share in the wrongly ordered pairs that are
expected. None can stand above one that was ordered, though a grade that is one too low may have brought it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from statistics import NormalDist

from raggs.base.artifacts import MAX_GRADE
from raggs.ranking import Ranking

TOO_FEW = "fewer than two reach the floor"
NO_RELEVANT = "no relevant passage"
SPREAD = 0.7  # grades: a utility strays by 0.5 from the deserved grade, and one grade in four is one off
SLIPS = ((-1, 0.125), (0, 0.75), (1, 0.125))
STRAYING = NormalDist(0.0, 0.5 * 2**0.5)  # of the difference of two utilities

Graded = tuple[str, int]


@dataclass(frozen=True)
class Parted:
    """A pool parted by a floor.

    Attributes:
        ordered: what is put before the judge, by fused rank; of a pool in which nothing reaches the floor the first of
            the others, since an engine needs a pool.
        below: by grade, then fused rank.
        reached: how many reach the floor.
        too_few: why no judge is called if fewer than two reach the floor.
    """

    ordered: tuple[Graded, ...]
    below: tuple[Graded, ...]
    reached: int
    too_few: str = TOO_FEW


def parted(pool: Sequence[Graded], floor: int, min_best: int = 1) -> Parted:
    """A pool, which is not empty and stands by fused rank, parted by the grade from which on passages are ordered.

    Where a single one reaches the floor, there is nothing to ask. If no grade reaches `min_best`, all are below.
    """
    ranked = max(grade for _, grade in pool) >= min_best
    least = floor if ranked else MAX_GRADE + 1
    reached = tuple(item for item in pool if item[1] >= least)
    below = tuple(sorted((item for item in pool if item[1] < least), key=lambda item: -item[1]))
    return Parted(reached or below[:1], below, len(reached), TOO_FEW if ranked else NO_RELEVANT)


def filled(ranking: Ranking, pool: Parted, top: int) -> Ranking:
    """A ranking of the ordered ones, with all others below."""
    kept, count = pool.reached, len(pool.below)
    if not count:
        return ranking
    size, grades = kept + count, dict(pool.ordered)
    told = [*(grades[doc_id] for doc_id in ranking.order[:kept][-1:]), *(grade for _, grade in pool.below)]
    sure = ranking.position_confidence[: max(kept - 1, 0)]
    share = max(0, min(top, size) - kept) / count
    return replace(
        ranking,
        order=(*ranking.order[:kept], *(doc_id for doc_id, _ in pool.below)),
        scores=(*ranking.scores[:kept], *(float(grade) for _, grade in pool.below)),
        sigma=(*ranking.sigma[:kept], *(SPREAD,) * count),
        exposures=(*ranking.exposures[:kept], *(0,) * count),
        position_confidence=(*sure, *(above(better - worse) for better, worse in pairwise(told)), 1.0),
        rank_low=(*ranking.rank_low[:kept], *(kept + 1,) * count),
        rank_high=(*ranking.rank_high[:kept], *(size,) * count),
        membership=(*ranking.membership[:kept], *(share,) * count),
        stop_reason=pool.too_few if kept < 2 else ranking.stop_reason,
        unordered=count,
    )


def above(gap: int) -> float:
    """Chance that a passage truly stands above one whose grade is `gap` lower, by the grades alone; of equals half."""
    chances = (STRAYING.cdf(gap + one - other) * p * q for (one, p), (other, q) in product(SLIPS, SLIPS))
    return round(sum(chances), 4)
