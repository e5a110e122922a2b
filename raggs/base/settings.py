"""Base of every configuration model, and the selection of settings that can change results.

A setting is part of a fingerprint if changing it can change the bytes of an artifact. These settings are not part of
it:

- settings of speed and reliability (concurrency, time-outs, retries): fields marked `Effort`;
- locations of files: for a field of type `InputPath`, the content of the file counts and its path does not. For a
  `SourcePath`, the content counts as well, but the code that reads it adds the hash.

A setting that is newer than some runs is marked `AddedLater`. If it has its default value, it is not part of
fingerprints, so earlier runs stay valid.

`http_address` validates addresses of servers when the configuration is read. It makes no name lookup and no request.

`Pattern` searches users' regular expressions with a time limit, so that catastrophic backtracking cannot block raggs.
The syntax is that of `re`, whose compiler validates a pattern. The search uses the package `regex`, which supports
time-outs. The result is only whether there is a match.
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

Causes = dict[str, object]  # everything that can change a result, by readable name, as plain JSON values


class _Effort:
    """Marker of fields that are not part of fingerprints: they do not change results, or another cause covers them."""


EFFORT = _Effort()
Effort = Annotated[T, EFFORT]


class _AddedLater:
    """Marker of fields that are newer than some runs. Runs without the field have the results of its default."""


ADDED_LATER = _AddedLater()
AddedLater = Annotated[T, ADDED_LATER]


def _anchor(path: Path, info: ValidationInfo) -> Path:
    base = (info.context or {}).get(BASE_FOLDER)
    if "\0" in str(path):
        raise ValueError("a path must not contain a NUL character")
    try:
        expanded = path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"{path.parts[0]} is not the home folder of a user of this machine") from error
    return expanded if base is None or expanded.is_absolute() else Path(base) / expanded


def _anchor_prompt(name: str, info: ValidationInfo) -> str:
    return str(_anchor(Path(name), info)) if name.endswith(".md") or "/" in name else name


class _Input:
    """Marker of the path of an input file. Its content is part of fingerprints, its path is not."""


INPUT = _Input()
AnchoredPath = Annotated[Path, AfterValidator(_anchor)]
# A prompt's name, or the path of a Markdown file. Components that use the prompt add its text to their causes.
PromptName = Annotated[str, AfterValidator(_anchor_prompt), EFFORT]
InputPath = Annotated[Path, AfterValidator(_anchor), INPUT]
# The path of an input file, for a setting that older runs do not have. If it is not set, results are as in those runs.
AddedInputPath = Annotated[Annotated[Path, AfterValidator(_anchor)] | None, INPUT, ADDED_LATER]
# The path of a corpus. The corpus adds a hash of its content to the causes, so that it is hashed only once.
SourcePath = Annotated[Path, AfterValidator(_anchor), EFFORT]


@dataclass(frozen=True)
class Flag:
    """Command-line form of a setting, if it differs from the setting's name.

    Attributes:
        names: all spellings, such as ``("--run", "-r")``; if empty, two dashes and the setting's name.
        value: placeholder of the value in the help, such as ``SHARE``; if empty, derived from the type.
    """

    names: tuple[str, ...] = ()
    value: str = ""


def split_commas(given: object) -> object:
    """Split texts at their commas, so that a list can be given as one text."""
    words = [given] if isinstance(given, str) else given
    if not isinstance(words, (list, tuple)):
        return given
    parts = [map(str.strip, each.split(",")) if isinstance(each, str) else [each] for each in words]
    return [word for part in parts for word in part if word != ""]


class Settings(BaseModel):
    """Base of settings: immutable, and unknown keys are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _know_every_key(cls, values: object) -> object:
        """Reject unknown keys before anything else, because they often cause the other errors.

        Each error has the key's place, and its context lists the known keys.
        """
        if isinstance(values, Mapping) and (strange := [key for key in values if key not in cls.model_fields]):
            problem = PydanticCustomError(UNKNOWN_KEY, "unknown key", {"known": list(cls.model_fields)})
            found = [InitErrorDetails(type=problem, loc=(str(key),), input=values[key]) for key in strange]
            raise ValidationError.from_exception_data(cls.__name__, found)
        return values

    @model_validator(mode="before")
    @classmethod
    def _take_no_truth_for_a_number(cls, values: object) -> object:
        """Reject booleans for numbers, because `k: yes` must not mean a depth of 1. Each error has the key's place."""
        given, fields = values if isinstance(values, Mapping) else {}, cls.model_fields
        known = [name for name, value in given.items() if _holds_truth(value) and name in fields]
        wrong = [name for name in known if _only_numbers(fields[name].annotation)]
        if wrong:
            problem = PydanticCustomError("no_number", "expected a number, not true or false")
            found = [InitErrorDetails(type=problem, loc=(name,), input=given[name]) for name in wrong]
            raise ValidationError.from_exception_data(cls.__name__, found)
        return values

    @model_validator(mode="after")
    def _fit_into_64_bits(self) -> Self:
        """Reject integers beyond 64 bits, which arrays and databases cannot hold. Each error has the key's place."""
        wide = {
            name: value for name, value in self if isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER
        }
        if wide:
            problem = PydanticCustomError("too_wide", "the number does not fit in 64 bits")
            found = [InitErrorDetails(type=problem, loc=(name,), input=value) for name, value in wide.items()]
            raise ValidationError.from_exception_data(type(self).__name__, found)
        return self


