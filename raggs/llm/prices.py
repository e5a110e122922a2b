"""What models cost by token or search, how many tokens a text has, where a model is asked, and where its key lies.

The list is the one that litellm ships, read as a file: importing litellm takes seconds, and its own loader would go
to the network for a newer one. What the user sets in `llm.prices` goes before it.

Is the key there that a model needs? Said before anything is asked; no key leaves this module.

Sure of providers whose only credential is one variable; of others (clouds with profiles, roles or several names) an
empty variable says nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from raggs.base.errors import ConfigError, PrerequisiteError
from raggs.base.settings import http_address
from raggs.base.text import BYTES_PER_TOKEN, nearest, similarity
from raggs.base.types import as_text
from raggs.llm.settings import LLMSettings, Price

PRICE_FILE = "model_prices_and_context_window_backup.json"
PER_MILLION = 1_000_000
PER_TEXT = 4  # tokens that a chat format adds to each message
LIKELY_BYTES = 4.5  # of a token, in prose of current vocabularies
LEAST_SIMILARITY = 0.5  # of a name that is proposed for another
LEAST_REMEMBERED, REMEMBERED_STEP = 1024, 128  # tokens of a beginning that providers remember
REASONING = frozenset({"reasoning_effort", "thinking"})  # parameters that ask for it
HIDDEN = 1000  # tokens of hidden reasoning that are assumed for an answer
UNASKED = frozenset({"openai", "azure"})  # they write what they will of a prompt into their cache
# Providers whose variable is not <PROVIDER>_API_KEY. None: a server of one's own, which needs no key.
HOSTS: Mapping[str, str] = {
    "anthropic": "api.anthropic.com",
    "cohere": "api.cohere.com",
    "deepseek": "api.deepseek.com",
    "fireworks_ai": "api.fireworks.ai",
    "gemini": "generativelanguage.googleapis.com",
    "groq": "api.groq.com",
    "jina_ai": "api.jina.ai",
    "mistral": "api.mistral.ai",
    "openai": "api.openai.com",
    "openrouter": "openrouter.ai",
    "perplexity": "api.perplexity.ai",
    "together_ai": "api.together.xyz",
    "voyage": "api.voyageai.com",
    "xai": "api.x.ai",
}  # of providers whose own address is one host
KEY_VARIABLES: Mapping[str, str | None] = {
    "bedrock": "AWS_ACCESS_KEY_ID",
    "fireworks_ai": "FIREWORKS_AI_API_KEY",
    "github": "GITHUB_API_KEY",
    "hosted_vllm": None,
    "llamafile": None,
    "lm_studio": None,
    "ollama": None,
    "ollama_chat": None,
    "perplexity": "PERPLEXITYAI_API_KEY",
    "sagemaker": "AWS_ACCESS_KEY_ID",
    "together_ai": "TOGETHERAI_API_KEY",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
}


def list_price(model: str) -> Price | None:
    """The price in litellm's list; zero on a server of one's own; None where the list has no price of that kind."""
    if key_variable(model) is None:
        return Price(input=0, output=0)
    entry = _entry(model)
    searched = entry.get("input_cost_per_query", 0) if entry.get("mode") == "rerank" else 0
    free = 0 if searched else None  # what is paid by the search may have no price by token
    sent, received = entry.get("input_cost_per_token", free), entry.get("output_cost_per_token", free)
    if not (isinstance(sent, int | float) and isinstance(received, int | float) and isinstance(searched, int | float)):
        return None
    try:
        return Price(
            input=sent * PER_MILLION,
            output=received * PER_MILLION,
            per_1k_searches=searched * 1000,
            cached_input=_per_million(entry.get("cache_read_input_token_cost")),
            cache_write=_per_million(entry.get("cache_creation_input_token_cost")),
        )
    except ValueError:  # a negative one
        return None


def _per_million(found: object) -> float | None:
    """A price by the token; None where there is none, or it is zero: what is not charged for is not told apart."""
    return found * PER_MILLION if isinstance(found, int | float) and found else None


def provider_of(model: str) -> str:
    """The provider's name: what stands before the first slash, else what the list says, else "openai"."""
    head, slash, _ = model.partition("/")
    return head if slash else str(_entry(model).get("litellm_provider", "openai"))


