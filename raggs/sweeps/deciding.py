"""The decisions of a sweep: the front, the choice, the effects of the axes, and how stable the choice is when queries
are resampled.

When ties are broken, a system may be replaced by an equivalent one. The source breaks ties among near-frontier peers
(Dallaire, 2025, section 3.3) without defining "near". In raggs, two systems are equivalent if both of these conditions
are met:

- On the primary measure, the interval of the mean difference over queries is inside the margin on both sides. This is
  the verdict "equivalent" of `raggs eval`.
- On each other deciding measure, the lower bound of the interval is inside the margin: the system may be better, but
  not worse by more than the margin.

If an interval is wider, the comparison is inconclusive, and the better mean decides. With too few queries for a
verdict, no system is equivalent to another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from raggs.base.arrays import Floats
from raggs.evaluation.models import UnjudgedPart
from raggs.stats.choice import (
    CandidateColumns,
    Choice,
    ChoiceLimits,
    EquivalenceLookup,
    LimitTurn,
    broken_limit,
    choose,
    turning_points,
)
from raggs.stats.comparison import SCORE_TOLERANCE, could_reverse, least_queries
from raggs.stats.front import Candidate, DepthPoint, find_front, marginal_gains, round_quality
from raggs.stats.intervals import Interval, bootstrap_means
from raggs.stats.resampling import Winners, WinShare, find_winners
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.effects import SweepUncertainty, effects
from raggs.sweeps.grid import family_levels
from raggs.sweeps.messages import (
    BY_WAIT,
    MIN_SHOWN_CHANGE,
    choice_sentence,
    equal_names,
    excluded,
    other_limit_sentences,
    puts_first,
)
from raggs.sweeps.models import ChoicePart, EffectPart, FrontierPart, InteractionPart, StepPart, SystemRow, WinPart


class EquivalentSystems:
    """Finds the systems that are statistically equivalent to a given system. Results are cached by system.

    Args:
        quality: the deciding measures, primary first.
        values: by system and measure, a value for each judged query; NaN if not defined.
        margin: margin of equivalence, in the unit of the measures: intervals are compared with -margin and margin.
        confidence: of the intervals.
        seed: random seed of the bootstrap.
    """

    def __init__(
        self,
        quality: Sequence[str],
        values: Mapping[str, Mapping[str, Floats]],
        *,
        margin: float,
        confidence: float,
        seed: int,
    ) -> None:
        self._quality, self._values = quality, values
        self._margin, self._confidence, self._seed = margin, confidence, seed
        self._found: dict[str, frozenset[str]] = {}

    def __call__(self, name: str) -> frozenset[str]:
        """Return the names of the systems that are equivalent to a system, including its own name."""
        if name not in self._found:
            self._found[name] = frozenset({name, *self._peers(name)})
        return self._found[name]

    def _peers(self, name: str) -> list[str]:
        peers = [other for other in self._values if other != name and self._may_be(name, other)]
        for measure in self._quality:
            if not peers:
                return []
            found = self._intervals(name, peers, measure)
            first = measure == self._quality[0]
            peers = [other for other, each in zip(peers, found, strict=True) if self._near(each, both_sides=first)]
        return peers

    def _may_be(self, name: str, other: str) -> bool:
        """Return whether the means are so close that intervals are needed. Computing intervals is slow."""
        difference = self._differences(name, other, self._quality[0])
        return bool(np.isfinite(difference).any()) and abs(float(np.nanmean(difference))) <= self._margin

    def _near(self, found: Interval, *, both_sides: bool) -> bool:
        if found.count < least_queries(1 - self._confidence) or not found.low >= -self._margin:
            return False
        return not both_sides or found.high <= self._margin

    def _intervals(self, name: str, others: Sequence[str], measure: str) -> Sequence[Interval]:
        rows = np.stack([self._differences(name, other, measure) for other in others])
        return bootstrap_means(rows, confidence=self._confidence, seed=self._seed)

    def _differences(self, name: str, other: str, measure: str) -> Floats:
        """Return the other system minus this one, by query; differences by rounding become exactly 0."""
        ours, theirs = self._values[name][measure], self._values[other][measure]
        return np.where(np.isclose(ours, theirs, rtol=SCORE_TOLERANCE, atol=SCORE_TOLERANCE), 0.0, theirs - ours)


BOOTSTRAP_DRAWS = 1000  # Number of resamples of the queries.
# maximum number of systems for which unjudged passages are examined, nearest to the choice or to the target first
MAX_RIVALS = 50


@dataclass(frozen=True)
class SweepDecision:
    """Results of the decision rules over all systems."""

    front: tuple[str, ...]
    dominated: Mapping[str, str]
    choice: ChoicePart
    frontiers: tuple[FrontierPart, ...]
    baseline: str | None
    steps: tuple[StepPart, ...] = ()
    effects: tuple[EffectPart, ...] = ()
    interactions: tuple[InteractionPart, ...] = ()
    wins: tuple[WinPart, ...] = ()


def decide(
    config: SweepConfig,
    quality: Sequence[str],
    rows: Sequence[SystemRow],
    values: Mapping[str, Mapping[str, Floats]],
    doubts: SweepUncertainty | None = None,
) -> SweepDecision:
    """Compute front, choice and main effects.

    Args:
        config: limits, jitter, baseline, seed.
        quality: the deciding measures, primary first.
        rows: the systems with their scores.
        values: by system and measure, a value for each judged query.
        doubts: bounds for unjudged passages on the primary measure; None if the measure does not depend on unjudged
            passages.
    """
    candidates = [found for row in rows if (found := candidate(row, quality))]
    jitter = config.latency.jitter_ms
    front = find_front(candidates, jitter, config.cost_jitter)
    asked = config.limits
    limits = ChoiceLimits(asked.latency_ms, asked.usd_per_1k, asked.quality)
    peers = EquivalentSystems(quality, values, margin=config.margin, confidence=config.confidence, seed=config.seed)
    chosen = choose(candidates, limits, jitter, peers)
    deciding = {name: found[quality[0]] for name, found in values.items()}
    rivals = _rivals(candidates, chosen, deciding)
    matrix = np.array([deciding[each.name] for each in rivals])
    winners = (
        find_winners(
            rivals,
            matrix,
            limits,
            seed=config.seed,
            draws=BOOTSTRAP_DRAWS,
            confidence=config.confidence,
            jitter_ms=jitter,
            peers=peers,
        )
        if candidates
        else None
    )
    bought, together = effects(config, rows, deciding, doubts)
    equals = _equals(candidates, chosen, deciding, jitter)
    choice = _choice(chosen, candidates, quality, winners, _Rules(jitter, peers), equals)
    inconclusive = _inconclusive(chosen, candidates, doubts, jitter)
    return SweepDecision(
        front=front.names,
        dominated=front.dominated,
        choice=choice.model_copy(update={"inconclusive": inconclusive}) if inconclusive else choice,
        frontiers=tuple(_frontiers(config, candidates, limits, peers, doubts)),
        baseline=_baseline(config, candidates),
        steps=tuple(_steps(rows, quality[0], jitter, deciding, doubts)),
        effects=bought,
        interactions=together,
        wins=() if winners is None else tuple(WinPart(system=each.name, share=each.share) for each in winners.shares),
    )


def _frontiers(
    config: SweepConfig,
    candidates: Sequence[Candidate],
    limits: ChoiceLimits,
    peers: EquivalenceLookup,
    doubts: SweepUncertainty | None,
) -> Iterator[FrontierPart]:
    """Yield front and choice for each SLO, for the configured latency limit, and without a latency limit. Other limits
    stay in force.
    """
    asked = {*config.slos, *({limits.latency_ms} if limits.latency_ms is not None else ())}
    for slo in (*sorted(asked), None):
        over = [each for each in candidates if broken_limit(each, ChoiceLimits(latency_ms=slo))]
        kept = [each for each in candidates if each not in over]
        chosen = choose(candidates, replace(limits, latency_ms=slo), config.latency.jitter_ms, peers)
        yield FrontierPart(
            slo_ms=slo,
            allowed=len(kept),
            over=tuple(each.name for each in over),
            front=find_front(kept, config.latency.jitter_ms, config.cost_jitter).names,
            choice=None if chosen.winner is None else chosen.winner.name,
            inconclusive=_inconclusive(chosen, candidates, doubts, config.latency.jitter_ms),
        )


def candidate(row: SystemRow, quality: Sequence[str]) -> Candidate | None:
    """Return a system's figures for the rules, or None if it has no score on a deciding measure."""
    means = [row.scores[name].mean for name in quality if name in row.scores]
    values = tuple(mean for mean in means if mean is not None)
    if not quality or len(values) < len(quality):
        return None
    return Candidate(
        name=row.name,
        usd_per_1k=None if row.cost is None else row.cost.total,
        latency_ms=None if row.latency.total is None else row.latency.total.p50,
        quality=values,
        k=row.k,
        tokens=(row.cost and row.cost.context_tokens) or 0.0,
        tail_ms=None if row.latency.total is None else row.latency.total.p95,
    )


