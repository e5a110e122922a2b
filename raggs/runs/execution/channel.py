"""A worker's channel to the client: questions go up, answers come down, both as JSON values through the scheduler.

Only what dask has anyway is used, so a channel works wherever a cluster does, and is as private as its transport (TLS
for a ``tls://`` cluster). A question is ``{"id", "mailbox", "ask", ...}``; a message without an id wants no
answer. One mailbox serves a whole worker process. A worker whose shard nobody wants any more gives up, since dask knows
at once that a client's connection is broken; so does one that hears nothing of the client for `SILENCE_S`.

Where the client answers its workers: the one place of a run that asks judges, spends, and writes the journal.

Messages arrive in dask's thread and are worked on in the run's own event loop, where the judge, its budget, its rate
limits and its cache live. A judge's error that must stop the run stops it here; workers never see it. Where the money
might end, queries take turns here, as they do in one process.

Queries cut into shards by a hash of their ids, as files in the run's folder.

A shard's inputs are the lines of its queries, in the artifact's order; what a worker makes of them is a file that
appears whole or not at all. Both are read as streams, so memory does not grow with the number of queries. The folder
must be seen by all workers, and is deleted when the stage ends.

Which queries workers may begin, where the money might end before all of them are graded.

A query in the middle of its pool is of no use until somebody pays for the rest; see `raggs.stages.base`, which says
how many may be in the middle at once. A query begins with its first question, which otherwise waits here. What is let
in decides when something is asked, and never what: results do not hang on it.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, TypeVar
from uuid import uuid4

from raggs.base.artifacts import Frozen, JournalRecord, MergeRecord, Passage, Query, Record
from raggs.base.errors import NotFoundError, ProviderError
from raggs.base.hashing import hash_bytes
from raggs.base.jsonl import dump_line, read_records, write_records
from raggs.base.settings import Causes
from raggs.parts.judges import Judge, Judgment, KnownOrder, Ordering, Task
from raggs.runs.manifests.store import EntryFile
from raggs.stages import GOLDEN
from raggs.stages.base import Journal, ProgressCallback, Services, StageWork, Walks, ignore_progress

R = TypeVar("R", bound=Record)

FOLDER = ".shards"
QUERIES = "queries"
POOL = "merge"  # the artifact whose texts a judge is shown
POOLS = 256  # kept in memory by the client: a query asks many questions in a row


class ShardJob(Frozen):
    """What a worker has to know of a stage: the same for all of its shards."""

    stage: str
    config: str  # the run's, as JSON
    folder: Path  # of the shards
    passages: Path | None  # the corpus's store; None where its own source gives passages one by one
    topic: str  # under which the client hears
    asks: str | None  # the name of a judge whom only the client may ask
    embedder: str  # its identity; empty without one
    dims: int
    causes: Mapping[str, Any]  # of the judge by task; of queries, corpus and retrievers
    versions: Mapping[str, str | None]  # the client's

    def input(self, artifact: str, number: int) -> Path:
        return self.folder / f"{number}.{artifact}.in.jsonl"

    def output(self, artifact: str, number: int) -> Path:
        return self.folder / f"{number}.{artifact}.out.jsonl"

    @property
    def queries(self) -> Path:
        return self.folder / f"{QUERIES}.jsonl"


def shard_of(qid: str, count: int) -> int:
    """The shard of a query, 0..count-1: the same on every machine."""
    return int(hash_bytes(qid.encode())[:16], 16) % count


@contextmanager
def shard_folder(run: Path) -> Iterator[Path]:
    """An empty folder for shards, gone at the end; what a killed run left there goes first."""
    folder = run.resolve() / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Shards:
    """Where the queries of each shard are.

    Attributes:
        members: the query ids of each shard that has any, sorted.
        pools: where a query's lines of `POOL` are, if the stage reads it: shard, first byte of its file, first after.
    """

    members: Mapping[int, Sequence[str]]
    pools: Mapping[str, tuple[int, int, int]]


def split(job: ShardJob, reads: Iterable[str], work: StageWork, queries: Iterable[Query], count: int) -> Shards:
    """Write the queries, and each shard's part of every artifact that the stage reads."""
    write_records(job.queries, queries)
    members: dict[int, dict[str, None]] = {}
    pools: dict[str, tuple[int, int, int]] = {}
    for artifact in reads:
        with ExitStack() as stack:
            files = {}
            for record in work.read(artifact, GOLDEN.record(artifact)):
                number = shard_of(record.qid, count)
                if number not in files:
                    files[number] = stack.enter_context(job.input(artifact, number).open("wb"))
                start = files[number].tell()
                end = start + files[number].write(dump_line(record))
                members.setdefault(number, {})[record.qid] = None
                if artifact == POOL:
                    pools[record.qid] = (number, pools.get(record.qid, (number, start))[1], end)
    return Shards({number: list(qids) for number, qids in sorted(members.items())}, pools)


