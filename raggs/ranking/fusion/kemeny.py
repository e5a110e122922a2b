"""The order that several orders of the same few things come to.

Kemeny's rule: of all orders the one with the fewest disagreements with those given, a disagreement being a pair that
two orders place contrarily, times the weight of the order given (Kemeny 1959; Young and Levenglick 1978: the only rule
that is neutral, consistent and Condorcet). Found exactly up to `EXACT` things by dynamic programming over sets, with
2^n steps; beyond, Borda's mean ranks stand in. Ties go to the order that agrees most with the first one given, whose
giver thereby has the casting vote; how the things were numbered has no say.
"""

from __future__ import annotations

from collections.abc import Sequence

EXACT = 10

Cost = tuple[float, int]


def consensus_order(orders: Sequence[Sequence[int]], weights: Sequence[float]) -> tuple[int, ...]:
    """The Kemeny order of `orders`.

    Args:
        orders: at least one; each a permutation of 0..n-1, best first.
        weights: one for each order, above 0.

    Raises:
        ValueError: no order, or the numbers of orders and weights differ.
    """
    if not orders:
        raise ValueError("a consensus needs at least one order")
    # Things are renamed by their places in the first order, so ties fall its way whatever they were called.
    names = orders[0]
    name = {thing: place for place, thing in enumerate(names)}
    renamed = [[name[thing] for thing in order] for order in orders]
    found = _kemeny(renamed, weights) if len(names) <= EXACT else _borda(renamed, weights)
    return tuple(names[thing] for thing in found)


def _kemeny(orders: Sequence[Sequence[int]], weights: Sequence[float]) -> list[int]:
    size = len(orders[0])
    worse = _disagreements(orders, weights)
    everything = (1 << size) - 1
    best: list[tuple[Cost, int]] = [((0.0, 0), -1)] * (everything + 1)  # for each set: how to order it last
    for members in range(1, everything + 1):
        best[members] = min(
            (_added(best[members ^ (1 << top)][0], worse[top], members ^ (1 << top)), top)
            for top in range(size)
            if members >> top & 1
        )
    order, left = [], everything
    while left:
        top = best[left][1]
        order.append(top)
        left ^= 1 << top
    return order


def _disagreements(orders: Sequence[Sequence[int]], weights: Sequence[float]) -> list[list[Cost]]:
    """What placing i above j costs: the weight of those who say otherwise; among equals, what the first one says."""
    size = len(orders[0])
    worse = [[(0.0, int(i > j)) for j in range(size)] for i in range(size)]
    for order, weight in zip(orders, weights, strict=True):
        for place, above in enumerate(order):
            for below in order[place + 1 :]:
                cost, casting = worse[below][above]
                worse[below][above] = (round(cost + weight, 9), casting)
    return worse


def _added(cost: Cost, worse: Sequence[Cost], below: int) -> Cost:
    """The cost of a set whose best one stands above the things in `below`."""
    total, casting = cost
    for thing, (more, against) in enumerate(worse):
        if below >> thing & 1:
            total, casting = total + more, casting + against
    return round(total, 9), casting  # so that sums in another order still tie


def _borda(orders: Sequence[Sequence[int]], weights: Sequence[float]) -> list[int]:
    """By weighted sum of ranks, ties as the first order has them."""
    ranks = [0.0] * len(orders[0])
    for order, weight in zip(orders, weights, strict=True):
        for rank, thing in enumerate(order):
            ranks[thing] += weight * rank
    return sorted(range(len(ranks)), key=lambda thing: (round(ranks[thing], 9), thing))
