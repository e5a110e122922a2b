"""What a golden set is, wherever it comes from: questions, pools, grades and orders, read query by query.

A set is a description of files, not their content: each reading streams, so that a large run costs no memory, and may
be repeated. Reading touches the run directory, or the files that were named, and nothing else: no corpus, no cache,
no network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import not_
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from raggs.base.artifacts import Frozen, Passage, Query, RankRecord, RetrieveRecord
from raggs.parts.readers.scales import AS_GRADED, GradeScale

if TYPE_CHECKING:
    from raggs.golden.judgments import Judgments
    from raggs.metrics.columns import Scale

FUSED = "fused"  # what the fusion of a run's retrievers is called among them
RUNS = "runs"  # where an export keeps the systems' lists
LISTS = (".trec", ".json")  # the endings of such a list

SetPart = Literal["pool", "grades", "order"]


@dataclass(frozen=True)
class Graded:
    """What is known of one passage's grade.

    Attributes:
        grade: on the scale of the set; None where the judge failed or was not asked.
        samples: every grade that `grade` was made from, in the order of asking; None for an answer without one.
        votes: by member of a panel, its grade in each sample.
        judge: who judged; empty where nobody was asked, or nothing is known.
        reason: the judge's words.
        duplicate_of: the representative of its near-duplicates, whose grade this is.
        skipped: why nobody was asked.
        error: why a grade is missing.
    """

    doc_id: str
    grade: int | None
    samples: tuple[int | None, ...] = ()
    votes: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    judge: str = ""
    reason: str = ""
    duplicate_of: str | None = None
    skipped: str | None = None
    error: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the judge was asked and gave no grade; a representative stands for its near-duplicates."""
        return self.grade is None and self.skipped is None and self.duplicate_of is None


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
    grades: tuple[Graded, ...] = ()
    order: tuple[RankRecord, ...] = ()

    @property
    def by_grade(self) -> list[Graded]:
        """The graded passages by grade, then by fused rank: what stands for an order where nobody is asked for one."""
        return sorted((each for each in self.grades if each.grade is not None), key=lambda each: -(each.grade or 0))


class Provenance(Frozen):
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
    form: GradeScale | None = AS_GRADED
    sure: bool = True
    partial: bool = False
    by_grade: bool = False
    name: str
    source: str
    top: int
    provenance: Provenance | None

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
    def judgments(self, scale: Scale | None = None) -> Judgments:
        """All grades as columns, with their doubt, as measures read them.

        Args:
            scale: what grades mean; where it is left out, 1 to 5 for a run, and for files what their grades say.

        Raises:
            NotFoundError: a file is missing, or the run has no grades yet.
            DataError: there are no grades, or one lies outside the scale.
        """
