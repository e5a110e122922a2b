"""One system out of many, and for each other one the rule that put it aside.

Dallaire, "Practical RAG Evaluation", 2025, section 3.3: keep what holds the limits, discard what is dominated among
that, then either take the best quality (limits on latency or cost), or, where a quality is to be reached, the fastest,
then the cheapest. Ties go to the smaller K, then to fewer tokens; efficiency ranks "near-frontier peers". Limits come
first: a system may be dominated by one that is not allowed.

"Near" is told by the caller, who has values by query: `EquivalenceLookup` names the systems that are statistically
equivalent to the best one. Means alone cannot tell; without `EquivalenceLookup` only equal means are tied. Whether a
difference is more than noise is not judged here either, see `raggs.stats.resampling.find_winners`.
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

EquivalenceLookup = Callable[
    [str], Collection[str]
]  # the systems that are statistically equivalent to the one of this name
TOKENS_APART = 0.05  # share by which a prompt is longer from which that decides between tied systems

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
    """What a system must hold; None where anything goes.

    Attributes:
        latency_ms: at most that, for 95% of single queries (`Candidate.tail_ms`).
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


NO_LIMITS = ChoiceLimits()


@dataclass(frozen=True)
class Exclusion:
    """Why a system was not chosen.

    Attributes:
        name: of the system.
        reason: "latency", "cost", "target": it breaks that limit, or what is limited is unknown of it; "dominated";
            "tied, costlier": statistically equivalent to the best, but another one of these is no dearer and no slower,
            and cheaper or faster; else the rule by which it lost to the winner or to one that lost later.
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
        best: the system of the best quality among those that hold the limits; None if a quality is to be reached.
        tied: the systems that are tied with `best`, itself among them, in the order of the candidates.
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
    """From this limit on (ms, or USD for 1,000 queries), and until the next turn, this system is the best allowed."""

    limit: float
    winner: str


def choose(
    candidates: Sequence[Candidate],
    limits: ChoiceLimits = NO_LIMITS,
    jitter_ms: float = JITTER_MS,
    peers: EquivalenceLookup | None = None,
) -> Choice:
    """The system to ship under the limits.

    Args:
        candidates: in any order; the first quality decides, the others count in the front and in `peers` alone.
        limits: a system whose latency or cost is unknown does not hold a limit on it.
        jitter_ms: latencies closer than that are equal, in the front, among tied systems and under a target; not before
            a limit.
        peers: names the systems that are statistically equivalent to another one; None: only equal means are tied.

    Raises:
        ValueError: as `find_front`.
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
    """How the choice changes hands as the limit on one axis is raised from 0.

    Systems of unknown latency (or cost) are left out. Without `peers`, quality rises from turn to turn, or a
    tie-breaker does.

    Args:
        candidates: in any order.
        axis: whose limit is raised.
        limits: the one on the other axis is held; the one on this axis, and a quality to be reached, are not looked at.
        jitter_ms, peers: as in `choose`.

    Raises:
        ValueError: as `find_front`.
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
    """The first limit that a system does not hold."""
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
    """The winner, why the others lost, and the systems tied with the best, that one first."""
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
    """A rule as keys, smaller is better; keys at least `step` above the best fall through (above it, if step is 0).

    `share`: a step as a share of the best key. `spared`: of the best row, whom the rule does not put aside.
    """

    reason: Reason
    keys: Floats
    step: float = 0.0
    sign: float = 1.0  # the figure that people know is sign x key
    share: float = 0.0
    spared: Callable[[int], Flags] | None = None

    def sieve(self, alive: Flags) -> tuple[Flags, int]:
        """Whom the rule puts aside of those alive, and the best row."""
        rows = np.flatnonzero(alive)
        best = int(rows[self.keys[rows].argmin()])
        if not math.isfinite(self.keys[best]):  # unknown of all that are alive
            return np.zeros_like(alive), best
        above = self.keys - self.keys[best]
        beaten: Flags = alive & (above > 0) & (above >= max(self.step, self.share * abs(self.keys[best])))
        if self.spared is not None and beaten.any():
            beaten &= ~self.spared(best)
        return beaten, best

    def figure(self, row: int) -> float | None:
        """A row's figure as people know it; None where it is unknown."""
        value = self.sign * float(self.keys[row])
        return value if math.isfinite(value) and self.reason != "name" else None


@dataclass(frozen=True)
class CandidateColumns:
    """Candidates as columns, to be chosen from again and again with other qualities."""

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
            names=tuple(each.name for each in candidates),
        )

    def rules(
        self, quality: Floats, limits: ChoiceLimits, jitter_ms: float, peers: EquivalenceLookup | None = None
    ) -> tuple[ChoiceRule | Undominated, ...]:
        """The rules in their order, with `quality` of shape (candidates,) in place of the candidates' own."""
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
        """Which candidates count as being as fast as one?"""
        if not math.isfinite(self.latency[best]):
            return np.isinf(self.latency)
        found: Flags = np.abs(self.latency - self.latency[best]) < jitter_ms
        return found

    def _named(self, peers: EquivalenceLookup, best: int) -> Flags:
        """Which candidates are statistically equivalent to one?"""
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
        """The row that all rules leave, without a look at limits or front.

        Args:
            alive: among whom, at least one; all where None.
            peers: as in `choose`.
        """
        left = np.ones(quality.size, dtype=np.bool_) if alive is None else alive.copy()
        for rule in self.rules(quality, limits, jitter_ms, peers):
            left &= ~rule.sieve(left)[0]
            if np.count_nonzero(left) == 1:
                break
        return int(left.argmax())


class Undominated(NamedTuple):
    """The rule that puts tied systems aside of which another one is no dearer and no slower, and cheaper or faster.

    What is unknown may be anything: it puts nothing aside, and is put aside by what costs nothing alone.
    """

    cost: Floats
    latency: Floats
    jitter_ms: float
    reason: Reason = "tied, costlier"

    def sieve(self, alive: Flags) -> tuple[Flags, int]:
        """Whom the rule puts aside of those alive, and one that does so."""
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
        # An unknown cost or latency, shown as infinite, may be 0: only what is 0 itself is surely no worse than that.
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
        """Two figures decide, so none is told."""
        return None


def _inefficiency(candidate: Candidate) -> float | None:
    return None if candidate.latency_ms is None else -efficiency(candidate.quality, candidate.latency_ms)
