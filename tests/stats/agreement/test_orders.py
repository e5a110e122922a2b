import math
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from raggs.stats.order_agreement import kendall_tau_b, overlap_at_k, rbo, spearman, tau_ap

orders = st.lists(st.sampled_from("abcdefghijkl"), unique=True, max_size=12)
pairs = st.tuples(orders, orders)
full = st.permutations("abcdefgh")
tied = st.fixed_dictionaries({name: st.integers(0, 3) for name in "abcdef"})
probabilities = st.sampled_from([0.2, 0.5, 0.9, 0.98])
MEASURES = [kendall_tau_b, spearman, tau_ap, rbo, lambda first, second: overlap_at_k(first, second, 5)]


def tau_ap_by_definition(truth, estimate):
    place, size = {name: rank for rank, name in enumerate(truth)}, len(estimate)
    right = sum(
        sum(place[above] < place[estimate[rank]] for above in estimate[:rank]) / rank for rank in range(1, size)
    )
    return 2 * right / (size - 1) - 1


def breakings(scores):
    """Every strict order that breaks the ties of `scores`."""
    groups = [
        [name for name in scores if scores[name] == level] for level in sorted(set(scores.values()), reverse=True)
    ]
    for choice in product(*map(permutations, groups)):
        yield [name for group in choice for name in group]


def rbo_by_definition(agreement, p, depth=1200):
    return sum((1 - p) * p ** (d - 1) * agreement(d) for d in range(1, depth + 1))


def shared_at(first, second, d):
    return len(set(first[:d]) & set(second[:d]))


def test_tau_ap_by_hand():
    # Rank 2 holds a, wrongly below b; ranks 3 and 4 are right against all: 2/3 (0/1 + 2/2 + 3/3) - 1.
    assert tau_ap("abcd", "bacd") == pytest.approx(1 / 3)
    # The same swap at the end costs less: 2/3 (1/1 + 2/2 + 2/3) - 1.
    assert tau_ap("abcd", "abdc") == pytest.approx(7 / 9)


@given(full, full)
def test_tau_ap_is_its_definition(truth, estimate):
    assert tau_ap(truth, estimate) == pytest.approx(tau_ap_by_definition(truth, estimate))


@given(tied, full)
def test_ties_of_the_estimate_are_broken_in_every_way(scores, names):
    truth = [name for name in names if name in scores]
    each = [tau_ap_by_definition(truth, order) for order in breakings(scores)]
    assert tau_ap(truth, scores) == pytest.approx(sum(each) / len(each))


@given(
    st.fixed_dictionaries({name: st.integers(0, 2) for name in "abcd"}),
    st.fixed_dictionaries({name: st.integers(0, 2) for name in "abcd"}),
)
def test_ties_of_both_sides_are_broken_in_every_way(truth, estimate):
    each = [tau_ap_by_definition(one, other) for one in breakings(truth) for other in breakings(estimate)]
    assert tau_ap(truth, estimate) == pytest.approx(sum(each) / len(each))


@given(full, full)
def test_symmetric_tau_ap_is_the_mean_of_both_directions(first, second):
    mean = (tau_ap(first, second) + tau_ap(second, first)) / 2
    assert tau_ap(first, second, symmetric=True) == pytest.approx(mean)
    assert tau_ap(second, first, symmetric=True) == pytest.approx(mean)


def test_tau_ap_minds_the_head_and_kendall_does_not():
    head, tail = "bacdefgh", "abcdefhg"
    assert kendall_tau_b("abcdefgh", head) == pytest.approx(kendall_tau_b("abcdefgh", tail))
    assert tau_ap("abcdefgh", head) < tau_ap("abcdefgh", tail)


def test_kendall_with_ties_by_hand():
    # Of six pairs, a-b is tied on one side and b-d on the other; of the other four, three agree and one does not.
    first, second = {"a": 3, "b": 3, "c": 2, "d": 1}, {"a": 3, "b": 1, "c": 2, "d": 1}
    assert kendall_tau_b(first, second) == pytest.approx((3 - 1) / math.sqrt(5 * 5))


def test_spearman_by_hand():
    # Rank differences 1, 1, 0, 0: 1 - 6 * 2 / (4 * 15).
    assert spearman("abcd", "bacd") == pytest.approx(0.8)
    # With ties, Pearson's correlation of the mean ranks.
    expected = scipy_stats.pearsonr([1.5, 1.5, 3, 4], [1, 3.5, 3.5, 2]).statistic
    assert spearman({"a": 9, "b": 9, "c": 5, "d": 1}, {"a": 0.9, "b": 0.1, "c": 0.1, "d": 0.2}) == pytest.approx(
        expected
    )


@pytest.mark.parametrize("measure", [kendall_tau_b, spearman, tau_ap])
@given(first=full, second=full)
def test_correlations_of_strict_orders(measure, first, second):
    value = measure(first, second)
    assert -1 - 1e-9 <= value <= 1 + 1e-9
    assert measure(first, first) == pytest.approx(1)
    assert measure(first, first[::-1]) == pytest.approx(-1)
    renamed = [[name.upper() for name in order] for order in (first, second)]
    assert measure(*renamed) == pytest.approx(value)
    scores = [{name: math.exp(-place) for place, name in enumerate(order)} for order in (first, second)]
    assert measure(*scores) == pytest.approx(value)


