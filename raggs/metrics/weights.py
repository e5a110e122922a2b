"""Shared functions of measures: weights by grade, best possible sums, averages over tied ranks.

Tables have the shape (queries, grades) or (grades,), with grades ascending as in the scale.

Most measures are sums over ranks, and their mean over ties follows from `mean_worth`. The other functions for ties
(first relevant passage, all relevant passages, average precision) treat every order within a tie group as equally
likely (McSherry and Najork 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits, group_starts, per_query

Discount = Callable[[Floats], Floats]  # maps ranks (from 1) to the factor of a passage's weight at that rank

UTILITY = np.array([0.0, 0.0, 0.1, 0.5, 1.0])  # utilities b1 .. b5 of the grades 1 to 5
FALLBACK_WEIGHTS = np.array([0.0, 0.0, 0.2, 1.0, 1.0])  # w1 .. w5 if no passage has grade 5
NO_CUTOFF = np.iinfo(np.int64).max  # stands for "no cutoff": larger than any rank


def flat(ranks: Floats) -> Floats:
    """Return 1 for every rank: the discount of set measures, which ignore the order."""
    return np.ones_like(ranks)


def logarithmic(ranks: Floats) -> Floats:
    """Return 1 / log2(rank + 1) (Jaervelin and Kekaelaeinen 2002, in the form used today)."""
    worth: Floats = 1.0 / np.log2(ranks + 1.0)
    return worth


def at_least(qrels: Qrels, grade: int | None) -> Floats:
    """Return 1 for each grade from `grade` (default: the lowest relevant grade), else 0; shape (grades,)."""
    return (qrels.scale.grades() >= (qrels.scale.relevant if grade is None else grade)).astype(np.float64)


def number_of(qrels: Qrels, table: Floats) -> Floats:
    """Return the number of judged passages whose grade has the value 1 in `table`, not 0; shape (queries,)."""
    found: Floats = (qrels.counts * table).sum(axis=1)
    return found


def rarity(counts: Ints, alpha: float = 1.0, cap4: float = 1.0, cap3: float = 0.25) -> Floats:
    """Return the rarity-aware weights w1 .. w5 of each query, shape (queries, 5) (Dallaire 2025, section 2.4).

    With n_g passages of grade g, w_g = min(b_g (n_5 / n_g)^alpha, cap_g). A grade without passages has weight 0. If no
    passage has grade 5, the weights are `FALLBACK_WEIGHTS`.
    """
    counted = counts.astype(np.float64)
    ratio = counted[:, 4:5] / np.maximum(counted, 1.0)
    caps = np.array([0.0, 0.0, cap3, cap4, 1.0])
    weights = np.minimum(UTILITY * ratio**alpha, caps)
    weights[:, 4] = 1.0
    weights = np.where(counts > 0, weights, 0.0)
    return np.where(counts[:, 4:5] > 0, weights, FALLBACK_WEIGHTS)


def best_sum(table: Floats, counts: Ints, k: int, discount: Discount = flat) -> Floats:
    """Return the largest sum of discounted weights that k of the counted passages can have, shape (queries,).

    Passages with a negative weight are never chosen.
    """
    weights = np.broadcast_to(table, counts.shape)
    order = np.argsort(-weights, axis=1, kind="stable")
    weights, held = np.take_along_axis(weights, order, axis=1), np.take_along_axis(counts, order, axis=1)
    upto = np.minimum(np.cumsum(held, axis=1), k)
    before = np.concatenate([np.zeros((len(counts), 1), np.int64), upto[:, :-1]], axis=1)
    if discount is flat:
        worth = (upto - before).astype(np.float64)
    else:
        summed = cumulative(discount, int(upto.max(initial=0)))
        worth = summed[upto] - summed[before]
    found: Floats = (np.maximum(weights, 0.0) * worth).sum(axis=1)
    return found


def cumulative(discount: Discount, ranks: int) -> Floats:
    """Return the total worth of the first r ranks for r = 0..ranks, shape (ranks + 1,)."""
    return np.concatenate([[0.0], np.cumsum(discount(np.arange(1, ranks + 1, dtype=np.float64)))])


def worth_at(hits: Hits, k: int, discount: Discount) -> Floats:
    """Return the worth of each row's rank, shape (n,); 0 for ranks after the cutoff."""
    return np.where(hits.rank <= k, discount(hits.rank.astype(np.float64)), 0.0)


def mean_worth(hits: Hits, k: int, discount: Discount) -> Floats:
    """Return the mean worth over the ranks of each row's tie group, shape (n,); ranks after the cutoff count 0.

    A passage is equally likely at each rank of its group. So the mean of a sum over ranks depends only on these means
    (McSherry and Najork 2008).
    """
    end = hits.start + positions_within(hits, k)
    if discount is flat:
        return (end - hits.start) / hits.size
    summed = cumulative(discount, int(end.max(initial=0)))
    found: Floats = (summed[end] - summed[np.minimum(hits.start, end)]) / hits.size
    return found


