"""Several retrievers' lists made into one: a table of small scoring functions around one loop.

Pure: ranks and scores in, a fused list out. A method gives each list's hits their points; what a passage gets
is the weighted sum over the lists (times the number of lists, for CombMNZ). Equal inputs give equal bytes: lists
are added up in the order of their names, ties go to the smaller doc_id.

- rrf: reciprocal rank fusion, 1 / (k + rank). Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms
  Condorcet and individual rank learning methods", SIGIR 2009, where k = 60.
- combsum, combmnz: the sum of normalised scores, and that sum times the number of lists that found the passage.
  Fox and Shaw, "Combination of multiple searches", TREC-2, 1994. Scores are min-max normalised within each
  list, since retrievers count in different units; a list whose scores are all equal gives 1 to each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Hits = Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Fused:
    """A passage of the fused list. `sources`: (rank from 1, score) by the lists that found it."""

    doc_id: str
    score: float
    sources: dict[str, tuple[int, float]]


@dataclass(frozen=True)
class Method:
    """`points(hits, k)`: what each hit of a list is worth. `count`: multiply the sum by the number of lists."""

    summary: str
    points: Callable[[Hits, int], list[float]]
    count: bool = False


def reciprocal_ranks(hits: Hits, k: int) -> list[float]:
    """1 / (k + rank), ranks from 1."""
    return [1 / (k + rank) for rank in range(1, len(hits) + 1)]


def normalised_scores(hits: Hits, k: int) -> list[float]:  # noqa: ARG001 - one signature for all methods
    """(score - min) / (max - min) within the list, in 0..1; 1 for all when the scores are equal."""
    if not hits:
        return []
    scores = [score for _, score in hits]
    low, high = min(scores), max(scores)
    if low == high:
        return [1.0] * len(scores)
    unit = 1.0 if math.isfinite(high - low) else 0.5  # halves of huge scores, so that their difference stays finite
    return [(score * unit - low * unit) / (high * unit - low * unit) for score in scores]


METHODS = {
    "rrf": Method("Reciprocal rank fusion: the sum of 1 / (k + rank).", reciprocal_ranks),
    "combsum": Method("The sum of scores, each list scaled to 0..1.", normalised_scores),
    "combmnz": Method("CombSUM times the number of lists that found the passage.", normalised_scores, count=True),
}


def fuse(
    lists: Mapping[str, Hits],
    method: str = "rrf",
    *,
    k: int = 60,
    weights: Mapping[str, float] | None = None,
    depth: int = 100,
) -> list[Fused]:
    """The `depth` best passages over all lists.

    Args:
        lists: by retriever, (doc_id, score) best first, each doc_id once.
        method: a name in `METHODS`.
        k: the constant of rrf; at least 1. The others ignore it.
        weights: by retriever, 0 or more; 1 where not named. A list of weight 0 brings no passage in.
        depth: how many passages are kept; at least 1.

    Returns:
        Score descending, then doc_id ascending.

    Raises:
        ValueError: unknown method, a doc_id twice in a list, a score or weight that is not a number, a weight below 0.
    """
    if method not in METHODS:
        raise ValueError(f"unknown fusion method {method!r}; known: {', '.join(METHODS)}")
    weight_of = {name: _checked_weight(name, (weights or {}).get(name, 1.0)) for name in sorted(lists)}
    totals: dict[str, float] = {}
    sources: dict[str, dict[str, tuple[int, float]]] = {}
    for name, weight in weight_of.items():
        hits = _checked_hits(name, lists[name])
        for rank, ((doc_id, score), points) in enumerate(zip(hits, METHODS[method].points(hits, k), strict=True), 1):
            sources.setdefault(doc_id, {})[name] = (rank, score)
            if weight > 0:
                totals[doc_id] = totals.get(doc_id, 0.0) + weight * points
    if METHODS[method].count:
        totals = {doc: total * sum(weight_of[name] > 0 for name in sources[doc]) for doc, total in totals.items()}
    best = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:depth]
    return [Fused(doc_id, total, sources[doc_id]) for doc_id, total in best]


def _checked_weight(name: str, weight: float) -> float:
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"the weight of {name!r} is {weight}; a weight is a number from 0 up")
    return weight


def _checked_hits(name: str, hits: Hits) -> Hits:
    seen: set[str] = set()
    for doc_id, score in hits:
        if doc_id in seen:
            raise ValueError(f"the list {name!r} names {doc_id!r} twice")
        if not math.isfinite(score):
            raise ValueError(f"the list {name!r} gives {doc_id!r} the score {score}")
        seen.add(doc_id)
    return hits
