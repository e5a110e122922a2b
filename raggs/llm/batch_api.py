"""A provider's Batch API (files and batches, OpenAI's form) through the openai package: the only module that calls it.

The package's own retries are off: a submission whose answer was lost must be looked for before it is made again.
Whatever is raised leaves here as a `Fault`, redacted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from raggs.errors import ConfigError
from raggs.llm.faults import NO_KEY, Fault, Rule, Treatment, fault_of
from raggs.llm.prices import key_variable

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Batch

ENDPOINT: Final = "/v1/chat/completions"
WINDOW: Final = "24h"  # the only one there is
TOKEN = "raggs"  # noqa: S105 - the name under which a batch bears the token of its journal
UPLOAD_S = 600.0
CLOCKS_S = 86_400  # how far the provider's clock may be from ours
ENDED = ("completed", "expired", "cancelled", "failed")
NO_BATCHES = Rule(Treatment.STOP, ConfigError, "the server has no Batch API", "set judge.mode: direct")


@dataclass(frozen=True)
class State:
    """Where a batch stands. `files`: ids of what it has written; `problem`: why it failed as a whole."""

    status: str
    done: int
    total: int
    files: tuple[str, ...]
    problem: str | None

    @property
    def ended(self) -> bool:
        return self.status in ENDED


class BatchAPI:
    """The endpoints at one address, for one model's key. Building it sends nothing."""

    def __init__(self, model: str, address: str | None, timeout_s: float) -> None:
        self.model = model
        self.address = address
        self._timeout_s = timeout_s

    async def upload(self, name: str, content: bytes) -> str:
        """The id of a new file."""
        with self._faults():
            client = self._client.with_options(timeout=max(UPLOAD_S, self._timeout_s))
            return (await client.files.create(file=(f"{name}.jsonl", content), purpose="batch")).id

    async def create(self, file_id: str, token: str) -> str:
        """The id of a new batch, which bears `token`."""
        with self._faults():
            batch = await self._client.batches.create(
                input_file_id=file_id, endpoint=ENDPOINT, completion_window=WINDOW, metadata={TOKEN: token}
            )
            return batch.id

    async def find(self, token: str, since: float) -> str | None:
        """The id of the batch that bears `token`, made about `since` (seconds of the epoch) or later."""
        with self._faults():
            async for batch in self._client.batches.list(limit=100):  # the newest first
                if (batch.metadata or {}).get(TOKEN) == token:
                    return batch.id
                if batch.created_at < since - CLOCKS_S:
                    break
        return None

    async def state(self, batch_id: str) -> State:
        unknown = Rule(Treatment.STOP, ConfigError, f"the provider does not know batch {batch_id}")
        with self._faults(unknown):
            return _state(await self._client.batches.retrieve(batch_id))

    async def cancel(self, batch_id: str) -> None:
        with self._faults():
            await self._client.batches.cancel(batch_id)

    async def lines(self, file_id: str) -> list[bytes]:
        """The lines of a file, whatever they hold."""
        with self._faults():
            client = self._client.with_options(timeout=max(UPLOAD_S, self._timeout_s))
            return (await client.files.content(file_id)).content.splitlines()

    async def close(self) -> None:
        if "_client" in self.__dict__:
            await self.__dict__.pop("_client").close()

    @cached_property
    def _client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI

        variable = key_variable(self.model)
        key = "none" if variable is None else os.environ.get(variable)
        if not key:
            told = NO_KEY.message.format(model=self.model)
            raise Fault(NO_KEY, NO_KEY.error(told, remedy=str(NO_KEY.remedy).format(variable=variable)))
        return AsyncOpenAI(api_key=key, base_url=self.address, max_retries=0, timeout=self._timeout_s)

    @contextmanager
    def _faults(self, missing: Rule = NO_BATCHES) -> Iterator[None]:
        from openai import OpenAIError

        try:
            yield
        except (OpenAIError, OSError) as error:
            fault = fault_of(error, self.model)
            if getattr(error, "status_code", None) == 404:
                fault = Fault(missing, missing.error(missing.message, remedy=missing.remedy))
            raise fault from None


def _state(batch: Batch) -> State:
    counts: Any = batch.request_counts
    problems = (batch.errors.data if batch.errors else None) or []
    return State(
        status=batch.status,
        done=(counts.completed + counts.failed) if counts else 0,
        total=counts.total if counts else 0,
        files=tuple(filter(None, (batch.output_file_id, batch.error_file_id))),
        problem=problems[0].message if problems else None,
    )
