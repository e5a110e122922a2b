import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats as scipy_stats

from raggs.base.hashing import generator
from raggs.stats.comparison import compare, compare_many, holm, least_queries, outcomes
from raggs.stats.intervals import bootstrap_mean

NAN = math.nan
MIRROR = {"better": "worse", "worse": "better", "equivalent": "equivalent", "inconclusive": "inconclusive"}


def worlds(shift, count, spread=0.1):
    rng = generator(7, "worlds", shift, count)
    baseline = rng.uniform(0.3, 0.7, count)
    return baseline + rng.normal(shift, spread, count), baseline


def test_a_clear_difference_is_a_win_and_its_mirror_a_loss():
    system, baseline = worlds(0.1, 60)
    won, lost = compare(system, baseline, seed=1), compare(baseline, system, seed=1)
    assert (won.verdict, lost.verdict) == ("better", "worse")
    assert won.difference.mean == pytest.approx((system - baseline).mean())
    assert won.p_values["t"] == pytest.approx(scipy_stats.ttest_rel(system, baseline).pvalue)
    assert won.p_values == won.corrected
    assert won.effect_size == pytest.approx((system - baseline).mean() / (system - baseline).std(ddof=1))
    assert (won.wins, won.ties, won.losses) == (lost.losses, lost.ties, lost.wins)


def test_the_interval_is_that_of_the_differences():
    system, baseline = worlds(0.02, 50)
    found = compare(system, baseline, seed=3, alpha=0.1)
    assert found.difference == bootstrap_mean(system - baseline, confidence=0.9, seed=3)


def test_equal_systems_tie():
    system, _ = worlds(0.0, 30)
    found = compare(system, system, seed=1)
    assert found.verdict == "equivalent" and found.negligible
    assert (found.wins, found.ties, found.losses) == (0, 30, 0)
    assert found.queries_needed is None
    assert set(found.p_values.values()) == {1.0}


def test_a_narrow_interval_around_zero_is_a_tie_and_a_wide_one_is_not():
    system, baseline = worlds(0.0, 200, spread=0.02)
    assert compare(system, baseline, seed=1).verdict == "equivalent"
    assert compare(system, baseline, seed=1, margin=0.0001).verdict == "inconclusive"


def test_a_win_may_be_negligible():
    system, baseline = worlds(0.004, 400, spread=0.01)
    found = compare(system, baseline, seed=1)
    assert found.verdict == "better" and found.negligible


def test_what_is_unresolvable_says_how_many_queries_would_do():
    system, baseline = worlds(0.02, 25)
    found = compare(system, baseline, seed=1)
    assert found.verdict == "inconclusive" and not found.negligible
    assert found.queries_needed > 25


def test_with_the_queries_asked_for_most_such_differences_are_resolved():
    rng, asked = generator(8, "promise"), compare(*worlds(0.02, 25), seed=1).queries_needed
    effect = compare(*worlds(0.02, 25), seed=1).effect_size
    verdicts = [compare(row, np.zeros(asked), seed=1).verdict for row in rng.normal(effect, 1, size=(60, asked))]
    won = verdicts.count("better" if effect > 0 else "worse")
    assert won / 60 == pytest.approx(0.8, abs=0.15)


@pytest.mark.parametrize("count", [2, 4, 5])
def test_unanimous_queries_below_the_least_number_prove_nothing(count):
    found = compare(np.full(count, 0.9), np.full(count, 0.1), seed=1)
    assert found.verdict == "inconclusive"
    assert found.queries_needed == least_queries(0.05) == 6
    assert compare(np.full(count, 0.5), np.full(count, 0.5), seed=1).verdict == "inconclusive"
    assert compare(np.full(6, 0.9), np.full(6, 0.1), seed=1).verdict == "better"


def test_pairs_with_a_missing_value_are_left_out_and_counted():
    system, baseline = worlds(0.1, 40)
    whole = compare(system, baseline, seed=1)
    holes = compare(np.append(system, [NAN, 0.5]), np.append(baseline, [0.5, NAN]), seed=1)
    assert (holes.difference.count, holes.difference.missing) == (40, 2)
    assert holes.p_values == whole.p_values and holes.difference.low == whole.difference.low
    assert holes.wins + holes.ties + holes.losses == 40


@pytest.mark.parametrize("values", [[], [NAN, NAN]])
def test_without_pairs_nothing_is_claimed(values):
    found = compare(values, values, seed=1)
    assert found.verdict == "inconclusive" and found.queries_needed is None
    assert all(math.isnan(p) for p in found.p_values.values())
    assert not found.negligible


