"""Losses and what is brought back of them, on values whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raggs.stats.name_margins import noise_change, overlaps, percent, recovered_share, taus

PLAIN = np.linspace(0.5, 0.9, 40)
NOISY = PLAIN - 0.2 - np.tile([0.0, 0.05], 20)
BACK = NOISY + (PLAIN - NOISY) * 0.6


def test_a_loss_is_a_paired_difference_and_a_percentage_of_means():
    found = noise_change(PLAIN, NOISY, 1)
    assert found.mean == pytest.approx(-0.225)
    assert -0.24 < found.low < found.mean < found.high < -0.21
    assert percent(PLAIN, NOISY) == pytest.approx(-22.5 / 0.7)
    assert math.isnan(percent(np.zeros(3), np.ones(3)))


def test_an_undefined_question_counts_on_no_side():
    holed = NOISY.copy()
    holed[0] = np.nan
    assert noise_change(PLAIN, holed, 1).count == 39
    assert percent(PLAIN, holed) == pytest.approx(100 * (NOISY[1:].sum() / PLAIN[1:].sum() - 1))


def test_the_share_that_is_back_is_of_the_means():
    found = recovered_share(PLAIN, NOISY, BACK, 1)
    assert found.value == pytest.approx(0.6)
    assert found.low == pytest.approx(0.6) and found.high == pytest.approx(0.6)
    worse = recovered_share(PLAIN, NOISY, NOISY - np.tile([0.0, 0.2], 20), 1)
    assert worse.value == pytest.approx(-0.1 / 0.225)
    assert worse.low < worse.value < worse.high < 0


@pytest.mark.parametrize("noisy", [PLAIN, PLAIN + 0.1, PLAIN + np.tile([-0.3, 0.3], 20), PLAIN * np.nan])
def test_nothing_is_back_of_what_may_not_be_lost(noisy):
    assert math.isnan(recovered_share(PLAIN, noisy, PLAIN, 1).value)


def test_lists_are_compared_by_their_heads():
    first, second = [("a", "b", "c", "d"), ("a", "b")], [("b", "a", "x", "c"), ("c", "d")]
    assert overlaps(first, second, 3).tolist() == pytest.approx([2 / 3, 0.0])
    found = taus(first, second, 3)
    assert found[0] == -1 and math.isnan(found[1])
