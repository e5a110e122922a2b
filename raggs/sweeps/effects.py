"""What each axis buys, as parts of the report; by `raggs.stats.decision`, over systems that differ in one axis
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.base.jsontypes import number
from raggs.evaluation.models import UnjudgedPart
from raggs.evaluation.words import inconclusive
from raggs.metrics.stats import could_reverse
from raggs.stats.decision.effects import main_effects, main_shifts
from raggs.stats.decision.interactions import Interaction, strongest_interactions
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.doubts import Doubts
from raggs.sweeps.models import EffectPart, InteractionPart, SystemRow

STRONGEST = 2


def effects(
    config: SweepConfig, rows: Sequence[SystemRow], values: Mapping[str, Floats], doubts: Doubts | None = None
) -> tuple[tuple[EffectPart, ...], tuple[InteractionPart, ...]]:
    """The change from each level of an axis to each other one, and the strongest interactions of two axes.

    Args:
        rows: the systems.
        values: by system, the measure that decides for each query.
        doubts: what unjudged passages could make of that measure; None where they say nothing.
    """
    used = [row for row in rows if row.name in values and row.plain]
    if len(used) < 2:
        return (), ()
    levels = [{axis: int(level) if axis == "k" else level for axis, level in row.levels.items()} for row in used]
    matrix = np.array([values[row.name] for row in used])
    names, why = [row.name for row in used], list[UnjudgedPart | None]()

    def reversible(changes: Floats, pairs: Ints, says: Callable[[Floats], object]) -> bool:
        """Asked of each effect in turn; of those that could be reversed, why."""
        named = [(names[after], names[before]) for before, after in pairs.tolist()]
        found = doubts is not None and could_reverse(says, changes, doubts.mean_ends(named))
        if doubts is not None and found:
            why.append(doubts.part(named))
        return found

    found = main_effects(levels, matrix, seed=config.seed, confidence=config.confidence, reversible=reversible)
    reasons = iter(why)
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
            unjudged=next(reasons) if each.unjudged else None,
            latency_ms=waits.get((each.axis, each.before, each.after)),
            usd_per_1k=costs.get((each.axis, each.before, each.after)),
        )
        for each in found
    )
    return parts, _interactions(config, levels, matrix, names, doubts)


def _interactions(
    config: SweepConfig,
    levels: Sequence[Mapping[str, str | int]],
    matrix: Floats,
    names: Sequence[str],
    doubts: Doubts | None,
) -> tuple[InteractionPart, ...]:
    why = list[UnjudgedPart | None]()

    def reversible(changes: Floats, squares: Ints, says: Callable[[Floats], object]) -> bool:
        """Like that of effects: asked of each interaction in turn; of those that could be reversed, why."""
        rows = [[names[row] for row in square] for square in squares.tolist()]
        named = [((after, before), (then, first)) for before, after, first, then in rows]
        found = doubts is not None and could_reverse(says, changes, doubts.square_ends(named))
        if doubts is not None and found:
            why.append(doubts.square_part(named))
        return found

    found = strongest_interactions(
        levels, matrix, seed=config.seed, most=STRONGEST, confidence=config.confidence, reversible=reversible
    )
    reasons = iter(why)
    return tuple(_interaction(each, next(reasons) if each.unjudged else None) for each in found)


def _shifts(
    levels: Sequence[Mapping[str, str | int]], figures: Sequence[float | None]
) -> dict[tuple[str, object, object], float]:
    return {(each.axis, each.before, each.after): each.change for each in main_shifts(levels, figures)}


def _interaction(each: Interaction, why: UnjudgedPart | None) -> InteractionPart:
    (one, other), (low, high) = each.axes, (each.before[1], each.after[1])
    change, than = f"{one} {each.before[0]} → {each.after[0]}", f"with {other} {high} than with {other} {low}"
    more, doubt = "more" if each.change >= 0 else "less", ""
    if not each.clear and why is None:
        doubt = f" (it may be chance: the strongest of {each.compared:,})"
    said = f"{change} brings {abs(each.change):.3f} {more} {than}{doubt}"
    return InteractionPart(
        axes=each.axes,
        strength=number(each.change),
        low=number(each.low),
        high=number(each.high),
        clear=each.clear,
        sentence=said if why is None else f"whether {change} brings {more} {than} is {inconclusive(why)}",
        unjudged=why,
    )
