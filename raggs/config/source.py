"""YAML with line numbers: a plain tree of values and the origin of each value.

`raggs.base.plainyaml` parses the values (no tags, no dates, no duplicate keys) and supplies the lines.

`assign` sets one value in this tree by a key such as ``retrieve.retrievers.bm25.k``. Every key that `raggs config show`
prints can be set. Missing levels are filled with their defaults. A list entry is addressed by number or name. A name
that contains dots is written in double quotes. This module checks only that the place exists; the models validate the
value.

The module also restricts what a configuration may take from the environment, and rejects secrets in it.

A `.env` file next to the YAML file is trusted no more than the YAML file. It may supply API keys, raggs settings
(``RAGGS__...``) and values for ``${NAME}`` in that YAML. It may not control which code runs (PYTHONPATH, DASK_...) or
where API keys are sent (OPENAI_BASE_URL, HTTPS_PROXY). Only API keys and the other `PROVIDER_VARIABLES` are added to
the environment of the process. Variables that are already set are never overridden.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticUndefined, to_jsonable_python

from raggs.base.errors import ConfigError, DataError, NotFoundError, RaggsError
from raggs.base.files import read_whole, regular_file, unreadable
from raggs.base.plainyaml import PlainYaml, load_plain
from raggs.base.secrets import add_secrets, find_secrets, is_secret_name, secrets_of
from raggs.base.text import shorten
from raggs.base.types import TreePath
from raggs.config.models import RunConfig

MAX_CONFIG_BYTES = 1 << 24  # bytes
VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}|(?P<escaped>\$\$)")


@dataclass(frozen=True)
class ValueOrigin:
    """Origin of a value: its kind ("file", "environment" or "--set"), the file, variable or option, and the line in
    a file.
    """

    kind: str
    detail: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.detail}"


@dataclass(frozen=True)
class ConfigSource:
    """A configuration file as read: its values and the origin of each."""

    path: Path
    values: dict[str, Any]
    origins: dict[TreePath, ValueOrigin]
    # by place of a value: the variable with a secret that `${NAME}` inserted there
    secret: dict[TreePath, str] = field(default_factory=dict)


def read_source(path: Path, environment: Mapping[str, str] | None = None) -> ConfigSource:
    """Read a YAML file and expand ``${NAME}`` and ``${NAME:-default}`` in its texts (``$$`` is a plain ``$``).

    Raises:
        NotFoundError: the file does not exist.
        ConfigError: the file is not UTF-8, not YAML or not a mapping, has a duplicate key, or uses an unset variable.
    """
    document = PlainYaml(_read_text(path), path, ConfigError)
    if not isinstance(document.root, yaml.MappingNode):
        raise ConfigError(
            "expected a mapping of settings",
            where=path,
            remedy="start with `name: my-run`, or create a file with `raggs init`",
        )
    reader = _ConfigReader(path, document, os.environ if environment is None else environment)
    values = reader.mapping(document.root, ())
    return ConfigSource(path, values, reader.origins, reader.secret)


def _read_text(path: Path) -> str:
    try:
        return read_whole(path, MAX_CONFIG_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8", where=path, remedy="save the file as UTF-8") from error
    except NotFoundError as error:
        raise NotFoundError(
            error.message, where=path, remedy="check the path, or create a configuration: raggs init DIR"
        ) from error


class _ConfigReader:
    def __init__(self, path: Path, document: PlainYaml, environment: Mapping[str, str]) -> None:
        self.path = path
        self.environment = environment
        self.origins: dict[TreePath, ValueOrigin] = {}
        self.secret: dict[TreePath, str] = {}
        self._document = document

    def mapping(self, node: yaml.MappingNode, place: TreePath) -> dict[str, Any]:
        self._note(place, self._document.visit(node, len(place)))
        found: dict[str, Any] = {}
        for key, line, value in self._document.pairs(node):
            found[key] = self._value(value, (*place, key))
            self._note((*place, key), line)
        return found

    def _value(self, node: yaml.Node, place: TreePath) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, place)
        line = self._document.visit(node, len(place))
        self._note(place, line)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(entry, (*place, position)) for position, entry in enumerate(node.value)]
        return self._scalar(node, place, line)

    def _note(self, place: TreePath, line: int) -> None:
        self.origins[place] = ValueOrigin("file", f"{self.path.name}:{line}", line)

    def _scalar(self, node: yaml.Node, place: TreePath, line: int) -> Any:
        text = node.value
        if not VARIABLE.search(text):
            return self._document.scalar(node)
        expanded = VARIABLE.sub(lambda match: self._variable(match, place, line), text)
        # Parse an expanded plain scalar as YAML would: ${PORT} may be a number.
        return expanded if getattr(node, "style", None) in ("'", '"', "|", ">") else parse_value(expanded)

    def _variable(self, match: re.Match[str], place: TreePath, line: int) -> str:
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
    """Parse a text from the command line or the environment as plain YAML. Return it unchanged if it is not YAML."""
    try:
        return load_plain(text) if text.strip() else text
    except DataError:
        return text


DOT = re.compile(r'\.(?=(?:[^"]*"[^"]*")*[^"]*$)')  # dots outside quotes
LIST_INDEX = re.compile(r"[0-9]{1,9}")


def split_key(key: str) -> tuple[str, ...]:
    """Split a key at its dots: ``llm.prices."openai/gpt-4.1".input`` has four parts."""
    return tuple(part[1:-1] if len(part) > 1 and part[0] == part[-1] == '"' else part for part in DOT.split(key))


def join_key(place: TreePath) -> str:
    """Join the parts of a place to a key that `split_key` can split."""
    return ".".join(f'"{part}"' if "." in str(part) else str(part) for part in place)


def assign(source: ConfigSource, keys: tuple[str, ...], text: str, origin: ValueOrigin) -> None:
    """Parse a text as YAML and set it at the place given by `keys`. Record `origin` as its origin.

    Raises:
        ConfigError: the place does not exist.
    """
    target: Any = source.values
    place: TreePath = ()
    for key in keys[:-1]:
        step = _resolve_step(target, key, keys, place, origin)
        place = (*place, step)
        target = _descend(source, target, step, place, origin)
    step = _resolve_step(target, keys[-1], keys, place, origin)
    place = (*place, step)
    target[step] = parse_value(text)
    for known in [known for known in source.origins if known[: len(place)] == place]:
        del source.origins[known]
    source.origins[place] = origin


def _descend(source: ConfigSource, target: Any, step: str | int, place: TreePath, origin: ValueOrigin) -> Any:
    """Return the mapping or list at a step of a key. If the file omits it, create it from its defaults."""
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
        raise ConfigError(f"{origin}: {join_key(place)} is null", remedy="set it in the file first")
    return target[step]


def _resolve_step(target: object, key: str, keys: tuple[str, ...], place: TreePath, origin: ValueOrigin) -> str | int:
    """Return one part of a key as a mapping key, or as the index of a list entry.

    Raises:
        ConfigError: the place holds a single value, or the list has no such entry.
    """
    if isinstance(target, dict):
        return key
    if not isinstance(target, list):
        raise ConfigError(f"{origin}: {join_key(place)} is a single value", remedy="give the key of a section")
    if LIST_INDEX.fullmatch(key) and int(key) < len(target):
        return int(key)
    names = [_name(entry) for entry in target]
    if key in names:
        return names.index(key)
    shown = ", ".join(name for name in names if name)
    raise ConfigError(
        f"{origin}: {shorten(join_key(keys), 80)}: the list has no such entry",
        remedy=f"the list has the entries 0 to {len(target) - 1}" + (f": {shown}" if shown else ""),
    )


def _name(entry: object) -> str:
    """Return an entry's `name`, else its `type`; an empty text if the entry has neither."""
    return str(entry.get("name") or entry.get("type") or "") if isinstance(entry, dict) else ""


