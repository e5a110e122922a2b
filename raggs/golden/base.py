"""The interface of golden sets: queries, pools, grades and orders, which are read query by query.

A `GoldenSet` refers to files and does not load their content. It is read as a stream, so that a large run needs little
memory, and it can be read repeatedly. Reading uses only files: the run directory and its human labels, or the given
files and those next to them. It needs no cache and no network.

`contents_of` counts the items of each part of a golden set and computes a digest, to compare a set with its export.
Most exchange formats contain only some of these parts. The digest is the sum of the items' hashes, so that equal items
in any order have equal digests. This module must not depend on the modules of the formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from operator import not_
from typing import TYPE_CHECKING, Literal

from pydantic import AliasChoices, Field, field_validator

from raggs.base.artifacts import Frozen, Groups, JudgeRecord, Passage, Query, RankRecord, RetrieveRecord
from raggs.base.hashing import canonical_json
from raggs.parts.file_shapes import AS_GRADED, GradeFormat
from raggs.parts.queries.writing import query_facts
from raggs.runs.manifests.lineage import VersionName

if TYPE_CHECKING:
    from raggs.golden.judgments import Judgments
    from raggs.metrics.columns import GradeScale

FUSION_NAME = "fused"  # name of the fused list among the lists of a run's retrievers
RUNS = "runs"  # folder for the systems' lists in an export
LISTS = (".trec", ".json")  # file extensions of the lists in this folder

SetPart = Literal["pool", "grades", "order"]


class LabelRecord(JudgeRecord):
    """A label from a file. Its grade may be outside 1 to 5."""

    qid: str
    rank: int = 0
    doc_id: str
    grade: int | None = None
    grades: tuple[int | None, ...] = Field((), validation_alias=AliasChoices("samples", "grades"))
    votes: Mapping[str, tuple[int | None, ...]] = Field(default_factory=dict)
    judge: str = ""

    @field_validator("grade")
    @classmethod
    def _unjudged(cls, grade: int | None) -> int | None:
        """Convert a negative grade, which means unjudged, to None."""
        return None if grade is None or grade < 0 else grade


@dataclass(frozen=True)
class GoldenQuery:
    """One query of a golden set. A part that was not requested may be empty.

    Attributes:
        query: the query as its author wrote it; None if only labels are known.
        pool: the pooled passages, in a run best fused passage first; empty if their texts are unavailable.
        grades: grades of the pool's passages, in the same order.
        order: the ranked passages, best first, with their confidence; empty if there is no ranking.
    """

    qid: str
    query: Query | None
    pool: tuple[Passage, ...] = ()
    grades: tuple[JudgeRecord, ...] = ()
    order: tuple[RankRecord, ...] = ()

    @property
    def by_grade(self) -> list[JudgeRecord]:
        """The graded passages, highest grade first. Equal grades keep the sequence of `grades` (in a run, fused rank).
        The result replaces the order in sets that have no order.
        """
        return sorted((each for each in self.grades if each.grade is not None), key=lambda each: -(each.grade or 0))


class GoldenProvenance(Frozen):
    """Origin of a run's grades, as stored in the sidecar (the metadata file) of an export.

    The corpus is identified by a hash of its content, the retrieved lists by their sha256. `sources` is the number of
    grades by source; it is empty if no grade comes from a human.
    """

    run: str
    raggs: str
    created: str
    fingerprints: Mapping[str, str]
    judge: object
    rank: Mapping[str, object]
    failed: int
    depth: object
    gate: tuple[str, ...] = Field((), exclude_if=not_, description="clauses about limits that the judge does not meet")
    corpus: str | None = None
    retrieved: str | None = None
    sources: Mapping[str, int] = Field(default_factory=dict, exclude_if=not_)
    version: VersionName | None = Field(None, exclude_if=not_, description="version of a set that `raggs update` made")


class GoldenSet(ABC):
    """Queries with judged passages.

    Attributes:
        name: name of the set.
        source: path of the run directory or of the file.
        top: number of leading ranks that matter; 0 if the set has no ranking.
        provenance: origin of the grades; None if unknown.
        lacks: text that lists the missing parts; empty if the set is complete.
        model_versions: sentences about models of which several versions gave the grades; empty if there are none, or
            if the versions are unknown.
        form: numeric format of the grades; None if unknown.
        sure: whether the order has a confidence for each position.
        partial: whether texts of ranked passages may be missing.
        by_grade: whether the set was made without an order on purpose, so that the order does not count as missing.
    """

    lacks: str = ""
    model_versions: tuple[str, ...] = ()
    form: GradeFormat | None = AS_GRADED
    sure: bool = True
    partial: bool = False
    by_grade: bool = False
    name: str
    source: str
    top: int
    provenance: GoldenProvenance | None

    @property
    def made(self) -> tuple[str, ...]:
        """Sentences about how the queries were generated; empty if unknown."""
        return ()

    @abstractmethod
    def queries(self) -> Iterator[Query]:
        """Yield the queries as their authors wrote them, sorted by id. If only labels are known, yield nothing."""

    def evidence(self) -> dict[str, Groups]:
        """Return the evidence sets by query, for the queries that have any.

        Raises:
            NotFoundError, DataError: the queries cannot be read.
        """
        return {query.qid: query.evidence for query in self.queries() if query.evidence}

    @abstractmethod
    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """Yield the queries one by one, sorted by id.

        Args:
            parts: the parts to read in addition to the query (default: all).

        Raises:
            NotFoundError: a file is missing, or the run has no grades yet.
            DataError: a line is invalid, or a record belongs to no query.
        """

    def hits(self) -> Iterator[RetrieveRecord]:
        """Yield the hits of each retriever; nothing if no lists are known.

        The hits of one retriever for one query follow each other, sorted by rank.
        """
        return iter(())

    @abstractmethod
    def judgments(self, scale: GradeScale | None = None) -> Judgments:
        """Return all grades with their uncertainty, as columns that the measures read.

        Args:
            scale: scale of the grades (default: 1 to 5 for a run; for files, the scale in the sidecar, or else one
                derived from their grades).

        Raises:
            NotFoundError: a file is missing, or the run has no grades yet.
            DataError: the set has no grades, or a grade is outside the scale.
        """


GoldenContent = Literal[
    "grades",
    "unjudged",
    "judges",
    "reasons",
    "samples",
    "duplicates",
    "order",
    "below",
    "confidence",
    "lists",
    "questions",
    "facts",
    "texts",
    "places",
    "metadata",
]
GOLDEN_CONTENTS: Mapping[GoldenContent, str] = {
    "grades": "grades from 1 to 5",
    "unjudged": "pooled passages without a grade, with the reason",
    "judges": "the source of each grade",
    "reasons": "the judge's reasons",
    "samples": "the samples and votes behind each grade",
    "duplicates": "which passages are near-duplicates",
    "order": "the order of the ranked passages in the top",
    "below": "the order below the top",
    "confidence": "the confidence of each position in the order",
    "lists": "the lists returned by the retrievers",
    "questions": "the texts of the queries",
    "facts": "additional data of queries: answer, references, language, metadata",
    "texts": "the texts of judged passages",
    "places": "the positions of judged passages in their documents",
    "metadata": "the metadata of judged passages",
}
ASKED_AND_READ: frozenset[GoldenContent] = frozenset({"questions", "facts", "texts", "places", "metadata"})
SIZE = 16  # size of the hash of an item, in bytes
CONFIDENCE_FIELDS = {
    "score",
    "sigma",
    "confidence",
    "rank_low",
    "rank_high",
    "membership",
    "exposures",
}  # fields of a ranked passage that make up its confidence

Item = tuple[GoldenContent, object]


@dataclass(frozen=True)
class PartStock:
    """Number and digest of the items of one part.

    Attributes:
        count: number of items: labels, passages, queries or list entries.
        digest: digest of their content, 32 hex digits. Equal items in any order have equal digests.
    """

    count: int = 0
    digest: str = "0" * 2 * SIZE


def contents_of(golden: GoldenSet) -> dict[GoldenContent, PartStock]:
    """Return the number and digest of the items of each part of a golden set. The queries are read twice, everything
    else once.

    Raises:
        NotFoundError, DataError: see `GoldenSet.by_query`.
    """
    counts, sums = dict.fromkeys(GOLDEN_CONTENTS, 0), dict.fromkeys(GOLDEN_CONTENTS, 0)
    for part, item in _items(golden):
        counts[part] += 1
        sums[part] += _hash(item)
    return {part: PartStock(counts[part], f"{sums[part] % (1 << 8 * SIZE):0{2 * SIZE}x}") for part in GOLDEN_CONTENTS}


def _hash(item: object) -> int:
    return int.from_bytes(blake2b(canonical_json(item).encode(), digest_size=SIZE).digest(), "big")


def _items(golden: GoldenSet) -> Iterator[Item]:
    seen: set[str] = set()
    asked: set[str] = set()
    for query in golden.by_query():
        asked.add(query.qid)
        yield from _of_question(query)
        for graded in query.grades:
            yield from _of_label(query.qid, graded)
        judged = {graded.doc_id for graded in query.grades if graded.grade is not None} - seen
        for passage in query.pool:
            if passage.doc_id in judged:
                yield from _of_passage(passage)
        seen |= judged
        for record in query.order:
            yield "order" if record.rank <= golden.top else "below", (query.qid, record.rank, record.doc_id)
            if golden.sure:
                yield "confidence", (query.qid, record.doc_id, record.model_dump(include=CONFIDENCE_FIELDS))
    for question in golden.queries():  # queries without judged passages
        if question.qid not in asked:
            yield from _of_question(GoldenQuery(question.qid, question))
    for hit in golden.hits():
        yield "lists", (hit.retriever, hit.qid, hit.doc_id, hit.score)


def _of_question(query: GoldenQuery) -> Iterator[Item]:
    if query.query is not None:
        yield "questions", (query.qid, query.query.text)
        if facts := query_facts(query.query):
            yield "facts", (query.qid, facts)


def _of_label(qid: str, graded: JudgeRecord) -> Iterator[Item]:
    row = (qid, graded.doc_id)
    if graded.grade is None:
        yield "unjudged", (*row, graded.skipped, graded.error)
    else:
        yield "grades", (*row, graded.grade)
    if graded.judge:
        yield "judges", (*row, graded.judge)
    if graded.reason:
        yield "reasons", (*row, graded.reason)
    if len(graded.grades) > 1 or graded.votes:
        yield "samples", (*row, graded.grades, dict(graded.votes))
    if graded.duplicate_of is not None:
        yield "duplicates", (*row, graded.duplicate_of)


def _of_passage(passage: Passage) -> Iterator[Item]:
    yield "texts", (passage.doc_id, passage.title, passage.text)
    if passage.span is not None:
        yield "places", (passage.doc_id, passage.span.model_dump())
    if passage.metadata:
        yield "metadata", (passage.doc_id, passage.metadata)
