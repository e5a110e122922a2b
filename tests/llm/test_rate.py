"""Rates and pauses, in virtual time."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raggs.base.errors import DataError, ProviderError
from raggs.llm import faults, rate
from raggs.llm.faults import BUSY, TABLE, Fault
from raggs.llm.rate import Throttle


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer instead of waiting for it."""

    now = 0.0

    def time(self):
        return self.now

    def _run_once(self):
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0]._when) + 1e-9  # a real clock never stands still
        super()._run_once()


def virtually(main):
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


def starts(requests_per_minute, concurrency, count, tokens=1, tokens_per_minute=None):
    """When each of `count` calls gets through."""

    async def main():
        throttle, found = Throttle(requests_per_minute, tokens_per_minute, concurrency), []

        async def call():
            await throttle.turn(tokens)
            found.append(asyncio.get_running_loop().time())

        await asyncio.gather(*(call() for _ in range(count)))
        return sorted(found)

    return virtually(main)


def most_in_a_minute(times):
    return max(bisect_left(times, time + faults.MINUTE_S - 1e-3) - first for first, time in enumerate(times))


@given(st.integers(1, 300), st.integers(1, 40), st.floats(0.1, 3))
def test_no_minute_holds_more_calls_than_allowed(requests_per_minute, concurrency, minutes):
    times = starts(requests_per_minute, concurrency, int(requests_per_minute * minutes) + 1)
    assert most_in_a_minute(times) <= requests_per_minute