def _baseline(config: SweepConfig, candidates: Sequence[Candidate]) -> str | None:
    """Return the configured baseline. By default, return the cheapest system and, among equals, the fastest."""
    if config.baseline is not None or not candidates:
        return config.baseline
    unknown = float("inf")

    def price(each: Candidate) -> tuple[float, float, int, str]:
        cost = unknown if each.usd_per_1k is None else each.usd_per_1k
        return cost, unknown if each.latency_ms is None else each.latency_ms, each.k, each.name

    return min(candidates, key=price).name


@dataclass(frozen=True)
class _Rules:
    """The rules of the choice, except the limits."""

    jitter: float
    peers: EquivalenceLookup


def _second(chosen: Choice, candidates: Sequence[Candidate], rules: _Rules) -> Candidate | None:
    """Return the choice without the winner and the systems with the same figures."""
    first = chosen.winner
    if first is None:
        return None
    rest = [each for each in candidates if not _is_equal_candidate(each, first, rules.jitter)]
    return choose(rest, chosen.limits, rules.jitter, rules.peers).winner if rest else None


def _is_equal_candidate(one: Candidate, other: Candidate, jitter: float) -> bool:
    """Return whether two systems have the same primary score and price, and the same latency within the jitter."""
    if (one.quality[0], one.usd_per_1k) != (other.quality[0], other.usd_per_1k):
        return False
    if one.latency_ms is None or other.latency_ms is None:
        return one.latency_ms is other.latency_ms
    return one.latency_ms == other.latency_ms or abs(one.latency_ms - other.latency_ms) < jitter


