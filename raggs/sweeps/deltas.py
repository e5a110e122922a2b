"""What approximate indexes lose against the exact one, between systems that differ in nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from raggs.decision.deltas import Measured, deltas
from raggs.sweeps.grid import family
from raggs.sweeps.models import DeltaPart, SystemRow

AXIS, EXACT = "index", "flat"


def index_deltas(rows: Sequence[SystemRow], quality: Sequence[str]) -> Iterator[DeltaPart]:
    """Each system of another index against the one of the exact index."""
    families: dict[object, list[SystemRow]] = {}
    for row in rows:
        if AXIS in row.levels and all(name in row.scores for name in quality):
            families.setdefault(family(row.levels, AXIS), []).append(row)
    for members in families.values():
        exact = next((row for row in members if row.levels[AXIS] == EXACT), None)
        others = [row for row in members if row is not exact]
        if exact is None or not others:
            continue
        for found in deltas(_measured(exact, quality), [_measured(row, quality) for row in others]):
            yield DeltaPart(
                system=found.name,
                exact=exact.name,
                quality=dict(zip(quality, found.quality, strict=True)),
                latency=found.latency,
                loss=found.loss,
            )


def _measured(row: SystemRow, quality: Sequence[str]) -> Measured:
    means = tuple(row.scores[name].mean or 0.0 for name in quality)
    spread = row.latency.retrieve
    return Measured(row.name, means, None if spread is None else spread.p50)
