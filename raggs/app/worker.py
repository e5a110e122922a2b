"""Services of a worker in a distributed run.

A worker gets its configuration from the client and its inputs from the shared workspace. It has no access to `.env`,
provider keys or the answer cache. It makes no paid call, and writes only the results of its shards.
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
    """Placeholder for the client's embedder, with its identity and dimensions. The client does all embedding.

    A worker cannot determine the identity itself, because the identity may depend on the client's environment.
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
            "a worker cannot read the vectors of the passages",
            remedy="put the workspace on a file system that all workers share",
        )


class WorkerServices(ConfiguredParts):
    """Services for a worker's stages. They are reused between shards, because opening indexes is slow.

    The client calls paid judges and embedders for the worker. The worker creates all other parts from the same
    settings.
    """

    def __init__(self, job: ShardJob) -> None:
        config = RunConfig.model_validate_json(job.config)
        nothing = BudgetSettings(max_calls=0)
        super().__init__(config, Workspace(config.workspace, config.llm, nothing, keeps_answers=False))
        self.job = job
        self.channel: WorkerChannel | None = None

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        """All queries of the run."""
        return {query.qid: query for query in read_records(self.job.queries, Query)}

    @cached_property
    def passages(self) -> Passages:
        """Passages of the corpus, from the client's copy if there is one."""
        if self.job.passages is not None:
            return PassageStore.open(self.job.passages)
        return self.workspace.corpus(self.config.corpus).passages(whole=False)

    @cached_property
    def embedder(self) -> Embedder | None:
        """Identity of the client's embedder; None if none is configured."""
        return AbsentEmbedder(self.job.embedder, self.job.dims) if self.job.embedder else None

    @cached_property
    def judge(self) -> Judge:
        """The judge; calls to a paid judge are forwarded to the client."""
        if self.job.asks is not None:
            return RemoteJudge(self.job.asks, self._channel)
        config = self.config
        return self.workspace.judge(config.judge.judge, *judge_prompts(config.judge.prompt, config.ordering.prompt))

    def causes(self, part: str, task: Task | None = None) -> Any:
        """Return the causes that the client computed."""
        return self.job.causes[task or part]

    def close(self) -> None:
        """Close the workspace and the passage store."""
        super().close()
        if self.job.passages is not None and "passages" in self.__dict__:
            self.passages.close()

    def _channel(self) -> WorkerChannel:
        if self.channel is None:
            raise PrerequisiteError("no shard is in progress")
        return self.channel


_thread_state = threading.local()  # one store per thread: a passage store works only in the thread that opened it
UNWANTED = ("cancelled", "released", "forgotten", "error")  # states in which a worker's task is no longer needed


def run_shard(text: str, number: int) -> None:
    """Process one shard; dask calls this on a worker.

    Args:
        text: the `ShardJob` as JSON.
        number: index of the shard.

    Raises:
        PrerequisiteError: the worker has other package versions than the client.
        NotFoundError: the worker cannot read the workspace.
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
    """Report how many queries of a shard, counted in the order of their ids, need no more calls."""
    channel.tell(shard=number, done=done)


def _is_wanted(worker: Worker, key: str) -> bool:
    """Return whether the client still waits for this task of the worker."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state not in UNWANTED


def _services(job: ShardJob) -> WorkerServices:
    """Return the services of this thread. If the job needs other services, close them and create new ones."""
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
                f"a worker has {name} {found} and this machine {wanted}, so results could differ",
                remedy="install the same versions on all workers",
            )
