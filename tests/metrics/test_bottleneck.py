from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import DataError
from raggs.metrics.bottleneck import NEGLIGIBLE, bottleneck
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.hits import find_hits
from raggs.metrics.names import parse_measure

DOCS = [f"doc-{number}" for number in range(6)]


def hits_of(judged, lists, scale=(1, 5)):
    return find_hits(Qrels.of(judged, GradeScale.of(*scale)), Run.of(lists))


@given(
    st.dictionaries(st.sampled_from(DOCS), st.integers(1, 5), min_size=1),
    st.permutations(DOCS).map(lambda ids: ids[:5]),
    st.integers(1, 3),
    st.integers(1, 5),
    st.sampled_from(["ra_nwg", "n_recall4", "n_recall5"]),
)
def test_the_ceiling_is_the_best_order_of_the_pool_and_the_losses_add_up(labels, ranked, k, pool, measure):
    found = bottleneck(hits_of({"one": labels}, {"one": ranked}), measure, k=k, pool=pool)
    named = parse_measure(f"{measure}@{k}")
    candidates = ranked[: max(pool, k)]
    orders = [named.values(hits_of({"one": labels}, {"one": list(order)}))[0] for order in permutations(candidates)]
    assert found.pool == max(pool, k)
    if np.isnan(orders[0]):
        assert found.by_query == ("",)
        assert np.isnan(found.actual)
    else:
        assert found.ceiling == pytest.approx(max(orders))
        assert found.actual + found.retrieval + found.ordering == pytest.approx(1.0)
        assert found.losses[0] == pytest.approx([found.retrieval, found.ordering])
        assert min(found.losses[0]) >= -1e-12


def test_each_query_has_its_own_bottleneck():
    judged = {qid: {"best": 5, "poor": 1} for qid in ("late", "lost", "right")} | {"nothing": {"poor": 1}}
    lists = {"late": ["poor", "best"], "lost": ["poor"], "right": ["best"], "nothing": ["poor"]}
    found = bottleneck(hits_of(judged, lists), k=1, pool=2)
    assert dict(zip(sorted(judged), found.by_query, strict=True)) == {
        "late": "ordering",
        "lost": "retrieval",
        "nothing": "",
        "right": "none",
    }
    assert (found.retrieval, found.ordering) == pytest.approx((1 / 3, 1 / 3))
    assert found.kind == "retrieval"
    assert np.isnan(found.losses[sorted(judged).index("nothing")]).all()


def test_a_loss_that_nobody_would_notice_is_no_bottleneck():
    labels = {f"good-{number}": 4 for number in range(150)}
    found = bottleneck(hits_of({"one": labels}, {"one": list(labels)[:149]}), "n_recall4", k=150, pool=150)
    assert 0 < found.retrieval < NEGLIGIBLE
    assert found.kind == "none"


def test_the_share_of_means_weighs_queries_by_their_ceiling_and_the_mean_of_shares_does_not():
    """a finds one of two that it could show, of five; b all that it could, which is one of five."""
    judged = {qid: dict.fromkeys(["1", "2", "3", "4", "5"], 5) for qid in "ab"}
    lists = {"a": ["1", "x", "y", "z", "w", "2"], "b": ["1", "x", "y", "z", "w", "v"]}
    found = bottleneck(hits_of(judged, lists), "n_recall4", k=5, pool=6)
    assert (found.actual, found.ceiling) == pytest.approx((0.2, 0.3))
    assert (found.share_of_means, found.share) == pytest.approx((2 / 3, 0.75))


@pytest.mark.parametrize(("actual", "ceiling", "percent"), [(0.918, 0.988, 92.9), (0.930, 0.985, 94.4)])
def test_the_share_of_means_is_the_published_one(actual, ceiling, percent):
    found = bottleneck(hits_of({"q": {"a": 5}}, {"q": ["a"]}), k=1)
    assert 100 * replace(found, actual=actual, ceiling=ceiling).share_of_means == pytest.approx(percent, abs=0.05)


def test_other_scales_are_refused():
    with pytest.raises(DataError, match="1 to 5"):
        bottleneck(hits_of({"one": {"doc-1": 1}}, {"one": ["doc-1"]}, scale=(0, 3)))
