"""How fast calls may follow each other: a token bucket that learns what a provider allows.

The rate is the least of three: what the settings allow; what the provider's headers leave for the time until its
allowance is whole again; and what refusals taught (`CallPace`). A Retry-After stops all calls to the model for
exactly that long; afterwards they go one by one at the learned rate, so that those who waited do not come as a herd.

How fast calls may follow each other by what refusals (429, or any Retry-After) have taught.

A cut is answered as TCP answers a loss: once for all calls that were on their way together, then a quick return to the
good rate, which was really achieved, and from there on slow probing. Refusals that do not depend on the rate must not
hold it down. They give themselves away: they come below the good rate, too, where a limit refuses nothing. So a refusal
below it cuts nothing, and where there were several, none beyond it either. What always cuts is a large share of
refusals: the limit has fallen, or the allowance of a whole minute is used up.

Times are handed in; nothing here reads a clock or waits.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential

from raggs.base.errors import ProviderError
from raggs.llm.faults import BUSY, LONG_S, MINUTE_S, Fault, FaultRule, RateAllowance, Treatment, allowance

RATE_CUT = 0.8  # of the rate that was achieved
DEEP_CUT = 0.5  # of the rate, where a large share was refused
HEAVY_REFUSAL_SHARE, MIN_HEAVY_REFUSALS = (
    0.15,
    2,
)  # a large share of what was sent of late since the latest cut, and at least so many
RECOVERY_S = 5.0  # from a cut back to the good rate
GROWTH = 0.05  # of the rate, gained each second beyond the good one
FAST_GROWTH = 0.25  # the same, where refusals are known not to depend on the rate
UNEXPLAINED = 2  # so many refusals below the good rate say so
FORGOTTEN_S = 600.0  # after so long without a cut nothing is held against a provider
SHORTEST_S, LONGEST_S = 0.25, 5.0  # over how long calls are counted
MIN_CALLS_PER_S = 1 / MINUTE_S  # calls a second


class CallPace:
    """The rate of one model's calls. All times are of one clock, in seconds, and never go back."""

    def __init__(self) -> None:
        self._low = self._good = math.inf  # calls a second: just after the latest cut, and when recovered
        self._since = -math.inf  # the latest cut, or the end of a pause after it
        self._cut_at = 0  # calls sent before the latest cut
        self._refusals = 0  # of calls sent after it
        self._unexplained = 0  # those below the good rate
        self._count = 0
        self._sent: deque[float] = deque()  # of late
        self._refused: deque[float] = deque()

    def rate(self, now: float) -> float:
        """Calls a second; infinite before the first refusal."""
        age = max(0.0, now - self._since)
        if self._good == math.inf or age >= FORGOTTEN_S:
            return math.inf
        if age < RECOVERY_S:
            return self._low + (self._good - self._low) * age / RECOVERY_S
        growth = FAST_GROWTH if self._unexplained >= UNEXPLAINED else GROWTH
        return float(self._good * (1 + growth) ** (age - RECOVERY_S))

    def sent(self, now: float) -> int:
        """A call goes; returns its ticket for `refused`."""
        self._sent.append(now)
        self._drop_old(now)
        self._count += 1
        return self._count

    def pause(self, until: float) -> None:
        """No call goes before `until`, so until then nothing is learned."""
        self._since = max(self._since, until)

    def refused(self, ticket: int, now: float) -> None:
        """The call with `ticket` was refused."""
        self._refused.append(now)
        self._drop_old(now)
        if ticket <= self._cut_at:
            return
        self._refusals += 1
        rate, achieved = self.rate(now), self._achieved(now)
        if self._heavy():
            self._cut(now, low=DEEP_CUT * rate, good=RATE_CUT * achieved)
        elif now - self._since < RECOVERY_S:
            self._unexplained += 1
        elif self._unexplained < UNEXPLAINED:
            # When little was asked for, little was achieved; that is no reason to fall far.
            good = max(min(rate, achieved), 0.0 if self._good == math.inf else RATE_CUT * self._good)
            self._cut(now, low=RATE_CUT * good, good=good)

    def _heavy(self) -> bool:
        sent = min(self._count - self._cut_at, len(self._sent))
        return min(self._refusals, len(self._refused)) >= max(MIN_HEAVY_REFUSALS, HEAVY_REFUSAL_SHARE * sent)

    def _cut(self, now: float, low: float, good: float) -> None:
        self._low = max(MIN_CALLS_PER_S, low)
        self._good = max(self._low, good)
        self._since = now
        self._cut_at = self._count
        self._refusals = self._unexplained = 0

    def _achieved(self, now: float) -> float:
        """Calls a second that were not refused, of late; one at least, so that no rate is lost for good."""
        if not self._sent:
            return math.inf
        return max(1, len(self._sent) - len(self._refused)) / max(SHORTEST_S, now - self._sent[0])

    def _drop_old(self, now: float) -> None:
        for times in (self._sent, self._refused):
            while times and times[0] < now - LONGEST_S:
                times.popleft()


