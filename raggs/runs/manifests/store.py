"""A run's folder: the manifest, the artifacts, the journal, and who may write them.

Order of a commit: the incomplete marker, the artifact (temporary file, fsync, rename), its line sums, the lock in
the manifest, then the marker goes. Whatever moment a kill chooses, the manifest never names a file that is not
there whole. The artifact of a stage that asks the judge is written under a name of its own first (`partial`), where it
stays if the stage is stopped: whole queries, which can be read until the stage is done.

The seal of a manifest: hashes of its own content, by which an edit is found and named. No signature.

Each lock is chained to the one before it (`chain`: the hash of the lock and of the chain so far), the first to the
head of the manifest; configuration, estimates and the ledger's mark have a hash each, and one hash holds all of it. A
seal is over the JSON as it stands in the file, never over the models of this raggs, so that a later version reads it
too.

A user of raggs can write a seal: it detects edits, not forgery (docs/concepts/caching-and-audit.md). It must not mend
anything.

The journal of judged batches while the rank stage runs. It lives on the disk; memory holds only where entries stand.

Entries are appended as they come; each is with the operating system before `append` returns. There is no fsync for
each line: a power cut may lose the newest ones, whose paid answers the language-model cache still holds. When a query
is done, `settle` says which of its entries its ranking is the fold of; `settled` gives them all in their final order
for the commit, so that the journal of a resumed run has the same bytes as that of an undisturbed one.

The ledger's running hash: how far llm.ledger.jsonl had come when a manifest was written.

The ledger stays append-only, and a line costs nothing more than before: whoever writes a manifest reads on from where
it stood and notes a mark. A mark covers whole lines only, since a torn one goes when the ledger is opened again. What
no mark covers yet (a run was killed) is covered by the next one. A ledger that does not fit its last mark is not
marked anew: an account that was altered stays so.
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
LATEST = ("config", "config_file")  # both of the latest run

Content = Mapping[str, object]  # a manifest as its JSON says


@dataclass(frozen=True)
class ManifestBreak:
    """A part of a manifest that is not what raggs wrote.

    Attributes:
        path: of the part, as keys from the root.
        stage: whose lock it is; None for any other part.
        message: what is wrong, as a clause.
    """

    path: tuple[str, ...]
    stage: str | None
    message: str


def sealed(manifest: RunManifest, ledger: LedgerMark) -> dict[str, object]:
    """The JSON of a manifest with its chain and its seal, whatever it held of them before."""
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
    """The hash of a manifest's whole content, but for the hash itself."""
    seal = {name: value for name, value in as_object(content.get("seal")).items() if name != "sha256"}
    return hash_value({**content, "seal": seal})


def breaks(content: Content) -> Iterator[ManifestBreak]:
    """Every part of a manifest that its seal does not fit; nothing for one that was never sealed."""
    seal = as_object(content.get("seal"))
    if not seal:
        if _was_sealed(content):
            yield ManifestBreak((), None, "the seal was removed: there are traces of it")
        return
    found = [*_chain_breaks(content, seal), *_part_breaks(content, seal)]
    yield from found
    if not found and seal.get("sha256") != content_hash(content):
        yield ManifestBreak(
            ("seal",), None, "the manifest is not what raggs wrote: its content has another hash than its seal says"
        )


def edited_stages(content: Content) -> frozenset[str]:
    """The stages whose locks were changed since raggs wrote them."""
    return frozenset(each.stage for each in breaks(content) if each.stage is not None)


