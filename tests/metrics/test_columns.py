"""Judgments and runs as columns: scales, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raggs.base.errors import DataError
from raggs.metrics import GradeScale, Qrels, Run
from raggs.metrics.columns import usual_scale


def test_the_usual_meanings_of_scales():
    golden = GradeScale.of(1, 5)
    assert (golden.relevant, golden.gains, golden.size, golden.golden) == (4, (0, 1, 2, 3, 4), 5, True)
    zero = GradeScale.of(0, 3)
    assert (zero.relevant, zero.gains, zero.size, zero.golden) == (1, (0, 1, 2, 3), 4, False)
    assert GradeScale.of(1, 3).relevant == 3
    assert GradeScale.of(0, 3, relevant=2).relevant == 2
    assert GradeScale.of(0, 1, gains={0: 0, 1: 7.5}).gains == (0, 7.5)


def test_the_scale_that_grades_seem_to_be_on():
    assert usual_scale([1, 2, 5]) == GradeScale.of(1, 5)
    assert usual_scale([0, 1]) == GradeScale.of(0, 4)
    assert usual_scale([-1, 4]) == GradeScale.of(1, 5)
    assert usual_scale([]) == GradeScale.of(1, 5)
    assert usual_scale([1]) == usual_scale([-1, 1]) == usual_scale([0, 1]), "labels that are all 1 say yes"


@pytest.mark.parametrize(("grades", "high"), [([2, 1], 2), ([-1, 3, 1], 3), ([-1], 1)])
def test_grades_that_may_mean_two_things_are_not_guessed(grades, high):
    with pytest.raises(DataError, match=f"no grade is above {high}, .* — give the scale: 0 to {high} if"):
        usual_scale(grades)
    labels = {"q": {f"doc-{place}": grade for place, grade in enumerate(grades)}}
    for made in (Qrels.of, lambda found: Qrels.from_columns(["q"] * len(grades), list(found["q"]), grades)):
        with pytest.raises(DataError, match="give the scale"):
            made(labels)
    assert Qrels.of(labels, GradeScale.of(0, high)).scale.relevant == 1


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: GradeScale.of(3, 3), "the scale 3 to 3 is not valid"),
        (lambda: GradeScale.of(-1, 3), "the scale -1 to 3 is not valid"),
        (lambda: GradeScale.of(1, 5, relevant=1), "grade 1 cannot be the lowest relevant grade"),
        (lambda: GradeScale.of(1, 5, relevant=6), "choose a grade in 2 to 5"),
        (lambda: GradeScale.of(0, 2, gains={0: 0, 2: 1}), "grade 1 has no gain"),
        (lambda: GradeScale.of(0, 1, gains={0: 0, 1: -1}), "is not in 0 to 1000"),
        (lambda: GradeScale.of(0, 1, gains={0: 0, 1: math.inf}), "is not in 0 to 1000"),
        (lambda: GradeScale(0, 1, 1, (0.0,)), "2 gains"),
    ],
)
def test_scales_that_are_none(made, message):
    with pytest.raises(DataError, match=message):
        made()


@pytest.mark.parametrize(
    ("labels", "scale", "message"),
    [
        ({"q": {"a": 6}}, None, "query q, passage a: grade 6 is outside the scale 1 to 5"),
        ({"p": {"a": 1}, "q": {"b": 0}}, (1, 5), "query q, passage b: grade 0 is outside the scale 1 to 5"),
        ({"q": {"a": 2.5}}, None, "query q: grade 2.5 is not a whole number"),
        ({"q": {"a": math.nan}}, None, "is not a whole number"),
        ({"q": {"a": math.inf}}, None, "is not a whole number"),
    ],
)
def test_judgments_that_are_refused(labels, scale, message):
    with pytest.raises(DataError, match=message):
        Qrels.of(labels, scale and GradeScale.of(*scale))


def test_a_passage_judged_twice_is_refused():
    one = Qrels.of({"q": {"a": 1, "b": 5}})
    twice = one.docs.of(["b", "b"])
    with pytest.raises(DataError, match="query q and passage b occur twice"):
        Qrels(one.qids, one.query, one.grade, twice, one.scale)


def test_judgments_are_sorted_by_query_and_counted_by_grade():
    judged = Qrels.of({"q2": {"a": 5, "b": 5, "c": -1}, "empty": {}, "q10": {"a": 1}})
    assert judged.qids == ("q10", "q2")
    assert judged.query.tolist() == [0, 1, 1, 1]
    assert judged.counts.tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 2]]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_scores_are_finite(score):
    with pytest.raises(DataError, match=r"query q, passage b: score .* is not a finite number"):
        Run.of({"q": {"a": 1.0, "b": score}})


@pytest.mark.parametrize(
    "made",
    [
        lambda: Run.of({"q": ["a", "b", "a"]}),
        lambda: Run.from_columns(["q", "p", "q"], ["a", "a", "a"], [1.0, 2.0, 3.0]),
    ],
)
def test_a_passage_retrieved_twice_is_refused(made):
    with pytest.raises(DataError, match="query q and passage a occur twice"):
        made()


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(DataError, match="1 queries, 2 passages and 1 scores"):
        Run.from_columns(["q"], ["a", "b"], [1.0])
    with pytest.raises(DataError, match="2 queries, 2 passages and 1 scores"):
        Run.from_columns(["q", "q"], ["a", "b"], [1.0])


def test_a_list_has_no_ties_and_a_mapping_keeps_its_scores():
    run = Run.of({"q2": ["a", "b"], "q1": {"c": 2, "d": 2}})
    assert run.qids == ("q2", "q1")
    assert run.query.tolist() == [0, 0, 1, 1]
    assert run.score.tolist() == [0.0, -1.0, 2.0, 2.0]


def test_three_columns_make_the_same_run():
    run = Run.from_columns(["q2", "q1", "q2"], ["a", "c", "b"], np.array([3, 2, 1], dtype=np.float32))
    assert run.qids == ("q2", "q1")
    assert run.query.tolist() == [0, 1, 0]
    assert [run.docs.text(row) for row in range(3)] == ["a", "c", "b"]


def test_facets_are_numbered_and_the_unknown_is_minus_one():
    judged = Qrels.of({"q": {"a": 5, "b": 4, "c": 3}})
    assert judged.facets({"c": "x", "a": "y", "other": "z"}).tolist() == [1, -1, 0]


def test_labels_as_three_columns_are_those_of_the_dictionary():
    labels = {"q2": {"b": 5, "a": 1}, "q1": {"a": -1}}
    made = Qrels.from_columns(["q2", "q1", "q2"], ["b", "a", "a"], [5, -1, 1])
    assert (made.qids, made.grade.tolist(), made.scale) == (("q1", "q2"), [-1, 5, 1], Qrels.of(labels).scale)
    assert np.array_equal(made.keys, Qrels.of(labels).keys)
    for columns in ((["q"], ["a", "b"], [1, 2]), (["q"], ["a"], [1.5]), (["q"], ["a"], [np.nan]), (["q"], ["a"], [7])):
        with pytest.raises(DataError):
            Qrels.from_columns(*columns)
