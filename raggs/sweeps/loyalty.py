"""What a system owes to having been in the pool: its score when the passages that it alone brought are unjudged.

A set that was pooled from some systems flatters them. Systems that search alike (they differ in candidates or reranker
alone) are left out together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from raggs.base.jsontypes import number
from raggs.evaluation.analyses.leave_one_out import leave_out
from raggs.metrics.hits import Hits
from raggs.metrics.names import parse_measure
from raggs.sweeps.grid import family
from raggs.sweeps.models import LoyaltyPart, SystemRow

SHARED = ("k", "reranker")  # axes that change no search


def loyalty(rows: Sequence[SystemRow], hits: Mapping[str, Hits], measure: str, depth: int) -> tuple[LoyaltyPart, ...]:
    """Each system's score with and without its own contributions, the greatest fall first.

    Args:
        rows: the systems.
        hits: by system, where it put the judged passages.
        measure: that decides first.
        depth: how deep a system's list counts as brought into the pool.
    """
    if not hits:
        return ()
    groups = {row.name: _group(row) for row in rows if row.name in hits}
    named = parse_measure(measure)
    found, sign = leave_out(hits, named, depth, groups), 1.0 if named.higher else -1.0
    return tuple(
        LoyaltyPart(
            system=fall.system,
            group=fall.group,
            measure=named.name,
            score=number(sign * fall.score),
            without=number(sign * fall.without),
            alone=found.own(fall.system).judged,
            overtaken_by=fall.overtaken_by,
        )
        for fall in found.falls
    )


def _group(row: SystemRow) -> str:
    return "+".join(label for _, label in family(row.levels, *SHARED))
