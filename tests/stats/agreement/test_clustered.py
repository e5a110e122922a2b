"""A judge against people: the figures by their definitions, and intervals that know of questions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raggs.base.arrays import Ints
from raggs.base.hashing import generator
from raggs.stats.agreement import check_labels, cohen_kappa, krippendorff_alpha


def graded(questions: int, each: int, *, shared: float, seed: int) -> tuple[Ints, Ints, list[str]]:
    """Grades of a judge that errs on whole questions in a share of them, and passage by passage otherwise."""
    rng = generator(seed, "graded")
    people = rng.integers(1, 6, questions * each)
    whole = np.repeat(rng.integers(-1, 2, questions), each)
    single = rng.integers(-1, 2, questions * each)
    off = np.where(np.repeat(rng.random(questions) < shared, each), whole, single)
    return np.clip(people + off, 1, 5), people, [f"q{number}" for number in range(questions) for _ in range(each)]


def test_the_figures_are_those_of_their_definitions() -> None:
    judge, people, clusters = graded(12, 7, shared=0.3, seed=1)
    found = check_labels(judge, people, clusters, seed=1)
    gap = judge - people
    assert found.kappa.value == pytest.approx(cohen_kappa(judge, people, weights="quadratic", draws=1, seed=1).value)
    assert found.alpha.value == pytest.approx(krippendorff_alpha([judge, people], draws=1, seed=1).value)
    assert found.exact.value == pytest.approx((gap == 0).mean())
    assert found.within_one.value == pytest.approx((np.abs(gap) <= 1).mean())
    assert found.bias.value == pytest.approx(gap.mean())
    assert found.leniency.value == pytest.approx((gap > 0).mean() - (gap < 0).mean())
    assert np.array(found.table).sum() == found.cases == 84
    assert found.table[judge[0] - 1][people[0] - 1] > 0, "the judge's grades are the rows"
    assert found.clusters == 12
    for each in (found.kappa, found.alpha, found.exact, found.bias, found.leniency):
        assert each.low <= each.value <= each.high
        assert each.half > 0


def test_errors_on_whole_questions_widen_the_interval() -> None:
    judge, people, clusters = graded(30, 10, shared=1.0, seed=2)
    by_question = check_labels(judge, people, clusters, seed=1)
    alone = check_labels(judge, people, [str(number) for number in range(len(judge))], seed=1)
    assert by_question.bias.half > 1.8 * alone.bias.half


def test_intervals_hold_what_they_promise() -> None:
    """Over 200 worlds whose judge is right on average, nineteen in twenty intervals of the bias hold 0."""
    held = 0
    for world in range(200):
        rng = generator(world, "worlds")
        people = np.full(120, 3)
        judge = people + np.repeat(rng.integers(-1, 2, 40), 3)
        found = check_labels(judge, people, [str(number // 3) for number in range(120)], draws=300, seed=world)
        held += found.bias.low <= 0 <= found.bias.high
    assert 180 <= held <= 198


@pytest.mark.parametrize(("questions", "each"), [(4, 10), (6, 3)])
def test_few_cases_have_no_interval(questions: int, each: int) -> None:
    found = check_labels(*graded(questions, each, shared=0.5, seed=3), seed=1)
    assert found.few
    assert math.isnan(found.kappa.low)
    assert not math.isnan(found.exact.value)


def test_one_grade_alone_says_nothing_beyond_chance() -> None:
    found = check_labels([5] * 30, [5] * 30, [str(number) for number in range(30)], seed=1)
    assert found.exact.low == found.exact.value == 1.0
    assert math.isnan(found.kappa.value)
    assert math.isnan(found.kappa.low)


def test_nothing_compared() -> None:
    found = check_labels([], [], [], seed=1)
    assert (found.cases, found.clusters) == (0, 0)
    assert math.isnan(found.bias.value)


@pytest.mark.parametrize(("judge", "people", "clusters"), [([1], [1, 2], ["a"]), ([0], [1], ["a"]), ([1], [6], ["a"])])
def test_what_is_no_pair_of_grades_is_refused(judge: list[int], people: list[int], clusters: list[str]) -> None:
    with pytest.raises(ValueError, match="grades"):
        check_labels(judge, people, clusters, seed=1)
