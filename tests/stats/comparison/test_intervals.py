import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats as scipy_stats

from raggs.base.hashing import generator
from raggs.stats import intervals
from raggs.stats.intervals import bootstrap_mean, bootstrap_means

NAN = math.nan
scores = arrays(np.float64, st.integers(2, 30), elements=st.floats(0, 1, width=16))


def skewed(size, *names):
    return generator(3, *names).exponential(size=size) / 5


@pytest.mark.parametrize(("ours", "theirs"), [("bca", "BCa"), ("percentile", "percentile")])
@pytest.mark.parametrize("size", [2, 7, 60])
def test_on_the_same_resamples_scipy_finds_the_same_bounds(ours, theirs, size):
    sample = skewed(size, "oracle", size)
    means = intervals.resampled_means([sample], 500, seed=9)[0]
    oracle = scipy_stats.bootstrap(
        (sample,), np.mean, n_resamples=0, bootstrap_result=SimpleNamespace(bootstrap_distribution=means), method=theirs
    ).confidence_interval
    found = bootstrap_mean(sample, method=ours, draws=500, seed=9)
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high), rel=1e-9)


def test_resamples_are_those_of_scipy_in_distribution():
    sample = skewed(40, "draws")
    oracle = scipy_stats.bootstrap((sample,), np.mean, n_resamples=4000, method="BCa", rng=np.random.default_rng(1))
    found = bootstrap_mean(sample, draws=4000, seed=1)
    error = sample.std() / math.sqrt(40)
    assert found.low == pytest.approx(oracle.confidence_interval.low, abs=0.12 * error)
    assert found.high == pytest.approx(oracle.confidence_interval.high, abs=0.12 * error)


def test_missing_values_are_left_out_and_counted():
    found = bootstrap_mean([0.2, NAN, 0.9, 0.4, NAN], seed=1)
    without = bootstrap_mean([0.2, 0.9, 0.4], seed=1)
    assert (found.count, found.missing, without.missing) == (3, 2, 0)
    assert (found.mean, found.low, found.high) == (without.mean, without.low, without.high)
    assert found.mean == pytest.approx(0.5)


@pytest.mark.parametrize(("values", "mean"), [([], NAN), ([NAN, NAN], NAN), ([0.7], 0.7), ([NAN, 0.7], 0.7)])
def test_below_two_values_there_is_no_interval(values, mean):
    found = bootstrap_mean(values, seed=1)
    assert found.mean == pytest.approx(mean, nan_ok=True)
    assert math.isnan(found.low) and math.isnan(found.high)


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_equal_values_have_an_interval_without_width(method):
    found = bootstrap_mean([0.3] * 7, method=method, seed=1)
    assert found.low == found.high == found.mean == pytest.approx(0.3)


def test_a_measure_does_not_depend_on_its_neighbours():
    matrix = generator(1, "neighbours").random((4, 50))
    matrix[1, :3] = matrix[3, 7] = NAN
    together = bootstrap_means(matrix, seed=5)
    assert together == tuple(bootstrap_mean(row, seed=5) for row in matrix)
    assert together[0] != bootstrap_mean(matrix[0], seed=6)


def test_work_in_chunks_covers_all_draws():
    sample = skewed(30, "chunks")
    whole = intervals.resampled_means([sample], 2000, seed=2)[0]
    parts = intervals.resampled_means([sample], 2000, seed=2, cells=1000)[0]
    assert np.isfinite(parts).all() and np.unique(parts).size > 1900
    bounds = [np.quantile(means, (0.025, 0.975)) for means in (whole, parts)]
    assert bounds[1] == pytest.approx(bounds[0], abs=0.1 * sample.std() / math.sqrt(30))


@given(scores, st.sampled_from(["bca", "percentile"]))
def test_the_interval_lies_among_the_values(sample, method):
    found = bootstrap_mean(sample, method=method, draws=200, seed=1)
    assert sample.min() - 1e-12 <= found.low <= found.high <= sample.max() + 1e-12


@given(scores, st.sampled_from(["bca", "percentile"]))
def test_the_other_sign_mirrors_the_interval(sample, method):
    found, mirrored = (bootstrap_mean(sign * sample, method=method, draws=200, seed=1) for sign in (1, -1))
    assert (-mirrored.high, -mirrored.low) == pytest.approx((found.low, found.high), abs=1e-12)


@given(scores, st.floats(0.1, 100), st.floats(-10, 10))
def test_the_interval_moves_and_stretches_with_the_values(sample, scale, shift):
    if np.ptp(sample) < 1e-3:
        return
    found = bootstrap_mean(sample, draws=200, seed=1)
    moved = bootstrap_mean(scale * sample + shift, draws=200, seed=1)
    assert moved.low == pytest.approx(scale * found.low + shift, abs=1e-6 * scale + 1e-9)
    assert moved.high == pytest.approx(scale * found.high + shift, abs=1e-6 * scale + 1e-9)


def test_more_confidence_is_a_wider_interval():
    sample = skewed(25, "wider")
    narrow, wide = (bootstrap_mean(sample, confidence=level, seed=1) for level in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_bca_covers_the_mean_of_a_skewed_measure_about_as_often_as_it_says():
    covered = {"bca": 0, "percentile": 0}
    samples = generator(11, "coverage").exponential(size=(600, 40))
    for method in covered:
        found = bootstrap_means(samples, method=method, draws=500, seed=11)
        covered[method] = sum(interval.low <= 1 <= interval.high for interval in found) / 600
    # At 40 queries of a distribution this skewed, theory grants BCa about 0.93, percentiles 0.92.
    assert 0.90 <= covered["percentile"] <= covered["bca"] + 0.01
    assert 0.915 <= covered["bca"] <= 0.97


def test_the_bounds_miss_on_both_sides_alike_when_values_are_symmetric():
    found = bootstrap_means(generator(12, "sides").normal(size=(800, 60)), draws=500, seed=12)
    above = sum(interval.low > 0 for interval in found) / 800
    below = sum(interval.high < 0 for interval in found) / 800
    assert 0.012 <= above <= 0.045 and 0.012 <= below <= 0.045


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [[0.1, math.inf]]}, "infinite"),
        ({"values": [0.1, 0.2]}, "measures, queries"),
        ({"method": "basic"}, "known: bca, percentile"),
        ({"confidence": 1.0}, "confidence"),
        ({"draws": 0}, "draws"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_means(**{"values": [[0.1, 0.2]], "seed": 1} | arguments)


def test_one_measure_has_one_dimension():
    with pytest.raises(ValueError, match="one value per query"):
        bootstrap_mean([[0.1]], seed=1)
