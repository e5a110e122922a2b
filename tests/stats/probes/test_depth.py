"""Routers: what must hold of any, and worlds in which one helps or cannot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.arrays import Flags, Floats
from raggs.stats.search_depth import DepthWorth, escalated_questions, fit, judge, oracle_path, path, thresholds

QUESTIONS = 200
EVEN: Flags = np.arange(QUESTIONS) % 2 == 0


def world(seed: int, *, helps: bool) -> tuple[dict[str, Floats], DepthWorth]:
    """A third of the questions are hard and show a small margin; deep lists help these, or all alike."""
    rng = np.random.default_rng(seed)
    hard = rng.random(QUESTIONS) < 0.33
    gain = np.where(hard, 0.15, 0.0) if helps else rng.permutation(np.where(hard, 0.15, 0.0))
    far = rng.random(QUESTIONS) * 0.8
    near = rng.random(QUESTIONS) * 0.8
    signals = {
        "head_margin": np.where(hard, 0.05, 0.1) + rng.normal(0, 0.02, QUESTIONS),
        "entropy": rng.random(QUESTIONS),
        "name": (rng.random(QUESTIONS) < 0.2).astype(float),
    }
    return signals, DepthWorth(near, near + rng.normal(0, 0.01, QUESTIONS), far, far + gain)


def halves(signals: dict[str, Floats], chosen: Flags) -> dict[str, Floats]:
    return {name: values[chosen] for name, values in signals.items()}


def routed(seed: int, *, helps: bool) -> tuple[dict[str, float], Flags, DepthWorth]:
    signals, worth = world(seed, helps=helps)
    when = thresholds(fit(halves(signals, EVEN), worth.part(EVEN)))
    return when, escalated_questions(halves(signals, ~EVEN), when), worth.part(~EVEN)


def test_a_signal_that_tells_who_gains_beats_random_on_questions_it_was_not_fitted_on() -> None:
    when, deep, worth = routed(1, helps=True)
    found = judge(deep, worth, seed=1)
    assert set(when) == {"head_margin"} and 0.05 < when["head_margin"] < 0.1
    assert found.above_random.low > 0 and found.near_change.low > -0.01
    assert found.policies["routed"].far.mean > found.policies["random"].far.mean
    assert found.share == pytest.approx(0.33, abs=0.12)


@pytest.mark.nightly
def test_where_no_signal_tells_who_gains_a_router_is_rarely_taken_for_better_than_random() -> None:
    beyond = [judge(*routed(seed, helps=False)[1:], seed=1).above_random.low > 0 for seed in range(40)]
    assert sum(beyond) <= 4  # 2.5 % expected


def test_the_limits_of_a_fit_hold_on_the_half_that_it_saw() -> None:
    signals, worth = world(3, helps=True)
    assert escalated_questions(signals, thresholds(fit(signals, worth, most=0.1))).mean() <= 0.1
    harmed = DepthWorth(worth.near_shallow, worth.near_shallow - 0.2, worth.far_shallow, worth.far_deep)
    deep = escalated_questions(signals, thresholds(fit(signals, harmed, loss=0.01)))
    assert (deep * harmed.near_gain).mean() >= -0.01 and deep.mean() <= 0.05


def test_what_cannot_be_read_sends_nobody_deep() -> None:
    assert not escalated_questions({"entropy": np.array([np.nan, 0.2])}, {"entropy": 0.5}).any()
    _, worth = world(4, helps=True)
    assert fit({"entropy": np.full(QUESTIONS, np.nan)}, worth) == ()


@given(st.integers(0, 2**32 - 1), st.integers(2, 60))
def test_no_choice_of_depths_is_outside_of_what_must_hold(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    near, more, far, most = rng.random((4, count))
    worth, deep = DepthWorth(near, more, far, most), rng.random(count) < 0.4
    found = judge(deep, worth, seed=1)
    means = {name: policy.far.mean for name, policy in found.policies.items()}
    share = found.share
    assert means["random"] == pytest.approx((1 - share) * means["shallow"] + share * means["deep"])
    assert means["routed"] - means["random"] == pytest.approx(found.above_random.mean, abs=1e-12)
    assert means["routed"] - means["deep"] == pytest.approx(found.below_deep.mean, abs=1e-12)
    assert means["oracle"] >= max(means.values()) - 1e-12
    assert means["oracle, same share"] >= max(means["routed"], means["random"]) - 1e-12
    line = dict(oracle_path(worth))
    assert line[0.0] == pytest.approx(means["shallow"]) and line[1.0] == pytest.approx(means["deep"])
    assert max(line.values()) == pytest.approx(means["oracle"])


@given(st.integers(0, 2**32 - 1))
def test_any_fit_escalates_more_with_each_step_and_never_less_than_random_on_its_own_half(seed: int) -> None:
    rng = np.random.default_rng(seed)
    near, more, far, most = rng.random((4, 60))
    worth = DepthWorth(near, more, far, most)
    signals = {
        "head_margin": rng.random(60),
        "entropy": rng.choice([0.1, 0.5, np.nan], 60),
        "agreement": rng.random(60),
    }
    steps = fit(signals, worth, loss=1.0)
    counts = [step.escalated for step in steps]
    assert counts == sorted(set(counts)) and all(step.excess > 0 for step in steps)
    deep = escalated_questions(signals, thresholds(steps))
    assert int(deep.sum()) == (counts[-1] if counts else 0) <= 30
    assert judge(deep, worth, seed=1).above_random.mean >= -1e-12
    assert path(steps, signals, worth)[-1] == pytest.approx(
        (deep.mean(), judge(deep, worth, seed=1).far_change.mean + far.mean())
    )
