"""Folder of a sweep, `sweeps/<name>/`. With the golden set, the scores, the choice and the report follow from it.

    manifest.json   configuration, hash of all dependencies, and hash of each file
    systems.jsonl   one line per system with all measurements
    runs/           output of each system as a TREC run; for a fitted weight also the lists per weight
    timings.jsonl   every measurement of time
    cuts.jsonl      chunkings, if systems differ in them; places.jsonl: positions of their chunks
    sweep.json      the report; also sweep.csv, sweep.md and plots

The manifest is written last. A killed sweep has no manifest, or an earlier one whose hashes may not match the files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from pydantic import Field, JsonValue, ValidationError

from raggs.base import __version__
from raggs.base.errors import DataError, NotFoundError, RaggsError, UsageError
from raggs.base.files import disk, hash_file, hold_folder, remove_leftovers, write_atomic
from raggs.base.hashing import hash_value
from raggs.base.jsonl import read_records, read_torn, write_records
from raggs.evaluation.models import ReportPart
from raggs.golden.base import GoldenSet
from raggs.golden.judgments import Judgments
from raggs.golden.places import judged_places
from raggs.metrics.columns import Run
from raggs.parts.run_files import read_run
from raggs.runs.manifests.store import RunStore
from raggs.sweeps.judgments import HOLES, ChunkingGrades, PlaceRow, cut_of, references_of
from raggs.sweeps.models import CutPart, OutcomePart, SweepReport, SystemRow, Timing
from raggs.sweeps.outputs import Lists
from raggs.sweeps.world import read_foreign

MANIFEST, SYSTEMS, TIMINGS, REPORT, RUNS = "manifest.json", "systems.jsonl", "timings.jsonl", "sweep.json", "runs"
CHUNKINGS_FILE, PLACES_FILE = "cuts.jsonl", "places.jsonl"
REMEDY = "choose another `folder`, or check its permissions"


class SweepManifest(ReportPart):
    """Content of manifest.json."""

    v: Literal[2] = 2
    kind: Literal["sweep"] = "sweep"
    raggs: str = __version__
    name: str
    created: datetime
    config: Mapping[str, JsonValue]
    config_file: str | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="path of the configuration file, relative to the folder of the sweep",
    )
    golden: str = Field(description="sha256 over the judgments of the queries")
    questions: tuple[str, ...] = Field(description="ids of all queries")
    world: str | None = Field(description="hash of queries and passages; null if no corpus was searched")
    causes: str = Field(description="hash of all that the lists and scores depend on")
    settings: str = Field(description="hash of limits, prices and how time is measured")
    outcome: OutcomePart = Field(description="limits, choice, frontiers, and PROC and %PROC of each system")
    files: Mapping[str, str] = Field(description="sha256 of each other file")
    seal: str = Field("", description="sha256 of the whole manifest except this field")

    def sealed(self) -> SweepManifest:
        """Return the manifest with its seal."""
        return self.model_copy(update={"seal": self.own_hash()})

    def own_hash(self) -> str:
        """Return the correct value of the seal."""
        return hash_value(self.model_dump(mode="json", exclude={"seal"}))


class SweepStore:
    """The folder of one sweep.

    Args:
        folder: path; created on the first write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def exists(self) -> bool:
        """Whether a finished sweep is stored here."""
        return (self.folder / MANIFEST).is_file()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Lock the folder for writing.

        Raises:
            BusyError: another process holds the lock.
            ProviderError: the folder cannot be written.
        """
        lock = self.folder.with_name(f".{self.folder.name}.lock")
        wait = "wait for it, or choose another `name`"
        with hold_folder(lock, self.folder, who="another raggs sweep is using this folder", wait=wait, remedy=REMEDY):
            yield

    def manifest(self) -> SweepManifest:
        """Return the manifest.

        Raises:
            NotFoundError: there is no sweep.
            DataError: the manifest is damaged.
            UsageError: the folder contains a run.
        """
        path = self.folder / MANIFEST
        if not path.is_file():
            raise NotFoundError("no finished sweep", where=self.folder, remedy="raggs sweep --config FILE")
        try:
            return SweepManifest.model_validate_json(path.read_bytes())
        except ValidationError as error:
            if _is_run(self.folder):
                remedy = "choose another `name` or `folder`"
                raise UsageError("this folder contains a run, not a sweep", where=self.folder, remedy=remedy) from error
            raise DataError(
                "not the manifest of a sweep as raggs writes it now", where=path, remedy="run the sweep again"
            ) from error

    def report(self) -> SweepReport:
        """Return the report.

        Raises:
            DataError: it is missing or damaged.
        """
        path = self.folder / REPORT
        try:
            return SweepReport.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise DataError(
                "not the report of a sweep as raggs writes it now", where=path, remedy="run the sweep again"
            ) from error

    def systems(self) -> list[SystemRow]:
        """Return the measured systems."""
        return list(read_records(self.folder / SYSTEMS, SystemRow))

    def timings(self) -> list[Timing]:
        """Return every measurement of time."""
        return list(
            read_torn(
                self.folder / TIMINGS, Timing, "delete the line and run the sweep again, which times the step again"
            )
        )

    def drop_edited_timings(self) -> bool:
        """Delete `timings.jsonl` if its beginning differs from what the finished sweep wrote, and return whether it was
        deleted.

        If an interrupted sweep only appended lines, they are kept.
        """
        path = self.folder / TIMINGS
        try:
            wanted = self.manifest().files.get(TIMINGS) if self.exists else None
        except RaggsError:
            return False
        if wanted is None or not path.is_file():
            return False
        digest = hashlib.sha256()
        with path.open("rb") as file:
            for line in file:
                digest.update(line)
                if digest.hexdigest() == wanted:
                    return False
        with disk(path, REMEDY):
            path.unlink()
        return True

    def run(self, row: SystemRow) -> Run:
        """Return the lists of a finished system.

        Raises:
            NotFoundError, DataError: the system is unfinished, the file cannot be read, or an external run has changed.
        """
        if row.file is None:
            raise DataError(f"{row.name} is unfinished", where=self.folder, remedy="run the sweep again")
        path = self.folder / row.file
        if row.sha256 is None:
            return read_run(path)
        return read_foreign(path, row.sha256, row.k)

    def keep_run(self, name: str, lists: Lists) -> str:
        """Write a system's lists and return the file's path relative to the folder."""
        path = self.folder / RUNS / f"{quote(name, safe='+')}.trec"
        with disk(path, REMEDY):
            path.parent.mkdir(parents=True, exist_ok=True)
            data = "".join(_trec(lists, quote(name, safe="+"))).encode()
            if not path.is_file() or path.read_bytes() != data:
                write_atomic(path, data, durable=False)
        return path.relative_to(self.folder).as_posix()

    def keep_cuts(self, atlas: ChunkingGrades | None, shown: Mapping[str, Iterable[str]]) -> None:
        """Write the chunkings, and the positions of chunks that lists and grades need.

        Args:
            atlas: all chunkings. None if all systems use the chunks of the corpus; existing files are then deleted.
            shown: by chunking, the passages that systems return.
        """
        with disk(self.folder, REMEDY):
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in (CHUNKINGS_FILE, PLACES_FILE) if atlas is None else ():
                (self.folder / name).unlink(missing_ok=True)
            if atlas is not None:
                write_records(self.folder / PLACES_FILE, atlas.rows(shown))
                write_records(self.folder / CHUNKINGS_FILE, atlas.parts)

    def atlas(self, golden: GoldenSet, whole: Judgments, labels: Judgments) -> ChunkingGrades | None:
        """Return the judgments for each chunking from the stored positions; None if no chunkings are stored.

        Args:
            golden: the golden set; `whole` are all of its grades.
            labels: the grades for scoring.

        Raises:
            DataError: a file is missing or damaged, or the judged passages have no positions.
        """
        if not (self.folder / CHUNKINGS_FILE).is_file():
            return None
        places: dict[str, list[PlaceRow]] = {}
        for row in read_records(self.folder / PLACES_FILE, PlaceRow):
            places.setdefault(row.cut, []).append(row)
        parts = list(read_records(self.folder / CHUNKINGS_FILE, CutPart))
        cuts = [(part, cut_of(places.get(part.label, ()), self.folder / PLACES_FILE)) for part in parts]
        return ChunkingGrades(judged_places(golden, whole), labels, cuts, references_of(golden.queries()))

    def keep(self, manifest: SweepManifest, rows: Iterable[SystemRow], texts: Mapping[str, str]) -> SweepManifest:
        """Write the results and delete runs and plots that are no longer part of the sweep."""
        with disk(self.folder, REMEDY):
            self.folder.mkdir(parents=True, exist_ok=True)
            rows = list(rows)
            write_records(self.folder / SYSTEMS, rows)
            for name, text in texts.items():
                write_atomic(self.folder / name, text.encode())
            mine = {row.file for row in rows if row.file} | {name for row in rows if row.fit for name in row.fit.files}
            for path in (self.folder / RUNS).glob("*.trec"):
                if path.relative_to(self.folder).as_posix() not in mine:
                    path.unlink()
            for path in self.folder.glob("*.svg"):
                if path.name not in texts:
                    path.unlink()
            remove_leftovers(self.folder)
            kept = manifest.model_copy(
                update={
                    "files": dict(
                        self.hashes([SYSTEMS, TIMINGS, HOLES, CHUNKINGS_FILE, PLACES_FILE, *texts, *sorted(mine)])
                    )
                }
            )
            kept = kept.sealed()
            write_atomic(self.folder / MANIFEST, kept.model_dump_json(indent=2).encode())
        return kept

    def hashes(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield the sha256 of existing files."""
        yield from ((name, hash_file(self.folder / name)) for name in names if (self.folder / name).is_file())

    def changed(self) -> list[str]:
        """Return files that differ from the manifest or are missing; also the manifest itself if its seal is broken."""
        manifest = self.manifest()
        found = dict(self.hashes(manifest.files))
        changed = [name for name, sha256 in manifest.files.items() if found.get(name) != sha256]
        return changed if manifest.seal == manifest.own_hash() else [MANIFEST, *changed]


def _is_run(folder: Path) -> bool:
    try:
        return "stages" in RunStore(folder).content()
    except RaggsError:
        return False


def utc_now() -> datetime:
    """Return the time in UTC, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


def _trec(lists: Lists, tag: str) -> Iterator[str]:
    """Yield TREC lines; scores decrease with the rank, so that no reader finds ties."""
    for qid, hits in lists.items():
        for at, (doc, _) in enumerate(hits):
            yield f"{qid} Q0 {doc} {at + 1} {len(hits) - at} {tag}\n"
