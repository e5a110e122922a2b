"""Prices of models per token or search, token counts of texts, addresses of models, and the environment variables of
keys.

The price list is a file of the litellm package. It is read without importing litellm, which takes seconds, and whose
own loader downloads a newer list. Prices in `llm.prices` take precedence.

`require_keys` checks before any call that the keys of models are set. No key leaves this module. The check is certain
for providers that accept only one environment variable as credential. Other providers (clouds with profiles, roles or
several variables) may have other credentials, so an empty variable proves nothing.
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
from raggs.base.types import as_list, as_text
from raggs.llm.settings import LLMSettings, Price

PRICE_FILE = "model_prices_and_context_window_backup.json"
PER_MILLION = 1_000_000
PER_TEXT = 4  # tokens that a chat format adds to each message
LIKELY_BYTES = 4.5  # bytes per token in prose, for current vocabularies
LEAST_SIMILARITY = 0.5  # minimum similarity of a suggested model name
LEAST_REMEMBERED, REMEMBERED_STEP = 1024, 128  # minimum and step of cached prompt prefixes, in tokens
REASONING = frozenset({"reasoning_effort", "thinking"})  # parameters that request reasoning
HIDDEN = 1000  # assumed tokens of hidden reasoning per answer
DECISIONS_PATH = "/v1/decisions"
DECIDERS = frozenset({"strands_decider", "typesafe"})  # providers that have only decision models
# Other providers whose decision models litellm can call.
DECISION_SERVERS = frozenset(
    {"azure_ai", "cloudflare", "databricks", "hosted_vllm", "openai", "openrouter", "perplexity"}
)
UNASKED = frozenset({"openai", "azure"})  # providers that write parts of prompts into their cache without marks
# Providers with a single host.
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
}
# Providers whose variable is not <PROVIDER>_API_KEY. None: a local server, which needs no key.
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
    """Return the price in litellm's list, or None if it has none. The price is zero for providers that need no key."""
    if key_variable(model) is None:
        return Price(input=0, output=0)
    entry = _entry(model)
    searched = entry.get("input_cost_per_query", 0) if entry.get("mode") == "rerank" else 0
    free = 0 if searched else None  # models charged by the search may have no price per token
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
    except ValueError:  # a negative price
        return None


def _per_million(found: object) -> float | None:
    """Return a price per million tokens. None if it is missing or zero, because the list does not distinguish the two
    cases.
    """
    return found * PER_MILLION if isinstance(found, int | float) and found else None


def provider_of(model: str) -> str:
    """Return the provider's name: the part before the first slash, otherwise from the list, otherwise "openai"."""
    head, slash, _ = model.partition("/")
    return head if slash else str(_entry(model).get("litellm_provider", "openai"))


def address_of(model: str, api_base: str | None) -> str | None:
    """Return the address of `model` from the settings or the environment, or None for the provider's own address.

    Raises:
        ConfigError: the address in the environment is invalid.
    """
    prefix = provider_of(model).upper()
    for name in () if api_base else (f"{prefix}_BASE_URL", f"{prefix}_API_BASE"):
        if address := os.environ.get(name):
            try:
                if "@" in urlsplit(address).netloc:
                    raise ValueError("it contains a user name or a password, which must not be in an address")
                return http_address(address)
            except ValueError as error:
                raise ConfigError(f"environment {name}: {error}", remedy="correct it, or unset it") from error
    return api_base


def mode_of(model: str) -> str | None:
    """Return the model's type from the list: "chat", "embedding", "responses", ...; None if unknown."""
    return as_text(_entry(model).get("mode"))


def decides(model: str) -> bool:
    """Return whether the model answers decision requests (a probability per option), according to the list or because
    its provider has only such models.
    """
    entry = _entry(model)
    listed = entry.get("mode") == "evaluation" or DECISIONS_PATH in as_list(entry.get("supported_endpoints"))
    return provider_of(model) in (DECIDERS | DECISION_SERVERS if listed else DECIDERS)


