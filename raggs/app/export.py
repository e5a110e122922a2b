"""From a finished run to another tool's files."""

from __future__ import annotations

from pathlib import Path

from raggs import exporters
from raggs.errors import NotFoundError
from raggs.golden.runs import RunGolden
from raggs.manifests.opened import OpenedRun
from raggs.stages import GOLDEN


def export_run(run: OpenedRun, format_: str, folder: Path) -> list[Path]:
    """Write a run's golden set as `format_` into `folder`.

    Returns:
        The files.

    Raises:
        UsageError: an unknown format.
        NotFoundError: the run is not finished.
        DataError: the run was made before questions were kept.
    """
    exporter = exporters.REGISTRY.load(format_)()
    unfinished = [stage for stage in GOLDEN.order if stage not in run.manifest.stages]
    if unfinished:
        raise NotFoundError(
            f"stage {unfinished[0]} has not finished", where=run.folder, remedy="raggs run --config CONFIG"
        )
    return exporter.write(RunGolden(run), folder)
