"""One system out of many, and for each other one the rule that put it aside.

Dallaire, "Practical RAG Evaluation", 2025, section 3.3: keep what holds the limits, discard what is dominated among
that, then either take the best quality (limits on latency or cost), or, where a quality is to be reached, the fastest,
then the cheapest. Ties go to the smaller K, then to fewer tokens; efficiency only breaks what is still equal. Limits
come first: a system may be dominated by one that is not allowed.

Must not judge whether a difference is more than noise: that needs values by query, see `winners`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from raggs.arrays import Flags, Floats
from raggs.decision.efficiency import efficiency
from raggs.decision.front import JITTER_MS, Candidate, Front, checked, find_front, rounded

Rule = Literal["best quality", "target reached"]
Reason = Literal[
    "latency",
    "latency unknown",
    "cost",
    "cost unknown",
    "target",
    "dominated",
    "quality",
    "slower",
    "dearer",
    "larger k",
    "more tokens",
    "less efficient",
    "name",
]


@dataclass(frozen=True)
class Limits:
    """What a system must hold; None where anything goes.

    Attributes:
        latency_ms: at most that median latency.
        usd_per_1k: at most that cost of 1,000 queries.
        quality: at least that on the deciding measure; then the fastest of those wins, not the best.

    Raises:
        ValueError: a limit that is not a finite number, or a latency or cost below 0.
    """

    latency_ms: float | None = None
    usd_per_1k: float | None = None
    quality: float | None = None

    def __post_init__(self) -> None:
        for what, limit in (("latency", self.latency_ms), ("cost", self.usd_per_1k), ("quality", self.quality)):
            if limit is not None and not (math.isfinite(limit) and (limit >= 0 or what == "quality")):
                raise ValueError(f"the limit of {what} is {limit}; it is a number from 0 up")


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Exclusion:
    """Why a system was not chosen.

    Attributes:
        name: of the system.
        reason: "latency", "cost", "target": it breaks that limit, or what is limited is unknown of it; "dominated";
            else the rule by which it lost to the winner or to one that lost later.
        by: the system that it lost to; None where a limit was broken.
        value, bound: its own figure and the one it was held against, in the unit of the rule (ms, USD for 1,000
            queries, quality, passages, tokens, quality per second); None where there is none.
    """

    name: str
    reason: Reason
    by: str | None = None
    value: float | None = None
    bound: float | None = None


@dataclass(frozen=True)
class Choice:
    """What to ship.

    Attributes:
        winner: None where no system holds the limits.
        runner_up: who would be chosen without the winner.
        rule: what the winner was chosen by.
        limits: that were asked for.
        front: of the systems that hold the limits.
        excluded: each other system once, in the order of the candidates.
    """

    winner: Candidate | None
    runner_up: Candidate | None
    rule: Rule
    limits: Limits
    front: Front
    excluded: tuple[Exclusion, ...]


@dataclass(frozen=True)
class Turn:
    """From this limit on (ms, or USD for 1,000 queries), and until the next turn, this system is the best allowed."""

    limit: float
    winner: str


def choose(candidates: Sequence[Candidate], limits: Limits = NO_LIMITS, jitter_ms: float = JITTER_MS) -> Choice:
    """The system to ship under the limits.

    Args:
        candidates: in any order; the first quality decides, the others count in the front alone.
        limits: a system whose latency or cost is unknown does not hold a limit on it.
        jitter_ms: latencies closer than that are equal, in the front and under a target; not before a limit.

    Raises:
        ValueError: as `find_front`.
    """
    checked(candidates)
    broken = {each.name: exclusion for each in candidates if (exclusion := broken_limit(each, limits))}
    kept = [each for each in candidates if each.name not in broken]
    winner, front, lost = _best_of(kept, limits, jitter_ms)
    second, _, _ = _best_of([each for each in kept if each is not winner], limits, jitter_ms)
    why = {**broken, **lost}
    return Choice(
        winner=winner,
        runner_up=second,
        rule="best quality" if limits.quality is None else "target reached",
        limits=limits,
        front=front,
        excluded=tuple(why[each.name] for each in candidates if each is not winner),
    )


def turning_points(
    candidates: Sequence[Candidate], axis: Literal["latency", "cost"], limits: Limits = NO_LIMITS
) -> tuple[Turn, ...]:
    """How the best allowed quality changes hands as the limit on one axis is raised from 0.

    Systems of unknown latency (or cost) are left out. Quality rises from turn to turn, or a tie-breaker does.

    Args:
        candidates: in any order.
        axis: whose limit is raised.
        limits: the one on the other axis is held; the one on this axis, and a quality to be reached, are not looked at.

    Raises:
        ValueError: as `find_front`.
    """
    checked(candidates)
    latency = axis == "latency"
    held = Limits(usd_per_1k=limits.usd_per_1k) if latency else Limits(latency_ms=limits.latency_ms)
    figures = [
        (each.latency_ms if latency else each.usd_per_1k, each)
        for each in candidates
        if broken_limit(each, held) is None
    ]
    known = [(value, each) for value, each in figures if value is not None]
    turns: list[Turn] = []
    best: Candidate | None = None
    for limit in sorted({value for value, _ in known}):
        reached = [each for value, each in known if value == limit] + ([best] if best else [])
        field = Field.of(reached)
        now = reached[field.winner(field.quality, NO_LIMITS, 0.0)]
        if now is not best:
            turns.append(Turn(limit, now.name))
        best = now
    return tuple(turns)


def broken_limit(each: Candidate, limits: Limits) -> Exclusion | None:
    """The first limit that a system does not hold."""
    if limits.latency_ms is not None:
        if each.latency_ms is None:
            return Exclusion(each.name, "latency unknown", bound=limits.latency_ms)
        if each.latency_ms > limits.latency_ms:
            return Exclusion(each.name, "latency", value=each.latency_ms, bound=limits.latency_ms)
    if limits.usd_per_1k is not None:
        if each.usd_per_1k is None:
            return Exclusion(each.name, "cost unknown", bound=limits.usd_per_1k)
        if each.usd_per_1k > limits.usd_per_1k:
            return Exclusion(each.name, "cost", value=each.usd_per_1k, bound=limits.usd_per_1k)
    if limits.quality is not None and rounded(each.quality[0]) < rounded(limits.quality):
        return Exclusion(each.name, "target", value=each.quality[0], bound=limits.quality)
    return None


def _best_of(
    kept: Sequence[Candidate], limits: Limits, jitter_ms: float
) -> tuple[Candidate | None, Front, dict[str, Exclusion]]:
    front = find_front(kept, jitter_ms)
    lost = {name: Exclusion(name, "dominated", by=by) for name, by in front.dominated.items()}
    members = [each for each in kept if each.name in set(front.names)]
    if not members:
        return None, front, lost
    field = Field.of(members)
    alive = np.ones(len(members), dtype=np.bool_)
    for rule in field.rules(field.quality, limits, jitter_ms):
        beaten, best = rule.sieve(alive)
        for row in np.flatnonzero(beaten).tolist():
            name = members[row].name
            lost[name] = Exclusion(name, rule.reason, members[best].name, rule.figure(row), rule.figure(best))
        alive &= ~beaten
    return members[int(np.flatnonzero(alive)[0])], front, lost


class Sieve(NamedTuple):
    """A rule as keys, smaller is better; keys at least `step` above the best fall through (above it, if step is 0)."""

    reason: Reason
    keys: Floats
    step: float = 0.0
    sign: float = 1.0  # the figure that people know is sign x key

    def sieve(self, alive: Flags) -> tuple[Flags, int]:
        """Whom the rule puts aside of those alive, and the best row."""
        rows = np.flatnonzero(alive)
        best = int(rows[self.keys[rows].argmin()])
        if not math.isfinite(self.keys[best]):  # unknown of all that are alive
            return np.zeros_like(alive), best
        above = self.keys - self.keys[best]
        beaten: Flags = alive & (above > 0) & (above >= self.step)
        return beaten, best

    def figure(self, row: int) -> float | None:
        """A row's figure as people know it; None where it is unknown."""
        value = self.sign * float(self.keys[row])
        return value if math.isfinite(value) and self.reason != "name" else None


