"""The rate that refusals teach, by a clock that is handed in."""

from __future__ import annotations

import random

import pytest

from raggs.llm import rate
from raggs.llm.rate import CallPace

STEP_S = 0.001


def drive(seconds, refuses, demand=1000.0, found=None):
    """Send as fast as the pace and `demand` allow; returns the pace, and when calls were accepted and refused."""
    found = found or CallPace()
    accepted, refused, level, now = [], [], 0.0, 0.0
    while now < seconds:
        now += STEP_S
        level = min(1.0, level + STEP_S * min(demand, found.rate(now)))
        if level >= 1 - 1e-9:
            level -= 1
            ticket = found.sent(now)
            if refuses(now, accepted):
                refused.append(now)
                found.refused(ticket, now)
            else:
                accepted.append(now)
    return found, accepted, refused


def at_random(share, seed=1):
    draw = random.Random(seed)
    return lambda now, accepted: draw.random() < share


def above(limit):
    """A provider that accepts `limit` calls in any second."""
    return lambda now, accepted: len(accepted) >= limit and accepted[-limit] > now - 1


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.002, 0.02, 0.05])
def test_refusals_at_random_do_not_hold_the_rate_down(share, seed):
    _, accepted, _ = drive(60, at_random(share, seed), demand=500)
    assert sum(1 for time in accepted if time > 30) > 0.6 * 30 * 500


@pytest.mark.parametrize("limit", [5, 50, 200])
def test_a_limit_is_kept_and_used(limit):
    _, accepted, refused = drive(60, above(limit))
    assert len(accepted) > 0.75 * 60 * limit
    assert len(refused) < 0.02 * len(accepted) + 20


def test_after_a_quiet_recovery_the_good_rate_is_back_and_slowly_probed():
    cut = CallPace()
    for number in range(500):
        cut.sent(number / 100)
    cut.refused(500, 5.0)
    good = cut.rate(5.0) / rate.RATE_CUT
    assert good == pytest.approx(100, rel=0.01)
    assert cut.rate(5 + rate.RECOVERY_S / 2) == pytest.approx(good * (1 + rate.RATE_CUT) / 2)
    assert cut.rate(5 + rate.RECOVERY_S) == pytest.approx(good)
    assert cut.rate(6 + rate.RECOVERY_S) == pytest.approx(good * (1 + rate.GROWTH))


def test_calls_on_their_way_together_cut_once():
    found = CallPace()
    tickets = [found.sent(number / 64) for number in range(64)]
    found.refused(tickets[0], 1.0)
    cut = found.rate(1.0)
    for ticket in tickets[1:]:
        found.refused(ticket, 1.0)
    assert found.rate(1.0) == cut


def test_a_limit_that_falls_is_followed():
    both = above(200), above(10)
    _, accepted, refused = drive(60, lambda now, accepted: both[now > 20](now, accepted))
    late = [time for time in accepted if time > 30]
    assert 0.6 * 300 < len(late) <= 300
    assert len([time for time in refused if time > 30]) < 30


def test_a_refusal_while_little_is_asked_for_costs_little():
    once = iter([True])
    found, _, _ = drive(10, lambda now, accepted: len(accepted) == 500 and next(once, False), demand=100)
    before = found.rate(20.0)
    found.refused(found.sent(20.0), 20.0)
    assert found.rate(20.0) > 0.3 * before
    assert found.rate(20.0 + rate.RECOVERY_S) > 70


def test_in_a_pause_time_stands_still():
    found = CallPace()
    found.refused(found.sent(1.0), 1.0)
    found.pause(60.0)
    assert found.rate(60.0) == found.rate(1.0)
    assert found.rate(60.0 + rate.RECOVERY_S) > found.rate(60.0)
    assert found.rate(60.0 + rate.FORGOTTEN_S) == float("inf")
