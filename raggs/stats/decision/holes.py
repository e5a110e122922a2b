"""Which unjudged passage to have judged next: the one that could change most between the systems.

A passage in the top of all systems, or of one in a thousand, moves them alike and decides little; one that divides them
in half decides most. Where few useful passages of a query are known, one more weighs more, since measures divide by how
many there are. Nothing is said about whether it will turn out useful: that is what the judge is for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Top = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Hole:
    """An unjudged passage in the top of some system.

    Attributes:
        qid, doc_id: which.
        systems: how many systems have it in their top, at the deepest cutoff.
        divides: the probability that it stands in the top of just one of two systems, drawn by their weights; at the
            cutoff where that is greatest; 0..0.5.
        worth: the mean over cutoffs of that probability, over the useful passages that the query would have with it, of
            those that fit into the top; the unit is the value of a query.
    """

    qid: str
    doc_id: str
    systems: int
    divides: float
    worth: float


@dataclass
class _Held:
    weights: list[float] = field(default_factory=list)  # by cutoff, of the systems that have it in their top
    systems: int = 0


def order_holes(
    tops: Iterable[tuple[float, Top]],
    judged: Mapping[str, Collection[str]],
    useful: Mapping[str, int],
    cutoffs: Sequence[int],
) -> tuple[Hole, ...]:
    """The holes in the systems' tops, what could change most first.

    Args:
        tops: of each system its weight (1 for all, or how likely it is to be chosen) and by query its passages, best
            first; each system is looked at once, and none is kept.
        judged: by query, the passages that have a grade; a query that is not named has no judgments and no holes.
        useful: by query, how many useful passages are known; 0 where not named.
        cutoffs: of the measures; at least 1 each.

    Returns:
        By worth, then by how many systems have it, then by query and doc_id.

    Raises:
        ValueError: a weight below 0, none above 0 where there are systems, or no cutoff.
    """
    if not cutoffs or min(cutoffs) < 1:
        raise ValueError(f"cutoffs are one or more numbers from 1 up, got {list(cutoffs)}")
    held: dict[tuple[str, str], _Held] = {}
    total, systems = 0.0, 0
    for weight, top in tops:
        if weight < 0:
            raise ValueError(f"a system's weight is a number from 0 up, got {weight}")
        total, systems = total + weight, systems + 1
        for qid in top.keys() & judged.keys():
            for rank, doc_id in enumerate(top[qid][: max(cutoffs)]):
                if doc_id not in judged[qid]:
                    found = held.setdefault((qid, doc_id), _Held([0.0] * len(cutoffs)))
                    found.systems += 1
                    for place, cutoff in enumerate(cutoffs):
                        found.weights[place] += weight if rank < cutoff else 0.0
    if systems and not total:
        raise ValueError("no system weighs anything: name those that may be chosen")
    holes = [_hole(*key, found, total, useful.get(key[0], 0), cutoffs) for key, found in held.items()]
    return tuple(sorted(holes, key=lambda hole: (-hole.worth, -hole.systems, hole.qid, hole.doc_id)))


def _hole(qid: str, doc_id: str, held: _Held, total: float, useful: int, cutoffs: Sequence[int]) -> Hole:
    shares = [min(weight / total, 1.0) for weight in held.weights]
    divides = [round(2 * share * (1 - share), 12) for share in shares]  # sums of weights differ by rounding
    worth = [each / min(useful + 1, cutoff) for each, cutoff in zip(divides, cutoffs, strict=True)]
    return Hole(qid, doc_id, held.systems, max(divides), sum(worth) / len(worth))
