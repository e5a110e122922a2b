"""Are merge, judge, prune and rank what their inputs lead to? Each is computed again and compared line by line.

The judge is taken at its recorded answers, the ranking is replayed from its journal. Then come the invariants of a
golden set: every ranked passage has a grade and comes from the pool, ranks are 1..n, the locks have no cycle, and the
order is a topological order of the locks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from itertools import zip_longest

from raggs.base.artifacts import MergeRecord, PruneRecord, RankRecord, Record, artifact_file
from raggs.base.errors import RaggsError
from raggs.base.jsonl import dump_line
from raggs.base.text import shorten
from raggs.runs.manifests.derive import DERIVATIONS, derived
from raggs.runs.manifests.findings import Finding
from raggs.runs.manifests.models import StageLock
from raggs.runs.manifests.opened import OpenedRun
from raggs.runs.manifests.outdated import outdated
from raggs.runs.manifests.params import fitting


def derivations(run: OpenedRun, damaged: Set[str]) -> Iterator[Finding]:
    """The first difference of each artifact from what was derived; of none whose files are `damaged`."""
    for name in DERIVATIONS:
        lock = run.manifest.stages.get(name)
        if lock is None or damaged & {*lock.inputs, *lock.outputs}:
            continue
        if name == "embed" and "queries.jsonl" not in lock.outputs:
            continue  # made before questions were kept
        try:
            if older := outdated(lock):
                yield Finding(artifact_file(name), None, f"cannot be derived again: {older}")
            else:
                with fitting(name):
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
