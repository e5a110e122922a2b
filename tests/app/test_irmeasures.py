"""raggs as a provider of ir_measures, held against ir_measures' other providers and against raggs itself."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plain_measures import GOING_ON, per_passage

from raggs.app.irmeasures import NEEDS_MORE, RaggsMeasure, provider
from raggs.base.errors import UsageError
from raggs.metrics.evaluate import evaluate
from raggs.metrics.measures import REGISTRY

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "import-export.md"
DOCS = [f"d{number}" for number in range(8)]
BY_TREC_EVAL = [
    "P@3",
    "P(rel=2)@5",
    "P(judged_only=True)@3",
    "R@3",
    "R(rel=2)@5",
    "RR",
    "RR(rel=2)",
    "Rprec",
    "Rprec(rel=3)",
    "AP",
    "AP(rel=2)@4",
    "AP(judged_only=True)",
    "nDCG",
    "nDCG@3",
    "nDCG(gains={0:0,1:4,2:1})@4",
    "nDCG(judged_only=True)@3",
    "Bpref",
    "Bpref(rel=2)",
    "SetP",
    "SetP(rel=2)",
    "SetR",
    "SetF",
    "SetF(beta=2.0)",
    "SetAP",
    "SetAP(rel=2)",
    "SetAP(judged_only=True)",
    "SetP(relative=True)",
    "SetP(rel=2,relative=True)",
    "Success@2",
    "Success(rel=3)@5",
    "IPrec@0.5",
    "IPrec(rel=2)@0.2",
    "NumRet",
    "NumRet(rel=1)",
    "NumRet(rel=2)",
    "NumRel",
    "NumQ",
]
UNTIED = [
    "RR@3",
    "RR(rel=2)@4",
    "Judged@3",
    "Judged",
    "Compat(p=0.8)",
    "Compat(p=0.9,normalize=False)",
]  # see docs/reference/formats.md
ROUNDED = ["ERR@3", "ERR@20", "nDCG(dcg='exp-log2')@3"]  # gdeval gives five places
WALKED = [
    "INST(T=2.0,max_rel=4)",
    "INSQ(max_rel=4)",
    "INSQ(T=2.5,min_rel=1,max_rel=3)",
    "SDCG(max_rel=4)@3",
    "SDCG(dcg='log2',min_rel=1,max_rel=2)@20",
    "BPM(max_rel=4)@3",
    "BPM(T=1.5,min_rel=1,max_rel=3)@20",
    "NERR8(max_rel=4)@4",
    "NERR9(min_rel=1,max_rel=4)@4",
    "NERR10(max_rel=2)",
    "NERR10(p=0.5,max_rel=4)",
    "NERR11(max_rel=4)",
    "NERR11(T=2.0,max_rel=3)",
]  # of cwl_eval
QUERIES = st.sampled_from(["1", "2", "3"])  # gdeval knows no others
LABELS = st.dictionaries(QUERIES, st.dictionaries(st.sampled_from(DOCS), st.integers(0, 4), min_size=1), min_size=1)
PLACES = st.lists(st.sampled_from(DOCS), unique=True, min_size=1)
LISTS = st.dictionaries(QUERIES, PLACES.map(lambda docs: {doc: 1.0 / (at + 1) for at, doc in enumerate(docs)}))
TIED = st.dictionaries(QUERIES, st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0.0, 0.5, 1.0]), min_size=1))


def by_query(by, names, labels, lists):
    measures = [ir_measures.parse_measure(name) for name in names]
    return {(row.query_id, str(row.measure)): row.value for row in by.iter_calc(measures, labels, lists)}


@settings(max_examples=80, deadline=None)
@given(LABELS, st.one_of(LISTS, TIED))
def test_values_are_those_of_trec_eval(labels, lists):
    found = by_query(provider, BY_TREC_EVAL, labels, lists)
    assert found == pytest.approx(by_query(ir_measures.pytrec_eval, BY_TREC_EVAL, labels, lists), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(LABELS, LISTS)
def test_values_are_those_of_the_other_providers(labels, lists):
    for names, least in ((UNTIED, 1e-9), (ROUNDED, 1e-5)):
        found = by_query(provider, names, labels, lists)
        assert found == pytest.approx(by_query(ir_measures, names, labels, lists), abs=least)


@settings(max_examples=40, deadline=None)
@given(LABELS, LISTS)
def test_readers_who_go_on_are_those_of_cwl(labels, lists):
    """Against the definition: the gain per passage of a reader who goes on with a probability."""
    found = by_query(provider, WALKED, labels, lists)
    for measure in map(ir_measures.parse_measure, WALKED):
        low, high = measure["min_rel"], measure["max_rel"]
        usual = 0.9 if measure.NAME == "NERR10" else 1.0
        wanted = measure.params.get("T", measure.params.get("p", usual))
        going_on = GOING_ON[measure.NAME.lower()](wanted, measure.params.get("cutoff", 0))
        for qid, grades in labels.items():
            shown = sorted(lists.get(qid, {}), key=lists.get(qid, {}).__getitem__, reverse=True)
            gains = [min(max((grades.get(doc, 0) - low) / (high - low), 0.0), 1.0) for doc in shown]
            assert found[qid, str(measure)] == pytest.approx(per_passage(gains, going_on), abs=1e-9), measure


@settings(max_examples=40, deadline=None)
@given(LABELS, LISTS)
def test_accuracy_leaves_out_the_queries_without_a_pair(labels, lists):
    lists = {qid: found | {"last": 0.0} for qid, found in lists.items()}  # theirs divides by 0 without it
    names = ["Accuracy", "Accuracy(rel=2)@3", "Accuracy@20"]
    theirs = {}
    for name in names:
        try:
            theirs |= by_query(ir_measures.accuracy, [name], labels, lists)
        except ZeroDivisionError:  # all that it looks at are relevant
            names = [other for other in names if other != name]
    assert by_query(provider, names, labels, lists) == pytest.approx(theirs, abs=1e-9)


def test_accuracy_without_any_pair_is_no_number():
    labels, accuracy = {"q1": {"d0": 1, "d1": 1}, "q2": {"d0": 1}}, ir_measures.Accuracy
    lists = {"q1": {"d0": 1.0, "d1": 0.5}}
    assert list(provider.iter_calc([accuracy], labels, lists)) == list(provider.iter_calc([accuracy], labels, {})) == []
    assert math.isnan(provider.calc_aggregate([accuracy], labels, lists)[accuracy])
    lists["q2"] = {"d1": 1.0, "d0": 0.5}
    assert provider.calc_aggregate([accuracy], labels, lists) == {accuracy: 0.0}


def test_counts_are_summed():
    labels = {"q1": {"d0": 2, "d1": 0, "d2": 1}, "q2": {"d0": 1}, "q3": {"d0": 1}}
    lists = {"q1": {"d0": 1.0, "x": 0.5}, "q2": {"x": 1.0}}
    names = ["NumQ", "NumRel", "NumRel(rel=2)", "NumRet", "NumRelRet", "NumRet(rel=0)"]
    found = provider.calc_aggregate([ir_measures.parse_measure(name) for name in names], labels, lists)
    assert list(found.values()) == [2, 3, 1, 3, 1, 1]  # q3 has no list, and so counts nowhere, as in trec_eval


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(QUERIES, st.dictionaries(st.sampled_from(DOCS), st.integers(1, 5), min_size=1), min_size=1), LISTS
)
def test_measures_of_raggs_alone_are_those_of_raggs(labels, lists):
    lists = {qid: found for qid, found in lists.items() if qid in labels} or {min(labels): {"d0": 1.0}}
    names = ["ra_nwg@3", "n_recall4@3", "harm@2", "proc_ra_nwg@3", "pct_proc_ra_nwg@3"]
    scored = evaluate(labels, lists, names, scale=(1, 5))
    found = by_query(provider, names, labels, lists)
    for name, row in zip(scored.measures, scored.values.tolist(), strict=True):
        assert [found[qid, name] for qid in scored.qids] == pytest.approx(row, nan_ok=True)
        defined = [value for value in row if not math.isnan(value)]
        mean = provider.calc_aggregate([ir_measures.parse_measure(name)], labels, lists)
        wanted = sum(defined) / len(defined) if defined else math.nan
        assert list(mean.values()) == pytest.approx([wanted], nan_ok=True)


def test_each_measure_that_needs_only_grades_has_a_name():
    names = {measure.NAME for measure in provider.SUPPORTED_MEASURES if isinstance(measure, RaggsMeasure)}
    assert {"ra_nwg", "n_recall4", "harm", "net_utility", "unj", "robustness"} <= names
    assert names <= set(REGISTRY.builtin) - NEEDS_MORE
    assert ir_measures.providers.registry["raggs"] is provider


def test_rounds_without_lists_or_labels_are_answered():
    labels, lists = {"q1": {"d0": 1}}, {"q2": {"d0": 1.0}}
    names = ["P@5", "nDCG@5"]
    assert (
        by_query(provider, names, labels, {})
        == by_query(provider, names, labels, lists)
        == {
            ("q1", "P@5"): 0.0,
            ("q1", "nDCG@5"): 0.0,
        }
    )
    assert by_query(provider, names, {}, lists) == {}


@pytest.mark.parametrize("name", ["alpha_nDCG@5", "NRBP", "ERR_IA@5", "StRecall@5"])
def test_what_raggs_does_not_compute_is_refused_by_name(name):
    measure = ir_measures.parse_measure(name)
    assert not provider.supports(measure)
    with pytest.raises(UsageError, match="does not compute"):
        provider.calc_aggregate([measure], {"q1": {"d0": 1}}, {"q1": {"d0": 1.0}})


def test_the_example_of_the_page_runs():
    (example,) = re.findall(
        r"```python\n(import ir_measures\n(?:(?!```).)*irmeasures(?:(?!```).)*)```", PAGE.read_text(), re.DOTALL
    )
    said: dict[str, object] = {}
    exec(example, said)
    assert {str(name): value for name, value in said["scores"].items()} == pytest.approx(
        {"ra_nwg@2": 1.0, "nDCG@2": (3 + 5 / math.log2(3)) / (5 + 3 / math.log2(3)), "R(rel=4)@1": 0.0}
    )


def test_raggs_alone_does_not_load_ir_measures():
    code = "import sys, raggs, raggs.cli, raggs.app.evaluate; sys.exit('ir_measures' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
