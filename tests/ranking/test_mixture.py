import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.orders import fair, judged_orders

from raggs.base.hashing import generator
from raggs.ranking.posterior import (
    SHARPNESS,
    Mixture,
    Posterior,
    Prior,
    by_item,
    fit,
    fit_mixture,
    fit_sharpness,
    refine,
)

LINE = np.linspace(-30, 30, 60001)
STEP = LINE[1] - LINE[0]


def density(mixture, item=0):
    spread = mixture.variance[item]
    normals = np.exp(-((LINE[:, None] - mixture.centres[item]) ** 2) / (2 * spread)) / np.sqrt(2 * np.pi * spread)
    return normals @ mixture.shares[item]


def moments(values):
    mass = values.sum() * STEP
    mean = (LINE * values).sum() * STEP / mass
    return mass, mean, ((LINE - mean) ** 2 * values).sum() * STEP / mass


def single(centres, shares, variance) -> Mixture:
    return Mixture(np.array([centres]), np.array([shares]), np.array([variance]))


def start(mixture) -> Posterior:
    prior = mixture.normal()
    return Posterior(prior.mean, np.diag(1 / prior.precision), 2.0, 0.0, prior)


SHARES = st.sampled_from([[0.0, 1.0, 0.0], [0.5, 0.4, 0.1], [0.2, 0.0, 0.8]])


@given(SHARES, st.floats(-2, 8), st.floats(0.05, 20), st.floats(0.05, 1))
def test_the_product_with_a_normal_is_that_of_quadrature(shares, mean, variance, own):
    mixture = single([1.0, 2.0, 3.0], shares, own)
    normal = np.exp(-((LINE - mean) ** 2) / (2 * variance)) / np.sqrt(variance)
    mass, centre, spread = moments(density(mixture) * normal)
    found = mixture.times(np.array([mean]), np.array([variance]))
    assert np.concatenate(found) == pytest.approx([np.log(mass), centre, spread], rel=1e-4, abs=1e-6)


@given(SHARES, st.floats(0.05, 1))
def test_the_normal_factor_has_the_moments_of_the_mixture(shares, own):
    mixture = single([1.0, 2.0, 3.0], shares, own)
    _, mean, variance = moments(density(mixture))
    assert mixture.normal().mean[0] == pytest.approx(mean)
    assert 1 / mixture.normal().precision[0] == pytest.approx(variance)


def test_a_mixture_of_one_normal_is_that_normal():
    rng = generator(1, "one normal")
    means = rng.normal(3, 1, 8)
    orders = judged_orders(means, 12, 2.0, rng)
    mixture = Mixture(means[:, None], np.ones((8, 1)), np.full(8, 0.5))
    found = fit_mixture(mixture, fair(orders), 2.0, start(mixture))
    plain = fit(Prior(means, np.full(8, 2.0)), fair(orders), 2.0, means)
    np.testing.assert_allclose(found.mean, plain.mean, atol=1e-6)
    np.testing.assert_allclose(found.covariance, plain.covariance, atol=1e-6)
    assert found.evidence + refine(mixture, found)[1] == pytest.approx(plain.evidence, abs=1e-6)


def test_the_posterior_of_two_items_is_that_of_quadrature():
    """Duels won by an item that is either level with the other or above it."""
    mixture = Mixture(np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([[1.0, 0.0], [0.7, 0.3]]), np.full(2, 0.2))
    orders = np.array([[1, 0]] * 3)
    found = start(mixture)
    for _ in range(10):
        found = fit_mixture(mixture, fair(orders), 1.5, found)
    line = np.linspace(-2, 7, 901)
    one, two = np.meshgrid(line, line, indexing="ij")
    wins = 3 * np.log(1 / (1 + np.exp(-1.5 * (two - one))))
    weights = np.exp(wins) * np.interp(one, LINE, density(mixture, 0)) * np.interp(two, LINE, density(mixture, 1))
    weights /= weights.sum()
    exact = np.array([(weights * one).sum(), (weights * two).sum()])
    np.testing.assert_allclose(found.mean, exact, atol=0.1)
    assert found.covariance[1, 1] == pytest.approx((weights * (two - exact[1]) ** 2).sum(), rel=0.2)


def test_answers_decide_between_the_modes():
    mixture = Mixture(np.tile([1.0, 2.0], (6, 1)), np.tile([0.6, 0.4], (6, 1)), np.full(6, 0.1))
    orders = np.array([[0, 1, 2, 3, 4, 5]] * 6)
    found = start(mixture)
    for _ in range(5):
        found = fit_mixture(mixture, fair(orders), 3.0, found)
    factors, _ = refine(mixture, found)
    assert found.mean[0] > 1.8 and found.mean[5] < 1.2
    assert np.isfinite(factors.mean).all() and factors.precision.min() > 0
    assert found.covariance[0, 0] < 0.15 < start(mixture).covariance[0, 0]


def test_the_fit_is_where_the_gradient_vanishes():
    rng = generator(2, "gradient")
    mixture = Mixture(np.tile([1.0, 2.0, 3.0], (9, 1)), np.tile([0.3, 0.5, 0.2], (9, 1)), np.full(9, 0.2))
    orders = judged_orders(rng.normal(2, 1, 9), 15, 2.0, rng)
    found = fit_mixture(mixture, fair(orders), 2.0, start(mixture))
    gradient = by_item(found.mean, fair(orders), 2.0)[1]
    np.testing.assert_allclose(gradient, found.prior.precision * (found.mean - found.prior.mean), atol=1e-3)


@pytest.mark.parametrize("truth", [0.75, 2.0, 6.0])
def test_the_sharpness_is_found_by_its_evidence(truth):
    rng = generator(2, "sharpness", truth)
    grades = rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], size=30)
    orders = judged_orders(grades + rng.normal(0, 0.7, 30), 150, truth, rng)
    mixture = Mixture(grades[:, None], np.ones((30, 1)), np.full(30, 0.7**2))
    found = fit_mixture(mixture, fair(orders), 2.0, start(mixture))
    for _ in SHARPNESS:
        found = fit_sharpness(mixture, fair(orders), found)
    assert abs(SHARPNESS.index(found.sharpness) - SHARPNESS.index(truth)) <= 1
