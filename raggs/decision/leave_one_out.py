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

Judged = Mapping[str, Mapping[str, int]]
Pools = Mapping[str, Mapping[str, Collection[str]]]

USEFUL = 4  # grades from here on are what N-Recall4+ counts


@dataclass(frozen=True)
class Contribution:
    """What a group alone brought into the pool.

    Attributes:
        group, systems: its name and its members.
        unique: by query id, the judged passages that no system outside of the group contributed; ids ascending, no
            query without one.
        judged, useful: how many those are, and how many of a useful grade.
        share: of all judged passages, in 0..1; 0 where nothing is judged.
    """

    group: str
    systems: tuple[str, ...]
    unique: dict[str, tuple[str, ...]]
    judged: int
    useful: int
    share: float


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
    judged: Judged, pools: Pools, groups: Mapping[str, str] | None = None, useful: int = USEFUL
) -> tuple[Contribution, ...]:
    """The unique contributions of each group.

    Args:
        judged: grades by query and passage; who brought a passage is not asked where no system did.
        pools: by system and query, the passages that it brought into the pool: its top to the pool's depth.
        groups: by system, the group that it is left out with; itself where not named.
        useful: the least useful grade.

    Returns:
        In the order of the groups' first systems.
    """
    group_of = {system: (groups or {}).get(system, system) for system in pools}
    members: dict[str, list[str]] = {}
    for system, group in group_of.items():
        members.setdefault(group, []).append(system)
    unique: dict[str, dict[str, tuple[str, ...]]] = {group: {} for group in members}
    for qid, grades in judged.items():
        for group, doc_ids in _owned(pools, group_of, qid, grades).items():
            unique[group][qid] = tuple(sorted(doc_ids))
    total = sum(map(len, judged.values()))
    return tuple(
        _contribution(group, systems, unique[group], judged, useful, total) for group, systems in members.items()
    )


def _contribution(
    group: str, systems: Collection[str], unique: dict[str, tuple[str, ...]], judged: Judged, useful: int, total: int
) -> Contribution:
    grades = [judged[qid][doc_id] for qid, doc_ids in unique.items() for doc_id in doc_ids]
    return Contribution(
        group=group,
        systems=tuple(systems),
        unique=unique,
        judged=len(grades),
        useful=sum(grade >= useful for grade in grades),
        share=len(grades) / total if total else 0.0,
    )


def without(judged: Judged, contribution: Contribution) -> dict[str, dict[str, int]]:
    """The judgments that there would be, had the group not taken part: its unique contributions are unjudged."""
    gone = {qid: set(doc_ids) for qid, doc_ids in contribution.unique.items()}
    return {
        qid: {doc_id: grade for doc_id, grade in grades.items() if doc_id not in gone.get(qid, ())}
        for qid, grades in judged.items()
    }


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


def _owned(pools: Pools, group_of: Mapping[str, str], qid: str, grades: Mapping[str, int]) -> dict[str, list[str]]:
    """By group, the judged passages of a query that it alone brought."""
    owner: dict[str, str | None] = {}  # None: of several groups
    for system, group in group_of.items():
        for doc_id in pools[system].get(qid, ()):
            if doc_id in grades:
                owner[doc_id] = group if owner.get(doc_id, group) == group else None
    owned: dict[str, list[str]] = {}
    for doc_id, group_or_none in owner.items():
        if group_or_none is not None:
            owned.setdefault(group_or_none, []).append(doc_id)
    return owned
