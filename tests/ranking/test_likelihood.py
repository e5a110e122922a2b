import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.orders import log_likelihood

from raggs.ranking.posterior import (
    SHARPNESS,
    JudgedLists,
    JudgedOrders,
    JudgeModel,
    by_item,
    by_place,
    stage_chances,
    stage_sums,
)

SIZE, LISTS = 7, (2, 4, 6)
STEP = 1e-5
SCORES = arrays(np.float64, st.integers(1, 8), elements=st.floats(-6, 6))


@st.composite
def cases(draw):
    """Utilities, answers to lists of two lengths by a judge of any manner, and a sharpness."""
    utilities = draw(arrays(np.float64, SIZE, elements=st.floats(-3, 6)))
    lists = []
    for length in draw(st.sets(st.sampled_from(LISTS), min_size=1)):
        orders = draw(
            st.lists(st.permutations(range(SIZE)).map(lambda order, n=length: order[:n]), min_size=1, max_size=4)
        )
        places = draw(st.lists(st.permutations(range(length)), min_size=len(orders), max_size=len(orders)))
        weights = draw(arrays(np.float64, len(orders), elements=st.floats(0.1, 1)))
        lists.append(JudgedLists(np.array(orders), np.array(places), weights))
    favour = draw(arrays(np.float64, LISTS[-1], elements=st.floats(-2, 2)))
    left = draw(st.sampled_from([(), (1.0, 0.6, 0.2), (1.0, 1.0, 0.5, 0.02)]))
    manner = JudgeModel(favour, left, draw(st.sampled_from([0.0, 0.4])))
    return utilities, JudgedOrders(tuple(lists), manner), draw(st.sampled_from(SHARPNESS))


def ways(function, at) -> np.ndarray:
    """Numeric slopes of a function of a vector, one row for each of its numbers."""
    return np.array([(function(at + STEP * way) - function(at - STEP * way)) / (2 * STEP) for way in np.eye(at.size)])


def tired_log_likelihood(scores, left) -> float:
    """Log-probability of one order, each pick with the care that is left."""
    care = [*left, *[left[-1]] * len(scores)] if left else [1.0] * len(scores)
    stages = [care[stage] * np.asarray(scores[stage:]) for stage in range(len(scores))]
    return float(sum(rest[0] - rest.max() - np.log(np.exp(rest - rest.max()).sum()) for rest in stages))


@given(cases())
def test_the_likelihood_is_that_of_the_single_orders(case):
    utilities, judged, sharpness = case
    manner, expected = judged.manner, 0.0
    for lists in judged.lists:
        at = np.linspace(
            0, LISTS[-1] - 1, lists.length
        )  # the first place of any list is the first knot, the last the last
        places = np.interp(at, np.arange(LISTS[-1]), manner.favour)
        own = sharpness * (5 / lists.length) ** manner.strain
        for order, place, weight in zip(lists.orders, lists.places, lists.weights, strict=True):
            expected += weight * tired_log_likelihood(own * utilities[order] + places[place], manner.left)
    assert by_item(utilities, judged, sharpness)[0] == pytest.approx(expected)
    assert by_place(utilities, judged, sharpness)[0] == pytest.approx(expected)


@given(cases())
def test_the_gradient_is_the_numeric_slope_and_the_curvature_that_of_the_gradient(case):
    utilities, judged, sharpness = case
    slopes = ways(lambda at: by_item(at, judged, sharpness)[0], utilities)
    bends = ways(lambda at: -by_item(at, judged, sharpness)[1], utilities)
    _, gradient, curvature = by_item(utilities, judged, sharpness)
    np.testing.assert_allclose(gradient, slopes, atol=1e-5)
    np.testing.assert_allclose(curvature, bends, atol=1e-4)
    assert np.linalg.eigvalsh(curvature).min() > -1e-8


@given(cases())
def test_so_it_is_by_place(case):
    utilities, judged, sharpness = case

    def moved(favour) -> JudgedOrders:
        return replace(judged, manner=replace(judged.manner, favour=favour))

    favour = judged.manner.favour
    slopes = ways(lambda at: by_place(utilities, moved(at), sharpness)[0], favour)
    bends = ways(lambda at: -by_place(utilities, moved(at), sharpness)[1], favour)
    _, gradient, curvature = by_place(utilities, judged, sharpness)
    np.testing.assert_allclose(gradient, slopes, atol=1e-5)
    np.testing.assert_allclose(curvature, bends, atol=1e-4)
    assert gradient.sum() == pytest.approx(0, abs=1e-9), "what all places share says nothing"


@given(SCORES)
def test_stages_are_softmaxes_over_suffixes(scores):
    stages = stage_chances(scores)
    for k in range(scores.size):
        weights = np.exp(scores[k:])
        np.testing.assert_allclose(stages[k, k:], weights / weights.sum(), rtol=1e-10)
    assert not stages[np.tril_indices(scores.size, k=-1)].any()


@given(SCORES)
def test_many_orders_at_once_have_the_sums_of_their_stages(scores):
    loglik, slopes, blocks = (each[1] for each in stage_sums(np.array([np.zeros(scores.size), scores])))
    stages = stage_chances(scores)
    assert loglik == pytest.approx(log_likelihood(scores), abs=1e-9)
    np.testing.assert_allclose(slopes, 1 - stages.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(blocks, sum(np.diag(p) - np.outer(p, p) for p in stages), atol=1e-12)


@given(SCORES)
def test_the_gradient_is_the_slope_of_the_likelihood(scores):
    step, eye = 1e-5, np.eye(scores.size)
    rises = [log_likelihood(scores + step * way) - log_likelihood(scores - step * way) for way in eye]
    gradient = 1 - stage_chances(scores).sum(axis=0)
    np.testing.assert_allclose(gradient, np.array(rises) / (2 * step), atol=1e-7)
    assert gradient.sum() == pytest.approx(0, abs=1e-12)


@given(SCORES)
def test_information_is_the_curvature_of_the_likelihood(scores):
    step, here, eye = 1e-3, log_likelihood(scores), np.eye(scores.size)
    bends = [log_likelihood(scores + step * way) + log_likelihood(scores - step * way) - 2 * here for way in eye]
    stages = stage_chances(scores)
    information = (stages * (1 - stages)).sum(axis=0)
    np.testing.assert_allclose(information, -np.array(bends) / step**2, atol=1e-5)


@given(arrays(np.float64, st.integers(1, 5), elements=st.floats(-4, 4)))
def test_the_chances_of_all_orders_sum_to_one(scores):
    chances = [np.exp(log_likelihood(np.array(order))) for order in itertools.permutations(scores)]
    assert sum(chances) == pytest.approx(1)


def test_huge_scores_stay_finite():
    scores = np.array([-1e4, 1e4, 0.0, 1e4])
    stages = stage_chances(scores)
    assert np.isfinite(log_likelihood(scores)) and np.isfinite(stages).all()
    np.testing.assert_allclose(1 - stages.sum(axis=0), [1, 0, 1, -2])
