"""Which unjudged passage to have judged next: the one that could change most between those that may win.

A passage in the top of all contenders, or of none, moves them alike and decides nothing; one that divides them in half
decides most. Where few useful passages of a query are known, one more weighs more, since measures divide by how many
there are. Nothing is said about whether it will turn out useful: that is what the judge is for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

Tops = Mapping[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class Hole:
    """An unjudged passage in the top of some system.

    Attributes:
        query, doc_id: which. systems: how many systems have it in their top. divides: the probability that it stands
        in the top of just one of two contenders, drawn by their weights; 0..0.5. worth: that, over the useful passages
        that the query would have with it, of those that fit into the top; the
            unit is the value of a query.
    """

    query: str
    doc_id: str
    systems: int
    divides: float
    worth: float


def order_holes(
    tops: Tops,
    judged: Mapping[str, Collection[str]],
    useful: Mapping[str, int],
    weights: Mapping[str, float] | None = None,
) -> tuple[Hole, ...]:
    """The holes in the systems' tops, what could change most first.

    Args:
        tops: by system and query, the passages of the top to be filled, all of one depth.
        judged: by query, the passages that have a grade; a query that is not named has no judgments and no holes.
        useful: by query, how many useful passages are known; 0 where not named.
        weights: by system, how likely it is to be chosen, 0 or more (see `winners`); those not named weigh nothing.
            All are alike where None.

    Returns:
        By worth, then by how many systems have it, then by query and doc_id.

    Raises:
        ValueError: a weight below 0, or none above 0 where there are systems.
    """
    chances = _chances(tops, weights)
    held: dict[tuple[str, str], float] = {}
    systems: Counter[tuple[str, str]] = Counter()
    depth: Counter[str] = Counter()
    for system, lists in tops.items():
        for query in lists.keys() & judged.keys():
            depth[query] = max(depth[query], len(lists[query]))
            for doc_id in {*lists[query]}.difference(judged[query]):
                held[query, doc_id] = held.get((query, doc_id), 0.0) + chances[system]
                systems[query, doc_id] += 1
    holes = [
        _hole(query, doc_id, systems[query, doc_id], min(share, 1.0), min(useful.get(query, 0) + 1, depth[query]))
        for (query, doc_id), share in held.items()
    ]
    return tuple(sorted(holes, key=lambda hole: (-hole.worth, -hole.systems, hole.query, hole.doc_id)))


def _hole(query: str, doc_id: str, systems: int, share: float, ideal: int) -> Hole:
    divides = round(2 * share * (1 - share), 12)  # sums of shares differ by rounding
    return Hole(query, doc_id, systems, divides, divides / ideal)


def _chances(tops: Tops, weights: Mapping[str, float] | None) -> dict[str, float]:
    given = {system: 1.0 if weights is None else weights.get(system, 0.0) for system in tops}
    if any(weight < 0 for weight in given.values()):
        raise ValueError("a system's weight is a number from 0 up")
    total = sum(given.values())
    if given and not total:
        raise ValueError("no system weighs anything: name those that may be chosen")
    return {system: weight / total for system, weight in given.items()}
