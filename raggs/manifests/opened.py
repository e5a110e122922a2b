"""A run opened for reading: typed access to its artifacts and to the golden set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from raggs.artifacts import ARTIFACTS, RankRecord, Record
from raggs.errors import NotFoundError, UsageError
from raggs.jsonl import M, read_records
from raggs.manifests.models import RunManifest
from raggs.manifests.store import RunStore
from raggs.text import did_you_mean


@dataclass(frozen=True)
class OpenedRun:
    """A run directory, read only. Streams open when they are read, so a large run costs no memory."""

    store: RunStore
    manifest: RunManifest

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
        return self.typed(artifact, model_of(artifact))

    def typed(self, artifact: str, model: type[M]) -> Iterator[M]:
        """As `records`, for callers that name the record's class."""
        path = self.store.path(artifact)
        if not path.is_file():
            raise NotFoundError(
                f"stage {writer_of(artifact)} has not run", where=path, remedy="raggs run --config CONFIG"
            )
        return read_records(path, model)

    def golden(self) -> Iterator[tuple[str, list[RankRecord]]]:
        """Query id and its ranked passages, best first, query after query."""
        for qid, records in groupby(self.typed("rank", RankRecord), key=lambda record: record.qid):
            yield qid, list(records)


def writer_of(artifact: str) -> str:
    """The stage that writes an artifact."""
    from raggs.stages import ORDER, load_stage  # late: stages need numpy, and most readers meet no missing file

    stages = map(load_stage, ORDER)
    return next(stage.NAME for stage in stages if artifact in (*stage.artifacts(), stage.JOURNAL))


def model_of(artifact: str) -> type[Record]:
    """The record class of an artifact.

    Raises:
        UsageError: no such artifact; the message lists the known ones.
    """
    if artifact not in ARTIFACTS:
        raise UsageError(f"there is no artifact {artifact!r}", remedy=did_you_mean(artifact, ARTIFACTS))
    return ARTIFACTS[artifact]


def open_run(folder: Path | str) -> OpenedRun:
    """Open a run directory.

    Raises:
        NotFoundError: there is no run.
        DataError: its manifest is damaged.
    """
    store = RunStore(Path(folder))
    return OpenedRun(store, store.manifest())
