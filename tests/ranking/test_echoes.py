from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.orders import fair

from raggs.base.hashing import generator
from raggs.ranking import profile
from raggs.ranking.posterior import JudgedLists, JudgedOrders, JudgeModel, Prior, fit


@given(showings=st.integers(1, 20), echo=st.floats(0.01, 0.9))
def test_showings_add_up_to_their_weight(showings, echo):
    orders = np.array([[0, 1]] * showings)
    shown = np.array([[0, showings], [showings, 0]])
    total = profile.weights(shown, orders, echo).sum()
    assert total == pytest.approx(
        sum(profile.showing_worth(np.array([[0, n], [n, 0]]), echo)[0, 1] for n in range(showings))
    )
    assert total == pytest.approx(showings / (1 + (showings - 1) * echo)) and total <= 1 / echo + 1e-9


def test_without_an_echo_every_order_counts_whole():
    shown = np.full((3, 3), 7)
    np.testing.assert_array_equal(profile.weights(shown, np.array([[0, 1, 2]] * 2), 0.0), 1)
    np.testing.assert_array_equal(profile.showing_worth(shown, 0.0), 1 - np.eye(3))


def test_an_order_weighs_as_its_pairs_on_average():
    shown = np.array([[0, 3, 1], [3, 0, 1], [1, 1, 0]])
    (weight,) = profile.weights(shown, np.array([[2, 0, 1]]), 0.5)
    assert weight == pytest.approx((1 / 2 + 1 + 1) / 3)


def estimated(stubborn: bool, seed: int) -> float:
    """Twelve items, each pair shown eight times; a stubborn judge answers all showings of a pair alike."""
    rng = generator(seed, "echo", stubborn)
    utilities = rng.normal(3, 0.7, 12)
    orders = []
    for first in range(12):
        for second in range(first):
            noise = rng.logistic(size=1 if stubborn else 8) * np.ones(8)
            wins = 2.0 * (utilities[first] - utilities[second]) + noise > 0
            orders += [(first, second) if won else (second, first) for won in wins]
    judged = fair(orders)
    posterior = fit(Prior(np.full(12, 3.0), np.full(12, 2.0)), judged, 2.0, np.full(12, 3.0))
    return profile.repeat_correlation(judged, posterior)


def test_stubborn_judges_are_told_from_noisy_ones():
    assert max(estimated(stubborn=False, seed=seed) for seed in range(8)) < 0.2
    assert min(estimated(stubborn=True, seed=seed) for seed in range(8)) > 0.5


def test_a_judge_that_tires_is_not_taken_for_one_that_repeats_its_errors():
    """Its late picks follow the scores less, so less of their errors is in the fit."""
    left, found = np.array([1.0, 1.0, 0.05, 0.05, 0.05, 0.05]), []
    for seed in range(6):
        rng, orders = generator(seed, "tires"), []
        utilities = rng.normal(3, 0.7, 12)
        for _ in range(12):
            rest = rng.permutation(12)[:6].tolist()
            keys = (3.0 * care * utilities[rest] + rng.gumbel(size=len(rest)) for care in left)  # of those still left
            orders.append([rest.pop(int(np.argmax(key))) for key in keys])
        judged = fair(orders, left=tuple(left.tolist()))
        posterior = fit(Prior(np.full(12, 3.0), np.full(12, 2.0)), judged, 3.0, np.full(12, 3.0))
        found.append(profile.repeat_correlation(judged, posterior))
    assert max(found) < 0.3


def test_nothing_repeated_means_no_echo():
    judged = fair([[0, 1, 2]])
    posterior = fit(Prior(np.full(3, 3.0), np.ones(3)), judged, 2.0, np.full(3, 3.0))
    assert profile.repeat_correlation(judged, posterior) == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_known_favour_of_places_is_no_echo(seed):
    """Each pair is shown eight times, always in the same places: without the favour its wins agree too well."""
    rng = generator(seed, "favour")
    utilities, favour = rng.normal(3, 0.3, 12), np.array([1.5, -1.5])
    orders, places = [], []
    for first in range(12):
        for second in range(first):
            for _ in range(8):
                won = 2.0 * (utilities[first] - utilities[second]) + 3.0 + rng.logistic() > 0
                orders.append((first, second) if won else (second, first))
                places.append((0, 1) if won else (1, 0))
    lists = JudgedLists(np.array(orders), np.array(places), np.ones(len(orders)))
    known = JudgedOrders((lists,), JudgeModel(favour))
    posterior = fit(Prior(np.full(12, 3.0), np.full(12, 11.0)), known, 2.0, np.full(12, 3.0))
    assert profile.repeat_correlation(known, posterior) < 0.2
    assert profile.repeat_correlation(replace(known, manner=JudgeModel(np.zeros(2))), posterior) > 0.5
