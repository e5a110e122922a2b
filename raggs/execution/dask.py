"""Shards of queries on the workers of a dask.distributed cluster.

Workers compute; they need the workspace and the files that judge and retrievers name, on a file system that they
share with the client. The client keeps the run: it cuts the queries into shards, answers for the judge (see `desk`),
and merges what comes back by query id, so the artifacts have the bytes of a local run. When a worker dies, dask gives
its shard to another one, which meets the journal's entries and the cache's answers of the first.

Tasks travel as dask sends them (by pickle): a scheduler and its workers are trusted like this machine itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, get_args
from uuid import uuid4

from pydantic import Field

from raggs.adapter import AdapterConfig
from raggs.artifacts import JournalRecord, Record
from raggs.elastic.server import API_KEY, PASSWORD
from raggs.errors import PrerequisiteError, ProviderError
from raggs.execution.base import Execution
from raggs.execution.desk import Desk
from raggs.execution.shards import Job, Parts, Pools, merged, shard_folder, split
from raggs.indexes.passages import PassageStore
from raggs.judges.base import Task
from raggs.manifests.models import versions
from raggs.settings import Effort, Settings
from raggs.stages.base import AnyStage, Services, Work

# Names of variables that workers on this machine do not inherit, except those by which they log in to Elasticsearch.
SECRET = re.compile("KEY|TOKEN|SECRET|PASSWORD")
CREDENTIALS = (API_KEY, PASSWORD)
TASKS: tuple[Task, ...] = get_args(Task)
PARTS = ("queries", "corpus", "retrievers")


class DaskExecution(Execution):
    """Shards of queries on the workers of a dask cluster; artifacts as of a local run."""

    class Config(AdapterConfig):
        type: Literal["dask"] = "dask"
        address: Effort[str | None] = Field(
            None,
            pattern=r"^\w+://\S+:\d+$",
            description="a scheduler's, as tcp://host:8786; null: workers on this machine",
        )
        workers: Effort[int] = Field(2, ge=1, description="processes on this machine, where address is null")
        connect_s: Effort[float] = Field(30, gt=0, description="seconds until a scheduler or its workers are given up")
        shards: Effort[int] = Field(64, ge=1, le=512, description="parts that the queries are cut into")

    config: Config

    def records(
        self, stage: AnyStage, work: Work, config: Settings, services: Services, folder: Path
    ) -> Iterator[Record]:
        if not stage.by_query(config):
            yield from stage.run(work, config, services)
            return
        client = self._client  # first, so that a missing cluster is found before anything is built
        stage.prepare(work, services)
        with shard_folder(folder) as place:
            job = self._job(stage, services, place)
            parts = split(job, stage.READS, work, services.queries.values(), self.config.shards)
            services.loop.run(self._work(client, job, parts, work, services))
            for artifact, model in stage.artifacts().items():
                yield from merged(job, artifact, model, parts.members)
            if stage.JOURNAL:
                entries = merged(job, stage.JOURNAL, JournalRecord, parts.members)
                for qid, mine in groupby(entries, key=lambda entry: entry.qid):
                    work.journal.settle(qid, mine)

    def close(self) -> None:
        if "_client" in self.__dict__:
            self.__dict__.pop("_client").close()
        if "_cluster" in self.__dict__:
            self.__dict__.pop("_cluster").close()

    # --- one stage ---

    def _job(self, stage: AnyStage, services: Services, folder: Path) -> Job:
        judge, embedder, passages = services.judge, services.embedder, services.passages
        return Job(
            stage=stage.NAME,
            config=self.context.config,
            folder=folder,
            passages=passages.path.resolve() if isinstance(passages, PassageStore) else None,
            topic=f"raggs-questions-{uuid4().hex}",
            asks=judge.name if judge.models else None,
            embedder="" if embedder is None else embedder.identity,
            dims=0 if embedder is None else embedder.dims,
            causes={part: services.causes(part) for part in PARTS}
            | {task: services.causes("judge", task) for task in TASKS},
            versions=versions(),
        )

    async def _work(self, client: Any, job: Job, parts: Parts, work: Work, services: Services) -> None:
        """See all shards through; the first error ends the stage on all workers."""
        members = parts.members
        desk = Desk(services, work, parts, Pools(job, parts), partial(_say, client))
        client.subscribe_topic(job.topic, desk.hear)
        text, done = job.model_dump_json(), 0
        futures = {
            number: client.submit(self.context.run_shard, text, number, key=f"{job.stage}-{number}-{job.topic}")
            for number in members
        }
        try:
            async with asyncio.TaskGroup() as group:
                serving = group.create_task(desk.serve())
                shards = [group.create_task(_outcome(future, number)) for number, future in futures.items()]
                for shard in asyncio.as_completed(shards):
                    done += len(members[await shard])
                    work.progress(done, len(services.queries))
                serving.cancel()
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        finally:
            with suppress(OSError, ProviderError):  # where the scheduler is lost, nobody is left to be told
                client.unsubscribe_topic(job.topic)
                await desk.close(job.topic)
                client.cancel(list(futures.values()), force=True)

    # --- the cluster ---

    @cached_property
    def _cluster(self) -> Any:
        with _interrupts_ignored():
            return distributed().LocalCluster(
                n_workers=self.config.workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.ERROR,
                env={name: "" for name in os.environ if SECRET.search(name) and name not in CREDENTIALS},
            )

    @cached_property
    def _client(self) -> Any:
        address = self.config.address
        where = address or "this machine"
        connect = distributed().Client
        try:
            client = connect(address or self._cluster, timeout=self.config.connect_s, set_as_default=False)
        except (OSError, TimeoutError) as error:
            remedy = "check execution.address, or start one: dask scheduler"
            raise ProviderError(f"no scheduler answers ({error})", where=where, remedy=remedy) from error
        try:
            client.wait_for_workers(1, timeout=self.config.connect_s)
        except TimeoutError as error:
            client.close()
            remedy = f"start some: dask worker {where} --nthreads 1"
            raise ProviderError("the scheduler has no workers", where=where, remedy=remedy) from error
        return client


def distributed() -> Any:
    """The package.

    Raises:
        PrerequisiteError: it is not installed.
    """
    try:
        package = import_module("distributed")
    except ImportError as error:
        raise PrerequisiteError(
            "execution dask needs dask.distributed, which is not installed", remedy='pip install "raggs[distributed]"'
        ) from error
    logging.getLogger("distributed").propagate = False  # it has handlers of its own
    return package


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes begun meanwhile ignore Ctrl-C for good: the client hears it, and stops them in good order."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may, and only it hears Ctrl-C
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _say(client: Any, mailbox: str, message: dict[str, Any]) -> None:
    try:
        client.log_event(mailbox, message)
    except OSError as error:
        raise _lost() from error


def _lost() -> ProviderError:
    return ProviderError("the connection to the scheduler was lost", remedy="run again: what was paid is cached")


def _first(error: BaseException) -> BaseException:
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
        raise _lost()
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
