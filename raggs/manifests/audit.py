"""Is a run what its manifest says? Everything that can be derived is derived again and compared.

1. Every file has the hash in its lock; where it has not, the lines that differ are named by their own checksums.
2. Every line is a valid record, sorted and unique.
3. Each lock's fingerprint is the hash of its components, and its inputs are the outputs of the stages before it.
4. Merge, judge, prune and rank are computed again from their inputs (judge with the answers that it recorded, rank by
   replaying the journal) and compared line by line.
5. The invariants of a golden set hold: every ranked passage has a grade and comes from the pool, ranks are 1..n,
   the locks have no cycle, and the order is a topological order of the locks.

Nothing is written and nobody is asked: no network, no corpus, no key.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from raggs.artifacts import MergeRecord, PruneRecord, RankRecord, Record, artifact_file
from raggs.errors import RaggsError
from raggs.hashing import hash_value
from raggs.jsonl import dump_line
from raggs.manifests.derive import DERIVATIONS, derived
from raggs.manifests.models import StageLock
from raggs.manifests.opened import OpenedRun
from raggs.manifests.outdated import outdated
from raggs.text import plural, shorten

SHOWN_LINES = 3


@dataclass(frozen=True)
class Finding:
    """One lie: where, and what was expected."""

    file: str
    line: int | None
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.line else f"{self.file}: {self.message}"


def audit(run: OpenedRun) -> Iterator[Finding]:
    """Every finding of a run; none means that the run is what it says."""
    damaged: set[str] = set()
    for name in run.pipeline.order:
        lock = run.manifest.stages.get(name)
        if lock is None:
            yield Finding("manifest.json", None, f"stage {name} has no lock: it has not finished")
            continue
        yield from _chain(run, lock)
        for file, findings in _files(run, lock):
            found = list(findings)
            yield from found
            if found:
                damaged.add(file)
    yield from _derivations(run, damaged)


# --- files and lines ------------------------------------------------------------------------------------------


def _files(run: OpenedRun, lock: StageLock) -> Iterator[tuple[str, Iterable[Finding]]]:
    for file, output in lock.outputs.items():
        artifact = file.removesuffix(".jsonl")
        found = run.store.file_hash(file)
        if found is None:
            yield file, [Finding(file, None, "the file is missing")]
        elif found != output.sha256:
            message = f"sha256 is {found[:12]}, the manifest says {output.sha256[:12]}"
            yield file, [Finding(file, None, message), *_changed_lines(run, lock.stage, artifact, output.rows)]
        else:
            yield file, _records(run, artifact)


def _changed_lines(run: OpenedRun, stage: str, artifact: str, rows: int) -> Iterator[Finding]:
    file, sums = artifact_file(artifact), run.store.line_sums(artifact)
    if sums is None or len(sums) != 4 * rows:
        return
    shown = count = number = 0
    with run.store.path(artifact).open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            expected = sums[4 * (number - 1) : 4 * number]
            if zlib.crc32(line).to_bytes(4, "little") != expected:
                count += 1
                if shown < SHOWN_LINES:
                    shown += 1
                    yield Finding(
                        file,
                        number,
                        f"differs from the line that {stage} wrote: {shorten(line.decode('utf-8', 'replace'), 80)}",
                    )
    if count > shown:
        yield Finding(file, None, f"and {plural(count - shown, 'more line')} differ")
    if number != rows:
        yield Finding(file, None, f"has {plural(number, 'line')}, the manifest says {rows:,}")


def _records(run: OpenedRun, artifact: str) -> Iterator[Finding]:
    file, model = artifact_file(artifact), run.pipeline.record(artifact)
    previous: tuple[object, ...] | None = None
    try:
        for number, record in enumerate(run.records(artifact), start=1):
            key = tuple(getattr(record, field) for field in model.ORDER)
            if previous is not None and key <= previous:
                yield Finding(file, number, f"is not sorted by {', '.join(model.ORDER)}: {key} follows {previous}")
            previous = key
    except RaggsError as error:
        yield Finding(file, error.line, error.message)


def _chain(run: OpenedRun, lock: StageLock) -> Iterator[Finding]:
    if lock.fingerprint != hash_value(lock.components):
        yield Finding("manifest.json", None, f"stage {lock.stage}: the fingerprint is not the hash of its components")
    if lock.components.get("inputs", {}) != lock.inputs:
        yield Finding("manifest.json", None, f"stage {lock.stage}: its components name other inputs than its lock")
    for file, expected in lock.inputs.items():
        written = next((other.outputs[file] for other in run.manifest.stages.values() if file in other.outputs), None)
        if written is None or written.sha256 != expected:
            yield Finding("manifest.json", None, f"stage {lock.stage} was made from another {file} than the one here")


# --- derivations ----------------------------------------------------------------------------------------------


def _derivations(run: OpenedRun, damaged: set[str]) -> Iterator[Finding]:
    for name in DERIVATIONS:
        lock = run.manifest.stages.get(name)
        if lock is None or damaged.intersection({*lock.inputs, *lock.outputs}):
            continue
        try:
            if older := outdated(lock):
                yield Finding(artifact_file(name), None, f"cannot be derived again: {older}")
            else:
                yield from _derivation(run, lock)
        except RaggsError as error:
            yield Finding(artifact_file(name), None, f"cannot be derived again: {error}")


def _derivation(run: OpenedRun, lock: StageLock) -> Iterator[Finding]:
    problems: list[str] = []
    yield from _compare(run, lock.stage, derived(run, lock, problems.append))
    yield from (Finding("rank.journal.jsonl", None, problem) for problem in problems)
    if lock.stage == "prune":
        yield from _whole_pool(run)
    if lock.stage == "rank":
        yield from _golden_order(run)


def _compare(run: OpenedRun, stage: str, derived: Iterable[Record]) -> Iterator[Finding]:
    """The first difference of each of a stage's artifacts from what was derived."""
    files = {
        model: _Compared(artifact, run.records(artifact))
        for artifact, model in run.pipeline.stage(stage).artifacts().items()
    }
    for expected in derived:
        yield from files[type(expected)].next(expected)
    for compared in files.values():
        yield from compared.next(None)


