"""Run shards of queries on the workers of a dask.distributed cluster.

Workers need access to the workspace, and to the files that the judge and retrievers refer to, on a file system shared
with the client. The client is the process that was started by the user. Only the client writes artifacts, the journal,
the ledger and the manifest. It splits
the queries into shards, calls the judge for the workers (`JudgeServer`), and merges the results by query id. The
artifacts therefore have the same bytes as in a local run. If a worker dies, dask gives its shard to another worker,
which reuses the journal entries and cached answers of the first worker.

Tasks are serialised by dask (with pickle). You must trust the scheduler and its workers as you trust this machine (see
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
    """Run shards of queries on the workers of a dask cluster. Artifacts are the same as in a local run."""

    class Config(AdapterConfig):
        type: Literal["dask"] = "dask"
        address: Effort[Annotated[str, AfterValidator(check_address)] | None] = Field(
            None,
            description="address of a dask scheduler, such as tcp://host:8786; null to start workers on this machine",
        )
        workers: Effort[int] = Field(2, ge=1, description="worker processes on this machine, if address is null")
        connect_s: Effort[float] = Field(
            30, gt=0, description="timeout for connecting to a scheduler and for its first worker, in seconds"
        )
        shards: Effort[int] = Field(64, ge=1, le=512, description="number of shards that the queries are split into")

    config: Config

    def records(
        self, stage: AnyStage, work: StageWork, config: Settings, services: Services, folder: Path
    ) -> Iterator[Record]:
        if not stage.by_query(config):
            yield from stage.run(work, config, services)
            return
        client = self._client  # before all other work, so that a missing cluster is reported before anything is built
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
        # close the client and the cluster, even if one of them fails to close
        with quiet("distributed", "tornado", "asyncio"), ExitStack() as parts:
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
        """Process all shards. The first error ends the stage on all workers."""
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
            with suppress(OSError, ProviderError):  # if the scheduler is gone, no worker can be notified
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
    return ProviderError("the connection to the scheduler was lost", remedy="run again: paid answers are cached")


def _first_error(error: BaseException) -> BaseException:
    """Return the first error inside an exception group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _outcome(future: Any, number: int) -> int:
    """Wait for a shard and return its number.

    Raises:
        RaggsError: the worker failed, or the shard could not be processed.
    """
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    future.add_done_callback(lambda _: loop.call_soon_threadsafe(ended.set))
    await ended.wait()
    if future.cancelled():  # cancelled by dask: the client never cancels a shard that it waits for
        raise _connection_lost()
    try:
        await asyncio.to_thread(future.result)
    except distributed().KilledWorker as error:
        raise ProviderError(
            f"shard {number} failed: every worker that processed it died",
            remedy="check the logs and memory of the workers",
        ) from error
    except ImportError as error:
        raise PrerequisiteError(
            f"a worker cannot run raggs ({error})", remedy="install the same version of raggs on all workers"
        ) from error
    return number
