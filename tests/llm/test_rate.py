"""Rates and pauses, in virtual time."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raggs.errors import DataError, ProviderError
from raggs.llm import rate
from raggs.llm.faults import TABLE, Fault


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer instead of waiting for it."""

    now = 0.0

    def time(self):
        return self.now

    def _run_once(self):
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0]._when) + 1e-9  # a real clock never stands still
        super()._run_once()


def starts(requests_per_minute, concurrency, count):
    """When each of `count` calls gets through."""

    async def main():
        gate, found = rate.limiter(requests_per_minute, concurrency), []

        async def call():
            async with gate:
                found.append(asyncio.get_running_loop().time())

        await asyncio.gather(*(call() for _ in range(count)))
        return sorted(found)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 300), st.integers(1, 40), st.floats(0.1, 3))
def test_no_minute_holds_more_calls_than_allowed(requests_per_minute, concurrency, minutes):
    times = starts(requests_per_minute, concurrency, int(requests_per_minute * minutes) + 1)
    for first, time in enumerate(times):
        assert bisect_left(times, time + rate.MINUTE_S - 1e-3) - first <= requests_per_minute


@pytest.mark.parametrize(("requests_per_minute", "concurrency"), [(500, 16), (60, 4), (10, 16), (1, 1)])
def test_the_allowance_is_used(requests_per_minute, concurrency):
    times = starts(requests_per_minute, concurrency, 3 * requests_per_minute + 1)
    assert times[-1] <= 3.5 * rate.MINUTE_S


def test_the_first_burst_is_no_larger_than_what_runs_at_once():
    times = starts(500, 16, 100)
    assert sum(1 for time in times if time < 0.001) == 16


def failed(error, attempt=1):
    return SimpleNamespace(outcome=SimpleNamespace(exception=lambda: error), attempt_number=attempt)


def fault(name="RateLimitError", retry_after_s=None):
    return Fault(TABLE[name], ProviderError("x"), retry_after_s)


@pytest.mark.parametrize("attempt", range(1, 9))
def test_pauses_grow_up_to_their_limit_and_are_jittered(monkeypatch, attempt):
    monkeypatch.setattr(rate, "BACKOFF_S", 1.0)
    pauses = [rate.pause_s(failed(fault(), attempt)) for _ in range(200)]
    most = min(2.0 ** (attempt - 1), rate.LONGEST_BACKOFF_S)
    assert 0 <= min(pauses) < 0.2 * most
    assert 0.8 * most < max(pauses) <= most


def test_a_pause_is_never_shorter_than_asked():
    assert all(7 <= rate.pause_s(failed(fault(retry_after_s=7))) < 9 for _ in range(50))


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