class PoolTexts:
    """The texts that a judge is shown, for the client, whom workers ask by ids.

    They are read from the shards' inputs, as the stage reads them in a local run: not from the corpus, which may lie
    on a server, and may have changed meanwhile.
    """

    def __init__(self, job: ShardJob, shards: Shards) -> None:
        self._job = job
        self._places = shards.pools
        self._pool = lru_cache(POOLS)(self._read)

    def get(self, qid: str, doc_ids: Iterable[str]) -> list[Passage]:
        """These passages of the query's pool, in the order asked for."""
        pool = self._pool(qid)
        return [pool[doc_id] for doc_id in doc_ids]

    def all(self, qid: str) -> list[Passage]:
        """The query's whole pool."""
        return [*self._pool(qid).values()]

    def _read(self, qid: str) -> dict[str, Passage]:
        number, start, end = self._places[qid]
        with self._job.input(POOL, number).open("rb") as file:
            file.seek(start)
            records = map(MergeRecord.model_validate_json, file.read(end - start).splitlines())
            return {record.doc_id: record.passage for record in records}


def shard_work(
    job: ShardJob,
    reads: Iterable[str],
    number: int,
    journal: Journal | None = None,
    progress: ProgressCallback = ignore_progress,
) -> StageWork:
    """What a shard works on, for the worker; an artifact without any record of its queries has no file."""

    def reader(artifact: str) -> Iterator[Record]:
        path = job.input(artifact, number)
        return read_records(path, GOLDEN.record(artifact)) if path.exists() else iter(())

    return StageWork({artifact: partial(reader, artifact) for artifact in reads}, journal, progress)


def merge_shards(job: ShardJob, artifact: str, model: type[R], shards: Iterable[int]) -> Iterator[R]:
    """The shards' records of one artifact, by query id, each query's in its own order."""
    streams = [read_records(job.output(artifact, number), model) for number in shards]
    yield from heapq.merge(*streams, key=lambda record: record.qid)


def check_shared(job: ShardJob) -> None:
    """Find out whether this machine sees what the client wrote.

    Raises:
        NotFoundError: it does not.
    """
    for path in (job.folder, job.passages):
        if path is not None and not path.exists():
            raise NotFoundError(
                "a worker does not see the workspace",
                where=path,
                remedy="put it on a file system that all workers share",
            )


class QueryTurns:
    """The queries of one stage.

    Args:
        walks: says when no further one is to begin.
    """

    def __init__(self, walks: Walks) -> None:
        self._walks = walks
        self._begun: set[str] = set()
        self._ended: set[str] = set()
        self._held: dict[str, asyncio.Event] = {}

    async def begin(self, qid: str, pool: Sequence[Passage]) -> None:
        """Return when the query may ask: at once where it has begun, or there is money enough."""
        if qid in self._begun:
            return
        waiting = self._held.setdefault(qid, asyncio.Event())
        self._walks.at_once((qid, pool))
        self._let_in()
        await waiting.wait()

    def end(self, qids: Iterable[str]) -> None:
        """These ask no more."""
        self._ended.update(qids)
        self._let_in()

    def let_one_in(self) -> None:
        """Somebody begins whatever that costs: those that have begun were lost with their workers."""
        if self._held:
            first = min(self._held)
            self._begun.add(first)
            self._held.pop(first).set()

    def _let_in(self) -> None:
        while self._held and not ((left := len(self._begun - self._ended)) and self._walks.tight(left)):
            self.let_one_in()


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


