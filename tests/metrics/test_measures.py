"""Each measure against its plain definition, and what the golden set's own measures say in cases worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.judged import labels, lists
from support.plain_measures import PLAIN, plain_value, ra_nwg, written

from raggs.base.errors import DataError
from raggs.metrics import GradeScale, evaluate, parse_measure
from raggs.metrics.columns import Qrels
from raggs.metrics.measures import REGISTRY

FACETED = {"ra_nwg_novel", "alpha_ndcg", "nrbp"}  # see test_facets.py
UTILITIES = {"ndcg[utility]", "ra_nwg[utility]", "recall[utility]"}  # need a ranking: see test_belief
EVIDENCE = {"evidence_recall", "complete"}  # see test_evidence.py
SPECIAL = (
    FACETED | UTILITIES | EVIDENCE | {"containment", "span_recall4", "span_precision4"}
)  # need facets, texts or places
GRID = [(alpha, cap4, cap3) for alpha in (0, 0.5, 1, 2) for cap4 in (0.75, 1.0) for cap3 in (0.20, 0.25, 0.33)]


def value(judged, found, measure, **options):
    """Of one query, on the scale 1 to 5."""
    grades = judged if isinstance(judged, dict) else {f"g{n}": grade for n, grade in enumerate(judged)}
    return evaluate({"q": grades}, {"q": found}, [measure], scale=(1, 5), **options).per_query[measure]["q"]


# --- all of them ------------------------------------------------------------------------------------------------


def test_plain_twins_are_of_measures():
    assert set(PLAIN) | SPECIAL <= set(REGISTRY)


@given(labels(1, 5), lists(least=1), st.integers(1, 16), st.integers(1, 16))
def test_a_measure_stays_within_its_range(judged, found, k, depth):
    if not any(grades and qid in found for qid, grades in judged.items()):
        return
    names = {written(name, k, depth): name for name in set(REGISTRY) - SPECIAL}
    ours = evaluate(judged, found, list(names), scale=(1, 5))
    for measure, name in names.items():
        low, high = REGISTRY.load(name).RANGE
        assert all(math.isnan(got) or low <= got <= high + 1e-12 for got in ours.per_query[measure].values())


@given(labels(1, 5), lists(least=1), st.integers(1, 16), st.integers(1, 16))
def test_equals_its_definition(judged, found, k, depth):
    if not any(grades and qid in found for qid, grades in judged.items()):
        return
    names = {written(name, k, depth): name for name in PLAIN}
    ours = evaluate(judged, found, list(names), scale=(1, 5))
    for qid in ours.qids:
        ranked = sorted(found.get(qid, {}).items(), key=lambda pair: (pair[1], pair[0].encode()), reverse=True)
        shown = [judged[qid].get(doc) for doc, _ in ranked]
        for measure, name in names.items():
            got = ours.per_query[measure][qid]
            expected = plain_value(name, shown, list(judged[qid].values()), k, depth)
            assert got == pytest.approx(expected, abs=1e-9, nan_ok=True), (measure, qid)


@given(labels(1, 5, least=1), lists(least=1), st.integers(1, 12), st.integers(1, 12))
def test_no_score_lies_above_the_ceiling_of_its_pool(judged, found, k, depth):
    if not set(judged) & set(found):
        return
    for name in ("ra_nwg", "n_recall4"):
        actual, ceiling, pct = f"{name}@{k}", f"proc_{name}({depth})@{k}", f"pct_proc_{name}({depth})@{k}"
        ours = evaluate(judged, found, [actual, ceiling, pct], scale=(1, 5))
        score, best, share = (ours.column(measure) for measure in (actual, ceiling, pct))
        assert (np.isnan(score) == np.isnan(best)).all()
        defined = ~np.isnan(share)
        assert (score <= best + 1e-12)[~np.isnan(score)].all()
        assert np.allclose(share[defined] * best[defined], score[defined], atol=1e-12)


def test_a_query_without_a_list_scores_zero_and_is_not_left_out():
    zero = [name for name in PLAIN if REGISTRY.load(name).HIGHER or name in ("harm", "holes")]
    names = [written(name, 2, 3) for name in zero]
    ours = evaluate({"q": {"a": 5, "b": 1}, "gone": {"a": 5, "b": 1}}, {"q": ["a", "x"]}, names, scale=(1, 5))
    assert {name: ours.per_query[name]["gone"] for name in names} == dict.fromkeys(names, 0.0)
    assert set(ours.valid.values()) == {2}


@pytest.mark.parametrize("name", sorted(name for name in REGISTRY if REGISTRY.load(name).GOLDEN))
def test_measures_of_a_golden_set_refuse_other_scales(name):
    with pytest.raises(DataError, match=r"grades 1 to 5.*scale 0 to 4"):
        evaluate({"q": {"a": 0, "b": 3}}, {"q": ["a"]}, [f"{name}@3"])


# --- ra_nwg by hand ---------------------------------------------------------------------------------------------


def test_scarce_fives_outweigh_fours():
    """n5=1, n4=4: r4/r5 = 0.5/4 = 0.125, so four 4s are worth half a 5."""
    pool = {"a": 5, **{f"b{n}": 4 for n in range(4)}, "c": 1}
    assert value(pool, ["a"], "ra_nwg@1") == 1.0
    assert value(pool, ["b0"], "ra_nwg@1") == 0.125
    assert value(pool, ["b0", "b1", "b2", "b3"], "ra_nwg@4") == pytest.approx(0.5 / 1.375)


def test_caps_hold_where_fives_are_plenty():
    """n5=4, n4=1, n3=1: r4/r5 = 0.5 * 4 = 2, capped at 1; r3/r5 = 0.1 * 4 = 0.4, capped at 0.25."""
    pool = {**{f"a{n}": 5 for n in range(4)}, "b": 4, "c": 3}
    assert value(pool, ["b"], "ra_nwg@1") == 1.0
    assert value(pool, ["c"], "ra_nwg@1") == 0.25
    assert value(pool, ["b"], "ra_nwg(cap4=0.75)@1") == 0.75
    assert value(pool, ["c"], "ra_nwg(cap3=0.33)@1") == 0.33


def test_alpha_zero_knows_no_rarity():
    pool = {"a": 5, "b": 4, "b2": 4, "c": 3}
    assert value(pool, ["b"], "ra_nwg(alpha=0)@1") == 0.5
    assert value(pool, ["c"], "ra_nwg(alpha=0)@1") == 0.1
    assert value(pool, ["b"], "ra_nwg(alpha=2)@1") == 0.5 / 4


def test_without_a_five_a_fixed_schedule_stands_in():
    pool = {"b": 4, "b2": 4, "c": 3, "d": 2}
    assert value(pool, ["b"], "ra_nwg@1") == 1.0
    assert value(pool, ["c"], "ra_nwg@1") == 0.2
    assert value(pool, ["c", "d"], "ra_nwg@3") == pytest.approx(0.2 / 2.2)
    assert value({"c": 3, "d": 1}, ["c"], "ra_nwg@5") == 1.0, "3s alone are still something"


def test_not_defined_where_nothing_is_worth_anything():
    judged = {"none": {"a": 2, "b": 1}, "some": {"a": 3, "b": 1}}
    measures = ["ra_nwg@2", "n_recall4@2", "n_recall5@2", "hit_all@2", "net_utility@2", "harm@2", "precision4@2"]
    ours = evaluate(judged, {"none": ["a", "b"], "some": ["a", "b"]}, measures, scale=(1, 5))
    assert [ours.valid[measure] for measure in measures] == [1, 0, 0, 0, 1, 2, 2]
    assert ours.mean["ra_nwg@2"] == 1.0
    assert math.isnan(ours.mean["n_recall4@2"])
    assert ours.mean["harm@2"] == 0.75


def test_order_within_the_cutoff_does_not_matter():
    pool = {"a": 5, "b": 4, "c": 3, "d": 1}
    values = {value(pool, [*order, "x"], "ra_nwg@3") for order in (["a", "c", "d"], ["d", "a", "c"], ["c", "d", "a"])}
    assert len(values) == 1


@pytest.mark.parametrize(("alpha", "cap4", "cap3"), GRID)
def test_the_grid_of_parameters(alpha, cap4, cap3):
    pool = [5, 5, 4, 4, 4, 3, 3, 2, 1]
    shown = [4, 3, 5, 2, None]
    judged = {f"g{n}": grade for n, grade in enumerate(pool)}
    found = ["g2", "g5", "g0", "g7", "x"]
    for k in (1, 3, 5):
        ours = value(judged, found, f"ra_nwg(alpha={alpha}, cap4={cap4}, cap3={cap3})@{k}")
        assert ours == pytest.approx(ra_nwg(shown, pool, k, alpha=alpha, cap4=cap4, cap3=cap3))


# --- the other measures of a golden set -------------------------------------------------------------------------


def test_n_recall_counts_what_could_stand_there():
    pool = [5, 4, 4, 4, 1]
    assert value(pool, ["g1", "g2"], "n_recall4@2") == 1.0
    assert value(pool, ["g1", "g2"], "n_recall4@10") == 0.5
    assert value(pool, ["g1", "g2"], "n_recall5@2") == 0.0


def test_the_ceiling_is_that_of_the_systems_own_pool():
    pool = {"a": 5, "b": 4, "c": 1, "d": 1}
    found = ["c", "d", "b"]
    assert value(pool, found, "proc_n_recall4(pool=3)@2") == 0.5, "the 5 was never retrieved"
    assert value(pool, found, "proc_n_recall4(pool=2)@2") == 0.0
    assert value(pool, found, "pct_proc_n_recall4(pool=3)@2") == 0.0
    assert math.isnan(value(pool, found, "pct_proc_n_recall4(pool=2)@2"))
    assert value(pool, found, "proc_n_recall4(pool=1)@3") == 0.5, "the pool is never smaller than k"


def test_unjudged_passages_take_places_but_do_no_harm():
    pool = {"a": 5, "d": 2}
    found = ["x", "d", "y", "a"]
    names = ["harm@4", "holes@4", "judged@4", "precision4@4", "holes@10"]
    ours = evaluate({"q": pool}, {"q": found}, names)
    assert [ours.mean[name] for name in names] == [0.25, 0.5, 0.5, 0.25, 0.5]


def test_condensed_lists_close_the_gaps():
    pool = {"a": 5, "d": 2}
    found = ["x", "d", "y", "a"]
    assert value(pool, found, "mrr") == 0.25
    assert value(pool, found, "mrr", condensed=True) == 0.5
    assert value(pool, found, "holes@4", condensed=True) == 0.0
    assert value(pool, found, "precision4@2", condensed=True) == 0.5


@given(labels(1, 5, least=1), lists(least=1))
def test_condensed_equals_a_run_without_unjudged_passages(judged, found):
    if not set(judged) & set(found):
        return
    left = {q: {d: s for d, s in scores.items() if d in judged.get(q, {})} for q, scores in found.items()}
    names = [f"{name}@3" for name in PLAIN if REGISTRY.load(name).AT is None] + ["iprec@0.5"]
    names += [f"E[{name}]" for name in names if REGISTRY.load(name.partition("@")[0]).TIES]
    ours = evaluate(judged, found, names, scale=(1, 5), condensed=True)
    assert np.allclose(ours.values, evaluate(judged, left, names, scale=(1, 5)).values, equal_nan=True)


# --- the rest ---------------------------------------------------------------------------------------------------


def test_the_textbook_list():
    """Two relevant passages at ranks 2 and 4 of five."""
    names = ["hit@5", "recall@5", "mrr", "ndcg@5"]
    found = ["doc-7", "doc-3", "doc-1", "doc-9", "doc-2"]
    ours = evaluate({"q": {"doc-3": 1, "doc-9": 1}}, {"q": found}, names, scale=(0, 1))
    assert [ours.mean[name] for name in names[:3]] == [1.0, 1.0, 0.5]
    assert ours.mean["ndcg@5"] == pytest.approx(0.6509, abs=5e-5)


def test_gains_may_be_given():
    gains = {1: 0, 2: 0, 3: 0, 4: 1, 5: 3}
    assert value({"a": 5, "b": 4}, ["b", "a"], "ndcg@2", gains=gains) == pytest.approx(
        (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    )


def test_containment_reads_the_rank_of_the_answer():
    judged = {qid: {"a": 5} for qid in ("late", "never", "no answer", "soon")}
    ranks = {"soon": 1.0, "late": 4.0, "never": math.inf, "no answer": math.nan}
    ours = evaluate(judged, {qid: ["a"] for qid in judged}, ["containment@3", "containment"], answer_rank=ranks)
    assert [ours.mean["containment@3"], ours.valid["containment@3"]] == [pytest.approx(1 / 3), 3]
    assert ours.mean["containment"] == pytest.approx(2 / 3)


def test_containment_needs_texts():
    with pytest.raises(DataError, match="needs the retrieved texts"):
        value({"a": 5}, ["a"], "containment@1")


def test_robustness_divides_by_the_truth_or_by_k():
    """30 relevant, 5 of 10 found: a recall of 5/30, and 5/10 of what could be shown."""
    pool = {f"d{n}": 5 for n in range(30)}
    found = [f"d{n}" for n in range(5)] + [f"x{n}" for n in range(5)]
    reached = {name: value(pool, found, name) for name in ("robustness(0.16)@10", "robustness(0.17)@10")}
    assert list(reached.values()) == [1.0, 0.0]
    by_k = [value(pool, found, f"robustness({delta}, by_k=1)@10") for delta in (0.5, 0.51)]
    assert by_k == [1.0, 0.0]


def test_all_of_nothing_is_not_defined_or_as_the_source_has_it_there():
    assert math.isnan(value({"d0": 3, "d1": 1}, ["d0"], "hit_all@1"))
    assert (
        value({"d0": 3, "d1": 1}, ["d0"], "hit_all(vacuous=1)@1")
        == value({"d0": 3, "d1": 1}, ["d0"], "E[hit_all(1)@1]")
        == 1.0
    )
    assert value({"d0": 5, "d1": 1}, ["d1"], "hit_all(vacuous=1)@1") == 0.0


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=1, max_size=8))
def test_the_area_under_the_curve_of_robustness_is_the_mean_recall(sizes):
    """Recalls are multiples of 1/60 here, so the curve is flat between them and a sum of its middles is exact."""
    judged = {f"q{n}": {f"d{i}": 5 for i in range(size)} for n, (size, _) in enumerate(sizes)}
    found = {f"q{n}": [f"d{i}" for i in range(got)] for n, (_, got) in enumerate(sizes)}
    deltas = [f"robustness({(step + 0.5) / 60})@10" for step in range(60)]
    ours = evaluate(judged, found, [*deltas, "recall@10"])
    assert np.mean([ours.mean[delta] for delta in deltas]) == pytest.approx(ours.mean["recall@10"])


def test_a_recall_of_three_tenths_reaches_a_delta_of_three_tenths():
    pool = {f"d{n}": 5 for n in range(10)}
    assert value(pool, ["d0", "d1", "d2"], "robustness(0.3)@5") == 1.0
    assert value(pool, ["d0", "d1", "d2"], "robustness(0.31)@5") == 0.0


def test_rel_must_divide_the_scale():
    assert value({"a": 3}, ["a"], "recall(rel=3)@1") == 1.0
    for rel in (1, 6):
        with pytest.raises(DataError, match=f"rel={rel} must be above"):
            value({"a": 3}, ["a"], f"recall(rel={rel})@1")


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_measure_says_what_it_is(name):
    measure = REGISTRY.load(name)
    assert name == measure.NAME
    assert measure.FORMULA and measure.SOURCE
    assert measure.__doc__.partition("\n")[0].endswith((".", "could stand in the top k and do."))
    low, high = measure.RANGE
    assert low < high
    assert measure.FIRST is None or measure.FIRST in measure.PARAMS
    if measure.AT is None:
        assert parse_measure(f"{name}@3").measure == measure(3)
    else:
        assert parse_measure(f"{name}@0.5").measure == measure(None, {measure.AT: 0.5})


def test_a_scale_with_the_same_grades_serves_all_measures():
    scale = GradeScale.of(1, 5)
    assert evaluate(Qrels.of({"q": {"a": 5}}, scale), {"q": ["a"]}).mean["ra_nwg@10"] == 1.0
