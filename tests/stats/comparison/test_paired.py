import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats as scipy_stats

from raggs.base.hashing import generator
from raggs.stats import comparison
from raggs.stats.comparison import effect_size, holm, least_queries, queries_needed, randomisation_test

# Eighths are exact in binary, so that an oracle without tolerance counts equal sums as equal.
eighths = arrays(np.float64, st.integers(1, 9), elements=st.integers(-8, 8).map(lambda step: step / 8))
p_lists = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(eighths)
def test_few_differences_are_flipped_in_every_way(differences):
    sums = [abs(np.dot(signs, differences)) for signs in product((1, -1), repeat=differences.size)]
    expected = np.mean([value >= abs(differences.sum()) for value in sums])
    assert randomisation_test(differences, seed=1) == pytest.approx(expected)


def test_the_exact_test_is_that_of_scipy():
    differences = generator(1, "exact").normal(0.4, 1, 11)
    oracle = scipy_stats.permutation_test(
        (differences, np.zeros(11)), lambda x, y, axis: (x - y).mean(axis), permutation_type="samples", vectorized=True
    )
    assert randomisation_test(differences, seed=1) == pytest.approx(oracle.pvalue)


def test_rounding_does_not_break_ties_between_flips():
    differences = np.array([0.1, 0.2, 0.3, 0.1 + 0.2, 0.7 - 0.6]) * (1 / 3)
    assert randomisation_test(differences, seed=1) == 2 / 32


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_drawn_flips_agree_with_all_flips(shift):
    differences = generator(2, "drawn").normal(shift, 1, 18)
    exact = randomisation_test(differences, seed=1)
    drawn = randomisation_test(differences, seed=1, draws=40_000, exact=0)
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 40_000))


def test_drawn_flips_come_near_the_t_test_where_it_holds():
    differences = generator(3, "normal").normal(0.06, 1, 900)
    assert randomisation_test(differences, seed=1) == pytest.approx(comparison.t_test(differences), abs=0.015)


def test_drawn_flips_never_claim_a_p_of_zero():
    assert randomisation_test(np.ones(300), seed=1, draws=99) == 1 / 100


def test_under_the_null_the_p_values_are_uniform():
    samples = generator(4, "null").normal(size=(400, 30))
    p = [randomisation_test(row, seed=place, draws=300) for place, row in enumerate(samples)]
    assert scipy_stats.kstest(p, "uniform").pvalue > 0.01


@given(arrays(np.float64, st.integers(21, 60), elements=st.floats(-1, 1, width=16)), st.integers(0, 5))
def test_the_sign_of_the_difference_and_zeros_do_not_matter(differences, seed):
    p = randomisation_test(differences, seed=seed, draws=200)
    assert randomisation_test(-differences, seed=seed, draws=200) == p
    assert randomisation_test(np.append(differences, [0, 0]), seed=seed, draws=200) == p
    assert 0 < p <= 1


def test_the_other_tests_are_those_of_scipy():
    rng = generator(5, "scipy")
    a, b = rng.random(40), rng.random(40)
    assert comparison.t_test(a - b) == pytest.approx(scipy_stats.ttest_rel(a, b).pvalue)
    assert comparison.wilcoxon_test(a - b) == pytest.approx(scipy_stats.wilcoxon(a, b).pvalue)


@pytest.mark.parametrize("size", [1, 3, 8, 20, 21, 50])
def test_without_ties_wilcoxon_is_exact_as_in_scipy(size):
    differences = generator(7, "ranks", size).normal(0.3, 1, size)
    expected = scipy_stats.wilcoxon(differences, method="exact").pvalue
    assert comparison.wilcoxon_test(differences) == pytest.approx(expected)


def test_with_ties_wilcoxon_flips_the_signs_of_the_mean_ranks():
    differences = np.array([3, 1, 1, -1, 2, 2, 5, -3, 0]) / 8
    oracle = scipy_stats.wilcoxon(differences[:-1], method=scipy_stats.PermutationMethod())
    assert comparison.wilcoxon_test(differences) == pytest.approx(oracle.pvalue)


