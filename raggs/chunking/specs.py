"""Parts as one word on the command line: ``recursive:400:overlap=200``, ``onnx:models/minilm``.

First the part's name; what follows without ``=`` is its main setting (a chunker's size, a model's path or name, a
vector's length), everything else a setting by name. The part's own configuration checks them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from pydantic import ValidationError

from raggs.adapter import Adapter, AdapterConfig
from raggs.errors import UsageError
from raggs.jsonl import first_fault
from raggs.registry import Registry
from raggs.text import did_you_mean

MAIN = ("size", "max_words", "max_size", "path", "model", "callable", "dims")
NOTHING = "null"

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
        if key not in config.model_fields:
            raise UsageError(f"{text}: {name} has no setting {key!r}", remedy=did_you_mean(key, config.model_fields))
        if key in values:
            raise UsageError(f"{text}: {key} is set twice", remedy="set it once")
        values[key] = None if value == NOTHING else value
    try:
        found = config.model_validate(values)
    except ValidationError as error:
        raise UsageError(f"{text}: {first_fault(error)}", remedy=f"see: raggs list {registry.group}") from error
    if not isinstance(found, kind):
        raise TypeError(f"{name} has the settings of something else")
    return found


def _settings(text: str, parts: Sequence[str], config: type[AdapterConfig]) -> Iterable[tuple[str, str]]:
    main = next((name for name in MAIN if name in config.model_fields), None)
    for place, part in enumerate(parts):
        key, equals, value = part.partition("=")
        if equals:
            yield key.strip(), value.strip()
        elif place == 0 and main is not None:
            yield main, part.strip()
        else:
            raise UsageError(f"{text}: {part!r} is no setting", remedy="write settings as name=value")
