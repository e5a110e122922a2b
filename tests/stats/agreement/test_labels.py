import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats as scipy_stats

from raggs.base.hashing import generator
from raggs.stats.agreement import cohen_kappa, confusion, count_pairs, krippendorff_alpha

NAN = math.nan
WEIGHTS = [None, "linear", "quadratic"]
LEVELS = ["nominal", "ordinal", "interval"]
cells = st.one_of(st.just(NAN), st.integers(1, 5).map(float))
ratings = st.tuples(st.integers(2, 4), st.integers(1, 10)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=cells)
)
judged = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=30).map(np.transpose)


def cost(weights, gaps):
    return {None: gaps != 0, "linear": np.abs(gaps), "quadratic": gaps**2}[weights].mean()


def kappa_by_definition(first, second, weights):
    """The mean cost of the judges' pairs against that of any two of their labels."""
    expected = cost(weights, np.subtract.outer(first, second))
    return 1 - cost(weights, np.subtract(first, second)) / expected if expected else NAN


def alpha_by_definition(matrix, level):
    """Mean difference within units against that between any two ratings, pair by pair."""
    units = [column[~np.isnan(column)] for column in np.transpose(matrix)]
    units = [unit for unit in units if unit.size > 1]
    everything = np.concatenate(units) if units else np.zeros(0)

    def difference(one, other):
        if level == "nominal":
            return float(one != other)
        if level == "interval":
            return (one - other) ** 2
        low, high = min(one, other), max(one, other)
        between = ((everything >= low) & (everything <= high)).sum()
        return (between - ((everything == low).sum() + (everything == high).sum()) / 2) ** 2 if low < high else 0.0

    within = sum(sum(difference(*pair) for pair in permutations(unit, 2)) / (unit.size - 1) for unit in units)
    overall = sum(difference(*pair) for pair in permutations(everything, 2))
    return 1 - (everything.size - 1) * within / overall if overall else NAN


def noisy(units, *names, agree=0.6):
    rng = generator(5, "judges", units, *names)
    first = rng.integers(1, 6, units)
    return first, np.where(rng.random(units) < agree, first, np.clip(first + rng.integers(-2, 3, units), 1, 5))


def test_kappa_by_hand():
    # Of ten, seven agree; by the margins (6, 4) and (5, 5) chance brings .6 * .5 + .4 * .5 = .5: (.7 - .5) / .5.
    first, second = [1, 1, 1, 1, 1, 1, 2, 2, 2, 2], [1, 1, 1, 1, 2, 2, 2, 2, 2, 1]
    found = cohen_kappa(first, second, labels=(1, 2), seed=1)
    assert found.value == pytest.approx(0.4)
    assert (found.units, found.missing) == (10, 0)


@pytest.mark.parametrize("weights", WEIGHTS)
@given(pair=judged)
def test_kappa_is_its_definition(pair, weights):
    value = cohen_kappa(*pair, weights=weights, draws=1, seed=1).value
    assert value == pytest.approx(kappa_by_definition(*pair, weights), nan_ok=True)
    assert cohen_kappa(*pair[::-1], weights=weights, draws=1, seed=1).value == pytest.approx(value, nan_ok=True)
    assert math.isnan(value) or value <= 1


@given(judged, st.permutations([1, 2, 3, 4, 5]))
def test_plain_kappa_does_not_know_what_labels_mean(pair, names):
    renamed = np.array(names)[pair - 1]
    value = cohen_kappa(*pair, draws=1, seed=1).value
    assert cohen_kappa(*renamed, draws=1, seed=1).value == pytest.approx(value, nan_ok=True)


def test_weights_forgive_what_is_near():
    first, near, far = [1, 2, 3, 4, 5] * 4, [2, 2, 3, 4, 5] * 4, [5, 2, 3, 4, 5] * 4
    plain, linear, quadratic = (cohen_kappa(first, near, weights=weights, seed=1).value for weights in WEIGHTS)
    assert plain < linear < quadratic < 1
    assert cohen_kappa(first, far, weights="quadratic", seed=1).value < plain


@pytest.mark.parametrize("weights", WEIGHTS)
def test_where_one_label_is_all_there_is_kappa_is_undefined(weights):
    found = cohen_kappa([3, 3, 3], [3, 3, 3], weights=weights, seed=1)
    assert math.isnan(found.value) and math.isnan(found.low) and math.isnan(found.high)


