"""Expectations, extremes, range and bias over tied passages: against the enumeration of every order."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plain_measures import all_orders, groups_of, plain_value, written

from raggs.base.errors import UsageError
from raggs.metrics import GradeScale, evaluate, parse_measure
from raggs.metrics.columns import Qrels
from raggs.metrics.measures import REGISTRY

UTILITIES = {name for name in REGISTRY if name.endswith("[utility]")}  # need a ranking: see test_belief
EVIDENCE = {name for name in REGISTRY if REGISTRY.load(name).EVIDENCE}  # need evidence sets: see test_evidence
TIED = sorted(name for name in REGISTRY if REGISTRY.load(name).TIES and name not in UTILITIES | EVIDENCE)
MODES = ("E", "min", "max", "range", "bias")
GRADES = st.none() | st.integers(1, 5)
SCORED = st.lists(st.tuples(st.sampled_from([1.0, 2.0, 2.0, 3.0]), GRADES), max_size=6)

SEVENS = [
    ([[5, 4, 4, 3, 1, None, None]], [5, 3, 2]),
    ([[4], [5, 5, 3, 2, 1, None, 4], [5]], []),
    ([[None, None], [4, 4, 3, 3, 2, 2, 1]], [4]),
    ([[5, 4], [5, None, None, None, None, None, 4], [3, 3]], [1, 1]),
    ([[1, 2, 2, 1, None, None, None], [5]], [5]),
    ([[5, 5, 5, 5, 4, 4, 4]], []),
]


def world(groups, missed):
    """Judgments and a run with these tie groups; ids that do not sort like grades."""
    grades, scores = {}, {}
    for place, group in enumerate(groups):
        for number, grade in enumerate(group):
            doc = f"d{(7 * number + 3 * place) % 11}-{place}"
            scores[doc] = float(-place)
            if grade is not None:
                grades[doc] = grade
    grades.update({f"missed{number}": grade for number, grade in enumerate(missed)})
    return {"q": grades}, {"q": scores}


def check(groups, missed, k, depth):
    judged, found = world(groups, missed)
    if not judged["q"]:
        return
    qrels = Qrels.of(judged, GradeScale.of(1, 5))
    names = [written(name, k, depth) for name in TIED]
    ours = evaluate(qrels, found, [*names, *(f"{mode}[{name}]" for name in names for mode in MODES)])
    ways = all_orders(groups)
    pool = list(judged["q"].values())
    for plain, name in zip(TIED, names, strict=True):
        values = {order: plain_value(plain, order, pool, k, depth) for order in ways}
        defined = {order: value for order, value in values.items() if not math.isnan(value)}
        expected = dict.fromkeys(MODES, math.nan)
        if defined:
            mean = sum(value * ways[order] for order, value in defined.items()) / sum(ways[o] for o in defined)
            least, most = min(defined.values()), max(defined.values())
            now = ours.per_query[name]["q"]
            expected = {"E": mean, "min": least, "max": most, "range": most - least, "bias": now - mean}
        for mode, value in expected.items():
            got = ours.per_query[f"{mode}[{name}]"]["q"]
            assert got == pytest.approx(value, abs=1e-9, nan_ok=True), (mode, name)


@pytest.mark.nightly(keep=4)
@pytest.mark.parametrize(("groups", "missed"), SEVENS)
@pytest.mark.parametrize(("k", "depth"), [(1, 2), (3, 5), (6, 6), (20, 50)])
def test_groups_of_seven(groups, missed, k, depth):
    check(groups, missed, k, depth)


@given(SCORED, st.lists(st.integers(1, 5), max_size=3), st.integers(1, 7), st.integers(1, 7))
def test_any_list(scored, missed, k, depth):
    check(groups_of(scored), missed, k, depth)


@given(SCORED.filter(bool), st.sampled_from([2, 3, 5]))
def test_any_relevance(scored, low):
    """Binary measures under another lowest relevant grade: the same as with the grades renamed."""
    judged, found = world(groups_of(scored), [5])
    renamed = {"q": {doc: 5 if grade >= low else 1 for doc, grade in judged["q"].items()}}
    for name in ("mrr@3", "map", "hit@2", "f1@3", "recall@4", "rbp"):
        head, _, tail = name.partition("@")
        changed = f"E[{head}(rel={low}){'@' + tail if tail else ''}]"
        ours = evaluate(judged, found, [changed], scale=(1, 5)).mean[changed]
        assert ours == pytest.approx(evaluate(renamed, found, [f"E[{name}]"], scale=(1, 5)).mean[f"E[{name}]"])


@given(SCORED.filter(bool), st.lists(st.integers(1, 5), max_size=2), st.integers(1, 6))
def test_range_at_k_moves_the_group_across_the_cutoff_alone(scored, missed, k):
    """Against all orders of that group, where every other group stands as the run has it."""
    groups = groups_of(scored)
    judged, found = world(groups, missed)
    if not judged["q"]:
        return
    stood = [sorted(docs, reverse=True) for docs in by_score(found["q"])]  # as trec_eval has them
    across = next((n for n, docs in enumerate(stood) if (above := sum(map(len, stood[:n]))) < k < above + len(docs)), 0)
    ways = []
    for order in permutations(stood[across]):
        docs = [doc for n, group in enumerate(stood) for doc in (order if n == across else group)]
        ways.append([judged["q"].get(doc) for doc in docs])
    straddles = sum(map(len, stood[:across])) < k < sum(map(len, stood[: across + 1]))
    names = [written(name, k, 4) for name in TIED]
    ours = evaluate(judged, found, [f"range_at_k[{name}]" for name in names], scale=(1, 5))
    for plain, name in zip(TIED, names, strict=True):
        values = [plain_value(plain, way, list(judged["q"].values()), k, 4) for way in ways]
        values = [value for value in values if not math.isnan(value)]
        expected = math.nan if not values else max(values) - min(values) if straddles else 0.0
        assert ours.mean[f"range_at_k[{name}]"] == pytest.approx(expected, abs=1e-9, nan_ok=True), name


def by_score(scores):
    return [[doc for doc in scores if scores[doc] == value] for value in sorted(set(scores.values()), reverse=True)]


def test_range_at_k_is_less_than_the_true_range_where_ties_lie_above_the_cutoff():
    judged, found = {"q": {"a": 5, "b": 1, "c": 1}}, {"q": {"a": 2.0, "b": 2.0, "c": 1.0}}
    ours = evaluate(judged, found, ["range[mrr@3]", "range_at_k[mrr@3]", "range_at_k[recall@1]"], scale=(1, 5))
    assert list(ours.mean.values()) == [0.5, 0.0, 1.0]
    with pytest.raises(UsageError, match="needs a cutoff"):
        parse_measure("range_at_k[mrr]")


def test_without_ties_there_is_no_range_and_no_bias():
    judged, _ = world([[5, 3, None, 4, 1, 2]], [4])
    found = {"q": [*judged["q"], "x"]}
    names = [f"{mode}[{written(name, 3, 4)}]" for name in TIED for mode in ("range", "bias")]
    ours = evaluate(judged, found, names)
    assert all(ours.mean[name] == pytest.approx(0.0, abs=1e-12) for name in names)


@pytest.mark.parametrize("name", TIED)
def test_the_mean_bias_over_all_names_of_the_passages_is_zero(name):
    """trec_eval's order of ties follows ids; over all ways to name the passages it favours nobody."""
    grades = [5, 4, 3, 1, None]
    judged, found = {}, {}
    for number, ids in enumerate(permutations("abcde")):
        judged[f"q{number}"] = {"top": 4, **{d: g for d, g in zip(ids, grades, strict=True) if g is not None}}
        found[f"q{number}"] = {"top": 2.0, **dict.fromkeys(ids, 1.0)}
    measure = f"bias[{written(name, 3, 4)}]"
    ours = evaluate(judged, found, [measure, written(name, 3, 4)])
    assert ours.valid[measure] == ours.valid[written(name, 3, 4)] > 0
    assert name == "pct_proc_n_recall5" or ours.valid[measure] == len(judged)  # the 5 need not be in the pool
    assert ours.mean[measure] == pytest.approx(0.0, abs=1e-12)