def positions_within(hits: Hits, k: int) -> Ints:
    """Return how many ranks of each row's tie group are within the cutoff, shape (n,)."""
    return np.clip(k - hits.start, 0, hits.size)


def ratio(above: Floats | Ints, below: Floats | Ints, otherwise: float) -> Floats:
    """Return above / below; `otherwise` if below is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / below, otherwise)


def by_place(hits: Hits) -> Iterator[Ints]:
    """Yield arrays of rows of `hits`: the best ranked row of each query, then the second best, and so on."""
    order = np.lexsort((hits.rank, hits.query))
    query = hits.query[order]
    place = np.arange(len(order)) - np.searchsorted(query, query)
    turn = np.argsort(place, kind="stable")
    yield from np.split(order[turn], np.cumsum(np.bincount(place))[:-1]) if len(order) else ()


class Groups(NamedTuple):
    """Tie groups that contain relevant passages, by query and rank; each field has the shape (groups,).

    `above`: number of passages above the group. `size`: number of passages in the group. `good`: number of relevant
    passages in the group. `slots`: number of the group's ranks within the cutoff.
    """

    query: Ints
    above: Ints
    size: Ints
    good: Ints
    slots: Ints


def relevant_groups(hits: Hits, good: Flags, k: int) -> Groups:
    """Return the tie groups with at least one relevant row; `good` marks these rows, shape (n,)."""
    order = np.lexsort((hits.start[good], hits.query[good]))
    query, start, size = (column[good][order] for column in (hits.query, hits.start, hits.size))
    rows = group_starts(query, start)
    held = np.diff(np.append(rows, len(order)))
    query, start, size = query[rows], start[rows], size[rows]
    return Groups(query, start, size, held, np.clip(k - start, 0, size))


def none_within(hits: Hits, good: Flags, k: int) -> Floats:
    """Return the share of all orders of tied passages with no relevant passage within the cutoff, shape (queries,)."""
    groups = relevant_groups(hits, good, k)
    return _product(hits, groups.query, _draw_probability(groups.size - groups.good, groups.size, groups.slots))


def all_within(hits: Hits, good: Flags, k: int) -> Floats:
    """Return the share of all orders of tied passages with all retrieved relevant passages within the cutoff.

    Shape (queries,).
    """
    groups = relevant_groups(hits, good, k)
    return _product(hits, groups.query, _draw_probability(groups.slots, groups.size, groups.good))


def expected_reciprocal_rank(hits: Hits, good: Flags, k: int) -> Floats:
    """Return the mean over all orders of tied passages of 1 / rank of the first relevant passage, shape (queries,).

    The value of an order is 0 if no relevant passage is within the cutoff.
    """
    groups = relevant_groups(hits, good, k)
    first = np.ones(len(groups.query), dtype=bool)
    first[1:] = groups.query[1:] != groups.query[:-1]
    query, above, size, held, slots = (column[first] for column in groups)
    total = np.zeros(len(hits.length))
    missed = np.ones(len(query))  # probability that the ranks so far hold no relevant passage
    place = 0
    while (open_ := np.flatnonzero((slots > place) & (missed > 0))).size:
        query, above, size, held, slots = (column[open_] for column in (query, above, size, held, slots))
        missed = missed[open_]
        total[query] += missed * held / (size - place) / (above + place + 1)
        missed = missed * (size - held - place) / (size - place)
        place += 1
    return total


def expected_precision_sum(hits: Hits, good: Flags, k: int) -> Floats:
    """Return the mean over tied orders of the sum of precision@rank at relevant ranks within the cutoff, shape
    (queries,).

    In a group of s passages, r of them relevant, the t-th rank holds a relevant passage with probability r/s. If R
    relevant passages are above the group, on average R + 1 + t (r-1)/(s-1) relevant passages are then at or above this
    rank, with t from 0. The sum over t of (a + b t) / (c + 1 + t) is computed with harmonic numbers.
    """
    groups = relevant_groups(hits, good, k)
    before = np.cumsum(groups.good) - groups.good
    earlier = before - before[np.searchsorted(groups.query, groups.query)]
    slope = (groups.good - 1) / np.maximum(groups.size - 1, 1)
    end = groups.above + groups.slots
    harmonic = cumulative(lambda ranks: 1.0 / ranks, int(end.max(initial=0)))
    span = harmonic[end] - harmonic[np.minimum(groups.above, end)]
    summed = slope * groups.slots + (earlier + 1 - slope * (groups.above + 1)) * span
    return per_query(hits, groups.query, groups.good / groups.size * summed)


def _draw_probability(marked: Ints, size: Ints, drawn: Ints) -> Floats:
    """Return the probability that `drawn` items, drawn from `size` without replacement, are all `marked` ones."""
    chance = np.ones(len(size))
    for turn in range(int(drawn.max(initial=0))):
        chance *= np.where(turn < drawn, np.maximum(marked - turn, 0) / np.maximum(size - turn, 1), 1.0)
    return chance


def _product(hits: Hits, query: Ints, chance: Floats) -> Floats:
    total = np.ones(len(hits.length))
    np.multiply.at(total, query, chance)
    return total
