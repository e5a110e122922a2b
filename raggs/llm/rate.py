"""Rate limits: a token bucket that learns what a provider allows.

The rate is the minimum of three rates: the limit in the settings, the remaining allowance in the provider's headers
(spread over the time until it is restored), and the rate learned from rejections (`CallPace`). A Retry-After pauses all
calls to the model for that time; if it is too long, the run stops. After the pause, calls start one by one at the
learned rate, to avoid a burst.

`CallPace` learns a rate from rejections (429, or any Retry-After). It reacts to a rejection as TCP reacts to a packet
loss. It reduces the rate once for all calls in flight together. It then returns quickly to the last good rate, which
was achieved before, and probes slowly from there. Rejections that do not depend on the rate must not keep it low. Such
rejections also occur below the good rate, where a rate limit would reject nothing. A few rejections below the good rate
therefore do not reduce the rate. After several of them, a few rejections above the good rate do not reduce it either.
But if a large share of the calls since the last reduction is rejected, the rate is reduced: the limit has dropped, or
the allowance of a whole minute is used up.

Times are passed as arguments. Nothing in `CallPace` reads a clock or waits.
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

RATE_CUT = 0.8  # factor on the achieved rate after a rejection
DEEP_CUT = 0.5  # factor on the rate after a large share of rejections
HEAVY_REFUSAL_SHARE, MIN_HEAVY_REFUSALS = (
    0.15,
    2,
)  # large share of recent calls since the last reduction, and minimum number of rejections
RECOVERY_S = 5.0  # seconds from a reduction back to the good rate
GROWTH = 0.05  # relative gain per second above the good rate
FAST_GROWTH = 0.25  # relative gain per second if rejections do not depend on the rate
UNEXPLAINED = 2  # number of rejections below the good rate that shows that rejections do not depend on it
FORGOTTEN_S = 600.0  # seconds without a reduction after which the learned rate is discarded
SHORTEST_S, LONGEST_S = 0.25, 5.0  # time span over which calls are counted, in seconds
MIN_CALLS_PER_S = 1 / MINUTE_S  # calls per second


class CallPace:
    """The rate of one model's calls. All times are in seconds, from one monotonic clock."""

    def __init__(self) -> None:
        self._low = self._good = math.inf  # calls per second: directly after the last reduction, and after recovery
        self._since = -math.inf  # time of the last reduction, or end of a pause after it
        self._cut_at = 0  # number of calls sent before the last reduction
        self._refusals = 0  # number of rejected calls that were sent after the last reduction
        self._unexplained = 0  # rejections below the good rate
        self._count = 0
        self._sent: deque[float] = deque()  # times of recent calls
        self._refused: deque[float] = deque()

    def rate(self, now: float) -> float:
        """Return the calls per second; infinite before the first rejection, and `FORGOTTEN_S` after the last
        reduction.
        """
        age = max(0.0, now - self._since)
        if self._good == math.inf or age >= FORGOTTEN_S:
            return math.inf
        if age < RECOVERY_S:
            return self._low + (self._good - self._low) * age / RECOVERY_S
        growth = FAST_GROWTH if self._unexplained >= UNEXPLAINED else GROWTH
        return float(self._good * (1 + growth) ** (age - RECOVERY_S))

    def sent(self, now: float) -> int:
        """Record a call and return its ticket for `refused`."""
        self._sent.append(now)
        self._drop_old(now)
        self._count += 1
        return self._count

    def pause(self, until: float) -> None:
        """Record that no call is sent before the time `until`, so that the rate does not recover during the pause."""
        self._since = max(self._since, until)

    def refused(self, ticket: int, now: float) -> None:
        """Record that the call with `ticket` was rejected."""
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
            # A low achieved rate may be due to low demand, so the good rate is not reduced far.
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
        """Return the recently accepted calls per second. At least one call counts, so that the rate can recover."""
        if not self._sent:
            return math.inf
        return max(1, len(self._sent) - len(self._refused)) / max(SHORTEST_S, now - self._sent[0])

    def _drop_old(self, now: float) -> None:
        for times in (self._sent, self._refused):
            while times and times[0] < now - LONGEST_S:
                times.popleft()


LONGEST_BACKOFF_S = 60.0
LONGEST_WAIT_S = LONG_S  # default; longer pauses requested by a provider stop the run
TOLD_S = 15.0  # the user is informed about pauses of at least so many seconds
UNITS = (("h", 3600), ("min", 60))


def retrying(attempts: int, backoff_s: float, longest_s: float = LONGEST_WAIT_S) -> AsyncRetrying:
    """Return a retry policy of up to `attempts` tries. The first pause is at most `backoff_s` seconds.

    If the provider requests a pause above `longest_s` seconds, the call is not repeated.
    """
    return AsyncRetrying(
        retry=retry_if_exception(partial(worth_retrying, longest_s=longest_s)),
        stop=stop_after_attempt(attempts),
        wait=partial(pause_s, backoff_s=backoff_s),
        reraise=True,
    )


def worth_retrying(error: BaseException, longest_s: float = LONGEST_WAIT_S) -> bool:
    """Return whether a retry can help."""
    return isinstance(error, Fault) and error.treatment is Treatment.RETRY and (error.retry_after_s or 0) <= longest_s


def too_long(model: str, wait_s: float) -> Fault:
    """Return the fault that ends a run because the provider requests a long pause: until when, and how to continue."""
    told = f"the provider allows no calls to {model} for another {_span(wait_s)}"
    remedy = "run again then (paid answers are cached), or raise llm.max_wait_s"
    return Fault(FaultRule(Treatment.STOP, ProviderError, told, remedy), ProviderError(told, remedy=remedy))


