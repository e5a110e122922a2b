"""Parts as one word on the command line: ``recursive:400:overlap=200``, ``onnx:models/minilm``.

First the part's name; what follows without ``=`` is its main setting (a chunker's size, a model's path or name, a
vector's length, a function), everything else a setting by name. A setting that is a part itself is named by its type,
its settings behind a dot: ``cluster:200:embedder=onnx:embedder.path=models/minilm``. The part's own configuration
checks them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TypeVar

from pydantic import ValidationError

from raggs.base.adapter import Adapter, AdapterConfig, OneOf
from raggs.base.errors import UsageError
from raggs.base.jsonl import first_fault
from raggs.base.registry import Registry
from raggs.base.text import did_you_mean

MAIN = ("size", "max_words", "max_size", "path", "model", "callable", "dims")
NOTHING = "null"
TRUTHS = {"true": True, "false": False}

C = TypeVar("C", bound=AdapterConfig)


def split_names(given: Iterable[str], what: str, remedy: str) -> tuple[str, ...]:
    """The words of lists that are separated by commas.

    Raises:
        UsageError: there is none, or one stands twice.
    """
    found = [word.strip() for each in given for word in each.split(",") if word.strip()]
    if not found:
        raise UsageError(f"no {what} is named", remedy=remedy)
    if twice := next((word for word in found if found.count(word) > 1), None):
        raise UsageError(f"the {what} {twice} is named twice", remedy="name it once")
    return tuple(found)


def parse_spec(text: str, registry: Registry[Adapter], kind: type[C]) -> C:
    """The settings that one word stands for, of the class that all adapters of this kind have.

    Raises:
        UsageError: no such part, no such setting, or a value that does not fit.
        PrerequisiteError: the part's package is missing.
    """
    name, *rest = text.split(":")
    config = registry.load(name).Config
    values: dict[str, object] = {"type": name}
    for key, value in _settings(text, rest, config):
        _put(values, key, value, config, text)
    try:
        found = _validated(config, values)
    except ValidationError as error:
        raise UsageError(f"{text}: {first_fault(error)}", remedy=f"see: raggs list {registry.group}") from error
    if not isinstance(found, kind):
        raise TypeError(f"{name} has the settings of something else")
    return found


def spec_name(config: AdapterConfig) -> str:
    """The shortest word that says which part it is: its type, and its main setting where that is not the usual one."""
    fields = type(config).model_fields
    main = next((name for name in MAIN if name in fields), None)
    value = None if main is None else getattr(config, main)
    usual = main is None or value == fields[main].get_default(call_default_factory=True)
    return config.type if usual else f"{config.type}:{value}"


def _settings(text: str, parts: Sequence[str], config: type[AdapterConfig]) -> Iterator[tuple[str, str]]:
    """Names and values; the main setting may hold colons, as functions and some models' names do."""
    main = next((name for name in MAIN if name in config.model_fields), None)
    first = list(takewhile(lambda part: "=" not in part, parts)) if main else []
    if main and first:
        yield main, ":".join(first).strip()
    for part in parts[len(first) :]:
        key, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"{text}: {part!r} is no setting", remedy="write settings as name=value")
        yield key.strip(), value.strip()


def _put(values: dict[str, object], key: str, value: str, config: type[AdapterConfig], text: str) -> None:
    """Set one value.

    Raises:
        UsageError: there is no such setting, or it is set already.
    """
    outer, dot, inner = key.partition(".")
    if outer not in config.model_fields:
        known = did_you_mean(outer, config.model_fields)
        raise UsageError(f"{text}: {values['type']} has no setting {outer!r}", remedy=known)
    part = any(isinstance(mark, OneOf) for mark in config.model_fields[outer].metadata)
    held = values.setdefault(outer, {}) if part else values
    name = inner if part and dot else "type" if part else key
    if not isinstance(held, dict) or name in held:
        raise UsageError(f"{text}: {key} is set twice", remedy="set it once")
    held[name] = None if value == NOTHING else value


def _validated(config: type[AdapterConfig], values: dict[str, object]) -> AdapterConfig:
    """The settings, with words as they are, or, where one does not fit, as the number or the truth that it writes.

    Raises:
        ValidationError: neither fits.
    """
    try:
        return config.model_validate(values)
    except ValidationError as error:
        wrong = {str(each["loc"][0]) for each in error.errors(include_url=False) if each["loc"]}
        return config.model_validate({key: _read(each) if key in wrong else each for key, each in values.items()})


def _read(value: object) -> object:
    if isinstance(value, dict):
        return {key: _read(each) for key, each in value.items()}
    if not isinstance(value, str):
        return value
    try:
        return int(value)
    except ValueError:
        return TRUTHS.get(value, value)
