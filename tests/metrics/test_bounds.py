from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.hits import find_hits
from raggs.metrics.names import parse_measure
from raggs.metrics.unjudged import Fillings, fill_holes

DOCS = [f"doc-{number}" for number in range(8)]
LISTS = st.dictionaries(st.sampled_from(["one", "two", "three"]), st.permutations(DOCS).map(lambda ids: ids[:6]))
GRADES = st.fixed_dictionaries(
    {}, optional={qid: st.dictionaries(st.sampled_from(DOCS), st.integers(1, 5), min_size=1) for qid in ("one", "two")}
)
MEASURES = ("ra_nwg@3", "n_recall4@3", "ndcg@4", "recall@3", "precision@5", "mrr@4", "map@6", "harm@4", "holes@3")


def hits_of(judged, lists):
    return find_hits(Qrels.of(judged, GradeScale.of(1, 5)), Run.of(lists))


@given(GRADES.filter(bool), LISTS.filter(bool), st.sampled_from(MEASURES))
def test_bounds_are_the_scores_with_every_hole_within_the_cutoff_judged(judged, lists, name):
    named = parse_measure(name)
    found = Fillings(hits_of(judged, lists)).bounds(named)
    for values, grade in zip(found, (1, 5), strict=True):
        more = {
            qid: labels | {doc: grade for doc in lists.get(qid, [])[: named.measure.k] if doc not in labels}
            for qid, labels in judged.items()
        }
        np.testing.assert_allclose(values, named.values(hits_of(more, lists)), atol=1e-12)


def test_without_holes_both_bounds_are_the_score():
    hits = hits_of({"one": {"doc-1": 5, "doc-2": 1}}, {"one": ["doc-2", "doc-1"]})
    named = parse_measure("ndcg@2")
    assert Fillings(hits).bounds(named).lowest == Fillings(hits).bounds(named).highest == named.values(hits)


def test_only_what_stands_within_the_cutoff_is_filled():
    hits = hits_of({"one": {"doc-1": 5}}, {"one": ["doc-7", "doc-1", "doc-6"]})
    assert fill_holes(hits, 1, 5).rank.tolist() == [1, 2]
    assert fill_holes(hits, 10, 5).rank.tolist() == [1, 2, 3]
    assert fill_holes(hits, 10, 5).grade.tolist() == [5, 5, 5]


def test_a_pooled_but_unjudged_passage_is_a_hole():
    hits = hits_of({"one": {"doc-1": 5, "doc-7": -1}}, {"one": ["doc-7", "doc-1"]})
    found = Fillings(hits).bounds(parse_measure("precision@2"))
    assert (found.lowest[0], found.highest[0]) == (0.5, 1.0)


def test_tied_holes_keep_their_rank():
    hits = hits_of({"one": {"doc-1": 5}}, {"one": {"doc-1": 1.0, "doc-2": 1.0, "doc-3": 1.0}})
    assert fill_holes(hits, 3, 1).rank.tolist() == [1, 2, 3]
    assert Fillings(hits).bounds(parse_measure("mrr@3")).lowest[0] == pytest.approx(1 / 3)


@given(GRADES.filter(bool), LISTS.filter(bool))
def test_measures_that_share_filled_lists_have_the_bounds_that_each_has_alone(judged, lists):
    hits = hits_of(judged, lists)
    together = Fillings(hits)
    for name in MEASURES:
        for shared, alone in zip(
            together.bounds(parse_measure(name)), Fillings(hits).bounds(parse_measure(name)), strict=True
        ):
            np.testing.assert_array_equal(shared, alone)


def test_holes_are_filled_once_for_each_cutoff_and_grade(monkeypatch):
    asked = []
    monkeypatch.setattr("raggs.metrics.unjudged.fill_holes", lambda *args: asked.append(args[1:]) or fill_holes(*args))
    together = Fillings(hits_of({"one": {"doc-1": 5}}, {"one": ["doc-7", "doc-1", "doc-6", "doc-5"]}))
    for name in ("ndcg@2", "recall@2", "mrr@3", "map", "map@9"):
        together.bounds(parse_measure(name))
    assert sorted(asked) == [(k, grade) for k in (2, 3, 4) for grade in (1, 5)]