def _equals(
    candidates: Sequence[Candidate], chosen: Choice, deciding: Mapping[str, Floats], jitter: float
) -> tuple[str, ...]:
    """Return the systems with the same value as the choice on every query that are behind it only by tie breakers."""
    if (first := chosen.winner) is None:
        return ()
    level = {each.name for each in chosen.excluded if each.reason in ("name", BY_WAIT)}
    same = (each.name for each in candidates if each.name in level and _is_equal_candidate(each, first, jitter))
    return tuple(name for name in same if np.array_equal(deciding[name], deciding[first.name], equal_nan=True))


def _inconclusive(
    chosen: Choice, candidates: Sequence[Candidate], doubts: SweepUncertainty | None, jitter: float
) -> dict[str, UnjudgedPart]:
    """Return the systems within the limits that could rank before the choice if unjudged passages were judged. With a
    limit on quality, see `_inconclusive_target`.
    """
    first = chosen.winner
    if doubts is not None and chosen.limits.quality is not None:
        return _inconclusive_target(chosen, candidates, doubts, jitter)
    if doubts is None or first is None:
        return {}
    out = {each.name for each in chosen.excluded if each.bound is not None and each.by is None}
    out |= {each.name for each in chosen.excluded if each.reason in ("latency unknown", "cost unknown")}
    rivals = [each for each in candidates if each.name not in out and each.quality[0] < first.quality[0]]
    nearest = sorted(rivals, key=lambda each: (-each.quality[0], each.name))[:MAX_RIVALS]
    found = {each.name: doubts.part([(each.name, first.name)]) for each in nearest
             if doubts.could_put_before(each.name, first.name)}  # fmt: skip
    return {name: part for name, part in found.items() if part is not None}