def _holds_truth(value: object) -> bool:
    """Return whether a value is true or false, or a mapping or list that contains one."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return isinstance(value, bool) or any(isinstance(each, bool) for each in inner)


def _only_numbers(annotation: object) -> bool:
    """Return whether a field accepts numbers, single or in a collection, but no booleans."""
    kinds = list(_kinds(annotation))
    return (int in kinds or float in kinds) and bool not in kinds


def _kinds(annotation: object) -> Iterator[object]:
    yield annotation
    for part in get_args(annotation):
        yield from _kinds(part)


def causes_of(settings: BaseModel) -> Causes:
    """Return the fields of `settings` that can change a result, as plain JSON values, including nested models.

    An `InputPath` is replaced by the sha256 of the file, or by None if the file is missing or unreadable. The code that
    reads the file gives a better error.
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
    """Return the fields of `settings` that can change a result. Files and prompts are given by name, not by content.

    Use it for results that do not depend on the content of these files.
    """
    return {
        name: _named_value(getattr(settings, name))
        for name, field in type(settings).model_fields.items()
        if not any(mark is EFFORT for mark in field.metadata) or _names_a_file(field)
    }


def _names_a_file(field: FieldInfo) -> bool:
    """Return whether an `Effort` field names a file or a prompt, whose content can change results."""
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
    """Return the content hash of a file, or None if it cannot be read."""
    try:
        return hash_file(path)
    except OSError:
        return None


LABEL = re.compile(r"[^\W_](?:[\w-]{0,61}\w)?|_[\w-]{1,62}")  # one label of a host name, in any script
ADDRESS_FORBIDDEN = re.compile(r"[\s\x00-\x1f\x7f<>\"{}|\\^`]")  # characters that are not allowed in an address
EXAMPLE = "not an address such as https://host.example:8000/v1"


def http_address(text: str) -> str:
    """Return `text` if it is a valid address of an HTTP server.

    Raises:
        ValueError: the protocol is not HTTP, the host is missing, the port is invalid, or a character is not allowed.
    """
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
    except ValueError as error:
        raise ValueError(f"{EXAMPLE} ({str(error).rstrip('.')})") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{EXAMPLE} (it begins with neither http:// nor https://)")
    if ADDRESS_FORBIDDEN.search(text) or parts.fragment:
        raise ValueError(f"{EXAMPLE} (it contains a character that is not allowed)")
    labels = host.removesuffix(".").split(".")
    if len(host) > 253 or not (":" in host or all(LABEL.fullmatch(label) for label in labels)):
        raise ValueError(f"{EXAMPLE} (it has no host)")
    if port == 0 or parts.netloc.rpartition("@")[2].endswith(":"):
        raise ValueError(f"{EXAMPLE} (the port must be a number from 1 to 65535)")
    return text


PATIENCE_S = 2.0  # seconds; a search normally takes microseconds
MAX_PATTERN_CHARS = 10_000  # characters of a pattern


class SlowPatternError(Exception):
    """A search took longer than `PATIENCE_S`, or too much memory."""


class Pattern:
    """A compiled, case-insensitive pattern.

    Raises:
        ValueError: the text is not a regular expression, or has more than `MAX_PATTERN_CHARS` characters.
    """

    def __init__(self, text: str) -> None:
        import regex  # imported lazily: few runs use patterns

        if len(text) > MAX_PATTERN_CHARS:
            raise ValueError(f"{len(text):,} characters")
        try:
            re.compile(text, re.IGNORECASE)
            self._pattern = regex.compile(text, regex.IGNORECASE | regex.VERSION0)
        except (re.error, regex.error, OverflowError, RecursionError, KeyError) as error:
            raise ValueError(str(error)) from error
        self.text = text

    def within(self, text: str) -> bool:
        """Return whether the pattern is found in a text.

        Raises:
            SlowPatternError: the search took longer than `PATIENCE_S`, or too much memory.
        """
        try:
            return self._pattern.search(text, timeout=PATIENCE_S) is not None
        except TimeoutError as error:
            raise SlowPatternError(f"a search took longer than {PATIENCE_S:g} s") from error
        except MemoryError as error:
            raise SlowPatternError("a search ran out of memory") from error
