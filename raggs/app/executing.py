"""Where a run's stages do their work: the execution that a configuration asks for."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from raggs.base.settings import BASE_FOLDER
from raggs.config.models import RunConfig
from raggs.runs import execution
from raggs.runs.execution.base import Execution, ExecutionContext


def make_execution(config: RunConfig) -> Execution:
    """The execution that a configuration asks for; it is given the configuration with absolute paths."""
    context = ExecutionContext(partial(_portable, config, Path.cwd()), _run_shard)
    return execution.REGISTRY.of(config.execution)(config.execution, context)


def _portable(config: RunConfig, folder: Path) -> str:
    return RunConfig.model_validate(config.model_dump(mode="json"), context={BASE_FOLDER: folder}).model_dump_json()


def _run_shard(job: str, number: int) -> None:
    from raggs.app.worker import run_shard  # late: where the work is done here, nobody needs it

    run_shard(job, number)
