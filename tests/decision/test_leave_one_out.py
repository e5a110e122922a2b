"""Unique contributions by hand, and what is left when they are unjudged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.decision import contributions, falls, without

JUDGED = {"q1": {"a": 5, "b": 3, "c": 1, "d": 4}, "q2": {"a": 4, "e": 5}, "q3": {}}
POOLS = {
    "dense-50": {"q1": ["a", "b"], "q2": ["a"]},
    "dense-100": {"q1": ["a", "b", "c"], "q2": ["a", "x"]},
    "bm25": {"q1": ["a", "d"], "q2": ["y"]},
}
ids = st.sampled_from("abcdef")
pools = st.dictionaries(
    st.sampled_from(["s1", "s2", "s3"]), st.dictionaries(st.sampled_from(["q1", "q2"]), st.lists(ids, unique=True))
)


def test_what_one_system_alone_brought():
    first, second, third = contributions(JUDGED, POOLS)
    assert first.unique == {}, "the deeper list of the same embedder has it all"
    assert (second.unique, third.unique) == ({"q1": ("c",)}, {"q1": ("d",)})
    assert (third.judged, third.useful, third.share) == (1, 1, pytest.approx(1 / 6))
    assert (second.useful, first.share) == (0, 0.0)


def test_systems_of_one_part_are_left_out_together():
    groups = {"dense-50": "dense", "dense-100": "dense"}
    dense, bm25 = contributions(JUDGED, POOLS, groups)
    assert (dense.group, dense.systems) == ("dense", ("dense-50", "dense-100")) and bm25.group == "bm25"
    assert dense.unique == {"q1": ("b", "c"), "q2": ("a",)}
    assert without(JUDGED, dense) == {"q1": {"a": 5, "d": 4}, "q2": {"e": 5}, "q3": {}}
    assert JUDGED["q2"] == {"a": 4, "e": 5}, "what was judged is left as it is"


def test_what_nobody_brought_stays_judged():
    assert "e" in without(JUDGED, contributions(JUDGED, {"only": {"q2": ["a"]}})[0])["q2"]


@given(pools)
def test_each_judged_passage_is_unique_to_at_most_one(pooled):
    judged = {"q1": {"a": 1, "b": 4, "c": 5}, "q2": {"a": 5, "f": 2}}
    found = contributions(judged, pooled)
    for qid, grades in judged.items():
        for doc_id in grades:
            owners = [each.group for each in found if doc_id in each.unique.get(qid, ())]
            brought = [system for system, lists in pooled.items() if doc_id in lists.get(qid, ())]
            assert owners == (brought if len(brought) == 1 else [])


def test_falls_and_who_overtakes():
    found = contributions(JUDGED, POOLS)
    scores = {"dense-50": 0.6, "dense-100": 0.7, "bm25": 0.65}
    left_out = {
        "dense-50": scores,
        "dense-100": {"dense-50": 0.6, "dense-100": 0.63, "bm25": 0.65},
        "bm25": {"dense-50": 0.62, "dense-100": 0.7, "bm25": 0.5},
    }
    first, second, third = falls(found, scores, left_out)
    assert (first.system, first.fall, first.overtaken_by) == ("bm25", pytest.approx(0.15), ("dense-50",))
    assert (second.system, second.relative, second.overtaken_by) == ("dense-100", pytest.approx(0.1), ("bm25",))
    assert (third.system, third.fall, third.overtaken_by) == ("dense-50", 0.0, ())


def test_without_judgments_or_scores():
    assert contributions({}, POOLS)[0].share == 0
    nothing = contributions({"q1": {}}, {"s": {}})
    assert falls(nothing, {"s": 0.0}, {"s": {"s": 0.0}})[0].relative is None
