"""The consensus of orders against all permutations."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.ranking.fusion import EXACT, consensus_order

Orders = list[tuple[int, ...]]


def some_orders(size: int, most: int = 5) -> st.SearchStrategy[Orders]:
    return st.lists(st.permutations(range(size)).map(tuple), min_size=1, max_size=most)


def distance(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """Pairs that two orders place contrarily."""
    return sum(second.index(above) > second.index(below) for above, below in combinations(first, 2))


def disagreement(order: tuple[int, ...], orders: Orders, weights: list[float]) -> float:
    return sum(weight * distance(order, each) for each, weight in zip(orders, weights, strict=True))


@given(st.integers(1, 5).flatmap(some_orders), st.data())
def test_no_order_disagrees_less_and_of_equals_the_one_nearest_to_the_first(
    orders: Orders, data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.sampled_from([0.5, 1.0, 1.5, 3.0]), min_size=len(orders), max_size=len(orders)))
    found = consensus_order(orders, weights)
    every = list(permutations(range(len(orders[0]))))
    least = min(disagreement(each, orders, weights) for each in every)
    assert disagreement(found, orders, weights) == least
    nearest = min(distance(each, orders[0]) for each in every if disagreement(each, orders, weights) == least)
    assert distance(found, orders[0]) == nearest


@pytest.mark.parametrize("size", [4, EXACT + 2])
@given(data=st.data())
def test_what_things_are_called_does_not_matter(size: int, data: st.DataObject) -> None:
    orders = data.draw(some_orders(size))
    names = data.draw(st.permutations(range(size)))
    weights = [1.0 + place / 10 for place in range(len(orders))]
    found = consensus_order(orders, weights)
    renamed = consensus_order([[names[thing] for thing in order] for order in orders], weights)
    assert sorted(found) == list(range(size))
    assert renamed == tuple(names[thing] for thing in found)


@pytest.mark.parametrize("size", [1, 5, EXACT, EXACT + 1, 20])
def test_one_order_and_unanimity_stand(size: int) -> None:
    order = tuple(reversed(range(size)))
    assert consensus_order([order], [1.0]) == order
    assert consensus_order([order] * 3, [0.1, 0.2, 0.7]) == order


def test_two_who_contradict_each_other_leave_it_to_the_first() -> None:
    assert consensus_order([(2, 0, 1), (1, 0, 2)], [1.0, 1.0]) == (2, 0, 1)
    assert consensus_order([(2, 0, 1), (1, 0, 2)], [1.0, 1.5]) == (1, 0, 2)
    # The same weight in one piece and in three, whose sum differs in the last bit.
    assert consensus_order([(1, 0), (0, 1), (0, 1), (0, 1)], [0.3, 0.1, 0.1, 0.1]) == (1, 0)


def test_beyond_the_exact_the_mean_ranks_count() -> None:
    size = EXACT + 1
    first, other = list(range(size)), list(range(size))
    other[0], other[1] = 1, 0
    assert consensus_order([first, other, other], [1.0] * 3) == tuple(other)


def test_no_order_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        consensus_order([], [])
    with pytest.raises(ValueError, match="zip"):
        consensus_order([(0, 1)], [])
