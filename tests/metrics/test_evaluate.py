"""The one function that callers need."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raggs.base.errors import DataError, UsageError
from raggs.metrics import GradeScale, Qrels, Run, evaluate
from raggs.metrics.evaluate import GOLDEN_MEASURES, USUAL_ELSEWHERE
from raggs.stats.intervals import bootstrap_mean

JUDGED = {"q1": {"a": 5, "b": 4, "c": 1}, "q2": {"a": 2, "b": 1}, "q3": {"a": 5}}
FOUND = {"q1": ["c", "a"], "q2": ["a"], "unknown": ["a"]}


def test_means_are_over_valid_queries_and_say_over_how_many():
    ours = evaluate(JUDGED, FOUND, ["n_recall4@2", "recall@2"])
    assert ours.qids == ("q1", "q2", "q3")
    assert ours.per_query["n_recall4@2"] == pytest.approx({"q1": 0.5, "q2": math.nan, "q3": 0.0}, nan_ok=True)
    assert (ours.mean["n_recall4@2"], ours.valid["n_recall4@2"]) == (0.25, 2)
    assert (ours.mean["recall@2"], ours.valid["recall@2"]) == (pytest.approx(1 / 6), 3)
    assert ours.hits.unknown == 1


def test_a_mean_over_no_query_is_not_a_number():
    ours = evaluate({"q": {"a": 1}}, {"q": ["a"]}, ["ra_nwg@3"], scale=(1, 5))
    assert math.isnan(ours.mean["ra_nwg@3"])
    assert ours.valid["ra_nwg@3"] == 0
    assert math.isnan(ours.interval["ra_nwg@3"].low)


def test_intervals_are_seeded_bootstraps_of_the_column():
    judged = {f"q{n}": {"a": 5, "b": 1} for n in range(30)}
    found = {f"q{n}": ["a", "b"] if n % 3 else ["b", "a"] for n in range(30)}
    ours = evaluate(judged, found, ["mrr", "ndcg@2"], confidence=0.9, seed=4)
    assert ours.interval["mrr"] == bootstrap_mean(ours.column("mrr"), confidence=0.9, seed=4)
    low, high = ours.interval["RR"]
    assert low < ours.mean["mrr"] < high
    assert evaluate(judged, found, ["mrr"], seed=5).interval["mrr"] != ours.interval["mrr"]


def test_the_usual_measures_depend_on_the_scale():
    assert evaluate(JUDGED, FOUND).measures == GOLDEN_MEASURES
    assert evaluate({"q": {"a": 0, "b": 1}}, {"q": ["b"]}).measures == USUAL_ELSEWHERE


def test_where_relevance_begins():
    found = {"q": ["c", "b", "a"]}
    grades = {"q": {"a": 5, "b": 3, "c": 1}}
    assert evaluate(grades, found, ["mrr"]).mean["mrr"] == pytest.approx(1 / 3)
    assert evaluate(grades, found, ["mrr"], binary_at=3).mean["mrr"] == 0.5
    assert evaluate(grades, found, ["mrr"], scale=(0, 5)).mean["mrr"] == 1.0
    assert evaluate(grades, found, ["mrr(rel=3)"], binary_at=5).mean["mrr(rel=3)"] == 0.5


def test_columns_serve_as_well_as_dictionaries():
    qrels, run = Qrels.of(JUDGED), Run.of(FOUND)
    for options in ({}, {"binary_at": 5}, {"gains": {grade: grade**2 for grade in range(1, 6)}}, {"scale": (0, 5)}):
        measures = ["mrr", "ndcg@3", "map"]
        ours = evaluate(qrels, run, measures, **options)
        assert (ours.values == evaluate(JUDGED, FOUND, measures, **options).values).all()
    assert qrels.scale == GradeScale.of(1, 5), "the caller's judgments stay as they were"


def test_ties_as_in_the_file():
    judged, found = {"q": {"a": 5, "b": 1}}, {"q": {"a": 1.0, "b": 1.0}}
    assert evaluate(judged, found, ["mrr"]).mean["mrr"] == 0.5
    assert evaluate(judged, found, ["mrr"], ties="file").mean["mrr"] == 1.0
    assert evaluate(judged, found, ["bias[mrr]"], ties="file").mean["bias[mrr]"] == 0.25


def test_a_better_list_scores_higher():
    worse, better = ["c", "b", "a"], ["a", "b", "c"]
    names = ["ndcg@3", "mrr", "map", "err@3", "rbp"]
    first, second = (evaluate(JUDGED, {"q1": order}, names).values[:, 0] for order in (worse, better))
    assert (first < second).all()


@pytest.mark.parametrize(
    ("judged", "found", "options", "message"),
    [
        ({}, {"q": ["a"]}, {}, "the judgments are empty"),
        ({"q": {}}, {"q": ["a"]}, {}, "the judgments are empty"),
        ({"q1": {"a": 5}}, {"1": ["a"]}, {}, "none of the judged queries"),
        ({"q": {"a": 5}}, {"q": ["a", "a"]}, {}, "occur twice"),
        ({"q": {"a": 5}}, {"q": {"a": np.nan}}, {}, "not a finite number"),
        ({"q": {"a": 5}}, {"q": ["a"]}, {"scale": (0, 3)}, "outside the scale 0 to 3"),
        ({"q": {"a": 5}}, {"q": ["a"]}, {"binary_at": 6}, "grade 6 cannot be the lowest relevant grade"),
    ],
)
def test_data_that_cannot_be_scored(judged, found, options, message):
    with pytest.raises(DataError, match=message):
        evaluate(judged, found, ["mrr"], **options)


def test_an_unknown_measure_is_a_usage_error():
    with pytest.raises(UsageError, match="unknown measure"):
        evaluate(JUDGED, FOUND, ["quality@3"])
