"""The wiring of distributed runs: the execution for the client, and the services with which a worker does its part.

A worker gets its configuration from the client and its inputs from the shared workspace. It reads no `.env`, holds no
provider's key, opens no answer cache, spends nothing and writes nothing but its shards' results.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from raggs import execution
from raggs.arrays import Vectors
from raggs.artifacts import Query
from raggs.config.compose import RunServices
from raggs.config.models import RunConfig
from raggs.embedders.base import Embedder
from raggs.errors import PrerequisiteError
from raggs.execution.base import Execution, ExecutionContext
from raggs.execution.dask import distributed
from raggs.execution.line import Line, RemoteJudge, ShardJournal
from raggs.execution.shards import Job, check_shared, shard_work
from raggs.hashing import hash_value
from raggs.indexes.passages import Passages, PassageStore
from raggs.jsonl import read_records, write_records, write_routed
from raggs.judges.base import Judge, Task
from raggs.llm import LLM, BudgetSettings
from raggs.manifests.models import versions
from raggs.pipeline.events import silent
from raggs.settings import BASE_FOLDER
from raggs.stages import load_stage


def make_execution(config: RunConfig) -> Execution:
    """The execution that a configuration asks for."""
    absolute = RunConfig.model_validate(config.model_dump(mode="json"), context={BASE_FOLDER: Path.cwd()})
    context = ExecutionContext(absolute.model_dump_json(), run_shard)
    return execution.REGISTRY.of(config.execution)(config.execution, context)


class AbsentEmbedder(Embedder):
    """The client's embedder as workers know it: what queries and indexes were embedded by, which the client does.

    A worker could not tell it by itself: it may depend on the client's environment.
    """

    def __init__(self, identity: str, dims: int) -> None:
        self._identity = identity
        self._dims = dims

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def dims(self) -> int:
        return self._dims

    def embed(self, texts: Sequence[str]) -> Vectors:
        raise PrerequisiteError(
            "a worker does not see the vectors of the passages",
            remedy="put the workspace on a file system that all workers share",
        )


class WorkerServices(RunServices):
    """The world as a worker's stages see it. Kept from shard to shard, since opening indexes takes time."""

    def __init__(self, job: Job) -> None:
        super().__init__(RunConfig.model_validate_json(job.config))
        self.job = job
        self.line: Line | None = None

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        return {query.qid: query for query in read_records(self.job.queries, Query)}

    @cached_property
    def passages(self) -> Passages:
        return super().passages if self.job.passages is None else PassageStore.open(self.job.passages)

    @cached_property
    def embedder(self) -> Embedder | None:
        return AbsentEmbedder(self.job.embedder, self.job.dims) if self.job.embedder else None

    @cached_property
    def llm(self) -> LLM:
        """For those who want one in their context: it makes no call."""
        return LLM(self.config.llm, BudgetSettings(max_calls=0), None)

    @cached_property
    def judge(self) -> Judge:
        return super().judge if self.job.asks is None else RemoteJudge(self.job.asks, self._line)

    def causes(self, part: str, task: Task | None = None) -> Any:
        """As the client found them."""
        return self.job.causes[task or part]

    def _line(self) -> Line:
        if self.line is None:
            raise PrerequisiteError("no shard is worked on")
        return self.line


_kept = threading.local()  # a passage store belongs to the thread that opened it


def run_shard(text: str, number: int) -> None:
    """Work on one shard; called by dask on a worker.

    Args:
        text: the `Job` as JSON.
        number: of the shard.

    Raises:
        PrerequisiteError: the worker has other versions than the client.
        NotFoundError: it does not see the workspace.
        RaggsError: as the stage.
    """
    dask = distributed()
    job = Job.model_validate_json(text)
    _check_versions(job)
    check_shared(job)
    stage = load_stage(job.stage)
    line = Line(job.topic, dask.get_worker().log_event)
    dask.get_client().subscribe_topic(line.mailbox.name, line.mailbox.receive)
    services = _services(job)
    services.line = line
    journal = ShardJournal(line, line.hello(number, stage.JOURNAL is not None))
    services.attach(silent, job.stage)
    config = services.config.stage_configs()[job.stage]
    records = stage.run(shard_work(job, stage.READS, number, journal), config, services)
    write_routed({model: job.output(name, number) for name, model in stage.artifacts().items()}, records)
    if stage.JOURNAL:
        write_records(job.output(stage.JOURNAL, number), journal.settled())


def _services(job: Job) -> WorkerServices:
    """The thread's services if they are still right for the job."""
    key = hash_value([job.config, str(job.passages), job.asks, job.embedder, job.dims, dict(job.causes)])
    if getattr(_kept, "key", None) != key:
        if (old := getattr(_kept, "services", None)) is not None:
            old.close()
        _kept.key, _kept.services = key, WorkerServices(job)
    services: WorkerServices = _kept.services
    services.job = job
    return services


def _check_versions(job: Job) -> None:
    mine = versions()
    for name, wanted in job.versions.items():
        if name != "python" and mine.get(name) != wanted:
            raise PrerequisiteError(
                f"a worker has {name} {mine.get(name)}, this machine {wanted}, so results could differ",
                remedy="install the same versions on all workers",
            )