@given(st.integers(100, 5000), st.integers(1, 10))
def test_no_minute_holds_more_tokens_than_allowed(tokens_per_minute, tokens):
    times = starts(None, 16, 2 * tokens_per_minute // tokens + 1, tokens, tokens_per_minute)
    assert most_in_a_minute(times) * tokens <= tokens_per_minute
    assert times[-1] <= 3 * faults.MINUTE_S


def test_a_call_of_more_tokens_than_a_burst_goes_and_is_paid_off():
    assert starts(None, 16, 3, tokens=600, tokens_per_minute=600) == pytest.approx([0, 66, 132], rel=0.1)


@pytest.mark.parametrize(("requests_per_minute", "concurrency"), [(500, 16), (60, 4), (10, 16), (1, 1)])
def test_the_allowance_is_used(requests_per_minute, concurrency):
    times = starts(requests_per_minute, concurrency, 3 * requests_per_minute + 1)
    assert times[-1] <= 3.5 * faults.MINUTE_S


def test_the_first_burst_is_no_larger_than_what_runs_at_once():
    times = starts(500, 16, 100)
    assert sum(1 for time in times if time < 0.001) == 16


def test_without_limits_nothing_waits():
    assert starts(None, 4, 5000)[-1] < 0.01


class Provider:
    """Answers `latency` seconds after a call if its own limit allows, else refuses at once; notes when and what."""

    def __init__(self, throttle, allows, retry_after_s=None, headers=lambda now: {}, latency=0.2):
        self.throttle, self.allows, self.retry_after_s = throttle, allows, retry_after_s
        self.headers, self.latency = headers, latency
        self.answered, self.refused = [], []

    async def call(self):
        while True:
            tickets = await self.throttle.turn(1)
            now = asyncio.get_running_loop().time()
            if self.allows(self, now):
                self.answered.append(now)
                headers = self.headers(now)
                await asyncio.sleep(self.latency)
                self.throttle.answered(tickets, headers, 1)
                return
            self.refused.append(now)
            wait = self.retry_after_s(now) if self.retry_after_s else None
            self.throttle.refused(tickets, Fault(BUSY, ProviderError("x"), wait), 1)
            if wait is None:
                await asyncio.sleep(1)

    async def serve(self, count, concurrency):
        slots = asyncio.Semaphore(concurrency)

        async def one():
            async with slots:
                await self.call()

        await asyncio.gather(*(one() for _ in range(count)))


def test_retry_after_stops_everyone_for_exactly_as_long_and_no_herd_follows():
    refusals = iter([True])

    async def main():
        throttle = Throttle(None, None, 32)
        provider = Provider(
            throttle, lambda *_: len(provider.answered) < 20 or not next(refusals, False), lambda _: 7.0
        )
        await provider.serve(200, 32)
        return provider.answered, provider.refused

    answered, (refused,) = virtually(main)
    after = [time for time in answered if time > refused]
    assert refused + 7 <= after[0] < refused + 7.05
    assert len([time for time in after if time < after[0] + 0.001]) == 1
    gaps = [later - earlier for earlier, later in pairwise(after[:20])]
    assert min(gaps) > 0.3 * max(gaps) > 0


def window_of(limit, period=60.0):
    """A limit of calls in each of the windows that the clock is cut into."""

    def allows(provider, now):
        return sum(1 for time in provider.answered if time // period == now // period) < limit

    return allows


def test_headers_spread_what_is_left_and_nobody_is_refused():
    def headers(now):
        left = 120 - sum(1 for time in provider.answered if time // 60 == now // 60)
        return {"x-ratelimit-remaining-requests": str(left), "x-ratelimit-reset-requests": f"{60 - now % 60:.3f}s"}

    async def main():
        nonlocal provider
        provider = Provider(Throttle(None, None, 32), window_of(120), headers=headers)
        await provider.serve(350, 32)
        return provider

    provider = None
    found = virtually(main)
    assert not found.refused
    assert found.answered[-1] <= 2.95 * 60


def test_while_much_is_left_headers_hold_nothing_back():
    async def main():
        headers = {"x-ratelimit-remaining-requests": "9000", "x-ratelimit-reset-requests": "8h0m0s"}
        provider = Provider(Throttle(None, None, 64), lambda *_: True, headers=lambda _: headers)
        await provider.serve(640, 64)
        return provider.answered

    assert virtually(main)[-1] < 10 * 0.2 + 0.1


def test_an_allowance_that_is_used_up_is_waited_for():
    async def main():
        throttle = Throttle(None, None, 4)
        first = await throttle.turn(1)
        throttle.answered(first, {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "2.5s"}, 1)
        await throttle.turn(100)
        return asyncio.get_running_loop().time()

    assert virtually(main) == pytest.approx(2.5, abs=0.01)


@pytest.mark.nightly(keep=2)
@pytest.mark.parametrize("per_second", [2, 100, 20])
def test_the_rate_of_a_provider_that_says_nothing_is_found(per_second):
    def allows(provider, now):
        return len([time for time in provider.answered if time > now - 1]) < per_second

    async def main():
        provider = Provider(Throttle(None, None, 64), allows)
        await provider.serve(60 * per_second, 64)
        return provider

    found = virtually(main)
    assert found.answered[-1] < 1.9 * 60, "most of what is allowed is used"
    assert len(found.refused) < 30, "and hardly a call is refused"


def test_calls_refused_together_cut_the_rate_once_and_it_grows_back():
    async def main():
        throttle, clock = Throttle(None, None, 64), asyncio.get_running_loop().time
        tickets = [await throttle.turn(1) for _ in range(64)]
        await asyncio.sleep(1)
        for ticket in tickets:
            throttle.refused(ticket, Fault(BUSY, ProviderError("x")), 1)
        cut = throttle.rate(clock())
        await asyncio.sleep(20)
        grown = throttle.rate(clock())
        throttle.refused(await throttle.turn(1), Fault(BUSY, ProviderError("x")), 1)
        again = throttle.rate(clock())
        await asyncio.sleep(rate.FORGOTTEN_S)
        return cut, grown, again, throttle.rate(clock())

    cut, grown, again, later = virtually(main)
    assert cut == pytest.approx(63 * rate.RATE_CUT, rel=0.01)
    assert grown == pytest.approx(63 * (1 + rate.GROWTH) ** (20 - rate.RECOVERY_S), rel=0.01)
    assert again < cut
    assert later == float("inf")


def test_other_faults_teach_nothing():
    async def main():
        throttle = Throttle(None, None, 4)
        throttle.refused(await throttle.turn(1), fault("InternalServerError"), 1)
        return throttle.rate(asyncio.get_running_loop().time())

    assert virtually(main) == float("inf")


def test_a_waiter_that_is_cancelled_holds_nobody_up():
    async def main():
        throttle = Throttle(1, None, 1)
        await throttle.turn(1)
        waiting = [asyncio.ensure_future(throttle.turn(1)) for _ in range(3)]
        await asyncio.sleep(1)
        for task in waiting[:2]:
            task.cancel()
        await waiting[2]
        return asyncio.get_running_loop().time()

    assert virtually(main) == pytest.approx(60, abs=0.1)


def failed(error, attempt=1):
    return SimpleNamespace(outcome=SimpleNamespace(exception=lambda: error), attempt_number=attempt)


def fault(name="RateLimitError", retry_after_s=None):
    return Fault(TABLE[name], ProviderError("x"), retry_after_s)


@pytest.mark.parametrize("attempt", range(1, 9))
def test_pauses_grow_up_to_their_limit_and_are_jittered(attempt):
    pauses = [rate.pause_s(failed(fault(), attempt), 1.0) for _ in range(200)]
    most = min(2.0 ** (attempt - 1), rate.LONGEST_BACKOFF_S)
    assert 0 <= min(pauses) < 0.2 * most
    assert 0.8 * most < max(pauses) <= most


def test_who_is_told_how_long_to_wait_waits_with_all_the_others():
    assert rate.pause_s(failed(fault(retry_after_s=7)), 1.0) == 0


@pytest.mark.parametrize(
    ("error", "worth"),
    [
        (fault(), True),
        (fault(retry_after_s=rate.LONGEST_WAIT_S), True),
        (fault(retry_after_s=rate.LONGEST_WAIT_S + 1), False),
        (fault("BadRequestError"), False),
        (fault("AuthenticationError"), False),
        (DataError("ours"), False),
    ],
)
def test_only_passing_faults_are_retried(error, worth):
    assert rate.worth_retrying(error) is worth


def test_pauses_that_take_their_time_are_told_once():
    told = []

    async def main():
        throttle = Throttle(None, None, 4, "openai/m", tell=told.append)
        throttle.refused(await throttle.turn(1), fault(retry_after_s=30), 1)
        await asyncio.gather(*(throttle.turn(1) for _ in range(4)))

    virtually(main)
    assert len(told) == 1
    assert told[0].startswith("the provider allows no calls to openai/m for 30 s, until 2")
