"""Readings at one mean recall: linear between points, never beyond them, in doubt as far as other queries would be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from raggs.base.arrays import Floats
from raggs.stats.index_loss import IndexSweep, at_level, deviations, differences


def swept(name: str, recalls: list[Floats], *, lows: list[Floats] | None = None) -> IndexSweep:
    """An index at efforts 10, 20, 40, ... with 1,000, 500, 250, ... queries a second."""
    efforts = [10 * 2**at for at in range(len(recalls))]
    values = [
        {"recall": recall, "low": low} for recall, low in zip(recalls, recalls if lows is None else lows, strict=True)
    ]
    return IndexSweep.of(name, efforts, [10_000 / effort for effort in efforts], values, seed=1, draws=200)


def even(mean: float) -> Floats:
    """As many at mean - .1 as at mean + .1."""
    return np.tile([mean - 0.1, mean + 0.1], 50)


def test_between_two_points_values_are_linear_and_efforts_and_rates_logarithmic() -> None:
    found = at_level(swept("one", [even(0.7), even(0.9)], lows=[even(0.2), even(0.4)]), 0.8)
    assert found is not None
    assert found.values["recall"].mean == pytest.approx(0.8)
    assert found.values["low"].mean == pytest.approx(0.3)
    assert (found.effort, found.qps) == (pytest.approx(10 * math.sqrt(2)), pytest.approx(1000 / math.sqrt(2)))
    assert found.values["low"].low == pytest.approx(0.3)  # the two move together: at one recall nothing is in doubt
    assert at_level(swept("one", [even(0.7), even(0.9)]), 0.9) is not None  # a point itself


@pytest.mark.parametrize("level", [0.69, 0.91])
def test_nothing_is_guessed_beyond_the_points(level: float) -> None:
    one, other = swept("one", [even(0.7), even(0.9)]), swept("other", [even(0.6), even(0.95)])
    assert at_level(one, level) is None
    assert at_level(other, level) is not None
    assert differences(one, other, level) is differences(other, one, level) is None
    assert deviations([one, other], level) == {}


def test_a_level_at_the_edge_has_a_value_and_no_interval() -> None:
    found = at_level(swept("one", [even(0.7), even(0.9)]), 0.8999)  # half of the resamples do not reach it
    assert found is not None
    assert found.values["low"].mean == pytest.approx(0.8999)
    assert math.isnan(found.values["low"].low)
    assert math.isnan(found.values["low"].high)


def test_the_first_crossing_by_effort_counts() -> None:
    found = at_level(swept("one", [even(0.7), even(0.9), even(0.8), even(0.95)]), 0.85)
    assert found is not None
    assert found.effort < 20


def test_a_difference_is_paired() -> None:
    """What makes a query hard for both indexes cancels out."""
    rng = np.random.default_rng(0)
    hard = rng.uniform(0, 0.5, 400)
    recalls = [np.full(400, 0.7) - hard + hard.mean(), np.full(400, 0.9) - hard + hard.mean()]
    base = [0.3 + hard, 0.5 + hard]
    one = swept("one", recalls, lows=base)
    other = swept("other", recalls, lows=[each + 0.02 for each in base])
    found = differences(other, one, 0.8)
    assert found is not None
    assert found["low"].mean == pytest.approx(0.02)
    assert found["low"].high - found["low"].low < 1e-9
    alone = at_level(other, 0.8)
    assert alone is not None
    assert alone.values["low"].high - alone.values["low"].low > 0.02
    strict = differences(other, swept("even", recalls, lows=[each - 0.2 for each in recalls]), 0.8, 0.999)
    usual = differences(other, swept("even", recalls, lows=[each - 0.2 for each in recalls]), 0.8)
    assert strict is not None and usual is not None
    assert strict["low"].low < usual["low"].low < usual["low"].high < strict["low"].high
    with pytest.raises(ValueError, match="same queries"):
        differences(one, swept("few", [even(0.7), even(0.9)]), 0.8)


@pytest.mark.nightly
def test_the_interval_of_a_difference_holds_the_truth_as_often_as_it_says() -> None:
    rng, held = np.random.default_rng(3), 0
    for _ in range(60):
        low, high = rng.binomial(1, 0.72, 300).astype(float), rng.binomial(1, 0.9, 300).astype(float)
        one = IndexSweep.of(
            "a", [1, 2], [2, 1], [{"recall": low, "v": low * 0}, {"recall": high, "v": high * 0}], seed=0
        )
        noise = [0.1 + rng.normal(0, 0.5, 300), 0.1 + rng.normal(0, 0.5, 300)]
        points = [{"recall": low, "v": noise[0]}, {"recall": high, "v": noise[1]}]
        found = differences(IndexSweep.of("b", [1, 2], [2, 1], points, seed=0), one, 0.81)
        held += found is not None and found["v"].low <= 0.1 <= found["v"].high
    assert held >= 51  # 57 expected


def test_deviations_are_shares_of_the_mean_of_all() -> None:
    one = swept("one", [even(0.7), even(0.9)], lows=[even(0.3), even(0.5)])
    other = swept("other", [even(0.7), even(0.9)], lows=[even(0.5), even(0.7)])
    found = deviations([one, other, swept("beyond", [even(0.3), even(0.4)])], 0.8)
    assert list(found) == ["one", "other"]
    assert found["one"]["low"].mean == pytest.approx(-0.2)
    assert found["other"]["low"].mean == pytest.approx(0.2)
    assert found["one"]["recall"].mean == pytest.approx(0)


@pytest.mark.parametrize(("efforts", "qps"), [([], []), ([2, 1], [1, 1]), ([0, 1], [1, 1]), ([1, 2], [1, 0])])
def test_efforts_that_make_no_curve_are_refused(efforts: list[float], qps: list[float]) -> None:
    with pytest.raises(ValueError, match="efforts must ascend"):
        IndexSweep.of("one", efforts, qps, [{"recall": even(0.5)} for _ in efforts], seed=0)
