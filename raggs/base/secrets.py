"""Detect secrets in texts and settings, and mask them.

Keys are read from the environment when they are needed. They must not appear in files of a run, in messages or on the
screen. A text is a secret if its variable or setting has a name such as ``OPENAI_API_KEY``, or if it looks like a
key of a well-known provider. Texts are searched for the secrets of the current environment. Secrets from other sources
must be registered with `add_secrets`.

This module raises and logs nothing. Callers report a secret in their own messages, without its value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

from raggs.base.types import leaves

HIDDEN = "[redacted]"
MIN_SECRET_CHARS = 8  # shorter values are words ("none", "test") that occur in many places by chance
MIN_SUBSTRING_CHARS = 12  # minimum length of a value that is also masked inside longer words
FOLDERS = ("PWD", "OLDPWD")  # shell variables with the current and the previous folder
QUERY_TEMPLATE = "query_template"  # a setting whose keys are names of index fields, not of secrets
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
NAME = re.compile(
    r"""
      (?:^|[^a-z])keys?$ | apikeys?$ | (?:^|[^a-z])(?:api|access|private|account|subscription)_?key(?:_?id|_?\d+)?$
    | (?:^|[^a-z])token(?:_\d+)?$ | bearer | secret | passw | passphrase | (?:^|[^a-z])pwd$
    | credentials?$ | authorization | cookie | (?:^|[^a-z])sig(?:nature)?$
    """,
    re.VERBOSE,
)
# suffixes of setting names that only give the location of a secret
SECRET_LOCATION_NAME = re.compile(r"_(?:env|file|path|name|variable)$")
SECRET_VALUE = re.compile(
    r"""
      (?<![\w-])(?:sk|pk|rk|gsk|xai|pplx|hf|ghp|gho|glpat|r8)[-_](?=[\w-]*\d)[\w-]{16,}  # keys of most providers
    | \bAIza[\w-]{30,}           # Google
    | \bA[KS]IA[A-Z0-9]{12,}     # AWS
    | \beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}  # a JSON web token
    | (?<=Bearer\ )[^\s"']+
    | (?<=://)[^/\s:@]*:[^/\s@]+(?=@)  # user and password in an address
    """,
    re.VERBOSE,
)
# Every match of `SECRET_VALUE` contains one of these hints, so texts without a hint need no further check.
SECRET_HINTS = ("k-", "k_", "xai", "pplx", "hf", "gh", "glpat", "r8", "AIza", "KIA", "SIA", "eyJ", "Bearer ", "://")
URL_PARAMETER = re.compile(r"(?<=[?&;])(?P<name>[\w.\-]+)=(?P<value>[^&;\s#\"']+)")

_remembered: set[str] = set()


class FoundSecret(NamedTuple):
    """A secret in a tree of settings: its place, and why it is a secret. `why` never contains the secret itself."""

    place: tuple[str | int, ...]
    why: str


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether a variable or setting of this name holds a secret, in any spelling."""
    plain = CAMEL.sub("_", name).lower().replace("-", "_")
    return NAME.search(plain) is not None and SECRET_LOCATION_NAME.search(plain) is None


def secrets_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the values of an environment's secret variables by name, if they are long enough."""
    return {
        name: value
        for name in environment
        if is_secret_name(name) and name not in FOLDERS and len(value := environment[name].strip()) >= MIN_SECRET_CHARS
    }


def add_secrets(values: Iterable[str]) -> None:
    """Register values that `mask` hides from now on. Too short values are ignored."""
    _remembered.update(value.strip() for value in values if len(value.strip()) >= MIN_SECRET_CHARS)


def mask(text: str) -> str:
    """Return `text` without values of secret variables and without texts in the form of keys.

    Passwords and secret parameters in addresses are removed, too. Idempotent.
    """
    if (
        len(text) < MIN_SECRET_CHARS and "=" not in text and "://" not in text
    ):  # most cells of a table are too short for a secret
        return text
    for value in sorted({*secrets_of(os.environ).values(), *_remembered}, key=len, reverse=True):
        for form in _spellings(value):
            if form in text:
                text = _pattern(form).sub(HIDDEN, text)
    if any(hint in text for hint in SECRET_HINTS):
        text = SECRET_VALUE.sub(HIDDEN, text)
    return URL_PARAMETER.sub(_mask_parameter, text) if "=" in text else text


def find_secrets(tree: object, environment: Mapping[str, str] | None = None) -> Iterator[FoundSecret]:
    """Yield the secrets in a tree of settings (mappings, lists and plain values), in its order. Texts with a secret are
    registered with `add_secrets`.
    """
    known = secrets_of(os.environ if environment is None else environment)
    for place, value in leaves(tree):
        if (why := _secret_reason(place, value, known)) is not None:
            if isinstance(value, str):
                add_secrets([value])
            yield FoundSecret(place, why)


def _secret_reason(place: Sequence[str | int], value: object, known: Mapping[str, str]) -> str | None:
    """Return why a value is a secret, or None."""
    texts = [value] if isinstance(value, str) else []
    if QUERY_TEMPLATE not in place and _weighs(value) and any(is_secret_name(part) for part in _key_names(place)):
        return "a key must not be in a file"
    for text in (*texts, *_key_names(place)):
        for name, secret in known.items():
            if text.strip() == secret or (
                len(secret) >= MIN_SUBSTRING_CHARS and (secret in text or _url_quoted(secret) in text)
            ):
                return f"it contains the value of {name}, which must not be in a file"
        if (why := _address(text) if "://" in text else None) is not None:
            return why
        if SECRET_VALUE.search(text):
            return "it looks like a key, which must not be in a file"
    return None


def _address(text: str) -> str | None:
    try:
        parts = urlsplit(text)
    except ValueError:
        return None  # not an address; code that needs an address reports this
    if "@" in parts.netloc:
        return "a password must not be in a file"
    if any(is_secret_name(name) for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
        return "a key must not be in an address"
    return None


def _weighs(value: object) -> bool:
    """Return whether a value can be a secret: a text, or a number of similar length."""
    if isinstance(value, str):
        return bool(value.strip())
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**5


def _key_names(place: Sequence[str | int]) -> Iterator[str]:
    return (part for part in place if isinstance(part, str))


@lru_cache(maxsize=256)
def _spellings(value: str) -> tuple[str, ...]:
    """Return the forms in which a value may occur in texts: unchanged and URL-quoted."""
    return tuple(dict.fromkeys((value, _url_quoted(value))))


def _pattern(value: str) -> re.Pattern[str]:
    found = re.escape(value)
    return re.compile(found if len(value) >= MIN_SUBSTRING_CHARS else rf"(?<!\w){found}(?!\w)")


def _mask_parameter(match: re.Match[str]) -> str:
    return f"{match['name']}={HIDDEN}" if is_secret_name(match["name"]) else match[0]


def _url_quoted(value: str) -> str:
    """Return a value as quoted in addresses. Values of the environment may be invalid UTF-8."""
    return quote(value.encode("utf-8", "surrogateescape"), safe="")
