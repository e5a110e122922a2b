"""A run's folder: the manifest, the artifacts, the journal, and write access to them.

The order of a commit is: the incomplete marker, the artifact (temporary file, fsync, rename), its line checksums, the
lock in the manifest, then removal of the marker. If the process is killed at any moment, the manifest never names an
incomplete file. The artifact of a stage that calls models is first written under another name (`partial`). If the stage
is stopped, this file stays and contains only whole queries, which can be read from there until the stage is done.

The seal of a manifest consists of hashes of its content. They show whether and where the manifest was edited. A seal is
not a signature.

Each lock contains a `chain`: a hash of the lock and of the previous lock's chain. For the first lock, the head of the
manifest replaces the previous chain. Configuration, estimates and ledger have one hash each, and one more hash covers
everything. A seal is checked against the JSON in the file, not against the models of this version. Later versions of
raggs can therefore check it, too.

Everyone who has raggs can write a valid seal, so it reveals accidental edits, but not forgery
(docs/concepts/caching-and-audit.md).

`RunJournal` is the journal of judged batches while the rank stage runs. The entries are on disk; only their positions
are in memory. Entries are appended as they arrive. Each entry is passed to the operating system before `append`
returns. Lines are not synced one by one: a power cut may lose the newest lines, but their paid answers are still in the
cache. When a query is done, `settle` records which entries determine its ranking. For the commit, `settled` yields
these entries in their final order. The journal of a resumed run therefore has the same bytes as that of an
uninterrupted one.

`LedgerReader` computes the mark of llm.ledger.jsonl: its length, and the hash of its content, when a manifest was
written. The ledger is append-only. Each time a manifest is written, the reader hashes only the new lines, and returns a
new mark. A mark covers only whole lines, because an incomplete line is removed when the ledger is opened again. If
raggs is killed, the next mark covers the lines written before the kill. A ledger that does not match its last mark gets
no new mark, so edits remain detectable.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, BinaryIO

from pydantic import ValidationError

from raggs.base.artifacts import JournalRecord, Record, artifact_file
from raggs.base.errors import DataError, NotFoundError
from raggs.base.files import (
    atomic_writer,
    hash_file,
    hold_folder,
    regular_file,
    remove_leftovers,
    sync_folder,
    write_atomic,
)
from raggs.base.hashing import canonical_json, hash_value
from raggs.base.jsonl import DECODER as STRICT
from raggs.base.jsonl import M, WrittenFile, dump_line, first_fault, read_records, read_torn, write_routed
from raggs.base.secrets import mask
from raggs.base.text import plural
from raggs.base.types import Json, JsonObject, as_object
from raggs.llm.budget import BudgetCap
from raggs.llm.ledger import LEDGER_FILE as LEDGER
from raggs.runs.manifests.models import SCHEMA, LedgerMark, RunManifest, StageOutput
from raggs.stages import GOLDEN
from raggs.stages.pipeline import Pipeline

HEAD = ("schema_version", "name", "pipeline", "created", "raggs")
LATEST = ("config", "config_file")  # both describe the latest invocation

Content = Mapping[str, object]  # content of a manifest as parsed JSON


@dataclass(frozen=True)
class ManifestBreak:
    """A part of a manifest that was changed since raggs wrote it.

    Attributes:
        path: path of the part: the keys from the root of the JSON.
        stage: name of the stage if the part is a lock; None for every other part.
        message: description of the change, as a clause.
    """

    path: tuple[str, ...]
    stage: str | None
    message: str


def sealed(manifest: RunManifest, ledger: LedgerMark) -> dict[str, object]:
    """Return the JSON of a manifest with new chains and a new seal."""
    content: dict[str, object] = manifest.model_dump(mode="json")
    before = _head_hash(content)
    stages: dict[str, object] = {}
    for name, lock in _locks(content):
        before = _link(before, lock)
        stages[name] = {**lock, "chain": before}
    content["stages"] = stages
    seal: dict[str, object] = {**_parts(content), "ledger": ledger.model_dump(mode="json")}
    content["seal"] = seal
    seal["sha256"] = content_hash(content)
    return content


def content_hash(content: Content) -> str:
    """Return the hash of a manifest's whole content except the field that stores this hash."""
    seal = {name: value for name, value in as_object(content.get("seal")).items() if name != "sha256"}
    return hash_value({**content, "seal": seal})


