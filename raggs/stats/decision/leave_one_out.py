"""How much of a system's score is due to its own passages having been judged?

A golden set pooled from some systems flatters them: what only one of them found was judged because it took part, while
a newcomer's own finds are holes. Leaving a system's unique contributions unjudged puts it in the newcomer's place
(Zobel, "How reliable are the results of large-scale information retrieval experiments?", SIGIR 1998). Systems that
share a part (an embedder at several K) find the same passages, and are left out together, as one group.

Must not score: the caller does, with the judged sets that are given here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Ints

USEFUL = 4  # grades from here on are what N-Recall4+ counts
UNJUDGED = -1


@dataclass(frozen=True)
class Contribution:
    """What a group alone brought into the pool.

    Attributes:
        group, systems: its name and its members.
        unique: rows of the judged passages that no system outside of the group contributed, ascending.
        useful: how many of them are of a useful grade.
        share: of all judged passages, in 0..1; 0 where nothing is judged.
    """

    group: str
    systems: tuple[str, ...]
    unique: Ints
    useful: int
    share: float

    @property
    def judged(self) -> int:
        """How many passages they are."""
        return len(self.unique)


@dataclass(frozen=True)
class Fall:
    """What a system loses when its group's unique contributions are unjudged.

    Attributes:
        system, group: whose.
        score, without: with all judgments, and without the group's own.
        fall: score minus without, in the unit of the measure.
        relative: of the score; None where that is 0.
        overtaken_by: systems outside of the group that were behind and are ahead then, in their order.
    """

    system: str
    group: str
    score: float
    without: float
    fall: float
    relative: float | None
    overtaken_by: tuple[str, ...]


def contributions(
    grade: Ints, pools: Mapping[str, Ints], groups: Mapping[str, str] | None = None, useful: int = USEFUL
) -> tuple[Contribution, ...]:
    """The unique contributions of each group.

    Args:
        grade: of each judged passage of each query, a row each; below 0 for one that is not judged after all.
        pools: by system, the rows of the judged passages that it brought into the pool: its top to the pool's depth.
        groups: by system, the group that it is left out with; itself where not named.
        useful: the least useful grade.

    Returns:
        In the order of the groups' first systems.
    """
    members: dict[str, list[str]] = {}
    for system in pools:
        members.setdefault((groups or {}).get(system, system), []).append(system)
    brought_by, owner = np.zeros(len(grade), dtype=np.int64), np.zeros(len(grade), dtype=np.int64)
    for place, systems in enumerate(members.values()):
        rows = np.zeros(len(grade), dtype=np.bool_)
        for system in systems:
            rows[pools[system]] = True
        brought_by += rows
        owner[rows] = place
    judged = grade >= 0
    alone = np.flatnonzero((brought_by == 1) & judged)
    alone = alone[np.argsort(owner[alone], kind="stable")]
    ends = np.searchsorted(owner[alone], np.arange(len(members) + 1))
    total = int(judged.sum())
    return tuple(
        _contribution(group, tuple(systems), alone[ends[place] : ends[place + 1]], grade, useful, total)
        for place, (group, systems) in enumerate(members.items())
    )


def _contribution(
    group: str, systems: tuple[str, ...], unique: Ints, grade: Ints, useful: int, total: int
) -> Contribution:
    share = unique.size / total if total else 0.0
    return Contribution(group, systems, unique, useful=int((grade[unique] >= useful).sum()), share=share)


def without(grade: Ints, contribution: Contribution) -> Ints:
    """The grades that there would be, had the group not taken part: its unique contributions are unjudged (-1)."""
    left: Ints = grade.copy()
    left[contribution.unique] = UNJUDGED
    return left


def falls(
    contributed: Collection[Contribution], scores: Mapping[str, float], left_out: Mapping[str, Mapping[str, float]]
) -> tuple[Fall, ...]:
    """What each system loses, the greatest fall first.

    Args:
        contributed: the groups.
        scores: of all systems with all judgments; higher is better.
        left_out: by group, the scores of all systems with the judgments of `without`.

    Raises:
        KeyError: a system or group has no score.
    """
    found = [_fall(system, each, scores, left_out[each.group]) for each in contributed for system in each.systems]
    return tuple(sorted(found, key=lambda fall: (-fall.fall, fall.system)))


def _fall(system: str, own: Contribution, scores: Mapping[str, float], alone: Mapping[str, float]) -> Fall:
    fall = scores[system] - alone[system]
    return Fall(
        system=system,
        group=own.group,
        score=scores[system],
        without=alone[system],
        fall=fall,
        relative=fall / scores[system] if scores[system] else None,
        overtaken_by=tuple(
            other
            for other in scores
            if other not in own.systems and scores[other] <= scores[system] and alone[other] > alone[system]
        ),
    )
