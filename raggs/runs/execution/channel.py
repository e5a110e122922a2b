"""A worker's channel to the client: questions go up, answers come down, both as JSON values through the scheduler.

Only what dask has anyway is used, so a channel works wherever a cluster does, and is as private as its transport (TLS
for a ``tls://`` cluster). A question is ``{"id", "mailbox", "ask", ...}``; a message without an id wants no
answer. One mailbox serves a whole worker process. A worker whose shard nobody wants any more gives up, since dask knows
at once that a client's connection is broken; so does one that hears nothing of the client for `SILENCE_S`.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Literal
from uuid import uuid4

from raggs.base.artifacts import JournalRecord, Passage, Query
from raggs.base.errors import ProviderError
from raggs.base.settings import Causes
from raggs.parts.judges.base import Judge, Judgment, KnownOrder, Ordering, Task
from raggs.runs.manifests.journal import EntryFile

SILENCE_S = 300.0  # the client gives a sign of life every 30 s
LOOK_S = 1.0  # between two looks whether the shard is still wanted
FIRST_HELLO_S, LONGEST_HELLO_S = 0.1, 2.0  # the scheduler may learn of a mailbox after the first question's answer


class Mailbox:
    """Where the answers for this process arrive. Its methods are called from dask's thread."""

    def __init__(self) -> None:
        self.name = f"raggs-answers-{os.getpid()}-{uuid4().hex}"
        self.heard = time.monotonic()
        self.closed: set[str] = set()
        self._waiting: dict[str, tuple[str, Future[Any]]] = {}

    def expect(self, topic: str, number: str) -> Future[Any]:
        """What will hold the answer to question `number`, or None when the stage of `topic` ends before."""
        future: Future[Any] = Future()
        self._waiting[number] = (topic, future)
        return future

    def forget(self, number: str) -> None:
        """Nobody waits for the answer any more."""
        self._waiting.pop(number, None)

    def receive(self, event: tuple[float, dict[str, Any]]) -> None:
        """An answer ``{"id", "answer"}``, the end of a stage ``{"closed": topic}``, or a mere sign of life."""
        self.heard = time.monotonic()
        message = event[1]
        if "closed" in message:
            self.closed.add(message["closed"])
            for number, (topic, _) in list(self._waiting.items()):
                if topic in self.closed:
                    self._settle(number, None)
        elif "id" in message:
            self._settle(message["id"], message["answer"])

    def _settle(self, number: str, answer: Any) -> None:
        found = self._waiting.pop(number, None)
        if found is not None and found[1].set_running_or_notify_cancel():
            found[1].set_result(answer)


MAILBOX = Mailbox()


class WorkerChannel:
    """One shard's way to ask.

    Args:
        topic: under which the client hears.
        send: sends a message up; called from the shard's thread.
        mailbox: where answers arrive.
        wanted: whether anybody still waits for the shard.
        silence_s: how long the client may give no sign of life.
        knock_s: the pause before hello is said again; each next one is doubled, up to `LONGEST_HELLO_S`.
    """

    def __init__(
        self,
        topic: str,
        send: Callable[[str, dict[str, Any]], None],
        mailbox: Mailbox = MAILBOX,
        *,
        wanted: Callable[[], bool] = lambda: True,
        silence_s: float = SILENCE_S,
        knock_s: float = FIRST_HELLO_S,
    ) -> None:
        self._topic = topic
        self._send = send
        self.mailbox = mailbox
        self._wanted = wanted
        self._silence_s = silence_s
        self._knock_s = knock_s
        mailbox.heard = time.monotonic()

    def tell(self, **message: Any) -> None:
        """Say something that wants no answer.

        Raises:
            ProviderError: the client has ended the stage.
        """
        if self._topic in self.mailbox.closed:
            raise ProviderError("the client has ended the stage")
        self._send(self._topic, message)

    def hello(self, shard: int, journal: bool) -> list[JournalRecord]:
        """Knock until the client answers: with the journal's entries on the shard's queries, if there is a journal.

        Raises:
            ProviderError: as `ask`.
        """
        number = uuid4().hex
        future, pause = self.mailbox.expect(self._topic, number), self._knock_s
        while True:
            self.tell(ask="hello", id=number, mailbox=self.mailbox.name, shard=shard, journal=journal)
            try:
                found: list[str] = future.result(pause) or []
                return [JournalRecord.model_validate_json(line) for line in found]
            except FutureTimeout:
                self._check_client()
                pause = min(2 * pause, LONGEST_HELLO_S)

    async def ask(self, what: Task | Literal["known"], **question: Any) -> Any:
        """The client's answer.

        Raises:
            ProviderError: the client has ended the stage, or has fallen silent.
        """
        number = uuid4().hex
        future = asyncio.wrap_future(self.mailbox.expect(self._topic, number))
        self.tell(ask=what, id=number, mailbox=self.mailbox.name, **question)
        try:
            while not (await asyncio.wait({future}, timeout=min(LOOK_S, self._silence_s)))[0]:
                self._check_client()
        finally:
            self.mailbox.forget(number)
        if (answer := future.result()) is None:
            raise ProviderError("the client has ended the stage")
        return answer

    def _check_client(self) -> None:
        if not self._wanted():
            raise ProviderError("the client is gone")
        if time.monotonic() - self.mailbox.heard > self._silence_s:
            raise ProviderError("the client has fallen silent")


