"""From a finished run to another tool's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raggs import exporters
from raggs.artifacts import EmbedRecord, JudgeRecord, MergeRecord, Query, RankRecord
from raggs.errors import NotFoundError
from raggs.exporters.base import Golden
from raggs.manifests.opened import OpenedRun
from raggs.stages import ORDER


def export_run(run: OpenedRun, format_: str, folder: Path) -> list[Path]:
    """Write a run's golden set as `format_` into `folder`.

    Returns:
        The files.

    Raises:
        UsageError: an unknown format.
        NotFoundError: the run is not finished.
    """
    exporter = exporters.REGISTRY.load(format_)()
    unfinished = [stage for stage in ORDER if stage not in run.manifest.stages]
    if unfinished:
        raise NotFoundError(
            f"stage {unfinished[0]} has not finished", where=run.folder, remedy="raggs run --config CONFIG"
        )
    return exporter.write(golden_of(run), folder)


def golden_of(run: OpenedRun) -> Golden:
    """The golden set of a finished run, as streams."""
    lock = run.manifest.stages["rank"]
    queries = {
        record.qid: Query(qid=record.qid, text=record.text, language=record.language)
        for record in run.typed("embed", EmbedRecord)
    }
    return Golden(
        name=run.manifest.name,
        top=int(lock.params["top"]),
        queries=queries,
        pool=run.typed("merge", MergeRecord),
        grades=run.typed("judge", JudgeRecord),
        ranking=run.typed("rank", RankRecord),
        provenance=_provenance(run),
    )


def _provenance(run: OpenedRun) -> dict[str, Any]:
    stages = run.manifest.stages
    return {
        "run": run.manifest.name,
        "raggs": run.manifest.raggs,
        "created": run.manifest.created.isoformat(),
        "fingerprints": {name: stages[name].fingerprint for name in ORDER},
        "judge": stages["judge"].components.get("judge"),
        "rank": dict(stages["rank"].params),
        "failed": sum(lock.failed for lock in stages.values()),
        "depth": stages["judge"].health.get("depth"),
    }
