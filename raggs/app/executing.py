"""Where a run's stages do their work: the execution that a configuration asks for."""

from __future__ import annotations

from pathlib import Path

from raggs import execution
from raggs.app.worker import run_shard
from raggs.config.models import RunConfig
from raggs.execution.base import Execution, ExecutionContext
from raggs.settings import BASE_FOLDER


def make_execution(config: RunConfig) -> Execution:
    """The execution that a configuration asks for; it is given the configuration with absolute paths."""
    absolute = RunConfig.model_validate(config.model_dump(mode="json"), context={BASE_FOLDER: Path.cwd()})
    context = ExecutionContext(absolute.model_dump_json(), run_shard)
    return execution.REGISTRY.of(config.execution)(config.execution, context)
