"""What each axis buys, as parts of the report; by `raggs.decision`, over systems that differ in one axis alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from raggs.arrays import Floats
from raggs.decision.effects import main_effects, main_shifts
from raggs.decision.interactions import Interaction, strongest_interactions
from raggs.jsontypes import number
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.models import EffectPart, InteractionPart, SystemRow

STRONGEST = 2


def effects(
    config: SweepConfig, rows: Sequence[SystemRow], values: Mapping[str, Floats]
) -> tuple[tuple[EffectPart, ...], tuple[InteractionPart, ...]]:
    """The change from each level of an axis to each other one, and the strongest interactions of two axes.

    Args:
        rows: the systems.
        values: by system, the measure that decides for each query.
    """
    used = [row for row in rows if row.name in values and row.plain]
    if len(used) < 2:
        return (), ()
    levels = [{axis: int(level) if axis == "k" else level for axis, level in row.levels.items()} for row in used]
    matrix = np.array([values[row.name] for row in used])
    found = main_effects(levels, matrix, seed=config.seed, confidence=config.confidence)
    waits = _shifts(levels, [None if row.latency.total is None else row.latency.total.p50 for row in used])
    costs = _shifts(levels, [None if row.cost is None else row.cost.total for row in used])
    parts = tuple(
        EffectPart(
            axis=each.axis,
            level=str(each.after),
            against=str(each.before),
            pairs=each.pairs,
            quality=number(each.change),
            low=number(each.low),
            high=number(each.high),
            clear=each.clear,
            latency_ms=waits.get((each.axis, each.before, each.after)),
            usd_per_1k=costs.get((each.axis, each.before, each.after)),
        )
        for each in found
    )
    strongest = strongest_interactions(levels, matrix, seed=config.seed, most=STRONGEST, confidence=config.confidence)
    return parts, tuple(map(_interaction, strongest))


def _shifts(
    levels: Sequence[Mapping[str, str | int]], figures: Sequence[float | None]
) -> dict[tuple[str, object, object], float]:
    return {(each.axis, each.before, each.after): each.change for each in main_shifts(levels, figures)}


def _interaction(each: Interaction) -> InteractionPart:
    (one, other), (low, high) = each.axes, (each.before[1], each.after[1])
    doubt = "" if each.clear else f" (it may be chance: the strongest of {each.compared:,})"
    more = "more" if each.change >= 0 else "less"
    return InteractionPart(
        axes=each.axes,
        strength=number(each.change),
        low=number(each.low),
        high=number(each.high),
        clear=each.clear,
        sentence=f"{one} {each.before[0]} → {each.after[0]} brings {abs(each.change):.3f} {more} with {other} {high} "
        f"than with {other} {low}{doubt}",
    )