def place_of(text: str, path: Sequence[str]) -> int | None:
    """The line, from 1, at which a part begins in a manifest as raggs writes it; None where it is not found."""
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
        yield ManifestBreak((), None, f"{', '.join(HEAD)}: one of them was changed since raggs wrote it")
    for name, lock in _locks(content):
        if lock.get("chain") != _link(before, lock):
            message = f"stage {name}: its lock was changed since raggs wrote it, or one before it was added or removed"
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
    """Journal entries in a file, found again by their query. Its owner closes it.

    Args:
        file: open for reading and writing; `index` says what stands in it already.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self._end = 0
        self._places: dict[str, array[int]] = {}  # start and end of each run of entries: 16 bytes

    def index(self, qid: str, size: int) -> None:
        """The next `size` bytes are an entry of this query."""
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
        """The entries of a query, in the order they came."""
        places = self._places.get(qid, array("q"))
        for start, end in zip(places[::2], places[1::2], strict=True):
            self.file.seek(start)
            for line in self.file.read(end - start).splitlines():
                yield JournalRecord.model_validate_json(line)

    def forget(self, qid: str) -> None:
        self._places.pop(qid, None)

    def __iter__(self) -> Iterator[JournalRecord]:
        """Every entry, by query, round and slot."""
        for qid in sorted(self._places):
            yield from sorted(self.get(qid), key=lambda entry: (entry.round, entry.slot))


class RunJournal:
    """The journal of one run.

    Args:
        path: of the file; made where missing.
        sums: CRC-32 of the lines to be believed, four bytes each, little-endian; None believes all.

    Raises:
        DataError: a line other than a torn last one is no entry.
        OSError: the disk failed.
    """

    def __init__(self, path: Path, sums: bytes | None = None) -> None:
        believed = None if sums is None else {sums[at : at + 4] for at in range(0, len(sums), 4)}
        # A torn last line would corrupt what is appended next, so the whole lines are written again.
        with atomic_writer(path) as file:
            self._known = EntryFile(file)
            for record in read_torn(path, JournalRecord, "delete the file to start this stage afresh"):
                line = dump_line(record, given=True)
                if believed is None or zlib.crc32(line).to_bytes(4, "little") in believed:
                    self._known.index(record.qid, file.write(line))
        self._known.file = path.open("r+b")
        self._settled = EntryFile(tempfile.TemporaryFile(dir=path.parent))  # noqa: SIM115 - closed by `close`

    def entries(self, qid: str) -> list[JournalRecord]:
        """What is known of a query, from earlier runs and from this one."""
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


CRC = 4  # bytes of a line's checksum
Problem = tuple[int | None, str]  # a line of the ledger, and what is wrong


class LedgerReader:
    """One ledger, read once from its start and on from there.

    Args:
        path: the ledger, which need not exist.
        sums: where the CRC-32 of each marked line is kept, by which an edited one is named.
    """

    def __init__(self, path: Path, sums: Path) -> None:
        self._path, self._sums_path = path, sums
        self._digest, self._sums = hashlib.sha256(), bytearray()
        self._mark = LedgerMark()
        self._checked = False  # whether what was there fits what was known of it
        self._kept: LedgerMark | None = None  # of a ledger that does not fit it any more
        self._summed = -1  # rows whose checksums are on the disk

    def end(self) -> int:
        """Bytes of whole lines that are in the ledger now.

        Raises:
            OSError: it cannot be read.
        """
        return self._read().bytes

    def expect(self, known: LedgerMark) -> None:
        """Take the ledger to end where `known` does: what comes after it was not booked by a run, and is never marked.

        Raises:
            OSError: it cannot be read.
        """
        if self.end() > known.bytes:
            self._kept, self._checked = known, True

    def mark(self, known: LedgerMark) -> LedgerMark:
        """The mark of today, on the disk with all it covers; the `known` one where the ledger does not fit it.

        Raises:
            OSError: the disk failed.
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
                os.fsync(file.fileno())  # no mark before what it covers
        self._mark = LedgerMark(rows=rows, bytes=size, sha256=self._digest.hexdigest())
        return self._mark