def reasons(model: str, parameters: Mapping[str, object]) -> bool:
    """Return whether answers contain hidden reasoning tokens, according to the list. Some models reason only on
    request.
    """
    asked = parameters.keys() & REASONING
    return bool(_entry(model).get("supports_reasoning")) and (bool(asked) or "claude" not in model)


def longest_answer(model: str) -> int:
    """Return the maximum answer length of `model` in tokens, from the list; 0 if unknown."""
    found = _entry(model).get("max_output_tokens")
    return found if isinstance(found, int) and found > 0 else 0


def longest_prompt(model: str) -> int:
    """Return the maximum prompt length of `model` in tokens, from the list; 0 if unknown."""
    found = _entry(model).get("max_input_tokens")
    return int(found) if isinstance(found, int | float) and found > 0 else 0


def likely_tokens(estimated: int) -> int:
    """Convert a result of `estimate_tokens` to the likely number of tokens."""
    return round(estimated * BYTES_PER_TOKEN / LIKELY_BYTES)


def nearest_model(model: str) -> str | None:
    """Return the model of the same provider in the list whose name is most similar to `model`.

    None if the list contains `model` itself, has no model of that provider, or no name is similar.
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
    """Return the vector length of an embedding model, from the list; None if unknown."""
    size = _entry(model).get("output_vector_size")
    return size if isinstance(size, int) else None


def key_variable(model: str, named: str | None = None) -> str | None:
    """Return the environment variable with the key for `model`, or None if the model needs no key. `named` is the
    variable in the settings, if any.
    """
    if named is not None:
        return named
    provider = provider_of(model)
    return KEY_VARIABLES.get(provider, f"{provider.upper()}_API_KEY")


def estimate_tokens(text: str) -> int:
    """Return a conservative estimate: one token per 3 bytes of UTF-8, plus 4 for the message format.

    A token of current vocabularies has about 4.5 bytes of English, 4 of French or 3 of Chinese, so English and French
    prose is overestimated. Text that is mostly digits, hexadecimals or emoji can be underestimated.
    """
    return len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN + PER_TEXT


def remembered_tokens(model: str, beginning: str) -> int:
    """Return how many tokens of a common prompt prefix the provider of `model` likely caches.

    The result is 0 below the minimum in the price list, or below 1,024 tokens if the list states none. Otherwise, it is
    a multiple of 128. This is OpenAI's rule (guide "Prompt caching"); other providers differ little. The result is
    based on the likely number of tokens, which is below `estimate_tokens`.
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
    """Return the variable of a model's key, and whether it is set. Return None if the model needs no key.

    The second value is None if the variable is empty but other credentials may exist.
    """
    named = settings.of(model).api_key_env
    variable = key_variable(model, named)
    if variable is None:
        return None
    there = bool(os.environ.get(variable, "").strip())
    return variable, there or (False if named is not None or provider_of(model) in ONE_KEY else None)


class CallTarget(NamedTuple):
    """Destination of a model's calls: host, and environment variable of the key that is sent, if any."""

    model: str
    host: str
    key: str | None


def call_target(model: str, settings: LLMSettings) -> CallTarget:
    """Return the destination of calls of `model` under these settings and this environment. No call is made.

    Raises:
        ConfigError: the address in the environment is invalid.
    """
    address, provider = address_of(model, settings.base_of(model)), provider_of(model)
    host = urlsplit(address).netloc.rpartition("@")[2] if address else HOSTS.get(provider, f"the server of {provider}")
    return CallTarget(model, host, key_variable(model, settings.of(model).api_key_env))


def require_keys(models: Iterable[str], settings: LLMSettings) -> None:
    """Check before any call that all keys are set.

    Raises:
        PrerequisiteError: a model's key is not set, and its provider accepts no other credentials.
    """
    for model in dict.fromkeys(models):
        found = key_state(model, settings)
        if found is not None and found[1] is False:
            remedy = "set it in the environment, or in a .env file next to the configuration"
            raise PrerequisiteError(f"{model} needs {found[0]}, which is not set", remedy=remedy)