def test_wilcoxon_gives_equal_differences_one_rank_whatever_they_were_computed_from():
    clean = np.array([1, 1, 1, -1, 2, 2, 3, -4, 5, 6, 7, 0]) / 10
    noisy = (clean + 0.3) - 0.3
    assert len(set(np.abs(noisy))) > len(set(np.abs(clean)))
    noisy[-1] = 0
    assert comparison.wilcoxon_test(noisy) == pytest.approx(comparison.wilcoxon_test(clean))


@pytest.mark.parametrize("test", comparison.TESTS)
def test_without_differences_there_is_nothing_to_find(test):
    assert comparison.TESTS[test](np.zeros(8), 1) == 1
    assert math.isnan(comparison.TESTS[test](np.zeros(0), 1))


@pytest.mark.parametrize(("test", "p"), [("randomisation", 2 / 8), ("t", math.nan), ("wilcoxon", 2 / 8)])
def test_equal_differences_have_no_variance_to_test_against(test, p):
    assert comparison.TESTS[test](np.array([0.1, 0.3 - 0.2, 0.1]), 1) == pytest.approx(p, nan_ok=True)


def test_holm_by_hand():
    # Sorted .005 .01 .03 .04 times 4 3 2 1: .02 .03 .06 .04, and the last may not fall below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()


def test_holm_keeps_an_undefined_p_and_counts_it():
    assert holm([0.02, math.nan, 0.5]) == pytest.approx((0.06, math.nan, 1.0), nan_ok=True)


@given(p_lists)
def test_holm_lies_between_the_raw_p_and_bonferroni_and_keeps_the_order(p):
    corrected = np.array(holm(p))
    assert (corrected >= np.array(p)).all()
    assert (corrected <= np.minimum(len(p) * np.array(p), 1)).all()
    assert (np.diff(corrected[np.argsort(p)]) >= 0).all()


@given(p_lists, st.floats(0.001, 0.5))
def test_holm_rejects_what_stepping_down_rejects(p, alpha):
    rejected = set()
    for step, place in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[place] * (len(p) - step) > alpha:
            break
        rejected.add(place)
    assert {place for place, value in enumerate(holm(p)) if value <= alpha} == rejected


def test_effect_size():
    assert effect_size(np.array([1.0, 2.0, 3.0])) == pytest.approx(2.0)
    assert effect_size(np.array([-1.0, -2.0, -3.0])) == pytest.approx(-2.0)
    assert effect_size(np.zeros(3)) == 0
    assert effect_size(np.array([-0.2, -0.2])) == -math.inf
    assert math.isnan(effect_size(np.ones(1)))


@pytest.mark.parametrize(("alpha", "count"), [(0.05, 6), (0.25, 4), (0.01, 8), (0.5, 3)])
def test_least_queries_are_the_first_whose_unanimity_is_significant(alpha, count):
    assert least_queries(alpha) == count
    assert randomisation_test(np.ones(count), seed=1) < alpha <= randomisation_test(np.ones(count - 1), seed=1)


@pytest.mark.parametrize(("effect", "count"), [(0.2, 199), (0.5, 34), (0.8, 15)])
def test_queries_needed_for_small_medium_and_large_effects(effect, count):
    # 199, 34 and 15 pairs: the usual table of sample sizes of the paired t-test at 0.05 and 80 %.
    assert queries_needed(effect) == queries_needed(-effect) == count


@given(st.floats(0.05, 3), st.sampled_from([0.05, 0.01, 0.001]))
def test_queries_needed_are_the_fewest_with_the_power(effect, alpha):
    count = queries_needed(effect, alpha=alpha)
    assert comparison._power(count, effect, alpha) >= 0.8
    assert count == least_queries(alpha) or comparison._power(count - 1, effect, alpha) < 0.8


def test_with_the_queries_needed_four_tests_in_five_find_the_difference():
    samples = generator(6, "power").normal(0.5, 1, size=(1500, queries_needed(0.5)))
    found = scipy_stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("effect", "count"), [(0.0, None), (math.nan, None), (1e-17, None), (1e-4, 784_887_974), (math.inf, 6)]
)
def test_queries_needed_at_the_ends(effect, count):
    found = queries_needed(effect)
    assert found == (count if count is None else pytest.approx(count, rel=1e-5))