def fits_mark(path: Path, mark: LedgerMark) -> bool:
    """Whether the ledger still begins with what the mark covers."""
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
    """What is wrong with a ledger that does not fit its mark; the first changed line where the checksums tell it."""
    if fits_mark(path, mark):
        return
    if not path.is_file():
        yield None, f"the file is missing, the manifest says {plural(mark.rows, 'line')}"
        return
    line = _first_changed(path, sums) if len(sums) >= CRC * mark.rows else None
    yield (
        line,
        f"is not what was booked: the hash of its first {plural(mark.rows, 'line')} is not what the manifest says",
    )


def unbooked(path: Path, mark: LedgerMark) -> Problem | None:
    """Return the first line after a mark and what is wrong with it, in a run in which no stage is at work."""
    if not path.is_file() or path.stat().st_size <= mark.bytes or not fits_mark(path, mark):
        return None
    with path.open("rb") as file:
        file.seek(mark.bytes)
        count = sum(1 for _ in _complete_lines(file))
    told = f"{plural(count, 'line')} from here on were added after the run had booked its last call"
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
    """The lines that end."""
    for line in file:
        if line.endswith(b"\n"):
            yield line


MANIFEST = "manifest.json"
LOCK = ".lock"
CHECKSUM_FOLDER = ".sums"
RESTORE = "restore the file, or delete it to run afresh"
MAX_NESTING = 100  # levels of a manifest's JSON
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
        if not edited_stages(self.content()) and self.account.end() > (
            manifest.seal.ledger.bytes if manifest.seal else 0
        ):
            self.save(manifest)

    # --- artifacts ---

    def path(self, artifact: str) -> Path:
        return self.folder / artifact_file(artifact)

    def read(self, artifact: str, model: type[M]) -> Iterator[M]:
        """The records of an artifact (see `raggs.base.jsonl.read_records` for the errors)."""
        return read_records(self.path(artifact), model)

    def write(self, models: Mapping[str, type[Record]], records: Iterable[Record]) -> dict[str, StageOutput]:
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

    def write_partial(self, models: Mapping[str, type[Record]], records: Iterable[Record]) -> list[WrittenFile]:
        """As `write`, under names that no lock knows."""
        places = {model: self.partial(artifact) for artifact, model in models.items()}
        return write_routed(places, records, durable=self._durable())

    def promote(self, models: Mapping[str, type[Record]], written: Iterable[WrittenFile]) -> dict[str, StageOutput]:
        """Make what `write_partial` wrote the artifacts."""
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
        """CRC-32 of each line as it was written, four bytes each, little-endian; None if not kept."""
        path = self.folder / CHECKSUM_FOLDER / f"{artifact}.crc32"
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
    def account(self) -> LedgerReader:
        """The running hash of the ledger."""
        return LedgerReader(self.ledger, self._ledger_sums)

    @property
    def ledger_sums(self) -> bytes:
        """CRC-32 of each sealed line of the ledger, four bytes each, little-endian; empty where not kept."""
        return self._ledger_sums.read_bytes() if self._ledger_sums.is_file() else b""

    @property
    def _ledger_sums(self) -> Path:
        return self.folder / CHECKSUM_FOLDER / f"{LEDGER.removesuffix('.jsonl')}.crc32"

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

    def note_spent(self, stage: str, cap: BudgetCap) -> None:
        """Note that the last attempt of a stage that was begun reached a cap of the budget."""
        self.marker(stage).write_text(f"{self.begun(stage)}\n{cap.setting} {cap.limit!r} {cap.spent!r}")

    def spent(self, stage: str) -> BudgetCap | None:
        """The cap that a stage's last attempt reached; None where it did not, or is done."""
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
        with hold_folder(self.folder / LOCK, self.folder, who=who, wait=wait, remedy="choose another workspace"):
            remove_leftovers(self.folder)
            remove_leftovers(self.folder / CHECKSUM_FOLDER)
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
        if _depth(found) > MAX_NESTING:
            raise ValueError(f"nested more than {MAX_NESTING} deep")
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
