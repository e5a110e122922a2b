"""Queries cut into shards by a hash of their ids, as files in the run's folder.

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
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from raggs.base.artifacts import Frozen, MergeRecord, Passage, Query, Record
from raggs.base.errors import NotFoundError
from raggs.base.hashing import hash_bytes
from raggs.base.jsonl import dump_line, read_records, write_records
from raggs.stages import GOLDEN
from raggs.stages.base import Journal, Told, Walks, Work, nobody

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


def split(job: ShardJob, reads: Iterable[str], work: Work, queries: Iterable[Query], count: int) -> Shards:
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


class Pools:
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
    job: ShardJob, reads: Iterable[str], number: int, journal: Journal | None = None, progress: Told = nobody
) -> Work:
    """What a shard works on, for the worker; an artifact without any record of its queries has no file."""

    def reader(artifact: str) -> Iterator[Record]:
        path = job.input(artifact, number)
        return read_records(path, GOLDEN.record(artifact)) if path.exists() else iter(())

    return Work({artifact: partial(reader, artifact) for artifact in reads}, journal, progress)


def merged(job: ShardJob, artifact: str, model: type[R], shards: Iterable[int]) -> Iterator[R]:
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


class Turns:
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