class _Compared:
    """An artifact that is read beside what it must hold, up to the first difference."""

    def __init__(self, artifact: str, found: Iterator[Record]) -> None:
        self._file, self._found = artifact_file(artifact), enumerate(found, start=1)
        self._line, self._differs = 0, False

    def next(self, expected: Record | None) -> Iterator[Finding]:
        """Compare the next line, which must hold `expected`; None: there must be none."""
        if self._differs:
            return
        self._line, found = next(self._found, (self._line + 1, None))
        if expected is found is None:
            return
        if expected is None or found is None or dump_line(expected) != dump_line(found):
            self._differs = True
            yield Finding(self._file, self._line, _difference(expected, found))


def _difference(expected: Record | None, found: Record | None) -> str:
    if expected is None or found is None:
        return "there are more lines than can be derived" if expected is None else "lines are missing from here on"
    before, after = expected.model_dump(), found.model_dump()
    field = next(name for name in before if repr(before[name]) != repr(after[name]))  # 0.0 and -0.0 are equal
    return f"{field} is {shorten(str(after[field]), 60)!r}, derived again it is {shorten(str(before[field]), 60)!r}"


def _whole_pool(run: OpenedRun) -> Iterator[Finding]:
    """Whether every passage of each pool was kept or cut."""
    pool = ((record.qid, record.rank, record.doc_id) for record in run.typed("merge", MergeRecord))
    pruned = ((record.qid, record.rank, record.doc_id) for record in run.typed("prune", PruneRecord))
    for number, (expected, found) in enumerate(zip_longest(pool, pruned), start=1):
        if expected != found:
            yield Finding("prune.jsonl", number, f"is {found}, the pool has {expected} here")
            return


def _golden_order(run: OpenedRun) -> Iterator[Finding]:
    lines = 0
    for qid, records in run.golden():
        yield from _invariants(qid, records, lines)
        lines += len(records)


def _invariants(qid: str, records: list[RankRecord], before: int) -> Iterator[Finding]:
    """What must hold for any golden order, whoever made it."""
    position = {record.doc_id: number for number, record in enumerate(records)}
    for number, record in enumerate(records):
        line = before + number + 1
        if record.rank != number + 1:
            yield Finding("rank.jsonl", line, f"query {qid}: rank {record.rank} stands at place {number + 1}")
        for loser in record.locks_out:
            # Winners above losers for every lock: the order is topological, so the locks cannot have a cycle.
            if position.get(loser, -1) <= number:
                yield Finding(
                    "rank.jsonl",
                    line,
                    f"query {qid}: {record.doc_id} is locked above {loser}, which does not stand below it",
                )