def _span(wait_s: float) -> str:
    """Return the length of a pause and its end by the clock."""
    unit, size = next((pair for pair in UNITS if wait_s >= 2 * pair[1]), ("s", 1))
    try:
        until = datetime.now(UTC) + timedelta(seconds=wait_s)
    except OverflowError:
        return "age"
    return f"{wait_s / size:,.0f} {unit}, until {until:%Y-%m-%d %H:%M:%S} UTC"


def pause_s(state: RetryCallState, backoff_s: float) -> float:
    """Return an exponential back-off with full jitter, or 0 if the provider sent a Retry-After, because all calls
    already wait for its end.

    The first pause is at most `backoff_s` seconds. The maximum doubles with each further pause, up to one minute.
    """
    error = None if state.outcome is None else state.outcome.exception()
    if isinstance(error, Fault) and error.retry_after_s is not None:
        return 0.0
    return float(wait_random_exponential(multiplier=backoff_s, max=LONGEST_BACKOFF_S)(state))


class TokenBucket:
    """A token bucket of requests or of tokens. The provider's headers can lower its rate.

    A full bucket of `burst` that refills at rate r lets burst + r * 60 - 1 through in its first minute. The rate r is
    chosen so that this equals the limit. An amount above `burst` waits for a full bucket, whose level is then negative.

    Args:
        per_minute: maximum per minute; None for no limit in the settings.
        burst: maximum amount at once; reduced to a tenth of `per_minute` (at least 1) if that is less.
    """

    def __init__(self, per_minute: float | None, burst: float) -> None:
        self.burst = burst if per_minute is None else min(burst, max(1.0, per_minute / 10))
        self.sent = 0.0  # total amount, from which a call can determine how much was sent after it
        self._ceiling = math.inf if per_minute is None else (per_minute - self.burst + 1) / MINUTE_S
        self._left = math.inf  # rate from the headers, until `_whole_at`
        self._whole_at = -math.inf
        self._level, self._at = self.burst, 0.0

    def wait_s(self, amount: float, now: float, learned: float = math.inf) -> float:
        """Return the seconds until `amount` may be sent, at most at the rate `learned`."""
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
        """Take an amount that `wait_s` has allowed, and return a ticket for `told`."""
        self._level -= amount
        self.sent += amount
        return self.sent

    def drain(self, resumes_at: float | None, now: float) -> None:
        """Empty the bucket. If there is a pause until `resumes_at`, allow one call at its end."""
        if resumes_at is None:
            self._level = min(self._level, 0.0)
        elif resumes_at >= max(now, self._at):
            self._level, self._at = min(1.0, self.burst), resumes_at

    def told(self, found: RateAllowance, ticket: float, reserve: float, now: float) -> None:
        """Learn the remaining allowance from the headers of the answer to the call with `ticket`.

        The provider may not have counted the calls that were sent after this call. If more than `reserve` is left,
        nothing is delayed. Otherwise, the remaining allowance is spread over the time until it is restored, but at most
        over one minute.
        """
        left = max(0.0, found.remaining - (self.sent - ticket))
        if left > reserve or not 0 < found.reset_s <= (LONGEST_WAIT_S if not left else math.inf):
            self._whole_at = -math.inf
            return
        self._left, self._whole_at = left / min(found.reset_s, MINUTE_S), now + found.reset_s
        self._level = min(self._level, left)


class Tickets(NamedTuple):
    """Tickets of one call: its number, and its tickets from the buckets of requests and tokens."""

    call: int
    buckets: tuple[float, float]


class Throttle:
    """Rate limiter for all calls to one model.

    Args:
        requests_per_minute, tokens_per_minute: limits in the settings; None for none.
        concurrency: maximum number of calls in flight.
        model: name of the model, for messages.
        longest_s: longest accepted pause, in seconds.
        tell: receives messages about long pauses.
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
        """Return the calls per second learned from rejections; infinite if none was learned, or if it is outdated."""
        return self._pace.rate(now)

    async def turn(self, tokens: int) -> Tickets:
        """Wait until a call with `tokens` tokens may be sent. Return its tickets for `answered` and `refused`.

        Raises:
            Fault: the pause would be too long.
        """
        clock = asyncio.get_running_loop().time
        async with self._turn:
            while (wait := self._wait_s(tokens, clock())) > 0:
                self._consider(wait, clock())
                await asyncio.sleep(wait)
            return Tickets(self._pace.sent(clock()), (self._requests.take(1), self._tokens.take(tokens)))

    def answered(self, tickets: Tickets, headers: Mapping[str, str], tokens: int) -> None:
        """Learn from the headers of an answer or a rejection. `tokens` is the size of the call."""
        now = asyncio.get_running_loop().time()
        for bucket, unit, ticket, size in zip(
            (self._requests, self._tokens), ("requests", "tokens"), tickets.buckets, (1, tokens), strict=True
        ):
            if (found := allowance(headers, unit)) is not None:
                bucket.told(found, ticket, self._concurrency * size, now)

    def refused(self, tickets: Tickets, fault: Fault, tokens: int) -> None:
        """Learn from a failed call, if it was rejected because of the request rate or the provider requests a pause."""
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
        """Raise an error for a pause that is too long. Report a long pause only once."""
        if wait_s > self._longest_s:
            raise too_long(self._model, wait_s)
        if wait_s >= TOLD_S and now >= self._told_until:
            self._told_until = now + wait_s
            self._tell(f"the provider allows no calls to {self._model} for {_span(wait_s)}")

    def _wait_s(self, tokens: int, now: float) -> float:
        if self._paused_until > now:
            return self._paused_until - now
        return max(self._requests.wait_s(1, now, self.rate(now)), self._tokens.wait_s(tokens, now))
