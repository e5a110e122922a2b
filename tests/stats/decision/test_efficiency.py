"""Efficiency and marginal gains: the published figures, and what is unknown."""

from __future__ import annotations

import math

import pytest
from support.published import EFFICIENCY, LITE, LITE_USD

from raggs.stats.front import DepthPoint, efficiency, marginal_gains


@pytest.mark.parametrize(("quality", "ms", "published"), EFFICIENCY)
def test_the_published_leaderboard(quality, ms, published):
    """Its averages are rounded to three places, which moves a ratio by up to .0005 / .331 s = .0015."""
    assert efficiency([quality], ms) == pytest.approx(published, abs=0.0016)


def test_the_published_leaderboard_from_its_own_measures():
    n4_10, ra_10, n4_30, ra_30, ms = LITE[50][3]
    assert efficiency((n4_10, ra_10, n4_30, ra_30), ms) == pytest.approx(2.353, abs=0.0005)
    assert efficiency((0.835, 0.804, 0.819, 0.810), 332.9) == pytest.approx(2.454, abs=0.0005)  # Tables 2 and 15


def test_no_time_at_all():
    assert efficiency([0.5], 0) == math.inf and efficiency([0.0], 0) == 0.0


@pytest.mark.parametrize(("quality", "ms"), [([], 1.0), ([0.5], -1.0), ([0.5], math.nan)])
def test_efficiency_needs_numbers(quality, ms):
    with pytest.raises(ValueError, match="efficiency needs"):
        efficiency(quality, ms)


def test_gains_of_a_published_row():
    """voyage-3.5-lite with rerank-2.5-lite: RA-nWG@10 .692, .714, .747, .751 at K = 50 to 200."""
    steps = [DepthPoint(k, LITE[k][4][1], LITE[k][4][4], LITE_USD[k]) for k in (100, 50, 200, 150)]
    first, second, third = marginal_gains(steps)
    assert (first.k, first.to, third.to) == (50, 100, 200)
    assert first.quality == pytest.approx(0.022) and first.per_usd == pytest.approx(0.044)
    assert first.ms == pytest.approx(7.5) and first.within_jitter and not second.within_jitter
    assert second.per_ms == pytest.approx(0.033 / 119.2)
    assert third.per_usd < second.per_usd, "candidates cease to pay for themselves"


def test_gains_without_price_or_time():
    gain = marginal_gains([DepthPoint(50, 0.5, None, None), DepthPoint(100, 0.6, 100, 0.0)])[0]
    assert (gain.ms, gain.usd_per_1k, gain.per_ms, gain.per_usd, gain.within_jitter) == (None,) * 4 + (False,)
    gain = marginal_gains([DepthPoint(50, 0.5, 120, 0.0), DepthPoint(100, 0.6, 100, 0.0)])[0]
    assert (gain.per_ms, gain.per_usd) == (None, None), "nothing was paid for it"


def test_gains_are_of_one_system():
    with pytest.raises(ValueError, match="same K"):
        marginal_gains([DepthPoint(50, 0.5, 1, 1), DepthPoint(50, 0.6, 1, 1)])
    assert marginal_gains([DepthPoint(50, 0.5, 1, 1)]) == ()
