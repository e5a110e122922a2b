import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raggs.base.hashing import generator
from raggs.ranking import rounds


@st.composite
def beliefs(draw):
    size = draw(st.integers(1, 30))
    scores = np.sort(draw(arrays(np.float64, size, elements=st.floats(-10, 10))))[::-1].copy()
    return scores, draw(arrays(np.float64, size, elements=st.floats(0.05, 10)))


@given(beliefs())
def test_a_pair_has_one_winner(belief):
    above = rounds.win_probabilities(*belief)
    np.testing.assert_allclose(above + above.T, 1)
    assert ((above >= 0) & (above <= 1)).all()


@given(beliefs(), st.integers(1, 35))
def test_membership_fills_the_top(belief, top):
    q = rounds.membership(*belief, top)
    assert q.sum() == pytest.approx(min(top, q.size))
    assert ((q >= 0) & (q <= 1)).all()


@given(st.integers(2, 40), st.integers(1, 30), st.integers(0, 20))
def test_the_near_threshold_nearly_fills_the_top(size, top, seed):
    rng = generator(seed, "inside")
    scores, sigma = rng.normal(3, 1, size), rng.uniform(0.1, 1, size)
    inside = rounds.membership(scores, sigma, top, rounds.near_threshold)
    assert inside.sum() == pytest.approx(min(top, size), abs=0.25)
    np.testing.assert_allclose(inside, rounds.membership(scores, sigma, top), atol=0.05)


@given(beliefs(), st.integers(1, 29))
def test_what_the_near_threshold_passes_over_changes_no_bit(belief, top):
    scores, sigma = belief
    if scores.size <= top:
        return
    grid = np.linspace((scores - 3 * sigma).min(), (scores + 3 * sigma).max(), rounds.GRID)
    counts = rounds.normal_cdf((scores[None, :] - grid[:, None]) / sigma[None, :]).sum(axis=1)
    assert rounds.near_threshold(scores, sigma, top) == np.interp(-top, -counts, grid)


@given(beliefs())
def test_rank_intervals_hold_the_rank_and_stay_in_the_pool(belief):
    low, high = rounds.rank_interval(*belief)
    ranks = np.arange(1, low.size + 1)
    assert (low >= 1).all() and (high <= low.size).all()
    assert (low <= ranks).all() and (ranks <= high).all()


def test_rank_intervals_cover_the_truth_under_their_own_model():
    rng, inside = generator(5, "coverage"), []
    for _ in range(150):
        sigma = rng.uniform(0.2, 0.8, 25)
        scores = np.sort(rng.normal(3, 1, 25))[::-1]
        truth = scores + sigma * rng.normal(size=25)
        ranks = 1 + (truth[None, :] > truth[:, None]).sum(axis=1)
        low, high = rounds.rank_interval(scores, sigma)
        inside.append(((low <= ranks) & (ranks <= high)).mean())
    assert 0.92 <= np.mean(inside) <= 0.995


def test_expected_inversions_count_wrong_pairs_of_the_top():
    rng, scores, sigma = generator(6, "inversions"), np.linspace(4, 1, 12), np.full(12, 0.6)
    expected = rounds.expected_inversions(rounds.win_probabilities(scores, sigma), top=5)
    draws = scores + sigma * rng.normal(size=(4000, 12))
    wrong = sum((draws[:, i] < draws[:, j]).mean() for i in range(5) for j in range(i + 1, 5))
    assert expected == pytest.approx(wrong, rel=0.03)


def test_drawn_ranks_agree_with_pairwise_chances():
    scores, covariance = np.array([2.0, 1.5, 0.0]), np.array([[0.5, 0.4, 0.0], [0.4, 0.5, 0.0], [0.0, 0.0, 0.3]])
    ranks = rounds.drawn_ranks(scores, covariance, 40_000, generator(1, "ranks"))
    np.testing.assert_array_equal(np.sort(ranks, axis=1), np.tile([1, 2, 3], (40_000, 1)))
    first_above_second = (ranks[:, 0] < ranks[:, 1]).mean()
    assert first_above_second == pytest.approx(rounds.normal_cdf(np.array([0.5 / np.sqrt(0.2)]))[0], abs=0.01)


def test_rank_bounds_leave_out_a_fortieth_on_each_side():
    ranks = np.array([[1, 2]] * 97 + [[2, 1]] * 3)
    low, high = rounds.rank_bounds(ranks)
    assert (low.tolist(), high.tolist()) == ([1, 1], [2, 2])
    low, high = rounds.rank_bounds(np.array([[1, 2]] * 98 + [[2, 1]] * 2))
    assert (low.tolist(), high.tolist()) == ([1, 2], [1, 2])
    low, high = rounds.rank_bounds(np.array([[2, 1]] * 100))
    assert (low.tolist(), high.tolist()) == ([1, 1], [2, 2])


def test_an_inverted_pair_loses_the_difference_of_the_gains_and_none_below_grade_2():
    assert rounds.gain_loss(np.array([5.0, 4.8, 3.0, 1.2, 1.4]), 5) == 0
    assert rounds.gain_loss(np.array([4.8, 5.0]), 2) == pytest.approx(0.2)
    assert rounds.gain_loss(np.array([1.0, 3.0, 2.0]), 3) == pytest.approx(1.5 + 0.5)
    assert rounds.gain_loss(np.array([3.0, 1.0, 2.0, 5.0]), 1) == pytest.approx(2.0)  # upper one in the top


def test_the_expected_loss_is_the_mean_over_draws():
    rng = generator(3, "loss")
    root = rng.normal(0, 0.4, (12, 12))
    mean, covariance = np.sort(rng.uniform(2.0, 5.0, 12))[::-1], root @ root.T / 6 + 0.02 * np.eye(12)
    draws = rng.multivariate_normal(mean, covariance, 4000)
    drawn = np.mean([rounds.gain_loss(each, 8) for each in draws])
    assert rounds.expected_loss(rounds.pair_losses(mean, covariance), 8) == pytest.approx(drawn, rel=0.1)
    useless = rounds.pair_losses(mean - 4.0, covariance)
    assert useless.max() < 0.1


def test_agreement_is_what_another_ranking_with_as_many_answers_shares():
    """Utilities from the prior, two independent looks at them: how far the tops by their posterior means overlap."""
    rng, size, top = generator(5, "agreement"), 30, 10
    prior, noise = np.full(size, 4.0), rng.uniform(0.2, 1.5, size)
    covariance = np.diag(1 / (prior + 1 / noise**2))
    known = rounds.PassageKeys(-1.0 - np.arange(size), np.ones(size, dtype=bool))
    told, shared = [], []
    for seed in range(60):
        utilities = 3.5 + rng.normal(0, 0.5, size)
        looks = utilities + rng.normal(0, 1, (2, size)) * noise
        means = (prior * 3.5 + looks / noise**2) * covariance.diagonal()
        tops = [np.argsort(-each)[:top] for each in means]
        shared.append(np.isin(*tops).mean())
        start = (np.full(size, 3.5), prior)
        told.append(rounds.agreement(tops[0], (means[0], covariance), start, known, generator(seed, "draws")))
    assert np.mean(told) == pytest.approx(np.mean(shared), abs=0.04)
