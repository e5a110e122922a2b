"""One value into the tree that a configuration file made, by a key such as ``retrieve.retrievers.bm25.k``.

A key that `raggs config show` prints can be set: levels that the file leaves out begin with what they are by default.
A list's entry goes by its number or its name; a name with dots stands in double quotes. Nothing is checked here but
that there is such a place: the models check the value.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticUndefined, to_jsonable_python

from raggs.base.errors import ConfigError
from raggs.base.jsontypes import Place
from raggs.base.text import shorten
from raggs.config.models import RunConfig
from raggs.config.source import Origin, Source, parse_value

DOT = re.compile(r'\.(?=(?:[^"]*"[^"]*")*[^"]*$)')  # outside of quotes
NUMBER = re.compile(r"[0-9]{1,9}")


def split_key(key: str) -> tuple[str, ...]:
    """``llm.prices."openai/gpt-4.1".input`` as its four parts."""
    return tuple(part[1:-1] if len(part) > 1 and part[0] == part[-1] == '"' else part for part in DOT.split(key))


def join_key(place: Place) -> str:
    """A place as `split_key` reads it."""
    return ".".join(f'"{part}"' if "." in str(part) else str(part) for part in place)


def assign(source: Source, keys: tuple[str, ...], text: str, origin: Origin) -> None:
    """Put a text, read as YAML, where `keys` say; `origin` is noted as where it comes from.

    Raises:
        ConfigError: there is no such place.
    """
    target: Any = source.values
    place: Place = ()
    for key in keys[:-1]:
        step = _step(target, key, keys, place, origin)
        place = (*place, step)
        target = _level(source, target, step, place, origin)
    step = _step(target, keys[-1], keys, place, origin)
    place = (*place, step)
    target[step] = parse_value(text)
    for known in [known for known in source.origins if known[: len(place)] == place]:
        del source.origins[known]
    source.origins[place] = origin


def _level(source: Source, target: Any, step: str | int, place: Place, origin: Origin) -> Any:
    """The mapping or list at a step, made where the file leaves it out."""
    if isinstance(target, list):
        return target[int(step)]
    if step in target and target[step] is not None:
        return target[step]
    default = _default(place)
    if default is None:
        default = _effective(source, place)
    if step not in target or (target[step] is None and default is None):
        target[step] = {} if default is None else default
    if target[step] is None:
        raise ConfigError(f"{origin}: {join_key(place)} is null", remedy="give it in the file first")
    return target[step]


def _step(target: object, key: str, keys: tuple[str, ...], place: Place, origin: Origin) -> str | int:
    """A key of a mapping, or the number of a list's entry.

    Raises:
        ConfigError: a single value stands there, or the list has no such entry.
    """
    if isinstance(target, dict):
        return key
    if not isinstance(target, list):
        raise ConfigError(f"{origin}: {join_key(place)} is a single value", remedy="name a section's key")
    if NUMBER.fullmatch(key) and int(key) < len(target):
        return int(key)
    names = [_name(entry) for entry in target]
    if key in names:
        return names.index(key)
    shown = ", ".join(name for name in names if name)
    raise ConfigError(
        f"{origin}: {shorten(join_key(keys), 80)} asks for an entry that the list does not have",
        remedy=f"it has entries 0 to {len(target) - 1}" + (f": {shown}" if shown else ""),
    )


def _name(entry: object) -> str:
    """What an entry is called in records and weights; empty where it has no name."""
    return str(entry.get("name") or entry.get("type") or "") if isinstance(entry, dict) else ""


def _effective(source: Source, place: Place) -> Any:
    """What stands at a place of the configuration as it is so far; None where it cannot be right yet."""
    try:
        found: Any = RunConfig.model_validate(source.values).model_dump(mode="json")
        for step in place:
            found = found[step]
    except (ValidationError, LookupError, TypeError):
        return None
    return found


def _default(place: Place) -> Any:
    """What stands at a place by default, as plain JSON; None where nothing does."""
    model: object = RunConfig
    found: object = None
    for step in place:
        if not (isinstance(model, type) and issubclass(model, BaseModel)) or step not in model.model_fields:
            return None
        field = model.model_fields[str(step)]
        found, model = field.get_default(call_default_factory=True, validated_data={}), field.annotation
    return None if found is PydanticUndefined else to_jsonable_python(found)
