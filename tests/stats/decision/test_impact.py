"""What reading does for verdicts, against plain loops over pairs, and what is chosen."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from raggs.stats.annotation_value import LabelImpact, choose

NONE = np.empty(0, dtype=np.int64)


def impact_of(seed: int, items: int = 12, systems: int = 3, measures: int = 2) -> LabelImpact:
    drawn = np.random.default_rng(seed)
    beliefs = drawn.dirichlet(np.ones(5), items)
    effects = drawn.normal(0, 0.3, (items, 5, systems, measures))
    return LabelImpact(drawn.random((systems, measures)), effects, beliefs, 4)


def test_a_label_that_is_certain_adds_no_uncertainty() -> None:
    """However much it changes the scores."""
    beliefs = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
    effects = np.zeros((2, 3, 2, 1))
    effects[:, :, 0, 0] = [[-0.3, 0.1, 0.7], [0.2, 0.0, 0.4]]
    impact = LabelImpact(np.array([[0.5], [0.5]]), effects, beliefs, 10)
    assert impact.variance(np.array([0])).tolist() == [[[0.0, 0.0], [0.0, 0.0]]]
    assert impact.moved(np.array([0]))[0, 0, 1] == pytest.approx(0.01)
    assert impact.variance()[0, 0, 1] == pytest.approx(0.01**2)


@given(st.integers(0, 10_000))
def test_as_plain_loops_have_it(seed: int) -> None:
    impact = impact_of(seed)
    left = impact.variance()
    worth = np.zeros(12)
    for measure, one, other in itertools.product(range(2), range(3), range(3)):
        moved = (impact.effects[:, :, one, measure] - impact.effects[:, :, other, measure]) / 4
        expected = impact.now[one, measure] - impact.now[other, measure] + (impact.beliefs * moved).sum()
        spread = (impact.beliefs * moved**2).sum(axis=1) - (impact.beliefs * moved).sum(axis=1) ** 2
        assert impact.expected[measure, one, other] == pytest.approx(expected)
        assert left[measure, one, other] == pytest.approx(spread.sum())
        if one < other:
            stands = impact.now[one, measure] - impact.now[other, measure]
            turned = norm.cdf(-np.sign(stands) * expected / spread.sum() ** 0.5)
            assert impact.outlook().turned[measure, one, other] == pytest.approx(turned)
            worth += turned / spread.sum() ** 0.5 * (impact.beliefs * abs(moved)).sum(axis=1)
    assert impact.worth(left, impact.differences) == pytest.approx(worth)


def test_what_can_turn_an_open_verdict_comes_before_what_can_not() -> None:
    effects = np.zeros((4, 2, 2, 1))
    effects[0, 1] = [[0.5], [0.5]]  # moves both systems alike
    effects[1, 1] = [[0.5], [0.0]]
    effects[2, 1] = [[0.5], [0.0]]
    beliefs = np.array([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1], [0.5, 0.5]])
    impact = LabelImpact(np.array([[0.5], [0.52]]), effects, beliefs, 10)
    assert [pick.item for pick in choose(impact, np.ones(4), 10, NONE)] == [1, 2]
    assert [pick.item for pick in choose(impact, np.array([1.0, 9.0, 1.0, 1.0]), 10, NONE)] == [2, 1], "for its time"
    assert [pick.item for pick in choose(impact, np.ones(4), 10, np.array([1]))] == [2]
    assert list(choose(impact, np.full(4, 11.0), 10, NONE)) == []


def test_a_settled_verdict_draws_no_reading_from_an_open_one() -> None:
    effects = np.zeros((2, 2, 4, 1))
    effects[0, 1, 0] = effects[1, 1, 2] = 0.4
    impact = LabelImpact(np.array([[0.9], [0.1], [0.50], [0.51]]), effects, np.full((2, 2), 0.5), 10)
    # The first pair lies far apart, but each of its systems is compared with the other two as well.
    assert next(choose(impact, np.ones(2), 1, NONE)).item == 1


def test_reading_everything_makes_every_verdict_sure() -> None:
    impact = impact_of(3)
    now, after = impact.outlook(), impact.outlook(np.arange(12))
    assert now.verdicts == after.verdicts == 3
    assert after.sure == pytest.approx([3, 3])
    assert not after.turned.any()
    some = impact.outlook(np.arange(6))
    assert (some.sure <= after.sure + 1e-9).all()


def test_the_time_is_kept() -> None:
    impact, seconds = impact_of(5, items=200), np.random.default_rng(5).uniform(5, 60, 200)
    picks = list(choose(impact, seconds, 600, np.array([3, 4])))
    chosen = [pick.item for pick in picks]
    assert len(set(chosen)) == len(chosen)
    assert not {3, 4} & set(chosen)
    assert 540 < seconds[chosen].sum() <= 600
