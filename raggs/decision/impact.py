"""Which passages a person should read so that the verdicts, one system above another, become sure soonest.

A verdict is open as far as people's labels could turn it. What a passage may turn is the square of what its label
moves the difference of two systems by, over the variance that all unread labels leave it, times the probability of that
label; summed over the verdicts by how open each is. The best for their seconds are taken a block at a time, and what
is open is looked at again after each: a verdict that is settled draws no more reading.

Labels are taken to be wrong independently, and effects to add up; both are approximations, which a new plan after
some reading makes good.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from raggs.arrays import Flags, Floats, Ints

BLOCKS = 20
SURE = 0.95


@dataclass(frozen=True)
class Outlook:
    """How sure the verdicts are, an entry for each pair of systems and measure.

    Attributes:
        turned: shape (measures, systems, systems), the probability that all labels by people would turn the verdict
            of the labels that are expected now; 0.5 at most.
        sure: how many verdicts are at most 5 % from that, or are expected to be.
        verdicts: how many there are.
    """

    turned: Floats
    sure: float
    verdicts: int


@dataclass(frozen=True)
class Impact:
    """What people's labels can change.

    Attributes:
        now: shape (systems, measures), means as the labels stand.
        effects: shape (items, grades, systems, measures), what a label of an item changes in the value of its query.
        beliefs: shape (items, grades), the probability of each label.
        queries: that means are over.
    """

    now: Floats
    effects: Floats
    beliefs: Floats
    queries: int

    @cached_property
    def expected(self) -> Floats:
        """Shape (measures, systems, systems): the differences of means that all labels by people are expected to give.

        The first system's less the second's.
        """
        moved = np.einsum("pg,pgsm->sm", self.beliefs, self.effects) / self.queries
        means = (self.now + moved).T
        found: Floats = means[:, :, None] - means[:, None, :]
        return found

    def variance(self, items: Flags | Ints | None = None) -> Floats:
        """Shape (measures, systems, systems): of the differences, by the labels of some items, or of all."""
        chosen = slice(None) if items is None else items
        effects, beliefs = self.effects[chosen], self.beliefs[chosen]
        products = np.einsum("pg,pgsm,pgtm->mst", beliefs, effects, effects, optimize=True)
        own = np.einsum("mss->ms", products)
        spread = own[:, :, None] + own[:, None, :] - 2 * products
        found: Floats = np.maximum(spread, 0.0) / self.queries**2
        return found

    def worth(self, left: Floats) -> Floats:
        """Shape (items,): what reading an item does for all verdicts.

        Args:
            left: shape (measures, systems, systems), the variance that unread labels leave.
        """
        weights = _openness(self.expected, left)
        # Sums over pairs of squared differences are quadratic forms of one Laplacian a measure.
        laplacian = np.einsum("ms,st->mst", weights.sum(axis=2), np.eye(weights.shape[1])) - weights
        moved = np.einsum("pgsm,mst->pgtm", self.effects, laplacian, optimize=True)
        found: Floats = np.einsum("pg,pgtm,pgtm->p", self.beliefs, moved, self.effects, optimize=True)
        return np.maximum(found, 0.0) / self.queries**2

    def outlook(self, read: Flags | Ints | None = None) -> Outlook:
        """How sure verdicts are now, or are expected to be once some items are read."""
        total = self.variance()
        gone = np.zeros_like(total) if read is None else np.minimum(self.variance(read), total)
        left = total - gone
        turned = _turned(self.expected, total if read is None else left)
        upper = np.triu_indices(total.shape[1], 1)
        needed = _quantile(SURE) * np.sqrt(left)
        # Reading moves the expected difference by a normal deviate whose variance is what it takes away.
        with np.errstate(divide="ignore", invalid="ignore"):
            above = ndtr((self.expected - needed) / np.sqrt(gone)) + ndtr((-self.expected - needed) / np.sqrt(gone))
        sure = np.where(gone > 0, np.minimum(above, 1.0), np.abs(self.expected) >= needed)
        pairs = sure[:, upper[0], upper[1]]
        return Outlook(turned, float(pairs.sum()), pairs.size)


@dataclass(frozen=True)
class Pick:
    """An item to read: its number, and its worth to the verdicts when it was chosen, in 0 and up."""

    item: int
    worth: float


def choose(impact: Impact, seconds: Floats, budget: float, taken: Ints, blocks: int = BLOCKS) -> Iterator[Pick]:
    """The items to read, best for their time first.

    Args:
        impact: of all items.
        seconds: shape (items,), above 0, that reading each takes.
        budget: seconds in all; an item that would go beyond it is passed over.
        taken: items that are read in any case, and cost nothing here.
        blocks: how often what is open is looked at again.

    Yields:
        Items, none of `taken`; those that can change no verdict never.
    """
    free = np.ones(len(seconds), dtype=bool)
    free[taken] = False
    left = np.maximum(impact.variance() - impact.variance(~free), 0.0)
    step, rest = budget / blocks, budget
    while rest > 0 and free.any():
        worth = np.where(free, impact.worth(left), 0.0)
        rate = worth / seconds
        order = np.argsort(-rate, kind="stable")
        order = order[(worth[order] > 0) & (seconds[order] <= rest)]
        spent = np.cumsum(seconds[order])
        block = order[: max(1, int(np.searchsorted(spent, min(step, rest), side="right")))]
        if not len(block):
            return
        yield from (Pick(int(item), float(worth[item])) for item in block)
        free[block] = False
        rest -= float(seconds[block].sum())
        left = np.maximum(left - impact.variance(block), 0.0)


def _openness(expected: Floats, left: Floats) -> Floats:
    """Shape (measures, systems, systems): how open each verdict is, over its variance; each pair stands twice."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(left > 0, _turned(expected, left) / left, 0.0)


def _turned(expected: Floats, left: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.abs(expected) / np.sqrt(left)
    return np.where(left > 0, ndtr(-np.nan_to_num(distance, posinf=np.inf)), 0.0)


def _quantile(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))
