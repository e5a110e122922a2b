"""Coverage with its interval, kinds of queries, and the choice of queries, in worlds whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stats.query_coverage import (
    SAME_QUESTION,
    KindTotals,
    choose_queries,
    coverage_of,
    kinds_of,
    nearest_in_set,
)


def directions(count: int, dims: int = 64, seed: int = 0) -> np.ndarray:
    found = np.random.default_rng(seed).normal(size=(count, dims))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def around(centre: np.ndarray, count: int, spread: float, seed: int) -> np.ndarray:
    found = centre + spread * directions(count, len(centre), seed)
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 50)), min_size=1, max_size=40),
    st.floats(0.5, 0.999),
)
def test_the_interval_holds_the_share_and_stays_in_0_1(given_rows: list[tuple[bool, int]], confidence: float) -> None:
    covered = np.array([row[0] for row in given_rows])
    searches = np.array([row[1] for row in given_rows], dtype=float)
    found = coverage_of(covered, searches, confidence)
    assert 0 <= found.low <= found.share <= found.high <= 1
    assert found.share == pytest.approx(searches[covered].sum() / searches.sum())
    assert 1 <= found.effective <= len(searches) + 1e-9
    equal = coverage_of(covered, np.full(len(searches), 3.0), confidence)
    assert equal.effective == pytest.approx(len(searches))


def test_intervals_hold_the_true_coverage_as_often_as_they_say() -> None:
    """Logs of 150 distinct queries, of which 30% are covered, with skewed numbers of searches."""
    rng = np.random.default_rng(1)
    hits = []
    for _ in range(600):
        searches = rng.geometric(0.3, 150).astype(float)
        found = coverage_of(rng.random(150) < 0.3, searches)
        hits.append(found.low <= 0.3 <= found.high)
    assert 0.925 <= np.mean(hits) <= 0.975  # standard error 0.009


def test_no_query_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one search"):
        coverage_of(np.zeros(0, dtype=bool), np.zeros(0))
    with pytest.raises(ValueError, match="at least one search"):
        coverage_of(np.ones(1, dtype=bool), np.zeros(1))


def test_kinds_are_the_groups_of_the_world() -> None:
    centres = directions(5)
    vectors = np.concatenate([around(each, 40, 0.5, 10 + at) for at, each in enumerate(centres)])
    truth = np.repeat(np.arange(5), 40)
    order = np.random.default_rng(3).permutation(len(vectors))
    searches = np.ones(len(vectors))
    searches[truth[order] == 4] = 3
    found = kinds_of(vectors[order], searches, 0.5)
    pairs = {(int(one), int(other)) for one, other in zip(found, truth[order], strict=True)}
    assert len(pairs) == 5 and (0, 4) in pairs  # one to one; the kind with the most searches is the first


def test_a_query_without_direction_is_a_kind_of_its_own() -> None:
    vectors = np.concatenate([around(directions(1)[0], 3, 0.1, 1), np.zeros((2, 64), np.float32)])
    found = kinds_of(vectors, np.ones(5), 0.5)
    assert len(set(found[:3].tolist())) == 1 and len(set(found.tolist())) == 3


def test_nearest_in_an_empty_set() -> None:
    best, place = nearest_in_set(directions(3), np.zeros((0, 64), np.float32))
    assert (best == -np.inf).all() and (place == -1).all()


def test_the_choice_goes_where_a_label_reduces_the_variance_most() -> None:
    centres = directions(3)
    vectors = np.concatenate([around(each, 30, 1.0, at) for at, each in enumerate(centres)])
    kinds = np.repeat(np.arange(3), 30)
    searches = np.repeat([6.0, 6.0, 1.0], 30)
    signals = np.repeat([0.0, 3.0, 1.0], 30)
    totals = KindTotals(np.bincount(kinds, searches), np.bincount(kinds, signals), np.array([0.0, 0.0, 0.0]))
    found = choose_queries(vectors, kinds, searches, signals, totals, np.full(90, -1.0), 12)
    gains = [each.gain for each in found]
    assert kinds[found[0].row] == 1 and gains == sorted(gains, reverse=True)
    counts = np.bincount(kinds[[each.row for each in found]], minlength=3)
    assert counts[1] > counts[0] > counts[2]
    labelled = KindTotals(totals.searches, totals.signals, np.array([0.0, 50.0, 0.0]))
    first = choose_queries(vectors, kinds, searches, signals, labelled, np.full(90, -1.0), 1)[0]
    assert kinds[first.row] == 0
    share = totals.searches / totals.searches.sum()
    uncertainty = np.array([1.0, 1.5, 2.0])
    assert totals.gains(np.zeros(3)) == pytest.approx(share**2 * uncertainty / 2)


def test_near_duplicates_of_labelled_and_chosen_queries_are_not_chosen() -> None:
    vectors = around(directions(1)[0], 50, 0.05, 2)  # all have nearly the same meaning
    totals = KindTotals(np.array([50.0]), np.array([0.0]), np.array([0.0]))
    kinds, searches, none = np.zeros(50, dtype=np.int64), np.ones(50), np.zeros(50)
    assert len(choose_queries(vectors, kinds, searches, none, totals, np.full(50, -1.0), 20)) == 1
    assert not choose_queries(vectors, kinds, searches, none, totals, np.full(50, SAME_QUESTION), 20)
