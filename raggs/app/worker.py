"""What a worker of a distributed run does its part with.

A worker gets its configuration from the client and its inputs from the shared workspace. It reads no `.env`, holds no
provider's key, opens no answer cache, spends nothing and writes nothing but its shards' results.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from raggs.app.services import ConfiguredParts
from raggs.base.arrays import Vectors
from raggs.base.artifacts import Query
from raggs.base.errors import PrerequisiteError
from raggs.base.hashing import hash_value
from raggs.base.jsonl import read_records, write_records, write_routed
from raggs.base.registry import installed
from raggs.config.models import RunConfig
from raggs.llm import BudgetSettings
from raggs.parts.embedders import Embedder
from raggs.parts.indexes.passages import Passages, PassageStore
from raggs.parts.judges import Judge, Task
from raggs.parts.workspace import Workspace, judge_prompts
from raggs.runs.execution.channel import RemoteJudge, ShardJob, ShardJournal, WorkerChannel, check_shared, shard_work
from raggs.runs.execution.cluster import distributed
from raggs.runs.manifests.models import versions
from raggs.stages import GOLDEN
from raggs.stages.base import ignore_progress

if TYPE_CHECKING:
    from distributed import Worker


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


class WorkerServices(ConfiguredParts):
    """The world as a worker's stages see it. Kept from shard to shard, since opening indexes takes time.

    What the client alone may do (ask a paid judge, embed, spend) it does for the worker; the rest is made here, of
    the same settings.
    """

    def __init__(self, job: ShardJob) -> None:
        config = RunConfig.model_validate_json(job.config)
        nothing = BudgetSettings(max_calls=0)
        super().__init__(config, Workspace(config.workspace, config.llm, nothing, keeps_answers=False))
        self.job = job
        self.channel: WorkerChannel | None = None

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        """All questions of the run."""
        return {query.qid: query for query in read_records(self.job.queries, Query)}

    @cached_property
    def passages(self) -> Passages:
        """The corpus: the client's copy where it made one."""
        if self.job.passages is not None:
            return PassageStore.open(self.job.passages)
        return self.workspace.corpus(self.config.corpus).passages(whole=False)

    @cached_property
    def embedder(self) -> Embedder | None:
        """The client's, by name only."""
        return AbsentEmbedder(self.job.embedder, self.job.dims) if self.job.embedder else None

    @cached_property
    def judge(self) -> Judge:
        """The judge; the one at the client's where it is paid."""
        if self.job.asks is not None:
            return RemoteJudge(self.job.asks, self._channel)
        config = self.config
        return self.workspace.judge(config.judge.judge, *judge_prompts(config.judge.prompt, config.ordering.prompt))

    def causes(self, part: str, task: Task | None = None) -> Any:
        """As the client found them."""
        return self.job.causes[task or part]

    def close(self) -> None:
        """Close what is open."""
        super().close()
        if self.job.passages is not None and "passages" in self.__dict__:
            self.passages.close()

    def _channel(self) -> WorkerChannel:
        if self.channel is None:
            raise PrerequisiteError("no shard is worked on")
        return self.channel


_thread_state = threading.local()  # a passage store belongs to the thread that opened it
UNWANTED = ("cancelled", "released", "forgotten", "error")  # states of a task at a worker


def run_shard(text: str, number: int) -> None:
    """Work on one shard; called by dask on a worker.

    Args:
        text: the `ShardJob` as JSON.
        number: of the shard.

    Raises:
        PrerequisiteError: the worker has other versions than the client.
        NotFoundError: it does not see the workspace.
        RaggsError: as the stage.
    """
    dask = distributed()
    job = ShardJob.model_validate_json(text)
    _check_versions(job)
    check_shared(job)
    stage = GOLDEN.stage(job.stage)
    worker = dask.get_worker()
    channel = WorkerChannel(job.topic, worker.log_event, wanted=partial(_is_wanted, worker, worker.get_current_task()))
    dask.get_client().subscribe_topic(channel.mailbox.name, channel.mailbox.receive)
    services = _services(job)
    services.channel = channel
    journal = ShardJournal(channel, channel.hello(number, stage.JOURNAL is not None))
    config = services.config.stage_configs()[job.stage]
    progress = partial(_send_progress, channel, number) if job.asks is not None else ignore_progress
    records = stage.run(shard_work(job, stage.READS, number, journal, progress), config, services)
    write_routed({model: job.output(name, number) for name, model in stage.artifacts().items()}, records)
    if stage.JOURNAL:
        write_records(job.output(stage.JOURNAL, number), journal.settled())


def _send_progress(
    channel: WorkerChannel, number: int, done: int, _total: int, _calls: int = 0, _expected: int = 0
) -> None:
    """That so many queries of a shard, by their ids, ask no more."""
    channel.tell(shard=number, done=done)


def _is_wanted(worker: Worker, key: str) -> bool:
    """Whether a client still waits for what this worker works on."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state not in UNWANTED


def _services(job: ShardJob) -> WorkerServices:
    """The thread's services if they are still right for the job."""
    key = hash_value([job.config, str(job.passages), job.asks, job.embedder, job.dims, dict(job.causes)])
    if getattr(_thread_state, "key", None) != key:
        if (old := getattr(_thread_state, "services", None)) is not None:
            old.close()
        _thread_state.key, _thread_state.services = key, WorkerServices(job)
    services: WorkerServices = _thread_state.services
    services.job = job
    return services


def _check_versions(job: ShardJob) -> None:
    mine = versions()
    for name, wanted in job.versions.items():
        found = mine[name] if name in mine else installed(name)  # a plugin's package
        if name != "python" and found != wanted:
            raise PrerequisiteError(
                f"a worker has {name} {found}, this machine {wanted}, so results could differ",
                remedy="install the same versions on all workers",
            )
