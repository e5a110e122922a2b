"""Audit: check whether a run matches its manifest. Everything that can be recomputed is recomputed and compared with
the stored results.

1. The manifest matches its seal, so it was not changed since raggs wrote it. The ledger matches the mark in the
   manifest.
2. Every file has the hash, line count and size that its lock states. Every line has exactly the bytes that raggs writes
   for its record.
3. Each lock is consistent with the other locks, the configuration, the records and the ledger.
4. All stages except `retrieve`, `sample` and `ask` are recomputed from their inputs and compared line by line
   (`derivations`). Answers of models, vectors and cosines are copied from the stored records. If a stage was stopped,
   its partial results are checked in a similar way (`part_findings`).

A manifest may have been edited, so an unreadable value in it is reported as a finding instead of raising an error. The
audit writes nothing and calls no model. It needs no network, no corpus and no API key.

`files` checks the files of a stage against its lock. Each file is read once. It must be a regular file with the hash,
line count and size in its lock. Each line must have its stored checksum and be a valid record at the right position. It
must also have exactly the bytes that raggs writes for the record. Byte order marks, blank lines and foreign line
endings are therefore found even if someone adapted the hash in the lock to them. Statistics of the records (failures,
the judge's health, names of the judge) are collected for `lock_findings`.

`lock_findings` and the functions below it check the contents of each lock. A lock's fingerprint is the hash of its
components. Its input hashes are the output hashes of the earlier stages. Its parameters are equal to those in its
components and in the configuration, as far as results depend on them. Failures and the judge's health are computed
again from the records. The cost is the sum of the ledger lines that were written while the stage ran. Counts are
compared exactly, and amounts of money to the precision of the ledger.
"""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

from pydantic import ValidationError

from raggs.base.artifacts import Frozen, JournalRecord, JudgeRecord, Record, Spending, answerers_named, artifact_file
from raggs.base.errors import RaggsError
from raggs.base.hashing import hash_value
from raggs.base.jsonl import dump_line, first_fault
from raggs.base.judge_health import JudgeHealth
from raggs.base.settings import Settings, causes_of
from raggs.base.text import plural, shorten
from raggs.llm.ledger import LEDGER_FILE as LEDGER
from raggs.llm.ledger import LedgerLine
from raggs.runs.manifests import store
from raggs.runs.manifests.audit_pairs import pair_findings
from raggs.runs.manifests.costs import costs
from raggs.runs.manifests.derive import derivations, part_findings
from raggs.runs.manifests.messages import answerer_lines
from raggs.runs.manifests.models import (
    MANIFEST,
    AuditFinding,
    FindingRemedy,
    LedgerMark,
    StageLock,
    StageOutput,
    parameters,
)
from raggs.runs.manifests.open_run import OpenedRun
from raggs.runs.manifests.outdated import outdated
from raggs.runs.manifests.reasons import differences
from raggs.runs.manifests.store import manifest_bytes
from raggs.stages.base import AnyStage, Statistics
from raggs.stages.pipeline import load_pipeline

__all__ = ["AuditFinding", "audit", "audit_notes", "unfinished"]

SHOWN_LINES = 3
BOM = b"\xef\xbb\xbf"
CRC = 4


@dataclass
class StageTally:
    """Statistics of the records of one stage.

    Attributes:
        statistics: collects the judge's health from the records.
        failed: number of records without a result.
        judges: names of the judges of all labels that were not carried over.
        damaged: files that are missing, changed or not valid. Their records are not used for further checks.
        answered: number of records that each model answered, by the model's key.
    """

    statistics: Statistics
    failed: int = 0
    judges: set[str] = field(default_factory=set)
    damaged: set[str] = field(default_factory=set)
    answered: Counter[str] = field(default_factory=Counter)

    def see(self, stage: AnyStage, record: Record) -> None:
        """Process one record."""
        self.statistics.see(record)
        self.answered.update(answerers_named(record))
        if isinstance(record, JournalRecord):
            self.failed += record.failed
        else:
            self.failed += stage.failed(record)
        if isinstance(record, JudgeRecord) and record.judge and record.carried is None:
            self.judges.add(record.judge)


def files(run: OpenedRun, lock: StageLock, statistics: Statistics) -> tuple[list[AuditFinding], StageTally]:
    """Read every file of a stage and return the findings and the statistics of its records.

    Args:
        lock: lock of the stage. If it names files that the stage does not write, these are not opened.
        statistics: empty statistics, which this function fills.
    """
    stage: AnyStage = run.pipeline.stage(lock.stage)
    tally, found = StageTally(statistics), []
    for artifact in artifacts_of(stage):
        file = artifact_file(artifact)
        if (output := lock.outputs.get(file)) is not None:
            reading = _FilePass(run, lock, artifact, output)
            found += reading.findings(stage, tally)
    return found, tally


