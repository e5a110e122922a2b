"""Is the key there that a model needs? Said before anything is asked; no key leaves this module.

Sure of providers whose only credential is one variable; of others (clouds with profiles, roles or several names) an
empty variable says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from raggs.base.errors import PrerequisiteError
from raggs.llm.prices import HOSTS, address_of, key_variable, provider_of
from raggs.llm.settings import LLMSettings

ONE_KEY = frozenset({"anthropic", "cohere", "deepseek", "groq", "mistral", "openai", "openrouter", "xai"})


def key_state(model: str, settings: LLMSettings) -> tuple[str, bool | None] | None:
    """The variable of a model's key, and whether it is set; None for one that may do without. None: needs no key."""
    named = settings.of(model).api_key_env
    variable = key_variable(model, named)
    if variable is None:
        return None
    there = bool(os.environ.get(variable, "").strip())
    return variable, there or (False if named is not None or provider_of(model) in ONE_KEY else None)


class CallTarget(NamedTuple):
    """Where the calls of a model go: its host, and the environment variable of the key that is sent, if any."""

    model: str
    host: str
    key: str | None


def call_target(model: str, settings: LLMSettings) -> CallTarget:
    """Return where calls of `model` would go under these settings and this environment. Nothing is called.

    Raises:
        ConfigError: the environment names an address that cannot be.
    """
    address, provider = address_of(model, settings.base_of(model)), provider_of(model)
    host = urlsplit(address).netloc.rpartition("@")[2] if address else HOSTS.get(provider, f"the server of {provider}")
    return CallTarget(model, host, key_variable(model, settings.of(model).api_key_env))


def require_keys(models: Iterable[str], settings: LLMSettings) -> None:
    """Find a missing key before anything is asked.

    Raises:
        PrerequisiteError: a model's key is not set.
    """
    for model in dict.fromkeys(models):
        found = key_state(model, settings)
        if found is not None and found[1] is False:
            remedy = "set it in the environment, or in a .env beside the configuration"
            raise PrerequisiteError(f"{model} needs {found[0]}, which is not set", remedy=remedy)