LONGEST_BACKOFF_S = 60.0
LONGEST_WAIT_S = LONG_S  # a provider that asks for more will not be waited for
TOLD_S = 15.0  # pauses from which on users are told
UNITS = (("h", 3600), ("min", 60))


def retrying(attempts: int, backoff_s: float, longest_s: float = LONGEST_WAIT_S) -> AsyncRetrying:
    """Up to `attempts` tries of what may soon succeed, the first pause of at most `backoff_s` seconds.

    `longest_s`: nobody is waited for who asks for a longer pause.
    """
    return AsyncRetrying(
        retry=retry_if_exception(partial(worth_retrying, longest_s=longest_s)),
        stop=stop_after_attempt(attempts),
        wait=partial(pause_s, backoff_s=backoff_s),
        reraise=True,
    )


def worth_retrying(error: BaseException, longest_s: float = LONGEST_WAIT_S) -> bool:
    """Whether asking again soon can help."""
    return isinstance(error, Fault) and error.treatment is Treatment.RETRY and (error.retry_after_s or 0) <= longest_s


def too_long(model: str, wait_s: float) -> Fault:
    """The end of a run whose provider asks for a pause that is too long: until when, and how to go on."""
    told = f"{model} may not be asked for another {_span(wait_s)}"
    remedy = "run again then (what was paid is cached), or raise llm.max_wait_s"
    return Fault(FaultRule(Treatment.STOP, ProviderError, told, remedy), ProviderError(told, remedy=remedy))


def _span(wait_s: float) -> str:
    """A pause, and when it ends by the clock."""
    unit, size = next((pair for pair in UNITS if wait_s >= 2 * pair[1]), ("s", 1))
    try:
        until = datetime.now(UTC) + timedelta(seconds=wait_s)
    except OverflowError:
        return "age"
    return f"{wait_s / size:,.0f} {unit}, until {until:%Y-%m-%d %H:%M:%S} UTC"


def pause_s(state: RetryCallState, backoff_s: float) -> float:
    """Exponential back-off with full jitter; nothing where the provider said how long, since all calls wait for it.

    The first pause is at most `backoff_s` seconds, the next at most twice as long, and so on.
    """
    error = None if state.outcome is None else state.outcome.exception()
    if isinstance(error, Fault) and error.retry_after_s is not None:
        return 0.0
    return float(wait_random_exponential(multiplier=backoff_s, max=LONGEST_BACKOFF_S)(state))


class TokenBucket:
    """A token bucket of requests or of tokens, whose rate the provider's headers may lower.

    A full bucket of `burst` that fills at rate r lets burst + r * 60 - 1 through in its first minute, so r is chosen
    to make this the limit. An amount above `burst` waits for a full bucket and leaves a debt.

    Args:
        per_minute: no minute holds more; None: no limit of our own.
        burst: what may go at once.
    """

    def __init__(self, per_minute: float | None, burst: float) -> None:
        self.burst = burst if per_minute is None else min(burst, max(1.0, per_minute / 10))
        self.sent = 0.0  # in all, so that a call can tell what was sent after it
        self._ceiling = math.inf if per_minute is None else (per_minute - self.burst + 1) / MINUTE_S
        self._left = math.inf  # rate by the headers, until `_whole_at`
        self._whole_at = -math.inf
        self._level, self._at = self.burst, 0.0

    def wait_s(self, amount: float, now: float, learned: float = math.inf) -> float:
        """Seconds until `amount` may go, at most at the rate `learned`."""
        left = self._left if now < self._whole_at else math.inf
        rate = min(self._ceiling, left, learned)
        if rate == math.inf:
            self._level = self.burst
        else:
            burst = self.burst if learned == math.inf else min(1.0, self.burst)
            self._level = min(burst, self._level + rate * max(0.0, now - self._at))
        self._at = max(self._at, now)
        lack = min(amount, self.burst) - self._level
        if lack <= 1e-9:
            return 0.0
        return min(lack / rate if rate else math.inf, self._whole_at - now if rate == left else math.inf)

    def take(self, amount: float) -> float:
        """Take what `wait_s` has allowed; returns a ticket for `told`."""
        self._level -= amount
        self.sent += amount
        return self.sent

    def drain(self, resumes_at: float | None, now: float) -> None:
        """Nothing may go at once; or one call may, when a pause is over."""
        if resumes_at is None:
            self._level = min(self._level, 0.0)
        elif resumes_at >= max(now, self._at):
            self._level, self._at = min(1.0, self.burst), resumes_at

    def told(self, found: RateAllowance, ticket: float, reserve: float, now: float) -> None:
        """Learn from the headers of the answer to the call with `ticket`.

        The provider may not have counted what was sent after that call. While more than `reserve` is left, nothing
        is held back; the rest is spread over the time until the allowance is whole, or over a minute where that
        takes longer.
        """
        left = max(0.0, found.remaining - (self.sent - ticket))
        if left > reserve or not 0 < found.reset_s <= (LONGEST_WAIT_S if not left else math.inf):
            self._whole_at = -math.inf
            return
        self._left, self._whole_at = left / min(found.reset_s, MINUTE_S), now + found.reset_s
        self._level = min(self._level, left)