BEAT_S = 30.0
STILL_S = 2.0  # without a question on its way, until those that hold up others are taken for lost


class JudgeServer:
    """Answers for one stage. Made inside the event loop that it works in.

    Args:
        services: the client's.
        work: of the stage, with its journal.
        shards: the queries of each shard.
        pools: the texts that the judge is shown.
        turns: which queries may be graded now; None: all.
        say: sends a message down to a mailbox; may block, so it is called from other threads.
    """

    def __init__(
        self,
        services: Services,
        work: StageWork,
        shards: Shards,
        pools: PoolTexts,
        turns: QueryTurns | None,
        say: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._services = services
        self._work = work
        self._members = shards.members
        self._pools = pools
        self._turns = turns
        self._asking = self._asked = 0
        self._say = say
        self._mailboxes: set[str] = set()
        self._inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    def hear(self, event: tuple[float, dict[str, Any]]) -> None:
        """Take a message; called from dask's thread."""
        self._loop.call_soon_threadsafe(self._inbox.put_nowait, event[1])

    async def serve(self) -> None:
        """Answer until cancelled, or until an error must stop the run."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._beat())
            if self._turns is not None:
                group.create_task(self._go_on_without_the_lost(self._turns))
            while True:
                message = await self._inbox.get()
                if (note := message.get("note")) is not None:
                    self._work.journal.append(JournalRecord.model_validate_json(note))
                elif (done := message.get("done")) is not None:
                    if self._turns is not None:
                        self._turns.end(self._members[message["shard"]][:done])
                else:
                    self._mailboxes.add(message["mailbox"])
                    group.create_task(self._reply(message))

    async def close(self, topic: str) -> None:
        """Tell whoever still works on the stage that nobody waits for it."""
        for mailbox in self._mailboxes:
            await asyncio.to_thread(self._say, mailbox, {"closed": topic})

    async def _reply(self, message: Mapping[str, Any]) -> None:
        if self._turns is not None and message["ask"] != "hello":
            await self._turns.begin(message["qid"], self._pools.all(message["qid"]))
        self._asking, self._asked = self._asking + 1, self._asked + 1
        answer = await self._answer(message)
        self._asking -= 1  # an error ends the stage
        await asyncio.to_thread(self._say, message["mailbox"], {"id": message["id"], "answer": answer})

    async def _answer(self, message: Mapping[str, Any]) -> Any:
        if message["ask"] == "hello":
            qids = self._members[message["shard"]] if message["journal"] else ()
            return [entry.model_dump_json() for qid in qids for entry in self._work.journal.entries(qid)]
        qid = message["qid"]
        query, passages = self._services.queries[qid], self._pools.get(qid, message["passages"])
        if message["ask"] == "grade":
            return asdict(await self._services.judge.grade(query, passages[0], sample=message["sample"]))
        if message["ask"] == "grades":
            given = await self._services.judge.grades(query, passages, sample=message["sample"])
            return [asdict(each) for each in given]
        if message["ask"] == "known":
            return [asdict(order) for order in await self._services.judge.known(query, passages)]
        return asdict(await self._services.judge.order(query, passages))

    async def _go_on_without_the_lost(self, turns: QueryTurns) -> None:
        """A worker that died may hold up all others, and its shard waits for one of them to be free."""
        while True:
            before = self._asked
            await asyncio.sleep(STILL_S)
            if not self._asking and self._asked == before:
                turns.let_one_in()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            for mailbox in list(self._mailboxes):
                await asyncio.to_thread(self._say, mailbox, {})
