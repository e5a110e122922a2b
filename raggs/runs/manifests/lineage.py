"""Lineage of a golden set: the version that it was updated from, and the labels and orders that it carried over.

`raggs update` writes a new run directory for each version. The manifest of the new run contains a `Lineage`; the
manifest of a first version contains none. A version is identified by a hash of its queries, pools, labels and order,
and of the version that it was made from. Each version therefore depends on all versions before it.

`raggs.golden.lineage_audit` verifies a lineage against the run directories of earlier versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import not_
from typing import Annotated

from pydantic import Field, StringConstraints

from raggs.base.artifacts import CarryReason, Frozen, JournalRecord, JudgeRecord
from raggs.base.hashing import hash_value
from raggs.llm.messages import Answerer

VERSION_DIGITS = 12  # hex digits of a version in records and messages
MAX_GENERATIONS = 1000  # maximum number of earlier versions that a lineage names
LABELS_FILE, ORDERS_FILE = "carried.labels.jsonl", "carried.orders.jsonl"
# the artifacts that identify a version; the retrieved lists and the journal determine no label
IDENTIFYING = ("queries.jsonl", "merge.jsonl", "judge.jsonl", "prune.jsonl", "rank.jsonl")
Version = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class PassageChanges(Frozen):
    """Numbers of passages by kind of change. Null if the earlier corpus is not stored."""

    unchanged: int | None = Field(None, description="number of passages with the same id and text")
    moved: int | None = Field(None, description="number of passages with the same text, but another id or place")
    edited: int | None = Field(None, description="number of passages with another text, but the same id or shared text")
    new: int | None = Field(None, description="number of other passages that only the new corpus contains")
    gone: int | None = Field(None, description="number of other passages that only the earlier corpus contains")


class QueryChanges(Frozen):
    """Numbers of queries by kind of change."""

    unchanged: int
    renamed: int = Field(description="number of queries with the same content, but another id")
    edited: int = Field(description="number of queries with the same id, but another content")
    new: int
    gone: int


class VersionCounts(Frozen):
    """Numbers of labels and orders of a finished version."""

    carried: Mapping[CarryReason, int] = Field(description="number of labels that were carried over, by reason")
    judged: Mapping[str, int] = Field(description="number of labels that were made for this version, by judge")
    orders_carried: int = Field(ge=0, description="number of orders that were carried over")
    orders_judged: int = Field(ge=0, description="number of orders that were made for this version")


class Lineage(Frozen):
    """Lineage of a version: its parent and what it carried over."""

    name: str = Field(description="name of the parent's run")
    folder: str = Field(description="run directory of the parent, relative to the run directory of this version")
    parent: Version = Field(description="version of the parent")
    ancestors: tuple[Version, ...] = Field(
        (), max_length=MAX_GENERATIONS, description="versions before the parent, latest first"
    )
    corpus: PassageChanges = Field(description="changes of all passages of the corpus")
    pooled: PassageChanges = Field(
        description="changes of the parent's pooled passages; `new` is null because pools follow later"
    )
    queries: QueryChanges
    reused_ids: int = Field(
        0, ge=0, description="number of ids of pooled passages that name an unrelated text in the new corpus"
    )
    dependent: Mapping[str, tuple[str, ...]] = Field(
        default_factory=dict,
        exclude_if=not_,
        description="queries whose documents (`depends_on`) or evidence changed or are gone, with these documents",
    )
    answerers: tuple[Answerer, ...] = Field((), exclude_if=not_, description="models that made the parent's labels")
    labels: str = Field(description=f"sha256 of {LABELS_FILE}")
    orders: str = Field(description=f"sha256 of {ORDERS_FILE}")
    counts: VersionCounts | None = Field(None, description="null until the labels of this version exist")

    @property
    def number(self) -> int:
        """Number of the version: 2 for the first update of a set."""
        return len(self.ancestors) + 2

    @property
    def origin(self) -> str:
        """First digits of the parent's version, as in records."""
        return self.parent[:VERSION_DIGITS]


class VersionName(Frozen):
    """Name of a version that `raggs update` made, for reports that use it."""

    number: int = Field(ge=2, description="2 for the first update of a set")
    version: Version = Field(description="hash of the set's content and of its lineage")
    parent: Version = Field(description="version that was updated")
    updated_from: str = Field(description="name of the parent's run")
    carried: int = Field(ge=0, description="number of labels that were carried over")
    judged: int = Field(ge=0, description="number of labels that were made for this version")
    dependent: tuple[str, ...] = Field(
        (), exclude_if=not_, description="ids of queries that depend on documents which changed or are gone"
    )

    @classmethod
    def of(cls, version: str, lineage: Lineage) -> VersionName:
        """Return the name of a version."""
        counts = lineage.counts or VersionCounts(carried={}, judged={}, orders_carried=0, orders_judged=0)
        return cls(
            number=lineage.number,
            version=version,
            parent=lineage.parent,
            updated_from=lineage.name,
            carried=sum(counts.carried.values()),
            judged=sum(counts.judged.values()),
            dependent=tuple(lineage.dependent),
        )

    def __str__(self) -> str:
        parent = f"{self.updated_from} ({self.parent[:VERSION_DIGITS]})"
        return (
            f"version {self.number} ({self.version[:VERSION_DIGITS]}), updated from {parent}: "
            f"{self.carried:,} labels carried over, {self.judged:,} made for it"
        )


def version_of(outputs: Mapping[str, str], lineage: Lineage | None) -> str:
    """Return the version of a golden set.

    Args:
        outputs: sha256 of each artifact, by file name.
        lineage: lineage of the set; None for a first version.
    """
    files = {name: outputs[name] for name in IDENTIFYING if name in outputs}
    return hash_value([files, None if lineage is None else lineage.parent])


def count_version(labels: Iterable[JudgeRecord], orders: Iterable[JournalRecord]) -> VersionCounts:
    """Return what a version contains. Near-duplicates, which have the grade of another passage, are not counted."""
    carried: dict[CarryReason, int] = {}
    judged: dict[str, int] = {}
    for label in labels:
        if label.duplicate_of is not None or label.grade is None:
            continue
        if label.carried is not None:
            carried[label.carried.how] = carried.get(label.carried.how, 0) + 1
        else:
            judged[label.judge] = judged.get(label.judge, 0) + 1
    known = fresh = 0
    for entry in orders:
        known, fresh = known + bool(entry.carried), fresh + (entry.order is not None and not entry.carried)
    return VersionCounts(
        carried=dict(sorted(carried.items())),
        judged=dict(sorted(judged.items())),
        orders_carried=known,
        orders_judged=fresh,
    )
