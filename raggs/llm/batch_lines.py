"""The lines of a batch: a call as a line, and a line as an answer. Nothing here sends or waits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from raggs.errors import ProviderError
from raggs.hashing import canonical_json
from raggs.llm.faults import GARBLED, Fault, Rule, Treatment, fault_of
from raggs.llm.provider import Completion

if TYPE_CHECKING:
    from raggs.llm.caller import Call

UNANSWERED = Rule(Treatment.RETRY, ProviderError, "the batch ended without an answer to this question")


class LineError(Exception):
    """What the provider says went wrong with one line."""

    def __init__(self, words: str, status: int | None) -> None:
        super().__init__(words)
        self.status_code = status


def line_of(call: Call, url: str, *, own_server: bool) -> bytes:
    """A call as one line with its end; its custom id is the key of its answer in the cache."""
    parameters = dict(call.parameters)
    if not own_server and "max_tokens" in parameters:  # OpenAI's name for it, which litellm else puts in
        parameters["max_completion_tokens"] = parameters.pop("max_tokens")
    body = {
        **parameters,
        "model": call.model.partition("/")[2] or call.model,
        "messages": list(call.messages),
        "response_format": call.response_format,
    }
    return canonical_json({"custom_id": call.key, "method": "POST", "url": url, "body": body}).encode() + b"\n"


def read_line(line: bytes, model: str) -> tuple[str, Completion | Fault] | None:
    """The key of a line and its answer, or what went wrong; None where the line says nothing of use."""
    try:
        found = json.loads(line)
        key, response, error = found["custom_id"], found.get("response"), found.get("error")
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    if not isinstance(key, str):
        return None
    if not isinstance(response, Mapping):
        return key, unanswered(_words(error))
    status, body = response.get("status_code"), response.get("body")
    if status != 200:
        return key, fault_of(LineError(_words(body), status if isinstance(status, int) else None), model)
    try:
        return key, completion_of(body)
    except (TypeError, KeyError, IndexError, AttributeError):
        return key, Fault(GARBLED, GARBLED.error(GARBLED.message))


def completion_of(body: Any) -> Completion:
    """What a model said, from the JSON of a chat completion.

    Raises:
        TypeError, KeyError, IndexError, AttributeError: it is none.
    """
    choice = body["choices"][0]
    message, usage = choice["message"], body.get("usage") or {}
    return Completion(
        content=_text(message.get("content")) or "",
        finish=_text(choice.get("finish_reason")),
        refusal=_text(message.get("refusal")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
    )


def unanswered(words: str = "") -> Fault:
    """The fault of a question that a batch left open."""
    return Fault(UNANSWERED, ProviderError(UNANSWERED.message + (f": {words}" if words else "")))


def _words(error: Any) -> str:
    """The message of an error as providers nest it."""
    while isinstance(error, Mapping) and "error" in error:
        error = error["error"]
    return str(error.get("message") or error.get("code") or "") if isinstance(error, Mapping) else ""


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError("not text")
    return value or None


def _count(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None
