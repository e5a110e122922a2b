"""The same list ordered again: how far a judge agrees with itself, where in the list, and what the place shown did.

Run-to-run disagreement is the share of all pairs that two orders of the same passages put the other way round, and
Kendall's tau is 1 - 2 of it ("Practical RAG Evaluation", 2025, section 3.4.1: 3 to 5% for identical inputs). A
coin has a half.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints


@dataclass(frozen=True)
class Told:
    """One order of some passages.

    Attributes:
        shown: shape (n,): the passages, as numbers from 0, in the order in which they were shown.
        order: shape (n,): the same, best first.
    """

    shown: Ints
    order: Ints

    @classmethod
    def of(cls, shown: Sequence[str], order: Sequence[str]) -> Told:
        """From ids.

        Raises:
            ValueError: an id stands twice, or they are not the same ids.
        """
        numbers = {name: number for number, name in enumerate(sorted(shown))}
        if len(numbers) != len(shown) or sorted(order) != sorted(shown):
            raise ValueError("an order holds each passage that was shown exactly once")
        return cls(*(np.array([numbers[name] for name in names], dtype=np.int64) for names in (shown, order)))

    @property
    def alike(self) -> bytes:
        """Equal where the same was shown in the same order."""
        return self.shown.tobytes()


@dataclass(frozen=True)
class Turned:
    """Pairs that came out otherwise where they were shown the other way round.

    Attributes:
        toward, away: whose earlier one won both times, and whose later one did; a fair judge has as many of each.
    """

    toward: int
    away: int

    @property
    def share(self) -> float:
        """Of those that turned, where the earlier one won; NaN where none did."""
        both = self.toward + self.away
        return self.toward / both if both else math.nan


def disagreement(first: Told, second: Told) -> float:
    """The share of pairs in another order, 0..1; NaN below two passages."""
    size = len(first.order)
    if size < 2:
        return math.nan
    return float((_before(first.order) != _before(second.order)).sum() / (size * (size - 1)))


def mean_disagreement(orders: Sequence[Told], *, same: bool) -> float:
    """Over all pairs of orders: of one showing where `same`, else of two; NaN without such a pair."""
    pairs = [pair for pair in combinations(orders, 2) if (pair[0].alike == pair[1].alike) == same]
    return float(np.mean([disagreement(*pair) for pair in pairs])) if pairs else math.nan


def mean_overlap(orders: Sequence[Told], k: int, *, same: bool) -> float:
    """The share of the first `k` that two orders have in common, over pairs of orders as in `mean_disagreement`."""
    pairs = [pair for pair in combinations(orders, 2) if (pair[0].alike == pair[1].alike) == same]
    tops = [[set(each.order[:k].tolist()) for each in pair] for pair in pairs]
    return float(np.mean([len(one & other) / max(1, len(one)) for one, other in tops])) if tops else math.nan


def neighbours_kept(first: Told, second: Told) -> Flags:
    """Shape (n - 1,): whether the passages at places i and i + 1 of the first stand in that order in the second."""
    rank = np.argsort(second.order)
    return np.asarray(rank[first.order[:-1]] < rank[first.order[1:]])


def kept_by_place(pairs: Sequence[tuple[Told, Told]], ends: Sequence[int]) -> Floats:
    """How often neighbours are kept, by where they stand in the first order of each pair; NaN of an empty part.

    Args:
        pairs: of orders.
        ends: the last place of each part, rising; the first part begins at place 1.
    """
    kept = [neighbours_kept(first, second) for first, second in pairs]
    none = np.zeros(0, dtype=np.bool_)
    parts = [np.concatenate([none, *(row[low:high] for row in kept)]) for low, high in _spans(ends)]
    return np.array([float(part.mean()) if part.size else math.nan for part in parts])


def turned(orders: Sequence[Told]) -> Turned:
    """Pairs of passages that turned between showings, over all pairs of orders that showed them the other way round."""
    toward = away = 0
    for first, second in combinations(orders, 2):
        shown, other = _before(first.shown), _before(second.shown)
        one, two = _before(first.order), _before(second.order)
        swapped = np.triu((shown != other) & (one != two), 1)
        followed = int((swapped & (one == shown)).sum())
        toward, away = toward + followed, away + int(swapped.sum()) - followed
    return Turned(toward, away)


def _before(order: Ints) -> Flags:
    """Shape (n, n): whether one passage stands before another."""
    rank = np.argsort(order)
    return np.asarray(rank[:, None] < rank[None, :])


def _spans(ends: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip([0, *ends[:-1]], ends, strict=True))
