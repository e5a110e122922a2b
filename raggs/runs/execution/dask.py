"""Shards of queries on the workers of a dask.distributed cluster.

Workers compute; they need the workspace and the files that judge and retrievers name, on a file system that they
share with the client. The client keeps the run: it cuts the queries into shards, answers for the judge
(`JudgeServer`), and merges what comes back by query id, so the artifacts have the bytes of a local run. When a worker
dies, dask gives its shard to another one, which meets the journal's entries and the cache's answers of the first.

Tasks travel as dask sends them (by pickle): a scheduler and its workers are trusted like this machine itself (see
`cluster`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from uuid import uuid4

from pydantic import AfterValidator, Field

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import JournalRecord, Record
from raggs.base.errors import PrerequisiteError, ProviderError
from raggs.base.registry import loaded_versions
from raggs.base.settings import Effort, Settings
from raggs.parts.judges import Task
from raggs.runs.execution import Execution
from raggs.runs.execution.channel import (
    JudgeServer,
    PoolTexts,
    QueryTurns,
    ShardJob,
    Shards,
    merge_shards,
    shard_folder,
    split,
)
from raggs.runs.execution.cluster import check_address, connect, distributed, local_cluster, quiet
from raggs.runs.manifests.models import versions
from raggs.stages.base import AnyStage, Services, StageWork

TASKS: tuple[Task, ...] = get_args(Task)
STATED_PARTS = ("queries", "corpus", "hygiene", "retrievers")


class DaskExecution(Execution):
    """Shards of queries on the workers of a dask cluster; artifacts as of a local run."""

    class Config(AdapterConfig):
        type: Literal["dask"] = "dask"
        address: Effort[Annotated[str, AfterValidator(check_address)] | None] = Field(
            None, description="a scheduler's, as tcp://host:8786; null: workers on this machine"
        )
        workers: Effort[int] = Field(2, ge=1, description="processes on this machine, where address is null")
        connect_s: Effort[float] = Field(30, gt=0, description="seconds until a scheduler or its workers are given up")
        shards: Effort[int] = Field(64, ge=1, le=512, description="parts that the queries are cut into")

    config: Config

    def records(
        self, stage: AnyStage, work: StageWork, config: Settings, services: Services, folder: Path
    ) -> Iterator[Record]:
        if not stage.by_query(config):
            yield from stage.run(work, config, services)
            return
        client = self._client  # first, so that a missing cluster is found before anything is built
        stage.prepare(work, services)
        with shard_folder(folder) as place:
            job = self._job(stage, services, place)
            shards = split(job, stage.READS, work, services.queries.values(), self.config.shards)
            with quiet("distributed", "tornado"):
                walks = stage.walks(config, services)
                turns = None if walks is None else QueryTurns(walks)
                services.workspace.loop.run(self._work(client, job, shards, work, services, turns))
            for artifact, model in stage.artifacts().items():
                yield from merge_shards(job, artifact, model, shards.members)
            if stage.JOURNAL:
                entries = merge_shards(job, stage.JOURNAL, JournalRecord, shards.members)
                for qid, mine in groupby(entries, key=lambda entry: entry.qid):
                    work.journal.settle(qid, mine)

    def close(self) -> None:
        with (
            quiet("distributed", "tornado", "asyncio"),
            ExitStack() as parts,
        ):  # whatever becomes of one, the other is let go of too
            for name in ("_cluster", "_client"):
                if name in self.__dict__:
                    parts.callback(self.__dict__.pop(name).close)

    # --- one stage ---

    def _job(self, stage: AnyStage, services: Services, folder: Path) -> ShardJob:
        judge, embedder, passages = services.judge, services.embedder, services.passages
        return ShardJob(
            stage=stage.NAME,
            config=self.context.config(),
            folder=folder,
            passages=passages.file,
            topic=f"raggs-questions-{uuid4().hex}",
            asks=judge.name if judge.central else None,
            embedder="" if embedder is None else embedder.identity,
            dims=0 if embedder is None else embedder.dims,
            causes={part: services.causes(part) for part in STATED_PARTS}
            | {task: services.causes("judge", task) for task in TASKS},
            versions={**versions(), **loaded_versions()},
        )

    async def _work(
        self, client: Any, job: ShardJob, shards: Shards, work: StageWork, services: Services, turns: QueryTurns | None
    ) -> None:
        """See all shards through; the first error ends the stage on all workers."""
        members = shards.members
        server = JudgeServer(services, work, shards, PoolTexts(job, shards), turns, partial(_say, client))
        client.subscribe_topic(job.topic, server.hear)
        text, done = job.model_dump_json(), 0
        futures = {
            number: client.submit(self.context.run_shard, text, number, key=f"{job.stage}-{number}-{job.topic}")
            for number in members
        }
        try:
            async with asyncio.TaskGroup() as group:
                serving = group.create_task(server.serve())
                outcomes = [group.create_task(_outcome(future, number)) for number, future in futures.items()]
                for shard in asyncio.as_completed(outcomes):
                    done += len(members[await shard])
                    work.progress(done, len(services.queries))
                serving.cancel()
        except BaseExceptionGroup as errors:
            raise _first_error(errors) from None
        finally:
            with suppress(OSError, ProviderError):  # where the scheduler is lost, nobody is left to be told
                client.unsubscribe_topic(job.topic)
                await server.close(job.topic)
                client.cancel(list(futures.values()), force=True)

    # --- the cluster ---

    @cached_property
    def _cluster(self) -> Any:
        return local_cluster(self.config.workers)

    @cached_property
    def _client(self) -> Any:
        address = self.config.address
        return connect(address, None if address else self._cluster, self.config.connect_s)


def _say(client: Any, mailbox: str, message: dict[str, Any]) -> None:
    try:
        client.log_event(mailbox, message)
    except OSError as error:
        raise _connection_lost() from error


def _connection_lost() -> ProviderError:
    return ProviderError("the connection to the scheduler was lost", remedy="run again: what was paid is cached")


def _first_error(error: BaseException) -> BaseException:
    """The error that ended a group of tasks."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _outcome(future: Any, number: int) -> int:
    """The shard's number once it is done.

    Raises:
        RaggsError: the worker's; or the shard could not be worked on.
    """
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    future.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set))
    await ended.wait()
    if future.cancelled():  # by dask alone: the client cancels no shard that it waits for
        raise _connection_lost()
    try:
        await asyncio.to_thread(future.result)
    except distributed().KilledWorker as error:
        raise ProviderError(
            f"shard {number} was given up: every worker that took it died",
            remedy="look into the workers' logs and memory",
        ) from error
    except ImportError as error:
        raise PrerequisiteError(
            f"a worker cannot run raggs ({error})", remedy="install the same raggs on all workers"
        ) from error
    return number
