"""Figures of two sets beside each other: what they cover, what they cost, and how their judges did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from raggs.base.jsontypes import leaves
from raggs.evaluation.diffs.models import FigurePart
from raggs.evaluation.diffs.sides import Side
from raggs.runs.manifests.models import RunManifest

Figures = Mapping[str, float | None]


def beside(old: Figures, new: Figures) -> tuple[FigurePart, ...]:
    """A part for each figure that one of both has."""
    names = dict.fromkeys([*old, *new])
    return tuple(FigurePart(name=name, old=old.get(name), new=new.get(name)) for name in names)


def differing(parts: Iterable[FigurePart]) -> tuple[FigurePart, ...]:
    """Those that are not the same in both."""
    return tuple(part for part in parts if part.old != part.new)


def coverage(side: Side) -> dict[str, float | None]:
    """How much was judged, and with what result."""
    counts = Counter(grade for judged in side.grades.values() for grade in judged.values())
    queries = len(side.grades)
    stages = {} if side.manifest is None else side.manifest.stages
    found: dict[str, float | None] = {
        "questions": queries,
        "passages judged": sum(counts.values()),
        "judged per question": sum(counts.values()) / queries if queries else None,
        "questions ranked": len(side.orders),
        "judgments that failed": sum(lock.failed for lock in stages.values()) if stages else None,
    }
    grades = range(side.part.highest, side.part.lowest - 1, -1)
    return found | {f"grade {grade}, per question": counts[grade] / queries if queries else None for grade in grades}


def cost(side: Side) -> dict[str, float | None]:
    """Calls and USD, in all and by stage; empty for files."""
    if side.costs is None:
        return {}
    found: dict[str, float | None] = {"calls": side.costs.total.calls, "USD": side.costs.total.usd}
    for stage, each in side.costs.stage.items():
        found |= {f"{stage} calls": each.calls, f"{stage} USD": each.usd}
    return found


def health(side: Side) -> dict[str, float | None]:
    """Every figure of the judge's health, by its place in the locks; empty for files."""
    return dict(_health(side.manifest)) if side.manifest else {}


def _health(manifest: RunManifest) -> Iterator[tuple[str, float | None]]:
    for stage, lock in manifest.stages.items():
        if lock.health is None:
            continue
        for place, value in leaves(lock.health.model_dump(mode="json")):
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield ".".join((stage, *map(str, place))), float(value)
