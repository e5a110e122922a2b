"""All work in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from raggs.artifacts import Record
from raggs.execution.base import ExecutionContext
from raggs.registry import Adapter
from raggs.settings import Settings
from raggs.stages.base import Services, Stage, Work


class LocalExecution(Adapter):
    """Everything in the process that runs raggs."""

    class Config(Settings):
        type: Literal["local"] = "local"

    def __init__(self, config: Config, context: ExecutionContext) -> None:
        self.config = config

    def records(
        self, stage: Stage[Any], work: Work, config: Settings, services: Services, folder: Path
    ) -> Iterator[Record]:
        return stage.run(work, config, services)

    def close(self) -> None:
        """There is nothing to close."""
