"""YAML with places: a plain tree of values, and for each of them the line that it stands on.

`raggs.base.plainyaml` resolves the values (no tags, no dates, no key twice); its node tree tells the lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from raggs.base.errors import ConfigError, DataError, NotFoundError
from raggs.base.inputs import read_whole
from raggs.base.jsontypes import Place
from raggs.base.plainyaml import PlainYaml, load_plain
from raggs.base.secrets import is_secret_name

MOST_CONFIG = 1 << 24  # bytes
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
    document = PlainYaml(_read_text(path), path, ConfigError)
    if not isinstance(document.root, yaml.MappingNode):
        raise ConfigError("not a mapping of settings", where=path, remedy="start with `name: my-run`; see `raggs init`")
    reader = _Reader(path, document, os.environ if environment is None else environment)
    values = reader.mapping(document.root, ())
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
    def __init__(self, path: Path, document: PlainYaml, environment: Mapping[str, str]) -> None:
        self.path = path
        self.environment = environment
        self.origins: dict[Place, Origin] = {}
        self.secret: dict[Place, str] = {}
        self._document = document

    def mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        self._note(place, self._document.visit(node, len(place)))
        found: dict[str, Any] = {}
        for key, line, value in self._document.pairs(node):
            found[key] = self._value(value, (*place, key))
            self._note((*place, key), line)
        return found

    def _value(self, node: yaml.Node, place: Place) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, place)
        line = self._document.visit(node, len(place))
        self._note(place, line)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(entry, (*place, position)) for position, entry in enumerate(node.value)]
        return self._scalar(node, place, line)

    def _note(self, place: Place, line: int) -> None:
        self.origins[place] = Origin("file", f"{self.path.name}:{line}", line)

    def _scalar(self, node: yaml.Node, place: Place, line: int) -> Any:
        text = node.value
        if not VARIABLE.search(text):
            return self._document.scalar(node)
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
    """A text from the command line or the environment, read as plain YAML; what is none stays text."""
    try:
        return load_plain(text) if text.strip() else text
    except DataError:
        return text
