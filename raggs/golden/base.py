"""What a golden set is, wherever it comes from: questions, pools, grades and orders, read query by query.

A set is a description of files, not their content: each reading streams, so that a large run costs no memory, and may
be repeated. Reading touches the run directory, or the files that were named, and nothing else: no corpus, no cache,
no network.

What a golden set consists of, counted and told apart by content: what an export leaves behind, what comes back.

Formats of the field hold some of these parts and have no room for others. A part is a set of items; its digest is the
sum of their hashes, so that the order of reading does not matter, equal content has equal digests, and a set of any
size is told in one pass. It must not know formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from operator import not_
from typing import TYPE_CHECKING, Literal

from pydantic import AliasChoices, Field, field_validator

from raggs.base.artifacts import Frozen, JudgeRecord, Passage, Query, RankRecord, RetrieveRecord
from raggs.base.hashing import canonical_json
from raggs.parts.file_shapes import AS_GRADED, GradeFormat
from raggs.parts.queries.writing import query_facts

if TYPE_CHECKING:
    from raggs.golden.judgments import Judgments
    from raggs.metrics.columns import GradeScale

FUSION_NAME = "fused"  # what the fusion of a run's retrievers is called among them
RUNS = "runs"  # where an export keeps the systems' lists
LISTS = (".trec", ".json")  # the endings of such a list

SetPart = Literal["pool", "grades", "order"]


class LabelRecord(JudgeRecord):
    """What a file says of a passage: a judged one, whose grades stand on the scale of the file."""

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
        """A negative grade says that nobody judged."""
        return None if grade is None or grade < 0 else grade


@dataclass(frozen=True)
class GoldenQuery:
    """One query of a golden set; parts that were not asked for are empty.

    Attributes:
        query: as its author gave it; None where only labels are known.
        pool: the passages that were looked at, best fused first; empty where their texts are not at hand.
        grades: of the pool's passages, in its order.
        order: the ranked passages, best first, with their confidence; empty where nothing was ranked.
    """

    qid: str
    query: Query | None
    pool: tuple[Passage, ...] = ()
    grades: tuple[JudgeRecord, ...] = ()
    order: tuple[RankRecord, ...] = ()

    @property
    def by_grade(self) -> list[JudgeRecord]:
        """The graded passages by grade, then by fused rank: what stands for an order where nobody is asked for one."""
        return sorted((each for each in self.grades if each.grade is not None), key=lambda each: -(each.grade or 0))


class GoldenProvenance(Frozen):
    """Whence the grades of a run are and how they were made, as the sidecars of exports say it.

    Of the corpus a hash of its content is given, of what was retrieved from it the sha256 of its lists. `sources`: if
    people gave some, by who gave them, how many grades.
    """

    run: str
    raggs: str
    created: str
    fingerprints: Mapping[str, str]
    judge: object
    rank: Mapping[str, object]
    failed: int
    depth: object
    gate: tuple[str, ...] = Field((), exclude_if=not_, description="how the judge falls below what was asked of it")
    corpus: str | None = None
    retrieved: str | None = None
    sources: Mapping[str, int] = Field(default_factory=dict, exclude_if=not_)


class GoldenSet(ABC):
    """Judged queries.

    Attributes:
        name: what the set is called.
        source: the run directory, or the file.
        top: how many ranks of an order count; 0 where nothing is ranked.
        provenance: who made it and how; None where the files do not say.
        lacks: what it does not hold yet, as a clause; empty where it is whole.
        form: on which numbers its grades stand; None where nobody says.
        sure: whether its order says how sure each place is.
        partial: whether ranked passages may lack their texts.
        by_grade: whether nobody is to be asked for an order: it is one of grades alone, and lacks nothing.
    """

    lacks: str = ""
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
        """Sentences on how its questions were made, where they say so."""
        return ()

    @abstractmethod
    def queries(self) -> Iterator[Query]:
        """The questions as their authors gave them, sorted by id; none where only labels are known."""

    @abstractmethod
    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """Query by query, sorted by id.

        Args:
            parts: what is wanted besides the question; all if nothing is named. What is not named is not read.

        Raises:
            NotFoundError: a file is missing, or the run has no grades yet.
            DataError: a line cannot be right, or something belongs to no query.
        """

    def hits(self) -> Iterator[RetrieveRecord]:
        """What each retriever returned, each sorted by query and rank; none where no system is known."""
        return iter(())

    @abstractmethod
    def judgments(self, scale: GradeScale | None = None) -> Judgments:
        """All grades as columns, with their doubt, as measures read them.

        Args:
            scale: what grades mean; where it is left out, 1 to 5 for a run, and for files what their grades say.

        Raises:
            NotFoundError: a file is missing, or the run has no grades yet.
            DataError: there are no grades, or one lies outside the scale.
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
    "unjudged": "pooled passages without a grade, and why",
    "judges": "who gave a grade",
    "reasons": "the judge's reasons",
    "samples": "the samples and votes that a grade is made of",
    "duplicates": "which passages are near-duplicates",
    "order": "the order of the ranked top",
    "below": "the order below the top",
    "confidence": "how sure a place in the order is",
    "lists": "what the retrievers returned",
    "questions": "the texts of the questions",
    "facts": "what came with questions: answer, references, language, metadata",
    "texts": "the texts of judged passages",
    "places": "where judged passages stand in their documents",
    "metadata": "the metadata of judged passages",
}
ASKED_AND_READ: frozenset[GoldenContent] = frozenset({"questions", "facts", "texts", "places", "metadata"})
SIZE = 16  # bytes of an item's hash
CONFIDENCE_FIELDS = {
    "score",
    "sigma",
    "confidence",
    "rank_low",
    "rank_high",
    "membership",
    "exposures",
}  # of a ranked passage

Item = tuple[GoldenContent, object]


@dataclass(frozen=True)
class PartStock:
    """What there is of one part.

    Attributes:
        count: items: labels, passages, questions or places in a list.
        digest: of their content, 32 hex digits; equal for equal items in any order.
    """

    count: int = 0
    digest: str = "0" * 2 * SIZE


def contents_of(golden: GoldenSet) -> dict[GoldenContent, PartStock]:
    """All that a golden set holds, each part; reads it once, and its lists.

    Raises:
        NotFoundError, DataError: as `GoldenSet.by_query`.
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
    for question in golden.queries():  # those of which nothing is judged
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
