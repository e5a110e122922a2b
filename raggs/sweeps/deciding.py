"""From what was measured and scored to the choice, in typed parts and in sentences. Computes by `raggs.decision`.

A choice out of noise is no choice: how often each system would win if the questions were drawn anew stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.arrays import Floats
from raggs.decision.choice import Choice, Limits, choose, turning_points
from raggs.decision.efficiency import Step, marginal_gains
from raggs.decision.front import Candidate, find_front
from raggs.decision.winners import Winners, find_winners
from raggs.sweeps.config import SweepConfig
from raggs.sweeps.effects import effects
from raggs.sweeps.grid import family
from raggs.sweeps.models import ChoicePart, EffectPart, InteractionPart, StepPart, SystemRow, WinPart
from raggs.sweeps.words import BY_WAIT, because, excluded, puts_first, turns

DRAWS = 1000  # of the questions anew


@dataclass(frozen=True)
class Decision:
    """What the rules say of all systems."""

    front: tuple[str, ...]
    dominated: Mapping[str, str]
    choice: ChoicePart
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
) -> Decision:
    """Front, choice, and what each axis buys.

    Args:
        config: limits, jitter, baseline, seed.
        quality: the measures that decide, most important first.
        rows: the systems with their scores.
        values: by system and measure, a value for each judged query.
    """
    candidates = [found for row in rows if (found := candidate(row, quality))]
    jitter = config.latency.jitter_ms
    front = find_front(candidates, jitter, config.cost_jitter)
    asked = config.limits
    limits = Limits(asked.latency_ms, asked.usd_per_1k, asked.quality)
    chosen = choose(candidates, limits, jitter)
    deciding = {name: found[quality[0]] for name, found in values.items()}
    rivals = _rivals(candidates, chosen, deciding)
    matrix = np.array([deciding[each.name] for each in rivals])
    winners = (
        find_winners(
            rivals, matrix, limits, seed=config.seed, draws=DRAWS, confidence=config.confidence, jitter_ms=jitter
        )
        if candidates
        else None
    )
    bought, together = effects(config, rows, deciding)
    return Decision(
        front=front.names,
        dominated=front.dominated,
        choice=_choice(chosen, candidates, quality, winners, jitter, _equals(candidates, chosen, deciding, jitter)),
        baseline=_baseline(config, candidates),
        steps=tuple(_steps(rows, quality[0], jitter)),
        effects=bought,
        interactions=together,
        wins=() if winners is None else tuple(WinPart(system=each.name, share=each.share) for each in winners.shares),
    )


def candidate(row: SystemRow, quality: Sequence[str]) -> Candidate | None:
    """What the rules look at of a system; None where it has no score on what decides."""
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
    )


def _baseline(config: SweepConfig, candidates: Sequence[Candidate]) -> str | None:
    """The one that was named, else the cheapest, then the fastest."""
    if config.baseline is not None or not candidates:
        return config.baseline
    unknown = float("inf")

    def price(each: Candidate) -> tuple[float, float, int, str]:
        cost = unknown if each.usd_per_1k is None else each.usd_per_1k
        return cost, unknown if each.latency_ms is None else each.latency_ms, each.k, each.name

    return min(candidates, key=price).name


def _second(chosen: Choice, candidates: Sequence[Candidate], jitter: float) -> Candidate | None:
    """Who would be chosen without the winner and all that measured the same."""
    first = chosen.winner
    if first is None:
        return None
    rest = [each for each in candidates if not _alike(each, first, jitter)]
    return choose(rest, chosen.limits, jitter).winner if rest else None


def _alike(one: Candidate, other: Candidate, jitter: float) -> bool:
    """Whether two systems are the same by what decides first, by price and by waiting."""
    if (one.quality[0], one.usd_per_1k) != (other.quality[0], other.usd_per_1k):
        return False
    if one.latency_ms is None or other.latency_ms is None:
        return one.latency_ms is other.latency_ms
    return one.latency_ms == other.latency_ms or abs(one.latency_ms - other.latency_ms) < jitter


def _equals(
    candidates: Sequence[Candidate], chosen: Choice, deciding: Mapping[str, Floats], jitter: float
) -> tuple[str, ...]:
    """The systems that no rule that counts puts behind the choice, and that are as good on every single question."""
    if (first := chosen.winner) is None:
        return ()
    level = {each.name for each in chosen.excluded if each.reason in ("name", BY_WAIT)}
    same = (each.name for each in candidates if each.name in level and _alike(each, first, jitter))
    return tuple(name for name in same if np.array_equal(deciding[name], deciding[first.name], equal_nan=True))


def _rivals(candidates: Sequence[Candidate], chosen: Choice, deciding: Mapping[str, Floats]) -> Sequence[Candidate]:
    """The systems that can win a draw of questions: not those that are as good on each as one that dominates them."""
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
    jitter: float,
    equals: Sequence[str],
) -> ChoicePart:
    limits = {
        name: limit
        for name, limit in (
            ("latency_ms", chosen.limits.latency_ms),
            ("usd_per_1k", chosen.limits.usd_per_1k),
            ("quality", chosen.limits.quality),
        )
        if limit is not None
    }
    first = chosen.winner
    same = {each.name for each in candidates if first is not None and _alike(each, first, jitter)}
    return ChoicePart(
        winner=None if chosen.winner is None else chosen.winner.name,
        sentence=because(chosen, len(candidates), quality[0], _second(chosen, candidates, jitter), equals),
        changes=tuple(
            turns(turning_points(candidates, "latency", chosen.limits), same, "latency", chosen.limits.usd_per_1k)
            + turns(turning_points(candidates, "cost", chosen.limits), same, "cost", chosen.limits.latency_ms)
        ),
        unknown=() if winners is None else (winners.told(equals=bool(equals)), *puts_first(chosen, equals, jitter)),
        excluded={each.name: excluded(each, quality[0]) for each in chosen.excluded},
        limits=limits,
    )


def _steps(rows: Sequence[SystemRow], measure: str, jitter: float) -> Iterator[StepPart]:
    """What each larger k brings to systems that differ in nothing else."""
    families: dict[tuple[tuple[str, str], ...], list[SystemRow]] = {}
    for row in rows:
        if "k" in row.levels and row.plain and measure in row.scores:
            families.setdefault(family(row.levels, "k"), []).append(row)
    for members in families.values():
        by_k = {row.k: row for row in members}
        steps = [
            Step(
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
            )
