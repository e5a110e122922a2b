"""Communication between the workers and the client of a dask cluster: shards of queries, and the client's judge server.

A worker sends requests to the client and gets answers back, both as JSON values through the scheduler. Only standard
features of dask are used. A channel is as private as the connection that dask uses (TLS for a ``tls://`` cluster). A
request is ``{"id", "mailbox", "ask", ...}``; a message without an id needs no answer. One mailbox serves a whole worker
process. A worker stops if its shard is no longer wanted: when a client disappears, dask cancels its shards at once. A
worker also stops if it gets no message from the client for `SILENCE_S` seconds.

`JudgeServer` answers the workers. If a judge is `central`, for example because its calls cost money, workers send its
requests to `JudgeServer` instead of calling it. They also send new journal entries to `JudgeServer`. Messages arrive in
dask's thread and are processed in the run's event loop, which also has the judge, its budget, its rate limits and its
cache. An error of the judge that must stop the run is raised in the client; workers never see it. If the budget may run
out, the client limits how many queries are graded at the same time, as in a local run.

`split` distributes queries over shards by a hash of their ids, as files in the run's folder. The inputs of a shard are
the lines of its queries, in the order of the artifact. Each output file of a worker is written completely or not at
all. Inputs and outputs are streamed: in memory, the client keeps ids, positions, and the last `POOLS` pools that it
judged. All workers must be able to access the folder of the shards. The folder is deleted when the stage ends.

`QueryTurns` decides which queries workers may start when the budget may not cover all of them. A partly graded query is
unusable until its remaining calls are paid for; `raggs.stages.base` limits how many queries may be partly graded. A
query starts with its first request. If the query may not start yet, this request waits in the client. `QueryTurns`
affects only when a request is sent, never its content, so results do not depend on it.
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
POOL = "merge"  # the artifact with the texts that a judge sees
POOLS = 256  # number of pools that the client caches in memory: a query makes many requests in a row


class ShardJob(Frozen):
    """Description of a stage, sent to the workers. It is the same for all shards of the stage."""

    stage: str
    config: str  # the run's configuration, as JSON
    folder: Path  # folder of the shards
    passages: Path | None  # file of the passage store; None if passages are fetched one by one from the corpus source
    topic: str  # the client receives messages on this topic
    asks: str | None  # name of a judge that only the client may call
    embedder: str  # identity of the embedder; empty if the run has none
    dims: int
    # settings that results depend on: of the judge by task, of queries, corpus and retrievers
    causes: Mapping[str, Any]
    versions: Mapping[str, str | None]  # versions of raggs and of packages on the client

    def input(self, artifact: str, number: int) -> Path:
        return self.folder / f"{number}.{artifact}.in.jsonl"

    def output(self, artifact: str, number: int) -> Path:
        return self.folder / f"{number}.{artifact}.out.jsonl"

    @property
    def queries(self) -> Path:
        return self.folder / f"{QUERIES}.jsonl"


def shard_of(qid: str, count: int) -> int:
    """Return the number of a query's shard, from 0 to `count` - 1. It is the same on every machine."""
    return int(hash_bytes(qid.encode())[:16], 16) % count


@contextmanager
def shard_folder(run: Path) -> Iterator[Path]:
    """Create an empty folder for shards and delete it at the end. If a killed run left such a folder, delete that
    first.
    """
    folder = run.resolve() / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Shards:
    """Which queries each shard contains, and where their pools are stored.

    Attributes:
        members: query ids of each nonempty shard, sorted.
        pools: location of a query's lines of `POOL`, if the stage reads it: shard, start byte and end byte.
    """

    members: Mapping[int, Sequence[str]]
    pools: Mapping[str, tuple[int, int, int]]


def split(job: ShardJob, reads: Iterable[str], work: StageWork, queries: Iterable[Query], count: int) -> Shards:
    """Split the input of a stage into shards: write the queries, and each shard's part of every artifact."""
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
    """The texts that a judge sees, by query and passage id. Workers send only ids, so the client looks the texts up.

    The texts are read from the artifact, as in a local run. They are not read from the corpus, which may be on a server
    and may have changed in the meantime.
    """

    def __init__(self, job: ShardJob, shards: Shards) -> None:
        self._job = job
        self._places = shards.pools
        self._pool = lru_cache(POOLS)(self._read)

    def get(self, qid: str, doc_ids: Iterable[str]) -> list[Passage]:
        """Return the passages with these ids in the query's pool, in the given order."""
        pool = self._pool(qid)
        return [pool[doc_id] for doc_id in doc_ids]

    def all(self, qid: str) -> list[Passage]:
        """Return the query's whole pool."""
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
    """Return the input of a shard, for the worker. If an artifact has no records of the shard's queries, it has no file
    and is read as empty.
    """

    def reader(artifact: str) -> Iterator[Record]:
        path = job.input(artifact, number)
        return read_records(path, GOLDEN.record(artifact)) if path.exists() else iter(())

    return StageWork({artifact: partial(reader, artifact) for artifact in reads}, journal, progress)


