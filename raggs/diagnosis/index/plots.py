"""Curves of the findings: robustness over mean recall, over delta at equal recall, and speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from raggs.diagnosis.index.models import IndexFound, MatchedPart, PointPart
from raggs.diagnosis.index.verdict import USUAL_LEVEL
from raggs.evaluation.curves import Curve, curves
from raggs.stats.probes.neighbours import robustness

LOWEST = 0.6  # mean recall that is drawn
TICKS = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
LOW_DELTA, HIGH_DELTA = 0.3, 0.9


def plots(found: IndexFound) -> dict[str, str]:
    """By name, for each K and set of questions what has two points or more."""
    drawn: dict[str, str] = {}
    for k, origin in dict.fromkeys((part.k, part.origin) for part in found.points):
        points = [part for part in found.points if (part.k, part.origin) == (k, origin)]
        end = f"{k}-{origin.split()[0]}"
        for delta in _two(found.deltas):
            title = f"Questions with a recall@{k} of {delta:g} or more, {origin}"
            drawn[f"r{delta:g}-{end}"] = _over_recall(title, points, robustness(delta), k, _mean(robustness(delta)))
        matched = [part for part in found.matched if (part.k, part.origin) == (k, origin) and part.bracketed]
        drawn[f"deltas-{end}"] = _over_delta(matched, found.deltas, k)
        drawn[f"qps-{end}"] = _over_recall(f"Questions a second, {origin}", points, "qps", k, lambda part: part.qps)
    return {name: svg for name, svg in drawn.items() if svg}


def _two(deltas: Sequence[float]) -> list[float]:
    """The deltas nearest to a low and to a high one."""
    return list(dict.fromkeys(min(deltas, key=lambda each: abs(each - want)) for want in (LOW_DELTA, HIGH_DELTA)))


def _mean(name: str) -> Callable[[PointPart], float]:
    return lambda part: part.values[name].mean or 0.0


def _over_recall(
    title: str, points: Sequence[PointPart], what: str, k: int, value: Callable[[PointPart], float]
) -> str:
    lines = [
        Curve((name,), tuple(sorted(line)))
        for name in dict.fromkeys(part.index for part in points)
        if (line := [(recall, value(part)) for part, recall in _drawn(points, name)])
    ]
    return curves(title, lines, (f"mean recall@{k}", what), TICKS, coloured=True) if lines else ""


def _drawn(points: Sequence[PointPart], name: str) -> Iterator[tuple[PointPart, float]]:
    for part in points:
        recall = part.values["recall"].mean or 0.0
        if part.index == name and recall >= LOWEST:
            yield part, recall


def _over_delta(matched: Sequence[MatchedPart], deltas: Sequence[float], k: int) -> str:
    """At the usual level, or the one nearest to it at which most indexes are to be read."""
    levels = [part.level for part in matched]
    if not levels:
        return ""
    level = max(set(levels), key=lambda each: (levels.count(each), -abs(each - USUAL_LEVEL)))
    lines = [
        Curve((part.index,), tuple((delta, part.values[robustness(delta)].mean or 0.0) for delta in sorted(deltas)))
        for part in matched
        if part.level == level
    ]
    title = f"Share of questions over delta, where mean recall@{k} is {level:g}: {matched[0].origin}"
    return curves(
        title, lines, ("delta", "share of questions with a recall of delta or more"), sorted(deltas), coloured=True
    )
