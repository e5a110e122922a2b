"""Which passages a person should read so that the verdicts, one system above another, become sure soonest.

A verdict is open as far as all labels by people would turn what the labels say as they stand. What a passage may turn
is how far its label moves the difference of two systems, over the standard error that all unread labels leave it, times
the probability of that label; summed over the verdicts by how open each is. The best for their seconds are taken
a block at a time, and what is open is looked at again after each: a verdict that is settled draws no more reading.

Labels are taken to be wrong independently, and effects to add up; both are approximations, which a new plan after
some reading makes good.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from raggs.base.arrays import Flags, Floats, Ints

BLOCKS = 20
SURE = 0.95


@dataclass(frozen=True)
class Outlook:
    """How sure the verdicts are, an entry for each pair of systems and measure.

    Attributes:
        turned: shape (measures, systems, systems), the probability that all labels by people would turn the verdict
            of the labels as they stand, or are expected to stand.
        sure: shape (measures,), of how many verdicts that is at most 5%, or is expected to be.
        verdicts: how many there are of each measure.
    """

    turned: Floats
    sure: Floats
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
    def differences(self) -> Floats:
        """Shape (measures, systems, systems): the first system's mean less the second's, as the labels stand."""
        return _differences(self.now.T)

    @cached_property
    def expected(self) -> Floats:
        """Shape (measures, systems, systems): the same by the labels that people are expected to give."""
        found: Floats = self.differences + self.moved()
        return found

    def moved(self, items: Flags | Ints | None = None) -> Floats:
        """Shape (measures, systems, systems): how people's labels of some items, or of all, are expected to move it."""
        chosen = slice(None) if items is None else items
        return _differences(np.einsum("pg,pgsm->ms", self.beliefs[chosen], self.effects[chosen]) / self.queries)

    def variance(self, items: Flags | Ints | None = None) -> Floats:
        """Shape (measures, systems, systems): of the differences, by the labels of some items, or of all."""
        chosen = slice(None) if items is None else items
        effects, beliefs = self.effects[chosen], self.beliefs[chosen]
        products = np.einsum("pg,pgsm,pgtm->mst", beliefs, effects, effects, optimize=True)
        own = np.einsum("mss->ms", products)
        spread = own[:, :, None] + own[:, None, :] - 2 * products
        found: Floats = np.maximum(spread, 0.0) / self.queries**2
        return found

    def worth(self, left: Floats, stands: Floats) -> Floats:
        """Shape (items,): what reading an item does for all verdicts.

        Args:
            left: shape (measures, systems, systems), the variance that unread labels leave.
            stands: the same shape, the differences as the labels stand.
        """
        weights = self._weights(left, stands)
        found = np.zeros(len(self.beliefs))
        for measure, one, other in zip(*np.nonzero(weights), strict=True):
            moved = np.abs(self.effects[:, :, one, measure] - self.effects[:, :, other, measure])
            found += weights[measure, one, other] * np.einsum("pg,pg->p", self.beliefs, moved)
        return found / self.queries

    def _weights(self, left: Floats, stands: Floats) -> Floats:
        """Shape (measures, systems, systems): how open each verdict is, over its standard error; each pair once."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(left > 0, _turned(stands, self.expected, left) / np.sqrt(left), 0.0)
        return np.triu(found, 1)

    def pulls(self, items: Ints) -> Ints:
        """Shape (items chosen, 3): measure, system and system of the verdict that each of some items does most for."""
        weights = self._weights(self.variance(), self.differences)
        found = np.empty((len(items), 3), dtype=np.int64)
        for row, item in enumerate(items.tolist()):
            effects = self.effects[item].transpose(0, 2, 1)
            moved = effects[:, :, :, None] - effects[:, :, None, :]
            gain = weights * np.einsum("g,gmst->mst", self.beliefs[item], np.abs(moved))
            found[row] = np.unravel_index(int(gain.argmax()), gain.shape)
        return found

    def outlook(self, read: Flags | Ints | None = None) -> Outlook:
        """How sure verdicts are now, or are expected to be once some items are read."""
        total = self.variance()
        gone = np.zeros_like(total) if read is None else np.minimum(self.variance(read), total)
        stands = self.differences if read is None else self.differences + self.moved(read)
        left = total - gone
        upper = np.triu_indices(total.shape[1], 1)
        needed = ndtri(SURE) * np.sqrt(left)
        # Reading moves the expected difference by a normal deviate whose variance is what it takes away.
        with np.errstate(divide="ignore", invalid="ignore"):
            above = ndtr((self.expected - needed) / np.sqrt(gone)) + ndtr((-self.expected - needed) / np.sqrt(gone))
        sure = np.where(gone > 0, np.minimum(above, 1.0), np.sign(stands) * self.expected >= needed)
        pairs = sure[:, upper[0], upper[1]]
        return Outlook(_turned(stands, self.expected, left), pairs.sum(axis=1).astype(np.float64), pairs.shape[1])


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
    stands = impact.differences + impact.moved(~free)
    step, rest = budget / blocks, budget
    while rest > 0 and free.any():
        worth = np.where(free, impact.worth(left, stands), 0.0)
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
        stands = stands + impact.moved(block)


def _differences(means: Floats) -> Floats:
    """Shape (measures, systems, systems), of means of shape (measures, systems)."""
    found: Floats = means[:, :, None] - means[:, None, :]
    return found


def _turned(stands: Floats, expected: Floats, left: Floats) -> Floats:
    """The probability that the true difference lies on the other side of 0 than the one that stands."""
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.sign(stands) * expected / np.sqrt(left)
    certain = np.where(np.sign(stands) * expected < 0, 1.0, 0.0)
    found: Floats = np.where(left > 0, ndtr(-np.nan_to_num(distance)), certain)
    return found
