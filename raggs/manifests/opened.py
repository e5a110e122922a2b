"""A run opened for reading: typed access to its artifacts and to the golden set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from raggs.artifacts import RankRecord, Record
from raggs.errors import NotFoundError
from raggs.jsonl import M, read_records
from raggs.manifests.models import RunManifest
from raggs.manifests.store import RunStore
from raggs.stages.pipeline import Pipeline, load_pipeline


@dataclass(frozen=True)
class OpenedRun:
    """A run directory, read only. Streams open when they are read, so a large run costs no memory."""

    store: RunStore
    manifest: RunManifest

    @property
    def pipeline(self) -> Pipeline:
        """The stages that made it.

        Raises:
            UsageError: this raggs does not know them.
        """
        return load_pipeline(self.manifest.pipeline)

    @property
    def folder(self) -> Path:
        """The run directory."""
        return self.store.folder

    def records(self, artifact: str) -> Iterator[Record]:
        """The records of an artifact ("embed" … "rank", "rank.journal").

        Raises:
            UsageError: no such artifact.
            NotFoundError: its stage has not run.
        """
        return self.typed(artifact, self.pipeline.record(artifact))

    def typed(self, artifact: str, model: type[M]) -> Iterator[M]:
        """As `records`, for callers that name the record's class."""
        path = self.store.path(artifact)
        if not path.is_file():
            stage = self.pipeline.writer(artifact)
            raise NotFoundError(f"stage {stage} has not run", where=path, remedy="raggs run --config CONFIG")
        return read_records(path, model)

    def golden(self) -> Iterator[tuple[str, list[RankRecord]]]:
        """Query id and its ranked passages, best first, query after query."""
        for qid, records in groupby(self.typed("rank", RankRecord), key=lambda record: record.qid):
            yield qid, list(records)


def open_run(folder: Path | str) -> OpenedRun:
    """Open a run directory.

    Raises:
        NotFoundError: there is no run.
        DataError: its manifest is damaged.
    """
    store = RunStore(Path(folder))
    return OpenedRun(store, store.manifest())