def artifacts_of(stage: AnyStage) -> tuple[str, ...]:
    """Return the artifacts that a stage writes, the journal last."""
    return (*stage.artifacts(), *((stage.JOURNAL,) if stage.JOURNAL else ()))


class _FilePass:
    """Checks one file while reading it once."""

    def __init__(self, run: OpenedRun, lock: StageLock, artifact: str, output: StageOutput) -> None:
        self._run, self._lock, self._output = run, lock, output
        self._path, self._file = run.store.path(artifact), artifact_file(artifact)
        self._model, self._believed = run.pipeline.record(artifact), run.believed_lines(artifact)
        self._sums = run.store.line_sums(artifact) or b""
        self._previous: tuple[object, ...] | None = None
        self._digest, self._rows, self._size = hashlib.sha256(), 0, 0
        self._changed: list[AuditFinding] = []
        self._wrong: list[AuditFinding] = []

    def findings(self, stage: AnyStage, tally: StageTally) -> list[AuditFinding]:
        """Return all findings about the file, and collect the statistics of its records."""
        if self._path.is_symlink() or (self._path.exists() and not self._path.is_file()):
            tally.damaged.add(self._file)
            return [self._at(None, "is a link or a device instead of a regular file")]
        if not self._path.exists():
            tally.damaged.add(self._file)
            return [self._at(None, "the file is missing")]
        with self._path.open("rb") as stream:
            for line in islice(stream, self._believed):
                self._line(line, stage, tally)
        return self._verdict(tally)

    def _line(self, line: bytes, stage: AnyStage, tally: StageTally) -> None:
        number = self._rows = self._rows + 1
        self._size += len(line)
        self._digest.update(line)
        expected = self._sums[CRC * (number - 1) : CRC * number]
        if expected and zlib.crc32(line).to_bytes(CRC, "little") != expected:
            text = shorten(line.decode("utf-8", "replace"), 80)
            self._changed.append(self._at(number, f"differs from the line that stage {self._lock.stage} wrote: {text}"))
        try:
            record = self._model.model_validate_json(line)
        except ValidationError as error:
            tally.damaged.add(self._file)
            self._wrong.append(self._at(number, _form_problem(line) or first_fault(error)))
            return
        self._record(number, line, record)
        tally.see(stage, record)

    def _record(self, number: int, line: bytes, record: Record) -> None:
        key = tuple(getattr(record, field) for field in self._model.ORDER)
        if self._previous is not None and key <= self._previous:
            order = ", ".join(self._model.ORDER)
            self._wrong.append(self._at(number, f"is not sorted by {order}: {key} follows {self._previous}"))
        self._previous = key
        if dump_line(record, given=True) != line:
            self._wrong.append(
                self._at(number, _form_problem(line) or "its bytes differ from those that raggs writes for this record")
            )

    def _verdict(self, tally: StageTally) -> list[AuditFinding]:
        found, output = [], self._output
        if (sha256 := self._digest.hexdigest()) != output.sha256:
            tally.damaged.add(self._file)
            message = f"sha256 is {sha256[:12]}, but {output.sha256[:12]} in the manifest"
            found.append(self._at(None, message))
        named = {each.line for each in self._changed[:SHOWN_LINES]}
        found += [
            *_first_findings(self._changed),
            *_first_findings([each for each in self._wrong if each.line not in named]),
        ]
        if self._sums and (kept := len(self._sums) // CRC) != self._rows == output.rows:
            found.append(
                self._at(None, f"has {plural(self._rows, 'line')}, but stage {self._lock.stage} wrote {kept:,}")
            )
        if self._rows != output.rows:
            found.append(self._at(None, f"has {plural(self._rows, 'line')}, but {output.rows:,} in the manifest"))
        if self._size != output.bytes and sha256 == output.sha256:
            found.append(self._at(None, f"has {self._size:,} bytes, but {output.bytes:,} in the manifest"))
        return found

    def _at(self, line: int | None, message: str) -> AuditFinding:
        return AuditFinding(self._file, line, message)


def _first_findings(found: list[AuditFinding]) -> list[AuditFinding]:
    """Return the first few findings, and one with the number of the remaining ones."""
    more = len(found) - SHOWN_LINES
    rest = [AuditFinding(found[0].file, None, f"and {plural(more, 'more line')} differ")] if more > 0 else []
    return found[:SHOWN_LINES] + rest


def _form_problem(line: bytes) -> str | None:
    """Return what is wrong with the form of a line, independent of its content."""
    if line.startswith(BOM):
        return "starts with a byte order mark, which raggs never writes"
    if line.endswith(b"\r\n"):
        return "ends with a carriage return, which raggs never writes"
    if not line.strip():
        return "is blank"
    return None if line.endswith(b"\n") else "does not end with a line break"


TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens")
# without `repaired`, because the ledger does not contain it
COST_FIELDS = ("calls", "cached", *TOKENS, "usd", "discount_usd", "saved_usd", "own_usd")
USD = 1e-9  # relative and absolute tolerance: amounts in the ledger have twelve decimal digits
HASH = re.compile(r"[0-9a-f]{64}")


def lock_findings(run: OpenedRun, name: str, lock: StageLock) -> Iterator[AuditFinding]:
    """Yield the contradictions in a lock that can be found without reading the files of the stage."""
    if lock.stage != name:
        yield _stage_finding(name, f"its lock belongs to stage {lock.stage!r}")
    if lock.fingerprint != hash_value(lock.components):
        yield _stage_finding(name, "the fingerprint is not the hash of its components")
    if lock.components.get("inputs", {}) != lock.inputs:
        yield _stage_finding(name, "the inputs in its components differ from those in its lock")
    for file, expected in lock.inputs.items():
        written = next((other.outputs[file] for other in run.manifest.stages.values() if file in other.outputs), None)
        if written is None or written.sha256 != expected:
            yield AuditFinding(
                MANIFEST, None, f"stage {name} was made from another version of {file} than the one in this run"
            )
    if lock.ended < lock.started:
        yield _stage_finding(name, f"it ended ({lock.ended}) before it started ({lock.started})")
    yield from _outputs(run, name, lock)


def agreement(run: OpenedRun, lock: StageLock, config: Settings) -> Iterator[AuditFinding]:
    """Yield the differences of a stage's parameters from its components and from the configuration of the run."""
    stage: AnyStage = run.pipeline.stage(lock.stage)
    causes = causes_of(config)
    for told in _differences(lock.components.get("config"), causes):
        yield _stage_finding(lock.stage, f"its components and its parameters differ: {told}")
    section = run.manifest.config.get(lock.stage)
    if not isinstance(section, Mapping):
        if lock.booked is not None:
            yield AuditFinding(MANIFEST, None, f"config has no section for stage {lock.stage}")
        return
    for told in _differences(causes, causes_of(parameters(stage.Config, lock.stage, section))):
        yield AuditFinding(MANIFEST, None, f"config.{lock.stage} differs from the parameters of the stage: {told}")


def answerers(stage: AnyStage, lock: StageLock, tally: StageTally) -> Iterator[AuditFinding]:
    """Compare the models that answered according to the records with those in the lock. Call this only for undamaged
    files.
    """
    for key, each in lock.answerers.items():
        if each.asked and key != each.key:
            yield _stage_finding(lock.stage, f"the key of answerer {key} is not the hash of its names")
    if not stage.names_answerers:
        return
    for key in sorted(tally.answered.keys() | lock.answerers.keys()):
        told = lock.answerers[key].answers if key in lock.answerers else 0
        if told != (found := tally.answered[key]):
            yield _stage_finding(lock.stage, f"{found:,} records name the answerer {key}, but its lock counts {told:,}")


def tallied(lock: StageLock, tally: StageTally) -> Iterator[AuditFinding]:
    """Compare the statistics of the records with those in the lock. Call this only for undamaged files."""
    if lock.failed != tally.failed:
        yield _stage_finding(lock.stage, f"its lock counts {lock.failed} failures, but its records have {tally.failed}")
    if outdated(lock) is None and lock.booked is not None:
        told = lock.health
        if isinstance(told, JudgeHealth):
            tally.statistics.probed, tally.statistics.people = told.canaries, told.people  # not stored in the records
            tally.statistics.noise = told.noise
        found = tally.statistics.health()
        if _figures(found) != _figures(told):
            changes = [str(each) for each in differences(_figures(told), _figures(found))]
            yield _stage_finding(lock.stage, f"health differs from its records: {shorten('; '.join(changes), 160)}")
        if (counted := dict(tally.statistics.counts())) != dict(lock.counts):
            changes = [str(each) for each in differences(dict(lock.counts), counted)]
            yield _stage_finding(lock.stage, f"counts differ from its records: {shorten('; '.join(changes), 160)}")
    if lock.judge is not None and (
        others := sorted(name for name in tally.judges if not _is_expected_grader(name, lock.judge))
    ):
        yield _stage_finding(lock.stage, f"its judge is {lock.judge!r}, but its records name {others[0]!r}")


def cost(lock: StageLock, lines: Mapping[int, LedgerLine]) -> Iterator[AuditFinding]:
    """Compare the cost in a lock with the ledger.

    Args:
        lock: lock of the stage.
        lines: lines of the ledger, keyed by their start byte.
    """
    if lock.booked is None:
        return
    start, end = lock.booked
    found = sum((line.spent for at, line in lines.items() if start <= at < end), Spending())
    for name in COST_FIELDS:
        told, booked = getattr(lock.cost, name), getattr(found, name)
        if not math.isclose(told, booked, rel_tol=USD, abs_tol=USD):
            yield _stage_finding(
                lock.stage, f"cost.{name} is {told:,}, but the calls in llm.ledger.jsonl sum to {booked:,}"
            )
    if not 0 <= lock.cost.repaired <= max(lock.cost.calls, 0):
        yield _stage_finding(lock.stage, f"cost.repaired is {lock.cost.repaired:,} of {lock.cost.calls:,} calls")


def _outputs(run: OpenedRun, name: str, lock: StageLock) -> Iterator[AuditFinding]:
    expected = {artifact_file(artifact) for artifact in artifacts_of(run.pipeline.stage(name))}
    for file in sorted(lock.outputs.keys() - expected):
        yield _stage_finding(name, f"its lock names {file!r}, which the stage does not write")
    if lock.booked is not None and outdated(lock) is None:
        for file in sorted(expected - lock.outputs.keys()):
            yield AuditFinding(file, None, f"stage {name} writes this file, but its lock does not name it")


def _differences(old: object, new: object) -> list[str]:
    """Return the differences between two configurations. Hashes of input files are ignored, because the audit does not
    need these files.
    """
    found = differences(old, new, "")
    return [str(each) for each in found if not (_is_hash(each.old) or _is_hash(each.new))]


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and HASH.fullmatch(value) is not None


def _is_expected_grader(name: str, judge: str) -> bool:
    """Return whether a name in a record is the judge of the stage, a member of its panel, or an annotator of the judge
    `human`.
    """
    return name == judge or name.split(": ")[0] in judge


def _figures(health: Frozen | None) -> object:
    """Return the health statistics without their messages, which may differ between versions."""
    return _unworded(None if health is None else health.model_dump(mode="json"))


def _unworded(value: object) -> object:
    if isinstance(value, dict):
        return {name: _unworded(each) for name, each in value.items() if name != "warnings"}
    return [_unworded(each) for each in value] if isinstance(value, list) else value


def _stage_finding(stage: str, message: str) -> AuditFinding:
    return AuditFinding(MANIFEST, None, f"stage {stage}: {message}")


UNSEALED = "the manifest has no seal because an older version of raggs wrote it; run again to seal it"
Lines = dict[int, LedgerLine]


def audit(run: OpenedRun) -> Iterator[AuditFinding]:
    """Yield the findings about a run. If there are none, the run matches its manifest."""
    text = (run.folder / MANIFEST).read_bytes().decode()
    yield from _manifest(run, text)
    lines: Lines = {}
    yield from _ledger(run, lines)
    damaged: set[str] = set()
    to_come = unfinished(run)
    for name in run.pipeline.order:
        lock = run.manifest.stages.get(name)
        if lock is None:
            if name not in to_come:
                yield AuditFinding(MANIFEST, None, f"stage {name} has no lock, but a later stage has one")
            continue
        for finding in _stage(run, name, lock, lines, damaged):
            yield _at_lock_line(finding, text, name)
    for finding in pair_findings(run, damaged):
        yield _at_lock_line(finding, text, finding.message.removeprefix("stage ").partition(":")[0])
    yield from derivations(run, damaged)
    yield from part_findings(run)


def unfinished(run: OpenedRun) -> tuple[str, ...]:
    """Return the stages after the last one with a lock. They were stopped or never started, which is not a finding."""
    order = run.pipeline.order
    done = max((place for place, name in enumerate(order) if name in run.manifest.stages), default=-1)
    return tuple(order[done + 1 :])


def audit_notes(run: OpenedRun) -> Iterator[str]:
    """Yield notes about a run that are not findings."""
    if run.manifest.seal is None:
        yield UNSEALED
    for name in run.pipeline.order:
        if name in run.manifest.stages and run.store.marker(name).is_file():
            yield f"stage {name} was restarted and has not finished; the audited result is its previous one"
    if run.manifest.skipped_files:
        yield run.manifest.skipped_files
    with suppress(RaggsError):  # an unreadable ledger is reported as a finding
        if told := costs(run.store).total.possibly_billed:
            yield told
    lines = answerer_lines(run.manifest.answerers)
    yield from (line.text.removeprefix("warning: ") for line in lines if line.warning)
    with suppress(RaggsError):  # an unreadable partial result is reported as a finding
        if run.lacks:
            yield run.lacks


def _manifest(run: OpenedRun, text: str) -> Iterator[AuditFinding]:
    if (run.folder / MANIFEST).is_symlink():
        yield AuditFinding(MANIFEST, None, "is a link instead of a regular file", "copy")
    content = run.store.content()
    if run.manifest.seal is not None and text.encode() != (written := manifest_bytes(content)):
        yield AuditFinding(MANIFEST, _first_difference(text, written.decode()), "is not formatted as raggs writes it")
    for found in store.breaks(content):
        cure: FindingRemedy = "run" if found.stage is not None or found.path == ("config",) else "copy"
        yield AuditFinding(MANIFEST, store.place_of(text, found.path), found.message, cure)
    for name in run.manifest.stages:
        if name not in run.pipeline.order:
            place = store.place_of(text, ("stages", name))
            yield AuditFinding(MANIFEST, place, f"unknown stage {name!r}")


def _ledger(run: OpenedRun, lines: Lines) -> Iterator[AuditFinding]:
    """Compare the ledger with its mark in the manifest, and collect its lines, keyed by their start byte."""
    path, sums = run.store.ledger, run.store.ledger_sums
    if path.is_symlink() or (path.exists() and not path.is_file()):
        yield AuditFinding(LEDGER, None, "is a link or a device instead of a regular file", "copy")
        return
    mark = run.manifest.seal.ledger if run.manifest.seal else LedgerMark()
    for line, message in store.problems(path, mark, sums):
        yield AuditFinding(LEDGER, line, message, "copy")
    at_work = any(run.store.marker(name).is_file() for name in load_pipeline(run.manifest.pipeline).order)
    if not at_work and run.manifest.seal and (added := store.unbooked(path, mark)):
        yield AuditFinding(LEDGER, *added, "copy")
    if not path.is_file():
        return
    at = 0
    with path.open("rb") as file:
        for number, data in enumerate(file, start=1):
            try:
                if data.endswith(b"\n"):  # an incomplete last line is removed when the ledger is opened again
                    lines[at] = LedgerLine.model_validate_json(data)
            except ValidationError as error:
                yield AuditFinding(LEDGER, number, first_fault(error), "copy")
            else:
                if at in lines and dump_line(lines[at], given=True) != data and at < mark.bytes:
                    yield AuditFinding(
                        LEDGER, number, "its bytes differ from those that raggs writes for this record", "copy"
                    )
            at += len(data)


def _stage(run: OpenedRun, name: str, lock: StageLock, lines: Lines, damaged: set[str]) -> Iterator[AuditFinding]:
    yield from lock_findings(run, name, lock)
    if lock.stage != name:
        damaged.update(lock.outputs)
        return
    stage: AnyStage = run.pipeline.stage(name)
    statistics, readable = Statistics(), True
    try:
        config = parameters(stage.Config, name, lock.params)
        statistics = stage.statistics(config)
        yield from agreement(run, lock, config)
    except RaggsError as error:
        readable = False
        yield AuditFinding(MANIFEST, None, error.message)
    found, tally = files(run, lock, statistics)
    yield from found
    damaged |= tally.damaged
    if readable and not tally.damaged:
        yield from tallied(lock, tally)
        yield from answerers(stage, lock, tally)
    yield from cost(lock, lines)


def _at_lock_line(finding: AuditFinding, text: str, stage: str) -> AuditFinding:
    """Return a finding about a lock, or about a stage's configuration, with the number of the line at which this part
    starts.
    """
    if finding.file != MANIFEST or finding.line is not None:
        return finding
    path = ("config", stage) if finding.message.startswith("config") else ("stages", stage)
    return replace(finding, line=store.place_of(text, path))


def _first_difference(text: str, written: str) -> int:
    lines, expected = text.split("\n"), written.split("\n")
    pairs = zip(lines, expected, strict=False)
    return next((number for number, (a, b) in enumerate(pairs, start=1) if a != b), min(len(lines), len(expected)))
