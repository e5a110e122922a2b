"""Position bias: found where it is, not where it is not, and then no noise any more."""

from __future__ import annotations

import numpy as np
import pytest
from support.orders import fair

from raggs.base.hashing import generator
from raggs.ranking import make_ranker
from raggs.ranking.posterior import JudgedLists, JudgedOrders, JudgeModel, Posterior, Prior
from raggs.ranking.profile import position_bias

UTILITIES = np.linspace(2.0, 4.0, 30)
KNOWN = Posterior(UTILITIES, 0.01 * np.eye(30), 2.0, 0.0, Prior(UTILITIES, np.full(30, 100.0)))


def shown_to(favour, count, seed) -> JudgedOrders:
    """Random lists of five, ordered by a judge that knows the utilities and favours places."""
    rng = generator(seed, "lists")
    orders, places = [], []
    for _ in range(count):
        shown = rng.choice(30, 5, replace=False)
        best = np.argsort(-(2.0 * UTILITIES[shown] + favour + rng.gumbel(size=5)))
        orders.append(shown[best])
        places.append(best)
    return JudgedOrders((JudgedLists(np.array(orders), np.array(places), np.ones(count)),), JudgeModel(np.zeros(5)))


@pytest.mark.parametrize("favour", [[2.0, 0.5, -0.5, -1.0, -1.0], [0.8, -0.4, -0.8, -0.4, 0.8]])
def test_the_favour_of_the_places_is_found(favour):
    found = position_bias(shown_to(np.array(favour), 400, 1), KNOWN)
    np.testing.assert_allclose(found, favour, atol=0.25)
    assert found.sum() == pytest.approx(0, abs=1e-9)


def test_a_fair_judge_is_mostly_taken_for_one():
    found = [position_bias(shown_to(np.zeros(5), 40, seed), KNOWN) for seed in range(40)]
    assert sum(not favour.any() for favour in found) >= 30
    assert max(np.abs(favour).max() for favour in found) < 0.6


def test_a_place_that_always_wins_has_a_finite_favour():
    orders = np.array([generator(seed, "always").choice(30, 5, replace=False) for seed in range(60)])
    found = position_bias(fair(orders), KNOWN)  # each list came back as it was shown
    assert np.isfinite(found).all() and (np.diff(found) < 0).all() and found[0] - found[-1] > 3


def tau(ranking, utilities) -> float:
    line = np.array([utilities[int(name[1:])] for name in ranking.order])
    return float(np.sign(line[:, None] - line[None, :])[np.triu_indices(line.size, k=1)].mean())


def biased(seed, **options) -> tuple[float, float | None]:
    """Tau and the position bias found, with a judge for whom the first of five gains 1.2 grades over the last."""
    rng = generator(seed, "biased")
    utilities = rng.normal(3, 0.7, 30)
    ranker = make_ranker("bayes", [f"p{n:02d}" for n in range(30)], [3] * 30, max_calls=40, saving=0, **options)
    while not ranker.done:
        for batch in ranker.next_batches(4):
            sees = utilities[[int(name[1:]) for name in batch]] + np.linspace(1.2, 0.0, 5)
            ranker.observe([batch[place] for place in np.argsort(-(3.0 * sees + rng.gumbel(size=5)))])
    ranking = ranker.ranking()
    return tau(ranking, utilities), ranking.position_bias


@pytest.mark.nightly
def test_the_order_of_a_biased_judge_is_better_without_its_bias():
    plain, mended = [biased(seed, favour=False) for seed in range(8)], [biased(seed) for seed in range(8)]
    assert np.mean([tau for tau, _ in mended]) > np.mean([tau for tau, _ in plain]) + 0.02
    assert 0.6 < np.mean([bias for _, bias in mended]) < 1.4, "1.2, less what forty calls leave open"
    assert {bias for _, bias in plain} == {0.0}
