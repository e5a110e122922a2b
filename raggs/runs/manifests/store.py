"""A run's folder: the manifest, the artifacts, the journal, and who may write them.

Order of a commit: the incomplete marker, the artifact (temporary file, fsync, rename), its line sums, the lock in
the manifest, then the marker goes. Whatever moment a kill chooses, the manifest never names a file that is not
there whole. The artifact of a stage that asks the judge is written under a name of its own first (`partial`), where it
stays if the stage is stopped: whole queries, which can be read until the stage is done.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from raggs.base.artifacts import Record, artifact_file
from raggs.base.atomic import remove_leftovers, sync_folder, write_atomic
from raggs.base.errors import DataError, NotFoundError
from raggs.base.hashing import canonical_json, hash_file
from raggs.base.holding import held
from raggs.base.inputs import regular_file
from raggs.base.jsonl import DECODER as STRICT
from raggs.base.jsonl import M, Written, first_fault, read_records, write_routed
from raggs.base.jsontypes import Json, JsonObject
from raggs.base.secrets import mask
from raggs.llm.budget import Cap
from raggs.llm.ledger import FILE as LEDGER
from raggs.runs.manifests.account import CRC, Account
from raggs.runs.manifests.models import SCHEMA, LedgerMark, Output, RunManifest
from raggs.runs.manifests.seal import sealed, unsound
from raggs.stages import GOLDEN
from raggs.stages.pipeline import Pipeline

MANIFEST = "manifest.json"
LOCK = ".lock"
SUMS = ".sums"
RESTORE = "restore the file, or delete it to run afresh"
DEEPEST = 100  # levels of a manifest's JSON
PARTIAL = ".partial.jsonl"
JOURNAL = artifact_file("rank.journal")


class RunStore:
    """Reads and writes one run directory.

    Args:
        folder: the directory.
        durable: whether what is written must survive a power cut; asked at each write. A kill takes nothing either way.
        pipeline: what is run in it, for remedies.
    """

    def __init__(self, folder: Path, durable: Callable[[], bool] = lambda: True, pipeline: Pipeline = GOLDEN) -> None:
        self.folder = folder
        self._durable = durable
        self._pipeline = pipeline

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
            data = regular_file(path).read_bytes()
        except OSError as error:
            raise NotFoundError(
                "there is no run here", where=self.folder, remedy=f"{self._pipeline.command} makes one"
            ) from error
        raw = _content(data, path)
        if raw.get("schema_version") not in (None, SCHEMA):
            raise DataError(
                f"made by another version of raggs ({raw.get('raggs')})", where=path, remedy="upgrade raggs"
            )
        try:
            return RunManifest.model_validate(raw)
        except ValidationError as error:
            raise DataError(first_fault(error), where=path, remedy=RESTORE) from error

    def content(self) -> JsonObject:
        """The manifest as its JSON says, for its seal.

        Raises:
            NotFoundError, DataError: as `manifest`.
        """
        path = self.folder / MANIFEST
        try:
            return _content(regular_file(path).read_bytes(), path)
        except OSError as error:
            raise NotFoundError("there is no run here", where=self.folder) from error

    def save(self, manifest: RunManifest) -> None:
        """Write the manifest under a new seal, which covers the ledger as it is now."""
        known = manifest.seal.ledger if manifest.seal else LedgerMark()
        data = manifest_bytes(sealed(manifest, self.account.mark(known)))
        write_atomic(self.folder / MANIFEST, data, durable=self._durable())

    def seal_ledger(self) -> None:
        """Seal what was booked since the manifest was written.

        Raises:
            RaggsError, OSError: the manifest cannot be read or written.
        """
        manifest = self.manifest()
        if not unsound(self.content()) and self.account.end() > (manifest.seal.ledger.bytes if manifest.seal else 0):
            self.save(manifest)

    # --- artifacts ---

    def path(self, artifact: str) -> Path:
        return self.folder / artifact_file(artifact)

    def read(self, artifact: str, model: type[M]) -> Iterator[M]:
        """The records of an artifact (see `raggs.base.jsonl.read_records` for the errors)."""
        return read_records(self.path(artifact), model)

    def write(self, models: Mapping[str, type[Record]], records: Iterable[Record]) -> dict[str, Output]:
        """Replace artifacts, each whole or not at all, with the checksum of each of their lines beside them.

        Args:
            models: the record on the lines of each artifact, which says where a record goes.

        Returns:
            What each file holds, by file name.
        """
        places = {model: self.path(artifact) for artifact, model in models.items()}
        return self._outputs(models, write_routed(places, records, durable=self._durable()))

    def partial(self, artifact: str) -> Path:
        """Where an artifact is until its stage is done."""
        return self.folder / f"{artifact}{PARTIAL}"

    def write_partial(self, models: Mapping[str, type[Record]], records: Iterable[Record]) -> list[Written]:
        """As `write`, under names that no lock knows."""
        places = {model: self.partial(artifact) for artifact, model in models.items()}
        return write_routed(places, records, durable=self._durable())

    def promote(self, models: Mapping[str, type[Record]], written: Iterable[Written]) -> dict[str, Output]:
        """Make what `write_partial` wrote the artifacts."""
        for artifact in models:
            self.partial(artifact).replace(self.path(artifact))
        if self._durable():
            sync_folder(self.folder)
        return self._outputs(models, written)

    def _outputs(self, models: Iterable[str], every: Iterable[Written]) -> dict[str, Output]:
        outputs = {}
        for artifact, written in zip(models, every, strict=True):
            self._write_sums(artifact, written)
            outputs[artifact_file(artifact)] = Output(sha256=written.sha256, rows=written.rows, bytes=written.size)
        return outputs

    def _write_sums(self, artifact: str, written: Written) -> None:
        folder = self.folder / SUMS
        folder.mkdir(exist_ok=True)
        write_atomic(folder / f"{artifact}.crc32", written.line_sums, durable=self._durable())

    def line_sums(self, artifact: str) -> bytes | None:
        """CRC-32 of each line as it was written, four bytes each, little-endian; None if not kept."""
        path = self.folder / SUMS / f"{artifact}.crc32"
        return path.read_bytes() if path.is_file() else None

    def first_edited_line(self, artifact: str) -> int | None:
        """Return the first line that is not the one that was written; None if all are, or no checksums are kept."""
        sums, path = self.line_sums(artifact), self.path(artifact)
        if sums is None or not path.is_file():
            return None
        number = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if zlib.crc32(line).to_bytes(CRC, "little") != sums[CRC * (number - 1) : CRC * number]:
                    return number
        return None if CRC * number == len(sums) else number + 1

    def file_hash(self, name: str) -> str | None:
        """sha256 of a file of the run, None if it is not there."""
        path = self.folder / name
        return hash_file(path) if path.is_file() else None

    @cached_property
    def account(self) -> Account:
        """The running hash of the ledger."""
        return Account(self.ledger, self._ledger_sums)

    @property
    def ledger_sums(self) -> bytes:
        """CRC-32 of each sealed line of the ledger, four bytes each, little-endian; empty where not kept."""
        return self._ledger_sums.read_bytes() if self._ledger_sums.is_file() else b""

    @property
    def _ledger_sums(self) -> Path:
        return self.folder / SUMS / f"{LEDGER.removesuffix('.jsonl')}.crc32"

    @property
    def ledger(self) -> Path:
        """Where calls to language models are booked: an account, which nothing depends on."""
        return self.folder / LEDGER

    # --- the incomplete marker ---

    def marker(self, stage: str) -> Path:
        return self.folder / f".incomplete-{stage}"

    def begin(self, stage: str, fingerprint: str) -> None:
        """Note that a stage is begun, and of what; a part of a result of anything else goes."""
        if self.begun(stage) != fingerprint or not self.marker(stage).exists():
            self.forget_partial(stage)
        self.marker(stage).write_text(fingerprint)  # what it says is not worth a wait for the disk

    def begun(self, stage: str) -> str:
        """The fingerprint under which a stage was begun that has not finished; empty where none was."""
        return self._begun(stage)[0]

    def note_spent(self, stage: str, cap: Cap) -> None:
        """Note that the last attempt of a stage that was begun reached a cap of the budget."""
        self.marker(stage).write_text(f"{self.begun(stage)}\n{cap.setting} {cap.limit!r} {cap.spent!r}")

    def spent(self, stage: str) -> Cap | None:
        """The cap that a stage's last attempt reached; None where it did not, or is done."""
        try:
            setting, limit, spent = self._begun(stage)[1].split()
            return Cap(setting, float(limit), float(spent))
        except ValueError:
            return None

    def _begun(self, stage: str) -> tuple[str, str]:
        marker = self.marker(stage)
        fingerprint, _, noted = (marker.read_text(errors="replace") if marker.is_file() else "").partition("\n")
        return fingerprint, noted

    def finish(self, stage: str) -> None:
        self.forget_partial(stage)
        self.marker(stage).unlink(missing_ok=True)

    def forget_partial(self, stage: str) -> None:
        """Delete what an attempt of a stage left that was stopped."""
        for path in self.folder.glob(f"{stage}*{PARTIAL}"):
            path.unlink(missing_ok=True)

    # --- ownership ---

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Hold the directory for writing; made if missing, cleaned of a killed run's leftovers.

        Raises:
            BusyError: another process holds it.
            ProviderError: the directory cannot be made or written.
        """
        wait = f"wait for it, or {self._pipeline.beside}"
        who = "another raggs run is using this directory"
        with held(self.folder / LOCK, self.folder, who=who, wait=wait, remedy="choose another workspace"):
            remove_leftovers(self.folder)
            remove_leftovers(self.folder / SUMS)
            yield


def config_place(file: Path, folder: Path) -> str:
    """Return the path of a configuration file from a run directory: it does not depend on the working directory."""
    file, folder = file.resolve(), folder.resolve()
    try:
        return Path(os.path.relpath(file, folder)).as_posix()
    except ValueError:  # another drive
        return file.as_posix()


def manifest_bytes(content: Mapping[str, object]) -> bytes:
    """A manifest's JSON as raggs writes it."""
    return json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n"


def _content(data: bytes, path: Path) -> JsonObject:
    """The object of a manifest's bytes, which holds nothing that JSON has not: no NaN, no torn characters.

    Raises:
        DataError: it is none, or nested deeper than anything that raggs writes.
    """
    try:
        found: Json = STRICT.decode(data.decode())
        if _depth(found) > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} deep")
        canonical_json(found).encode()
    except (ValueError, RecursionError) as error:
        raise DataError(f"not valid JSON ({error})", where=path, remedy=RESTORE) from error
    if not isinstance(found, dict):
        raise DataError("holds no JSON object", where=path, remedy=RESTORE)
    return found


def _depth(value: Json) -> int:
    """How deep a value is nested, found level by level."""
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return depth


def dump_json(value: Any) -> str:
    """Readable JSON for people and pipes, without keys."""
    return mask(json.dumps(value, indent=2, ensure_ascii=False, default=str))
