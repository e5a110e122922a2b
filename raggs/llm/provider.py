"""One call to a model through litellm: the only module that imports it, and not before it is needed.

litellm is kept quiet and passive: no telemetry, no log lines (they may hold prompts and keys), no price list from the
network, no retries of its own. Whatever it raises leaves here as a `Fault`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from raggs.llm.faults import fault_of
from raggs.llm.messages import Message

if TYPE_CHECKING:
    from types import ModuleType


@dataclass(frozen=True)
class Completion:
    """What a model said. `finish`: "stop", "length" (cut off), "content_filter" or None; tokens None if not told."""

    content: str
    finish: str | None
    refusal: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


async def complete(
    model: str, messages: Sequence[Message], parameters: Mapping[str, Any], api_base: str | None, timeout_s: float
) -> Completion:
    """Ask once.

    Raises:
        Fault: the call failed.
    """
    litellm = library()
    try:
        async with asyncio.timeout(timeout_s):
            response = await litellm.acompletion(
                **parameters,
                model=model,
                messages=list(messages),
                api_base=api_base,
                timeout=timeout_s,
                max_retries=0,
                num_retries=0,
            )
    except exceptions() as error:
        raise fault_of(error, model) from None  # the original may hold a key
    return _completion(response)


def _completion(response: Any) -> Completion:
    choice = response.choices[0] if response.choices else None
    message = getattr(choice, "message", None)
    usage = getattr(response, "usage", None)
    special = getattr(message, "provider_specific_fields", None) or {}
    return Completion(
        content=getattr(message, "content", None) or "",
        finish=getattr(choice, "finish_reason", None),
        refusal=special.get("refusal") or None,
        prompt_tokens=getattr(usage, "prompt_tokens", None) or None,
        completion_tokens=getattr(usage, "completion_tokens", None) or None,
    )


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
    """Everything that a call may raise: litellm's own classes, what they derive from, and time-outs."""
    import openai

    own = vars(library().exceptions).values()
    return (
        *(kind for kind in own if isinstance(kind, type) and issubclass(kind, Exception)),
        openai.OpenAIError,
        OSError,
    )


async def close() -> None:
    """Close the connections that litellm keeps for this loop; nothing where it was never imported."""
    if library.cache_info().currsize:
        from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients

        await close_litellm_async_clients()  # type: ignore[no-untyped-call]
        library().in_memory_llm_clients_cache.flush_cache()
