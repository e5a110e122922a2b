"""From a file, the environment and the command line to one checked configuration.

Later sources win: defaults < file < ``RAGGS__section__key`` variables < ``--set section.key=value``. Every value
knows where it came from. A mistake is told with its line and the nearest name that would have been right.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dotenv import load_dotenv
from pydantic import BaseModel, ValidationError

from raggs.config.models import RunConfig
from raggs.config.source import Origin, Place, Source, parse_value, read_source
from raggs.errors import ConfigError, UsageError
from raggs.settings import BASE_FOLDER
from raggs.text import nearest, shorten

PREFIX = "RAGGS__"


@dataclass(frozen=True)
class LoadedConfig:
    """A configuration with the file that it came from and the origin of each value that is not a default."""

    path: Path
    run: RunConfig
    origins: Mapping[Place, Origin]

    def effective(self) -> dict[str, Any]:
        """All settings as plain JSON values."""
        return self.run.model_dump(mode="json")

    def with_origins(self) -> Iterator[tuple[str, Any, str]]:
        """Dotted name, value and origin of every leaf, in the models' order."""
        for place, value in leaves(self.effective()):
            yield ".".join(map(str, place)), value, str(self._origin(place))

    def _origin(self, place: Place) -> Origin | str:
        for length in range(len(place), 0, -1):
            origin = self.origins.get(place[:length])
            if origin is not None and (length == len(place) or origin.kind != "file"):
                return origin
        return "default"


def load_config(
    path: Path | str, overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> LoadedConfig:
    """Read and check a configuration.

    Args:
        path: the YAML file. A ``.env`` beside it is read first and never overrides what is set already.
        overrides: texts of the form ``section.key=value``; list entries by number (``retrieve.retrievers.0.k=10``).
        environment: instead of the process's own (and then without ``.env``).

    Raises:
        NotFoundError: the file is missing.
        ConfigError: the file, a variable or an override cannot be right; with line and remedy.
        UsageError: an override is not of the form ``key=value``.
    """
    file = Path(path)
    if environment is None:
        load_dotenv(file.parent / ".env", override=False)
        environment = os.environ
    source = read_source(file, environment)
    for name, text in sorted(environment.items()):
        if name.startswith(PREFIX):
            _assign(source, tuple(name.removeprefix(PREFIX).lower().split("__")), text, Origin("environment", name))
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                f"--set {override}: not of the form key=value", remedy="for example --set rank.max_calls=40"
            )
        _assign(source, tuple(key.strip().split(".")), text, Origin("--set", key.strip()))
    return LoadedConfig(file, _checked(source), source.origins)


def _checked(source: Source) -> RunConfig:
    try:
        return RunConfig.model_validate(source.values, context={BASE_FOLDER: source.path.parent.resolve()})
    except ValidationError as error:
        raise _explain(error, source) from error


