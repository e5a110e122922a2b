import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.hashing import generator
from raggs.ranking.posterior import UNGRADED, deserved_shares, grade_prior

GRADES = st.lists(st.floats(1, 5), min_size=1, max_size=30).map(np.array)
SLIPS = st.floats(0, 0.9)


def prior(grades, slip=0.25, sigma=0.45):
    grades = np.asarray(grades, dtype=float)
    return grade_prior(grades, np.ones(grades.size, dtype=bool), sigma, slip)


@given(GRADES, SLIPS)
def test_shares_are_shares(grades, slip):
    for shares in (deserved_shares(grades, slip), *prior(grades, slip).shares):
        assert shares.sum() == pytest.approx(1) and shares.min() >= 0


@given(GRADES, SLIPS)
def test_nothing_is_deserved_off_the_scale(grades, slip):
    mixture = prior(grades, slip)
    outside = (mixture.centres < 1) | (mixture.centres > 5)
    assert not mixture.shares[outside].any()


def test_without_slips_a_grade_is_what_is_deserved():
    mixture = prior([1, 2.5, 4, 5], slip=0.0)
    np.testing.assert_array_equal(mixture.shares, [[0, 1, 0]] * 4)
    np.testing.assert_array_equal(mixture.normal().mean, [1, 2.5, 4, 5])


def test_a_neighbour_that_is_common_is_likely():
    """Among many of grade 1, most of the few that were given a 2 are slips."""
    mixture = prior([1] * 30 + [2] * 3 + [4] * 3)
    below, same, above = mixture.shares[30]
    assert below > same > above
    assert mixture.normal().mean[0] < 1.1 and mixture.normal().mean[30] < 1.75


def test_the_blur_of_the_slips_is_taken_back():
    """A large pool of which half deserves a 1 and half a 4."""
    rng = generator(1, "slips")
    deserved = rng.choice([1.0, 4.0], size=4000)
    slips = np.where(rng.random(4000) < 0.25, rng.choice([-1, 1], 4000), 0)
    shares = deserved_shares(np.clip(deserved + slips, 1, 5), 0.25)
    np.testing.assert_allclose(shares, [0.5, 0, 0, 0.5, 0], atol=0.05)


def test_the_ungraded_are_wide_and_tell_nothing_of_the_others():
    grades = np.array([1.0, 1.0, 2.0, 4 / 3])
    mixture = grade_prior(grades, np.array([True, True, True, False]), 0.5, 0.25)
    np.testing.assert_allclose(np.sqrt(mixture.variance), [0.5, 0.5, 0.5, UNGRADED * 0.5])
    np.testing.assert_array_equal(mixture.shares[3], [0, 1, 0])
    np.testing.assert_allclose(mixture.shares[:3], prior(grades[:3]).shares)


def test_a_pool_without_grades_has_a_prior():
    mixture = grade_prior(np.full(4, 3.0), np.zeros(4, dtype=bool), 0.45, 0.25)
    np.testing.assert_array_equal(mixture.normal().mean, 3.0)