def breaks(content: Content) -> Iterator[ManifestBreak]:
    """Yield every part of a manifest that does not match its seal. Yield nothing if the manifest was never sealed."""
    seal = as_object(content.get("seal"))
    if not seal:
        if _was_sealed(content):
            yield ManifestBreak((), None, "the seal was removed, but the chains of the locks remain")
        return
    found = [*_chain_breaks(content, seal), *_part_breaks(content, seal)]
    yield from found
    if not found and seal.get("sha256") != content_hash(content):
        yield ManifestBreak(
            ("seal",),
            None,
            "the manifest was changed since raggs wrote it: the hash of its content differs from the one in its seal",
        )


def edited_stages(content: Content) -> frozenset[str]:
    """Return the stages whose locks were changed since raggs wrote them."""
    return frozenset(each.stage for each in breaks(content) if each.stage is not None)


def place_of(text: str, path: Sequence[str]) -> int | None:
    """Return the line (from 1) at which a part of a manifest starts. If the part is not found, return the line of the
    innermost enclosing part, or None if there is none. The text must be formatted as raggs writes it.
    """
    found, lines, depth = None, text.split("\n"), 1
    at = 0
    for depth, key in enumerate(path, start=1):
        start = f"{'  ' * depth}{json.dumps(key, ensure_ascii=False)}:"
        outside = "  " * depth
        while at < len(lines) and not lines[at].startswith(start):
            at += 1
            if found is not None and at < len(lines) and not lines[at].startswith(outside):
                return found
        if at == len(lines):
            return found
        found, at = at + 1, at + 1
    return found


def _chain_breaks(content: Content, seal: Content) -> Iterator[ManifestBreak]:
    before = str(seal.get("head"))
    if before != _head_hash(content):
        yield ManifestBreak((), None, f"one of {', '.join(HEAD)} was changed since raggs wrote it")
    for name, lock in _locks(content):
        if lock.get("chain") != _link(before, lock):
            message = (
                f"stage {name}: its lock was changed since raggs wrote it, or an earlier lock was added or removed"
            )
            yield ManifestBreak(("stages", name), name, message)
        before = str(lock.get("chain"))


def _part_breaks(content: Content, seal: Content) -> Iterator[ManifestBreak]:
    for name, expected in _parts(content).items():
        if name != "head" and seal.get(name) != expected:
            yield ManifestBreak((name,), None, f"{name} was changed since raggs wrote it")


def _parts(content: Content) -> dict[str, str]:
    return {
        "head": _head_hash(content),
        "config": hash_value([content.get(name) for name in LATEST]),
        "estimates": hash_value(content.get("estimates")),
    }


def _head_hash(content: Content) -> str:
    return hash_value({name: content.get(name) for name in HEAD})


def _link(before: str, lock: Content) -> str:
    return hash_value({"before": before, "lock": {name: value for name, value in lock.items() if name != "chain"}})


def _locks(content: Content) -> Iterator[tuple[str, Content]]:
    for name, lock in as_object(content.get("stages")).items():
        yield name, as_object(lock)


def _was_sealed(content: Content) -> bool:
    return any(lock.get("chain") or lock.get("booked") for _, lock in _locks(content))


