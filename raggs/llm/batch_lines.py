"""The lines of a batch: a call as a line, and a line as an answer. Nothing here sends or waits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from raggs.errors import ProviderError
from raggs.hashing import canonical_json
from raggs.llm import wire
from raggs.llm.faults import GARBLED, Fault, Rule, Treatment, fault_of
from raggs.llm.provider import Completion, completion_of

if TYPE_CHECKING:
    from raggs.llm.calls import ChatCall

UNANSWERED = Rule(Treatment.RETRY, ProviderError, "the batch ended without an answer to this question")


class LineError(Exception):
    """What the provider says went wrong with one line."""

    def __init__(self, words: str, status: int | None) -> None:
        super().__init__(words)
        self.status_code = status


def line_of(call: ChatCall, url: str, *, own_server: bool) -> bytes:
    """A call as one line with its end; its custom id is the key of its answer in the cache."""
    body = {
        **wire.named(call.parameters, own_server=own_server),
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
    if not isinstance(body, Mapping):
        return key, Fault(GARBLED, GARBLED.error(GARBLED.message))
    return key, completion_of(body, {})


def unanswered(words: str = "") -> Fault:
    """The fault of a question that a batch left open."""
    return Fault(UNANSWERED, ProviderError(UNANSWERED.message + (f": {words}" if words else "")))


def _words(error: Any) -> str:
    """The message of an error as providers nest it."""
    while isinstance(error, Mapping) and "error" in error:
        error = error["error"]
    return str(error.get("message") or error.get("code") or "") if isinstance(error, Mapping) else ""
