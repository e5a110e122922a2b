"""Several ranked lists into one: reciprocal rank fusion, CombSUM and CombMNZ.

A pure library: lists of (doc_id, score) in, fused items out. The input lists are best first; every tie is broken
by doc_id, so equal inputs give equal outputs on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Hits = Sequence[tuple[str, float]]
Contributions = Callable[[Hits, int], list[float]]


@dataclass(frozen=True)
class Fused:
    """A passage of the pool: its fused score, and rank (from 1) and score in each list that holds it."""

    doc_id: str
    score: float
    sources: Mapping[str, tuple[int, float]]


def rrf(hits: Hits, k: int) -> list[float]:
    """Reciprocal rank fusion: 1 / (k + rank), whatever the scores (Cormack, Clarke and Büttcher, SIGIR 2009)."""
    return [1.0 / (k + rank) for rank in range(1, len(hits) + 1)]


def combsum(hits: Hits, k: int) -> list[float]:
    """CombSUM: the sum of scores, each list scaled to 0..1 by its own minimum and maximum (Fox and Shaw, TREC-2)."""
    return _scaled([score for _, score in hits])


def combmnz(hits: Hits, k: int) -> list[float]:
    """CombMNZ: CombSUM times the number of lists that hold the passage (Fox and Shaw, TREC-2)."""
    return _scaled([score for _, score in hits])


METHODS: Mapping[str, Contributions] = {"rrf": rrf, "combsum": combsum, "combmnz": combmnz}


def fuse(
    lists: Mapping[str, Hits],
    *,
    method: str = "rrf",
    k: int = 60,
    weights: Mapping[str, float] | None = None,
    depth: int = 100,
) -> list[Fused]:
    """Fuse named lists into one of at most `depth` passages, best first.

    Args:
        lists: by name, (doc_id, score) best first; a doc_id at most once in each list.
        method: a name in `METHODS`.
        k: the constant of reciprocal rank fusion; others ignore it.
        weights: multiplies a list's contributions; 1 where not named, and a list of weight 0 adds no passage.
        depth: how many passages are kept, at least 1.

    Raises:
        ValueError: an unknown method, a weight for a list that does not exist, a negative weight, or depth < 1.
    """
    weights = weights or {}
    _check(lists, method, weights, depth)
    scores: dict[str, float] = {}
    sources: dict[str, dict[str, tuple[int, float]]] = {}
    for name in sorted(lists):
        weight = weights.get(name, 1.0)
        if not weight:
            continue
        for rank, ((doc_id, score), part) in enumerate(zip(lists[name], METHODS[method](lists[name], k), strict=True), start=1):
            scores[doc_id] = scores.get(doc_id, 0.0) + weight * part
            sources.setdefault(doc_id, {})[name] = (rank, score)
    if method == "combmnz":
        scores = {doc_id: score * len(sources[doc_id]) for doc_id, score in scores.items()}
    ordered = sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))
    return [Fused(doc_id, scores[doc_id], sources[doc_id]) for doc_id in ordered[:depth]]


def _check(lists: Mapping[str, Hits], method: str, weights: Mapping[str, float], depth: int) -> None:
    if method not in METHODS:
        raise ValueError(f"unknown fusion method {method!r}; known: {', '.join(METHODS)}")
    if depth < 1:
        raise ValueError(f"depth is {depth}; at least 1")
    for name, weight in weights.items():
        if name not in lists:
            raise ValueError(f"there is a weight for {name!r}, which is no list; lists: {', '.join(sorted(lists))}")
        if weight < 0:
            raise ValueError(f"the weight of {name!r} is negative")


def _scaled(scores: Sequence[float]) -> list[float]:
    """Scores scaled to 0..1; all 1 where they are all equal."""
    if not scores:
        return []
    low, high = min(scores), max(scores)
    if high == low:
        return [1.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]
