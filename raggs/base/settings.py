"""The base of every configuration model, and what of it counts as the result's cause.

A setting belongs to a fingerprint when changing it can change the bytes of an artifact. Two things do not:

- how the work is done: the fields marked `Effort` (concurrency, time-outs, retries);
- where a file lies: a field of type `InputPath` counts by the content of the file, not by its path, and so does a
  `SourcePath`, but whoever reads that states its content.

A setting that came later than the runs that lack it is marked `AddedLater`: at its default it counts no more than if it
were not there, so that those runs need not run again.

Addresses of servers, checked where they are read: what nobody can connect to is a mistake in a configuration.

It must not look a name up, nor ask a server.

Regular expressions of users, searched with a limit of time: one that backtracks for ever stops nobody.

The language is that of `re`, whose compiler decides what is a pattern; the search is that of the package `regex`, which
can be told when to give up. It must not interpret what a match means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self, TypeVar, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, ValidationInfo, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from raggs.base.files import hash_file

BASE_FOLDER = "base_folder"
UNKNOWN_KEY = "unknown_key"
MAX_INTEGER = 2**63 - 1

T = TypeVar("T")

Causes = dict[str, object]  # what can change a result, by readable name, as plain JSON values


class _Effort:
    """Marker: the field changes how fast or how long, never what comes out."""


EFFORT = _Effort()
Effort = Annotated[T, EFFORT]


class _AddedLater:
    """Marker: there are runs from before the field, whose results are those of its default."""


ADDED_LATER = _AddedLater()
AddedLater = Annotated[T, ADDED_LATER]


def _anchor(path: Path, info: ValidationInfo) -> Path:
    base = (info.context or {}).get(BASE_FOLDER)
    if "\0" in str(path):
        raise ValueError("a path holds no NUL")
    try:
        expanded = path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"{path.parts[0]} is nobody's folder here") from error
    return expanded if base is None or expanded.is_absolute() else Path(base) / expanded


def _anchor_prompt(name: str, info: ValidationInfo) -> str:
    return str(_anchor(Path(name), info)) if name.endswith(".md") or "/" in name else name


class _Input:
    """Marker: the path names an input, which counts by its content."""


INPUT = _Input()
AnchoredPath = Annotated[Path, AfterValidator(_anchor)]
# A prompt's name, or the path of a Markdown file. It counts by its text, which whoever uses it states as a cause.
PromptName = Annotated[str, AfterValidator(_anchor_prompt), EFFORT]
InputPath = Annotated[Path, AfterValidator(_anchor), INPUT]
# The path of a corpus. It counts by its content, which the corpus states itself and so hashes once.
SourcePath = Annotated[Path, AfterValidator(_anchor), EFFORT]


@dataclass(frozen=True)
class Flag:
    """Say in a setting's annotation how the command line writes it, if the setting's name does not.

    Attributes:
        names: all spellings, such as ``("--run", "-r")``; empty: two dashes and the setting's name.
        value: the word for its value in help, such as ``SHARE``; empty: by its type.
    """

    names: tuple[str, ...] = ()
    value: str = ""


def split_commas(given: object) -> object:
    """Split words at their commas, so that a list can be given as one word."""
    words = [given] if isinstance(given, str) else given
    if not isinstance(words, (list, tuple)):
        return given
    parts = [map(str.strip, each.split(",")) if isinstance(each, str) else [each] for each in words]
    return [word for part in parts for word in part if word != ""]


class Settings(BaseModel):
    """Frozen, and strict about keys: a key that nobody reads is an error, not a surprise."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _know_every_key(cls, values: object) -> object:
        """Refuse an unknown key before anything else, since it is most often the cause of the rest.

        Each error is at the key's place, and its context names the keys that there are.
        """
        if isinstance(values, Mapping) and (strange := [key for key in values if key not in cls.model_fields]):
            problem = PydanticCustomError(UNKNOWN_KEY, "unknown key", {"known": list(cls.model_fields)})
            found = [InitErrorDetails(type=problem, loc=(str(key),), input=values[key]) for key in strange]
            raise ValidationError.from_exception_data(cls.__name__, found)
        return values

    @model_validator(mode="before")
    @classmethod
    def _take_no_truth_for_a_number(cls, values: object) -> object:
        """Refuse true and false where a number belongs: `k: yes` is no depth of 1. Each error is at the key's place."""
        given, fields = values if isinstance(values, Mapping) else {}, cls.model_fields
        known = [name for name, value in given.items() if _holds_truth(value) and name in fields]
        wrong = [name for name in known if _only_numbers(fields[name].annotation)]
        if wrong:
            problem = PydanticCustomError("no_number", "a number belongs here, not true or false")
            found = [InitErrorDetails(type=problem, loc=(name,), input=given[name]) for name in wrong]
            raise ValidationError.from_exception_data(cls.__name__, found)
        return values

    @model_validator(mode="after")
    def _fit_into_64_bits(self) -> Self:
        """Refuse whole numbers that arrays and databases cannot hold; each error is at the key's place."""
        wide = {
            name: value for name, value in self if isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER
        }
        if wide:
            problem = PydanticCustomError("too_wide", "a whole number is within 64 bits")
            found = [InitErrorDetails(type=problem, loc=(name,), input=value) for name, value in wide.items()]
            raise ValidationError.from_exception_data(type(self).__name__, found)
        return self


