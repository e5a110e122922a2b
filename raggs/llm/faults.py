"""What can go wrong at a provider, and what is done about it: one table.

Every exception of `litellm.exceptions` and of `raggs.llm.providers` is in `TABLE` (a test proves it). Some classes say
too little, so the status code and a few known phrases go first. Words of a provider reach people only through `redact`,
since they may hold a key.

One call that fails after all its attempts is a failure of that call. Many in a row, with no answer between them, are
an `Outage`: nothing more can be had, and what was paid is cached. An error that only a working provider can give (a
rejected request) counts as an answer.

What a provider's headers say about its limits: how long to wait, and what is left of an allowance.

The same two facts come under many names and in many forms; what cannot be read says nothing.
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
LITELLM = "llm_provider-"  # how litellm marks the headers of a provider
# remaining, reset; {} is "requests" or "tokens"
RATE_LIMIT_HEADERS = (
    ("x-ratelimit-remaining-{}", "x-ratelimit-reset-{}"),
    ("anthropic-ratelimit-{}-remaining", "anthropic-ratelimit-{}-reset"),
)
UNNAMED = (("x-ratelimit-remaining", "x-ratelimit-reset"), ("ratelimit-remaining", "ratelimit-reset"))  # requests
DECIMAL_NUMBER = re.compile(r"\d+(\.\d+)?")
DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
UNITS_S = (86400, 3600, 60, 1, 0.001)
EPOCH_S = 1e9  # a number of seconds beyond is a date
LONG_S = 600.0  # a pause that is no matter of rate any more


class RateAllowance(NamedTuple):
    """What may still be sent, and in how many seconds the allowance is whole again."""

    remaining: float
    reset_s: float


def lower_headers(headers: Mapping[str, object]) -> dict[str, str]:
    """Headers by their lower-case names, without litellm's mark."""
    return {str(name).lower().removeprefix(LITELLM): str(value).strip() for name, value in headers.items()}


def retry_after(headers: Mapping[str, object], now: datetime | None = None) -> float | None:
    """Seconds to wait by Retry-After (seconds or an HTTP date) or Retry-After-Ms; None where they say nothing."""
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
    """What is left of `unit` ("requests" or "tokens"); None unless both facts are told."""
    pairs = [(left.format(unit), reset.format(unit)) for left, reset in RATE_LIMIT_HEADERS]
    for left, reset in (*pairs, *(UNNAMED if unit == "requests" else ())):
        remaining, reset_s = headers.get(left, ""), _seconds(headers.get(reset, ""), now)
        if DECIMAL_NUMBER.fullmatch(remaining) and reset_s is not None:
            return RateAllowance(float(remaining), reset_s)
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
RUN_AGAIN_REMEDY = "what was paid is cached: run again"


class Treatment(Enum):
    """RETRY: ask again, then give the question up. FAIL: give it up at once. STOP: end the run."""

    RETRY = "retry"
    FAIL = "fail"
    STOP = "stop"


class FaultRule(NamedTuple):
    """What an exception means. `remedy` may name {variable} and {model}."""

    treatment: Treatment
    error: type[RaggsError]
    message: str
    remedy: str | None = None


_KEY = FaultRule(
    Treatment.STOP,
    AuthenticationError,
    "the provider refused the key for {model}",
    "set {variable} to a valid key (any text will do for a server that asks for none)",
)
NO_KEY = FaultRule(
    Treatment.STOP,
    AuthenticationError,
    "there is no key for {model}",
    "set {variable} (any text will do for a server that asks for none)",
)
_BAD_KEY = FaultRule(
    Treatment.STOP,
    AuthenticationError,
    "the key for {model} holds characters that no key has",
    "set {variable} to the key alone",
)
_CREDIT = FaultRule(
    Treatment.STOP, ProviderError, "the account behind {variable} has no credit left", f"add some; {RUN_AGAIN_REMEDY}"
)
_MODEL = FaultRule(
    Treatment.STOP, ModelError, "the provider does not know the model {model}", "check its name and llm.api_base"
)
_PROVIDER = FaultRule(
    Treatment.STOP,
    ConfigError,
    "no known provider in the model's name {model}",
    'write "provider/model", such as "openai/gpt-5-mini"; for a server of your own "openai/NAME" and llm.api_base',
)
_PARAMETER = FaultRule(
    Treatment.STOP, ModelError, "{model} does not take one of its parameters", "remove it from `parameters`"
)
REDIRECTED = FaultRule(
    Treatment.STOP,
    ConfigError,
    "{model} is asked for at another address than it is at, and no redirect is followed",
    "set llm.api_base, or the model's own, to the address that answers itself",
)
UNREACHED = FaultRule(Treatment.RETRY, ProviderError, "the provider cannot be reached")
UNSENT = (NO_KEY, _BAD_KEY, UNREACHED)  # before anything was sent
BUSY = FaultRule(Treatment.RETRY, ProviderError, "the provider limits the rate of calls")
TIMED_OUT = FaultRule(Treatment.RETRY, ProviderError, "the provider did not answer in time")
_DOWN = FaultRule(Treatment.RETRY, ProviderError, "the provider failed")
PROVIDER_OUTAGE = FaultRule(
    Treatment.STOP, ProviderError, "the provider does not answer", f"{RUN_AGAIN_REMEDY} when it does"
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
    "ClientError": _DOWN,  # aiohttp's
    "Refused": _DOWN,  # of raggs.llm.providers, which goes by its status
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
# Phrases that say more than the class they come in.
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
# Complaints about the wish for structured output, which not every server knows.
FORMAT_WORDS = ("response_format", "json_schema")
MARK_WORDS = ("prompt_cache", "cache_control")
LIMIT_WORDS = ("max_tokens", "max_completion_tokens", "in the completion", "budget_tokens")
CLASS_NAMES = re.compile(r"\b(litellm\.)?\w+(Error|Exception)(: | - )")  # litellm's own, before the provider's words


@dataclass(eq=False)  # exceptions are compared and hashed by identity
class Fault(Exception):
    """A call that failed, with what to do about it.

    Attributes:
        rule: the row of the table.
        error: what to tell people; redacted.
        retry_after_s: seconds that the provider asks to wait.
        about_format: the server does not know structured output.
        about_marks: the server does not know marks on what of a prompt comes again.
        about_limit: the server does not take a limit of the answer's length, or not that one.
        headers: of the answer, by lower-case names.
        billable: no status said that the call failed, so the provider may charge for it.
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
        """What is done about it."""
        return self.rule.treatment


class Outage:
    """Counts failures in a row. `limit`: how many make an outage; None: none ever do."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._in_a_row = 0

    @contextmanager
    def watch(self) -> Iterator[None]:
        """One call, with all its attempts.

        Raises:
            Fault: that of the call; one that stops the run, once there are too many.
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
    """What `error`, raised by a call to `model` with the key in `key_env` (None: the provider's own), means."""
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
    code = vars(error).get("code") or ""  # no property: aiohttp's warns that it is deprecated
    words = f"{code} {str(error)[:WORDS_WIDTH]}".lower()  # further on, an error may quote a passage
    for phrase, rule in RULE_BY_PHRASE.items():
        if phrase in words:
            return rule
    names = [kind.__name__ for kind in type(error).__mro__]
    rule = next((TABLE[name] for name in names if name in TABLE), _DOWN)
    status = _status(error)
    # The vague classes carry the provider's status; the others have been chosen by it already.
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
    """`text` without anything that is, or looks like, a key: stricter than `mask`, since a provider may quote one."""
    return SECRET_SHAPES.sub(HIDDEN, mask(text))