def _effective(source: ConfigSource, place: TreePath) -> Any:
    """Return the value at a place after all changes so far; None if the configuration is not valid yet."""
    try:
        found: Any = RunConfig.model_validate(source.values).model_dump(mode="json")
        for step in place:
            found = found[step]
    except (ValidationError, LookupError, TypeError):
        return None
    return found


def _default(place: TreePath) -> Any:
    """Return the default at a place as plain JSON, or None if there is none."""
    model: object = RunConfig
    found: object = None
    for step in place:
        if not (isinstance(model, type) and issubclass(model, BaseModel)) or step not in model.model_fields:
            return None
        field = model.model_fields[str(step)]
        found, model = field.get_default(call_default_factory=True, validated_data={}), field.annotation
    return None if found is PydanticUndefined else to_jsonable_python(found)


PREFIX = "RAGGS__"
KEYS = re.compile(r"[A-Z][A-Z0-9_]*_(?:API_KEY|ACCESS_TOKEN|API_TOKEN)")
# Other variables that providers read, mostly credentials. None of them chooses the code, or a server that does not
# belong to the provider.
PROVIDER_VARIABLES = frozenset(
    {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"}
    | {"AWS_REGION", "AWS_REGION_NAME", "AWS_DEFAULT_REGION"}
    | {"AZURE_AD_TOKEN", "AZURE_API_VERSION", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"}
    | {"ELASTIC_PASSWORD", "ELASTIC_USERNAME", "GITHUB_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "HF_TOKEN"}
    | {"OPENAI_ORGANIZATION", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "REPLICATE_API_TOKEN"}
    | {"VERTEXAI_LOCATION", "VERTEXAI_PROJECT", "VERTEX_LOCATION", "VERTEX_PROJECT", "WATSONX_PROJECT_ID"}
)
ENVIRONMENT_REMEDY = "set the provider's environment variable instead and remove the value here"
logger = logging.getLogger(__name__)


def environment_for(config: Path) -> Mapping[str, str]:
    """Return the environment variables of the process and those of the `.env` next to a configuration.

    Keys and other `PROVIDER_VARIABLES` of the `.env` are also added to the environment of the process. Other variables
    have an effect only if they start with `PREFIX` or the YAML uses them as `${NAME}`. A warning lists ignored ones.

    Raises:
        ConfigError: the `.env` is not UTF-8, or cannot be parsed.
        NotFoundError: the `.env` cannot be read, for example without permission.
        DataError: the `.env` is a pipe or a device (/dev/null counts as an empty file).
    """
    file = config.parent / ".env"
    if file.exists() and not file.samefile(os.devnull):
        regular_file(file)
    try:
        found = _values(file) if file.is_file() else {}
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8", where=file, remedy="save the file as UTF-8") from error
    except OSError as error:
        raise unreadable(error, file) from error
    except ValueError as error:
        raise ConfigError(f"cannot be read ({error})", where=file, remedy="use lines of the form NAME=value") from error
    for name, value in found.items():
        if _is_key(name):
            os.environ.setdefault(name, value)
    ignored = [name for name in found if not _is_key(name) and not name.startswith(PREFIX)]
    if ignored and (strange := sorted(set(ignored) - _named_in(config))):
        _warn_ignored(str(file), ", ".join(strange))
    return {**found, **os.environ}


def _values(file: Path) -> dict[str, str]:
    from dotenv import dotenv_values  # imported lazily: most runs have no such file

    return {name: value for name, value in dotenv_values(file).items() if value is not None}


def refuse_secrets(source: ConfigSource, environment: Mapping[str, str]) -> None:
    """Raise an error if a configuration contains a secret: the manifest of each run stores the configuration.

    Raises:
        ConfigError: the configuration contains a secret. The error names the key, never the value.
    """
    add_secrets(secrets_of(environment).values())
    for place, variable in source.secret.items():
        if source.origins.get(place, ValueOrigin("", "")).kind == "file":
            raise _refusal(source, place, f"the value of {variable} must not be in a configuration")
    for place, why in find_secrets(source.values, environment):
        raise _refusal(source, place, why)


def refuse_stored(settings: Mapping[str, object]) -> None:
    """Raise an error if settings contain a secret, before the settings are stored in a manifest.

    Raises:
        ConfigError: the settings contain a secret.
    """
    for place, why in find_secrets(settings):
        raise ConfigError(f"{'.'.join(map(str, place))}: {why}", remedy=ENVIRONMENT_REMEDY)


def _refusal(source: ConfigSource, place: TreePath, why: str) -> ConfigError:
    origin = next(
        (source.origins[place[:length]] for length in range(len(place), -1, -1) if place[:length] in source.origins),
        None,
    )
    told = f"{'.'.join(map(str, place))}: {why}"
    if origin is not None and origin.kind != "file":
        return ConfigError(f"{origin}: {told}", remedy=ENVIRONMENT_REMEDY)
    return ConfigError(told, where=source.path, line=origin.line if origin else None, remedy=ENVIRONMENT_REMEDY)


def _is_key(name: str) -> bool:
    return name in PROVIDER_VARIABLES or KEYS.fullmatch(name) is not None


def _named_in(config: Path) -> set[str]:
    """Return the names of the variables that the configuration file uses as `${NAME}`."""
    try:
        text = read_whole(config, MAX_CONFIG_BYTES).decode("utf-8-sig", "replace")
    except (OSError, RaggsError):
        return set()  # the error is reported when the configuration itself is read
    return {match["name"] for match in VARIABLE.finditer(text) if match["name"]}


@cache
def _warn_ignored(file: str, names: str) -> None:
    logger.warning(
        "%s: ignored %s. A .env file may set only credentials of providers, RAGGS__ variables and variables used as "
        "${NAME} in the YAML. Set others in the shell.",
        file,
        names,
    )
