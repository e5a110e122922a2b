"""Reasons for running a stage. Each reason is a value, and its string is the message.

`ungraded` explains why a run has no grades after its judge stage, and names the next command.
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
        return "--force was given"


@dataclass(frozen=True)
class ComponentChanged:
    """Something that the stage's result depends on has changed since the lock was written."""

    component: str
    old: Any
    new: Any

    def __str__(self) -> str:
        if self.old is ABSENT:
            return f"{self.component} is new ({_show(self.new)})"
        if self.new is ABSENT:
            return f"{self.component} was removed (was {_show(self.old)})"
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
        return f"{self.file} was edited manually"


@dataclass(frozen=True)
class LockEdited:
    """The lock of the stage was edited, so the stage runs again."""

    stage: str

    def __str__(self) -> str:
        return "its lock in manifest.json was edited manually (raggs audit shows the place)"


@dataclass(frozen=True)
class FailuresLeft:
    count: int

    def __str__(self) -> str:
        return f"{plural(self.count, 'judgment')} failed last time and will be retried"


@dataclass(frozen=True)
class PartlyDone:
    """An earlier stage was stopped, and this stage processes the queries that it had finished."""

    stage: str

    def __str__(self) -> str:
        return f"for the queries that {self.stage} has finished"


@dataclass(frozen=True)
class BudgetEnded:
    """The budget is used up, so the stage processes paid answers and calls no model."""

    def __str__(self) -> str:
        return "the budget is used up, so only paid answers are used"


@dataclass(frozen=True)
class UpstreamReruns:
    """An earlier stage will run first. If its artifact changes, this stage runs, too."""

    stage: str

    def __str__(self) -> str:
        return f"{self.stage} runs first; this stage runs if {self.stage}.jsonl changes"


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
    """Yield every value that differs between two component trees, with its dotted name, sorted by name."""
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
    """Reasons why the queries of a run have no grades.

    Attributes:
        empty: number of queries for which no retriever found a passage.
        waiting: number of queries whose pool was not judged.
        failed: number of passages on which the judge failed.
        silent: number of passages on which every judge abstained.
        remedy: the command that resolves or explains the problem.
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
            yield f"{plural(self.empty, 'pool')} {_are(self.empty)} empty because no retriever found a passage"
        if self.waiting:
            yield f"{plural(self.waiting, 'pool')} {_are(self.waiting)} not judged yet"
        if self.failed:
            yield f"the judge failed on {plural(self.failed, 'passage')}"
        if self.silent:
            yield f"no judge gave a grade for {plural(self.silent, 'passage')}"


def ungraded(run: OpenedRun) -> UngradedQueries:
    """Return the reasons why no passage of the run has a grade."""
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
    """Return the error for commands that need grades, for a run that has none."""
    found = ungraded(run)
    return DataError(str(found), where=run.folder, remedy=found.remedy)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