def merge_shards(job: ShardJob, artifact: str, model: type[R], shards: Iterable[int]) -> Iterator[R]:
    """Yield the shards' records of one artifact, sorted by query id. The order within a query is kept."""
    streams = [read_records(job.output(artifact, number), model) for number in shards]
    yield from heapq.merge(*streams, key=lambda record: record.qid)


def check_shared(job: ShardJob) -> None:
    """Check that this machine can access the files that the client wrote.

    Raises:
        NotFoundError: it cannot.
    """
    for path in (job.folder, job.passages):
        if path is not None and not path.exists():
            raise NotFoundError(
                "a worker cannot access the workspace",
                where=path,
                remedy="put the workspace on a file system that all workers share",
            )


class QueryTurns:
    """Decides when each query of a stage may start.

    Args:
        walks: decides when no further query may start.
    """

    def __init__(self, walks: Walks) -> None:
        self._walks = walks
        self._begun: set[str] = set()
        self._ended: set[str] = set()
        self._held: dict[str, asyncio.Event] = {}

    async def begin(self, qid: str, pool: Sequence[Passage]) -> None:
        """Wait until the query may send requests. Return at once if it has started, or if the budget suffices."""
        if qid in self._begun:
            return
        waiting = self._held.setdefault(qid, asyncio.Event())
        self._walks.at_once((qid, pool))
        self._let_in()
        await waiting.wait()

    def end(self, qids: Iterable[str]) -> None:
        """Record that these queries send no more requests."""
        self._ended.update(qids)
        self._let_in()

    def let_one_in(self) -> None:
        """Let one query start in any case: the workers of the queries that had started were lost."""
        if self._held:
            first = min(self._held)
            self._begun.add(first)
            self._held.pop(first).set()

    def _let_in(self) -> None:
        while self._held and not ((left := len(self._begun - self._ended)) and self._walks.tight(left)):
            self.let_one_in()


SILENCE_S = 300.0  # timeout in seconds; the client sends a sign of life every 30 s
LOOK_S = 1.0  # seconds between two checks whether the shard is still wanted
# the scheduler may learn about a mailbox only after the first answer was sent to it
FIRST_HELLO_S, LONGEST_HELLO_S = 0.1, 2.0


