"""Main effects and interactions of the axes, over systems that are equal on all other axes, and bounds for unjudged
passages.

Bounds of a pair of systems are computed when they are needed, and cached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.base.types import finite_or_none
from raggs.evaluation.messages import inconclusive
from raggs.evaluation.models import UnjudgedPart
from raggs.evaluation.study import ends_between, unjudged_in, unjudged_part
from raggs.metrics.names import parse_measure
from raggs.metrics.unjudged import ShownPassages, value_ends
from raggs.runs.manifests.store import RunStore
from raggs.stats.comparison import DifferenceBounds, could_cross, could_reverse
from raggs.stats.effects import Interaction, main_effects, main_shifts, strongest_interactions
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.judgments import is_reference
from raggs.sweeps.messages import OF_LABELS, OF_RUN
from raggs.sweeps.models import EffectPart, InteractionPart, SystemRow

# maximum number of pairs whose bounds are computed for one effect; beyond it, the widest bounds are used
MAX_PAIRS = 500
SystemPair = tuple[str, str]
Square = tuple[SystemPair, SystemPair]


def golden_remedy(golden: Path) -> str:
    """Return the command with which the unjudged passages of a sweep's systems get judged."""
    return OF_RUN if golden.is_dir() and RunStore(golden).exists else OF_LABELS


@dataclass(frozen=True)
class SweepUncertainty:
    """The systems of a sweep with the tops of their lists, for bounds by unjudged passages.

    Attributes:
        measure: name of the measure.
        shown: top of the lists by system. For a system that is missing here, unjudged passages carry no information.
        remedy: how the user can get the passages judged.
    """

    measure: str
    shown: Mapping[str, ShownPassages]
    remedy: str
    _known: dict[SystemPair, DifferenceBounds | None] = field(default_factory=dict)

    @classmethod
    def of(cls, measure: str, shown: Mapping[str, ShownPassages | None], golden: Path) -> SweepUncertainty | None:
        """Return the bounds of a sweep over a golden set; None if the measure does not depend on its judgments, or if
        unjudged passages carry no information.
        """
        known = {name: each for name, each in shown.items() if each is not None}
        return None if is_reference(measure) or not known else cls(measure, known, golden_remedy(golden))

    def ends(self, system: str, other: str) -> DifferenceBounds | None:
        """Return how far unjudged passages could move the difference of two systems on each query. Return None if there
        are no unjudged passages.
        """
        pair = (system, other)
        if pair not in self._known:
            if (other, system) in self._known:
                turned = self._known[other, system]
                return None if turned is None else -turned
            self._known[pair] = ends_between(parse_measure(self.measure), *map(self.shown.get, pair))
        return self._known[pair]

    def mean_ends(self, pairs: Sequence[SystemPair]) -> DifferenceBounds | None:
        """Return the bounds of the mean difference over pairs of systems, first minus second; negated if lower is
        better. Return None if there are no unjudged passages.
        """
        if len(pairs) > MAX_PAIRS:
            return self._widest(pairs)
        found = [self.ends(*pair) for pair in pairs]
        return None if all(each is None for each in found) else self._mean(pairs, found)

    def square_ends(self, squares: Sequence[Square]) -> DifferenceBounds | None:
        """Return how far unjudged passages could move the mean interaction over some squares. Return None if there are
        no unjudged passages. The two pairs of a square are bounded separately, so the bounds may be wider than
        necessary.

        Args:
            squares: two pairs each; the difference of the first pair is subtracted from that of the second.
        """
        sides = [[square[place] for square in squares] for place in (0, 1)]
        found = [self.mean_ends(pairs) for pairs in sides]
        if all(each is None for each in found):
            return None
        first, second = (
            each or self._mean(pairs, [None] * len(pairs)) for each, pairs in zip(found, sides, strict=True)
        )
        return DifferenceBounds(second.low - first.high, second.high - first.low)

    def could_cross_share(self, system: str, other: str, share: float) -> bool:
        """Return whether unjudged passages could move a system's mean across a share of another system's mean."""
        ends = self.ends(system, other)
        if ends is None:
            return False
        whole, rest = self._values(other), 1.0 - share
        whole_ends = value_ends(parse_measure(self.measure), self.shown[other])
        moved = DifferenceBounds(ends.low + rest * whole_ends.low, ends.high + rest * whole_ends.high)
        return could_cross(self._values(system) - share * whole, 0.0, moved)

    def could_cross(self, system: str, limit: float) -> bool:
        """Return whether unjudged passages could move a system's mean across a limit."""
        ends = self.own_ends(system)
        return ends is not None and could_cross(self._values(system), limit, ends)

    def own_ends(self, system: str) -> DifferenceBounds | None:
        """Return how far unjudged passages could move a system's value on each query, or None if its top has no
        unjudged passages.
        """
        named, shown = parse_measure(self.measure), self.shown.get(system)
        if shown is None or not unjudged_in(named, {system: shown.top}):
            return None
        return value_ends(named, shown)

    def could_put_before(self, rival: str, winner: str) -> bool:
        """Return whether unjudged passages could reverse the order of two systems' means."""
        ends = self.ends(rival, winner)
        return ends is not None and could_reverse(_is_ahead, self._fixed((rival, winner)).low, ends)

    def part(self, pairs: Sequence[SystemPair]) -> UnjudgedPart | None:
        """Return why a verdict over some pairs is inconclusive; None without unjudged passages."""
        named = parse_measure(self.measure)
        return self._part(
            [name for pair in pairs for name in pair], self.mean_ends(pairs), 1.0 if named.higher else -1.0
        )

    def square_part(self, squares: Sequence[Square]) -> UnjudgedPart | None:
        """Return why a verdict over some squares is inconclusive; None without unjudged passages."""
        names = [name for square in squares for pair in square for name in pair]
        return self._part(names, self.square_ends(squares), 1.0 if parse_measure(self.measure).higher else -1.0)

    def own_part(self, system: str) -> UnjudgedPart | None:
        """Return why a verdict on the mean of one system is inconclusive; None without unjudged passages."""
        return self._part([system], self.own_ends(system), 1.0)

    def _part(self, names: Sequence[str], ends: DifferenceBounds | None, sign: float) -> UnjudgedPart | None:
        tops = {name: self.shown[name].top for name in dict.fromkeys(names) if name in self.shown}
        parts = unjudged_in(parse_measure(self.measure), tops)
        return None if ends is None else unjudged_part(parts[:2], ends, sign, self.remedy)

    def _mean(self, pairs: Sequence[SystemPair], found: Sequence[DifferenceBounds | None]) -> DifferenceBounds:
        """Return the mean bounds over the pairs with a value. For a pair without unjudged passages, both bounds are its
        exact difference.
        """
        ends = [each or self._fixed(pair) for pair, each in zip(pairs, found, strict=True)]
        return DifferenceBounds(*(_mean_of([end[place] for end in ends]) for place in (0, 1)))

    def _fixed(self, pair: SystemPair) -> DifferenceBounds:
        values = [self._values(name) for name in pair]
        difference = (1.0 if parse_measure(self.measure).higher else -1.0) * (values[0] - values[1])
        return DifferenceBounds(difference, difference)

    def _values(self, system: str) -> Floats:
        return parse_measure(self.measure).values(self.shown[system].hits)

    def _widest(self, pairs: Sequence[SystemPair]) -> DifferenceBounds | None:
        """Return bounds that are valid for any grades: every query may have any difference. Return None if there are no
        unjudged passages.
        """
        named = parse_measure(self.measure)
        tops = {name: self.shown[name].top for pair in pairs for name in pair if name in self.shown}
        if not unjudged_in(named, tops):
            return None
        low, high = named.measure.RANGE
        held = next(iter(self.shown.values())).hits
        return DifferenceBounds(np.full(len(held.length), low - high), np.full(len(held.length), high - low))


