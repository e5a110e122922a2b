"""One call to a model: over plain HTTP where the protocol is OpenAI's (`raggs.llm.wire`), through litellm elsewhere.

The only module that imports litellm, and not before it is needed. litellm is kept quiet and passive: no telemetry, no
log lines (they may hold prompts and keys), no price list from the network, no retries of its own. Whatever goes wrong
leaves here as a `Fault`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from raggs.llm import wire
from raggs.llm.faults import fault_of
from raggs.llm.limits import lowered
from raggs.llm.messages import Message

if TYPE_CHECKING:
    from types import ModuleType


@dataclass(frozen=True)
class Answer:
    """What came back. Tokens are None where the server did not count; `headers` go by their lower-case names."""

    prompt_tokens: int | None
    completion_tokens: int | None
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Completion(Answer):
    """What a model said. `finish`: "stop", "length" (cut off), "content_filter" or None."""

    content: str
    finish: str | None
    refusal: str | None


@dataclass(frozen=True)
class Embeddings(Answer):
    """What should be one vector for each text, as it came: neither number, order nor values are checked yet."""

    data: Sequence[Any]


async def complete(
    model: str, messages: Sequence[Message], parameters: Mapping[str, Any], api_base: str | None, timeout_s: float
) -> Completion:
    """Ask once.

    Raises:
        Fault: the call failed.
    """
    sent = {"messages": list(messages), **parameters}
    if wire.speaks(model, parameters, "chat"):
        answer, headers = await _post("chat/completions", model, sent, api_base, timeout_s)
    else:
        answer, headers = await _litellm("acompletion", model, sent, api_base, timeout_s)
    return completion_of(answer, headers)


def completion_of(answer: Mapping[str, Any], headers: Mapping[str, str]) -> Completion:
    """What a model said, from the JSON of a chat completion; empty where it says nothing."""
    choice = _first(answer.get("choices"))
    message = _object(choice.get("message"))
    special = _object(message.get("provider_specific_fields"))
    return Completion(
        **_usage(answer, headers),
        content=_text(message.get("content")) or "",
        finish=_text(choice.get("finish_reason")),
        refusal=_text(message.get("refusal")) or _text(special.get("refusal")),
    )


async def embed(
    model: str, texts: Sequence[str], parameters: Mapping[str, Any], api_base: str | None, timeout_s: float
) -> Embeddings:
    """Ask for vectors once.

    Raises:
        Fault: the call failed.
    """
    sent = {"input": list(texts), **parameters}
    if wire.speaks(model, parameters, "embedding"):
        answer, headers = await _post("embeddings", model, {**sent, "encoding_format": "float"}, api_base, timeout_s)
    else:
        answer, headers = await _litellm("aembedding", model, sent, api_base, timeout_s)
    data = answer.get("data")
    return Embeddings(**_usage(answer, headers), data=data if isinstance(data, list) else [])


async def _post(
    path: str, model: str, body: Mapping[str, Any], api_base: str | None, timeout_s: float
) -> tuple[dict[str, Any], dict[str, str]]:
    try:
        answer, headers = await wire.post(path, model, body, api_base, timeout_s)
    except wire.exceptions() as error:
        raise fault_of(error, model) from None  # the original may hold a key
    return answer, lowered(headers)


async def _litellm(
    function: str, model: str, sent: Mapping[str, Any], api_base: str | None, timeout_s: float
) -> tuple[dict[str, Any], dict[str, str]]:
    ask = getattr(library(), function)
    quiet = {"timeout": timeout_s, "max_retries": 0, "num_retries": 0}
    try:
        async with asyncio.timeout(timeout_s):
            response = await ask(**sent, model=model, api_base=api_base, **quiet)
    except exceptions() as error:
        raise fault_of(error, model) from None  # the original may hold a key
    hidden = getattr(response, "_hidden_params", None) or {}
    return response.model_dump(), lowered(hidden.get("additional_headers") or {})


def _usage(answer: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    usage = _object(answer.get("usage"))
    counts = {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens")}
    return {name: count if isinstance(count, int) and count > 0 else None for name, count in counts.items()} | {
        "headers": headers
    }


def _first(found: Any) -> dict[str, Any]:
    return _object(found[0]) if isinstance(found, list) and found else {}


def _object(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _text(found: Any) -> str | None:
    return found if isinstance(found, str) and found else None


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
    )


async def close() -> None:
    """Close the connections that are kept for this loop."""
    await wire.close()
    if library.cache_info().currsize:
        from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients

        await close_litellm_async_clients()  # type: ignore[no-untyped-call]
        library().in_memory_llm_clients_cache.flush_cache()