def test_alpha_by_hand():
    # Units (1, 1), (1, 2), (3, 3), and one rated once, which drops out. Pairable ratings: 1 three times, 2 once,
    # 3 twice; n = 6. Within units two ordered pairs differ, both 1-2, each worth 1 / (2 - 1).
    matrix = [[1, 1, 3, 2], [1, 2, 3, NAN]]
    # Nominal: ordered pairs that differ over all are 36 - 9 - 1 - 4 = 22, so 1 - 5 * 2 / 22.
    found = krippendorff_alpha(matrix, level="nominal", seed=1)
    assert found.value == pytest.approx(1 - 10 / 22)
    assert (found.units, found.missing) == (3, 1)
    # Interval: 1-2 weighs 1, 2-3 weighs 1, 1-3 weighs 4; 2 * (3 * 1 + 1 * 2 * 1 + 3 * 2 * 4) = 58.
    assert krippendorff_alpha(matrix, level="interval", seed=1).value == pytest.approx(1 - 5 * 2 / 58)
    # Ordinal: 1-2 lies (3 + 1) / 2 = 2 apart, 2-3 (1 + 2) / 2 = 1.5, 1-3 (3 + 2) / 2 + 1 = 3.5; within 2 * 4 = 8,
    # over all 2 * (3 * 4 + 2 * 2.25 + 6 * 12.25) = 180.
    assert krippendorff_alpha(matrix, level="ordinal", seed=1).value == pytest.approx(1 - 5 * 8 / 180)


@pytest.mark.parametrize("level", LEVELS)
@given(matrix=ratings)
def test_alpha_is_its_definition(matrix, level):
    found = krippendorff_alpha(matrix, level=level, draws=1, seed=1)
    assert found.value == pytest.approx(alpha_by_definition(matrix, level), nan_ok=True)
    assert found.units + found.missing == matrix.shape[1]


@pytest.mark.parametrize("level", LEVELS)
@given(matrix=ratings, order=st.randoms(use_true_random=False))
def test_alpha_does_not_care_who_rated_what_first(matrix, level, order):
    shuffled = np.array(order.sample(list(np.transpose(order.sample(list(matrix), len(matrix)))), matrix.shape[1])).T
    value = krippendorff_alpha(matrix, level=level, draws=1, seed=1).value
    assert krippendorff_alpha(shuffled, level=level, draws=1, seed=1).value == pytest.approx(value, nan_ok=True)


@given(ratings)
def test_each_level_keeps_what_it_measures(matrix):
    def value(changed, level):
        return krippendorff_alpha(changed, level=level, draws=1, seed=1).value

    assert value(np.exp(matrix), "ordinal") == pytest.approx(value(matrix, "ordinal"), nan_ok=True)
    assert value(-matrix, "ordinal") == pytest.approx(value(matrix, "ordinal"), nan_ok=True)
    assert value(3 - 2 * matrix, "interval") == pytest.approx(value(matrix, "interval"), nan_ok=True)
    assert value((matrix * 3) % 7, "nominal") == pytest.approx(value(matrix, "nominal"), nan_ok=True)


@pytest.mark.parametrize("matrix", [[[2, 2], [2, 2]], [[1, NAN], [NAN, 2]], [[1, 2, 3]], [[], []]])
def test_without_anything_to_disagree_on_alpha_is_undefined(matrix):
    found = krippendorff_alpha(matrix, seed=1)
    assert math.isnan(found.value) and math.isnan(found.low)


def test_perfect_agreement_is_certain_of_itself():
    found = krippendorff_alpha([[1, 2, 3, 1], [1, 2, 3, 1]], seed=1)
    assert (found.value, found.low, found.high) == (1, 1, 1)
    # Four draws of three kinds with the chances 1/2, 1/4, 1/4 are of one kind 141 times in 2,000.
    assert found.undefined == pytest.approx(141, abs=45)


