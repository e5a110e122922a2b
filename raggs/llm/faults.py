"""Table of provider errors and how raggs handles each; parser for the limits in response headers.

Every exception of `litellm.exceptions` and of `raggs.llm.providers`, or a base class of it, is in `TABLE` (a test
checks this). A few known phrases take precedence over the class of an exception. Some classes are too vague, so the
status code decides for them. Texts of a provider are shown only after `redact`, because they may contain a key.

If a call fails in all its attempts, only this call has failed. If many calls in a row fail, this is an `Outage`: the
run stops, and paid answers stay cached. An error that only a working provider can return (a rejected request) counts as
an answer.

`retry_after` and `allowance` read a provider's headers: how long to wait, and how much of an allowance is left.
Providers use many names and formats for both. Unreadable headers are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import NamedTuple

from raggs.base.errors import AuthenticationError, ConfigError, DataError, ModelError, ProviderError, RaggsError
from raggs.base.secrets import HIDDEN, mask
from raggs.base.text import plural, shorten
from raggs.llm.prices import key_variable

MINUTE_S = 60.0
LITELLM = "llm_provider-"  # prefix that litellm adds to the names of a provider's headers
# remaining, reset; {} is "requests" or "tokens"
RATE_LIMIT_HEADERS = (
    ("x-ratelimit-remaining-{}", "x-ratelimit-reset-{}"),
    ("anthropic-ratelimit-{}-remaining", "anthropic-ratelimit-{}-reset"),
)
# header names that do not say whether they count requests or tokens; they count requests
UNNAMED = (("x-ratelimit-remaining", "x-ratelimit-reset"), ("ratelimit-remaining", "ratelimit-reset"))
DECIMAL_NUMBER = re.compile(r"\d+(\.\d+)?")
DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
UNITS_S = (86400, 3600, 60, 1, 0.001)
EPOCH_S = 1e9  # a larger number is a date in seconds since 1970, not a duration
LONG_S = 600.0  # a longer pause is due to a quota, not to the request rate


class RateAllowance(NamedTuple):
    """Remaining allowance, and seconds until it is fully restored."""

    remaining: float
    reset_s: float


def lower_headers(headers: Mapping[str, object]) -> dict[str, str]:
    """Return headers with lower-case names and without litellm's prefix."""
    return {str(name).lower().removeprefix(LITELLM): str(value).strip() for name, value in headers.items()}


def retry_after(headers: Mapping[str, object], now: datetime | None = None) -> float | None:
    """Return how many seconds Retry-After (seconds or an HTTP date) or Retry-After-Ms requests to wait, or None."""
    found = lower_headers(headers)
    if DECIMAL_NUMBER.fullmatch(milliseconds := found.get("retry-after-ms", "")):
        return float(milliseconds) / 1000
    value = found.get("retry-after", "")
    if DECIMAL_NUMBER.fullmatch(value):
        return float(value)
    try:
        return _until(parsedate_to_datetime(value), now)
    except (TypeError, ValueError, OverflowError):
        return None


def allowance(headers: Mapping[str, str], unit: str, now: datetime | None = None) -> RateAllowance | None:
    """Return the allowance of `unit` ("requests" or "tokens"), or None if the headers lack one of its two values."""
    pairs = [(left.format(unit), reset.format(unit)) for left, reset in RATE_LIMIT_HEADERS]
    for left, reset in (*pairs, *(UNNAMED if unit == "requests" else ())):
        remaining, reset_s = headers.get(left, ""), _seconds(headers.get(reset, ""), now)
        if DECIMAL_NUMBER.fullmatch(remaining) and reset_s is not None:
            return RateAllowance(float(remaining), reset_s)
    return None