def test_scores_that_differ_by_rounding_are_equal():
    system, baseline = np.array([0.1 + 0.2, 0.5, 0.2, NAN]), np.array([0.3, 0.4, 0.9, 0.1])
    np.testing.assert_array_equal(outcomes(system, baseline), [0, 1, -1, NAN])
    assert compare(system, baseline, seed=1).ties == 1


def test_many_systems_are_corrected_together():
    systems = {f"s{step}": worlds(step / 100, 40)[0] for step in (0, 3, 6)}
    baseline = worlds(0, 40)[1]
    found = compare_many(baseline, systems, seed=1)
    assert list(found) == list(systems)
    for test in ("randomisation", "t", "wilcoxon"):
        corrected = holm([found[name].p_values[test] for name in systems])
        assert corrected == tuple(found[name].corrected[test] for name in systems)
    assert all(found[name].p_values == compare(systems[name], baseline, seed=1).p_values for name in systems)


def test_the_correction_can_take_a_win_away():
    system, baseline = worlds(0.03, 40)
    assert 0.001 < compare(system, baseline, seed=1).p_values["randomisation"] < 0.05
    others = {str(step): worlds(0, 40 + step)[0][:40] for step in range(40)}
    among = compare_many(baseline, {"ours": system} | others, seed=1)["ours"]
    assert compare(system, baseline, seed=1).verdict == "better"
    assert among.verdict == "inconclusive"
    assert among.queries_needed > compare(system, baseline, seed=1).queries_needed


def test_among_equal_systems_few_families_see_a_difference():
    rng, claims = generator(9, "family"), 0
    for _ in range(150):
        scores = rng.normal(size=(5, 16))
        found = compare_many(scores[0], dict(zip("abcd", scores[1:], strict=True)), seed=1, draws=300, tests=["t"])
        claims += any(each.verdict in ("better", "worse") for each in found.values())
    assert claims / 150 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)


def test_no_systems_are_no_comparisons():
    assert compare_many([0.1, 0.2], {}, seed=1) == {}


def test_the_first_test_decides():
    system, baseline = np.full(8, 0.9), np.full(8, 0.1)
    assert compare(system, baseline, seed=1, tests=["wilcoxon"]).verdict == "better"
    undefined = compare(system, baseline, seed=1, tests=["t", "wilcoxon"])
    assert math.isnan(undefined.p_values["t"]) and undefined.verdict == "inconclusive"


@st.composite
def paired_scores(draw):
    size = draw(st.integers(0, 25))
    cells = st.one_of(st.just(NAN), st.floats(0, 1, width=16))
    return tuple(draw(arrays(np.float64, size, elements=cells)) for _ in range(2))


@given(paired_scores())
def test_the_mirror_of_every_comparison(pair):
    found = compare(*pair, seed=1, draws=100)
    mirror = compare(*reversed(pair), seed=1, draws=100)
    assert mirror.verdict == MIRROR[found.verdict]
    assert mirror.p_values == pytest.approx(found.p_values, nan_ok=True)
    assert mirror.effect_size == pytest.approx(-found.effect_size, nan_ok=True)
    assert mirror.queries_needed == found.queries_needed
    assert mirror.difference.low == pytest.approx(-found.difference.high, abs=1e-12, nan_ok=True)


@given(paired_scores())
def test_a_verdict_never_contradicts_its_witnesses(pair):
    found = compare(*pair, seed=1, draws=100)
    significant = found.corrected["randomisation"] < 0.05
    if found.verdict in ("better", "worse"):
        assert significant and found.difference.low * found.difference.high > 0
        assert (found.verdict == "better") == (found.difference.mean > 0)
    if found.verdict == "equivalent":
        assert found.negligible and -0.01 <= found.difference.mean <= 0.01
    if found.verdict == "inconclusive":
        assert found.queries_needed is None or found.queries_needed > found.difference.count


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"system": [0.1]}, "shapes"),
        ({"system": [0.1, math.inf]}, "infinite"),
        ({"tests": ["sign"]}, "randomisation, t, wilcoxon, got sign"),
        ({"tests": []}, "got none"),
        ({"alpha": 0}, "alpha"),
        ({"margin": -1}, "margin"),
        ({"method": "basic"}, "known"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        compare(**{"system": [0.1, 0.2], "baseline": [0.2, 0.1], "seed": 1} | arguments)
