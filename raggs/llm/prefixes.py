"""How a provider is told what of a prompt comes again, where it has to be told; the words stay what they are.

Most providers remember the beginnings of prompts by themselves. Two do not find ours: Anthropic remembers what is
marked and nothing else (guide "Prompt caching"); OpenAI's models that charge for writing into their cache (GPT-5.6 and
later) remember whole prompts, up to the passage that no other prompt holds, unless marks say otherwise (its Python
library, `PromptCacheOptions`). Both are told that the system message comes again, where that is long enough to be
remembered; the latter otherwise that nothing does, so that nothing is charged for. Marks are no part of a key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from raggs.base.jsontypes import as_list, as_object, as_text
from raggs.llm.messages import Message
from raggs.llm.prices import UNASKED, list_price, provider_of, remembered_tokens

SURE_TOKENS = 1024  # below, no provider of `UNASKED` writes anything


def marked(model: str, body: Mapping[str, object], *, home: bool) -> Mapping[str, object]:
    """The body of a chat completion with marks, for who needs them. `home`: whether the provider itself is asked."""
    provider = provider_of(model)
    if not home or model in _refused or "prompt_cache_options" in body or "cache_control_injection_points" in body:
        return body
    if provider == "anthropic":
        return _with_mark(model, body, {"cache_control": {"type": "ephemeral"}})
    if provider == "openai" and charges_for_writing(model):
        options = {"prompt_cache_options": {"mode": "explicit"}}
        return _with_mark(model, body, {"prompt_cache_breakpoint": {"mode": "explicit"}}) | options
    return body


def unmark(model: str) -> None:
    """From now on without marks: its provider does not know its own. They are worth money, and no answer."""
    _refused.add(model)


_refused: set[str] = set()


def charges_for_writing(model: str) -> bool:
    """Whether its provider writes prompts into its cache without being told to, and charges for that."""
    price = list_price(model) if provider_of(model) in UNASKED else None
    return price is not None and price.cache_write is not None and price.cache_write > price.input


def written_unasked(model: str, tokens: int, *, home: bool) -> int:
    """Of a prompt of so many tokens, those that its provider writes into its cache, as no mark keeps it from that."""
    told = home and provider_of(model) == "openai"
    return tokens if tokens >= SURE_TOKENS and not told and charges_for_writing(model) else 0


def most_written(model: str, messages: Sequence[Message], prompt_tokens: int) -> int:
    """Tokens of a prompt that its provider writes into its cache, at most."""
    if provider_of(model) == "anthropic":
        system = next((message["content"] for message in messages if message["role"] == "system"), "")
        return prompt_tokens if remembered_tokens(model, system) else 0
    return prompt_tokens if prompt_tokens >= SURE_TOKENS and charges_for_writing(model) else 0


def _with_mark(model: str, body: Mapping[str, object], mark: Mapping[str, object]) -> dict[str, object]:
    """The body, its system message marked if it is long enough."""
    messages = [_marked_message(model, as_object(message), mark) for message in as_list(body.get("messages"))]
    return {**body, "messages": messages}


def _marked_message(model: str, message: Mapping[str, object], mark: Mapping[str, object]) -> Mapping[str, object]:
    text = as_text(message.get("content")) or ""
    if message.get("role") != "system" or not remembered_tokens(model, text):
        return message
    return {**message, "content": [{"type": "text", "text": text, **mark}]}
