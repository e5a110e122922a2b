"""How fast calls may follow each other, and how long to wait after a failed one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from aiolimiter import AsyncLimiter
from tenacity import RetryCallState, wait_random_exponential

from raggs.llm.faults import Fault, Treatment

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

MINUTE_S = 60.0
BACKOFF_S = 1.0  # the first pause is at most this, the next at most twice this, and so on
LONGEST_BACKOFF_S = 60.0
LONGEST_WAIT_S = 600.0  # a provider that asks for more will not be waited for


def limiter(requests_per_minute: int, concurrency: int) -> AbstractAsyncContextManager[None]:
    """A gate through which no minute sees more than `requests_per_minute` calls.

    A leaky bucket of `burst` drops that leaks at rate r lets burst + r * 60 - 1 through in its first minute, so r
    is chosen to make this the limit. The burst is at most what may run at once.
    """
    burst = min(concurrency, max(1, requests_per_minute // 10))
    return AsyncLimiter(burst, MINUTE_S * burst / (requests_per_minute - burst + 1))


def worth_retrying(error: BaseException) -> bool:
    """Whether asking again soon can help."""
    return (
        isinstance(error, Fault) and error.treatment is Treatment.RETRY and (error.retry_after_s or 0) <= LONGEST_WAIT_S
    )


def pause_s(state: RetryCallState) -> float:
    """Exponential back-off with full jitter; never less than what the provider asks for, plus some jitter."""
    error = None if state.outcome is None else state.outcome.exception()
    asked = error.retry_after_s if isinstance(error, Fault) else None
    jittered = float(wait_random_exponential(multiplier=BACKOFF_S, max=LONGEST_BACKOFF_S)(state))
    if asked is None:
        return jittered
    return max(jittered, asked + random.uniform(0, BACKOFF_S))  # noqa: S311 - spreads calls, hides nothing
