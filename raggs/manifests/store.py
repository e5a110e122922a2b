"""A run's folder: the manifest, the artifacts, the journal, and who may write them.

Order of a commit: the incomplete marker, the artifact (temporary file, fsync, rename), its line sums, the lock in
the manifest, then the marker goes. Whatever moment a kill chooses, the manifest never names a file that is not
there whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import ValidationError

from raggs.artifacts import Record, artifact_file
from raggs.atomic import disk, remove_leftovers, write_atomic
from raggs.errors import BusyError, DataError, NotFoundError
from raggs.hashing import hash_file
from raggs.jsonl import M, Written, first_fault, read_records, write_routed
from raggs.llm.ledger import FILE as LEDGER
from raggs.manifests.models import SCHEMA, Output, RunManifest

MANIFEST = "manifest.json"
LOCK = ".lock"
SUMS = ".sums"
JOURNAL = artifact_file("rank.journal")


class RunStore:
    """Reads and writes one run directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # --- the manifest ---

    @property
    def exists(self) -> bool:
        return (self.folder / MANIFEST).is_file()

    def manifest(self) -> RunManifest:
        """The manifest as it is on disk.

        Raises:
            NotFoundError: there is no run here.
            DataError: the manifest is damaged, or of a later version of raggs.
        """
        path = self.folder / MANIFEST
        try:
            data = path.read_bytes()
        except OSError as error:
            raise NotFoundError(
                "there is no run here", where=self.folder, remedy="raggs run --config CONFIG makes one"
            ) from error
        try:
            raw = json.loads(data)
            if isinstance(raw, dict) and raw.get("schema_version") not in (None, SCHEMA):
                raise DataError(
                    f"made by another version of raggs ({raw.get('raggs')})", where=path, remedy="upgrade raggs"
                )
            return RunManifest.model_validate(raw)
        except ValidationError as error:
            raise DataError(
                first_fault(error), where=path, remedy="restore the file, or delete it to run afresh"
            ) from error
        except ValueError as error:
            raise DataError(
                f"not valid JSON ({error})", where=path, remedy="restore the file, or delete it to run afresh"
            ) from error

    def save(self, manifest: RunManifest) -> None:
        text = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False, sort_keys=False)
        write_atomic(self.folder / MANIFEST, text.encode() + b"\n")

    # --- artifacts ---

    def path(self, artifact: str) -> Path:
        return self.folder / artifact_file(artifact)

    def read(self, artifact: str, model: type[M]) -> Iterator[M]:
        """The records of an artifact (see `raggs.jsonl.read_records` for the errors)."""
        return read_records(self.path(artifact), model)

    def write(self, models: Mapping[str, type[Record]], records: Iterable[Record]) -> dict[str, Output]:
        """Replace artifacts, each whole or not at all, with the checksum of each of their lines beside them.

        Args:
            models: the record on the lines of each artifact, which says where a record goes.

        Returns:
            What each file holds, by file name.
        """
        places = {model: self.path(artifact) for artifact, model in models.items()}
        outputs = {}
        for artifact, written in zip(models, write_routed(places, records), strict=True):
            self._write_sums(artifact, written)
            outputs[artifact_file(artifact)] = Output(sha256=written.sha256, rows=written.rows, bytes=written.size)
        return outputs

    def _write_sums(self, artifact: str, written: Written) -> None:
        folder = self.folder / SUMS
        folder.mkdir(exist_ok=True)
        write_atomic(folder / f"{artifact}.crc32", written.line_sums)

    def line_sums(self, artifact: str) -> bytes | None:
        """CRC-32 of each line as it was written, four bytes each, little-endian; None if not kept."""
        path = self.folder / SUMS / f"{artifact}.crc32"
        return path.read_bytes() if path.is_file() else None

    def file_hash(self, name: str) -> str | None:
        """sha256 of a file of the run, None if it is not there."""
        path = self.folder / name
        return hash_file(path) if path.is_file() else None

    @property
    def ledger(self) -> Path:
        """Where calls to language models are booked: an account, which nothing depends on."""
        return self.folder / LEDGER

    # --- the incomplete marker ---

    def marker(self, stage: str) -> Path:
        return self.folder / f".incomplete-{stage}"

    def begin(self, stage: str) -> None:
        write_atomic(self.marker(stage), b"")

    def finish(self, stage: str) -> None:
        self.marker(stage).unlink(missing_ok=True)

    # --- ownership ---

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Hold the directory for writing; made if missing, cleaned of a killed run's leftovers.

        Raises:
            BusyError: another process holds it.
            ProviderError: the directory cannot be made or written.
        """
        with disk(self.folder, "choose another workspace"):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / LOCK, timeout=0)
            try:
                lock.acquire()
            except Timeout as error:
                remedy = "wait for it, or pass --run-id"
                raise BusyError(
                    "another raggs run is using this directory", where=self.folder, remedy=remedy
                ) from error
        try:
            remove_leftovers(self.folder)
            remove_leftovers(self.folder / SUMS)
            yield
        finally:
            lock.release()


def dump_json(value: Any) -> str:
    """Readable JSON for people and pipes."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
