"""YAML with places: a plain tree of values, and for each of them the line that it stands on.

PyYAML's safe loader resolves the values (no tags, no objects); its node tree tells the lines. Duplicate keys are
an error here, since the last one would win in silence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from raggs.errors import ConfigError, NotFoundError
from raggs.inputs import read_whole
from raggs.secrets import is_secret_name

Place = tuple[str | int, ...]
MOST_CONFIG = 1 << 24  # bytes
CORE_TAGS = "tag:yaml.org,2002:"
PLAIN = frozenset({"map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge", "value"})
VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|(?P<escaped>\$\$)")


@dataclass(frozen=True)
class Origin:
    """Where a value comes from: "file", "environment" or "--set", and there exactly."""

    kind: str
    detail: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.detail}"


@dataclass(frozen=True)
class Source:
    """A configuration file as read: values and the origin of each."""

    path: Path
    values: dict[str, Any]
    origins: dict[Place, Origin]
    secret: dict[Place, str] = field(default_factory=dict)  # where a variable expanded that must not be stored: which


def read_source(path: Path, environment: Mapping[str, str] | None = None) -> Source:
    """Read a YAML file and expand ``${NAME}`` and ``${NAME:-default}`` in its texts (``$$`` is a plain ``$``).

    Raises:
        NotFoundError: no such file.
        ConfigError: not UTF-8, not YAML, not a mapping, a key twice, or a variable that is not set.
    """
    text = _read_text(path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(
            f"not valid YAML ({problem})", where=path, line=mark.line + 1 if mark else None, remedy="fix the syntax"
        ) from error
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError("not a mapping of settings", where=path, remedy="start with `name: my-run`; see `raggs init`")
    reader = _Reader(path, os.environ if environment is None else environment)
    values = reader.value(node, ())
    return Source(path, values, reader.origins, reader.secret)


def _read_text(path: Path) -> str:
    try:
        return read_whole(path, MOST_CONFIG).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8", where=path, remedy="save the file as UTF-8") from error
    except NotFoundError as error:
        raise NotFoundError(
            error.message, where=path, remedy="check the path, or make one with: raggs init DIR"
        ) from error


class _Reader:
    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self.path = path
        self.environment = environment
        self.origins: dict[Place, Origin] = {}
        self.secret: dict[Place, str] = {}
        self._scalars = yaml.SafeLoader("")

    def value(self, node: yaml.Node, place: Place) -> Any:
        line = node.start_mark.line + 1
        self.origins[place] = Origin("file", f"{self.path.name}:{line}", line)
        if node.tag.removeprefix(CORE_TAGS) not in PLAIN:
            raise ConfigError(
                f"not valid YAML here (tag {node.tag})", where=self.path, line=line, remedy="plain values only"
            )
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(entry, (*place, position)) for position, entry in enumerate(node.value)]
        return self._scalar(node, place, line)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if key == "<<" or key_node.tag == "tag:yaml.org,2002:merge":
                raise ConfigError(
                    "YAML merge keys are not supported",
                    where=self.path,
                    line=key_node.start_mark.line + 1,
                    remedy="write the keys out",
                )
            if key in found:
                raise ConfigError(
                    f"key {key!r} stands twice", where=self.path, line=key_node.start_mark.line + 1, remedy="keep one"
                )
            found[key] = self.value(value_node, (*place, key))
            line = key_node.start_mark.line + 1
            self.origins[(*place, key)] = Origin("file", f"{self.path.name}:{line}", line)
        return found

    def _scalar(self, node: yaml.Node, place: Place, line: int) -> Any:
        text = node.value
        if not VARIABLE.search(text):
            return self._scalars.construct_object(node)
        expanded = VARIABLE.sub(lambda match: self._variable(match, place, line), text)
        # An expanded plain scalar is read as YAML would read it: ${PORT} may be a number.
        return expanded if getattr(node, "style", None) in ("'", '"', "|", ">") else parse_value(expanded)

    def _variable(self, match: re.Match[str], place: Place, line: int) -> str:
        if match["escaped"]:
            return "$"
        value = self.environment.get(match["name"])
        if value and is_secret_name(match["name"]):
            self.secret[place] = match["name"]
        if value is None:
            value = match["default"]
        if value is None:
            key = ".".join(map(str, place))
            raise ConfigError(
                f"{key} needs the environment variable {match['name']}, which is not set",
                where=self.path,
                line=line,
                remedy=f"set it, or write ${{{match['name']}:-default}}",
            )
        return value


def parse_value(text: str) -> Any:
    """A text from the command line or the environment, read as YAML; what is not YAML stays text."""
    try:
        return yaml.safe_load(text) if text.strip() else text
    except yaml.YAMLError:
        return text
