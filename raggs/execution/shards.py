"""Queries cut into shards by a hash of their ids, as files in the run's folder.

A shard's inputs are the lines of its queries, in the artifact's order; what a worker makes of them is a file that
appears whole or not at all. Both are read as streams, so memory does not grow with the number of queries. The folder
must be seen by all workers, and is deleted when the stage ends.
"""

from __future__ import annotations

import heapq
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from raggs.artifacts import ARTIFACTS, Frozen, Query, Record
from raggs.errors import NotFoundError
from raggs.hashing import hash_bytes
from raggs.jsonl import dump_line, read_records, write_records
from raggs.stages.base import Inputs

FOLDER = ".shards"
QUERIES = "queries"


class Job(Frozen):
    """What a worker has to know of a stage: the same for all of its shards."""

    stage: str
    config: str  # the run's, as JSON
    folder: Path  # of the shards
    passages: Path  # the corpus's store
    topic: str  # under which the client hears
    asks: str | None  # the name of a judge whom only the client may ask
    causes: Mapping[str, Any]  # of the judge by task; of the queries
    versions: Mapping[str, str | None]  # the client's

    def input(self, artifact: str, number: int) -> Path:
        return self.folder / f"{number}.{artifact}.in.jsonl"

    def output(self, artifact: str, number: int) -> Path:
        return self.folder / f"{number}.{artifact}.out.jsonl"

    @property
    def queries(self) -> Path:
        return self.folder / f"{QUERIES}.jsonl"


def shard_of(qid: str, shards: int) -> int:
    """The shard of a query, 0..shards-1: the same on every machine."""
    return int(hash_bytes(qid.encode())[:16], 16) % shards


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


def split(
    job: Job, reads: Iterable[str], inputs: Inputs, queries: Iterable[Query], shards: int
) -> dict[int, list[str]]:
    """Write the queries, and each shard's part of every artifact that the stage reads.

    Returns:
        The query ids of each shard that has any, sorted.
    """
    write_records(job.queries, queries)
    members: dict[int, dict[str, None]] = {}
    for artifact in reads:
        with ExitStack() as stack:
            files = {}
            for record in inputs.read(artifact, ARTIFACTS[artifact]):
                number = shard_of(record.qid, shards)
                if number not in files:
                    files[number] = stack.enter_context(job.input(artifact, number).open("wb"))
                files[number].write(dump_line(record))
                members.setdefault(number, {})[record.qid] = None
    return {number: list(qids) for number, qids in sorted(members.items())}


def shard_inputs(job: Job, reads: Iterable[str], number: int) -> Inputs:
    """A shard's inputs, for the worker; an artifact without any record of its queries has no file."""

    def reader(artifact: str) -> Iterator[Record]:
        path = job.input(artifact, number)
        return read_records(path, ARTIFACTS[artifact]) if path.exists() else iter(())

    return Inputs({artifact: lambda artifact=artifact: reader(artifact) for artifact in reads})  # type: ignore[misc]


def merged(job: Job, artifact: str, shards: Iterable[int]) -> Iterator[Record]:
    """The shards' records of one artifact, by query id, each query's in its own order."""
    streams = [read_records(job.output(artifact, number), ARTIFACTS[artifact]) for number in shards]
    yield from heapq.merge(*streams, key=lambda record: record.qid)


def check_shared(job: Job) -> None:
    """Find out whether this machine sees what the client wrote.

    Raises:
        NotFoundError: it does not.
    """
    for path in (job.folder, job.passages):
        if not path.exists():
            raise NotFoundError(
                "a worker does not see the workspace",
                where=path,
                remedy="put it on a file system that all workers share",
            )
