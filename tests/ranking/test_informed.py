"""Orders that were there beforehand: of a sharpness of their own, with equals, and no word on the judge."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from support.worlds import make_world, play

from raggs.ranking import make_ranker
from raggs.ranking.posterior import JudgedLists, JudgedOrders, JudgeModel, KnownPicks, by_item

WORLD = make_world(3, 20)
SETTINGS = {"top": 10, "seed": 1, "max_calls": 20}


def ranker(engine: str = "bayes"):
    return make_ranker(engine, WORLD.ids, list(WORLD.grades.values()), **SETTINGS)


def judged(orders: list[list[int]], known: KnownPicks | None = None) -> JudgedOrders:
    rows = np.array(orders, dtype=np.int64).reshape(-1, 4)
    lists = JudgedLists(rows, np.tile(np.arange(4), (len(rows), 1)), np.ones(len(rows)))
    return JudgedOrders((lists,), JudgeModel(np.zeros(4)), known)


def test_groups_of_one_are_an_order_like_any_other() -> None:
    utilities = np.array([1.0, 3.0, 2.0, 4.5, 2.5])
    known = KnownPicks().and_groups([[3], [1], [0], [2]], 2.0)
    said, expected = by_item(utilities, judged([], known), 9.0), by_item(utilities, judged([[3, 1, 0, 2]]), 2.0)
    for found, wanted in zip(said, expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_the_gradient_is_that_of_the_likelihood_also_with_equals() -> None:
    utilities, step = np.array([1.0, 3.0, 2.0, 4.5, 2.5]), 1e-6
    known = KnownPicks().and_groups([[3, 1], [0], [2, 4]], 4.5)

    def value(x: np.ndarray) -> float:
        return by_item(x, judged([[0, 1, 2, 3]], known), 3.0)[0]

    _, gradient, curvature = by_item(utilities, judged([[0, 1, 2, 3]], known), 3.0)
    nudges = np.eye(5) * step
    slopes = [(value(utilities + nudge) - value(utilities - nudge)) / (2 * step) for nudge in nudges]
    np.testing.assert_allclose(gradient, slopes, atol=1e-6)
    assert np.linalg.eigvalsh(curvature).min() > -1e-9


def test_an_order_moves_those_that_it_names_and_says_nothing_of_equals() -> None:
    told, plain = ranker(), ranker()
    grades = dict(WORLD.grades)
    one, other = [name for name in WORLD.ids if grades[name] == 1][:2]
    told.inform([[one], [other]], 4.5)
    ranking = told.ranking()
    assert ranking.order.index(one) < ranking.order.index(other)
    assert (ranking.calls, sum(ranking.exposures)) == (0, 2)
    first, second = [name for name in WORLD.ids if name not in (one, other)][:2]
    plain.inform([[first, second], [one]], 4.5)
    twin = ranker()
    twin.inform([[second, first], [one]], 4.5)
    np.testing.assert_allclose(plain.ranking().scores, twin.ranking().scores, atol=1e-9)


def test_it_knows_more_than_one_that_was_told_nothing() -> None:
    def inversions(order: tuple[str, ...]) -> int:
        place = {name: number for number, name in enumerate(WORLD.truth)}
        return sum(place[first] > place[second] for first, second in pairwise(order))

    told, plain = ranker(), ranker()
    truth = WORLD.truth
    for start in range(0, 15, 3):
        told.inform([[name] for name in truth[start : start + 5]], 4.5)
    assert inversions(told.ranking().order) < inversions(plain.ranking().order)
    before = told.ranking()
    assert play(told, WORLD.judge(3.0)).calls <= play(plain, WORLD.judge(3.0)).calls
    assert before.sharpness == 3.0, "people's orders say nothing of the judge"


def test_the_same_orders_lead_to_the_same_ranking_to_the_last_bit() -> None:
    found = []
    for _ in range(2):
        told = ranker()
        told.inform([WORLD.ids[2:4], WORLD.ids[5:6]], 3.0)
        told.inform([[WORLD.ids[7]], [WORLD.ids[2]]], 3.0)
        found.append(play(told, WORLD.judge(3.0)))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([["nobody"], ["d001"]], "not in the pool: nobody"),
        ([["d001", "d002"]], "two or more non-empty groups"),
        ([["d001"], ["d001"]], "each passage at most once"),
        ([["d001"], []], "two or more non-empty groups"),
    ],
)
def test_orders_that_cannot_be_right(groups: list[list[str]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ranker().inform(groups, 4.5)


def test_it_comes_before_the_first_round_and_only_to_engines_that_take_it() -> None:
    begun = ranker()
    begun.next_batches(1)
    with pytest.raises(ValueError, match="before the first round"):
        begun.inform([["d001"], ["d002"]], 4.5)
    with pytest.raises(TypeError, match="does not accept orders"):
        ranker("online").inform([["d001"], ["d002"]], 4.5)