@pytest.mark.parametrize("measure", [kendall_tau_b, spearman])
@given(first=full, second=full)
def test_turning_one_order_round_turns_the_sign(measure, first, second):
    assert measure(first, second[::-1]) == pytest.approx(-measure(first, second))
    assert measure(second, first) == pytest.approx(measure(first, second))


@pytest.mark.parametrize("measure", [kendall_tau_b, spearman, tau_ap])
def test_correlations_look_at_what_both_hold(measure):
    assert measure("xabycd", "bzacd") == pytest.approx(measure("abcd", "bacd"))
    for first, second in [("abc", "xyz"), ("abc", "cxy"), ("", "ab")]:
        assert math.isnan(measure(first, second))


@pytest.mark.parametrize("measure", [kendall_tau_b, spearman])
def test_where_all_is_tied_a_correlation_is_undefined(measure):
    assert math.isnan(measure({"a": 1, "b": 1, "c": 1}, "abc"))
    assert math.isnan(measure("abc", {"a": 1, "b": 1, "c": 1}))


def test_rbo_by_hand():
    # Overlaps 1, 1, 3 at the depths 1, 2, 3: agreements 1, 1/2, 1, and 1 from there on; p = 1/2.
    expected = 0.5 * 1 + 0.25 * 0.5 + 0.125 * 1 + 0.125
    assert rbo("abc", "acb", p=0.5).extrapolated == pytest.approx(expected)


@given(pairs, probabilities)
def test_rbo_extrapolates_the_agreement_seen(pair, p):
    short, long = sorted(pair, key=len)
    s, depth = len(short), len(long)
    if not s:
        assert math.isnan(rbo(*pair, p=p).extrapolated)
        return

    def agreement(d):
        d = min(d, depth)
        assumed = shared_at(short, long, s) / s * max(0, d - s)
        return (shared_at(short, long, d) + assumed) / d

    assert rbo(*pair, p=p).extrapolated == pytest.approx(rbo_by_definition(agreement, p), abs=1e-9)


@given(pairs, st.sampled_from([0.2, 0.5, 0.9]))
def test_the_bounds_of_rbo_are_those_of_the_worst_and_the_best_continuation(pair, p):
    short, long = sorted(pair, key=len)
    found, deep = rbo(*pair, p=p), 250
    apart = [short + [f"s{n}" for n in range(deep)], long + [f"l{n}" for n in range(deep)]]
    lowest = rbo_by_definition(lambda d: shared_at(*apart, d) / d, p, depth=deep)
    assert found.minimum == pytest.approx(lowest, abs=1e-9)
    common = [f"c{n}" for n in range(deep)]
    only_long, only_short = (
        [name for name in ours if name not in theirs] for ours, theirs in ((long, short), (short, long))
    )
    joined = [short + only_long + common, long + only_short + common]
    highest = rbo_by_definition(lambda d: shared_at(*joined, d) / d, p, depth=deep)
    assert found.minimum + found.residual == pytest.approx(highest, abs=1e-9)


@given(pairs, probabilities)
def test_rbo_lies_within_its_bounds_and_takes_no_side(pair, p):
    found, other = rbo(*pair, p=p), rbo(*reversed(pair), p=p)
    assert (found.minimum, found.residual) == pytest.approx((other.minimum, other.residual))
    assert found.minimum >= -1e-9 and found.residual >= -1e-9 and found.minimum + found.residual <= 1 + 1e-9
    if pair[0] and pair[1]:
        assert found.extrapolated == pytest.approx(other.extrapolated)
        assert found.minimum - 1e-9 <= found.extrapolated <= found.minimum + found.residual + 1e-9


@given(orders, probabilities)
def test_rbo_of_an_order_with_itself_and_with_a_stranger(order, p):
    if order:
        assert rbo(order, order, p=p).extrapolated == pytest.approx(1)
        stranger = rbo(order, [name.upper() for name in order], p=p)
        assert (stranger.extrapolated, stranger.minimum) == (0, 0)


def test_the_residual_shrinks_as_more_is_seen():
    residuals = [rbo("abcdefgh"[:depth], "bacdxfgh"[:depth]).residual for depth in range(9)]
    assert residuals[0] == pytest.approx(1)
    assert residuals == sorted(residuals, reverse=True)


@pytest.mark.parametrize(
    ("first", "second", "k", "expected"),
    [
        ("abcdef", "bxaydz", 3, 2 / 3),
        ("abc", "cab", 10, 1.0),
        ("abc", "abcdef", 6, 0.5),
        ("abc", "", 2, 0.0),
        ({"a": 1, "b": 3, "c": 2}, "bca", 2, 1.0),
        ({"b": 1, "a": 1, "c": 1}, "abx", 2, 1.0),
    ],
)
def test_overlap(first, second, k, expected):
    assert overlap_at_k(first, second, k) == pytest.approx(expected)
    assert overlap_at_k(second, first, k) == pytest.approx(expected)


def test_overlap_of_nothing_is_undefined():
    assert math.isnan(overlap_at_k([], [], 3))


@pytest.mark.parametrize("measure", MEASURES)
def test_wrong_orders_are_named(measure):
    with pytest.raises(ValueError, match="'b' twice"):
        measure("abcb", "abc")
    with pytest.raises(ValueError, match="'x' is not a number"):
        measure("abc", {"a": 1.0, "x": math.nan})


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="between 0 and 1"):
        rbo("ab", "ba", p=1.0)
    with pytest.raises(ValueError, match="cutoff"):
        overlap_at_k("ab", "ba", 0)
