"""The three-way choice: one of recall, robustness and speed is fixed, and of the other two the front remains.

Wang et al. 2025, section 5.2 and guideline 3. The front is that of `raggs.stats.decision`, without its jitter.
"""

from __future__ import annotations

from collections.abc import Sequence

from raggs.diagnosis.index.models import ChosenPart, FrontPart, PointPart
from raggs.diagnosis.index.settings import Bound, Fixed
from raggs.stats.decision.front import Candidate, find_front
from raggs.stats.probes.matching import RECALL
from raggs.stats.probes.neighbours import robustness

THREE: tuple[Bound, ...] = ("recall", "robustness", "qps")
SECOND_MS = 1000.0


def front_of(points: Sequence[PointPart], fixed: Fixed, delta: float) -> FrontPart:
    """The points of one K and set of questions that reach the threshold, and of these the front of the other two."""
    mine = [point for point in points if (point.k, point.origin) == (points[0].k, points[0].origin)]
    chosen = [_chosen(point, delta) for point in mine]
    reaching = [each for each in chosen if getattr(each, fixed.what) >= fixed.least]
    front = find_front([_candidate(each, at, fixed.what) for at, each in enumerate(reaching)], jitter_ms=0)
    kept = sorted((reaching[int(name)] for name in front.names), key=lambda each: -each.qps)
    return FrontPart(
        what=fixed.what, least=fixed.least, delta=delta, reached=len(reaching), points=len(mine), front=tuple(kept)
    )


def _chosen(point: PointPart, delta: float) -> ChosenPart:
    means = {name: value.mean or 0.0 for name, value in point.values.items()}
    return ChosenPart(
        index=point.index,
        effort=point.effort,
        setting=point.setting,
        k=point.k,
        origin=point.origin,
        recall=means[RECALL],
        robustness=means[robustness(delta)],
        qps=point.qps,
    )


def _candidate(each: ChosenPart, at: int, fixed: Bound) -> Candidate:
    """Speed as the time of a question, unless it is what is fixed."""
    quality = tuple(getattr(each, name) for name in THREE if name not in (fixed, "qps"))
    latency = None if fixed == "qps" else SECOND_MS / each.qps
    return Candidate(str(at), None, latency, quality, each.k)
