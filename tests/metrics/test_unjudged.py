"""Bounds of differences against every grading of the unjudged passages, one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.hits import find_hits
from raggs.metrics.names import parse_measure
from raggs.metrics.unjudged import ShownPassages, difference_ends, top_of, value_ends

DOCS = [f"doc-{number}" for number in range(7)]
EXACT = (
    "ra_nwg@3", "n_recall4@3", "n_recall5@2", "precision4@4", "harm@4", "ndcg@3", "ndcg_exp@4", "ndcg", "recall@3",
    "precision@3", "f1@3", "hits@3", "rbp@4", "mrr@3", "mrr", "hit@2", "map", "map@3", "E[ndcg@3]", "containment@3",
)  # fmt: skip
WIDER = ("hit_all@3", "bpref", "robustness(0.5)@3", "pct_proc_ra_nwg(pool=4)@2")
LISTS = st.permutations(DOCS).map(lambda ids: ids[:4])
SCALE = GradeScale.of(1, 5)
ALIKE = ["doc-0", "doc-1", "doc-4", "doc-3"]


def shown(judged, ids):
    run = Run.of({"q": ids})
    hits = find_hits(Qrels.of({"q": judged}, SCALE), run)
    return ShownPassages(hits, top_of(hits, run, "trec", 100))


def sides(judged, one, other):
    ours, theirs = (shown(judged, ids) for ids in (one, other))
    return ours, ShownPassages(find_hits(ours.hits.qrels, Run.of({"q": other})), theirs.top)


def value(named, judged, ids):
    qrels = Qrels.of({"q": judged}, SCALE)
    hits = find_hits(qrels, Run.of({"q": ids}))
    if named.measure.NAME == "containment":
        hits = hits.__class__(**{**vars_of(hits), "answer_rank": np.array([2.0])})
    return float(named.values(hits)[0])


def vars_of(hits):
    return {name: getattr(hits, name) for name in hits.__dataclass_fields__}


def every(named, judged, one, other):
    """The differences by all gradings of what is unjudged within the cutoff of either."""
    k = getattr(named.measure, "depth", named.measure.cutoff)
    holes = sorted({doc for ids in (one, other) for doc in ids[: min(k, 9)] if doc not in judged})
    for grades in product(range(1, 6), repeat=len(holes)):
        more = judged | dict(zip(holes, grades, strict=True))
        yield value(named, more, one) - value(named, more, other)


@example({f"doc-{number}": 1 for number in range(4)}, ALIKE, ALIKE, "pct_proc_ra_nwg(pool=4)@2")
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(DOCS), st.integers(1, 5), min_size=4),
    LISTS,
    LISTS,
    st.sampled_from([name for name in (*EXACT, *WIDER) if name != "containment@3"]),
)
def test_no_grading_of_unjudged_passages_leaves_the_bounds(judged, one, other, name):
    named = parse_measure(name)
    ours, theirs = sides(judged, one, other)
    found = difference_ends(named, ours, theirs)
    known = [each for each in every(named, judged, one, other) if np.isfinite(each)]
    known += [each for each in [value(named, judged, one) - value(named, judged, other)] if np.isfinite(each)]
    if not known:
        assert np.isnan(found.low[0]) or name in WIDER
        return
    assert found.low[0] <= min(known) + 1e-9
    assert found.high[0] >= max(known) - 1e-9
    if name in EXACT:
        np.testing.assert_allclose([found.low[0], found.high[0]], [min(known), max(known)], atol=1e-9)


@pytest.mark.parametrize("name", ["ndcg@100", "recall@100", "map", "ra_nwg@100"])
def test_many_unjudged_passages_give_bounds_that_hold_too(name):
    """Random gradings of forty passages, and the two that favour one system most."""
    named, rng = parse_measure(name), np.random.default_rng(1)
    docs = [f"d{number:02}" for number in range(40)]
    one, other = docs[:30], docs[:9:-1]
    judged = {"d00": 5, "d01": 1, "d39": 4, "d20": 3}
    ours, theirs = sides(judged, one, other)
    found = difference_ends(named, ours, theirs)
    assert -1 <= found.low[0] < found.high[0] <= 1
    open_ = [doc for doc in docs if doc not in judged]
    drawn = [dict(zip(open_, rng.integers(1, 6, len(open_)).tolist(), strict=True)) for _ in range(50)]
    drawn += [{doc: 5 if (doc in set(one)) is liked else 1 for doc in open_} for liked in (True, False)]
    for grades in drawn:
        more = judged | grades
        assert found.low[0] - 1e-9 <= value(named, more, one) - value(named, more, other) <= found.high[0] + 1e-9


def test_a_passage_that_both_show_at_one_rank_moves_nothing():
    judged = {"doc-0": 5, "doc-1": 1}
    ours, theirs = sides(judged, ["doc-0", "doc-6", "doc-1"], ["doc-1", "doc-6", "doc-0"])
    for name in ("precision@3", "rbp@3", "hits@3"):
        found = difference_ends(parse_measure(name), ours, theirs)
        assert found.low[0] == pytest.approx(found.high[0])


def test_a_query_without_unjudged_passages_keeps_its_difference():
    judged = {"doc-0": 5, "doc-1": 1, "doc-2": 3}
    ours, theirs = sides(judged, ["doc-0", "doc-1", "doc-6"], ["doc-2", "doc-1", "doc-5"])
    named = parse_measure("ndcg@2")
    found = difference_ends(named, ours, theirs)
    assert found.low[0] == found.high[0] == value(named, judged, ["doc-0"]) - value(named, judged, ["doc-2"])


def test_the_bounds_of_one_system_are_those_of_its_own_unjudged_passages():
    ours = shown({"doc-0": 5, "doc-1": 1}, ["doc-6", "doc-0"])
    found = value_ends(parse_measure("precision@2"), ours)
    assert (found.low[0], found.high[0]) == (0.5, 1.0)


@pytest.mark.parametrize("ties", ["trec", "file"])
def test_a_top_stands_in_the_order_in_which_lists_are_scored(ties):
    lists = {"one": {"a": 1.0, "c": 1.0, "b": 1.0, "z": 2.0}, "two": {"a": 3.0}, "unknown": {"a": 1.0}}
    qrels = Qrels.of({"one": {"c": 5, "b": 1}, "two": {"x": 1}}, SCALE)
    run = Run.of(lists)
    hits = find_hits(qrels, run, ties)
    top = top_of(hits, run, ties, 3)
    order = {"trec": ("z", "c", "b"), "file": ("z", "a", "c")}[ties]
    assert top.lists(qrels.qids) == {"one": order, "two": ("a",)}
    assert top.share(2) == pytest.approx({"trec": 0.75, "file": 1.0}[ties])  # as holes@2 has it
