"""What a configuration may take from the environment, and what of it may never be stored.

A `.env` beside the YAML is as foreign as the YAML. It may give keys, the settings of raggs (``RAGGS__...``), and values
for ``${NAME}`` in that YAML; it may say neither what code runs (PYTHONPATH, DASK_...) nor where keys are sent
(OPENAI_BASE_URL, HTTPS_PROXY). Only keys reach the environment of the process; nothing there is overridden.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from raggs.base.errors import ConfigError, RaggsError
from raggs.base.files import read_whole, regular_file
from raggs.base.secrets import held, remember, secrets_of
from raggs.base.types import Place
from raggs.config.source import MOST_CONFIG, VARIABLE, Origin, Source

PREFIX = "RAGGS__"
KEYS = re.compile(r"[A-Z][A-Z0-9_]*_(?:API_KEY|ACCESS_TOKEN|API_TOKEN)")
# What providers know besides, by which no code runs and no address changes.
NAMED = frozenset(
    {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"}
    | {"AWS_REGION", "AWS_REGION_NAME", "AWS_DEFAULT_REGION"}
    | {"AZURE_AD_TOKEN", "AZURE_API_VERSION", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"}
    | {"ELASTIC_PASSWORD", "ELASTIC_USERNAME", "GITHUB_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "HF_TOKEN"}
    | {"OPENAI_ORGANIZATION", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "REPLICATE_API_TOKEN"}
    | {"VERTEXAI_LOCATION", "VERTEXAI_PROJECT", "VERTEX_LOCATION", "VERTEX_PROJECT", "WATSONX_PROJECT_ID"}
)
REMEDY = "set the provider's environment variable instead, and leave it out here"
logger = logging.getLogger(__name__)


def environment_for(config: Path) -> Mapping[str, str]:
    """The process's environment, and below it what the `.env` beside a configuration may give.

    What of the `.env` is not read is told in the log, once.

    Raises:
        ConfigError: the `.env` cannot be read.
        DataError: it is a pipe or a device (/dev/null is an empty one).
    """
    file = config.parent / ".env"
    if file.exists() and not file.samefile(os.devnull):
        regular_file(file)
    try:
        given = _values(file) if file.is_file() else {}
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8", where=file, remedy="save the file as UTF-8") from error
    except ValueError as error:
        raise ConfigError(f"cannot be read ({error})", where=file, remedy="write NAME=value lines") from error
    found = {name: value for name, value in given.items() if value is not None}
    for name, value in found.items():
        if _is_key(name):
            os.environ.setdefault(name, value)
    ignored = [name for name in found if not _is_key(name) and not name.startswith(PREFIX)]
    if ignored and (strange := sorted(set(ignored) - _named_in(config))):
        _tell(str(file), ", ".join(strange))
    return {**found, **os.environ}


def _values(file: Path) -> dict[str, str | None]:
    from dotenv import dotenv_values  # late: most runs have no such file

    return dotenv_values(file)


def refuse_secrets(source: Source, environment: Mapping[str, str]) -> None:
    """Refuse a configuration that holds a secret, since it is stored in each run's manifest.

    Raises:
        ConfigError: it does; says where, never what.
    """
    remember(secrets_of(environment).values())
    for place, variable in source.secret.items():
        if source.origins.get(place, Origin("", "")).kind == "file":
            raise _refusal(source, place, f"the value of {variable} does not belong into a configuration")
    for place, why in held(source.values, environment):
        raise _refusal(source, place, why)


def refuse_stored(settings: Mapping[str, object]) -> None:
    """Refuse settings that hold a secret before a manifest stores them, wherever they come from.

    Raises:
        ConfigError: they do.
    """
    for place, why in held(settings):
        raise ConfigError(f"{'.'.join(map(str, place))}: {why}", remedy=REMEDY)


def _refusal(source: Source, place: Place, why: str) -> ConfigError:
    origin = next(
        (source.origins[place[:length]] for length in range(len(place), -1, -1) if place[:length] in source.origins),
        None,
    )
    told = f"{'.'.join(map(str, place))}: {why}"
    if origin is not None and origin.kind != "file":
        return ConfigError(f"{origin}: {told}", remedy=REMEDY)
    return ConfigError(told, where=source.path, line=origin.line if origin else None, remedy=REMEDY)


def _is_key(name: str) -> bool:
    return name in NAMED or KEYS.fullmatch(name) is not None


def _named_in(config: Path) -> set[str]:
    """The variables that the file expands."""
    try:
        text = read_whole(config, MOST_CONFIG).decode("utf-8-sig", "replace")
    except (OSError, RaggsError):
        return set()  # whoever reads it next says so
    return {match["name"] for match in VARIABLE.finditer(text) if match["name"]}


@cache
def _tell(file: str, names: str) -> None:
    logger.warning(
        "%s: ignored: %s; a .env may hold keys, RAGGS__ settings and what the YAML names as ${NAME}: set others "
        "in the shell",
        file,
        names,
    )