@dataclass(frozen=True)
class Field:
    """Candidates as columns, to be chosen from again and again with other qualities."""

    quality: Floats
    latency: Floats
    cost: Floats
    k: Floats
    tokens: Floats
    inefficiency: Floats
    place: Floats

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> Field:
        """The columns; what is unknown is infinite, and so never preferred."""

        def column(values: Iterator[float | None]) -> Floats:
            return np.array([math.inf if value is None else value for value in values], dtype=np.float64)

        names = sorted(each.name for each in candidates)
        place = {name: number for number, name in enumerate(names)}
        return cls(
            quality=column(each.quality[0] for each in candidates),
            latency=column(each.latency_ms for each in candidates),
            cost=column(each.usd_per_1k for each in candidates),
            k=column(float(each.k) for each in candidates),
            tokens=column(each.tokens for each in candidates),
            inefficiency=column(_inefficiency(each) for each in candidates),
            place=column(float(place[each.name]) for each in candidates),
        )

    def rules(self, quality: Floats, limits: Limits, jitter_ms: float) -> tuple[Sieve, ...]:
        """The rules in their order, with `quality` of shape (candidates,) in place of the candidates' own."""
        best = Sieve("quality", -rounded(quality), sign=-1.0)
        ties = (
            Sieve("larger k", self.k),
            Sieve("more tokens", self.tokens),
            Sieve("less efficient", self.inefficiency, sign=-1.0),
        )
        dearer, slower = Sieve("dearer", self.cost), Sieve("slower", self.latency)
        last = Sieve("name", self.place)
        if limits.quality is None:
            return (best, *ties, dearer, slower, last)
        return (slower._replace(step=jitter_ms), dearer, best, *ties, slower, last)

    def winner(self, quality: Floats, limits: Limits, jitter_ms: float, alive: Flags | None = None) -> int:
        """The row that all rules leave, without a look at limits or front.

        Args:
            alive: among whom, at least one; all where None.
        """
        left = np.ones(quality.size, dtype=np.bool_) if alive is None else alive.copy()
        for rule in self.rules(quality, limits, jitter_ms):
            left &= ~rule.sieve(left)[0]
            if np.count_nonzero(left) == 1:
                break
        return int(left.argmax())


def _inefficiency(candidate: Candidate) -> float | None:
    return None if candidate.latency_ms is None else -efficiency(candidate.quality, candidate.latency_ms)
