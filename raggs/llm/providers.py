"""Where a call goes: to `raggs.llm.http` where the server speaks OpenAI's protocol, through litellm elsewhere.

The only module that imports litellm, and not before it is needed. litellm is kept quiet and passive: no telemetry, no
log lines (they may hold prompts and keys), no price list from the network, no retries of its own. Whatever goes wrong
leaves here as a `Fault`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Literal

from raggs.base.jsontypes import JsonObject, as_list
from raggs.llm import http
from raggs.llm.faults import Fault, fault_of
from raggs.llm.limits import lowered
from raggs.llm.prefixes import marked
from raggs.llm.prices import address_of, key_variable, provider_of
from raggs.llm.redirects import refused
from raggs.llm.settings import LLMSettings

if TYPE_CHECKING:
    from types import ModuleType

# Providers whose servers are asked for scores at `<address>/rerank`, in Cohere's form, wherever an address is set.
RERANKS = frozenset(
    {"cohere", "hosted_vllm", "infinity", "jina_ai", "litellm_proxy", "llamafile", "openai", "together_ai", "voyage"}
)
Kind = Literal["chat", "embedding", "rerank"]
Answered = tuple[Mapping[str, object], dict[str, str]]  # the JSON object, and headers by their lower-case names


def direct(kind: Kind, model: str, parameters: Iterable[str], settings: LLMSettings) -> bool:
    """Whether a call goes straight to its server, and not through litellm."""
    if kind != "rerank":
        return http.speaks(model, parameters, kind)
    provider = provider_of(model)
    return provider == http.PROVIDER or (provider in RERANKS and settings.base_of(model) is not None)


def prepare(kind: Kind, model: str, parameters: Iterable[str], settings: LLMSettings) -> None:
    """Load what such a call needs; litellm takes seconds, which no call's own time is to hold."""
    if direct(kind, model, parameters, settings):
        http.exceptions()
    else:
        exceptions()


async def chat(model: str, body: Mapping[str, object], settings: LLMSettings) -> Answered:
    """The answer to one chat completion; `body` holds all but the model's name.

    Raises:
        Fault: the call failed.
    """
    told = marked(model, body, home=address_of(model, settings.base_of(model)) is None)
    try:
        if direct("chat", model, body.keys() - {"messages"}, settings):
            return await _post("chat/completions", model, told, settings)
        return await _litellm("acompletion", model, told, settings)
    except Fault as fault:
        fault.about_marks = fault.about_marks and told is not body
        raise


async def embeddings(model: str, body: Mapping[str, object], settings: LLMSettings) -> Answered:
    """The answer to one request for vectors; `body` holds all but the model's name.

    Raises:
        Fault: the call failed.
    """
    if direct("embedding", model, body.keys() - {"input"}, settings):
        return await _post("embeddings", model, {**body, "encoding_format": "float"}, settings)
    return await _litellm("aembedding", model, body, settings)


async def rerank(model: str, body: Mapping[str, object], settings: LLMSettings) -> Answered:
    """The answer to one request for scores of all documents; `body` holds all but the model's name and the form.

    Raises:
        Fault: the call failed.
    """
    wanted = len(as_list(body["documents"]))
    if direct("rerank", model, (), settings):
        count = {"top_k" if provider_of(model) == "voyage" else "top_n": wanted}
        return await _post("rerank", model, {**body, **count, "return_documents": False}, settings)
    return await _litellm("arerank", model, {**body, "top_n": wanted, "return_documents": False}, settings)


async def close() -> None:
    """Close the connections that are kept for this loop."""
    await http.close()
    if library.cache_info().currsize:
        from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients

        await close_litellm_async_clients()  # type: ignore[no-untyped-call]
        library().in_memory_llm_clients_cache.flush_cache()


@cache
def library() -> ModuleType:
    """litellm, imported and silenced."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.turn_off_message_logging = True
    for name in ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return litellm


@cache
def exceptions() -> tuple[type[Exception], ...]:
    """Everything that a call of litellm may raise: its own classes, what they derive from, and time-outs."""
    import openai

    own = vars(library().exceptions).values()
    return (
        *(kind for kind in own if isinstance(kind, type) and issubclass(kind, Exception)),
        openai.OpenAIError,
        OSError,
        RecursionError,  # an answer nested too deeply to be read
    )


async def _post(path: str, model: str, body: Mapping[str, object], settings: LLMSettings) -> Answered:
    key_env = settings.of(model).api_key_env
    server = http.Server(model, address_of(model, settings.base_of(model)), settings.timeout_s, key_env)
    try:
        answer, headers = await server.ask(path, body)
    except http.exceptions() as error:
        raise fault_of(error, model, key_env) from None  # the original may hold a key
    return answer, lowered(headers)


def _key(model: str, key_env: str | None) -> dict[str, str]:
    """The key, where litellm would not find it by itself, or not without the line break that a file gave it."""
    key = os.environ.get(key_variable(model, key_env) or "", "")
    return {"api_key": key.strip()} if key_env is not None or key != key.strip() else {}


async def _litellm(function: str, model: str, body: Mapping[str, object], settings: LLMSettings) -> Answered:
    ask = getattr(library(), function)
    key_env = settings.of(model).api_key_env
    quiet = {"timeout": settings.timeout_s, "max_retries": 0, "num_retries": 0, **_key(model, key_env)}
    with refused() as elsewhere:
        try:
            async with asyncio.timeout(settings.timeout_s):
                response = await ask(**body, model=model, api_base=settings.base_of(model), **quiet)
        except exceptions() as error:
            found = elsewhere[0] if elsewhere else error
            raise fault_of(found, model, key_env) from None  # the original may hold a key
    hidden = getattr(response, "_hidden_params", None) or {}
    answer: JsonObject = response.model_dump()
    return answer, lowered(hidden.get("additional_headers") or {})
