"""Calibrated probabilities of grades, checked against scipy and against frequencies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from raggs.base.hashing import generator
from raggs.stats.calibration import (
    DistributionCalibration,
    ReliabilityBin,
    apply_calibration,
    calibration_error,
    cross_validate,
    fit_calibration,
    log_score,
    lower_median,
    reliability,
)

EVEN = tuple([0.2] * 5)
FLAT = tuple([EVEN] * 5)
ROW = (
    st.lists(st.integers(0, 50), min_size=5, max_size=5).filter(any).map(lambda row: [each / sum(row) for each in row])
)


def judged(count, power=1.0, seed=1):
    """Labels drawn from true probabilities, and these probabilities as a judge states them, to the given power."""
    rng = generator(seed, "calibration", count)
    true = rng.dirichlet(np.full(5, 0.5), size=count)
    labels = [int(rng.choice(5, p=row)) + 1 for row in true]
    stated = true**power
    return (stated / stated.sum(axis=1, keepdims=True)).tolist(), labels, true.tolist()


def test_the_formula_by_hand():
    confusion = (EVEN, EVEN, (0.0, 0.0, 0.5, 0.5, 0.0), EVEN, EVEN)
    found = apply_calibration((0.0, 0.1, 0.4, 0.4, 0.1), DistributionCalibration(0.5, 0.25, confusion))
    squares = np.array([0.0, 0.01, 0.16, 0.16, 0.01])
    np.testing.assert_allclose(found, 0.75 * squares / squares.sum() + 0.25 * np.array(confusion[2]))


@given(ROW)
def test_temperature_one_without_weight_changes_nothing(row):
    np.testing.assert_allclose(apply_calibration(row, DistributionCalibration(1.0, 0.0, FLAT)), row, atol=1e-12)


@given(ROW, st.floats(0.05, 20), st.floats(0, 1))
def test_the_result_is_a_distribution(row, temperature, weight):
    found = apply_calibration(row, DistributionCalibration(temperature, weight, FLAT))
    assert math.fsum(found) == pytest.approx(1) and min(found) >= 0


@pytest.mark.parametrize(
    ("row", "grade"), [((0.5, 0.5, 0, 0, 0), 1), ((0.4, 0.2, 0.2, 0.1, 0.1), 2), ((0, 0, 0, 0, 1), 5)]
)
def test_the_lower_median(row, grade):
    assert lower_median(row) == grade


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_temperature_of_a_distorted_judge_is_found(power):
    stated, labels, _ = judged(600, power)
    found = fit_calibration(stated, labels)
    assert found.temperature == pytest.approx(power, rel=0.25) and found.weight < 0.2
    others, more, known = judged(2000, power, seed=2)
    fitted = [apply_calibration(row, found) for row in others]
    assert log_score(fitted, more) < log_score(known, more) + 0.02
    assert calibration_error(reliability(fitted, more)) < 0.02


def test_a_judge_without_information_is_noticed():
    rng = generator(3, "useless")
    labels = rng.choice([1, 2, 3, 4, 5], p=[0.6, 0.2, 0.1, 0.06, 0.04], size=400).tolist()
    stated = rng.dirichlet(np.full(5, 0.3), size=400).tolist()
    found = fit_calibration(stated, labels)
    assert found.weight > 0.8
    fitted = [apply_calibration(row, found) for row in stated]
    assert log_score(fitted, labels) < 1.25 < 2 < log_score(stated, labels)  # the entropy is 1.16


@pytest.mark.parametrize("count", [8, 60, 300])
def test_the_fit_is_the_maximum_that_scipy_finds(count):
    """The same posterior, written out and maximised in both parameters at once."""
    stated, labels, _ = judged(count, 2.0, seed=count)
    rows, known = np.array(stated), np.array(labels) - 1
    grades = np.array([lower_median(row) - 1 for row in stated])
    slip = np.array(
        [
            [0.98 * kernel + 0.02 / 5 for kernel in row]
            for row in (
                [0.875, 0.125, 0, 0, 0],
                [0.125, 0.75, 0.125, 0, 0],
                [0, 0.125, 0.75, 0.125, 0],
                [0, 0, 0.125, 0.75, 0.125],
                [0, 0, 0, 0.125, 0.875],
            )
        ]
    )
    shares = np.bincount(known, minlength=5) + 0.5
    prior = slip * (shares / shares.sum())
    table = 10 * prior / prior.sum(axis=1, keepdims=True)
    np.add.at(table, (grades, known), 1.0)
    others = (table[grades, known] - 1) / (table[grades].sum(axis=1) - 1)

    def cost(values):
        temperature, weight = np.exp(values[0]), 1 / (1 + np.exp(-values[1]))
        powers = rows ** (1 / temperature)
        chance = (1 - weight) * (powers / powers.sum(axis=1, keepdims=True))[np.arange(count), known] + weight * others
        return -np.log(chance).sum() - 0.5 * np.log(weight * (1 - weight)) + values[0] ** 2 / 2

    starts = [(log, weight) for log in (-1.5, -0.5, 0.5, 1.5) for weight in (-3.0, 0.0, 3.0)]
    best = min(
        (minimize(cost, start, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10}) for start in starts),
        key=lambda found: found.fun,
    )
    found = fit_calibration(stated, labels)
    mine = (math.log(found.temperature), math.log(found.weight / (1 - found.weight)))
    assert cost(mine) <= best.fun + 1e-5
    np.testing.assert_allclose(found.confusion, table / table.sum(axis=1, keepdims=True))


def test_few_labels_change_little_and_none_give_the_prior():
    none = fit_calibration([], [])
    assert (none.temperature, none.weight) == (1.0, 0.5)
    assert none.confusion[2][2] > none.confusion[2][1] > none.confusion[2][0]
    assert none.confusion[2][1] == pytest.approx(none.confusion[2][3])
    one = fit_calibration([(0, 0, 1, 0, 0)], [5])
    assert 0.3 < one.temperature < 3 and min(map(min, one.confusion)) > 0


def test_the_same_labels_give_the_same_calibration_in_any_order():
    stated, labels, _ = judged(50)
    found = fit_calibration(stated, labels)
    assert fit_calibration(stated, labels) == found
    turned = fit_calibration(stated[::-1], labels[::-1])
    assert turned.temperature == pytest.approx(found.temperature) and turned.weight == pytest.approx(found.weight)


def test_the_reliability_table_by_hand():
    table = reliability([(0.0, 0.45, 0.55, 0, 0), (0.8, 0.0, 0.0, 0.0, 0.2)], [2, 5], bins=2)
    # the first row predicts 1, 0.55, 0 and 0, and its label is 2; the second one predicts 0.2 four times, all true
    assert table == (
        ReliabilityBin(0.0, 0.5, pytest.approx(0.8 / 6), pytest.approx(4 / 6), 6),
        ReliabilityBin(0.5, 1.0, pytest.approx(1.55 / 2), 0.5, 2),
    )
    assert calibration_error(table) == pytest.approx((6 * (4 - 0.8) / 6 + 2 * (1.55 - 1) / 2) / 8)
    assert math.isnan(calibration_error(()))


def test_the_log_score():
    assert log_score([EVEN, (0, 0, 0, 0, 1)], [3, 5]) == pytest.approx(math.log(5) / 2)
    assert log_score([(0, 0, 0, 0, 1)], [1]) == pytest.approx(-math.log(1e-4))
    assert math.isnan(log_score([], []))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit_calibration([EVEN], []), "1 distributions, 0 labels"),
        (lambda: fit_calibration([EVEN], [6]), "labels must be 1 to 5, not 6"),
        (lambda: fit_calibration([(0.5, 0.6, 0, 0, 0)], [1]), "five probabilities with a sum of 1"),
        (lambda: cross_validate([EVEN] * 2, [1, 2], ["q", "q"], seed=1), "fewer than two clusters"),
        (lambda: cross_validate([EVEN] * 2, [1, 2], ["q"], seed=1), "2 labels, 1 clusters"),
        (lambda: reliability([(0.5, 0.5)], [1]), "five probabilities"),
        (lambda: reliability([EVEN], [1], bins=0), "bins must be at least 1"),
        (lambda: apply_calibration((1.0, float("nan"), 0, 0, 0), fit_calibration([], [])), "five probabilities"),
        (lambda: DistributionCalibration(0.0, 0.5, FLAT), "temperature must be"),
        (lambda: DistributionCalibration(1.0, 1.5, FLAT), "weight must be in 0 to 1"),
        (lambda: DistributionCalibration(1.0, 0.5, FLAT[:4]), "needs five rows, not 4"),
        (lambda: DistributionCalibration(1.0, 0.5, (*FLAT[:4], (1.0, 1.0, 0, 0, 0))), "confusion for grade 5"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_cross_validation_measures_the_effect_on_other_queries():
    stated, labels, _ = judged(240, 2.5, seed=3)
    clusters = [f"q{number // 6}" for number in range(240)]
    found = cross_validate(stated, labels, clusters, seed=1)
    assert found.log_score.before.value == pytest.approx(log_score(stated, labels))
    assert found.error.before.value == pytest.approx(calibration_error(reliability(stated, labels)))
    exact = sum(lower_median(row) == label for row, label in zip(stated, labels, strict=True)) / 240
    assert found.exact.before.value == pytest.approx(exact)
    assert found.log_score.change.high < 0 and found.error.change.value < 0
    for effect in (found.log_score, found.error, found.exact):
        assert effect.change.value == pytest.approx(effect.after.value - effect.before.value)
        for each in (effect.before, effect.after, effect.change):
            assert each.low <= each.value <= each.high
    assert cross_validate(stated, labels, clusters, seed=1) == found


def test_a_fit_on_the_own_labels_would_look_better():
    rng = np.random.default_rng(5)
    stated = [tuple(row) for row in rng.dirichlet(np.ones(5), 60).tolist()]
    labels = rng.integers(1, 6, 60).tolist()
    found = cross_validate(stated, labels, [f"q{number % 12}" for number in range(60)], seed=1)
    fit = fit_calibration(stated, labels)
    own = log_score([apply_calibration(row, fit) for row in stated], labels)
    assert own < found.log_score.after.value
