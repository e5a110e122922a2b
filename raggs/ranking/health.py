"""Is the judge fit to order passages? Read off the batches that it ordered, without asking anything more.

- First-position rate: how often the passage shown first wins. A judge that reads fairly wins there once in m, the
  size of the batch; presentation is shuffled, so nothing else can tilt it.
- Flip rate: where the same passages were shown again in another order, the share of their pairs that changed places.
  An engine asks again what it doubts most, so these are close pairs: a sound judge turns a third or more of them, one
  that guesses turns half. So does any judge where the pool holds ties, which is why a sharp one is not warned about.
- Cycle rate: of the triples whose three pairs all have a majority, the share that go round (A over B over C over A).
- Invalid rate: of the batches asked, how many came back without an order.
- Sharpness, echo and position bias: what the engine that learned from the orders found out about the judge. An echo
  far from 0 is a misfit: repeated pairs agree with each other more than a judge of independent errors would.

Intervals are Wilson's score intervals (Wilson, 1927) at 95 %; a rate over nothing is NaN with the interval 0 to 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

Z95 = 1.959964
Batch = tuple[Sequence[str], Sequence[str] | None]

TILT = 1.5  # a first-position rate this many times what is fair, beyond doubt, is worth a warning
INVALID = 0.05
FLIPS = 0.45  # of close pairs; 0.5 is a coin
CYCLES = 0.15  # under an engine that asks for close pairs, coins make a fifth, a judge of sharpness 1.5 an eighth
ECHO = 0.2
FINDINGS = ("sharpness", "echo", "position_bias", "expected_inversions")  # means over queries, where an engine tells
SHARP = 1.5  # from here on, close pairs that flip are ties of the pool and no fault of the judge
BLUNT = 1.0  # a sharpness that tells a grade apart less often than three times in four


@dataclass(frozen=True)
class Rate:
    """`count` of `total`, with its 95 % interval."""

    count: int
    total: int

    @property
    def value(self) -> float:
        return self.count / self.total if self.total else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval, within 0..1."""
        if not self.total:
            return 0.0, 1.0
        share, square = self.count / self.total, Z95**2 / self.total
        centre = (share + square / 2) / (1 + square)
        half = Z95 / (1 + square) * math.sqrt(share * (1 - share) / self.total + square / (4 * self.total))
        return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True)
class JudgeHealth:
    """Four rates over all batches of a run, and four means over its queries.

    Attributes:
        first: batches won by the passage shown first, of those ordered.
        fair_first: the rate that a fair judge would have there (the mean of 1 / m).
        flips: pairs that changed places when the same passages were shown again, of all pairs of such batches.
        cycles: triples that go round, of those whose pairs all have a majority.
        invalid: batches without an order, of those asked.
        sharpness: the mean of the estimates; None where no engine made one, as for the next.
        echo: the mean correlation of the judge's errors when it meets a pair again.
        position_bias: what a passage gains on average by being shown first rather than last, in grades.
        expected_inversions: the mean number of wrongly ordered pairs expected inside the top.
    """

    first: Rate
    fair_first: float
    flips: Rate
    cycles: Rate
    invalid: Rate
    sharpness: float | None = None
    echo: float | None = None
    position_bias: float | None = None
    expected_inversions: float | None = None

    def summary(self) -> dict[str, object]:
        """Plain values for a manifest: each rate with its interval and counts, null where there is nothing to rate."""
        rates = {"first": self.first, "flips": self.flips, "cycles": self.cycles, "invalid": self.invalid}
        found: dict[str, object] = {
            name: {
                "rate": round(rate.value, 4) if rate.total else None,
                "interval": [round(bound, 4) for bound in rate.interval],
                "count": rate.count,
                "total": rate.total,
            }
            for name, rate in rates.items()
        }
        found["fair_first"] = None if math.isnan(self.fair_first) else round(self.fair_first, 4)
        for name in FINDINGS:
            value = getattr(self, name)
            found[name] = None if value is None else round(value, 4)
        found["warnings"] = self.warnings()
        return found

    def warnings(self) -> list[str]:
        """What a person should look into, in sentences; a rate warns only when its whole interval does."""
        found = []
        if self.first.interval[0] > TILT * self.fair_first:
            share, fair = self.first.value, self.fair_first
            found.append(f"the passage shown first wins {share:.0%} of the batches, {fair:.0%} would be fair")
        if self.flips.interval[0] > FLIPS and (self.sharpness is None or self.sharpness < SHARP):
            found.append(f"{self.flips.value:.0%} of the pairs change places when shown again; a coin turns half")
        if self.cycles.interval[0] > CYCLES:
            found.append(f"{self.cycles.value:.0%} of triples go round in a circle")
        if self.invalid.interval[0] > INVALID:
            found.append(f"{self.invalid.value:.0%} of the batches came back without an order")
        if self.sharpness is not None and self.sharpness < BLUNT:
            found.append(
                f"the judge is blunt (sharpness {self.sharpness:.1f}): it puts the better of two passages that lie a "
                f"grade apart first only {grade_apart(self.sharpness):.0%} of the time"
            )
        if self.echo is not None and self.echo > ECHO:
            found.append(
                f"the judge repeats its own errors (echo {self.echo:.2f}): asking it again teaches little, and ranks "
                "are less sure than their intervals say"
            )
        return found