def _inconclusive_target(
    chosen: Choice, candidates: Sequence[Candidate], doubts: SweepUncertainty, jitter: float
) -> dict[str, UnjudgedPart]:
    """Return the systems for which unjudged passages could decide whether they are the choice, if there is a limit on
    quality.

    - The choice, if its mean could fall below the limit.
    - A system below the limit that could reach it and would then be the choice.
    - A system above the limit that would be chosen with the best possible grades of its unjudged passages.
    """
    limits, first = chosen.limits, chosen.winner
    kept = [each for each in candidates if broken_limit(each, replace(limits, quality=None)) is None]
    if limits.quality is None or not kept:
        return {}
    field, target = CandidateColumns.of(kept), limits.quality
    reached = round_quality(field.quality) >= round_quality(target)

    def wins(row: int, quality: float) -> bool:
        moved, alive = field.quality.copy(), reached.copy()
        moved[row], alive[row] = quality, True
        return field.winner(moved, limits, jitter, alive) == row

    found: dict[str, UnjudgedPart | None] = {}
    if first is not None and doubts.could_cross(first.name, target):
        found[first.name] = doubts.own_part(first.name)
    order = sorted(range(len(kept)), key=lambda row: (abs(field.quality[row] - target), kept[row].name))
    for row in [row for row in order if kept[row] is not first][:MAX_RIVALS]:
        name = kept[row].name
        if not reached[row] and doubts.could_cross(name, target) and wins(row, target):
            found[name] = doubts.own_part(name)
        elif first is not None and (ends := doubts.own_ends(name)) is not None:
            most = float(np.nanmean(ends.high)) if np.isfinite(ends.high).any() else target
            if most >= target and wins(row, most) and doubts.could_put_before(name, first.name):
                found[name] = doubts.part([(name, first.name)])
    return {name: part for name, part in found.items() if part is not None}


def _rivals(candidates: Sequence[Candidate], chosen: Choice, deciding: Mapping[str, Floats]) -> Sequence[Candidate]:
    """Return the systems that can win a resample: all systems, except those that another system dominates with equal
    values on every query.
    """
    shadows = {
        each.name
        for each in chosen.excluded
        if each.reason == "dominated"
        and each.by is not None
        and np.array_equal(deciding[each.name], deciding[each.by], equal_nan=True)
    }
    return [each for each in candidates if each.name not in shadows]


def _choice(
    chosen: Choice,
    candidates: Sequence[Candidate],
    quality: Sequence[str],
    winners: Winners | None,
    rules: _Rules,
    equals: Sequence[str],
) -> ChoicePart:
    jitter = rules.jitter
    limits = {
        name: limit
        for name, limit in (
            ("latency_ms", chosen.limits.latency_ms),
            ("usd_per_1k", chosen.limits.usd_per_1k),
            ("quality", chosen.limits.quality),
        )
        if limit is not None
    }

    def points(axis: Literal["latency", "cost"]) -> Sequence[LimitTurn]:
        return turning_points(candidates, axis, chosen.limits, jitter, rules.peers)

    first = chosen.winner
    names = equal_names((each.name, (each.quality[0], each.tail_ms, each.usd_per_1k)) for each in candidates)
    second = _second(chosen, candidates, rules)
    same = {each.name for each in candidates if first is not None and _is_equal_candidate(each, first, jitter)}
    return ChoicePart(
        winner=None if chosen.winner is None else chosen.winner.name,
        best=None if chosen.best is None else chosen.best.name,
        tied=chosen.tied,
        sentence=choice_sentence(
            chosen,
            len(candidates),
            quality[0],
            None if second is None else replace(second, name=names[second.name]),
            equals,
            separated=_is_separated(chosen, winners),
        ),
        changes=tuple(
            other_limit_sentences(points("latency"), same, "latency", chosen.limits.usd_per_1k, names)
            + other_limit_sentences(points("cost"), same, "cost", chosen.limits.latency_ms, names)
        ),
        unknown=()
        if winners is None
        else (
            (winners if equals and winners.told_apart else _with_equals_as_one(winners, names)).told(
                equals=bool(equals)
            ),
            *puts_first(chosen, equals, jitter),
        ),
        excluded={each.name: excluded(each, quality[0]) for each in chosen.excluded},
        limits=limits,
    )


