"""A rank correlation by hand, its interval, and when there is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raggs.stats.name_margins import predict


@pytest.mark.nightly
def test_an_order_that_is_kept_is_predicted_whatever_the_distances():
    dear = np.repeat([[-0.5], [-0.1], [0.0], [0.2]], 6, axis=1)
    found = predict(np.array([-100.0, -3.0, -2.0, 90.0]), dear, seed=1)
    assert (found.spearman, found.low, found.high, found.points) == (1.0, 1.0, 1.0, 4)
    assert predict(np.array([9.0, 3.0, 2.0, 1.0]), dear, seed=1).spearman == -1.0


@pytest.mark.nightly
def test_noise_between_questions_widens_the_interval():
    rng = np.random.default_rng(4)
    cheap = np.linspace(-1, 0, 8)
    dear = cheap[:, None] * 0.2 + rng.normal(0, 0.5, (8, 30))
    found = predict(cheap, dear, seed=1)
    assert found.low < found.spearman < found.high
    assert found == predict(cheap, dear, seed=1)


@pytest.mark.parametrize("dear", [np.zeros((4, 5)), np.ones((2, 5))])
def test_nothing_is_said_where_nothing_varies_or_little_was_changed(dear):
    assert math.isnan(predict(np.arange(float(len(dear))), dear, seed=1).spearman)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="shapes"):
        predict(np.zeros(3), np.zeros((4, 5)), seed=1)
    with pytest.raises(ValueError, match="finite"):
        predict(np.zeros(3), np.full((3, 2), np.nan), seed=1)
