"""The cut by hand, and what holds for any pool."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.ranking.pruning import prune


def kept(grades, ranks=None, **bounds):
    decisions = prune(grades, ranks or list(range(1, len(grades) + 1)), **bounds)
    return [decision.kept for decision in decisions]


def test_whole_grades_from_the_best_down():
    assert kept([3, 5, 1, 4, 3], min_keep=3, max_keep=10) == [True, True, False, True, True]


def test_the_last_bucket_is_cut_by_fused_rank():
    decisions = prune([4, 5, 4, 4, 3], [9, 5, 2, 7, 1], min_keep=2, max_keep=3)
    assert [decision.kept for decision in decisions] == [False, True, True, True, False]
    assert [decision.why for decision in decisions] == [
        "grade 4, cut at 3 by fused rank",
        "grade 5",
        "grade 4",
        "grade 4",
        "grade 3, not needed, 3 better passages are enough",
    ]


def test_the_mean_grade_decides_before_the_fused_rank():
    given = ([4, 5, 4, 4, 3], [9, 5, 2, 7, 1])
    decisions = prune(*given, min_keep=2, max_keep=3, mean_grades=[4.4, 4.6, 3.7, None, 3.4])
    assert [decision.kept for decision in decisions] == [True, True, False, True, False]
    assert decisions[2].why == "grade 4, cut at 3 by mean grade and fused rank"
    assert kept(*given, min_keep=2, max_keep=3, mean_grades=[4.0] * 5) == kept(*given, min_keep=2, max_keep=3)
    with pytest.raises(ValueError, match="5 grades and 1 mean grades"):
        prune(*given, min_keep=2, max_keep=3, mean_grades=[4.0])


def test_a_bucket_that_brings_just_enough_is_the_last():
    assert kept([5, 4, 3, 2], min_keep=2, max_keep=10) == [True, True, False, False]


def test_the_best_bucket_alone_may_be_cut():
    assert kept([5, 5, 5, 4], min_keep=1, max_keep=2) == [True, True, False, False]


def test_what_has_no_grade_is_not_ranked():
    decisions = prune([None, 1, None], [1, 2, 3], min_keep=5, max_keep=5)
    assert [(decision.kept, decision.why) for decision in decisions] == [
        (False, "no grade"),
        (True, "grade 1"),
        (False, "no grade"),
    ]


def test_an_empty_pool():
    assert prune([], [], min_keep=1, max_keep=1) == []


@pytest.mark.parametrize(
    ("grades", "ranks", "bounds", "message"),
    [
        ([1], [1, 2], (1, 1), "1 grades and 2 ranks"),
        ([1, 2], [1, 1], (1, 1), "same fused rank"),
        ([1], [1], (0, 1), "min_keep=0"),
        ([1], [1], (3, 2), "max_keep=2"),
    ],
)
def test_arguments_that_do_not_fit(grades, ranks, bounds, message):
    with pytest.raises(ValueError, match=message):
        prune(grades, ranks, min_keep=bounds[0], max_keep=bounds[1])


GRADES = st.lists(st.one_of(st.none(), st.integers(1, 5)), max_size=30)
BOUNDS = st.tuples(st.integers(1, 20), st.integers(0, 20)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(GRADES, BOUNDS, st.randoms(use_true_random=False))
def test_any_pool(grades, bounds, rng):
    low, high = bounds
    ranks = list(range(1, len(grades) + 1))
    rng.shuffle(ranks)
    decisions = prune(grades, ranks, min_keep=low, max_keep=high)
    stays = [(grade, rank) for grade, rank, decision in zip(grades, ranks, decisions, strict=True) if decision.kept]
    goes = [(grade, rank) for grade, rank, decision in zip(grades, ranks, decisions, strict=True) if not decision.kept]
    graded = [pair for pair in goes if pair[0] is not None]

    assert all(decision.why for decision in decisions)
    assert len(stays) <= high
    assert len(stays) >= min(low, sum(grade is not None for grade in grades))
    assert all(grade is not None for grade, _ in stays)
    if stays and graded:
        worst = min(grade for grade, _ in stays)
        assert all(grade <= worst for grade, _ in graded), "nothing better than what stays goes"
        cut = [rank for grade, rank in graded if grade == worst]
        if cut:
            assert len(stays) == high, "a bucket is cut only where the pool is full"
            assert max(rank for grade, rank in stays if grade == worst) < min(cut)
        assert sum(grade > worst for grade, _ in stays) < low, "no bucket more than needed"
