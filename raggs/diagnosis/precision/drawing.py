"""Precision over the cutoff: each measure as it stands and by expectation, and how wide it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from raggs.base.jsontypes import Number
from raggs.diagnosis.precision.models import CurvePart, PrecisionFound, SystemPart
from raggs.evaluation.curves import Curve, curves

SHOWN = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100, 200, 300, 500, 700, 1000)
TICKED = (1, 10, 20, 30, 50, 70, 100, 200, 300, 500, 700, 1000)
MOST = 8  # lines of a plot
POINTS = "points"
PLAIN = re.compile(r"\W+")  # what no file name needs
Line = tuple[str, Sequence[Number]]


def plots(found: PrecisionFound) -> Mapping[str, str]:
    """A plot a measure of the first system, and one of all ranges; nothing where no measure is defined."""
    parts = [part for part in found.systems if part.name == found.systems[0].name] if found.systems else []
    drawn: dict[str, str] = {}
    for place, full in enumerate(parts[0].curves if parts else ()):
        lines = [line for part in parts[1:] for line in _beside(part, part.curves[place], full)]
        if svg := _draw(f"{full.measure}@k of {parts[0].name} less that in f32, by precision", lines, POINTS):
            drawn[PLAIN.sub("-", full.measure).strip("-")] = svg
    wide = [line for part in parts if part.dtype == "bf16" for line in _ranges(part)]
    if parts and (svg := _draw(f"Range by the order of ties, {parts[0].name}", wide, POINTS)):
        drawn["range"] = svg
    return drawn


def _beside(part: SystemPart, curve: CurvePart, full: CurvePart) -> Iterator[Line]:
    """Differences from full precision, in points."""
    yield f"{part.precision}, expected", _less(curve.expected, full.expected)
    if not part.hps:
        yield f"{part.precision}, as it stands", _less(curve.oblivious, full.expected)
    if part.dtype == "bf16" and not part.hps:
        yield f"{part.precision}, most", _less(curve.most, full.expected)
        yield f"{part.precision}, least", _less(curve.least, full.expected)


def _less(values: Sequence[Number], others: Sequence[Number]) -> list[Number]:
    pairs = zip(values, others, strict=True)
    return [None if value is None or other is None else round(100 * (value - other), 4) for value, other in pairs]


def _ranges(part: SystemPart) -> Iterator[Line]:
    for curve in part.curves:
        yield f"{part.precision}, {curve.measure}", _less(curve.most, curve.least)


def _draw(title: str, lines: Sequence[Line], measure: str) -> str | None:
    """Lines over the cutoff; those that run alike are one."""
    alike: dict[tuple[tuple[float, float], ...], list[str]] = {}
    for name, values in lines:
        points = [(float(k), values[k - 1]) for k in SHOWN if k <= len(values)]
        known = tuple((k, value) for k, value in points if value is not None)
        if known:
            alike.setdefault(known, []).append(name)
    if not alike:
        return None
    deepest = max(points[-1][0] for points in alike)
    ticks = [float(k) for k in TICKED if k <= deepest]
    shown = [Curve(tuple(names), points) for points, names in list(alike.items())[:MOST]]
    return curves(title, shown, ("cutoff k", measure), ticks)
