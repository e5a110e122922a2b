"""What a system owes to having been in the pool: its score when the passages that it alone brought are unjudged.

A set that was pooled from some systems flatters them. Systems that search alike (they differ in candidates or reranker
alone) are left out together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from raggs.decision.leave_one_out import Contribution, contributions, falls, without
from raggs.evaluation.study import mean
from raggs.jsontypes import number
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
    grade = next(iter(hits.values())).qrels.grade
    groups = {row.name: _group(row) for row in rows if row.name in hits}
    pools = {name: found.item[found.rank <= depth] for name, found in hits.items()}
    found = contributions(grade, pools, groups)
    named = parse_measure(measure)
    scores = {name: mean(named.values(each)) or 0.0 for name, each in hits.items()}
    left_out = {
        each.group: {name: mean(named.values(_unjudged(one, each))) or 0.0 for name, one in hits.items()}
        for each in found
    }
    own = {name: each for each in found for name in each.systems}
    return tuple(
        LoyaltyPart(
            system=fall.system,
            group=fall.group,
            measure=named.name,
            score=number(fall.score),
            without=number(fall.without),
            alone=own[fall.system].judged,
            overtaken_by=fall.overtaken_by,
        )
        for fall in falls(found, scores, left_out)
    )


def _unjudged(hits: Hits, contribution: Contribution) -> Hits:
    """The same lists, where what a group alone brought is unjudged."""
    grade = without(hits.qrels.grade, contribution)
    keep = np.flatnonzero(grade[hits.item] >= 0)
    rows = {name: getattr(hits, name)[keep] for name in ("query", "item", "rank", "start", "size")}
    return replace(hits, qrels=hits.qrels.relabelled(grade), **rows)


def _group(row: SystemRow) -> str:
    return "+".join(label for _, label in family(row.levels, *SHARED))
