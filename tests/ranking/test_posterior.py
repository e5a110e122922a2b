import choix
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.orders import fair, judged_orders

from raggs.ranking.likelihood import by_item
from raggs.ranking.posterior import SHARPNESS, Prior, fit
from raggs.seeds import generator

SIZE = 7
FLAT = Prior(np.full(SIZE, 3.0), np.full(SIZE, 2.0))


@st.composite
def cases(draw):
    """A start, answers to batches of four by a fair judge, and a sharpness."""
    start = draw(arrays(np.float64, SIZE, elements=st.floats(-3, 6)))
    batch = st.permutations(range(SIZE)).map(lambda order: order[:4])
    orders = np.array(draw(st.lists(batch, min_size=1, max_size=6)))
    weights = draw(arrays(np.float64, len(orders), elements=st.floats(0.1, 1)))
    return start, fair(orders, weights), draw(st.sampled_from(SHARPNESS))


@given(cases())
def test_the_fit_is_where_the_gradient_vanishes_and_the_covariance_its_inverse_curvature(case):
    start, judged, sharpness = case
    found = fit(FLAT, judged, sharpness, start)
    _, gradient, curvature = by_item(found.mean, judged, sharpness)
    np.testing.assert_allclose(gradient, FLAT.precision * (found.mean - FLAT.mean), atol=1e-3)
    np.testing.assert_allclose(found.covariance @ (curvature + np.diag(FLAT.precision)), np.eye(SIZE), atol=0.05)
    np.testing.assert_array_equal(found.covariance, found.covariance.T)


def test_with_much_data_the_map_is_the_maximum_likelihood_of_choix():
    rng = generator(1, "choix")
    utilities = rng.normal(0, 1, 12)
    orders = judged_orders(utilities, 300, 1.0, rng)
    vague = Prior(np.zeros(12), np.full(12, 1e-4))
    ours = fit(vague, fair(orders), 1.0, np.zeros(12)).mean
    theirs = choix.opt_rankings(12, [tuple(order) for order in orders.tolist()])
    np.testing.assert_allclose(ours - ours.mean(), theirs - theirs.mean(), atol=2e-3)
    np.testing.assert_allclose(ours - ours.mean(), utilities - utilities.mean(), atol=0.35)


@settings(max_examples=20)
@given(arrays(np.float64, SIZE, elements=st.floats(-300, 300)))
def test_a_fit_survives_any_start(start):
    orders = np.array([[0, 1, 2, 3, 4, 5, 6]] * 40)
    found = fit(FLAT, fair(orders), 8.0, start)
    assert np.isfinite(found.mean).all() and np.isfinite(found.covariance).all() and np.isfinite(found.evidence)
