import math

import pytest
from scipy.stats import binomtest

from raggs.stats.agreement import accuracy_given_hit, wilson

NAN = math.nan


def test_accuracy_given_hit_counts_every_query_once():
    correct = [1, 0, 1, 1, NAN, 0, 1]
    hits = [1, 1, 1, 0, 1, 0, NAN]
    found = accuracy_given_hit(correct, hits)
    assert found.value == pytest.approx(2 / 3)
    assert (found.correct, found.hits, found.missed, found.missing) == (2, 3, 2, 2)


@pytest.mark.parametrize(("right", "total"), [(0, 5), (5, 5), (31, 40)])
def test_wilson_holds_the_shares_that_a_score_test_does_not_reject(right, total):
    found = accuracy_given_hit([1] * right + [0] * (total - right), [True] * total)
    for bound in (found.low, found.high):
        if 0 < bound < 1:
            z = (right / total - bound) / math.sqrt(bound * (1 - bound) / total)
            assert abs(z) == pytest.approx(1.959964, rel=1e-5)
    assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize(("count", "total"), [(0, 5), (3, 10), (10, 10), (1, 400)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_wilson_is_that_of_scipy(count, total, confidence):
    expected = binomtest(count, total).proportion_ci(confidence, method="wilson")
    assert wilson(count, total, confidence) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_share_of_nothing_may_be_anything():
    assert wilson(0, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match="count=6, total=5"):
        wilson(6, 5)


def test_without_hits_nothing_is_known():
    found = accuracy_given_hit([1, 0], [0, NAN])
    assert math.isnan(found.value)
    assert (found.low, found.high, found.hits, found.missed, found.missing) == (0, 1, 0, 1, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: accuracy_given_hit([2], [1]), "0, 1 or NaN"),
        (lambda: accuracy_given_hit([1], [1, 0]), "shapes"),
        (lambda: accuracy_given_hit([1], [1], confidence=1), "confidence"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
