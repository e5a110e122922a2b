"""The judge's health: rates counted by hand, and the judges that deserve a warning."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import binomtest

from raggs.ranking.health import FINDINGS, HealthCounts, JudgeHealth, Rate, judge_health

ABC = ("a", "b", "c")


@pytest.mark.parametrize(("count", "total"), [(0, 5), (3, 10), (10, 10), (1, 400)])
def test_intervals_are_wilsons(count: int, total: int) -> None:
    expected = binomtest(count, total).proportion_ci(method="wilson")
    assert Rate(count, total).interval == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_rates_by_hand() -> None:
    health = judge_health([[(ABC, ABC), (ABC, ("b", "a", "c")), (ABC, None)], [(("a", "b"), ("b", "a"))]])
    assert (health.first.count, health.first.total) == (1, 3)
    assert health.fair_first == pytest.approx((1 / 3 + 1 / 3 + 1 / 2) / 3)
    assert (health.invalid.count, health.invalid.total) == (1, 4)
    # One batch was shown twice, with an answer each time: of its three pairs only a and b changed places.
    assert (health.flips.count, health.flips.total) == (1, 3)
    # a and b have no majority, so no triple can be judged.
    assert health.cycles.total == 0


def test_circles_are_counted_once() -> None:
    round_trip = [(("a", "b"), ("a", "b")), (("b", "c"), ("b", "c")), (("c", "a"), ("c", "a"))]
    straight = [(("a", "b"), ("a", "b")), (("b", "c"), ("b", "c")), (("a", "c"), ("a", "c"))]
    health = judge_health([round_trip, straight])
    assert (health.cycles.count, health.cycles.total) == (1, 2)


def test_nothing_judged_is_no_rate_and_no_warning() -> None:
    health = judge_health([])
    assert math.isnan(health.first.value)
    assert health.warnings() == []
    assert json.loads(json.dumps(health.summary(), allow_nan=False))["first"]["rate"] is None


def batches(answer, count: int = 200):
    draw = np.random.default_rng(3)
    sets = [tuple(draw.permutation([f"p{number}" for number in range(12)])[:5]) for _ in range(count // 2)]
    shown = [tuple(draw.permutation(batch)) for batch in (*sets, *sets)]
    return [(batch, answer(batch, draw)) for batch in shown]


def test_a_steady_judge_gets_no_warning() -> None:
    assert judge_health([batches(lambda shown, _: tuple(sorted(shown)))]).warnings() == []


def test_a_judge_that_answers_in_the_order_shown_is_found_out() -> None:
    warnings = judge_health([batches(lambda shown, _: shown)]).warnings()
    assert any("shown first wins 100%" in warning for warning in warnings)
    assert any("change places" in warning for warning in warnings)


def test_a_judge_that_guesses_is_found_out() -> None:
    warnings = judge_health([batches(lambda shown, draw: tuple(draw.permutation(shown)), 800)]).warnings()
    assert any("change places" in warning for warning in warnings)


def test_a_judge_that_often_fails_is_found_out() -> None:
    warnings = judge_health(
        [batches(lambda shown, draw: None if draw.random() < 0.2 else tuple(sorted(shown)))]
    ).warnings()
    assert any("without an order" in warning for warning in warnings)


def found(*queries: dict[str, float | None]) -> JudgeHealth:
    counts = HealthCounts()
    for query in queries:
        counts.find(query)
    return counts.health()


def test_what_the_engine_found_out_is_averaged_over_the_queries_that_tell() -> None:
    told = dict.fromkeys(FINDINGS, 2.0), dict.fromkeys(FINDINGS, 4.0), dict.fromkeys(FINDINGS)
    health = found(*[{**query, "echo": 0.1} for query in told])
    assert (health.sharpness, health.position_bias, health.expected_inversions) == (3.0, 3.0, 3.0)
    assert health.echo == pytest.approx(0.1)
    assert health.warnings() == []
    assert found().summary()["sharpness"] is None


def test_a_judge_that_repeats_its_errors_is_found_out() -> None:
    assert any("repeats its own errors (echo 0.70)" in warning for warning in found({"echo": 0.7}).warnings())


def test_pairs_that_flip_are_ties_where_the_judge_is_sharp() -> None:
    guesses = batches(lambda shown, draw: tuple(draw.permutation(shown)), 800)
    for sharpness, warned in ((3.0, False), (1.2, True)):
        counts = HealthCounts()
        counts.add(guesses)
        counts.find({"sharpness": sharpness})
        assert any("change places" in warning for warning in counts.health().warnings()) == warned


@pytest.mark.parametrize(("sharpness", "warned"), [(0.9, True), (1.1, False)])
def test_a_blunt_judge_is_found_out(sharpness: float, warned: bool) -> None:
    assert any("the judge is blunt" in warning for warning in found({"sharpness": sharpness}).warnings()) == warned
