"""Why a stage runs again, as values that print as sentences.

Why a run in which the judge has worked holds no grade, and what helps: the same run once more seldom does.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from raggs.base.artifacts import EmbedRecord, JudgeRecord, MergeRecord
from raggs.base.errors import DataError
from raggs.base.judge_health import HUMAN_SOURCE
from raggs.base.text import plural, shorten
from raggs.runs.manifests.open_run import OpenedRun

ABSENT = object()


@dataclass(frozen=True)
class NeverRun:
    def __str__(self) -> str:
        return "it has not run yet"


@dataclass(frozen=True)
class RunInterrupted:
    def __str__(self) -> str:
        return "its last attempt did not finish"


@dataclass(frozen=True)
class ForcedRerun:
    def __str__(self) -> str:
        return "it was asked for by --force"


@dataclass(frozen=True)
class ComponentChanged:
    """A component differs from the one that the lock holds."""

    component: str
    old: Any
    new: Any

    def __str__(self) -> str:
        if self.old is ABSENT:
            return f"{self.component} is new ({_show(self.new)})"
        if self.new is ABSENT:
            return f"{self.component} is gone (was {_show(self.old)})"
        return f"{self.component} changed ({_show(self.old)} -> {_show(self.new)})"


@dataclass(frozen=True)
class OutputMissing:
    file: str

    def __str__(self) -> str:
        return f"{self.file} is missing"


@dataclass(frozen=True)
class OutputEdited:
    file: str

    def __str__(self) -> str:
        return f"{self.file} was edited by hand"


@dataclass(frozen=True)
class LockEdited:
    """What its lock says of a stage cannot be believed."""

    stage: str

    def __str__(self) -> str:
        return "its lock in manifest.json was edited by hand (raggs audit says where)"


@dataclass(frozen=True)
class FailuresLeft:
    count: int

    def __str__(self) -> str:
        return f"{plural(self.count, 'judgment')} failed last time and will be tried again"


@dataclass(frozen=True)
class PartlyDone:
    """A stage before it was stopped, and what that one has done is gone on with."""

    stage: str

    def __str__(self) -> str:
        return f"for the queries that {self.stage} has done"


@dataclass(frozen=True)
class BudgetEnded:
    """The budget has ended, and nobody is asked any more."""

    def __str__(self) -> str:
        return "the budget has ended; with what is paid for"


@dataclass(frozen=True)
class UpstreamReruns:
    """An earlier stage will run; this one follows if that stage's artifact changes."""

    stage: str

    def __str__(self) -> str:
        return f"{self.stage} runs before it; it follows if {self.stage}.jsonl changes"


Reason = (
    NeverRun
    | RunInterrupted
    | ForcedRerun
    | ComponentChanged
    | OutputMissing
    | OutputEdited
    | LockEdited
    | FailuresLeft
    | PartlyDone
    | BudgetEnded
    | UpstreamReruns
)


def differences(old: Any, new: Any, name: str = "") -> Iterator[ComponentChanged]:
    """Every leaf at which two component trees differ, by dotted name, in sorted order."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from differences(old.get(key, ABSENT), new.get(key, ABSENT), f"{name}.{key}" if name else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for position, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{name}.{position}")
    elif old != new:
        yield ComponentChanged(name, old, new)


def _show(value: Any) -> str:
    text = str(value)
    if len(text) == 64 and all(char in "0123456789abcdef" for char in text):
        return text[:8]
    return shorten(text, 40) or repr(value)


@dataclass(frozen=True)
class UngradedQueries:
    """What became of the queries of a run without grades.

    Attributes:
        empty, waiting: queries without a pool, and those whose pool was not judged.
        failed, silent: passages on which the judge failed, and on which nobody spoke.
        remedy: what helps, as a command.
    """

    empty: int
    waiting: int
    failed: int
    silent: int
    remedy: str

    def __str__(self) -> str:
        return f"no query has a graded passage: {'; '.join(self._told())}"

    def _told(self) -> Iterator[str]:
        if self.empty:
            yield f"{plural(self.empty, 'pool')} {_are(self.empty)} empty, as no retriever found anything"
        if self.waiting:
            yield f"{plural(self.waiting, 'pool')} {_are(self.waiting)} not judged yet"
        if self.failed:
            yield f"the judge failed on {plural(self.failed, 'passage')}"
        if self.silent:
            yield f"nobody spoke on {plural(self.silent, 'passage')}"


def ungraded(run: OpenedRun) -> UngradedQueries:
    """What became of the queries of a run of which none is `graded`."""
    records = [record for record in run.typed("judge", JudgeRecord) if record.duplicate_of is None]
    pools = {record.qid for record in run.typed("merge", MergeRecord)}
    empty = [record.qid for record in run.typed("embed", EmbedRecord) if record.qid not in pools]
    failed, waiting = sum(record.failed for record in records), len(pools - {record.qid for record in records})
    silent = len(records) - failed
    folder = shlex.quote(str(run.folder))
    if failed or waiting:
        remedy = run.command
    elif silent and HUMAN_SOURCE in str(run.manifest.config.get("judge")):
        remedy = f"raggs review serve {folder}"
    else:
        remedy = f"raggs show {folder} {shlex.quote((empty or [records[0].qid])[0])}"
    return UngradedQueries(len(empty), waiting, failed, silent, remedy)


def no_grades(run: OpenedRun) -> DataError:
    """The error of whoever needs the grades of such a run."""
    found = ungraded(run)
    return DataError(str(found), where=run.folder, remedy=found.remedy)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
