"""Expectations over ties that are not sums: first hits, all hits, average precision.

Every order of the passages of a tie group is equally likely (McSherry and Najork 2008).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.metrics import weights as w
from raggs.metrics.hits import Hits, group_starts, per_query


class Groups(NamedTuple):
    """The tie groups that hold relevant passages, by query and position.

    `above`: passages of the list before the group; `size`: its passages; `good`: its relevant ones; `slots`: its
    positions within the cutoff. Each of shape (groups,).
    """

    query: Ints
    above: Ints
    size: Ints
    good: Ints
    slots: Ints


def relevant_groups(hits: Hits, good: Flags, k: int) -> Groups:
    """The groups with at least one row of `good` (shape (n,))."""
    order = np.lexsort((hits.start[good], hits.query[good]))
    query, start, size = (column[good][order] for column in (hits.query, hits.start, hits.size))
    rows = group_starts(query, start)
    held = np.diff(np.append(rows, len(order)))
    query, start, size = query[rows], start[rows], size[rows]
    return Groups(query, start, size, held, np.clip(k - start, 0, size))


def none_within(hits: Hits, good: Flags, k: int) -> Floats:
    """Shape (queries,): the probability that no relevant passage is within the cutoff."""
    groups = relevant_groups(hits, good, k)
    return _product(hits, groups.query, _draws(groups.size - groups.good, groups.size, groups.slots))


def all_within(hits: Hits, good: Flags, k: int) -> Floats:
    """Shape (queries,): the probability that all retrieved relevant passages are within the cutoff."""
    groups = relevant_groups(hits, good, k)
    return _product(hits, groups.query, _draws(groups.slots, groups.size, groups.good))


def expected_reciprocal_rank(hits: Hits, good: Flags, k: int) -> Floats:
    """Shape (queries,): the mean of 1 / rank of the first relevant passage, 0 behind the cutoff."""
    groups = relevant_groups(hits, good, k)
    first = np.ones(len(groups.query), dtype=bool)
    first[1:] = groups.query[1:] != groups.query[:-1]
    query, above, size, held, slots = (column[first] for column in groups)
    total = np.zeros(len(hits.length))
    missed = np.ones(len(query))  # the probability that the positions so far hold no relevant passage
    place = 0
    while (open_ := np.flatnonzero((slots > place) & (missed > 0))).size:
        query, above, size, held, slots = (column[open_] for column in (query, above, size, held, slots))
        missed = missed[open_]
        total[query] += missed * held / (size - place) / (above + place + 1)
        missed = missed * (size - held - place) / (size - place)
        place += 1
    return total


def expected_precision_sum(hits: Hits, good: Flags, k: int) -> Floats:
    """Shape (queries,): the mean of the sum of precision@rank over relevant passages within the cutoff.

    At the t-th position of a group stands a relevant passage with p = r/s; then R + 1 + t (r-1)/(s-1) relevant ones
    stand at or above it in the mean. The sum over t of (a + b t) / (c + 1 + t) is written by harmonic numbers.
    """
    groups = relevant_groups(hits, good, k)
    before = np.cumsum(groups.good) - groups.good
    earlier = before - before[np.searchsorted(groups.query, groups.query)]
    slope = (groups.good - 1) / np.maximum(groups.size - 1, 1)
    end = groups.above + groups.slots
    harmonic = w.cumulative(lambda ranks: 1.0 / ranks, int(end.max(initial=0)))
    span = harmonic[end] - harmonic[np.minimum(groups.above, end)]
    summed = slope * groups.slots + (earlier + 1 - slope * (groups.above + 1)) * span
    return per_query(hits, groups.query, groups.good / groups.size * summed)


def _draws(marked: Ints, size: Ints, drawn: Ints) -> Floats:
    """The probability that all of `drawn` draws without return from `size` are among the `marked`."""
    chance = np.ones(len(size))
    for turn in range(int(drawn.max(initial=0))):
        chance *= np.where(turn < drawn, np.maximum(marked - turn, 0) / np.maximum(size - turn, 1), 1.0)
    return chance


def _product(hits: Hits, query: Ints, chance: Floats) -> Floats:
    total = np.ones(len(hits.length))
    np.multiply.at(total, query, chance)
    return total
