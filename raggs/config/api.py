"""Runs from Python: `load_config`, `run`, and a runner for those who want the plan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raggs.config.compose import RunServices
from raggs.config.load import LoadedConfig, load_config
from raggs.config.models import RUN_NAME, RunConfig
from raggs.config.worker import make_execution
from raggs.errors import UsageError
from raggs.manifests.store import RunStore
from raggs.pipeline.events import Listener, silent
from raggs.pipeline.plan import Selection, select
from raggs.pipeline.runner import Runner, RunResult


def run_folder(config: RunConfig, run_id: str | None = None) -> Path:
    """Where a configuration's run lies.

    Raises:
        UsageError: `run_id` cannot be a folder's name.
    """
    if run_id is not None and not re.fullmatch(RUN_NAME, run_id):
        raise UsageError(f"{run_id!r} cannot name a run", remedy="use letters, digits, dots, dashes and underscores")
    return config.workspace / (run_id or config.name)


@contextmanager
def open_runner(
    config: LoadedConfig | RunConfig, *, run_id: str | None = None, listen: Listener = silent
) -> Iterator[Runner]:
    """A runner for a configuration; its services are closed at the end of the block."""
    settings = config.run if isinstance(config, LoadedConfig) else config
    services, execution = RunServices(settings), make_execution(settings)
    services.attach(listen, "")
    try:
        yield Runner(
            store=RunStore(run_folder(settings, run_id)),
            name=run_id or settings.name,
            config=settings.model_dump(mode="json"),
            config_file=str(config.path) if isinstance(config, LoadedConfig) else None,
            configs=settings.stage_configs(),
            services=services,
            execution=execution,
            listen=listen,
        )
    finally:
        execution.close()
        services.close()


def run(
    config: LoadedConfig | RunConfig | Path | str,
    *,
    start: str | None = None,
    stop: str | None = None,
    only: str | None = None,
    force: bool = False,
    run_id: str | None = None,
    listen: Listener = silent,
) -> RunResult:
    """Run a configuration; stages whose inputs have not changed are skipped.

    Args:
        config: a loaded configuration, or the path of its file.
        start, stop, only: which stages ("embed" … "rank"); all by default.
        force: run the selected stages even where nothing changed.
        run_id: another name for the run directory.
        listen: hears every event (see `raggs.pipeline.events`).

    Raises:
        RaggsError: see `raggs.errors`; whatever was finished or paid for is kept.
    """
    selection: Selection = select(start, stop, only, force)
    if isinstance(config, (str, Path)):
        config = load_config(config)
    with open_runner(config, run_id=run_id, listen=listen) as runner:
        return runner.run(selection)