class Tickets(NamedTuple):
    """Of one call: its number, and what the buckets of requests and of tokens gave."""

    call: int
    buckets: tuple[float, float]


class Throttle:
    """The gate before every call to one model.

    Args:
        requests_per_minute, tokens_per_minute: limits of our own; None for none.
        concurrency: calls that can be on their way at once.
        model: whose calls they are, for sentences.
        longest_s: the longest pause that is waited for.
        tell: hears of pauses that a user would wonder about.
    """

    def __init__(
        self,
        requests_per_minute: int | None,
        tokens_per_minute: int | None,
        concurrency: int,
        model: str = "the model",
        longest_s: float = LONGEST_WAIT_S,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._model = model
        self._longest_s = longest_s
        self._tell = tell
        self._told_until = -math.inf
        self._requests = TokenBucket(requests_per_minute, concurrency)
        self._tokens = TokenBucket(tokens_per_minute, math.inf)
        self._concurrency = concurrency
        self._turn = asyncio.Lock()  # first come, first served
        self._paused_until = -math.inf
        self._pace = CallPace()

    def rate(self, now: float) -> float:
        """Calls a second by what refusals have taught; infinite before the first."""
        return self._pace.rate(now)

    async def turn(self, tokens: int) -> Tickets:
        """Wait until a call of some `tokens` may go; returns its tickets for `answered` and `refused`.

        Raises:
            Fault: it would have to wait for too long.
        """
        clock = asyncio.get_running_loop().time
        async with self._turn:
            while (wait := self._wait_s(tokens, clock())) > 0:
                self._consider(wait, clock())
                await asyncio.sleep(wait)
            return Tickets(self._pace.sent(clock()), (self._requests.take(1), self._tokens.take(tokens)))

    def answered(self, tickets: Tickets, headers: Mapping[str, str], tokens: int) -> None:
        """Learn from the headers of an answer, or of a refusal, to a call of some `tokens`."""
        now = asyncio.get_running_loop().time()
        for bucket, unit, ticket, size in zip(
            (self._requests, self._tokens), ("requests", "tokens"), tickets.buckets, (1, tokens), strict=True
        ):
            if (found := allowance(headers, unit)) is not None:
                bucket.told(found, ticket, self._concurrency * size, now)

    def refused(self, tickets: Tickets, fault: Fault, tokens: int) -> None:
        """Learn from a call that failed; only a refusal teaches."""
        wait_s = fault.retry_after_s
        if fault.rule is not BUSY and wait_s is None:
            return
        now = asyncio.get_running_loop().time()
        self._pace.refused(tickets.call, now)
        self.answered(tickets, fault.headers, tokens)
        if wait_s is not None and wait_s <= self._longest_s:
            self._paused_until = max(self._paused_until, now + wait_s)
            self._pace.pause(self._paused_until)
        self._requests.drain(None if wait_s is None else self._paused_until, now)

    def _consider(self, wait_s: float, now: float) -> None:
        """Refuse a pause that is too long, and tell of one that takes its time, once until it is over."""
        if wait_s > self._longest_s:
            raise too_long(self._model, wait_s)
        if wait_s >= TOLD_S and now >= self._told_until:
            self._told_until = now + wait_s
            self._tell(f"{self._model} may not be asked for {_span(wait_s)}")

    def _wait_s(self, tokens: int, now: float) -> float:
        if self._paused_until > now:
            return self._paused_until - now
        return max(self._requests.wait_s(1, now, self.rate(now)), self._tokens.wait_s(tokens, now))
