import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from raggs.ranking import pl
from raggs.ranking.answers import Answers, by_item, by_place
from raggs.ranking.posterior import SHARPNESS

SIZE, LIST = 7, 4
STEP = 1e-5


@st.composite
def judged(draw):
    """Utilities, answers to lists of four, and a sharpness."""
    utilities = draw(arrays(np.float64, SIZE, elements=st.floats(-3, 6)))
    orders = draw(st.lists(st.permutations(range(SIZE)).map(lambda order: order[:LIST]), min_size=1, max_size=6))
    places = draw(st.lists(st.permutations(range(LIST)), min_size=len(orders), max_size=len(orders)))
    weights = draw(arrays(np.float64, len(orders), elements=st.floats(0.1, 1)))
    favour = draw(arrays(np.float64, LIST, elements=st.floats(-2, 2)))
    return utilities, Answers(np.array(orders), np.array(places), weights, favour), draw(st.sampled_from(SHARPNESS))


def ways(function, at) -> np.ndarray:
    """Numeric slopes of a function of a vector, one row for each of its numbers."""
    return np.array([(function(at + STEP * way) - function(at - STEP * way)) / (2 * STEP) for way in np.eye(at.size)])


@given(judged())
def test_the_likelihood_is_that_of_the_single_orders(case):
    utilities, answers, sharpness = case
    each = zip(answers.orders, answers.places, answers.weights, strict=True)
    expected = sum(
        weight * pl.log_likelihood(sharpness * utilities[order] + answers.favour[place])
        for order, place, weight in each
    )
    assert by_item(utilities, answers, sharpness)[0] == pytest.approx(expected)
    assert by_place(utilities, answers, sharpness)[0] == pytest.approx(expected)


@given(judged())
def test_the_gradient_is_the_numeric_slope_and_the_curvature_that_of_the_gradient(case):
    utilities, answers, sharpness = case
    slopes = ways(lambda at: by_item(at, answers, sharpness)[0], utilities)
    bends = ways(lambda at: -by_item(at, answers, sharpness)[1], utilities)
    _, gradient, curvature = by_item(utilities, answers, sharpness)
    np.testing.assert_allclose(gradient, slopes, atol=1e-5)
    np.testing.assert_allclose(curvature, bends, atol=1e-4)
    assert np.linalg.eigvalsh(curvature).min() > -1e-8


@given(judged())
def test_so_it_is_by_place(case):
    utilities, answers, sharpness = case

    def moved(favour) -> Answers:
        return Answers(answers.orders, answers.places, answers.weights, favour)

    slopes = ways(lambda at: by_place(utilities, moved(at), sharpness)[0], answers.favour)
    bends = ways(lambda at: -by_place(utilities, moved(at), sharpness)[1], answers.favour)
    _, gradient, curvature = by_place(utilities, answers, sharpness)
    np.testing.assert_allclose(gradient, slopes, atol=1e-5)
    np.testing.assert_allclose(curvature, bends, atol=1e-4)
    assert gradient.sum() == pytest.approx(0, abs=1e-9), "what all places share says nothing"
