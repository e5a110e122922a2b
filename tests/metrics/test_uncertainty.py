from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.evaluate import measure_hits
from raggs.metrics.hits import find_hits
from raggs.metrics.names import parse_measures
from raggs.metrics.unjudged import LabelUncertainty, with_doubt

MEASURES = parse_measures(["ndcg@3", "recall@3", "ra_nwg@3"])
QUERIES, DOCS = 8, 5


def world(seed=0):
    rng = np.random.default_rng(seed)
    labels = {f"query-{q}": {f"doc-{d}": int(rng.integers(1, 6)) for d in range(DOCS)} for q in range(QUERIES)}
    qrels = Qrels.of(labels, GradeScale.of(1, 5))
    lists = {qid: [f"doc-{d}" for d in rng.permutation(DOCS)] for qid in labels}
    return find_hits(qrels, Run.of(lists))


def doubt(sigma=0.0, samples=()):
    rows = QUERIES * DOCS
    return LabelUncertainty(np.full(rows, sigma), (samples,) * rows)


@given(st.integers(0, 100), st.sampled_from([0.0, 0.3, 2.0]), st.sampled_from([(), (1, 5), (3, 3, 4)]))
def test_an_interval_is_never_narrower_and_its_mean_stays(seed, sigma, samples):
    hits = world(seed)
    plain = list(measure_hits(hits, MEASURES).interval.values())
    wide = with_doubt(hits, MEASURES, doubt(sigma, samples), plain, seed=seed, draws=30)
    for before, after in zip(plain, wide, strict=True):
        assert (after.mean, after.count) == (before.mean, before.count)
        if not np.isnan(before.low):
            assert after.low <= before.low <= before.high <= after.high


def test_more_doubt_gives_wider_intervals():
    hits = world()
    plain = list(measure_hits(hits, MEASURES).interval.values())
    widths = [
        [found.high - found.low for found in with_doubt(hits, MEASURES, given, plain, seed=1)]
        for given in (doubt(), doubt(2.0))
    ]
    assert all(large > small for small, large in zip(*widths, strict=True))
    assert with_doubt(hits, MEASURES, doubt(2.0), plain, seed=1) == with_doubt(
        hits, MEASURES, doubt(2.0), plain, seed=1
    )


def test_grades_without_doubt_and_negative_ones_stay_as_they_are():
    qrels = Qrels.of({"query-1": {"doc-1": 5, "doc-2": -1, "doc-3": 2, "doc-4": 1}}, GradeScale.of(1, 5))
    given = LabelUncertainty(np.array([3.0, 3.0, 0.0, 0.0]), ((), (), (), (4, 5)))
    rng = np.random.default_rng(1)
    drawn = np.stack([given.draw(qrels, rng) for _ in range(200)])
    assert set(drawn[:, 0].tolist()) == {1, 2, 3, 4, 5}  # within the scale, and all of it
    assert set(drawn[:, 1].tolist()) == {-1}
    assert set(drawn[:, 2].tolist()) == {2}
    assert set(drawn[:, 3].tolist()) == {4, 5}  # as the judge's own answers


def test_the_posterior_comes_before_the_judge_s_samples():
    qrels = Qrels.of({"query-1": {"doc-1": 3}}, GradeScale.of(1, 5))
    rng = np.random.default_rng(1)
    drawn = [int(LabelUncertainty(np.array([0.1]), ((1, 5),)).draw(qrels, rng)[0]) for _ in range(50)]
    assert set(drawn) == {3}


def test_a_measure_that_no_draw_defines_keeps_its_interval():
    qrels = Qrels.of({f"query-{n}": {"doc-1": 1} for n in range(3)}, GradeScale.of(1, 5))
    hits = find_hits(qrels, Run.of({f"query-{n}": ["doc-1"] for n in range(3)}))
    named = parse_measures(["n_recall5@3"])
    plain = list(measure_hits(hits, named).interval.values())
    (found,) = with_doubt(hits, named, LabelUncertainty(np.zeros(3), ((),) * 3), plain, seed=1, draws=5)
    assert found is plain[0]


@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_draws_follow_from_the_seed(sigma):
    hits, given = world(), doubt(sigma, (2, 4))
    one, two = (given.draw(hits.qrels, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one, two)
