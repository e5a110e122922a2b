"""How well a judge behaved, from nothing but what it was shown and what it answered.

Four symptoms, each a share with its 95 % Wilson interval: the first position wins too often; answers contradict
each other in circles; the same batch shown in another order is ordered otherwise; answers are missing. It knows
nothing of utilities, so it holds for any engine; it judges no cause and raises no alarm.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from raggs.ranking.confidence import Z95

Answer = tuple[Sequence[str], Sequence[str] | None]


@dataclass(frozen=True)
class Share:
    """`count` of `total`. `low` to `high` is the 95 % Wilson score interval (Wilson 1927); 0 to 1 of nothing."""

    count: int
    total: int

    @property
    def rate(self) -> float | None:
        """The share, 0 to 1; None of nothing."""
        return self.count / self.total if self.total else None

    @property
    def low(self) -> float:
        return self._bounds()[0]

    @property
    def high(self) -> float:
        return self._bounds()[1]

    def _bounds(self) -> tuple[float, float]:
        if not self.total:
            return 0.0, 1.0
        share, extra = self.count / self.total, Z95**2 / self.total
        middle = share + extra / 2
        half = Z95 * math.sqrt(share * (1 - share) / self.total + extra / (4 * self.total))
        low, high = (middle - half) / (1 + extra), (middle + half) / (1 + extra)
        return (0.0 if self.count == 0 else low), (1.0 if self.count == self.total else high)


@dataclass(frozen=True)
class JudgeHealth:
    """Symptoms of a judge.

    Attributes:
        invalid: batches without an answer, of all.
        first_wins: answered batches that the passage shown first won.
        fair_first: the share of those that a judge without a liking for places would give: the mean of 1 / size.
        cycles: triples whose three pairs were all decided by majority and run in a circle. A random judge makes
            a quarter of them so; an untiring one none.
        flips: pairs ordered otherwise when the same passages were shown again, of all pairs of such answers.
    """

    invalid: Share
    first_wins: Share
    fair_first: float | None
    cycles: Share
    flips: Share


def judge_health(batches: Sequence[Answer]) -> JudgeHealth:
    """The health of the judge that gave these answers, one query's or one judge's over many.

    Args:
        batches: (shown, order) in the order of time: passages as presented, and best first; None for no answer.

    Raises:
        ValueError: an order is not a permutation of what was shown.
    """
    answered = [(tuple(shown), tuple(order)) for shown, order in batches if order is not None]
    for shown, order in answered:
        if len(set(shown)) != len(shown) or sorted(shown) != sorted(order):
            raise ValueError(f"not a permutation of what was shown: {', '.join(order) or 'nothing'}")
    choices = [(shown, order) for shown, order in answered if len(shown) > 1]
    orders = [order for _, order in choices]
    return JudgeHealth(
        invalid=Share(len(batches) - len(answered), len(batches)),
        first_wins=Share(sum(shown[0] == order[0] for shown, order in choices), len(choices)),
        fair_first=sum(1 / len(order) for order in orders) / len(orders) if orders else None,
        cycles=_cycles(orders),
        flips=_flips(orders),
    )


def _flips(orders: Iterable[tuple[str, ...]]) -> Share:
    """Each answer against the one before it to the same passages."""
    last: dict[frozenset[str], tuple[str, ...]] = {}
    flipped = pairs = 0
    for order in orders:
        before = last.get(frozenset(order))
        last[frozenset(order)] = order
        if before is not None:
            place = {name: position for position, name in enumerate(before)}
            flipped += sum(place[a] > place[b] for a, b in itertools.combinations(order, 2))
            pairs += math.comb(len(order), 2)
    return Share(flipped, pairs)


def _cycles(orders: Iterable[tuple[str, ...]]) -> Share:
    """Triples that run in a circle, of those whose pairs are all decided.

    Seen from its middle, an orderly triple is met once, a circle three times.
    """
    below = _majorities(orders)
    above: dict[str, set[str]] = {}
    for winner, losers in below.items():
        for loser in losers:
            above.setdefault(loser, set()).add(winner)
    circular = chains = 0
    for middle, losers in below.items():
        for winner in above.get(middle, ()):
            circular += sum(winner in below.get(loser, ()) for loser in losers)
            chains += sum(loser in below[winner] for loser in losers)
    return Share(circular // 3, circular // 3 + chains)


def _majorities(orders: Iterable[tuple[str, ...]]) -> dict[str, set[str]]:
    """Who beat whom more often than the reverse."""
    wins = Counter(pair for order in orders for pair in itertools.combinations(order, 2))
    below: dict[str, set[str]] = {}
    for (winner, loser), count in wins.items():
        if count > wins[loser, winner]:
            below.setdefault(winner, set()).add(loser)
    return below