def _holds_truth(value: object) -> bool:
    """Whether it is true or false, or a mapping or a list with one in it."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return isinstance(value, bool) or any(isinstance(each, bool) for each in inner)


def _only_numbers(annotation: object) -> bool:
    """Whether a field takes numbers, alone or in a collection, and neither true nor false."""
    kinds = list(_kinds(annotation))
    return (int in kinds or float in kinds) and bool not in kinds


def _kinds(annotation: object) -> Iterator[object]:
    yield annotation
    for part in get_args(annotation):
        yield from _kinds(part)


def causes_of(settings: BaseModel) -> Causes:
    """The fields of `settings` that can change a result, as plain JSON values, nested models included.

    An `InputPath` is replaced by the sha256 of the file; a missing file by None, since whoever reads it will say so
    better.
    """
    found: Causes = {}
    for name, field in type(settings).model_fields.items():
        if any(mark is EFFORT for mark in field.metadata):
            continue
        value = getattr(settings, name)
        if any(mark is ADDED_LATER for mark in field.metadata) and value == field.get_default(
            call_default_factory=True
        ):
            continue
        if any(mark is INPUT for mark in field.metadata):
            value = None if value is None else _hash_input(value)
        found[name] = _cause_value(value)
    return found


def counts_by_value(settings: BaseModel) -> Causes:
    """Return the fields of `settings` that can change a result, files and prompts as they are named.

    For settings of which no result tells what the content of their files was.
    """
    return {
        name: _named_value(getattr(settings, name))
        for name, field in type(settings).model_fields.items()
        if not any(mark is EFFORT for mark in field.metadata) or _names_a_file(field)
    }


def _names_a_file(field: FieldInfo) -> bool:
    """Whether an `Effort` counts by content: a path, or the name of a prompt."""
    prompt = tuple(field.metadata[:2]) == getattr(PromptName, "__metadata__", None)
    return prompt or any(kind is Path for kind in _kinds(field.annotation))


def _named_value(value: object) -> object:
    if isinstance(value, BaseModel):
        return counts_by_value(value)
    if isinstance(value, Mapping):
        return {str(key): _named_value(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_named_value(entry) for entry in value]
    return str(value) if isinstance(value, Path) else value


def _cause_value(value: object) -> object:
    if isinstance(value, BaseModel):
        return causes_of(value)
    if isinstance(value, Mapping):
        return {str(key): _cause_value(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cause_value(entry) for entry in value]
    if isinstance(value, Path):
        return str(value)
    return value


def _hash_input(path: Path) -> str | None:
    """The content hash of a file; None where nothing can be read."""
    try:
        return hash_file(path)
    except OSError:
        return None


LABEL = re.compile(r"[^\W_](?:[\w-]{0,61}\w)?|_[\w-]{1,62}")  # one part of a host's name, of any script
ADDRESS_FORBIDDEN = re.compile(r"[\s\x00-\x1f\x7f<>\"{}|\\^`]")  # what stands in no address
EXAMPLE = "not an address such as https://host.example:8000/v1"


def http_address(text: str) -> str:
    """`text`, if a server of HTTP could be there.

    Raises:
        ValueError: it could not: another protocol, no host, or a port that is none.
    """
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
    except ValueError as error:
        raise ValueError(f"{EXAMPLE} ({str(error).rstrip('.')})") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{EXAMPLE} (it begins with neither http:// nor https://)")
    if ADDRESS_FORBIDDEN.search(text) or parts.fragment:
        raise ValueError(f"{EXAMPLE} (a character in it is none of an address)")
    labels = host.removesuffix(".").split(".")
    if len(host) > 253 or not (":" in host or all(LABEL.fullmatch(label) for label in labels)):
        raise ValueError(f"{EXAMPLE} (it names no host)")
    if port == 0 or parts.netloc.rpartition("@")[2].endswith(":"):
        raise ValueError(f"{EXAMPLE} (a port is a number in 1 to 65535)")
    return text


PATIENCE_S = 2.0  # a search takes some microseconds
MAX_PATTERN_CHARS = 10_000  # characters of a pattern


class SlowPatternError(Exception):
    """A search took longer than `PATIENCE_S`."""


class Pattern:
    """A compiled pattern; case is ignored.

    Raises:
        ValueError: it is no regular expression.
    """

    def __init__(self, text: str) -> None:
        import regex  # late: few runs search by patterns

        if len(text) > MAX_PATTERN_CHARS:
            raise ValueError(f"{len(text):,} characters")
        try:
            re.compile(text, re.IGNORECASE)
            self._pattern = regex.compile(text, regex.IGNORECASE | regex.VERSION0)
        except (re.error, regex.error, OverflowError, RecursionError, KeyError) as error:
            raise ValueError(str(error)) from error
        self.text = text

    def within(self, text: str) -> bool:
        """Whether it is found in a text.

        Raises:
            SlowPatternError: nobody knows after `PATIENCE_S`.
        """
        try:
            return self._pattern.search(text, timeout=PATIENCE_S) is not None
        except TimeoutError as error:
            raise SlowPatternError(f"a search took longer than {PATIENCE_S:g} s") from error
        except MemoryError as error:
            raise SlowPatternError("a search took more memory than there is") from error
