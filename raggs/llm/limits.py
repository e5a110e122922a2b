"""What a provider's headers say about its limits: how long to wait, and what is left of an allowance.

The same two facts come under many names and in many forms; what cannot be read says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

MINUTE_S = 60.0
LITELLM = "llm_provider-"  # how litellm marks the headers of a provider
# remaining, reset; {} is "requests" or "tokens"
NAMES = (
    ("x-ratelimit-remaining-{}", "x-ratelimit-reset-{}"),
    ("anthropic-ratelimit-{}-remaining", "anthropic-ratelimit-{}-reset"),
)
UNNAMED = (("x-ratelimit-remaining", "x-ratelimit-reset"), ("ratelimit-remaining", "ratelimit-reset"))  # requests
NUMBER = re.compile(r"\d+(\.\d+)?")
DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
UNITS_S = (86400, 3600, 60, 1, 0.001)
EPOCH_S = 1e9  # a number of seconds beyond is a date
LONG_S = 600.0  # a pause that is no matter of rate any more


class Allowance(NamedTuple):
    """What may still be sent, and in how many seconds the allowance is whole again."""

    remaining: float
    reset_s: float


def lowered(headers: Mapping[str, object]) -> dict[str, str]:
    """Headers by their lower-case names, without litellm's mark."""
    return {str(name).lower().removeprefix(LITELLM): str(value).strip() for name, value in headers.items()}


def retry_after(headers: Mapping[str, object], now: datetime | None = None) -> float | None:
    """Seconds to wait by Retry-After (seconds or an HTTP date) or Retry-After-Ms; None where they say nothing."""
    found = lowered(headers)
    if NUMBER.fullmatch(milliseconds := found.get("retry-after-ms", "")):
        return float(milliseconds) / 1000
    value = found.get("retry-after", "")
    if NUMBER.fullmatch(value):
        return float(value)
    try:
        return _until(parsedate_to_datetime(value), now)
    except (TypeError, ValueError, OverflowError):
        return None


def allowance(headers: Mapping[str, str], unit: str, now: datetime | None = None) -> Allowance | None:
    """What is left of `unit` ("requests" or "tokens"); None unless both facts are told."""
    pairs = [(left.format(unit), reset.format(unit)) for left, reset in NAMES]
    for left, reset in (*pairs, *(UNNAMED if unit == "requests" else ())):
        remaining, reset_s = headers.get(left, ""), _seconds(headers.get(reset, ""), now)
        if NUMBER.fullmatch(remaining) and reset_s is not None:
            return Allowance(float(remaining), reset_s)
    return None


def refused_for(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that a refusal asks to wait: by Retry-After, else until an allowance that is used up is whole again.

    The second only where it takes longer than `LONG_S`: what comes back sooner comes back bit by bit, at a rate.
    """
    if (told := retry_after(headers, now)) is not None:
        return told
    found = [allowance(headers, unit, now) for unit in ("requests", "tokens")]
    return max((each.reset_s for each in found if each and not each.remaining and each.reset_s > LONG_S), default=None)


def _seconds(value: str, now: datetime | None) -> float | None:
    """`12`, `1.5s`, `6m0s`, `120ms`, a UNIX time or an ISO date as seconds from now."""
    if NUMBER.fullmatch(value):
        number = float(value)
        try:
            return number if number < EPOCH_S else _until(datetime.fromtimestamp(number, UTC), now)
        except (ValueError, OverflowError, OSError):
            return None
    if value and (match := DURATION.fullmatch(value)):
        return sum(float(part) * unit for part, unit in zip(match.groups(), UNITS_S, strict=True) if part)
    try:
        return _until(datetime.fromisoformat(value), now)
    except (ValueError, OverflowError):
        return None


def _until(when: datetime, now: datetime | None) -> float:
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())
