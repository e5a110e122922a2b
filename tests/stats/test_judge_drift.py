"""Drift of a judge: properties, and rates of alarms in simulations with and without drift."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.stats.judge_drift import (
    CanaryCounts,
    DriftTolerance,
    JudgeDrift,
    RepeatedGrades,
    measure_drift,
)

GRADE = st.integers(1, 5)


def measured(before: list[int], now: list[int], again: list[int], **options: object) -> JudgeDrift:
    queries = [f"q{number}" for number in range(len(before))]
    repeated = RepeatedGrades(now, again, before, queries)
    return measure_drift(before, now, queries, repeated, draws=300, seed=1, **options)  # type: ignore[arg-type]


@given(st.lists(st.tuples(GRADE, GRADE, GRADE), min_size=20, max_size=40))
def test_figures_are_the_plain_means(rows: list[tuple[int, int, int]]) -> None:
    before, now, again = (list(side) for side in zip(*rows, strict=True))
    found = measured(before, now, again)
    assert found.agreement.bias.value == pytest.approx(np.mean(np.subtract(now, before)))
    loss = np.mean(np.equal(now, again)) - np.mean(np.equal(now, before))
    assert found.lost_agreement.value == pytest.approx(loss)
    assert found.lost_agreement.low <= found.lost_agreement.value + 1e-9
    alarmed = "drift" in found.parts.values()
    assert (found.verdict == "drift") == alarmed


@given(st.lists(GRADE, min_size=20, max_size=40))
def test_equal_grades_are_no_drift(grades: list[int]) -> None:
    found = measured(grades, grades, grades)
    assert found.verdict == found.parts["shift"] == found.parts["agreement"] == "no drift"


def test_a_shift_beyond_the_tolerance_is_drift_and_within_it_is_none() -> None:
    before = [1, 2, 3, 4] * 6
    up = [grade + 1 for grade in before]
    assert measured(before, up, up).parts["shift"] == "drift"
    assert measured(up, before, before).parts["shift"] == "drift", "down counts, too"
    wide = measured(before, up, up, tolerance=DriftTolerance(shift=1.0, agreement=1.0))
    assert wide.verdict == "no drift"


def test_few_passages_give_no_verdict() -> None:
    found = measured([1] * 19, [5] * 19, [5] * 19)
    assert found.verdict == "inconclusive" and math.isnan(found.agreement.bias.low)


def test_lost_canaries_have_newcombes_interval() -> None:
    # Newcombe (1998), table II, method 10: 56/70 and 48/80
    found = measure_drift([1], [1], ["q"], canaries=(CanaryCounts(56, 70), CanaryCounts(48, 80)), seed=1)
    lost = found.lost_canaries
    assert (lost.value, lost.low, lost.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert found.parts["canaries"] == "inconclusive"
    all_lost = measure_drift([1], [1], ["q"], canaries=(CanaryCounts(6, 6), CanaryCounts(0, 6)), seed=1)
    assert all_lost.verdict == "drift"
    assert measure_drift([1], [1], ["q"], canaries=(CanaryCounts(0, 0), CanaryCounts(6, 6)), seed=1).noise is None


def alarm_rate(shift: float, other: float = 0.0, sims: int = 100) -> float:
    """The share of checks that end in an alarm, for a judge that errs by one grade in four of ten answers."""
    draw, alarms = np.random.default_rng(7), 0
    for _ in range(sims):
        truth = draw.choice(5, size=30, p=(0.35, 0.25, 0.15, 0.15, 0.1)) + 1
        changed = np.where(draw.random(30) < other, draw.permutation(truth), truth)
        sides = []
        for base, move in ((truth, 0.0), (changed, shift), (changed, shift)):
            noise = draw.choice((0, 0, 0, 1, -1), size=30) + (draw.random(30) < move)
            sides.append(np.clip(base + noise, 1, 5).tolist())
        alarms += measured(*sides).verdict == "drift"
    return alarms / sims


def test_noise_rarely_alarms_and_drift_mostly_does() -> None:
    assert alarm_rate(0.0) <= 0.04
    assert alarm_rate(1.0) >= 0.9
