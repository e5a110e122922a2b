from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.judged import Labels, Lists, labels, lists

from raggs.metrics.bottleneck import STEADY, found_by, loss_ladder, steady
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.hits import find_hits
from raggs.metrics.measures import REGISTRY
from raggs.metrics.names import parse_measure

QRELS = {"q": {"best": 5, "good": 4, "poor": 1, "lost": 5}}


def losses(run: dict[str, list[str]], *others: list[str], measure: str = "n_recall4@2", pool: int = 4) -> list[float]:
    qrels = Qrels.of(QRELS, GradeScale.of(1, 5))
    hits = [find_hits(qrels, Run.of(each)) for each in (run, *({"q": other} for other in others))]
    found = found_by(hits, pool) if others else None
    return loss_ladder(hits[0], parse_measure(measure), found, pool=pool).losses[0].tolist()


def test_each_step_has_its_own_cause():
    assert losses({"q": ["best", "lost"]}) == [0, 0, 0, 0]
    assert losses({"q": ["best", "poor"]}, ["poor"]) == [0.5, 0, 0, 0]  # nobody found another good one
    assert losses({"q": ["best", "poor"]}, ["lost"]) == [0, 0.5, 0, 0]  # the other one did
    assert losses({"q": ["best", "poor", "lost"]}, ["poor"]) == [0, 0, 0.5, 0]
    assert losses({"q": ["best", "unseen", "lost"]}, ["poor"]) == [0, 0, 0, 0.5]
    assert losses({"q": ["best", "poor", "lost"]}, ["poor"], pool=2) == [0.5, 0, 0, 0]  # beyond its candidates


def test_a_single_system_loses_by_its_candidates_what_it_did_not_find():
    hits = find_hits(Qrels.of(QRELS, GradeScale.of(1, 5)), Run.of({"q": ["best", "poor"]}))
    steps = loss_ladder(hits, parse_measure("n_recall4@2"), found_by([hits], 4), pool=4)
    assert steps.values[0].tolist() == [1, 0.5, 0.5, 0.5, 0.5]


@pytest.mark.parametrize("name", ["ra_nwg", "n_recall4"])
@given(labels(1, 5, 1), lists(), st.integers(1, 4))
def test_of_one_system_they_are_the_losses_of_proc(name: str, graded: Labels, run: Lists, pool: int):
    hits = find_hits(Qrels.of(graded, GradeScale.of(1, 5)), Run.of(run))
    k = 2
    steps = loss_ladder(hits, parse_measure(f"{name}@{k}"), None, pool=pool)
    ceiling = parse_measure(f"proc_{name}(pool={max(pool, k)})@{k}").values(hits)
    np.testing.assert_allclose(steps.values[:, 2], ceiling, atol=1e-12)
    np.testing.assert_allclose(steps.values[:, 4], parse_measure(f"{name}@{k}").values(hits))


@given(labels(1, 5, 1), lists(), lists(), st.integers(1, 5), st.sampled_from(sorted(STEADY)))
def test_no_step_goes_up_and_together_they_are_all_that_is_lost(graded, mine, theirs, pool, name):
    qrels = Qrels.of(graded, GradeScale.of(1, 5))
    hits, other = (find_hits(qrels, Run.of(each)) for each in (mine, theirs))
    named = parse_measure(f"{name}@3")
    steps = loss_ladder(hits, named, found_by([hits, other], max(pool, 3)), pool=pool)
    defined = np.isfinite(steps.values).all(axis=1)
    assert (np.isfinite(steps.values).any(axis=1) == defined).all()
    values = steps.values[defined]
    assert (np.diff(values, axis=1) <= 1e-12).all()
    np.testing.assert_allclose(steps.losses[defined].sum(axis=1), values[:, 0] - values[:, -1], atol=1e-12)


def test_measures_that_may_fall_when_more_is_found_are_left_out():
    assert set(REGISTRY.builtin) >= STEADY
    told = [steady(parse_measure(name)) for name in ("ndcg@5", "E[ndcg@5]", "harm@5", "holes@5")]
    assert told == [True, False, False, False]
