"""The classical measures are those of trec_eval and ir_measures, to 1e-9, whatever the data."""

from __future__ import annotations

import ir_measures
import pytest
import pytrec_eval
from hypothesis import example, given
from ir_measures import AP, RR, Bpref, Compat, IPrec, Judged, P, R, Rprec, SetF, SetP, SetR, Success, infAP, nDCG
from support.judged import labels, lists

from raggs.metrics import evaluate

TREC_EVAL = {
    "ndcg": "ndcg",
    "ndcg@3": "ndcg_cut_3",
    "ndcg@20": "ndcg_cut_20",
    "map": "map",
    "map@4": "map_cut_4",
    "mrr": "recip_rank",
    "precision@1": "P_1",
    "precision@5": "P_5",
    "precision@20": "P_20",
    "recall@1": "recall_1",
    "recall@5": "recall_5",
    "recall@20": "recall_20",
    "hit@1": "success_1",
    "hit@3": "success_3",
    "bpref": "bpref",
    "rprec": "Rprec",
    "set_p": "set_P",
    "set_f": "set_F",
    "iprec@0": "iprec_at_recall_0.00",
    "iprec@0.3": "iprec_at_recall_0.30",
    "iprec@1": "iprec_at_recall_1.00",
}
ASKED = {"ndcg", "ndcg_cut.3,20", "map", "map_cut.4", "recip_rank", "P.1,5,20", "recall.1,5,20", "success.1,3", "bpref"}
ASKED |= {"Rprec", "set_P", "set_F", "iprec_at_recall"}

IR_MEASURES = [
    *(nDCG @ 5, nDCG, AP, AP @ 3, RR, P @ 4, R @ 4, Success @ 2, Bpref),
    *(Rprec, SetP, SetR, SetF, SetF(beta=0.5), IPrec @ 0.25, infAP),
    *(Rprec(rel=2), SetP(rel=2), IPrec(rel=2) @ 0.1, infAP(rel=2)),
    *(P(rel=2) @ 4, R(rel=2) @ 4, AP(rel=3), RR(rel=2), Success(rel=3) @ 2),
]
UNTIED = [
    RR @ 2,
    RR(rel=2) @ 3,
    Judged @ 3,
    Judged @ 20,
    Compat,
    Compat(p=0.5),
    Compat(p=0.9, normalize=False),
]  # computed without trec_eval's order of ties


def kept(judged):
    """Without what is pooled but unjudged: trec_eval reads it so, but pytrec_eval does not end on it."""
    return {qid: known for qid, grades in judged.items() if (known := {d: g for d, g in grades.items() if g >= 0})}


def comparable(judged, found):
    return any(judged.values()) and any(judged.get(qid) for qid in found)


def check(ours, theirs, about):
    for measure, name in about.items():
        for qid, value in ours.per_query[measure].items():
            assert value == pytest.approx(theirs(qid, name), abs=1e-9), (measure, qid)


@given(labels(-1, 4), lists(least=1))
@example({"1": {"a": 1}, "2": {"a": -1}}, {"1": {}, "2": {"a": 1.0}})
@example({"1": {"a": 0, "é": 3}}, {"1": {"𝄞": 1.0, "\uffee": 1.0, "é": 1.0, "a": 1.0}})
def test_equals_trec_eval(judged, found):
    if not comparable(judged, found):
        return
    evaluator = pytrec_eval.RelevanceEvaluator(kept(judged), ASKED)
    expected = evaluator.evaluate({qid: scores for qid, scores in found.items() if scores})
    ours = evaluate(judged, found, list(TREC_EVAL), scale=(0, 4))
    assert set(ours.qids) == {qid for qid, grades in judged.items() if grades}
    check(ours, lambda qid, name: expected.get(qid, {}).get(name, 0.0), TREC_EVAL)


@given(labels(0, 4), lists(least=1))
def test_equals_ir_measures(judged, found):
    found = {qid: scores for qid, scores in found.items() if scores}
    if comparable(judged, found):
        against_ir_measures(judged, found, IR_MEASURES)
        ranked = {qid: {doc: 1 / (1 + place) for place, doc in enumerate(scores)} for qid, scores in found.items()}
        against_ir_measures(judged, ranked, UNTIED)


