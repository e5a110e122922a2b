"""Consent for API keys: raggs sends a key to a new address only after the user has approved it.

A configuration may come from another person, and so may the addresses in it. Known addresses are the provider's own
address, this machine, the servers in the shell's environment (``OPENAI_BASE_URL``) and the hosts that the user has
listed. The list is in the variable `TRUSTED` or in the file ``raggs/addresses`` in the user's settings folder, with
one host per line. Every other address is new. If no key would be sent, no approval is needed.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from raggs.base.errors import PrerequisiteError
from raggs.base.secrets import MIN_SECRET_CHARS, is_secret_name
from raggs.base.settings import Settings
from raggs.base.types import TreePath, leaves
from raggs.llm import LLMSettings
from raggs.llm.prices import HOSTS, key_variable, provider_of
from raggs.parts.elastic.server import API_KEY, PASSWORD

TRUSTED = "RAGGS_TRUSTED_HOSTS"
SERVERS = ("_BASE_URL", "_API_BASE", "_API_URL")
SECTIONS_BY_STAGE = {
    "chunks": ("corpus",),
    "compare": ("asked",),
    "ask": ("questions",),
    "filter": ("embed",),
    "embed": ("corpus", "embed"),
    "retrieve": ("corpus", "embed", "retrieve"),
    "judge": ("judge",),
    "rank": ("judge", "rank"),
    "sweep": ("axes", "systems"),
}  # by stage, or for a whole sweep: the sections that name models

_approved: set[Destination] = set()  # addresses approved in this process


class Destination(NamedTuple):
    """An address to which keys would be sent, the setting that names it, and the variables that hold the keys."""

    setting: str
    address: str
    keys: tuple[str, ...]

    @property
    def host(self) -> str:
        """Host and port of the address, in lower case."""
        return urlsplit(self.address).netloc.lower()

    def __str__(self) -> str:
        sent = f"{' and '.join(self.keys)} would be sent to {self.address} ({self.setting})"
        return f"{sent}, an address that you have not approved"


Approve = Callable[[Sequence[Destination]], bool]


def approve_nothing(_: Sequence[Destination]) -> bool:
    """Return False, so that no new address is approved (the default without a user at a terminal)."""
    return False


def permit(config: Settings, stages: Collection[str], approve: Approve = approve_nothing) -> None:
    """Raise an error if a key would be sent to an address that the user has not approved.

    Args:
        stages: stages that may call language models, or "sweep"; Elasticsearch servers are always checked.
        approve: shows the new addresses to the user and returns whether they may be used. An approval is valid for the
            whole process.

    Raises:
        PrerequisiteError: an address is new and was not approved.
    """
    new = [found for found in destinations(config, stages) if found not in _approved and not is_known(found)]
    if new and not approve(new):
        raise PrerequisiteError(
            str(new[0]),
            remedy=f"to approve it, add {new[0].host} to {settings_file()} or to the variable {TRUSTED}, or pass --yes "
            "if the command has this option",
        )
    _approved.update(new)


class _ModelSettings(Settings):
    model: str


class _KeyDestinations(Settings):
    """Settings with addresses: the `llm` section, and the models in parts that the command line names."""

    llm: LLMSettings
    asked: tuple[_ModelSettings, ...]


def permit_parts(llm: LLMSettings, parts: Iterable[Settings], approve: Approve = approve_nothing) -> None:
    """Raise an error if a key of a part's model would be sent to a new address that the user has not approved.

    This is `permit` for parts that the command line names. Only addresses in `llm` can be new: the user typed the
    address in a part's own settings.

    Raises:
        PrerequisiteError: an address is new and was not approved.
    """
    found = [value for part in parts for at, value in leaves(part.model_dump(mode="json")) if at[-1:] == ("model",)]
    models = tuple(_ModelSettings(model=value) for value in found if isinstance(value, str))
    permit(_KeyDestinations(llm=llm, asked=models), ["compare"], approve)


def destinations(config: Settings, stages: Collection[str]) -> Iterator[Destination]:
    """Yield the addresses in a configuration to which a key from the environment would be sent."""
    tree = config.model_dump(mode="json")
    sections = {section for stage in stages for section in SECTIONS_BY_STAGE.get(stage, ())}
    asked = [found for name in sorted(sections) for found in leaves(tree[name])]
    models = [value for place, value in asked if place[-1:] == ("model",) and isinstance(value, str)]
    for place, value in leaves(tree):
        keys: Collection[str] = ()
        if place[-1:] == ("api_base",) and models:
            around = _mapping_at(tree, place[:-1])
            named = around.get("api_key_env")
            own = [str(around["model"])] if "model" in around else [model for model in models if model in place]
            keys = [str(named)] if named else [key for model in own or models for key in _keys(model)]
        elif place[-1:] == ("url",) and _mapping_at(tree, place[:-1]).get("type") == "elasticsearch":
            keys = (API_KEY, PASSWORD)
        held = tuple(dict.fromkeys(key for key in keys if len(os.environ.get(key, "")) >= MIN_SECRET_CHARS))
        if isinstance(value, str) and held:
            yield Destination(".".join(map(str, place)), value, held)


def is_known(found: Destination) -> bool:
    """Return whether the user's keys may be sent to this address without approval."""
    parts = urlsplit(found.address)
    host = (parts.hostname or "").lower()
    if _is_here(host) or (host in HOSTS.values() and parts.scheme == "https"):
        return True
    listed = _listed_hosts()  # an entry without a port covers all ports
    return host in listed or found.host in listed | _named_by_the_shell()


def trust_hosts(hosts: Collection[str]) -> None:
    """Store hosts in the user's list of trusted hosts; if the list cannot be written, they stay new."""
    file = settings_file()
    fresh = [host for host in hosts if host not in _listed_hosts()]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as lines:
            lines.writelines(f"{host}\n" for host in dict.fromkeys(fresh))
    except OSError:
        return


def settings_file() -> Path:
    """Return the path of the user's list of trusted hosts."""
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "raggs" / "addresses"


def _keys(model: str) -> Iterator[str]:
    """Yield the variables that may hold a key for the model: the model's own variable, then others of the same
    provider.
    """
    own = key_variable(model)
    if own is None:
        return
    yield own
    makers = {provider_of(model).partition("_")[0].upper()} | {own.partition("_")[0]}
    yield from (name for name in sorted(os.environ) if name.partition("_")[0] in makers and is_secret_name(name))


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listed_hosts() -> set[str]:
    try:
        text = settings_file().read_text(encoding="utf-8")
    except (OSError, ValueError):
        text = ""
    lines = [line.partition("#")[0] for line in text.splitlines()] + [os.environ.get(TRUSTED, "")]
    return {word.lower() for line in lines for word in re.split(r"[\s,]+", line) if word}


def _named_by_the_shell() -> set[str]:
    """Return the hosts of servers named in the process environment; a `.env` file cannot add any."""
    named = (value for name, value in os.environ.items() if name.endswith(SERVERS) and "://" in value)
    return {urlsplit(value).netloc.lower() for value in named}


def _mapping_at(tree: object, place: TreePath) -> Mapping[str, object]:
    """Return the mapping at a path of keys, or an empty mapping."""
    for step in place:
        tree = tree.get(step) if isinstance(tree, Mapping) else tree[int(step)] if isinstance(tree, list) else None
    return tree if isinstance(tree, Mapping) else {}