class EntryFile:
    """Journal entries in a file, indexed by query. The owner closes the file.

    Args:
        file: file that is open for reading and writing. To register entries that it already contains, call `index`.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self._end = 0
        self._places: dict[str, array[int]] = {}  # start and end of each block of entries, so 16 bytes per block

    def index(self, qid: str, size: int) -> None:
        """Register the next `size` bytes of the file as an entry of query `qid`."""
        places = self._places.setdefault(qid, array("q"))
        if places and places[-1] == self._end:
            places.pop()
        else:
            places.append(self._end)
        self._end += size
        places.append(self._end)

    def add(self, record: JournalRecord) -> None:
        line = dump_line(record)
        self.file.seek(self._end)
        self.file.write(line)
        self.file.flush()
        self.index(record.qid, len(line))

    def get(self, qid: str) -> Iterator[JournalRecord]:
        """Yield the entries of a query, in order of arrival."""
        places = self._places.get(qid, array("q"))
        for start, end in zip(places[::2], places[1::2], strict=True):
            self.file.seek(start)
            for line in self.file.read(end - start).splitlines():
                yield JournalRecord.model_validate_json(line)

    def forget(self, qid: str) -> None:
        self._places.pop(qid, None)

    def __iter__(self) -> Iterator[JournalRecord]:
        """Yield every entry, sorted by query, round and slot."""
        for qid in sorted(self._places):
            yield from sorted(self.get(qid), key=lambda entry: (entry.round, entry.slot))


class RunJournal:
    """The journal of judged batches of one run.

    Args:
        path: path of the file; created if missing.
        sums: CRC-32 of the lines that are used, four bytes each, little-endian. If None, all lines are used.

    Raises:
        DataError: a line is not a valid entry. An incomplete last line is not an error.
        OSError: the file cannot be read or written.
    """

    def __init__(self, path: Path, sums: bytes | None = None) -> None:
        believed = None if sums is None else {sums[at : at + 4] for at in range(0, len(sums), 4)}
        # The complete lines are written to a new file, because an incomplete last line would corrupt the next entry.
        with atomic_writer(path) as file:
            self._known = EntryFile(file)
            for record in read_torn(path, JournalRecord, "delete the file to restart this stage"):
                line = dump_line(record, given=True)
                if believed is None or zlib.crc32(line).to_bytes(4, "little") in believed:
                    self._known.index(record.qid, file.write(line))
        self._known.file = path.open("r+b")
        self._settled = EntryFile(tempfile.TemporaryFile(dir=path.parent))  # noqa: SIM115 - closed by `close`

    def entries(self, qid: str) -> list[JournalRecord]:
        """Return the entries of a query that is not settled, from earlier invocations and from this one."""
        return list(self._known.get(qid))

    def append(self, record: JournalRecord) -> None:
        self._known.add(record)

    def settle(self, qid: str, used: Iterable[JournalRecord]) -> None:
        self._known.forget(qid)
        for record in used:
            self._settled.add(record)

    def settled(self) -> Iterator[JournalRecord]:
        yield from self._settled

    def close(self) -> None:
        self._known.file.close()
        self._settled.file.close()


CRC = 4  # size of a line's checksum in bytes
Problem = tuple[int | None, str]  # number of a line in the ledger (None if unknown), and its problem


class LedgerReader:
    """Reader of one ledger. After a comparison with the last mark, it reads only new lines.

    Args:
        path: path of the ledger; it need not exist.
        sums: path of a file with the CRC-32 of each line that a mark covers. The checksums show which line was edited.
    """

    def __init__(self, path: Path, sums: Path) -> None:
        self._path, self._sums_path = path, sums
        self._digest, self._sums = hashlib.sha256(), bytearray()
        self._mark = LedgerMark()
        self._checked = False  # whether the existing ledger was compared with its last mark
        self._kept: LedgerMark | None = None  # the last mark, if the ledger no longer matches it

    def end(self) -> int:
        """Return the total size of the ledger's complete lines in bytes.

        Raises:
            OSError: the ledger cannot be read.
        """
        return self._read().bytes

    def expect(self, known: LedgerMark) -> None:
        """Mark no lines after `known`, because raggs did not write them.

        Raises:
            OSError: the ledger cannot be read.
        """
        if self.end() > known.bytes:
            self._kept, self._checked = known, True

    def mark(self, known: LedgerMark) -> LedgerMark:
        """Return a new mark. Return the last mark if the ledger does not match `known`, or if `expect` found more
        lines. When this returns, everything that a new mark covers is on disk.

        Raises:
            OSError: the file cannot be read or written.
        """
        if not self._checked and not fits_mark(self._path, known):
            self._kept = known
        self._checked = True
        if self._kept is not None:
            return self._kept
        found = self._read()
        if found.bytes > known.bytes or (not self._sums_path.is_file() and found.rows):
            self._sums_path.parent.mkdir(exist_ok=True)
            write_atomic(self._sums_path, bytes(self._sums))
        return found

    def _read(self) -> LedgerMark:
        if not self._path.is_file():
            return self._mark
        with self._path.open("rb") as file:
            file.seek(self._mark.bytes)
            rows, size = self._mark.rows, self._mark.bytes
            for line in _complete_lines(file):
                self._digest.update(line)
                self._sums += zlib.crc32(line).to_bytes(CRC, "little")
                rows, size = rows + 1, size + len(line)
            if size > self._mark.bytes:
                os.fsync(file.fileno())  # everything that a mark covers must be on disk before the mark is
        self._mark = LedgerMark(rows=rows, bytes=size, sha256=self._digest.hexdigest())
        return self._mark


def fits_mark(path: Path, mark: LedgerMark) -> bool:
    """Return whether the ledger still starts with the content that it had when the mark was made."""
    if not mark.bytes:
        return True
    if not path.is_file() or path.stat().st_size < mark.bytes:
        return False
    digest, left = hashlib.sha256(), mark.bytes
    with path.open("rb") as file:
        while left and (block := file.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest() == mark.sha256


def problems(path: Path, mark: LedgerMark, sums: bytes) -> Iterator[Problem]:
    """Yield a problem if a ledger does not match its mark, with the first changed line if checksums are stored."""
    if fits_mark(path, mark):
        return
    if not path.is_file():
        yield None, f"the file is missing, but has {plural(mark.rows, 'line')} in the manifest"
        return
    line = _first_changed(path, sums) if len(sums) >= CRC * mark.rows else None
    yield (
        line,
        f"was changed: the hash of its first {plural(mark.rows, 'line')} differs from the one in the manifest",
    )


def unbooked(path: Path, mark: LedgerMark) -> Problem | None:
    """Return the first line after a mark and its problem, or None if there is no such line or the ledger does not match
    the mark. Call this only if no stage is running.
    """
    if not path.is_file() or path.stat().st_size <= mark.bytes or not fits_mark(path, mark):
        return None
    with path.open("rb") as file:
        file.seek(mark.bytes)
        count = sum(1 for _ in _complete_lines(file))
    told = f"{plural(count, 'line')} from here on were added after the run had recorded its last call"
    return (mark.rows + 1, told) if count else None


def _first_changed(path: Path, sums: bytes) -> int | None:
    number = 0
    with path.open("rb") as file:
        for number, line in enumerate(_complete_lines(file), start=1):
            expected = sums[CRC * (number - 1) : CRC * number]
            if not expected:
                return None
            if zlib.crc32(line).to_bytes(CRC, "little") != expected:
                return number
    return number + 1


def _complete_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines that end with a line break."""
    for line in file:
        if line.endswith(b"\n"):
            yield line


