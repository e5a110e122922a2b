import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.ranking.locks import LockRule, SettledPairs, standard_gaps

NAMES = ["a", "b", "c", "d"]


def pairs(**rule) -> SettledPairs:
    return SettledPairs(NAMES, LockRule(**rule))


def show(settled, *order) -> None:
    settled.count(np.array([NAMES.index(name) for name in order]))


def believe(settled, scores, call=1, spread=0.01) -> None:
    settled.update(np.array(scores, dtype=float), np.eye(len(scores)) * spread, call)


def locked(locks) -> list[tuple[str, str]]:
    return [(lock.winner, lock.loser) for lock in locks]


def test_gaps_are_in_joint_standard_errors():
    covariance = np.array([[1.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(standard_gaps(np.array([5.0, 2.0]), covariance), [[0, 3], [-3, 0]])


def test_a_clear_pair_locks_on_the_second_update():
    settled = pairs()
    show(settled, "a", "b")
    believe(settled, [5, 1, 1, 1], call=1)
    assert settled.locks == ()
    believe(settled, [5, 1, 1, 1], call=2)
    (lock,) = settled.locks
    assert (lock.winner, lock.loser, lock.evidence, lock.call) == ("a", "b", 1, 2)
    assert lock.z == pytest.approx(4 / np.sqrt(0.02))


def test_an_unclear_update_starts_the_count_again():
    settled = pairs()
    show(settled, "a", "b")
    for scores in ([5, 1, 1, 1], [1, 1, 1, 1], [5, 1, 1, 1]):
        believe(settled, scores)
    assert settled.locks == ()


def test_only_judged_pairs_lock_and_those_with_one_between():
    settled = pairs(updates=1)
    believe(settled, [5, 4, 3, 1])
    assert settled.locks == ()
    show(settled, "a", "b")
    show(settled, "b", "d")
    believe(settled, [5, 1.01, 1, 1])
    assert locked(settled.locks) == [("a", "b"), ("a", "d")]


def test_implied_pairs_get_no_lock():
    settled = pairs(updates=1)
    show(settled, *NAMES)
    believe(settled, [9, 7, 5, 3])
    assert sorted(locked(settled.locks)) == [("a", "b"), ("b", "c"), ("c", "d")]
    assert settled.graph.reach[0, 3]


def test_a_lock_is_released_when_belief_turns():
    settled = pairs(updates=1)
    show(settled, *NAMES)
    believe(settled, [9, 7, 5, 3], call=1)
    believe(settled, [9, 5, 5.01, 3], call=2)
    assert settled.released == ()
    believe(settled, [9, 5, 6, 3], call=3)
    assert locked(settled.released) == [("b", "c")]
    assert ("b", "c") not in locked(settled.locks) and not settled.graph.reach[1, 2]
    assert settled.graph.reach[0, 2] and settled.graph.reach[1, 3]


@given(st.lists(st.tuples(st.permutations(range(4)), st.lists(st.floats(0, 6), min_size=4, max_size=4)), max_size=15))
def test_the_graph_stays_acyclic_whatever_is_believed(history):
    settled = pairs(updates=1, z=0.5)
    for call, (order, scores) in enumerate(history, start=1):
        settled.count(np.array(order))
        believe(settled, scores, call, spread=0.3)
        graph = nx.from_numpy_array(settled.graph.edges, create_using=nx.DiGraph)
        assert nx.is_directed_acyclic_graph(graph)
        closure = nx.to_numpy_array(nx.transitive_closure_dag(graph), nodelist=range(4), dtype=bool)
        np.testing.assert_array_equal(settled.graph.reach, closure)
        assert len(settled.locks) == graph.number_of_edges()
