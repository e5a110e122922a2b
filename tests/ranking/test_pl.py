import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raggs.ranking import pl

SCORES = arrays(np.float64, st.integers(1, 8), elements=st.floats(-6, 6))


@given(SCORES)
def test_stages_are_softmaxes_over_suffixes(scores):
    stages = pl.stage_probabilities(scores)
    for k in range(scores.size):
        weights = np.exp(scores[k:])
        np.testing.assert_allclose(stages[k, k:], weights / weights.sum(), rtol=1e-10)
    assert not stages[np.tril_indices(scores.size, k=-1)].any()


@given(SCORES)
def test_the_gradient_is_the_slope_of_the_likelihood(scores):
    step, eye = 1e-5, np.eye(scores.size)
    rises = [pl.log_likelihood(scores + step * way) - pl.log_likelihood(scores - step * way) for way in eye]
    gradient = pl.gradient(pl.stage_probabilities(scores))
    np.testing.assert_allclose(gradient, np.array(rises) / (2 * step), atol=1e-7)
    assert gradient.sum() == pytest.approx(0, abs=1e-12)


@given(SCORES)
def test_information_is_the_curvature_of_the_likelihood(scores):
    step, here, eye = 1e-3, pl.log_likelihood(scores), np.eye(scores.size)
    bends = [pl.log_likelihood(scores + step * way) + pl.log_likelihood(scores - step * way) - 2 * here for way in eye]
    information = pl.information(pl.stage_probabilities(scores))
    np.testing.assert_allclose(information, -np.array(bends) / step**2, atol=1e-5)


@given(arrays(np.float64, st.integers(1, 5), elements=st.floats(-4, 4)))
def test_the_chances_of_all_orders_sum_to_one(scores):
    chances = [np.exp(pl.log_likelihood(np.array(order))) for order in itertools.permutations(scores)]
    assert sum(chances) == pytest.approx(1)


def test_huge_scores_stay_finite():
    scores = np.array([-1e4, 1e4, 0.0, 1e4])
    stages = pl.stage_probabilities(scores)
    assert np.isfinite(pl.log_likelihood(scores)) and np.isfinite(stages).all()
    np.testing.assert_allclose(pl.gradient(stages), [1, 0, 1, -2])
