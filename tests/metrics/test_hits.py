"""The table of hits: ranks, tie groups, and what the order of the rows has to do with them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.judged import labels, lists

from raggs.metrics import GradeScale, Qrels, Run
from raggs.metrics.hits import find_hits
from raggs.metrics.names import parse_measure

COLUMNS = ("query", "item", "rank", "start", "size", "length", "tied", "returned")


def rows(found):
    """(qid, passage, rank, start, size) of each hit."""
    judged = found.qrels
    return [
        (judged.qids[query], judged.docs.text(item), rank, start, size)
        for query, item, rank, start, size in zip(*(getattr(found, name).tolist() for name in COLUMNS[:5]), strict=True)
    ]


def test_ties_stand_by_descending_id_as_in_trec_eval_or_as_in_the_file():
    judged = Qrels.of({"q": {"a": 5, "b": 4, "c": 1}})
    run = Run.of({"q": {"a": 1.0, "x": 1.0, "c": 1.0, "b": 2.0}})
    assert rows(find_hits(judged, run)) == [("q", "b", 1, 0, 1), ("q", "c", 3, 1, 3), ("q", "a", 4, 1, 3)]
    assert rows(find_hits(judged, run, "file")) == [("q", "b", 1, 0, 1), ("q", "a", 2, 1, 3), ("q", "c", 4, 1, 3)]


def test_what_is_counted():
    judged = Qrels.of({"q1": {"a": 5, "b": -1}, "q2": {"a": 3}, "q3": {"a": 3}})
    run = Run.of({"other": ["a"], "q3": {}, "q1": {"a": 1, "b": 1, "x": 1, "y": 0}})
    found = find_hits(judged, run)
    assert rows(found) == [("q1", "a", 3, 0, 3)], "a negative grade is no judgment; b and x stand above a"
    assert found.length.tolist() == [4, 0, 0]
    assert found.tied.tolist() == [3, 0, 0]
    assert found.returned.tolist() == [True, False, True]
    assert found.unknown == 1


def test_zeros_of_both_signs_tie():
    found = find_hits(Qrels.of({"q": {"a": 5}}), Run.of({"q": {"a": -0.0, "b": 0.0}}))
    assert rows(found) == [("q", "a", 2, 0, 2)]


@given(labels(-1, 4), lists(), st.sampled_from(["trec", "file"]), st.data())
def test_interleaved_and_unsorted_rows_give_the_same_table(judged, found, ties, data):
    """Only the order within a tie group may matter, and only where the file's order is asked for."""
    flat = [(qid, doc, score) for qid, scores in found.items() for doc, score in scores.items()]
    mixed = data.draw(st.permutations(flat))
    if ties == "file":
        mixed = sorted(mixed, key=lambda row: row[2])  # stable: the members of a group stay as they stood
        flat = sorted(mixed, key=lambda row: row[0])
    qrels = Qrels.of(judged, GradeScale.of(0, 4))
    first, second = (
        find_hits(qrels, Run.from_columns([r[0] for r in table], [r[1] for r in table], [r[2] for r in table]), ties)
        for table in (flat, mixed)
    )
    for name in COLUMNS:
        assert (getattr(first, name) == getattr(second, name)).all(), name


@given(labels(-1, 4), lists(), st.sampled_from(["trec", "file"]))
def test_ranks_are_those_of_a_plain_sort(judged, found, ties):
    hits = find_hits(Qrels.of(judged, GradeScale.of(0, 4)), Run.of(found), ties)
    expected = []
    for qid in sorted(qid for qid in judged if judged[qid]):
        scores = found.get(qid, {})
        docs = sorted(scores, key=lambda doc: doc.encode(), reverse=True) if ties == "trec" else list(scores)
        docs.sort(key=lambda doc: -scores[doc])
        for rank, doc in enumerate(docs, start=1):
            if judged[qid].get(doc, -1) >= 0:
                above = sum(score > scores[doc] for score in scores.values())
                expected.append((qid, doc, rank, above, list(scores.values()).count(scores[doc])))
    assert rows(hits) == expected


@pytest.mark.parametrize(("sign", "ranks"), [(1, {"b": 2, "a": 3, "c": 5}), (-1, {"c": 2, "a": 4, "b": 5})])
def test_arranged_puts_weights_first_or_last(sign, ranks):
    """b alone weighs 2, a 1, c -1; unjudged passages weigh nothing and stand between."""
    judged = Qrels.of({"q": {"a": 1, "b": 2, "c": 0}}, GradeScale.of(0, 2))
    run = Run.of({"q": {"top": 2.0, "a": 1.0, "b": 1.0, "c": 1.0, "x": 1.0}})
    found = find_hits(judged, run)
    placed = found.arranged(sign * found.weigh(np.array([-1.0, 1.0, 2.0])))
    assert {doc: rank for _, doc, rank, _, _ in rows(placed)} == ranks


def test_nothing_retrieved_and_nothing_judged():
    for judged, run in (({}, {}), ({}, {"q": ["a"]}), ({"q": {"a": 5}}, {}), ({"q": {"a": -1}}, {"q": ["a"]})):
        found = find_hits(Qrels.of(judged, GradeScale.of(1, 5)), Run.of(run))
        assert rows(found) == []
        assert rows(found.condensed()) == []
        assert len(found.length) == len(judged)


@given(labels(1, 5, least=1), lists(least=1), st.data())
def test_the_values_of_some_queries_need_no_rows_of_others(judged, found, data):
    hits = find_hits(Qrels.of(judged, GradeScale.of(1, 5)), Run.of(found))
    some = np.array(data.draw(st.lists(st.booleans(), min_size=len(hits.length), max_size=len(hits.length))))
    for name in ("ndcg@3", "E[map]", "max[mrr]", "min[precision@2]", "bpref", "E[holes@2]"):
        whole, part = (parse_measure(name).values(table) for table in (hits, hits.only(some)))
        np.testing.assert_array_equal(whole[some], part[some])