def _is_ahead(differences: Floats) -> bool:
    known = differences[~np.isnan(differences)]
    return bool(len(known) and known.mean() > 0)


def _mean_of(rows: Sequence[Floats]) -> Floats:
    """Return the mean over rows for each query; NaN if no row has a value."""
    matrix = np.stack(rows)
    known = ~np.isnan(matrix)
    total = np.where(known, matrix, 0.0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)


STRONGEST = 2


def effects(
    config: SweepConfig, rows: Sequence[SystemRow], values: Mapping[str, Floats], doubts: SweepUncertainty | None = None
) -> tuple[tuple[EffectPart, ...], tuple[InteractionPart, ...]]:
    """Return the change between each pair of levels of an axis, and the strongest interactions of two axes.

    Args:
        rows: the systems.
        values: by system, the primary measure for each query.
        doubts: bounds for unjudged passages on that measure; None if they carry no information.
    """
    used = [row for row in rows if row.name in values and row.plain]
    if len(used) < 2:
        return (), ()
    levels = [{axis: int(level) if axis == "k" else level for axis, level in row.levels.items()} for row in used]
    matrix = np.array([values[row.name] for row in used])
    names, why = [row.name for row in used], list[UnjudgedPart | None]()

    def reversible(changes: Floats, pairs: Ints, says: Callable[[Floats], object]) -> bool:
        """Return whether unjudged passages could reverse an effect, and record the reason. It is called once per
        effect.
        """
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
            quality=finite_or_none(each.change),
            low=finite_or_none(each.low),
            high=finite_or_none(each.high),
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
    doubts: SweepUncertainty | None,
) -> tuple[InteractionPart, ...]:
    why = list[UnjudgedPart | None]()

    def reversible(changes: Floats, squares: Ints, says: Callable[[Floats], object]) -> bool:
        """Return whether unjudged passages could reverse an interaction, and record the reason. It is called once per
        interaction.
        """
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
        strength=finite_or_none(each.change),
        low=finite_or_none(each.low),
        high=finite_or_none(each.high),
        clear=each.clear,
        sentence=said if why is None else f"whether {change} brings {more} {than} is {inconclusive(why)}",
        unjudged=why,
    )
