import choix
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raggs.ranking import pl
from raggs.ranking.posterior import SHARPNESS, Prior, derivatives, fit
from raggs.seeds import generator

SIZE = 7


@st.composite
def judged(draw):
    """Utilities, orders of batches of four, weights and a sharpness."""
    utilities = draw(arrays(np.float64, SIZE, elements=st.floats(-3, 6)))
    batch = st.permutations(range(SIZE)).map(lambda order: order[:4])
    orders = np.array(draw(st.lists(batch, min_size=1, max_size=6)))
    weights = draw(arrays(np.float64, len(orders), elements=st.floats(0.1, 1)))
    return utilities, orders, weights, draw(st.sampled_from(SHARPNESS))


@given(judged())
def test_the_likelihood_is_that_of_the_single_orders(case):
    utilities, orders, weights, sharpness = case
    expected = sum(
        weight * pl.log_likelihood(sharpness * utilities[order]) for order, weight in zip(orders, weights, strict=True)
    )
    assert derivatives(utilities, orders, weights, sharpness)[0] == pytest.approx(expected)


@given(judged())
def test_the_gradient_is_the_numeric_slope(case):
    utilities, orders, weights, sharpness = case
    step = 1e-5
    slopes = [
        (
            derivatives(utilities + step * way, orders, weights, sharpness)[0]
            - derivatives(utilities - step * way, orders, weights, sharpness)[0]
        )
        / (2 * step)
        for way in np.eye(SIZE)
    ]
    np.testing.assert_allclose(derivatives(utilities, orders, weights, sharpness)[1], slopes, atol=1e-5)


@given(judged())
def test_the_curvature_is_minus_the_numeric_slope_of_the_gradient(case):
    utilities, orders, weights, sharpness = case
    step = 1e-5
    bends = [
        (
            derivatives(utilities - step * way, orders, weights, sharpness)[1]
            - derivatives(utilities + step * way, orders, weights, sharpness)[1]
        )
        / (2 * step)
        for way in np.eye(SIZE)
    ]
    curvature = derivatives(utilities, orders, weights, sharpness)[2]
    np.testing.assert_allclose(curvature, bends, atol=1e-4)
    assert np.linalg.eigvalsh(curvature).min() > -1e-8


@given(judged())
def test_the_fit_is_where_the_gradient_vanishes_and_the_covariance_its_inverse_curvature(case):
    start, orders, weights, sharpness = case
    prior = Prior(np.full(SIZE, 3.0), np.full(SIZE, 2.0))
    found = fit(prior, orders, weights, sharpness, start)
    _, gradient, curvature = derivatives(found.mean, orders, weights, sharpness)
    np.testing.assert_allclose(gradient, prior.precision * (found.mean - prior.mean), atol=1e-3)
    np.testing.assert_allclose(found.covariance @ (curvature + np.diag(prior.precision)), np.eye(SIZE), atol=0.02)
    np.testing.assert_array_equal(found.covariance, found.covariance.T)


def simulate(utilities, count, sharpness, rng, size=5) -> np.ndarray:
    batches = [rng.choice(utilities.size, size, replace=False) for _ in range(count)]
    keys = [sharpness * utilities[batch] + rng.gumbel(size=size) for batch in batches]
    return np.array([batch[np.argsort(-key)] for batch, key in zip(batches, keys, strict=True)])


def test_with_much_data_the_map_is_the_maximum_likelihood_of_choix():
    rng = generator(1, "choix")
    utilities = rng.normal(0, 1, 12)
    orders = simulate(utilities, 300, 1.0, rng)
    vague = Prior(np.zeros(12), np.full(12, 1e-4))
    ours = fit(vague, orders, np.ones(300), 1.0, np.zeros(12)).mean
    theirs = choix.opt_rankings(12, [tuple(order) for order in orders.tolist()])
    np.testing.assert_allclose(ours - ours.mean(), theirs - theirs.mean(), atol=2e-3)
    np.testing.assert_allclose(ours - ours.mean(), utilities - utilities.mean(), atol=0.35)


@settings(max_examples=20)
@given(arrays(np.float64, SIZE, elements=st.floats(-300, 300)))
def test_a_fit_survives_any_start(start):
    orders = np.array([[0, 1, 2, 3, 4, 5, 6]] * 40)
    found = fit(Prior(np.full(SIZE, 3.0), np.full(SIZE, 2.0)), orders, np.ones(40), 8.0, start)
    assert np.isfinite(found.mean).all() and np.isfinite(found.covariance).all() and np.isfinite(found.evidence)
