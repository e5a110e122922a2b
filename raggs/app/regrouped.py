"""Grades of the last run that are of no use, since their passages would be graded in other company (`judge.group`).

A grade that was given beside others is one to that company. Where groups have another size, or a pool holds other
passages, companies are drawn anew, and all their grades are paid for again; the dry run says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from raggs.app.services import RunServices
from raggs.base.artifacts import JudgeRecord
from raggs.runs.manifests.store import RunStore


@dataclass
class Before:
    """What the last run knew by the same judge.

    Attributes:
        was, now: passages in a call, then and now.
        graded: ids of the passages with a grade, by query.
        lost: how many of them would be asked about again.
    """

    was: int
    now: int
    graded: Mapping[str, Set[str]]
    lost: int = 0

    def see(self, qid: str, records: Iterable[JudgeRecord]) -> None:
        """What is known of a pool now."""
        mine = self.graded.get(qid, frozenset())
        self.lost += sum(record.failed and record.doc_id in mine for record in records)

    @property
    def sentence(self) -> str:
        """What cannot be used and why; empty where all can."""
        if not self.lost:
            return ""
        why = f"judge.group was {self.was} and is {self.now}"
        if self.was == self.now:
            why = "a pool that holds other passages is cut into other groups"
        return f"{self.lost:,} of {sum(map(len, self.graded.values())):,} grades of the last run cannot be used: {why}"


def guess(services: RunServices, store: RunStore) -> str:
    """What cannot be used where no pool is known yet; empty as `grades_before`."""
    if (before := grades_before(services, store)) is None:
        return ""
    if before.was != before.now:
        return f"most grades of the last run cannot be used: judge.group was {before.was} and is {before.now}"
    return "where a pool changes, none of its grades of the last run can be used: it is cut into other groups"


def grades_before(services: RunServices, store: RunStore) -> Before | None:
    """The last run's grades; None where nobody saw several passages at once, then or now, or another judge gave them.

    Raises:
        RaggsError: they cannot be read.
    """
    now, lock = services.config.judge.group, store.manifest().stages.get("judge") if store.exists else None
    was = lock.params.get("group", 1) if lock is not None else 1
    if lock is None or not isinstance(was, int) or was == now == 1 or not store.path("judge").is_file():
        return None
    if lock.components.get("judge") != services.causes("judge", "grade"):
        return None
    graded: dict[str, set[str]] = {}
    for record in store.read("judge", JudgeRecord):
        if record.grade is not None and record.duplicate_of is None:
            graded.setdefault(record.qid, set()).add(record.doc_id)
    return Before(was, now, graded)
