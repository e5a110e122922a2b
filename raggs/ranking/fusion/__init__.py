"""Several retrievers' lists made into one: a registry of small scoring methods, and one loop around them.

Pure: ranks and scores in, a fused list out. A method gives each list's hits their points (see `base.Fusion`); what a
passage gets is the weighted sum over the lists. Equal inputs give equal bytes: lists are added up in the order of their
names, ties go to the smaller doc_id.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping

from raggs.base.registry import Registry
from raggs.ranking.fusion.base import Fused, Fusion, ScoredList

__all__ = ["REGISTRY", "Fused", "Fusion", "ScoredList", "fuse", "fusion_options", "make_fusion"]

REGISTRY: Registry[Fusion] = Registry(
    "fusion",
    "fusions",
    "raggs.ranking.fusion.base:Fusion",
    {
        "rrf": "raggs.ranking.fusion.rrf:Rrf",
        "combsum": "raggs.ranking.fusion.combsum:CombSum",
        "combmnz": "raggs.ranking.fusion.combmnz:CombMnz",
    },
)


def fusion_options(method: str) -> list[str]:
    """The options of a method.

    Raises:
        UsageError: no such method.
    """
    parameters = inspect.signature(REGISTRY.load(method)).parameters.values()
    return [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]


def make_fusion(method: str, **options: float) -> Fusion:
    """The method with its options.

    Raises:
        UsageError: no such method.
        ValueError: it has no such option, or the value cannot be right.
    """
    known = fusion_options(method)
    if unknown := sorted(options.keys() - set(known)):
        raise ValueError(f"fusion {method} has no option {unknown[0]!r}; known: {', '.join(known) or 'none'}")
    return REGISTRY.load(method)(**options)


def fuse(
    lists: Mapping[str, ScoredList], method: Fusion, *, weights: Mapping[str, float] | None = None, depth: int = 100
) -> list[Fused]:
    """The `depth` best passages over all lists.

    Args:
        lists: by retriever, (doc_id, score) best first, each doc_id once.
        method: says what a hit is worth.
        weights: by retriever, 0 or more; 1 where not named. A list of weight 0 brings no passage in.
        depth: how many passages are kept; at least 1.

    Returns:
        Score descending, then doc_id ascending.

    Raises:
        ValueError: a doc_id twice in a list, a score or weight that is not a number, a weight below 0.
    """
    weight_of = {name: _checked_weight(name, (weights or {}).get(name, 1.0)) for name in sorted(lists)}
    sums: dict[str, float] = {}
    sources: dict[str, dict[str, tuple[int, float]]] = {}
    for name, weight in weight_of.items():
        hits = _checked_hits(name, lists[name])
        for rank, ((doc_id, score), points) in enumerate(zip(hits, method.points(hits), strict=True), 1):
            sources.setdefault(doc_id, {})[name] = (rank, score)
            if weight > 0:
                sums[doc_id] = sums.get(doc_id, 0.0) + weight * points
    totals = {
        doc_id: method.total(points, sum(weight_of[name] > 0 for name in sources[doc_id]))
        for doc_id, points in sums.items()
    }
    best = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:depth]
    return [Fused(doc_id, total, sources[doc_id]) for doc_id, total in best]


def _checked_weight(name: str, weight: float) -> float:
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"the weight of {name!r} is {weight}; a weight is a number from 0 up")
    return weight


def _checked_hits(name: str, hits: ScoredList) -> ScoredList:
    seen: set[str] = set()
    for doc_id, score in hits:
        if doc_id in seen:
            raise ValueError(f"the list {name!r} names {doc_id!r} twice")
        if not math.isfinite(score):
            raise ValueError(f"the list {name!r} gives {doc_id!r} the score {score}")
        seen.add(doc_id)
    return hits
