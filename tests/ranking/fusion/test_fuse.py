"""Fusion against hand-worked numbers, and what holds for any lists."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import UsageError
from raggs.ranking import fusion
from raggs.ranking.fusion import REGISTRY, fusion_options, make_fusion

LISTS = {"bm25": [("a", 9.0), ("b", 5.0), ("c", 1.0)], "dense": [("b", 0.9), ("d", 0.5)]}


def fuse(lists, method="rrf", *, weights=None, depth=100, **options):
    return fusion.fuse(lists, make_fusion(method, **options), weights=weights, depth=depth)


def scores(fused):
    return {item.doc_id: pytest.approx(item.score) for item in fused}


def test_reciprocal_ranks():
    fused = fuse(LISTS, "rrf", k=60)
    assert [item.doc_id for item in fused] == ["b", "a", "d", "c"]
    assert scores(fused) == {"b": 1 / 62 + 1 / 61, "a": 1 / 61, "d": 1 / 62, "c": 1 / 63}
    assert fused[0].sources == {"bm25": (2, 5.0), "dense": (1, 0.9)}


def test_combsum_adds_normalised_scores():
    assert scores(fuse(LISTS, "combsum")) == {"b": 0.5 + 1, "a": 1.0, "c": 0.0, "d": 0.0}


def test_combmnz_multiplies_by_the_number_of_lists():
    assert scores(fuse(LISTS, "combmnz")) == {"b": 2 * (0.5 + 1), "a": 1.0, "c": 0.0, "d": 0.0}


def test_weights():
    fused = fuse(LISTS, "combsum", weights={"dense": 0.5})
    assert scores(fused) == {"b": 0.5 + 0.5, "a": 1.0, "c": 0.0, "d": 0.0}
    assert [item.doc_id for item in fused] == ["a", "b", "c", "d"], "equal scores go by doc_id"


@pytest.mark.parametrize("method", list(REGISTRY))
def test_a_list_of_weight_zero_brings_nothing_in(method):
    fused = fuse(LISTS, method, weights={"dense": 0})
    assert [item.doc_id for item in fused] == ["a", "b", "c"]
    assert fused[1].sources["dense"] == (1, 0.9), "it is still told who else found the passage"
    assert scores(fused) == scores(fuse({"bm25": LISTS["bm25"]}, method))


@pytest.mark.parametrize("method", ["combsum", "combmnz"])
def test_equal_scores_count_as_one(method):
    assert scores(fuse({"only": [("a", 3.0), ("b", 3.0)]}, method)) == {"a": 1.0, "b": 1.0}


@pytest.mark.parametrize("high", [1.7e308, 5e-324])
def test_extreme_scores(high):
    low = -high if high > 1 else 0.0
    assert scores(fuse({"only": [("a", high), ("b", low)]}, "combsum")) == {"a": 1.0, "b": 0.0}


@pytest.mark.parametrize("method", list(REGISTRY))
def test_empty_lists(method):
    assert fuse({}, method) == []
    assert fuse({"bm25": [], "dense": []}, method) == []
    assert len(fuse({"bm25": [], "dense": LISTS["dense"]}, method)) == 2


@pytest.mark.parametrize(
    ("lists", "options", "message"),
    [
        (LISTS, {"k": 0}, "at least 1"),
        (LISTS, {"kk": 3}, "no option 'kk'; known: k"),
        (LISTS, {"method": "combsum", "k": 3}, "no option 'k'; known: none"),
        ({"x": [("a", 1.0), ("a", 0.5)]}, {}, "'a' twice"),
        ({"x": [("a", math.nan)]}, {}, "the score nan"),
        ({"x": [("a", math.inf)]}, {"method": "combsum"}, "the score inf"),
        (LISTS, {"weights": {"bm25": -1}}, "at least 0"),
        (LISTS, {"weights": {"bm25": math.nan}}, "at least 0"),
    ],
)
def test_what_cannot_be_fused(lists, options, message):
    with pytest.raises(ValueError, match=message):
        fuse(lists, **options)


def test_an_unknown_method():
    with pytest.raises(UsageError, match="unknown fusion 'rff'") as caught:
        make_fusion("rff")
    assert "did you mean 'rrf'? known: rrf, combsum, combmnz" in caught.value.remedy


@pytest.mark.parametrize("method", list(REGISTRY))
def test_options_have_usual_values(method):
    made = make_fusion(method)
    assert all(hasattr(made, option) for option in fusion_options(method))


IDS = st.text("abcdef", min_size=1, max_size=2)
HITS = st.lists(
    st.tuples(IDS, st.floats(allow_nan=False, allow_infinity=False)), max_size=8, unique_by=lambda hit: hit[0]
).map(lambda hits: sorted(hits, key=lambda hit: (-hit[1], hit[0])))
ANY = st.dictionaries(st.sampled_from(["bm25", "dense", "runs", "more"]), HITS, max_size=4)


@given(ANY, st.sampled_from(sorted(REGISTRY)), st.integers(1, 10))
def test_any_lists(lists, method, depth):
    fused = fuse(lists, method, depth=depth)
    ids = [item.doc_id for item in fused]
    known = {doc_id for hits in lists.values() for doc_id, _ in hits}
    assert len(ids) == len(set(ids)) == min(depth, len(known))
    assert [(-item.score, item.doc_id) for item in fused] == sorted((-item.score, item.doc_id) for item in fused)
    assert all(math.isfinite(item.score) and item.score >= 0 for item in fused)
    for item in fused:
        for name, (rank, score) in item.sources.items():
            assert lists[name][rank - 1] == (item.doc_id, score)
    backwards = dict(reversed(list(lists.items())))
    assert fuse(backwards, method, depth=depth) == fused, "the order of the mapping does not matter"


@given(ANY)
def test_rising_in_a_list_never_hurts(lists):
    for name, hits in lists.items():
        if len(hits) > 1:
            before = {item.doc_id: item.score for item in fuse(lists)}
            risen = {**lists, name: [hits[-1], *hits[:-1]]}
            after = {item.doc_id: item.score for item in fuse(risen)}
            assert after[hits[-1][0]] > before[hits[-1][0]]