class RemoteJudge(Judge):
    """A judge at the other end of the channel: who is asked, paid and counted there.

    Only ids travel up: the client has the texts.
    """

    def __init__(self, name: str, channel: Callable[[], WorkerChannel]) -> None:
        self._name = name
        self._channel = channel

    @property
    def name(self) -> str:
        return self._name

    def causes(self, task: Task) -> Causes:
        """The client states them."""
        return {}

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        answer = await self._channel().ask("grade", qid=query.qid, passages=[passage.doc_id], sample=sample)
        return judgment(answer)

    async def grades(self, query: Query, passages: Sequence[Passage], *, sample: int = 0) -> Sequence[Judgment]:
        """See `Judge.grades`: whether they are shown together is the client's to say."""
        ids = [passage.doc_id for passage in passages]
        return [
            judgment(each) for each in await self._channel().ask("grades", qid=query.qid, passages=ids, sample=sample)
        ]

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        ids = [passage.doc_id for passage in passages]
        answer = await self._channel().ask("order", qid=query.qid, passages=ids)
        order, answerers = answer.pop("order"), tuple(answer.pop("answerers"))
        return Ordering(None if order is None else tuple(order), **answer, answerers=answerers)

    async def known(self, query: Query, passages: Sequence[Passage]) -> Sequence[KnownOrder]:
        """See `Judge.known`."""
        ids = [passage.doc_id for passage in passages]
        answer = await self._channel().ask("known", qid=query.qid, passages=ids)
        return [KnownOrder(tuple(map(tuple, said["groups"])), said["sharpness"], said["by"]) for said in answer]


def judgment(said: Mapping[str, Any]) -> Judgment:
    """A judgment from its fields, the votes of a panel's members among them."""
    votes = {name: judgment(vote) for name, vote in said["votes"].items()}
    return Judgment(**{**said, "votes": votes, "answerers": tuple(said["answerers"])})


class ShardJournal:
    """The journal as a worker sees it: what the client knew when the shard began; news go to the client at once."""

    def __init__(self, channel: WorkerChannel, known: Iterable[JournalRecord]) -> None:
        self._channel = channel
        self._known: dict[str, list[JournalRecord]] = {}
        for entry in known:
            self._known.setdefault(entry.qid, []).append(entry)
        self._settled = EntryFile(tempfile.TemporaryFile())  # noqa: SIM115 - gone with the journal

    def entries(self, qid: str) -> list[JournalRecord]:
        return self._known.get(qid, [])

    def append(self, record: JournalRecord) -> None:
        self._channel.tell(note=record.model_dump_json())

    def settle(self, qid: str, used: Iterable[JournalRecord]) -> None:
        self._known.pop(qid, None)
        for entry in used:
            self._settled.add(entry)

    def settled(self) -> Iterator[JournalRecord]:
        """Sorted by query."""
        yield from self._settled
