"""Ways to execute a stage by name: one file and one line each (see `Execution`).

What an execution is: it decides where a stage's queries are worked on, never what comes out.

Whatever the execution, one process owns the run: the folder, the manifest, the journal, the answer cache, the budget,
the rate limits and the keys.

All work in this process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.artifacts import Record
from raggs.base.registry import Registry
from raggs.base.settings import Settings
from raggs.stages.base import AnyStage, Services, StageWork


@dataclass(frozen=True)
class ExecutionContext:
    """What an execution may use.

    Attributes:
        config: gives the run's configuration as JSON, with absolute paths and without keys.
        run_shard: works on one shard in another process: ``run_shard(job, number)``, where `job` is a
            `raggs.runs.execution.channel.ShardJob` as JSON.
    """

    config: Callable[[], str]
    run_shard: Callable[[str, int], None]


class Execution(Adapter, ABC):
    """Runs stages. Built as ``cls(config, context)``; cheap to build."""

    def __init__(self, config: AdapterConfig, context: ExecutionContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def records(
        self, stage: AnyStage, work: StageWork, config: Settings, services: Services, folder: Path
    ) -> Iterator[Record]:
        """The stage's records, the same and in the same order as `stage.run` gives them.

        Args:
            folder: of the run; what is needed on the way is put there, and gone at the end.

        Raises:
            RaggsError: as `stage.run`; or the execution lacks what it needs.
        """

    def close(self) -> None:
        """Let go of processes and connections. May be called twice."""
        return


REGISTRY: Registry[Execution] = Registry(
    "execution",
    "executions",
    "raggs.runs.execution:Execution",
    {
        "dask": "raggs.runs.execution.dask:DaskExecution",
        "local": "raggs.runs.execution:LocalExecution",
    },
)


class LocalExecution(Execution):
    """Everything in the process that runs raggs."""

    class Config(AdapterConfig):
        type: Literal["local"] = "local"

    def records(
        self, stage: AnyStage, work: StageWork, config: Settings, services: Services, folder: Path
    ) -> Iterator[Record]:
        return stage.run(work, config, services)
