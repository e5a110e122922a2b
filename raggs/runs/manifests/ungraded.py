"""Why a run in which the judge has worked holds no grade, and what helps: the same run once more seldom does."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from raggs.base.artifacts import EmbedRecord, JudgeRecord, MergeRecord
from raggs.base.errors import DataError
from raggs.base.health import PEOPLE
from raggs.base.text import plural
from raggs.runs.manifests.opened import OpenedRun


@dataclass(frozen=True)
class Ungraded:
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


def ungraded(run: OpenedRun) -> Ungraded:
    """What became of the queries of a run of which none is `graded`."""
    records = [record for record in run.typed("judge", JudgeRecord) if record.duplicate_of is None]
    pools = {record.qid for record in run.typed("merge", MergeRecord)}
    empty = [record.qid for record in run.typed("embed", EmbedRecord) if record.qid not in pools]
    failed, waiting = sum(record.failed for record in records), len(pools - {record.qid for record in records})
    silent = len(records) - failed
    folder = shlex.quote(str(run.folder))
    if failed or waiting:
        remedy = run.command
    elif silent and PEOPLE in str(run.manifest.config.get("judge")):
        remedy = f"raggs review serve {folder}"
    else:
        remedy = f"raggs show {folder} {shlex.quote((empty or [records[0].qid])[0])}"
    return Ungraded(len(empty), waiting, failed, silent, remedy)


def no_grades(run: OpenedRun) -> DataError:
    """The error of whoever needs the grades of such a run."""
    found = ungraded(run)
    return DataError(str(found), where=run.folder, remedy=found.remedy)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
