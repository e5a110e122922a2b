"""What approximate indexes lose against the exact one, between systems that differ in nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from raggs.evaluation.models import UnjudgedPart
from raggs.stats.decision.deltas import MOST, Measured, deltas
from raggs.sweeps.doubts import Doubts
from raggs.sweeps.grid import family
from raggs.sweeps.models import DeltaPart, SystemRow

AXIS, EXACT = "index", "flat"


def index_deltas(
    rows: Sequence[SystemRow], quality: Sequence[str], doubts: Mapping[str, Doubts | None]
) -> Iterator[DeltaPart]:
    """Each system of another index against the one of the exact index.

    Args:
        rows: the systems with their scores.
        quality: the measures that decide.
        doubts: by measure, what unjudged passages could make of it; None where they say nothing.
    """
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
                unjudged=_unjudged(found.name, exact, dict(zip(quality, found.quality, strict=True)), doubts),
            )


def _unjudged(
    name: str, exact: SystemRow, changes: Mapping[str, float | None], doubts: Mapping[str, Doubts | None]
) -> UnjudgedPart | None:
    """Why it is inconclusive whether an index is good enough by every measure; None if that is certain.

    An index that is not good enough by a measure, whatever the unjudged passages, stays so.
    """
    lost = {measure for measure, change in changes.items() if change is None or change < -MOST}
    open_ = [(measure, each) for measure in changes if (each := doubts.get(measure)) is not None
             and each.could_cross_share(name, exact.name, 1.0 - MOST)]  # fmt: skip
    if not open_ or lost - {measure for measure, _ in open_}:
        return None
    return next(each for measure, each in open_ if not lost or measure in lost).part([(name, exact.name)])


def _measured(row: SystemRow, quality: Sequence[str]) -> Measured:
    means = tuple(row.scores[name].mean or 0.0 for name in quality)
    spread = row.latency.retrieve
    return Measured(row.name, means, None if spread is None else spread.p50)
