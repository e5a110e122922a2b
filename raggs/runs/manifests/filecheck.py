"""Are the files of a stage those that its lock describes? Each is read once, and everything is compared on the way.

A file is a regular one with the hash, the lines and the bytes of its lock; each line has the checksum that was kept
of it, is a valid record in its place, and has exactly the bytes that the record writes again, so that byte order
marks, blank lines and foreign line ends are found even under a mended hash. What the records say of the stage
(failures, the judge's health, who judged) is tallied meanwhile, for `lockcheck`.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice

from pydantic import ValidationError

from raggs.base.artifacts import JournalRecord, JudgeRecord, Record, answerers_named, artifact_file
from raggs.base.jsonl import dump_line, first_fault
from raggs.base.text import plural, shorten
from raggs.runs.manifests.findings import Finding
from raggs.runs.manifests.models import Output, StageLock
from raggs.runs.manifests.opened import OpenedRun
from raggs.stages.base import AnyStage
from raggs.stages.statistics import Statistics

SHOWN_LINES = 3
BOM = b"\xef\xbb\xbf"
CRC = 4


@dataclass
class Tally:
    """What the records of one stage say of it.

    Attributes:
        statistics: who reads the judge's health off them.
        failed: records without a result.
        judges: everyone who is named as the judge.
        damaged: files that are not to be believed.
        answered: records by the key of each model whose answer made them.
    """

    statistics: Statistics
    failed: int = 0
    judges: set[str] = field(default_factory=set)
    damaged: set[str] = field(default_factory=set)
    answered: Counter[str] = field(default_factory=Counter)

    def see(self, stage: AnyStage, record: Record) -> None:
        """Take notice of one record."""
        self.statistics.see(record)
        self.answered.update(answerers_named(record))
        if isinstance(record, JournalRecord):
            self.failed += record.failed
        else:
            self.failed += stage.failed(record)
        if isinstance(record, JudgeRecord) and record.judge:
            self.judges.add(record.judge)


def files(run: OpenedRun, lock: StageLock, statistics: Statistics) -> tuple[list[Finding], Tally]:
    """Read every file of a stage.

    Args:
        lock: of the stage; files that it names beside the stage's own are not opened.
        statistics: of the stage, fresh.
    """
    stage: AnyStage = run.pipeline.stage(lock.stage)
    tally, found = Tally(statistics), []
    for artifact in artifacts_of(stage):
        file = artifact_file(artifact)
        if (output := lock.outputs.get(file)) is not None:
            reading = _Reading(run, lock, artifact, output)
            found += reading.findings(stage, tally)
    return found, tally


def artifacts_of(stage: AnyStage) -> tuple[str, ...]:
    """The artifacts that a stage writes, the journal last."""
    return (*stage.artifacts(), *((stage.JOURNAL,) if stage.JOURNAL else ()))


class _Reading:
    """One pass over a file."""

    def __init__(self, run: OpenedRun, lock: StageLock, artifact: str, output: Output) -> None:
        self._run, self._lock, self._output = run, lock, output
        self._path, self._file = run.store.path(artifact), artifact_file(artifact)
        self._model, self._believed = run.pipeline.record(artifact), run.believed_lines(artifact)
        self._sums = run.store.line_sums(artifact) or b""
        self._exact = lock.booked is not None  # earlier versions wrote records of other forms
        self._previous: tuple[object, ...] | None = None
        self._digest, self._rows, self._size = hashlib.sha256(), 0, 0
        self._changed: list[Finding] = []
        self._wrong: list[Finding] = []

    def findings(self, stage: AnyStage, tally: Tally) -> list[Finding]:
        """Everything that is wrong with the file; its records are tallied."""
        if self._path.is_symlink() or (self._path.exists() and not self._path.is_file()):
            tally.damaged.add(self._file)
            return [self._at(None, "is not a file of its own but a link or a device")]
        if not self._path.exists():
            tally.damaged.add(self._file)
            return [self._at(None, "the file is missing")]
        with self._path.open("rb") as stream:
            for line in islice(stream, self._believed):
                self._line(line, stage, tally)
        return self._verdict(tally)

    def _line(self, line: bytes, stage: AnyStage, tally: Tally) -> None:
        number = self._rows = self._rows + 1
        self._size += len(line)
        self._digest.update(line)
        expected = self._sums[CRC * (number - 1) : CRC * number]
        if expected and zlib.crc32(line).to_bytes(CRC, "little") != expected:
            text = shorten(line.decode("utf-8", "replace"), 80)
            self._changed.append(self._at(number, f"differs from the line that {self._lock.stage} wrote: {text}"))
        try:
            record = self._model.model_validate_json(line)
        except ValidationError as error:
            tally.damaged.add(self._file)
            self._wrong.append(self._at(number, _form(line) or first_fault(error)))
            return
        self._record(number, line, record)
        tally.see(stage, record)

    def _record(self, number: int, line: bytes, record: Record) -> None:
        key = tuple(getattr(record, field) for field in self._model.ORDER)
        if self._previous is not None and key <= self._previous:
            order = ", ".join(self._model.ORDER)
            self._wrong.append(self._at(number, f"is not sorted by {order}: {key} follows {self._previous}"))
        self._previous = key
        if (self._exact or _form(line)) and dump_line(record, given=True) != line:
            self._wrong.append(self._at(number, _form(line) or "its bytes are not those that its record writes again"))

    def _verdict(self, tally: Tally) -> list[Finding]:
        found, output = [], self._output
        if (sha256 := self._digest.hexdigest()) != output.sha256:
            tally.damaged.add(self._file)
            message = f"sha256 is {sha256[:12]}, the manifest says {output.sha256[:12]}"
            found.append(self._at(None, message))
        named = {each.line for each in self._changed[:SHOWN_LINES]}
        found += [*_some(self._changed), *_some([each for each in self._wrong if each.line not in named])]
        if self._sums and (kept := len(self._sums) // CRC) != self._rows == output.rows:
            found.append(self._at(None, f"has {plural(self._rows, 'line')}, {self._lock.stage} wrote {kept:,}"))
        if self._rows != output.rows:
            found.append(self._at(None, f"has {plural(self._rows, 'line')}, the manifest says {output.rows:,}"))
        if self._size != output.bytes and sha256 == output.sha256:
            found.append(self._at(None, f"has {self._size:,} bytes, the manifest says {output.bytes:,}"))
        return found

    def _at(self, line: int | None, message: str) -> Finding:
        return Finding(self._file, line, message)


def _some(found: list[Finding]) -> list[Finding]:
    """The first few, and how many more there are."""
    more = len(found) - SHOWN_LINES
    rest = [Finding(found[0].file, None, f"and {plural(more, 'more line')} differ")] if more > 0 else []
    return found[:SHOWN_LINES] + rest


def _form(line: bytes) -> str | None:
    """What is foreign about a line's form, whatever it says."""
    if line.startswith(BOM):
        return "begins with a byte order mark, which raggs does not write"
    if line.endswith(b"\r\n"):
        return "ends with a carriage return, which raggs does not write"
    if not line.strip():
        return "is blank"
    return None if line.endswith(b"\n") else "has no line break at its end"
