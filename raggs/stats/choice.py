"""Choice of one system out of many, with the rule that excluded each other system.

Source: Dallaire, "Practical RAG Evaluation", 2025, section 3.3. First apply the limits, then discard the dominated
systems. The limits come first, because a system may be dominated by one that violates a limit. Of the others, choose
the best quality. With a quality target, choose the fastest system that reaches the target, then the cheapest, then the
best quality. Among tied systems, the one with the smaller K is chosen, then the one with fewer tokens. Further
tie-breakers are efficiency (if the latencies differ by at least the jitter), cost, latency and name.

The caller decides which systems count as tied with the best, because a test needs the values per query. For this, an
`EquivalenceLookup` returns the systems that are statistically equivalent to a given one. Dominated systems then remain
candidates, because a dominated system may be tied with the best. Without a quality target, the first tie-breaker then
is `Undominated`. Without the lookup, only equal means are tied. To estimate how often each system would be chosen with
other queries, use `raggs.stats.resampling.find_winners`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from raggs.base.arrays import Flags, Floats
from raggs.stats.front import JITTER_MS, Candidate, Front, check_candidates, efficiency, find_front, round_quality

# returns the names of the systems that are statistically equivalent to the named system
EquivalenceLookup = Callable[[str], Collection[str]]
# Of two tied systems with equal K, the one with more tokens per passage is excluded. With an `EquivalenceLookup`, it is
# excluded only if it has more tokens by at least this share.
TOKENS_APART = 0.05

SelectionRule = Literal["best quality", "target reached"]
Reason = Literal[
    "latency",
    "latency unknown",
    "cost",
    "cost unknown",
    "target",
    "dominated",
    "quality",
    "tied, costlier",
    "slower",
    "dearer",
    "larger k",
    "more tokens",
    "less efficient",
    "name",
]


@dataclass(frozen=True)
class ChoiceLimits:
    """Limits on a system; None: no limit.

    Attributes:
        latency_ms: maximum latency of a query (`Candidate.bound_ms`: the 95th percentile if known, else the median).
        usd_per_1k: maximum cost of 1,000 queries.
        quality: minimum quality on the primary measure. If set, the fastest system that reaches it is chosen, not the
            best.

    Raises:
        ValueError: a limit is not a finite number, or a latency or cost is negative.
    """

    latency_ms: float | None = None
    usd_per_1k: float | None = None
    quality: float | None = None

    def __post_init__(self) -> None:
        for what, limit in (("latency", self.latency_ms), ("cost", self.usd_per_1k), ("quality", self.quality)):
            if limit is not None and not (math.isfinite(limit) and (limit >= 0 or what == "quality")):
                raise ValueError(f"the limit on {what} must be finite and, except for quality, at least 0, got {limit}")


NO_LIMITS = ChoiceLimits()


@dataclass(frozen=True)
class Exclusion:
    """The reason why a system was not chosen.

    Attributes:
        name: name of the system.
        reason: "latency", "cost" or "target": the system violates that limit. "latency unknown" or "cost unknown": the
            limited value is unknown. "dominated": a member of the Pareto front dominates the system. "tied, costlier":
            another system that is also statistically equivalent to the best is no more expensive and no slower, and is
            cheaper or faster. Other reasons name the rule that excluded the system.
        by: the system that was preferred; None if a limit was violated, or a limited value is unknown.
        value, bound: value of this system, and the value of `by` or the limit. The unit is that of the rule (ms, USD
            per 1,000 queries, quality, passages, tokens, quality per second). None if unknown or if the rule has no
            value.
    """

    name: str
    reason: Reason
    by: str | None = None
    value: float | None = None
    bound: float | None = None


@dataclass(frozen=True)
class Choice:
    """The chosen system and how it was chosen.

    Attributes:
        winner: the chosen system; None if no system is within the limits.
        runner_up: the system that would be chosen without the winner; None if there is no other within the limits.
        rule: the rule that selected the winner.
        limits: the limits that were applied.
        front: Pareto front of the systems within the limits.
        excluded: one entry for each system other than the winner, in the order of the candidates.
        best: the system with the best quality within the limits; None with a quality target, or if no system is within
            the limits.
        tied: names of the systems that are tied with `best`, including `best`, in the order of the candidates; empty if
            `best` is None.
    """

    winner: Candidate | None
    runner_up: Candidate | None
    rule: SelectionRule
    limits: ChoiceLimits
    front: Front
    excluded: tuple[Exclusion, ...]
    best: Candidate | None = None
    tied: tuple[str, ...] = ()


@dataclass(frozen=True)
class LimitTurn:
    """A limit (in ms, or USD per 1,000 queries) from which on `winner` is chosen, until the next `LimitTurn`."""

    limit: float
    winner: str


def choose(
    candidates: Sequence[Candidate],
    limits: ChoiceLimits = NO_LIMITS,
    jitter_ms: float = JITTER_MS,
    peers: EquivalenceLookup | None = None,
) -> Choice:
    """Choose a system under the limits.

    Args:
        candidates: the systems, in any order. The first quality decides; the others count only in the front, in the
            efficiency of tied systems and in `peers`.
        limits: the limits. A system whose latency or cost is unknown violates a limit on it.
        jitter_ms: latencies closer than that count as equal in the front, among tied systems and with a quality target.
            The jitter does not apply to limits.
        peers: returns the systems that are statistically equivalent to a given one; None: only equal means are tied.

    Raises:
        ValueError: as for `find_front`.
    """
    check_candidates(candidates)
    broken = {each.name: exclusion for each in candidates if (exclusion := broken_limit(each, limits))}
    kept = [each for each in candidates if each.name not in broken]
    front = find_front(kept, jitter_ms)
    winner, lost, tied = _pick(kept, front, limits, jitter_ms, peers)
    rest = [each for each in kept if each is not winner]
    second, _, _ = _pick(rest, find_front(rest, jitter_ms), limits, jitter_ms, peers)
    why = {**broken, **lost}
    return Choice(
        winner=winner,
        runner_up=second,
        rule="best quality" if limits.quality is None else "target reached",
        limits=limits,
        front=front,
        excluded=tuple(why[each.name] for each in candidates if each is not winner),
        best=tied[0] if tied else None,
        tied=tuple(each.name for each in kept if each in tied),
    )


def turning_points(
    candidates: Sequence[Candidate],
    axis: Literal["latency", "cost"],
    limits: ChoiceLimits = NO_LIMITS,
    jitter_ms: float = 0.0,
    peers: EquivalenceLookup | None = None,
) -> tuple[LimitTurn, ...]:
    """Return how the choice changes as the limit on one axis rises from 0.

    Systems whose latency (or cost) is unknown are excluded from the choice. Without `peers`, each later choice has a
    higher quality or a better tie-breaker.

    Args:
        candidates: the systems, in any order.
        axis: axis whose limit rises.
        limits: only the limit on the other axis applies; a quality target is ignored.
        jitter_ms, peers: as in `choose`.

    Raises:
        ValueError: as for `find_front`.
    """
    check_candidates(candidates)
    latency = axis == "latency"
    held = ChoiceLimits(usd_per_1k=limits.usd_per_1k) if latency else ChoiceLimits(latency_ms=limits.latency_ms)
    figures = [
        (each.bound_ms if latency else each.usd_per_1k, each) for each in candidates if broken_limit(each, held) is None
    ]
    known = [(value, each) for value, each in figures if value is not None]
    field, values = CandidateColumns.of([each for _, each in known]), np.array([value for value, _ in known])
    turns: list[LimitTurn] = []
    for limit in np.unique(values).tolist():
        now = known[field.winner(field.quality, NO_LIMITS, jitter_ms, values <= limit, peers)][1].name
        if not turns or now != turns[-1].winner:
            turns.append(LimitTurn(limit, now))
    return tuple(turns)


def broken_limit(each: Candidate, limits: ChoiceLimits) -> Exclusion | None:
    """Return the exclusion of a system by the first limit that it violates; None if it violates no limit."""
    if limits.latency_ms is not None:
        if each.bound_ms is None:
            return Exclusion(each.name, "latency unknown", bound=limits.latency_ms)
        if each.bound_ms > limits.latency_ms:
            return Exclusion(each.name, "latency", value=each.bound_ms, bound=limits.latency_ms)
    if limits.usd_per_1k is not None:
        if each.usd_per_1k is None:
            return Exclusion(each.name, "cost unknown", bound=limits.usd_per_1k)
        if each.usd_per_1k > limits.usd_per_1k:
            return Exclusion(each.name, "cost", value=each.usd_per_1k, bound=limits.usd_per_1k)
    if limits.quality is not None and round_quality(each.quality[0]) < round_quality(limits.quality):
        return Exclusion(each.name, "target", value=each.quality[0], bound=limits.quality)
    return None


def _pick(
    kept: Sequence[Candidate], front: Front, limits: ChoiceLimits, jitter_ms: float, peers: EquivalenceLookup | None
) -> tuple[Candidate | None, dict[str, Exclusion], list[Candidate]]:
    """Return the winner, the reasons against the other systems, and the systems tied with the best (the best first)."""
    lost = {name: Exclusion(name, "dominated", by=by) for name, by in front.dominated.items()}
    field = CandidateColumns.of(kept)
    alive = np.array([peers is not None or each.name in front.names for each in kept], dtype=np.bool_)
    if not alive.any():
        return None, lost, []
    tied: list[Candidate] = []
    for rule in field.rules(field.quality, limits, jitter_ms, peers):
        beaten, best = rule.sieve(alive)
        for row in np.flatnonzero(beaten).tolist():
            name = kept[row].name
            found = Exclusion(name, rule.reason, kept[best].name, rule.figure(row), rule.figure(best))
            lost[name] = lost.get(name, found) if rule.reason == "quality" else found
        alive &= ~beaten
        if rule.reason == "quality" and limits.quality is None:
            tied = [kept[best], *(kept[row] for row in np.flatnonzero(alive).tolist() if row != best)]
    return kept[int(np.flatnonzero(alive)[0])], lost, tied


class ChoiceRule(NamedTuple):
    """A rule with one key per system; smaller keys are better. It excludes keys at least `step` above the best key.

    With a step of 0, every larger key is excluded. `share` is a step relative to the best key. `spared` takes the row
    of the best system and returns the systems that the rule does not exclude.
    """

    reason: Reason
    keys: Floats
    step: float = 0.0
    sign: float = 1.0  # reported value = sign x key
    share: float = 0.0
    spared: Callable[[int], Flags] | None = None

    def sieve(self, alive: Flags) -> tuple[Flags, int]:
        """Return which of the remaining systems the rule excludes, and the row of the best remaining system."""
        rows = np.flatnonzero(alive)
        best = int(rows[self.keys[rows].argmin()])
        if not math.isfinite(self.keys[best]):  # the key is unknown for all remaining systems
            return np.zeros_like(alive), best
        above = self.keys - self.keys[best]
        beaten: Flags = alive & (above > 0) & (above >= max(self.step, self.share * abs(self.keys[best])))
        if self.spared is not None and beaten.any():
            beaten &= ~self.spared(best)
        return beaten, best

    def figure(self, row: int) -> float | None:
        """Return the value of a row to report; None if it is unknown."""
        value = self.sign * float(self.keys[row])
        return value if math.isfinite(value) and self.reason != "name" else None


@dataclass(frozen=True)
class CandidateColumns:
    """Candidates as columns, so that a choice can be repeated quickly with resampled qualities."""

    quality: Floats
    latency: Floats
    cost: Floats
    k: Floats
    tokens: Floats
    inefficiency: Floats
    place: Floats
    names: tuple[str, ...]

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> CandidateColumns:
        """Return the candidates as columns. Unknown values become infinite, so they are never preferred."""

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
            names=tuple(each.name for each in candidates),
        )

    def rules(
        self, quality: Floats, limits: ChoiceLimits, jitter_ms: float, peers: EquivalenceLookup | None = None
    ) -> tuple[ChoiceRule | Undominated, ...]:
        """Return the rules in the order in which they apply. `quality`, shape (candidates,), replaces the
        candidates' own.
        """
        best = ChoiceRule("quality", -round_quality(quality), sign=-1.0)
        ties = (
            ChoiceRule("larger k", self.k),
            ChoiceRule("more tokens", self.tokens, share=0.0 if peers is None else TOKENS_APART),
            ChoiceRule("less efficient", self.inefficiency, sign=-1.0, spared=partial(self._as_fast, jitter_ms)),
        )
        dearer, slower = ChoiceRule("dearer", self.cost), ChoiceRule("slower", self.latency)
        last = ChoiceRule("name", self.place)
        if limits.quality is not None:
            return (slower._replace(step=jitter_ms), dearer, best, *ties, slower, last)
        if peers is None:
            return (best, *ties, dearer, slower, last)
        near = best._replace(spared=partial(self._named, peers))
        return (near, Undominated(self.cost, self.latency, jitter_ms), *ties, dearer, slower, last)

    def _as_fast(self, jitter_ms: float, best: int) -> Flags:
        """Return which candidates have the same latency as `best`, up to the jitter."""
        if not math.isfinite(self.latency[best]):
            return np.isinf(self.latency)
        found: Flags = np.abs(self.latency - self.latency[best]) < jitter_ms
        return found

    def _named(self, peers: EquivalenceLookup, best: int) -> Flags:
        """Return which candidates are statistically equivalent to `best`."""
        named = set(peers(self.names[best]))
        return np.array([name in named for name in self.names], dtype=np.bool_)

    def winner(
        self,
        quality: Floats,
        limits: ChoiceLimits,
        jitter_ms: float,
        alive: Flags | None = None,
        peers: EquivalenceLookup | None = None,
    ) -> int:
        """Return the row of the candidate that remains after all rules.

        The front is ignored. No limit is checked, but a quality target selects the rules.

        Args:
            alive: candidates to choose from, at least one; None: all.
            peers: as in `choose`.
        """
        left = np.ones(quality.size, dtype=np.bool_) if alive is None else alive.copy()
        for rule in self.rules(quality, limits, jitter_ms, peers):
            left &= ~rule.sieve(left)[0]
            if np.count_nonzero(left) == 1:
                break
        return int(left.argmax())


class Undominated(NamedTuple):
    """Excludes a tied system if another tied system is no more expensive and no slower, and is cheaper or faster.

    A latency or cost that is unknown for all tied systems is not compared. Otherwise, an unknown latency or cost may be
    any value. So a system with an unknown value excludes no other system. A system with an unknown cost is excluded
    only by one whose cost is 0. A system with an unknown latency is excluded only by one whose latency is below the
    jitter.
    """

    cost: Floats
    latency: Floats
    jitter_ms: float
    reason: Reason = "tied, costlier"

    def sieve(self, alive: Flags) -> tuple[Flags, int]:
        """Return which of the remaining systems the rule excludes, and the row of a system that excludes others."""
        rows = np.flatnonzero(alive)
        cost, latency = self.cost[rows], self.latency[rows]
        if np.isinf(cost).all():
            cost = np.zeros(rows.size)
        if np.isinf(latency).all():
            latency = np.zeros(rows.size)
        with np.errstate(invalid="ignore"):
            gap = latency[:, None] - latency[None, :]
        known = np.isfinite(latency)[:, None] & np.isfinite(cost)[:, None]
        no_slower = (gap <= 0) | (gap < self.jitter_ms)
        faster = (gap < 0) & (-gap >= self.jitter_ms)
        no_dearer, cheaper = cost[:, None] <= cost[None, :], cost[:, None] < cost[None, :]
        # An unknown cost (or latency) may be 0, so only a cost of 0 (a latency below the jitter) is certainly no worse.
        sure = (np.isfinite(cost)[None, :] | (cost == 0)[:, None]) & (
            np.isfinite(latency)[None, :] | (latency < self.jitter_ms)[:, None]
        )
        beats: Flags = known & sure & no_slower & no_dearer & (faster | cheaper)
        if not beats.any():
            return np.zeros_like(alive), int(rows[0])
        beaten = np.zeros_like(alive)
        beaten[rows[beats.any(axis=0)]] = True
        free = np.flatnonzero(beats.any(axis=1) & ~beats.any(axis=0))
        return beaten, int(rows[free[0] if free.size else 0])

    def figure(self, _: int) -> float | None:
        """Return None: the rule compares two values at once, so no single value is reported."""
        return None


def _inefficiency(candidate: Candidate) -> float | None:
    return None if candidate.latency_ms is None else -efficiency(candidate.quality, candidate.latency_ms)