def _assign(source: Source, keys: tuple[str, ...], text: str, origin: Origin) -> None:
    target: Any = source.values
    place: Place = ()
    for position, key in enumerate(keys):
        step: str | int = int(key) if isinstance(target, list) and key.isdigit() else key
        place = (*place, step)
        last = position == len(keys) - 1
        if isinstance(target, list) and (not isinstance(step, int) or step >= len(target)):
            raise ConfigError(
                f"{origin}: {'.'.join(keys)} asks for an entry that the list does not have",
                remedy=f"it has entries 0 to {len(target) - 1}",
            )
        if not isinstance(target, (dict, list)):
            raise ConfigError(
                f"{origin}: {'.'.join(map(str, place[:-1]))} is a single value", remedy="name a section's key"
            )
        if last:
            target[step] = parse_value(text)  # type: ignore[index]
        elif isinstance(target, dict):
            target = target.setdefault(str(step), {})
            if target is None:
                raise ConfigError(f"{origin}: {'.'.join(map(str, place))} is null", remedy="give it in the file first")
        else:
            target = target[step]  # type: ignore[index]
    for known in [known for known in source.origins if known[: len(place)] == place]:
        del source.origins[known]
    source.origins[place] = origin


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every scalar of a tree with its place; an empty mapping or list is a leaf."""
    if isinstance(value, Mapping) and value:
        for key, entry in value.items():
            yield from leaves(entry, (*place, str(key)))
    elif isinstance(value, list) and value:
        for position, entry in enumerate(value):
            yield from leaves(entry, (*place, position))
    else:
        yield place, value


# --- mistakes as sentences ------------------------------------------------------------------------------------


def _explain(error: ValidationError, source: Source) -> ConfigError:
    details = error.errors(include_url=False)
    # A key that nobody knows is most often the cause of the others (a misspelt required key), so it goes first.
    first = min(details, key=lambda detail: detail["type"] != "extra_forbidden")
    place = _place(first["loc"], source.values)
    name, remedy = ".".join(map(str, place)), None
    message = first["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    match first["type"]:
        case "extra_forbidden":
            message = f"unknown key {name!r}"
            known = _known_keys(first["loc"][:-1])
            close = nearest(str(place[-1]), known)
            remedy = (f"did you mean {close!r}? " if close else "") + f"known here: {', '.join(known)}"
        case "union_tag_invalid":
            context = first.get("ctx", {})
            expected = [tag.strip().strip("'") for tag in str(context.get("expected_tags", "")).split(",")]
            close = nearest(str(context.get("tag")), expected)
            message = f"{name}: unknown type {context.get('tag')!r}"
            remedy = (f"did you mean {close!r}? " if close else "") + f"known: {', '.join(expected)}"
        case "union_tag_not_found":
            message, remedy = f"{name}: needs a `type`", "for example {type: ...}; see: raggs list"
        case "missing":
            message, remedy = f"{name} is missing", "give it in the file"
        case "literal_error":
            expected = [
                tag.strip().strip("'")
                for tag in str(first.get("ctx", {}).get("expected", "")).replace(" or ", ", ").split(",")
            ]
            close = nearest(str(first["input"]), expected)
            message = f"{name}: {first['input']!r} is not known"
            remedy = (f"did you mean {close!r}? " if close else "") + f"known: {', '.join(expected)}"
        case _:
            message = f"{name}: {message}" if name else message
            remedy = f"the value is {shorten(repr(first['input']), 60)}"
    origin = _nearest_origin(place, source.origins)
    if origin is not None and origin.kind != "file":
        return ConfigError(f"{origin}: {message}", remedy=remedy)
    return ConfigError(message, where=source.path, line=origin.line if origin else None, remedy=remedy)


def _nearest_origin(place: Place, origins: Mapping[Place, Origin]) -> Origin | None:
    for length in range(len(place), -1, -1):
        if place[:length] in origins:
            return origins[place[:length]]
    return None


def _place(loc: tuple[str | int, ...], values: Any) -> Place:
    """The place in the file of a pydantic location, which also names the chosen type of each adapter."""
    place: list[str | int] = []
    current = values
    for position, step in enumerate(loc):
        if isinstance(current, Mapping) and step not in current and step == current.get("type"):
            continue
        place.append(step)
        last = position == len(loc) - 1
        try:
            current = None if last else current[step]
        except (KeyError, IndexError, TypeError):
            current = None
    return tuple(place)


def _known_keys(loc: tuple[str | int, ...]) -> list[str]:
    """The keys of the model that a pydantic location leads to."""
    current: Any = RunConfig
    for step in loc:
        current = _descend(current, step)
        if current is None:
            return []
    return list(current.model_fields) if isinstance(current, type) and issubclass(current, BaseModel) else []


def _descend(current: Any, step: str | int) -> Any:
    if isinstance(current, type) and issubclass(current, BaseModel):
        field = current.model_fields.get(str(step))
        return None if field is None else _unwrap(field.annotation, field.metadata)
    if isinstance(step, int):
        return current
    return current.get(step) if isinstance(current, dict) else None


def _unwrap(annotation: Any, metadata: Sequence[Any] = ()) -> Any:
    """A model class, or the models of a union by their tag; lists and optionals stand for their entries."""
    models = {
        model.model_fields["type"].default if "type" in model.model_fields else model: model
        for model in _models(annotation)
    }
    if len(models) == 1 and not any("discriminator" in str(type(mark)).lower() for mark in metadata):
        return next(iter(models.values()))
    return models or None


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models(argument)