def grade_apart(sharpness: float) -> float:
    """The chance that a judge of this sharpness puts the better of two passages that lie one grade apart first."""
    return 1.0 / (1.0 + math.exp(-sharpness))


@dataclass
class _Mean:
    total: float = 0.0
    count: int = 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self.total, self.count = self.total + value, self.count + 1

    @property
    def value(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass
class HealthCounts:
    """What a judge's batches come to, gathered query by query: memory does not grow with the queries."""

    asked: int = 0
    ordered: int = 0
    first: int = 0
    fair: float = 0.0  # the sum over all batches
    flips: int = 0
    pairs: int = 0
    cycles: int = 0
    triples: int = 0
    found: dict[str, _Mean] = field(default_factory=lambda: {name: _Mean() for name in FINDINGS})

    def find(self, findings: Mapping[str, float | None]) -> None:
        """Take in what an engine found out on one query, by the names in `FINDINGS`; None where it does not tell."""
        for name, value in findings.items():
            self.found[name].add(value)

    def add(self, query: Sequence[Batch]) -> None:
        """Count all batches of one query: passages in the order shown, and best first (None where the judge failed)."""
        answered = [(shown, order) for shown, order in query if order is not None]
        self.asked += len(query)
        self.ordered += len(answered)
        self.first += sum(order[0] == shown[0] for shown, order in answered)
        self.fair += sum(1 / len(shown) for shown, _ in answered)
        wins = Counter(pair for _, order in answered for pair in combinations(order, 2))
        for changed, together in _flips(query):
            self.flips, self.pairs = self.flips + changed, self.pairs + together
        for circular in _triples(wins):
            self.cycles, self.triples = self.cycles + circular, self.triples + 1

    def health(self) -> JudgeHealth:
        """The rates over the queries so far."""
        return JudgeHealth(
            Rate(self.first, self.ordered),
            self.fair / self.ordered if self.ordered else math.nan,
            Rate(self.flips, self.pairs),
            Rate(self.cycles, self.triples),
            Rate(self.asked - self.ordered, self.asked),
            **{name: mean.value for name, mean in self.found.items()},
        )


def judge_health(queries: Iterable[Sequence[Batch]]) -> JudgeHealth:
    """The health of one judge over the batches of many queries, read in one pass (see `HealthCounts.add`)."""
    counts = HealthCounts()
    for query in queries:
        counts.add(query)
    return counts.health()


def _flips(batches: Sequence[Batch]) -> Iterator[tuple[int, int]]:
    """For each batch shown again, in whatever order: pairs that changed places since the last time, and all pairs."""
    last: dict[frozenset[str], Sequence[str]] = {}
    for _, order in batches:
        if order is None:
            continue
        before = last.get(frozenset(order))
        last[frozenset(order)] = order
        if before is not None:
            place = {name: position for position, name in enumerate(before)}
            changed = sum(place[better] > place[worse] for better, worse in combinations(order, 2))
            yield changed, math.comb(len(order), 2)


def _triples(wins: Counter[tuple[str, str]]) -> Iterator[bool]:
    """For each triple with three majorities, whether it is a circle."""
    beats: dict[str, set[str]] = {}
    for (winner, loser), count in wins.items():
        if count > wins[loser, winner]:
            beats.setdefault(winner, set()).add(loser)
    for first, below in beats.items():
        for second in below:
            for third in beats.get(second, ()):
                if third in below:
                    yield False
                elif first in beats.get(third, ()) and first == min(first, second, third):
                    yield True
