"""All work in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import Record
from raggs.base.settings import Settings
from raggs.runs.execution.base import Execution
from raggs.stages.base import AnyStage, Services, Work


class LocalExecution(Execution):
    """Everything in the process that runs raggs."""

    class Config(AdapterConfig):
        type: Literal["local"] = "local"

    def records(
        self, stage: AnyStage, work: Work, config: Settings, services: Services, folder: Path
    ) -> Iterator[Record]:
        return stage.run(work, config, services)
