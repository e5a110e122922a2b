"""Distributions, compared with those of scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from raggs.stats.distributions import (
    noncentral_t_tail,
    normal_cdf,
    normal_quantile,
    student_cdf,
    student_quantile,
)

CLOSE = pytest.approx


def relative(found, expected):
    return float((np.abs(found - expected) / np.abs(expected)).max())


def test_the_normal_distribution_is_that_of_scipy_into_its_far_tail():
    values = np.concatenate((np.linspace(-37, 9, 400_001), np.random.default_rng(1).normal(size=10_000) * 5))
    assert relative(normal_cdf(values), ndtr(values)) < 1e-12


def test_the_normal_distribution_at_its_edges():
    values = np.array([-np.inf, -1e300, -40.0, -0.0, 0.0, 40.0, 1e300, np.inf])
    assert normal_cdf(values).tolist() == [0, 0, 0, 0.5, 0.5, 1, 1, 1]
    assert np.isnan(normal_cdf(np.array([np.nan, 1.0]))).tolist() == [True, False]
    assert normal_cdf(np.zeros((2, 0, 3))).shape == (2, 0, 3)
    assert normal_cdf(np.ones((2, 3))).shape == (2, 3)


@given(st.floats(-37, 37))
def test_both_tails_of_the_normal_distribution_sum_to_one(value):
    assert float(normal_cdf(np.array([value, -value])).sum()) == CLOSE(1, abs=1e-15)


@given(st.floats(1e-300, 1, exclude_max=True))
def test_normal_quantiles_are_those_of_scipy(p):
    assert normal_quantile(p) == CLOSE(float(ndtri(p)), rel=1e-12, abs=1e-15)


@given(st.integers(1, 20_000) | st.floats(0.5, 100), st.floats(0.001, 1000))
def test_student_is_that_of_scipy(degrees, t):
    tail = float(stats.t.sf(t, degrees))
    if tail > 1e-290:
        assert student_cdf(degrees, -t) == CLOSE(tail, rel=1e-11)
    assert student_cdf(degrees, t) == CLOSE(float(stdtr(degrees, t)), rel=1e-12)


@pytest.mark.parametrize("degrees", [1, 2, 3, 7, 29, 59, 60, 61, 200, 3000])
def test_student_at_values_of_tests(degrees):
    for t in (0.1, 0.5, 1, 1.5, 2, 3, 5, 8, 13):
        expected = float(stdtr(degrees, -t))
        if expected > 1e-290:
            assert student_cdf(degrees, -t) == CLOSE(expected, rel=1e-12)


def test_student_at_its_edges():
    assert [student_cdf(5, t) for t in (-math.inf, 0.0, math.inf)] == [0, 0.5, 1]
    assert math.isnan(student_cdf(5, math.nan))
    assert student_cdf(1, -1e-9) == CLOSE(0.5 - 1e-9 / math.pi, rel=1e-15)


@pytest.mark.parametrize("p", [0.025, 0.975, 0.05, 0.95, 0.3, 0.49, 0.001, 0.9995, 1e-6, 1e-10, 0.05 / 28])
@pytest.mark.parametrize("degrees", [1, 2, 3, 5, 10, 29, 99, 500, 10_000])
def test_quantiles_of_student_are_those_of_scipy(degrees, p):
    assert student_quantile(degrees, p) == CLOSE(float(stdtrit(degrees, p)), rel=1e-12)


@given(st.integers(1, 5000), st.floats(1e-12, 0.4999))
def test_a_quantile_of_student_is_the_inverse_of_the_distribution(degrees, p):
    assert student_cdf(degrees, student_quantile(degrees, p)) == CLOSE(p, rel=1e-11)
    assert student_quantile(degrees, 0.5) == 0


@pytest.mark.parametrize("degrees", [2, 5, 6, 10, 30, 100, 500, 2000])
@pytest.mark.parametrize("effect", [0.01, 0.1, 0.5, 1, 2, 4])
@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.001])
def test_the_noncentral_t_is_that_of_scipy(degrees, effect, alpha):
    least, shift = float(stdtrit(degrees, 1 - alpha / 2)), effect * math.sqrt(degrees + 1)
    expected = float(stats.nct.sf(least, degrees, shift))
    assert noncentral_t_tail(degrees, shift, least) == CLOSE(expected, rel=1e-12)
