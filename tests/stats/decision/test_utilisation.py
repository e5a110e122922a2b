"""How much of its ceiling a published system reaches: 83-89 % at 10, about 92 % at 30 (section 5.2)."""

from __future__ import annotations

from statistics import mean

import pytest
from support.published import BEST_AT_10, BEST_AT_30, CEILINGS, MODELS


def utilisation(rows, cutoff):
    return [score / CEILINGS[k][MODELS.index(model)][cutoff] for model, k, score in rows]


def test_at_ten_the_best_reach_83_to_89_percent():
    shares = utilisation(BEST_AT_10, 0)
    assert (round(min(shares), 2), round(max(shares), 2)) == (0.83, 0.89)


def test_at_thirty_about_92_percent_with_a_high_at_50_and_a_dip_at_200():
    shares = utilisation(BEST_AT_30, 1)
    assert mean(shares) == pytest.approx(0.92, abs=0.005)
    assert max(shares) == pytest.approx(0.965, abs=0.0005) == shares[4]
    assert min(shares) == pytest.approx(0.87, abs=0.005) == shares[3]
