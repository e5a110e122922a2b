"""Expected gains against numerical integration, and the measures that weigh passages by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from raggs.base.errors import DataError
from raggs.metrics.columns import GradeScale, Qrels, Run, UtilityEstimates, belief_of, expected_gains
from raggs.metrics.evaluate import evaluate, measure_hits
from raggs.metrics.hits import find_hits
from raggs.metrics.names import at_cutoffs, needs_cutoff, parse_measure, parse_measures
from raggs.metrics.unjudged import Fillings, LabelUncertainty, with_doubt

LABELS = {"one": {"a": 5, "b": 4, "c": 4, "d": 2, "e": 1}, "two": {"a": 1, "b": 2}}
NAMES = ("ndcg@3", "ra_nwg@3", "recall@3")
UTILITIES = tuple(name.replace("@", "[utility]@") for name in NAMES)


def ranked(placed, labels=LABELS):
    qrels = Qrels.of(labels, GradeScale.of(1, 5))
    return replace(qrels, belief=belief_of([(qid, doc) for qid in qrels.qids for doc in labels[qid]], placed))


def value(qrels, lists, *names):
    return [found[0] for found in evaluate(qrels, {"one": lists, "two": ["a"]}, names).values]


@given(
    st.floats(-1, 7),
    st.one_of(st.just(0.0), st.floats(0.02, 4)),
    st.lists(st.floats(0, 10), min_size=5, max_size=5),
)
def test_the_expected_gain_is_the_integral(score, sigma, gains):
    found = expected_gains(np.array([score]), np.array([sigma]), np.array(gains), 1)[0]

    def gain(grade):
        return float(np.interp(grade, range(1, 6), gains))

    def integrand(z):
        return gain(score + sigma * z) * norm.pdf(z)

    knots = sorted(z for z in ((k - score) / sigma for k in range(1, 6)) if abs(z) < 9) if sigma else []
    wanted = quad(integrand, -9, 9, points=knots or None, limit=200)[0] if sigma else gain(score)
    assert found == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("plain", NAMES)
def test_a_ranking_that_is_sure_of_the_grades_changes_nothing(plain):
    sure = {("one", doc): (float(grade), 0.0) for doc, grade in LABELS["one"].items()}
    utility = plain.replace("@", "[utility]@")
    for lists in (["b", "x", "a", "e"], ["e", "d"], []):
        assert value(ranked(sure), lists, utility) == pytest.approx(value(ranked(sure), lists, plain))
    tied = {"one": {"a": 1.0, "c": 1.0, "e": 1.0, "x": 1.0, "b": 0.5}}
    modes = [f"{mode}[{{}}]" for mode in ("E", "min", "max", "range", "bias")]
    found = [evaluate(ranked(sure), tied, [mode.format(name) for mode in modes]) for name in (plain, utility)]
    np.testing.assert_allclose(found[1].values, found[0].values, atol=1e-12)


def test_the_order_inside_a_grade_shows_by_hand():
    qrels = ranked({("one", "b"): (4.4, 0.0), ("one", "c"): (3.6, 0.0)})
    best = 4 + 3.4 / np.log2(3) + 2.6 / 2
    assert value(qrels, ["b", "c"], "ndcg[utility]@3", "ndcg@3")[0] == pytest.approx((3.4 + 2.6 / np.log2(3)) / best)
    assert value(qrels, ["c", "b"], "ndcg[utility]@3")[0] == pytest.approx((2.6 + 3.4 / np.log2(3)) / best)
    assert value(qrels, ["c", "b"], "ndcg@3") == value(qrels, ["b", "c"], "ndcg@3")
    assert value(qrels, ["c"], "recall[utility]@1") == pytest.approx([0.6 / 2.6])
    weights = 1, 0.25 + 0.4 * 0.75, 0.1 + 0.6 * 0.15  # w5, w4 and w3 are 1, .25 and .1
    assert value(qrels, ["b"], "ra_nwg[utility]@3") == pytest.approx([weights[1] / sum(weights)])


def test_what_is_not_defined_by_grades_is_not_defined_by_utilities():
    qrels = ranked({("two", "b"): (2.9, 0.5), ("one", "a"): (5.0, 0.1)})
    found = evaluate(qrels, {"two": ["b"], "one": ["a"]}, ["ra_nwg[utility]@3", "ra_nwg@3", "recall[utility]@3"])
    assert np.isnan(found.values[:2, 1]).all()
    assert found.values[2, 1] == 0


@pytest.mark.parametrize("name", UTILITIES)
def test_a_set_of_grades_alone_is_refused_with_a_way_out(name):
    with pytest.raises(DataError, match="needs the scores of the rank stage") as error:
        evaluate(LABELS, {"one": ["a"]}, [name], scale=(1, 5))
    assert f"or use {name.partition('[')[0]}" in str(error.value)
    with pytest.raises(DataError, match="grades 1 to 5"):
        evaluate({"one": {"a": 0}}, {"one": ["a"]}, [name])


def test_a_passage_with_another_label_loses_what_was_believed_of_it():
    qrels = ranked({("one", doc): (4.5, 0.2) for doc in "abc"})
    other = qrels.relabelled(np.where(np.arange(len(qrels.grade)) == 0, 1, qrels.grade))
    assert other.belief.ranked.tolist() == [False, True, True, False, False, False, False]


def test_holes_are_filled_beside_a_ranking():
    hits = find_hits(ranked({("one", "a"): (4.6, 0.2)}), Run.of({"one": ["x", "a"], "two": ["a"]}))
    found = Fillings(hits).bounds(parse_measure("ndcg[utility]@2"))
    assert found.lowest[0] < found.highest[0]


def test_doubt_of_the_ranking_is_carried_into_the_interval():
    rng = np.random.default_rng(1)
    labels = {f"q{q}": {f"d{d}": 4 for d in range(6)} for q in range(12)}
    qrels = Qrels.of(labels, GradeScale.of(1, 5))
    belief = UtilityEstimates(rng.normal(4, 0.4, len(qrels.grade)), np.full(len(qrels.grade), 0.3))
    hits = find_hits(replace(qrels, belief=belief), Run.of({qid: list(docs) for qid, docs in labels.items()}))
    measures = parse_measures(["ndcg[utility]@3", "ndcg@3"])
    plain = list(measure_hits(hits, measures).interval.values())
    for sigma in (0.0, 0.3):
        doubt = LabelUncertainty(np.full(len(qrels.grade), sigma), ((),) * len(qrels.grade))
        wide = with_doubt(hits, measures, doubt, plain, seed=1, draws=60)[0]
        assert (wide.high - wide.low > 1.1 * (plain[0].high - plain[0].low)) == (sigma > 0)
    drawn = doubt.drawn(hits.qrels, np.random.default_rng(2))
    assert not drawn.belief.sigma.any()
    assert (drawn.belief.score != belief.score).all()


def test_names_read_back():
    assert parse_measure(" nDCG[Utility]@10").name == "ndcg[utility]@10"
    assert parse_measure("E[ndcg[utility]@10]").name == "E[ndcg[utility]@10]"
    assert parse_measure("recall[utility](rel=3)").name == "recall[utility](rel=3)"
    assert [each.name for each in at_cutoffs("ndcg[utility]", [5, 10])] == ["ndcg[utility]@5", "ndcg[utility]@10"]
    assert [each.name for each in at_cutoffs("E[ndcg[utility]]", [5])] == ["E[ndcg[utility]@5]"]
    assert (needs_cutoff("ra_nwg[utility]"), needs_cutoff("ndcg[utility]")) == (True, False)
