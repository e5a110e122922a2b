"""Execution backends by name. A backend is one file with a subclass of `Execution`, and one line in the registry.

An execution backend decides where the queries of a stage are processed. The results are the same with every backend.

With every backend, exactly one process writes the manifest, the artifacts, the journal and the ledger of the run. It
also manages the budget and the rate limits. Other processes write temporary files in the folder of the run.

`LocalExecution` does all work in this process.
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
    """Functions that an execution backend needs from its caller.

    Attributes:
        config: returns the run's configuration as JSON, with absolute paths and without API keys.
        run_shard: processes one shard in another process: ``run_shard(job, number)``, where `job` is a
            `raggs.runs.execution.channel.ShardJob` as JSON.
    """

    config: Callable[[], str]
    run_shard: Callable[[str, int], None]


class Execution(Adapter, ABC):
    """Run stages. raggs creates it as ``cls(config, context)``, so the constructor must be cheap."""

    def __init__(self, config: AdapterConfig, context: ExecutionContext) -> None:
        self.config = config
        self.context = context

    @abstractmethod
    def records(
        self, stage: AnyStage, work: StageWork, config: Settings, services: Services, folder: Path
    ) -> Iterator[Record]:
        """Yield the stage's records, identical to those of `stage.run` and in the same order.

        Args:
            folder: folder of the run. The backend may create temporary files in it, and deletes them at the end.

        Raises:
            RaggsError: `stage.run` failed, or a prerequisite of the backend is missing.
        """

    def close(self) -> None:
        """Release processes and connections. May be called twice."""
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
    """Run everything in the current process."""

    class Config(AdapterConfig):
        type: Literal["local"] = "local"

    def records(
        self, stage: AnyStage, work: StageWork, config: Settings, services: Services, folder: Path
    ) -> Iterator[Record]:
        return stage.run(work, config, services)