def against_ir_measures(judged, found, measures):
    ours = evaluate(judged, found, [str(measure) for measure in measures], scale=(0, 4))
    values = {(row.query_id, row.measure): row.value for row in ir_measures.iter_calc(measures, judged, found)}
    check(ours, lambda qid, measure: values.get((qid, measure), 0.0), {str(m): m for m in measures})


@given(labels(0, 4), lists(least=1))
def test_exponential_gains_are_trec_evals_on_raised_grades(judged, found):
    if not comparable(judged, found):
        return
    raised = {qid: {doc: 2**grade - 1 for doc, grade in grades.items()} for qid, grades in judged.items() if grades}
    expected = pytrec_eval.RelevanceEvaluator(raised, {"ndcg_cut.5"}).evaluate({q: s for q, s in found.items() if s})
    ours = evaluate(judged, found, ["ndcg_exp@5"], scale=(0, 4))
    check(ours, lambda qid, name: expected.get(qid, {}).get(name, 0.0), {"ndcg_exp@5": "ndcg_cut_5"})


def test_scores_are_told_apart_in_double_precision_where_trec_eval_uses_single():
    judged, found = {"q": {"a": 1, "b": 0}}, {"q": {"a": 1.0 + 1e-12, "b": 1.0}}
    assert evaluate(judged, found, ["mrr"]).mean["mrr"] == 1.0
    evaluator = pytrec_eval.RelevanceEvaluator(judged, {"recip_rank"})
    assert evaluator.evaluate(found)["q"]["recip_rank"] == 0.5


def test_infap_counts_what_is_pooled_but_unjudged():
    """trec_eval's value for a pool of which a part is judged: grade -1 is in the pool, other passages are not."""
    judged = {"q": {"a": 1, "b": -1, "c": 2, "d": 0}}
    found = {"q": {"x": 5.0, "b": 4.0, "c": 3.0, "y": 2.0, "a": 1.0}}
    third = 1 / 3 + 1 / 3 * 0.5
    fifth = 1 / 5 + 2 / 5 * (1 + 1e-5) / (1 + 2e-5)
    ours = evaluate(judged, found, ["infap", "map"], scale=(0, 4))
    assert ours.mean["infap"] == pytest.approx((third + fifth) / 2, abs=1e-12)
    values = ir_measures.calc_aggregate(
        [infAP], [ir_measures.Qrel(q, d, g) for q, r in judged.items() for d, g in r.items()], found
    )
    assert ours.mean["infap"] == pytest.approx(values[infAP], abs=1e-9)
    assert ours.mean["map"] == pytest.approx((1 / 3 + 2 / 5) / 2)


def test_ties_of_measures_that_ir_measures_computes_without_trec_eval():
    """Break ties by ascending id there, by descending id in trec_eval and here (docs/reference/formats.md)."""
    judged, found = {"q": {"a": 1, "b": 0}}, {"q": {"a": 1.0, "b": 1.0}}
    assert ir_measures.calc_aggregate([RR @ 10, RR], judged, found) == {RR @ 10: 1.0, RR: 0.5}
    ours = evaluate(judged, found, ["RR@10", "RR"], scale=(0, 4))
    assert (ours.mean["RR@10"], ours.mean["RR"]) == (0.5, 0.5)


def test_err_is_that_of_gdeval():
    """Values of gdeval for two queries, grades 0 to 4: five decimals."""
    judged = {"0": {"D0": 0, "D1": 1, "D2": 1, "D3": 2, "D4": 0}, "1": {"D0": 1, "D3": 2, "D5": 2}}
    found = {"0": ["D0", "D2", "D3", "D1", "D4"], "1": ["D1", "D3", "D2", "D4"]}
    ours = evaluate(judged, found, ["ERR@20", "ERR@2"], scale=(0, 4))
    assert list(ours.per_query["ERR@20"].values()) == pytest.approx([0.10175, 0.09375], abs=5e-6)
    assert list(ours.per_query["ERR@2"].values()) == pytest.approx([0.03125, 0.09375], abs=5e-6)
