"""Unique contributions by hand, and what is left when they are unjudged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stats.effects import contributions, grades_without, leave_one_out_losses

# Rows: q1 a, q1 b, q1 c, q1 d, q2 a, q2 e.
GRADE = np.array([5, 3, 1, 4, 4, 5])
POOLS = {
    "dense-50": np.array([0, 1, 4]),
    "dense-100": np.array([0, 1, 2, 4]),
    "bm25": np.array([0, 3]),
}
rows = st.lists(st.integers(0, 5), unique=True)


def test_what_one_system_alone_brought():
    first, second, third = contributions(GRADE, POOLS)
    assert first.unique.tolist() == [], "the deeper list of the same embedder has it all"
    assert (second.unique.tolist(), third.unique.tolist()) == ([2], [3])
    assert (third.judged, third.useful, third.share) == (1, 1, pytest.approx(1 / 6))
    assert (second.useful, first.share) == (0, 0.0)


def test_systems_of_one_part_are_left_out_together():
    groups = {"dense-50": "dense", "dense-100": "dense"}
    dense, bm25 = contributions(GRADE, POOLS, groups)
    assert (dense.group, dense.systems) == ("dense", ("dense-50", "dense-100")) and bm25.group == "bm25"
    assert dense.unique.tolist() == [1, 2, 4]
    assert grades_without(GRADE, dense).tolist() == [5, -1, -1, 4, -1, 5]
    assert GRADE.tolist() == [5, 3, 1, 4, 4, 5], "what was judged is left as it is"


def test_what_nobody_brought_stays_judged_and_what_is_unjudged_counts_for_nobody():
    grade = np.array([5, -1, 3])
    only = contributions(grade, {"only": np.array([0, 1])})[0]
    assert only.unique.tolist() == [0]
    assert grades_without(grade, only).tolist() == [-1, -1, 3]
    assert only.share == 0.5


@given(st.dictionaries(st.sampled_from(["s1", "s2", "s3"]), rows))
def test_each_judged_passage_is_unique_to_at_most_one(pooled):
    found = contributions(GRADE, {name: np.array(each, dtype=np.int64) for name, each in pooled.items()})
    for row in range(6):
        owners = [each.group for each in found if row in each.unique]
        brought = [system for system, each in pooled.items() if row in each]
        assert owners == (brought if len(brought) == 1 else [])


def test_falls_and_who_overtakes():
    found = contributions(GRADE, POOLS)
    scores = {"dense-50": 0.6, "dense-100": 0.7, "bm25": 0.65}
    left_out = {
        "dense-50": scores,
        "dense-100": {"dense-50": 0.6, "dense-100": 0.63, "bm25": 0.65},
        "bm25": {"dense-50": 0.62, "dense-100": 0.7, "bm25": 0.5},
    }
    first, second, third = leave_one_out_losses(found, scores, left_out)
    assert (first.system, first.fall, first.overtaken_by) == ("bm25", pytest.approx(0.15), ("dense-50",))
    assert (second.system, second.relative, second.overtaken_by) == ("dense-100", pytest.approx(0.1), ("bm25",))
    assert (third.system, third.fall, third.overtaken_by) == ("dense-50", 0.0, ())


def test_without_judgments_or_scores():
    none = np.array([], dtype=np.int64)
    nothing = contributions(none, {"s": none})
    assert nothing[0].share == 0
    assert leave_one_out_losses(nothing, {"s": 0.0}, {"s": {"s": 0.0}})[0].relative is None