def _with_equals_as_one(winners: Winners, names: Mapping[str, str]) -> Winners:
    """Return the shares with equal systems as one. If a single system wins, only its name changes."""
    if winners.told_apart:
        first, *others = winners.shares
        return replace(winners, shares=(replace(first, name=names[first.name]), *others))
    shares: dict[str, float] = {}
    for each in winners.shares:
        shares[names[each.name]] = shares.get(names[each.name], 0.0) + each.share
    ordered = (WinShare(*each) for each in sorted(shares.items(), key=lambda each: -each[1]))
    return replace(winners, shares=tuple(ordered), rivals=tuple(dict.fromkeys(names[name] for name in winners.rivals)))


def _is_separated(chosen: Choice, winners: Winners | None) -> bool:
    """Return whether, in nearly all resamples of the queries, the winner or a system equivalent to it is chosen."""
    if winners is None or chosen.winner is None:
        return False
    alike = {chosen.winner.name, *chosen.tied}
    return sum(each.share for each in winners.shares if each.name in alike) >= winners.confidence


def _steps(
    rows: Sequence[SystemRow],
    measure: str,
    jitter: float,
    values: Mapping[str, Floats],
    doubts: SweepUncertainty | None,
) -> Iterator[StepPart]:
    """Yield the effect of each increase of k, between systems that differ only in k."""
    families: dict[tuple[tuple[str, str], ...], list[SystemRow]] = {}
    for row in rows:
        if "k" in row.levels and row.plain and measure in row.scores:
            families.setdefault(family_levels(row.levels, "k"), []).append(row)
    for members in families.values():
        by_k = {row.k: row for row in members}
        steps = [
            DepthPoint(
                row.k,
                mean,
                None if row.latency.total is None else row.latency.total.p50,
                None if row.cost is None else row.cost.total,
            )
            for row in by_k.values()
            if (mean := row.scores[measure].mean) is not None
        ]
        for gain in marginal_gains(steps, jitter):
            yield StepPart(
                system=by_k[gain.to].name,
                smaller=by_k[gain.k].name,
                k=gain.to,
                from_k=gain.k,
                quality=gain.quality,
                ms=gain.ms,
                usd_per_1k=gain.usd_per_1k,
                per_ms=gain.per_ms,
                per_usd=gain.per_usd,
                within_jitter=gain.within_jitter,
                unjudged=_why_open(by_k[gain.to].name, by_k[gain.k].name, values, doubts),
            )


def _why_open(
    after: str, before: str, values: Mapping[str, Floats], doubts: SweepUncertainty | None
) -> UnjudgedPart | None:
    """Return why the effect of an increase of k on quality is inconclusive, or None if it is conclusive."""
    if doubts is None or after not in values or before not in values:
        return None
    change = values[after] - values[before]
    return doubts.part([(after, before)]) if could_reverse(_direction, change, doubts.ends(after, before)) else None


def _direction(changes: Floats) -> float:
    known = changes[~np.isnan(changes)]
    mean = float(known.mean()) if known.size else 0.0
    return 0.0 if abs(mean) < MIN_SHOWN_CHANGE else math.copysign(1.0, mean)