class Mailbox:
    """Receives the client's answers for all shards in this process. Answers arrive in dask's thread."""

    def __init__(self) -> None:
        self.name = f"raggs-answers-{os.getpid()}-{uuid4().hex}"
        self.heard = time.monotonic()
        self.closed: set[str] = set()
        self._waiting: dict[str, tuple[str, Future[Any]]] = {}

    def expect(self, topic: str, number: str) -> Future[Any]:
        """Return a future for the answer to request `number`. Its result is None if the stage of `topic` ends before
        the answer arrives.
        """
        future: Future[Any] = Future()
        self._waiting[number] = (topic, future)
        return future

    def forget(self, number: str) -> None:
        """Drop a request whose answer is no longer needed."""
        self._waiting.pop(number, None)

    def receive(self, event: tuple[float, dict[str, Any]]) -> None:
        """Process a message: an answer ``{"id", "answer"}``, the end of a stage ``{"closed": topic}``, or a sign of
        life (an empty message).
        """
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
    """A shard's channel to the client.

    Args:
        topic: the client receives messages on this topic.
        send: sends a message to the client; called from the shard's thread.
        mailbox: receives the answers.
        wanted: returns whether the result of the shard is still needed.
        silence_s: seconds without a message from the client after which the worker stops.
        knock_s: seconds before the first message (hello) is repeated. They are doubled each time, up to
            `LONGEST_HELLO_S`.
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
        """Send a message that needs no answer.

        Raises:
            ProviderError: the client has ended the stage.
        """
        if self._topic in self.mailbox.closed:
            raise ProviderError("the client has ended the stage")
        self._send(self._topic, message)

    def hello(self, shard: int, journal: bool) -> list[JournalRecord]:
        """Send the first message until the client answers, and return the journal's entries on the shard's queries.
        Without a journal, return an empty list.

        Raises:
            ProviderError: see `ask`.
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
        """Send a request to the client and return its answer.

        Raises:
            ProviderError: the client has ended the stage, or no longer responds.
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
            raise ProviderError("the connection to the client was lost")
        if time.monotonic() - self.mailbox.heard > self._silence_s:
            raise ProviderError("the client no longer responds")


class RemoteJudge(Judge):
    """A worker's substitute for the judge: the client calls the real judge, pays for the calls and counts them.

    Only ids are sent, because the client has the texts.
    """

    def __init__(self, name: str, channel: Callable[[], WorkerChannel]) -> None:
        self._name = name
        self._channel = channel

    @property
    def name(self) -> str:
        return self._name

    def causes(self, task: Task) -> Causes:
        """Return an empty tree: the client knows what the results depend on, and sends that in the `ShardJob`."""
        return {}

    async def grade(self, query: Query, passage: Passage, *, sample: int = 0) -> Judgment:
        answer = await self._channel().ask("grade", qid=query.qid, passages=[passage.doc_id], sample=sample)
        return judgment(answer)

    async def grades(self, query: Query, passages: Sequence[Passage], *, sample: int = 0) -> Sequence[Judgment]:
        """Grade passages; see `Judge.grades`. The client decides how many passages are in one call."""
        ids = [passage.doc_id for passage in passages]
        return [
            judgment(each) for each in await self._channel().ask("grades", qid=query.qid, passages=ids, sample=sample)
        ]

    async def order(self, query: Query, passages: Sequence[Passage]) -> Ordering:
        ids = [passage.doc_id for passage in passages]
        answer = await self._channel().ask("order", qid=query.qid, passages=ids)
        lists = {name: None if answer[name] is None else tuple(answer[name]) for name in ("order", "answerers", "best")}
        return Ordering(**{**answer, **lists})

    async def known(self, query: Query, passages: Sequence[Passage]) -> Sequence[KnownOrder]:
        """Return the orders that are known without a call; see `Judge.known`."""
        ids = [passage.doc_id for passage in passages]
        answer = await self._channel().ask("known", qid=query.qid, passages=ids)
        return [KnownOrder(tuple(map(tuple, said["groups"])), said["sharpness"], said["by"]) for said in answer]


def judgment(said: Mapping[str, Any]) -> Judgment:
    """Return a judgment from its JSON, including the votes of a panel's members."""
    votes = {name: judgment(vote) for name, vote in said["votes"].items()}
    shares = None if said["distribution"] is None else tuple(said["distribution"])
    return Judgment(**{**said, "votes": votes, "answerers": tuple(said["answerers"]), "distribution": shares})


class ShardJournal:
    """The journal as a worker sees it: the entries that the client had when the shard started. New entries are sent to
    the client.
    """

    def __init__(self, channel: WorkerChannel, known: Iterable[JournalRecord]) -> None:
        self._channel = channel
        self._known: dict[str, list[JournalRecord]] = {}
        for entry in known:
            self._known.setdefault(entry.qid, []).append(entry)
        self._settled = EntryFile(tempfile.TemporaryFile())  # noqa: SIM115 - deleted with the journal

    def entries(self, qid: str) -> list[JournalRecord]:
        return self._known.get(qid, [])

    def append(self, record: JournalRecord) -> None:
        self._channel.tell(note=record.model_dump_json())

    def settle(self, qid: str, used: Iterable[JournalRecord]) -> None:
        self._known.pop(qid, None)
        for entry in used:
            self._settled.add(entry)

    def settled(self) -> Iterator[JournalRecord]:
        """Yield the settled entries, sorted by query."""
        yield from self._settled


BEAT_S = 30.0
# if no request is pending for so many seconds, the workers of the queries that block others are assumed dead
STILL_S = 2.0


class JudgeServer:
    """Answers the workers' requests for one stage. Must be created inside the event loop that it runs in.

    Args:
        services: services of the client.
        work: input of the stage, with its journal.
        shards: the queries of each shard.
        pools: the texts that the judge sees.
        turns: decides which queries may be graded now; None if all may.
        say: sends a message to a mailbox. It is called in separate threads, because it may block.
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
        """Queue a message. Called from dask's thread."""
        self._loop.call_soon_threadsafe(self._inbox.put_nowait, event[1])

    async def serve(self) -> None:
        """Process requests until this task is cancelled, or until an error must stop the run."""
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
        """Notify all workers that the stage has ended."""
        for mailbox in self._mailboxes:
            await asyncio.to_thread(self._say, mailbox, {"closed": topic})

    async def _reply(self, message: Mapping[str, Any]) -> None:
        if self._turns is not None and message["ask"] != "hello":
            await self._turns.begin(message["qid"], self._pools.all(message["qid"]))
        self._asking, self._asked = self._asking + 1, self._asked + 1
        answer = await self._answer(message)
        self._asking -= 1  # need not be in `finally`, because an error ends the stage
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
        """Let another query start if no request arrived for `STILL_S` seconds and none is pending: a worker may have
        died. The query of a dead worker can block all others while its shard waits for a free worker.
        """
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
