"""From a file, the environment and the command line to one checked configuration.

Later sources win: defaults < file < ``RAGGS__section__key`` variables < ``--set section.key=value``. Every value
knows where it came from. A mistake is told with its line and the nearest name that would have been right.
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
IN_MEMORY = Path("settings in memory")  # what errors call a mapping; its paths are of the current folder
KIND_BY_KEY = {"axes": "sweep", "golden": "sweep", "judge": "run", "retrieve": "run"}  # keys that one kind of file has


@dataclass(frozen=True)
class LoadedConfig:
    """A configuration with the file that it came from and the origin of each value that is not a default."""

    path: Path
    run: RunConfig
    origins: Mapping[TreePath, ValueOrigin]

    def effective(self) -> dict[str, Any]:
        """All settings as plain JSON values."""
        return self.run.model_dump(mode="json")

    def with_origins(self) -> Iterator[tuple[str, Any, str]]:
        """Dotted name, value and origin of every leaf, in the models' order."""
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
    """Read and check a configuration.

    Args:
        path: the YAML file, or a mapping of what it would hold, whose paths are of the current folder. A ``.env``
            beside it gives keys and settings (see `raggs.config.source`), never over what is set already.
        overrides: texts of the form ``section.key=value``; list entries by number or name
                (``retrieve.retrievers.0.k=10``, ``retrieve.retrievers.bm25.k=10``).
        environment: instead of the process's own (and then without ``.env``).

    Raises:
        NotFoundError: the file is missing.
        ConfigError: the file, a variable or an override cannot be right; with line and remedy.
        UsageError: an override is not of the form ``key=value``.
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
    """Settings that a YAML file or a mapping holds as a whole, and where each value is from; as `load_config`."""
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
                f"--set {override}: not of the form key=value", remedy="for example --set rank.max_calls=40"
            )
        assign(source, split_key(key.strip()), text, ValueOrigin("--set", key.strip()))
    refuse_secrets(source, environment)
    return _validate(model, source), source.origins


def _in_memory(values: Mapping[str, object]) -> ConfigSource:
    """A mapping as a file of the same content; variables in its texts are not expanded."""
    return ConfigSource(IN_MEMORY, {str(key): deepcopy(value) for key, value in values.items()}, {})


def _refuse_other_kinds(model: type[S], source: ConfigSource) -> None:
    """A file that was given to the wrong command."""
    known = set(model.model_fields)
    if issubclass(model, DocumentsConfig):
        known |= model.sections_not_read()
    for key, kind in KIND_BY_KEY.items():
        if key in source.values and key not in known:
            what = f"the configuration of a {kind}: it holds `{key}`"
            raise ConfigError(what, where=source.path, remedy=f"raggs {kind} --config {source.path}")


def _validate(model: type[S], source: ConfigSource) -> S:
    try:
        return model.model_validate(source.values, context={BASE_FOLDER: source.path.parent.resolve()})
    except ValidationError as error:
        raise _explain(error, source) from error


# --- mistakes as sentences ------------------------------------------------------------------------------------


def _explain(error: ValidationError, source: ConfigSource) -> ConfigError:
    details = error.errors(include_url=False)
    # A key that nobody knows is most often the cause of the others (a misspelt required key), so it goes first.
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
    """How much of a place is keys; where several forms may stand, pydantic names the form after them.

    A number leads into what was given: a list, or one value in place of a list of one.
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
    """What is wrong, and what to do about it."""
    match detail["type"]:
        case "unknown_key":
            known = context["known"]
            return f"unknown key {name!r}", did_you_mean(
                str(detail["loc"][-1]), known, f"known here: {', '.join(known)}"
            )
        case "unknown_name":
            return f"{name}: unknown {context['what']} {context['name']!r}", did_you_mean(
                context["name"], context["known"]
            )
        case "type_missing":
            given = detail["input"] if isinstance(detail["input"], str) else "..."
            return f"{name}: needs a `type`", f"for example {{type: {given}}}; see: raggs list"
        case "model_type" | "dict_type":
            return f"{name}: a mapping belongs here", f"{_as_given(detail['input'])}; see: raggs explain {name}"
        case "tuple_type" | "list_type":
            return f"{name}: a list belongs here", f"{_as_given(detail['input'])}; for example [a, b]"
        case "path_type":
            return f"{name}: a path belongs here", _as_given(detail["input"])
        case "too_short":
            few, given = context["min_length"], context["actual_length"]
            return f"{name}: needs at least {few}, and there {'is' if given == 1 else 'are'} {given}", "add to the list"
        case "missing":
            return f"{name} is missing", "give it in the file"
        case "literal_error":
            expected = str(context.get("expected", "")).replace(" or ", ", ").split(",")
            known = [text.strip().strip("'") for text in expected]
            return f"{name}: {detail['input']!r} is not known", did_you_mean(str(detail["input"]), known)
    message = detail["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return f"{name}: {message}" if name else message, _as_given(detail["input"])


def _nearest_origin(place: TreePath, origins: Mapping[TreePath, ValueOrigin]) -> ValueOrigin | None:
    for length in range(len(place), -1, -1):
        if place[:length] in origins:
            return origins[place[:length]]
    return None