def address_of(model: str, api_base: str | None) -> str | None:
    """Where `model` is asked, by the settings or the environment; None at its provider's own address.

    Raises:
        ConfigError: the environment names an address that cannot be.
    """
    prefix = provider_of(model).upper()
    for name in () if api_base else (f"{prefix}_BASE_URL", f"{prefix}_API_BASE"):
        if address := os.environ.get(name):
            try:
                if "@" in urlsplit(address).netloc:
                    raise ValueError("it holds a user's name or a password, which does not belong into an address")
                return http_address(address)
            except ValueError as error:
                raise ConfigError(f"environment {name}: {error}", remedy="set it right, or unset it") from error
    return api_base


def mode_of(model: str) -> str | None:
    """How the model is asked, by the list: "chat", "embedding", "responses", ...; None where it says nothing."""
    return as_text(_entry(model).get("mode"))


def reasons(model: str, parameters: Mapping[str, object]) -> bool:
    """Whether answers hold tokens of hidden reasoning, by the list; some models reason only when told to."""
    asked = parameters.keys() & REASONING
    return bool(_entry(model).get("supports_reasoning")) and (bool(asked) or "claude" not in model)


def longest_answer(model: str) -> int:
    """Tokens of the longest answer that `model` can give, by the list; 0 where it says nothing."""
    found = _entry(model).get("max_output_tokens")
    return found if isinstance(found, int) and found > 0 else 0


def longest_prompt(model: str) -> int:
    """Tokens of the longest prompt that `model` reads, by the list; 0 where it says nothing."""
    found = _entry(model).get("max_input_tokens")
    return int(found) if isinstance(found, int | float) and found > 0 else 0


def likely_tokens(estimated: int) -> int:
    """What so many tokens of `estimate_tokens` are likely to be."""
    return round(estimated * BYTES_PER_TOKEN / LIKELY_BYTES)


def nearest_model(model: str) -> str | None:
    """Return the model of the list whose name resembles `model` most, of the same provider.

    None if the list has `model` itself, has no model of that provider, or nothing resembles it.
    """
    if _entry(model):
        return None
    provider, (head, slash, name) = provider_of(model), model.partition("/")
    prefix = f"{head}/" if slash else ""
    names = {
        known.removeprefix(f"{provider}/")
        for known, entry in _table().items()
        if entry.get("litellm_provider") == provider and "/" not in known.removeprefix(f"{provider}/")
    }
    meant = name if slash else model
    found = nearest(meant, names)
    if found is None or (meant not in found and similarity(meant, found) < LEAST_SIMILARITY):
        return None
    return prefix + found


def vector_size(model: str) -> int | None:
    """Length of an embedding model's vectors, by the list; None where it says nothing."""
    size = _entry(model).get("output_vector_size")
    return size if isinstance(size, int) else None


def key_variable(model: str, named: str | None = None) -> str | None:
    """The environment variable that holds the key for `model`; None where no key is needed.

    `named`: the one that the settings name, if they do.
    """
    if named is not None:
        return named
    provider = provider_of(model)
    return KEY_VARIABLES.get(provider, f"{provider.upper()}_API_KEY")


def estimate_tokens(text: str) -> int:
    """A conservative estimate: one token for every 3 bytes of UTF-8, and 4 for the message around it.

    Current vocabularies take about 4.5 bytes of English, 4 of French and 3 of Chinese for a token, so prose is
    overestimated; only text that is mostly digits, hexadecimals or emoji can be underestimated.
    """
    return len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN + PER_TEXT


def remembered_tokens(model: str, beginning: str) -> int:
    """Tokens of what all prompts of a task begin with, as far as a provider of `model` is likely to remember them.

    Steps of 128 tokens from 1,024 on, or what the list says: OpenAI's rule (guide "Prompt caching"), on which others
    differ little. Counted by what texts are likely to hold, which is less than `estimate_tokens` allows for.
    """
    likely = likely_tokens(estimate_tokens(beginning))
    least = _entry(model).get("prompt_cache_min_tokens")
    if likely < (least if isinstance(least, int | float) else LEAST_REMEMBERED):
        return 0
    return likely - likely % REMEMBERED_STEP


def _entry(model: str) -> Mapping[str, object]:
    table = _table()
    if model in table:
        return table[model]
    provider, _, name = model.partition("/")
    entry = table.get(name, {})
    return entry if str(entry.get("litellm_provider", "")).startswith(provider) else {}


@cache
def _table() -> dict[str, Mapping[str, object]]:
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    try:
        table = json.loads(Path(spec.origin).with_name(PRICE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: entry for name, entry in table.items() if isinstance(entry, dict)}


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
