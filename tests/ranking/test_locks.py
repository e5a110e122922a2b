import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.ranking.locks import LockGraph

SIZE = 8
PAIRS = st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=40)


def grow(pairs) -> tuple[LockGraph, nx.DiGraph]:
    """Add every pair that closes no cycle, to ours and to an oracle."""
    graph, oracle = LockGraph(SIZE), nx.DiGraph()
    oracle.add_nodes_from(range(SIZE))
    for winner, loser in pairs:
        if winner != loser and not graph.reach[loser, winner]:
            graph.add(winner, loser)
            oracle.add_edge(winner, loser)
    return graph, oracle


@given(PAIRS)
def test_reach_is_the_transitive_closure_of_an_acyclic_graph(pairs):
    graph, oracle = grow(pairs)
    assert nx.is_directed_acyclic_graph(oracle)
    closure = nx.to_numpy_array(nx.transitive_closure_dag(oracle), nodelist=range(SIZE), dtype=bool)
    np.testing.assert_array_equal(graph.reach, closure)
    np.testing.assert_array_equal(graph.edges, nx.to_numpy_array(oracle, nodelist=range(SIZE), dtype=bool))


@given(PAIRS)
def test_every_cycle_is_refused(pairs):
    graph, oracle = grow(pairs)
    for winner, loser in itertools.product(range(SIZE), repeat=2):
        if nx.has_path(oracle, loser, winner):
            with pytest.raises(ValueError, match="cycle"):
                graph.add(winner, loser)


@given(PAIRS)
def test_twice_implied_means_two_disjoint_paths(pairs):
    graph, oracle = grow(pairs)
    for winner, loser in itertools.permutations(range(SIZE), 2):
        indirect = oracle.copy()
        indirect.remove_edges_from([(winner, loser)])
        disjoint = (
            nx.has_path(indirect, winner, loser) and len(list(nx.node_disjoint_paths(indirect, winner, loser))) >= 2
        )
        assert graph.twice_implied(winner, loser) == disjoint


@given(PAIRS, st.lists(st.integers(0, 3), min_size=SIZE, max_size=SIZE))
def test_the_order_respects_locks_then_scores_then_numbers(pairs, scores):
    graph, _ = grow(pairs)
    order = graph.order(scores)
    left = set(range(SIZE))
    for item in order:
        free = [candidate for candidate in left if not graph.reach[list(left), candidate].any()]
        assert item == min(free, key=lambda candidate: (-scores[candidate], candidate))
        left.remove(item)
    assert not left


@given(PAIRS, st.lists(st.integers(0, 3), min_size=SIZE, max_size=SIZE))
def test_the_final_order_is_the_same(pairs, scores):
    graph, _ = grow(pairs)
    assert graph.final_order(scores) == graph.order(scores)


def test_a_wrong_closure_and_a_cycle_are_errors():
    graph = LockGraph(3)
    graph.add(0, 1)
    graph.reach[0, 2] = True
    with pytest.raises(RuntimeError, match="closure"):
        graph.final_order([3.0, 2.0, 1.0])
    graph.edges[1, 0] = True
    with pytest.raises(RuntimeError, match="cycle"):
        graph.final_order([3.0, 2.0, 1.0])


def test_a_lock_may_stand_against_the_scores():
    graph = LockGraph(3)
    graph.add(2, 0)
    assert graph.order([5.0, 4.0, 1.0]) == [1, 2, 0]


@given(PAIRS, st.data())
def test_removed_locks_leave_what_the_others_imply(pairs, data):
    graph, oracle = grow(pairs)
    edges = sorted(oracle.edges)
    removed = data.draw(st.lists(st.sampled_from(edges), unique=True)) if edges else []
    graph.remove(removed)
    oracle.remove_edges_from(removed)
    closure = nx.to_numpy_array(nx.transitive_closure_dag(oracle), nodelist=range(SIZE), dtype=bool)
    np.testing.assert_array_equal(graph.reach, closure)
    assert graph.order([0.0] * SIZE) == list(nx.lexicographical_topological_sort(oracle))


def test_only_locks_are_removed():
    with pytest.raises(ValueError, match="0 is not locked above 1"):
        LockGraph(2).remove([(0, 1)])