@given(SCORED.filter(bool), st.integers(1, 6))
def test_the_value_and_the_expectation_lie_between_the_extremes(scored, k):
    judged, found = world(groups_of(scored), [5])
    for name in TIED:
        measure = written(name, k, 4)
        asked = [measure, *(f"{mode}[{measure}]" for mode in ("E", "min", "max"))]
        value, mean, least, most = (evaluate(judged, found, asked, scale=(1, 5)).values[:, 0]).tolist()
        if not math.isnan(value):
            assert least - 1e-9 <= value <= most + 1e-9
        if not math.isnan(mean):
            assert least - 1e-9 <= mean <= most + 1e-9


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - set(TIED) - UTILITIES - EVIDENCE))
def test_a_measure_without_known_ties_says_so(name):
    with pytest.raises(UsageError, match="not defined for"):
        parse_measure(f"E[{name}@1]")


def test_a_wide_group_costs_no_enumeration():
    """Two thousand tied passages, ten of them relevant: the chance of none in the first hundred is hypergeometric."""
    judged = {"q": {f"d{number}": 5 for number in range(10)}}
    found = {"q": {f"d{number}": 1.0 for number in range(2000)}}
    missing = math.comb(1990, 100) / math.comb(2000, 100)
    ours = evaluate(judged, found, ["E[hit@100]", "E[recall@100]", "E[proc_n_recall4(pool=100)@10]", "E[hit_all@1999]"])
    assert ours.mean["E[hit@100]"] == pytest.approx(1 - missing)
    assert ours.mean["E[recall@100]"] == pytest.approx(0.05)
    assert ours.mean["E[proc_n_recall4(pool=100)@10]"] == pytest.approx(0.05)
    assert ours.mean["E[hit_all@1999]"] == pytest.approx(1990 / 2000)
