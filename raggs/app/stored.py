"""The configuration that a run directory keeps of itself."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from raggs.base.errors import DataError
from raggs.config.models import RunConfig
from raggs.runs.manifests.store import RunStore


def stored_config(folder: Path) -> RunConfig:
    """The configuration of a run's latest invocation.

    Raises:
        NotFoundError: there is no run.
        DataError: its manifest is damaged, or has no configuration that can be used.
    """
    try:
        return RunConfig.model_validate(dict(RunStore(folder).manifest().config))
    except ValidationError as error:
        raise DataError(
            "its manifest has no configuration that can be used", where=folder, remedy="run it again"
        ) from error