MANIFEST = "manifest.json"
LOCK = ".lock"
CHECKSUM_FOLDER = ".sums"
RESTORE = "restore the file, or delete it to start the run from scratch"
MAX_NESTING = 100  # maximum nesting depth of a manifest's JSON
PARTIAL = ".partial.jsonl"
JOURNAL = artifact_file("rank.journal")


class RunStore:
    """Read and write one run directory.

    Args:
        folder: the run directory.
        durable: returns whether data must survive a power cut. It is called for each write. In any case, written data
            survives a kill of the process.
        pipeline: pipeline of the run, for the remedies in error messages.
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
        """Return the manifest on disk.

        Raises:
            NotFoundError: the directory contains no run, or its manifest cannot be read.
            DataError: the manifest is damaged, or from another version of raggs.
        """
        path = self.folder / MANIFEST
        try:
            data = regular_file(path).read_bytes()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotFoundError(
                "no run here", where=self.folder, remedy=f"create a run with {self._pipeline.command}"
            ) from error
        except OSError as error:
            told = f"cannot be read ({error.strerror})"
            raise NotFoundError(told, where=path, remedy="check that it is a file that you may read") from error
        raw = _content(data, path)
        if raw.get("schema_version") not in (None, SCHEMA):
            raise DataError(
                f"written by another version of raggs ({raw.get('raggs')})", where=path, remedy="upgrade raggs"
            )
        try:
            return RunManifest.model_validate(raw)
        except ValidationError as error:
            raise DataError(first_fault(error), where=path, remedy=RESTORE) from error

    def content(self) -> JsonObject:
        """Return the manifest as parsed JSON, which is what the seal covers.

        Raises:
            NotFoundError, DataError: see `manifest`.
        """
        path = self.folder / MANIFEST
        try:
            return _content(regular_file(path).read_bytes(), path)
        except OSError as error:
            raise NotFoundError("no run here", where=self.folder) from error

    def save(self, manifest: RunManifest) -> None:
        """Write the manifest with a new seal. The seal covers all current lines of the ledger, unless the ledger does
        not match its last mark.
        """
        known = manifest.seal.ledger if manifest.seal else LedgerMark()
        data = manifest_bytes(sealed(manifest, self.account.mark(known)))
        write_atomic(self.folder / MANIFEST, data, durable=self._durable())

    def seal_ledger(self) -> None:
        """Write the manifest again if the ledger has new lines, with a seal that covers them. If a lock was edited, do
        nothing.

        Raises:
            RaggsError, OSError: the manifest cannot be read or written.
        """
        manifest = self.manifest()
        if not edited_stages(self.content()) and self.account.end() > (
            manifest.seal.ledger.bytes if manifest.seal else 0
        ):
            self.save(manifest)

    # --- artifacts ---

    def path(self, artifact: str) -> Path:
        return self.folder / artifact_file(artifact)

    def read(self, artifact: str, model: type[M]) -> Iterator[M]:
        """Return the records of an artifact (see `raggs.base.jsonl.read_records` for the errors)."""
        return read_records(self.path(artifact), model)

    def write(self, models: Mapping[str, type[Record]], records: Iterable[Record]) -> dict[str, StageOutput]:
        """Write artifacts, and store a checksum of each of their lines. Each existing file is replaced completely or
        not at all.

        Args:
            models: record type of each artifact. Each record is written to the artifact of its type.
            records: records of all artifacts.

        Returns:
            Hash, line count and size of each file, by file name.
        """
        places = {model: self.path(artifact) for artifact, model in models.items()}
        return self._outputs(models, write_routed(places, records, durable=self._durable()))

    def partial(self, artifact: str) -> Path:
        """Return the path of an artifact while its stage is not done."""
        return self.folder / f"{artifact}{PARTIAL}"

    def write_partial(self, models: Mapping[str, type[Record]], records: Iterable[Record]) -> list[WrittenFile]:
        """Write artifacts to their partial paths, which no lock refers to; see `write`."""
        places = {model: self.partial(artifact) for artifact, model in models.items()}
        return write_routed(places, records, durable=self._durable())

    def promote(self, models: Mapping[str, type[Record]], written: Iterable[WrittenFile]) -> dict[str, StageOutput]:
        """Rename the files that `write_partial` wrote to the artifacts, and store their checksums."""
        for artifact in models:
            self.partial(artifact).replace(self.path(artifact))
        if self._durable():
            sync_folder(self.folder)
        return self._outputs(models, written)

    def _outputs(self, models: Iterable[str], every: Iterable[WrittenFile]) -> dict[str, StageOutput]:
        outputs = {}
        for artifact, written in zip(models, every, strict=True):
            self._write_sums(artifact, written)
            outputs[artifact_file(artifact)] = StageOutput(sha256=written.sha256, rows=written.rows, bytes=written.size)
        return outputs

    def _write_sums(self, artifact: str, written: WrittenFile) -> None:
        folder = self.folder / CHECKSUM_FOLDER
        folder.mkdir(exist_ok=True)
        write_atomic(folder / f"{artifact}.crc32", written.line_sums, durable=self._durable())

    def line_sums(self, artifact: str) -> bytes | None:
        """Return the stored CRC-32 of each line of an artifact, four bytes each, little-endian; None if not stored."""
        path = self.folder / CHECKSUM_FOLDER / f"{artifact}.crc32"
        return path.read_bytes() if path.is_file() else None

    def first_edited_line(self, artifact: str) -> int | None:
        """Return the number of the first changed line. Return None if no line changed, or if the file or its checksums
        are missing.
        """
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
        """Return the sha256 of a file of the run, or None if it does not exist."""
        path = self.folder / name
        return hash_file(path) if path.is_file() else None

    @cached_property
    def account(self) -> LedgerReader:
        """The reader of the run's ledger, which computes its marks."""
        return LedgerReader(self.ledger, self._ledger_sums)

    @property
    def ledger_sums(self) -> bytes:
        """CRC-32 of each line of the ledger that the seal covers, in the format of `line_sums`; empty if not stored."""
        return self._ledger_sums.read_bytes() if self._ledger_sums.is_file() else b""

    @property
    def _ledger_sums(self) -> Path:
        return self.folder / CHECKSUM_FOLDER / f"{LEDGER.removesuffix('.jsonl')}.crc32"

    @property
    def ledger(self) -> Path:
        """Path of the ledger, which records calls to language models. No result depends on it."""
        return self.folder / LEDGER

    # --- the incomplete marker ---

    def marker(self, stage: str) -> Path:
        return self.folder / f".incomplete-{stage}"

    def begin(self, stage: str, fingerprint: str) -> None:
        """Record that a stage has started, with its fingerprint. If there is a partial result of another fingerprint,
        delete it.
        """
        if self.begun(stage) != fingerprint or not self.marker(stage).exists():
            self.forget_partial(stage)
        self.marker(stage).write_text(fingerprint)  # not synced, because the marker need not survive a power cut

    def begun(self, stage: str) -> str:
        """Return the fingerprint of a started but unfinished stage; empty if there is none."""
        return self._begun(stage)[0]

    def note_spent(self, stage: str, cap: BudgetCap) -> None:
        """Record that the last attempt of a started stage reached a cap of the budget."""
        self.marker(stage).write_text(f"{self.begun(stage)}\n{cap.setting} {cap.limit!r} {cap.spent!r}")

    def spent(self, stage: str) -> BudgetCap | None:
        """Return the budget cap that a stage's last attempt reached. Return None if it reached no cap, or if the stage
        is done.
        """
        try:
            setting, limit, spent = self._begun(stage)[1].split()
            return BudgetCap(setting, float(limit), float(spent))
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
        """Delete the partial results of a stopped attempt of a stage."""
        for path in self.folder.glob(f"{stage}*{PARTIAL}"):
            path.unlink(missing_ok=True)

    # --- ownership ---

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Lock the directory for writing. Create it if it is missing, and delete temporary files of a killed run.

        Raises:
            BusyError: another process holds the lock.
            ProviderError: the directory cannot be created or written.
        """
        wait = f"wait until it ends, or {self._pipeline.beside}"
        who = "another raggs run is using this directory"
        with hold_folder(self.folder / LOCK, self.folder, who=who, wait=wait, remedy="choose another workspace"):
            remove_leftovers(self.folder)
            remove_leftovers(self.folder / CHECKSUM_FOLDER)
            yield


def config_place(file: Path, folder: Path) -> str:
    """Return the path of a configuration file relative to a run directory, independent of the working directory."""
    file, folder = file.resolve(), folder.resolve()
    try:
        return Path(os.path.relpath(file, folder)).as_posix()
    except ValueError:  # the file is on another drive, so there is no relative path
        return file.as_posix()


def manifest_bytes(content: Mapping[str, object]) -> bytes:
    """Return a manifest as the bytes that raggs writes."""
    return json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n"


def _content(data: bytes, path: Path) -> JsonObject:
    """Parse a manifest. Values that the JSON standard does not allow, such as NaN and lone surrogates, are rejected.

    Raises:
        DataError: the content is not a JSON object, or is nested more than `MAX_NESTING` levels deep.
    """
    try:
        found: Json = STRICT.decode(data.decode())
        if _depth(found) > MAX_NESTING:
            raise ValueError(f"nested more than {MAX_NESTING} levels deep")
        canonical_json(found).encode()
    except (ValueError, RecursionError) as error:
        raise DataError(f"not valid JSON ({error})", where=path, remedy=RESTORE) from error
    if not isinstance(found, dict):
        raise DataError("expected a JSON object", where=path, remedy=RESTORE)
    return found


def _depth(value: Json) -> int:
    """Return the nesting depth of a value. The loop needs no recursion, so any depth is safe."""
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
    """Return readable JSON for output, with API keys masked."""
    return mask(json.dumps(value, indent=2, ensure_ascii=False, default=str))