def refused_for(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds to wait after a rejection: the time in Retry-After, otherwise the time until a used-up
    allowance is restored.

    The second case applies only beyond `LONG_S`, because an allowance that is restored sooner usually refills
    gradually.
    """
    if (told := retry_after(headers, now)) is not None:
        return told
    found = [allowance(headers, unit, now) for unit in ("requests", "tokens")]
    return max((each.reset_s for each in found if each and not each.remaining and each.reset_s > LONG_S), default=None)


def _seconds(value: str, now: datetime | None) -> float | None:
    """Return `12`, `1.5s`, `6m0s`, `120ms`, a UNIX time or an ISO date as seconds from now."""
    if DECIMAL_NUMBER.fullmatch(value):
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


WORDS_WIDTH = 300
RUN_AGAIN_REMEDY = "run again: paid answers are cached"


class Treatment(Enum):
    """RETRY: repeat the call; give up the request after all attempts. FAIL: give up the request without a retry. STOP:
    end the run.
    """

    RETRY = "retry"
    FAIL = "fail"
    STOP = "stop"


class FaultRule(NamedTuple):
    """Treatment of an exception. `message` and `remedy` may contain {variable} and {model}."""

    treatment: Treatment
    error: type[RaggsError]
    message: str
    remedy: str | None = None


_KEY = FaultRule(
    Treatment.STOP,
    AuthenticationError,
    "the provider rejected the key for {model}",
    "set {variable} to a valid key (any text works for a server that needs none)",
)
NO_KEY = FaultRule(
    Treatment.STOP,
    AuthenticationError,
    "{model} needs a key, which is not set",
    "set {variable} (any text works for a server that needs none)",
)
_BAD_KEY = FaultRule(
    Treatment.STOP,
    AuthenticationError,
    "the key for {model} contains characters that no key has",
    "set {variable} to the key and nothing else",
)
_CREDIT = FaultRule(
    Treatment.STOP,
    ProviderError,
    "the account behind {variable} has no credit left",
    f"add credit, then {RUN_AGAIN_REMEDY}",
)
_MODEL = FaultRule(
    Treatment.STOP,
    ModelError,
    "the provider does not know the model {model}",
    "check the model's name and llm.api_base",
)
_PROVIDER = FaultRule(
    Treatment.STOP,
    ConfigError,
    "the model's name {model} contains no known provider",
    'use "provider/model", such as "openai/gpt-5-mini"; for your own server use "openai/NAME" and llm.api_base',
)
_PARAMETER = FaultRule(
    Treatment.STOP, ModelError, "{model} does not accept one of its parameters", "remove it from `parameters`"
)
REDIRECTED = FaultRule(
    Treatment.STOP,
    ConfigError,
    "the server of {model} redirects to another address, and raggs follows no redirects",
    "set llm.api_base, or the model's own api_base, to the final address",
)
UNREACHED = FaultRule(Treatment.RETRY, ProviderError, "the provider cannot be reached")
UNSENT = (NO_KEY, _BAD_KEY, UNREACHED)  # these errors occur before anything is sent
BUSY = FaultRule(Treatment.RETRY, ProviderError, "the provider limits the request rate")
TIMED_OUT = FaultRule(Treatment.RETRY, ProviderError, "the provider did not answer in time")
_DOWN = FaultRule(Treatment.RETRY, ProviderError, "the provider failed")
PROVIDER_OUTAGE = FaultRule(
    Treatment.STOP, ProviderError, "the provider does not answer", f"{RUN_AGAIN_REMEDY}, when the provider is available"
)
UNREADABLE_ANSWER = FaultRule(Treatment.RETRY, ProviderError, "the provider's answer cannot be read")
_BAD = FaultRule(Treatment.FAIL, DataError, "the provider rejected the request")
CONTEXT_EXCEEDED = FaultRule(Treatment.FAIL, DataError, "the request is longer than the model's context")
_POLICY = FaultRule(Treatment.FAIL, DataError, "the provider's content policy blocked the request")

TABLE: Mapping[str, FaultRule] = {
    "AuthenticationError": _KEY,
    "PermissionDeniedError": _KEY,
    "PaymentRequiredError": _CREDIT,
    "BudgetExceededError": _CREDIT,
    "NotFoundError": _MODEL,
    "ModelNotMappedError": _MODEL,
    "LiteLLMUnknownProvider": _PROVIDER,
    "UnsupportedParamsError": _PARAMETER,
    "RateLimitError": BUSY,
    "Timeout": TIMED_OUT,
    "TimeoutError": TIMED_OUT,
    "InternalServerError": _DOWN,
    "ServiceUnavailableError": _DOWN,
    "BadGatewayError": _DOWN,
    "MidStreamFallbackError": _DOWN,
    "APIError": _DOWN,
    "APIConnectionError": _DOWN,
    "OpenAIError": _DOWN,
    "MockException": _DOWN,
    "OSError": _DOWN,
    "ClientError": _DOWN,  # of aiohttp
    "Refused": _DOWN,  # of raggs.llm.providers; the status code decides
    "Garbled": UNREADABLE_ANSWER,
    "RecursionError": UNREADABLE_ANSWER,
    "Redirected": REDIRECTED,
    "Unreached": UNREACHED,
    "APIResponseValidationError": UNREADABLE_ANSWER,
    "JSONSchemaValidationError": UNREADABLE_ANSWER,
    "BadRequestError": _BAD,
    "InvalidRequestError": _BAD,
    "UnprocessableEntityError": _BAD,
    "ImageFetchError": _BAD,
    "VectorStoreSearchError": _BAD,
    "ContextWindowExceededError": CONTEXT_EXCEEDED,
    "ContentPolicyViolationError": _POLICY,
    "RejectedRequestError": _POLICY,
    "GuardrailRaisedException": _POLICY,
    "BlockedPiiEntityError": _POLICY,
    "ModifyResponseException": _POLICY,
    "SensitiveDataRouteException": _POLICY,
}
# Phrases that are more specific than the class of their exception.
RULE_BY_PHRASE: Mapping[str, FaultRule] = {
    "insufficient_quota": _CREDIT,
    "exceeded your current quota": _CREDIT,
    "missing credentials": NO_KEY,
    "malformed credentials": _BAD_KEY,
    "api_key client option must be set": NO_KEY,
    "api key - ": NO_KEY,
    "api key not valid": _KEY,
    "content_policy_violation": _POLICY,
    "content_filter": _POLICY,
    "context_length_exceeded": CONTEXT_EXCEEDED,
    "maximum context length": CONTEXT_EXCEEDED,
    "unsupported_parameter": _PARAMETER,
    "unsupported_value": _PARAMETER,
    "llm provider not provided": _PROVIDER,
}
STATUS: Mapping[int, FaultRule] = {401: _KEY, 402: _CREDIT, 403: _KEY, 404: _MODEL, 408: TIMED_OUT, 429: BUSY}
# Words in error messages about structured output, cache marks, and the limit of the answer length.
FORMAT_WORDS = ("response_format", "json_schema")
MARK_WORDS = ("prompt_cache", "cache_control")
LIMIT_WORDS = ("max_tokens", "max_completion_tokens", "in the completion", "budget_tokens")
# prefix that litellm adds to the provider's message
CLASS_NAMES = re.compile(r"\b(litellm\.)?\w+(Error|Exception)(: | - )")


@dataclass(eq=False)  # because exceptions must be compared and hashed by identity
class Fault(Exception):
    """A failed call, with its treatment.

    Attributes:
        rule: row of the table.
        error: message for the user, without secrets.
        retry_after_s: seconds to wait, as requested by the provider or until a used-up allowance is restored; None if
            unknown.
        about_format: whether the server does not support structured output.
        about_marks: whether the server does not support cache marks.
        about_limit: whether the server rejected the limit of the answer length.
        headers: headers of the answer, with lower-case names.
        billable: whether the provider may charge for the failed call. True if it timed out, if its answer cannot be
            read, or if it failed without a status code; false if nothing was sent. Batches do not use it.
    """

    rule: FaultRule
    error: RaggsError
    retry_after_s: float | None = None
    about_format: bool = False
    about_marks: bool = False
    about_limit: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    billable: bool = False

    @property
    def treatment(self) -> Treatment:
        """Treatment of the fault."""
        return self.rule.treatment


class Outage:
    """Counter of calls in a row that failed temporarily. After `limit` such calls, the run stops; None: no limit."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._in_a_row = 0

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watch one call with all its attempts.

        Raises:
            Fault: the fault of the call, or one that stops the run after too many failures.
        """
        try:
            yield
        except Fault as fault:
            self._in_a_row = self._in_a_row + 1 if fault.treatment is Treatment.RETRY else 0
            if self._limit is None or self._in_a_row < self._limit:
                raise
            told = (
                f"{PROVIDER_OUTAGE.message}: {plural(self._in_a_row, 'call')} in a row failed after all "
                f"attempts ({fault.error})"
            )
            raise Fault(PROVIDER_OUTAGE, ProviderError(told, remedy=PROVIDER_OUTAGE.remedy)) from None
        self._in_a_row = 0


def fault_of(error: BaseException, model: str, key_env: str | None = None) -> Fault:
    """Return the fault for `error`, raised by a call to `model`. `key_env` names the variable of its key."""
    rule = _find_rule(error)
    words = shorten(redact(CLASS_NAMES.sub("", str(error))), WORDS_WIDTH)
    names = {"model": model, "variable": key_variable(model, key_env) or "the provider's key"}
    told = rule.error(
        rule.message.format(**names) + (f": {words}" if words else ""),
        remedy=None if rule.remedy is None else rule.remedy.format(**names),
    )
    about_format, about_marks, about_limit = (
        rule.treatment is not Treatment.RETRY and any(word in str(error) for word in words)
        for words in (FORMAT_WORDS, MARK_WORDS, LIMIT_WORDS)
    )
    headers = lower_headers(_headers(error))
    wait_s = refused_for(headers) if rule is BUSY else retry_after(headers)
    billable = rule in (TIMED_OUT, UNREADABLE_ANSWER) or (rule not in UNSENT and not isinstance(_status(error), int))
    return Fault(rule, told, wait_s, about_format, about_marks, about_limit, headers, billable)


def _find_rule(error: BaseException) -> FaultRule:
    code = vars(error).get("code") or ""  # not getattr: a deprecated property of aiohttp would warn
    # The first part is enough, and later parts may quote a passage.
    words = f"{code} {str(error)[:WORDS_WIDTH]}".lower()
    for phrase, rule in RULE_BY_PHRASE.items():
        if phrase in words:
            return rule
    names = [kind.__name__ for kind in type(error).__mro__]
    rule = next((TABLE[name] for name in names if name in TABLE), _DOWN)
    status = _status(error)
    # Vague classes have the provider's status code; litellm chooses the other classes by this code.
    if rule is _DOWN and isinstance(status, int) and 400 <= status < 500:
        return STATUS.get(status, _BAD)
    return rule


def _status(error: BaseException) -> object:
    return getattr(error, "status_code", None)


def _headers(error: BaseException) -> Mapping[str, object]:
    direct = getattr(error, "litellm_response_headers", None) or getattr(error, "headers", None)
    return direct or getattr(getattr(error, "response", None), "headers", None) or {}


SECRET_SHAPES = re.compile(
    r"""
      \b(?:sk|pk|rk|gsk|hf|xai|pplx|key|r8)[-_][\w\-*.]{6,}   # keys of most providers, masked ones too
    | \bAIza[\w\-]{20,}                                   # Google
    | \bAKIA[A-Z0-9]{12,}                                 # AWS
    | (?<=Bearer\ )\S+
    | (?<=[?&]key=)[^&\s]+
    | (?<=://)[^/\s:@]+:[^/\s@]+(?=@)                     # user and password in an address
    """,
    re.VERBOSE | re.IGNORECASE,
)


def redact(text: str) -> str:
    """Return `text` without known keys and without words in the form of a key. This masks more than `mask`, because a
    provider may quote a key.
    """
    return SECRET_SHAPES.sub(HIDDEN, mask(text))
