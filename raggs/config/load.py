"""Merge a file, the environment and the command line into one validated configuration.

Later sources win: defaults < file < ``RAGGS__section__key`` variables < ``--set section.key=value``. raggs records the
origin of every value. Error messages name the line if there is one, and suggest the nearest valid name for an
unknown one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from raggs.base.errors import ConfigError, UsageError
from raggs.base.settings import BASE_FOLDER, UNKNOWN_KEY, Settings
from raggs.base.text import did_you_mean, shorten
from raggs.base.types import TreePath, leaves
from raggs.config.models import DocumentsConfig, RunConfig
from raggs.config.source import (
    PREFIX,
    ConfigSource,
    ValueOrigin,
    assign,
    environment_for,
    join_key,
    read_source,
    refuse_secrets,
    split_key,
)

S = TypeVar("S", bound=Settings)
# Replaces the file name in error messages if the settings are a mapping. Paths in the mapping are relative to the
# current folder.
IN_MEMORY = Path("settings in memory")
# keys that occur in only one kind of file
KIND_BY_KEY = {"axes": "sweep", "golden": "sweep", "judge": "run", "retrieve": "run"}


@dataclass(frozen=True)
class LoadedConfig:
    """A configuration with its file and the origin of each value that is not a default."""

    path: Path
    run: RunConfig
    origins: Mapping[TreePath, ValueOrigin]

    def effective(self) -> dict[str, Any]:
        """Return all settings as plain JSON values."""
        return self.run.model_dump(mode="json")

    def with_origins(self) -> Iterator[tuple[str, Any, str]]:
        """Yield the dotted name, value and origin of every leaf, in the order of the models."""
        for place, value in leaves(self.effective()):
            yield join_key(place), value, str(self._origin(place))

    def _origin(self, place: TreePath) -> ValueOrigin | str:
        for length in range(len(place), 0, -1):
            origin = self.origins.get(place[:length])
            if origin is not None and (length == len(place) or origin.kind != "file"):
                return origin
        return "default"


def load_config(
    path: Path | str | Mapping[str, object],
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> LoadedConfig:
    """Read and validate a configuration.

    Args:
        path: the YAML file, or a mapping with the same content. Paths in a mapping are relative to the current folder.
            A ``.env`` file next to the YAML file, or for a mapping in the current folder, can supply keys and settings
            (see `raggs.config.source`). It never overrides variables that are already set.
        overrides: texts of the form ``section.key=value``. List entries are addressed by number or name
            (``retrieve.retrievers.0.k=10``, ``retrieve.retrievers.bm25.k=10``).
        environment: replaces the environment of the process. If it is given, ``.env`` is not read.

    Raises:
        NotFoundError: the file is missing.
        ConfigError: the file, a variable or an override is invalid. The error gives the line and a remedy.
        UsageError: an override does not have the form ``key=value``.
    """
    file = path if isinstance(path, Mapping) else Path(path)
    run, origins = load_settings(RunConfig, file, overrides, environment)
    return LoadedConfig(IN_MEMORY if isinstance(file, Mapping) else file, run, origins)


def load_settings(
    model: type[S],
    file: Path | Mapping[str, object],
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> tuple[S, Mapping[TreePath, ValueOrigin]]:
    """Read and validate settings of any model from a whole YAML file or mapping.

    Return the settings, and the origin of each value. For the arguments, see `load_config`.
    """
    if environment is None:
        environment = environment_for(IN_MEMORY if isinstance(file, Mapping) else file)
    source = _in_memory(file) if isinstance(file, Mapping) else read_source(file, environment)
    _refuse_other_kinds(model, source)
    for name, text in sorted(environment.items()):
        if name.startswith(PREFIX):
            assign(source, tuple(name.removeprefix(PREFIX).lower().split("__")), text, ValueOrigin("environment", name))
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key.strip():
            raise UsageError(
                f"--set {override}: expected the form key=value", remedy="use, for example, --set budget.max_usd=2"
            )
        assign(source, split_key(key.strip()), text, ValueOrigin("--set", key.strip()))
    refuse_secrets(source, environment)
    return _validate(model, source), source.origins


def _in_memory(values: Mapping[str, object]) -> ConfigSource:
    """Wrap a mapping of settings like the content of a file. `${NAME}` in its texts is not expanded."""
    return ConfigSource(IN_MEMORY, {str(key): deepcopy(value) for key, value in values.items()}, {})


def _refuse_other_kinds(model: type[S], source: ConfigSource) -> None:
    """Raise an error if the file belongs to another command."""
    known = set(model.model_fields)
    if issubclass(model, DocumentsConfig):
        known |= model.sections_not_read()
    for key, kind in KIND_BY_KEY.items():
        if key in source.values and key not in known:
            what = f"this is the configuration of a {kind}: it has the key `{key}`"
            raise ConfigError(what, where=source.path, remedy=f"raggs {kind} --config {source.path}")


def _validate(model: type[S], source: ConfigSource) -> S:
    try:
        return model.model_validate(source.values, context={BASE_FOLDER: source.path.parent.resolve()})
    except ValidationError as error:
        raise _explain(error, source) from error


# --- error messages -------------------------------------------------------------------------------------------


def _explain(error: ValidationError, source: ConfigSource) -> ConfigError:
    details = error.errors(include_url=False)
    # An unknown key is often the cause of the other errors (a misspelt required key), so it comes first.
    first = min(details, key=lambda detail: detail["type"] != UNKNOWN_KEY)
    place = _place_in_values(first["loc"], source.values)
    name = ".".join(map(str, place))
    if place == first["loc"]:
        message, remedy = _sentence(first, name, first.get("ctx", {}))
    else:
        ways = [each["msg"] for each in details if each["loc"][: len(place)] == place]
        message, remedy = f"{name}: {_union_message(ways)}", _as_given(first["input"])
    origin = _nearest_origin(place, source.origins)
    if origin is not None and origin.kind != "file":
        return ConfigError(f"{origin}: {message}", remedy=remedy)
    return ConfigError(message, where=source.path, line=origin.line if origin else None, remedy=remedy)


def _place_in_values(place: TreePath, values: object) -> TreePath:
    """Return an error's location without the steps that pydantic adds for the variants of a union.

    Every step of the result is a key or an index of `values`. An integer step is kept even if the value is not a list:
    a single value was then given instead of a list.
    """
    for depth, step in enumerate(place):
        if not isinstance(values, Mapping | list | tuple):
            return place if isinstance(step, int) else place[:depth]
        found = dict(values) if isinstance(values, Mapping) else dict(enumerate(values))
        if step not in found:
            return place
        values = found[step]
    return place


def _union_message(ways: list[str]) -> str:
    plain = [way.removeprefix("Input should be ").partition(",")[0] for way in ways]
    return f"input should be {', or '.join(plain)}"


def _as_given(value: object) -> str:
    return f"the value is {shorten(repr(value), 60)}"


def _sentence(detail: ErrorDetails, name: str, context: Mapping[str, Any]) -> tuple[str, str]:
    """Return the message and the remedy for one validation error."""
    match detail["type"]:
        case "unknown_key":
            known = context["known"]
            return f"unknown key {name!r}", did_you_mean(
                str(detail["loc"][-1]), known, f"known keys: {', '.join(known)}"
            )
        case "unknown_name":
            return f"{name}: unknown {context['what']} {context['name']!r}", did_you_mean(
                context["name"], context["known"]
            )
        case "type_missing":
            given = detail["input"] if isinstance(detail["input"], str) else "..."
            return f"{name}: needs a `type`", f"for example {{type: {given}}}; see: raggs list"
        case "model_type" | "dict_type":
            return f"{name}: expected a mapping", f"{_as_given(detail['input'])}; see: raggs explain {name}"
        case "tuple_type" | "list_type":
            return f"{name}: expected a list", f"{_as_given(detail['input'])}; for example [a, b]"
        case "path_type":
            return f"{name}: expected a path", _as_given(detail["input"])
        case "too_short":
            few, given = context["min_length"], context["actual_length"]
            return f"{name}: needs at least {few} entries, got {given}", "add to the list"
        case "missing":
            return f"{name} is required but missing", "add it to the file"
        case "literal_error":
            expected = str(context.get("expected", "")).replace(" or ", ", ").split(",")
            known = [text.strip().strip("'") for text in expected]
            return f"{name}: unknown value {detail['input']!r}", did_you_mean(str(detail["input"]), known)
    message = detail["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return f"{name}: {message}" if name else message, _as_given(detail["input"])


def _nearest_origin(place: TreePath, origins: Mapping[TreePath, ValueOrigin]) -> ValueOrigin | None:
    for length in range(len(place), -1, -1):
        if place[:length] in origins:
            return origins[place[:length]]
    return None
