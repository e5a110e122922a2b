"""Measures of evidence sets, compared with the enumeration of all orders of tied passages."""

from __future__ import annotations

import math
from itertools import chain, permutations, product
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import DataError
from raggs.metrics import evaluate
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.hits import find_hits
from raggs.metrics.measures import REGISTRY
from raggs.metrics.measures.evidence import find_evidence
from raggs.metrics.names import parse_measure
from raggs.metrics.unjudged import fill_holes

PASSAGES = "abcdefg"
NAMES = sorted(name for name in REGISTRY if REGISTRY.load(name).EVIDENCE)
MODES = ("E", "min", "max", "range", "range_at_k", "bias")
SETS = st.lists(st.sets(st.sampled_from(PASSAGES), min_size=1, max_size=4).map(sorted), min_size=1, max_size=4)
SCORES = st.dictionaries(st.sampled_from(PASSAGES), st.sampled_from([1.0, 2.0, 2.0, 3.0]), max_size=6)
GROUPS = st.dictionaries(st.sampled_from(PASSAGES), st.sampled_from("xy"), max_size=4)
PLAIN = {"evidence_recall": lambda share: share, "complete": lambda share: float(share == 1.0)}


def plain(name, top, sets, duplicates):
    """The value of a top, by the definition."""

    def found(doc):
        return any(doc == each or (doc in duplicates and duplicates.get(each) == duplicates[doc]) for each in top)

    return max(PLAIN[name](sum(map(found, members)) / len(members)) for members in sets)


def orders(scores):
    """Every order of the passages of a list; equal scores in any order."""
    groups = [[doc for doc in scores if scores[doc] == score] for score in sorted(set(scores.values()), reverse=True)]
    return [[*chain(*parts)] for parts in product(*(permutations(group) for group in groups))]


def hits_of(scores, sets, duplicates):
    qrels = Qrels.of({"q": {"z": 5}, "without": {"z": 4}}, GradeScale.of(1, 5))
    run = Run.of({"q": scores, "without": {"a": 1.0}})
    hits = find_hits(qrels, run)
    found = find_evidence(qrels, run, {"q": sets}, "trec", duplicates)
    return hits, hits.__class__(**{**hits.__dict__, "evidence": found}), run


@given(SCORES, SETS, GROUPS, st.integers(1, 7))
def test_values_over_ties_are_those_of_all_orders(scores, sets, duplicates, k):
    _, hits, _ = hits_of(scores, sets, duplicates)
    listed = sorted(scores, key=lambda doc: (-scores[doc], [-ord(char) for char in doc]))
    for name in NAMES:
        now = plain(name, listed[:k], sets, duplicates)
        values = [plain(name, order[:k], sets, duplicates) for order in orders(scores)]
        mean, spread = fmean(values), max(values) - min(values)
        expected = dict(zip(MODES, (mean, min(values), max(values), spread, spread, now - mean), strict=True))
        got = parse_measure(f"{name}@{k}").values(hits)
        assert (got[0], math.isnan(got[1])) == (pytest.approx(now), True)
        for mode, value in expected.items():
            got = parse_measure(f"{mode}[{name}@{k}]").values(hits)
            assert (got[0], math.isnan(got[1])) == (pytest.approx(value, abs=1e-12), True), (mode, name)


def test_sixteen_tied_passages_of_evidence_are_exact():
    """Two sets of eight among 16 tied passages, 12 of them in the top: a closed form."""
    docs = [f"d{number:02}" for number in range(16)]
    _, hits, _ = hits_of(dict.fromkeys(docs, 1.0), [docs[:8], docs[8:]], {})
    one = math.comb(8, 4) / math.comb(16, 12)
    assert parse_measure("E[complete@12]").values(hits)[0] == pytest.approx(2 * one)


def test_a_large_tie_group_needs_no_large_floats():
    docs = {f"n{number}": 1.0 for number in range(5000)} | {"a": 1.0, "b": 1.0}
    _, hits, _ = hits_of(docs, [["a", "b"]], {})
    pair = (2500 / 5002) * (2499 / 5001)
    assert parse_measure("E[complete@2500]").values(hits)[0] == pytest.approx(pair, rel=1e-12)


def test_unjudged_passages_of_evidence_count_and_filled_holes_change_nothing():
    _, hits, _ = hits_of({"a": 2.0, "b": 1.0}, [["a", "b"]], {})
    assert parse_measure("complete@2").values(hits)[0] == 1.0
    assert parse_measure("evidence_recall@1").values(fill_holes(hits, 2, 5))[0] == 0.5


def test_a_query_without_a_list_scores_zero_and_one_without_evidence_is_undefined():
    sets = {"q": [["a"]], "lost": [["a"]]}
    judged = {"q": {"a": 5}, "lost": {"a": 5}, "none": {"a": 5}}
    ours = evaluate(judged, {"q": ["a"], "none": ["a"]}, ["complete@3"], evidence=sets)
    assert ours.valid["complete@3"] == 2
    assert (ours.mean["complete@3"], ours.per_query["complete@3"]["lost"]) == (0.5, 0.0)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({}, "needs queries with evidence sets"),
        ({"evidence": {"q": [["a"]]}, "condensed": True}, "complete lists"),
        ({"evidence": {"q": [[]]}}, "empty evidence set"),
        ({"evidence": {"q": [[str(number)] for number in range(17)]}}, "17 passages, more than 16"),
    ],
)
def test_unusable_evidence_is_refused(how, words):
    with pytest.raises(DataError, match=words):
        evaluate({"q": {"a": 5}}, {"q": ["a"]}, ["evidence_recall@3"], **how)