def test_judges_without_a_clue_agree_as_chance_does():
    rng = generator(6, "chance")
    matrix = rng.integers(1, 6, (3, 2000)).astype(float)
    assert krippendorff_alpha(matrix, seed=1).value == pytest.approx(0, abs=0.05)
    assert cohen_kappa(matrix[0], matrix[1], weights="quadratic", seed=1).value == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_interval_is_that_of_resampled_units(weights):
    first, second = noisy(60)
    oracle = scipy_stats.bootstrap(
        (first, second),
        lambda one, other: kappa_by_definition(one, other, weights),
        paired=True,
        vectorized=False,
        n_resamples=400,
        method="percentile",
        rng=np.random.default_rng(1),
    )
    found = cohen_kappa(first, second, weights=weights, draws=4000, seed=1)
    assert found.low == pytest.approx(oracle.confidence_interval.low, abs=0.35 * oracle.standard_error)
    assert found.high == pytest.approx(oracle.confidence_interval.high, abs=0.35 * oracle.standard_error)
    assert found.undefined == 0


def test_the_interval_covers_the_true_kappa_about_as_often_as_it_says():
    truth = cohen_kappa(*noisy(200_000, "truth"), seed=1, draws=1).value
    found = [cohen_kappa(*noisy(80, step), draws=400, seed=step) for step in range(300)]
    assert 0.90 <= np.mean([each.low <= truth <= each.high for each in found]) <= 0.98


def test_intervals_repeat_with_their_seed():
    first, second = noisy(40)
    assert cohen_kappa(first, second, seed=1) == cohen_kappa(first, second, seed=1)
    assert cohen_kappa(first, second, seed=1) != cohen_kappa(first, second, seed=2)
    assert krippendorff_alpha([first, second], seed=1) == krippendorff_alpha([first, second], seed=1)


maybe = st.one_of(st.none(), st.integers(1, 5))


@pytest.mark.parametrize("weights", WEIGHTS)
@given(pairs=st.lists(st.tuples(maybe, maybe), min_size=1, max_size=40))
def test_pairs_that_were_counted_are_the_same_table(pairs, weights):
    found = count_pairs(Counter(pairs))
    sides = np.array(pairs, dtype=float).T
    assert found == confusion(*sides)
    assert found.kappa(weights) == pytest.approx(
        cohen_kappa(*sides, weights=weights, draws=1, seed=1).value, nan_ok=True
    )


def test_kappa_of_more_pairs_than_whole_numbers_multiply():
    pairs = {(1, 1): 10**10, (1, 5): 10**10, (5, 5): 2 * 10**10}
    # By hand, in units of 10^10 and of 16: seen 1 of 4; margins (2, 2) and (1, 3) bring 2 * 3 + 2 * 1 of 16, half.
    assert count_pairs(pairs).kappa("quadratic") == pytest.approx(0.5)


def test_no_pairs_have_no_kappa():
    assert math.isnan(count_pairs({}).kappa("quadratic"))
    assert count_pairs({(None, 3): 2}).missing == 2


def test_confusion_counts_pairs_and_what_is_missing():
    found = confusion([1, 1, 2, NAN, 3], [1, 2, 2, 3, NAN], labels=(1, 2, 3))
    assert found.counts == ((1, 1, 0), (0, 1, 0), (0, 0, 0))
    assert (found.total, found.missing) == (3, 2)
    assert found.observed == pytest.approx(2 / 3)
    assert math.isnan(confusion([NAN], [1]).observed)


def test_missing_labels_are_left_out_and_counted():
    found = cohen_kappa([1, 2, NAN, 4, 5], [1, 3, 3, NAN, 5], seed=1)
    assert (found.units, found.missing) == (3, 2)
    assert found.value == cohen_kappa([1, 2, 5], [1, 3, 5], seed=1).value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: confusion([1, 2], [1]), "shapes"),
        (lambda: confusion([1, 6], [1, 2]), "6, 2 is not among the labels 1, 2, 3, 4, 5"),
        (lambda: cohen_kappa([1], [1], weights="cubic", seed=1), "cubic"),
        (lambda: cohen_kappa([1], [1], confidence=0, seed=1), "confidence"),
        (lambda: krippendorff_alpha([1, 2], seed=1), "raters, units"),
        (lambda: krippendorff_alpha([[1, math.inf]], seed=1), "finite"),
        (lambda: krippendorff_alpha([[1, 2]], level="ratio", seed=1), "known: nominal, ordinal, interval"),
        (lambda: krippendorff_alpha([np.arange(51)] * 2, seed=1), "needs labels, not scores"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
