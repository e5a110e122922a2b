"""Measures of novelty against their definitions over whole lists, where any passage may have a facet, judged or not."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plain_measures import weights

from raggs.base.errors import DataError
from raggs.metrics import evaluate
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.hits import find_hits
from raggs.metrics.measures import REGISTRY
from raggs.metrics.measures.novelty import with_first
from raggs.metrics.names import parse_measure
from raggs.metrics.unjudged import Fillings

DOCS = "abcdefgh"
GRADES = st.dictionaries(st.sampled_from(DOCS), st.integers(1, 5), min_size=1)
FACETS = st.dictionaries(st.sampled_from(DOCS), st.sampled_from(["site", "book", "mail"]))
LISTS = st.permutations(DOCS).flatmap(lambda ids: st.integers(1, 8).map(lambda size: ids[:size]))


def value(judged, found, measure, **options):
    return evaluate({"q": judged}, {"q": found}, [measure], scale=(1, 5), **options).per_query[measure]["q"]


def plain_novel(judged, found, facets, k, nu):
    w, seen, total = weights(list(judged.values())), set(), 0.0
    for doc in found[:k]:
        total += w[judged.get(doc)] * (nu if facets.get(doc) in seen else 1.0)
        seen |= {facets[doc]} if doc in facets else set()
    ideal = sum(sorted((w[grade] for grade in judged.values()), reverse=True)[:k])
    return total / ideal if ideal else math.nan


def gains(judged, order, facets, alpha):
    """Of each passage of a list: (1 - alpha) to the power of the relevant ones of its facet above it."""
    seen = Counter()
    for doc in order:
        if judged.get(doc, 1) < 4:
            yield 0.0
            continue
        yield (1 - alpha) ** seen[facets.get(doc, doc)]
        seen[facets.get(doc, doc)] += 1


def discounted(values, k):
    return sum(value / math.log2(place + 2) for place, value in enumerate(list(values)[:k]))


@given(GRADES, LISTS, FACETS, st.integers(1, 8), st.sampled_from([0, 0.25, 0.5, 1]))
def test_novelty_counts_the_facets_of_unjudged_passages(judged, found, facets, k, nu):
    ours = value(judged, found, f"ra_nwg_novel({nu})@{k}", facets=facets)
    assert ours == pytest.approx(plain_novel(judged, found, facets, k, nu), abs=1e-9, nan_ok=True)


@given(GRADES, LISTS, FACETS, st.integers(1, 8), st.sampled_from([0, 0.3, 0.5, 1]))
def test_alpha_ndcg_and_nrbp_are_their_definitions(judged, found, facets, k, alpha):
    relevant = [doc for doc, grade in judged.items() if grade >= 4]
    best = sorted(gains(judged, relevant, facets, alpha), reverse=True)
    ideal, subjects = discounted(best, k), len({facets.get(doc, doc) for doc in relevant})
    expected = discounted(gains(judged, found, facets, alpha), k) / ideal if ideal else 0.0
    assert value(judged, found, f"alpha_ndcg({alpha})@{k}", facets=facets) == pytest.approx(expected, abs=1e-9)
    total = sum(gain * 0.5**place for place, gain in enumerate(list(gains(judged, found, facets, alpha))[:k]))
    expected = (1 - (1 - alpha) * 0.5) / subjects * total if subjects else 0.0
    assert value(judged, found, f"nrbp({alpha})@{k}", facets=facets) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("measure", "ndeval"), [("alpha_ndcg@5", 0.7163190797963193), ("nrbp", 0.3125)])
def test_they_have_the_values_of_ndeval(measure, ndeval):
    judged = {"a": 5, "b": 4, "c": 4, "d": 1, "e": 5}
    facets = {"a": "s1", "c": "s1", "b": "s2", "e": "s3"}
    assert value(judged, list("cxaed"), measure, facets=facets) == pytest.approx(ndeval, abs=1e-12)


def test_a_source_may_be_seen_first_where_nobody_judged():
    judged, facets = {"a": 5, "b": 5}, {"x": "site", "a": "site"}
    assert value(judged, ["x", "a"], "ra_nwg_novel(0)@2", facets=facets) == 0.0
    assert value(judged, ["x", "a"], "ra_nwg_novel(0)@2", facets=facets, condensed=True) == 0.5
    assert value(judged, ["a", "x"], "ra_nwg_novel(0)@2", facets=facets) == 0.5


def test_novelty_discounts_a_facet_that_was_seen():
    pool = {"a": 5, "b": 5, "c": 5, "d": 5}
    facets = {"a": "site", "b": "site", "c": "book"}
    found = ["a", "b", "c", "d"]
    assert value(pool, found, "ra_nwg_novel(nu=0.5)@4", facets=facets) == 3.5 / 4
    assert value(pool, found, "ra_nwg_novel(nu=0)@4", facets=facets) == 3 / 4
    assert value(pool, found, "ra_nwg_novel(nu=1)@4", facets=facets) == 1.0
    assert value(pool, found, "ra_nwg_novel@1", facets=facets) == 1.0
    assert value(pool, ["d", "a"], "ra_nwg_novel@2", facets={}) == 1.0, "an unknown facet repeats nothing"


def test_a_facet_of_one_query_is_new_in_the_next():
    judged = {"q1": {"a": 5}, "q2": {"a": 5}}
    ours = evaluate(judged, {"q1": ["a"], "q2": ["a"]}, ["ra_nwg_novel@1"], facets={"a": "f"})
    assert ours.column("ra_nwg_novel@1").tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", sorted(name for name in REGISTRY if REGISTRY.load(name).FACETS))
def test_novelty_needs_facets(name):
    with pytest.raises(DataError, match="needs the facet"):
        value({"a": 5}, ["a"], f"{name}@1")


def test_bounds_know_where_facets_stand_first():
    """A filled hole has no facet of its own, and repeats none; the judged passage below it still repeats the hole's."""
    judged, facets = {"a": 5, "b": 5}, {"x": "site", "a": "site"}
    hits = find_hits(Qrels.of({"q": judged}, GradeScale.of(1, 5)), run := Run.of({"q": ["x", "a"]}))
    found = Fillings(with_first(hits, run, facets, "trec")).bounds(parse_measure("ra_nwg_novel(0)@2"))
    assert (found.lowest.tolist(), found.highest.tolist()) == ([0.0], [0.5])
