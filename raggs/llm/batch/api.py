"""A provider's Batch API, in OpenAI's form: its endpoints, and the lines of its files.

Nothing is tried twice here: a submission whose answer was lost must be looked for before it is made again. Whatever
is raised leaves as a `Fault`, redacted; what an answer does not say is None or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from raggs.base.errors import ConfigError, ProviderError
from raggs.base.hashing import canonical_json
from raggs.base.types import as_list, as_object, as_text
from raggs.llm import providers
from raggs.llm.calls import ChatCall, Completion, completion_of
from raggs.llm.faults import GARBLED, MARK_WORDS, Fault, Rule, Treatment, fault_of
from raggs.llm.messages import marked

ENDPOINT: Final = "/v1/chat/completions"
WINDOW: Final = "24h"  # the only one there is
TOKEN = "raggs"  # noqa: S105 - the name under which a batch bears the token of its journal
UPLOAD_S = 600.0
CLOCKS_S = 86_400  # how far the provider's clock may be from ours
ENDED = ("completed", "expired", "cancelled", "failed")
NO_BATCHES = Rule(Treatment.STOP, ConfigError, "the server has no Batch API", "set judge.mode: direct")
UNANSWERED = Rule(Treatment.RETRY, ProviderError, "the batch ended without an answer to this question")


@dataclass(frozen=True)
class BatchState:
    """Where a batch stands. `files`: ids of what it has written; `problem`: why it failed as a whole."""

    status: str
    done: int
    total: int
    files: tuple[str, ...]
    problem: str | None

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.status in ENDED


class BatchAPI:
    """The endpoints at one address, for one model's key. Building it sends nothing. Every request may raise `Fault`."""

    def __init__(self, model: str, address: str | None, timeout_s: float, key_env: str | None = None) -> None:
        self.model = model
        self.address = address
        self._server = providers.Server(model, address, timeout_s, key_env)
        self._files = providers.Server(model, address, max(UPLOAD_S, timeout_s), key_env)

    async def upload(self, name: str, content: bytes) -> str:
        """The id of a new file."""
        with self._faults():
            return _id(await self._files.upload("files", f"{name}.jsonl", content, purpose="batch"))

    async def create(self, file_id: str, token: str) -> str:
        """The id of a new batch, which bears `token`."""
        body = {"input_file_id": file_id, "endpoint": ENDPOINT, "completion_window": WINDOW, "metadata": {TOKEN: token}}
        with self._faults():
            return _id(await self._server.post("batches", body))

    async def find(self, token: str, since: float) -> str | None:
        """The id of the batch that bears `token`, made about `since` (seconds of the epoch) or later."""
        after = ""
        while True:
            with self._faults():
                page = await self._server.get(f"batches?limit=100{after}")
                found = [as_object(batch) for batch in as_list(page.get("data"))]  # the newest first
                for batch in found:
                    if as_object(batch.get("metadata")).get(TOKEN) == token:
                        return _id(batch)
                    if _number(batch.get("created_at")) < since - CLOCKS_S:
                        return None
                if not found or page.get("has_more") is not True:
                    return None
                after = f"&after={_id(found[-1])}"

    async def state(self, batch_id: str) -> BatchState:
        """Where a batch stands."""
        unknown = Rule(Treatment.STOP, ConfigError, f"the provider does not know batch {batch_id}")
        with self._faults(unknown):
            return _state(await self._server.get(f"batches/{batch_id}"))

    async def cancel(self, batch_id: str) -> None:
        """Ask for an early end; what is answered by then stays."""
        with self._faults():
            await self._server.post(f"batches/{batch_id}/cancel", {})

    async def lines(self, file_id: str) -> list[bytes]:
        """The lines of a file, whatever they hold."""
        with self._faults():
            return (await self._files.download(f"files/{file_id}/content")).splitlines()

    def line(self, call: ChatCall) -> bytes:
        """A call as one line with its end; its custom id is the key of its answer in the cache."""
        body = {
            **providers.with_named_limit(call.parameters, own_server=self.address is not None),
            "model": call.model.partition("/")[2] or call.model,
            "messages": list(call.messages),
            "response_format": call.response_format,
        }
        body = dict(marked(call.model, body, home=self.address is None))
        return canonical_json({"custom_id": call.key, "method": "POST", "url": ENDPOINT, "body": body}).encode() + b"\n"

    @contextmanager
    def _faults(self, missing: Rule = NO_BATCHES) -> Iterator[None]:
        try:
            yield
        except providers.http_exceptions() as error:
            fault = fault_of(error, self.model, self._server.key_env)
            if getattr(error, "status_code", None) == 404:
                fault = Fault(missing, missing.error(missing.message, remedy=missing.remedy))
            raise fault from None


class LineError(Exception):
    """What the provider says went wrong with one line."""

    def __init__(self, words: str, status: int | None) -> None:
        super().__init__(words)
        self.status_code = status


def read_line(line: bytes, model: str) -> tuple[str, Completion | Fault] | None:
    """The key of a line and its answer, or what went wrong; None where the line says nothing of use."""
    try:
        found = as_object(json.loads(line))
    except (ValueError, RecursionError):
        return None
    key, response = found.get("custom_id"), found.get("response")
    if not isinstance(key, str):
        return None
    if not isinstance(response, Mapping):
        return key, unanswered(_words(found.get("error")))
    status, body = response.get("status_code"), response.get("body")
    if status != 200:
        return key, fault_of(LineError(_words(body), status if isinstance(status, int) else None), model)
    if not isinstance(body, Mapping):
        return key, Fault(GARBLED, GARBLED.error(GARBLED.message))
    return key, completion_of(model, body, {})


def unanswered(words: str = "") -> Fault:
    """The fault of a question that a batch left open."""
    error = ProviderError(UNANSWERED.message + (f": {words}" if words else ""))
    return Fault(UNANSWERED, error, about_marks=any(mark in words for mark in MARK_WORDS))


def _state(batch: Mapping[str, object]) -> BatchState:
    counts = as_object(batch.get("request_counts"))
    problems = as_list(as_object(batch.get("errors")).get("data"))
    files = (as_text(batch.get("output_file_id")), as_text(batch.get("error_file_id")))
    return BatchState(
        status=as_text(batch.get("status")) or "",
        done=int(_number(counts.get("completed")) + _number(counts.get("failed"))),
        total=int(_number(counts.get("total"))),
        files=tuple(filter(None, files)),
        problem=as_text(as_object(next(iter(problems), None)).get("message")),
    )


def _id(found: Mapping[str, object]) -> str:
    if (name := as_text(found.get("id"))) is None:
        raise providers.Garbled("it names no id")
    return name


def _number(found: object) -> float:
    return found if isinstance(found, int | float) else 0.0


def _words(error: object) -> str:
    """The message of an error as providers nest it."""
    while isinstance(error, Mapping) and "error" in error:
        error = error["error"]
    return str(error.get("message") or error.get("code") or "") if isinstance(error, Mapping) else ""
