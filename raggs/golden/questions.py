"""Views of the queries of a golden set, by id or one after the other. Of a run, only one query is in memory at a time.

Each artifact of a run is scanned once for the positions of each query's lines. After that, a view reads only the lines
of its query. A set in files is read into memory completely. The systems are the run's retrievers, or given systems,
whose lists are stored as columns.

`SystemLists` returns a system's list for a query from these columns, best first. Ties are ordered as in trec_eval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from raggs.base.arrays import Ints
from raggs.base.artifacts import (
    EmbedRecord,
    JudgeRecord,
    MergeRecord,
    Passage,
    PruneRecord,
    Query,
    QueryRecord,
    RankingRecord,
    RankRecord,
    Record,
    RetrieveRecord,
)
from raggs.base.errors import NotFoundError
from raggs.base.text import did_you_mean
from raggs.golden.base import FUSION_NAME, GoldenQuery, GoldenSet
from raggs.golden.files import FileGolden
from raggs.golden.runs import RunGolden
from raggs.golden.sources import NamedSystem
from raggs.golden.views import (
    HitView,
    HumanLabel,
    PassageView,
    QuestionBrief,
    QuestionView,
    ReturnedHits,
    passage_source,
)
from raggs.parts.reviews import CurrentReviews, key_of
from raggs.runs.manifests.open_run import ArtifactByQuery


class SystemLists:
    """The lists of a system, by query.

    Args:
        system: the system.
        depth: maximum number of returned hits per query (default: all).
    """

    def __init__(self, system: NamedSystem, depth: int | None) -> None:
        self._name, self._run, self._depth = system.name, system.run, depth
        order = np.argsort(self._run.query, kind="stable")
        ends = np.cumsum(np.bincount(self._run.query, minlength=len(self._run.qids)))[:-1]
        self._rows = dict(zip(self._run.qids, np.split(order, ends), strict=True))

    def of(self, qid: str, grades: Mapping[str, int | None]) -> ReturnedHits:
        """Return the system's hits for a query. They are empty if the system has no list for the query.

        Args:
            qid: the query id.
            grades: grade by passage. All other passages are unjudged.
        """
        rows = self._rows.get(qid)
        if rows is None:
            return ReturnedHits(self._name, (), 0)
        first = self._first(rows)
        docs = [doc.decode() for doc in self._run.docs.take(first).tolist()]
        found = sorted(zip(docs, self._run.score[first].tolist(), strict=True), reverse=True)
        found.sort(key=lambda pair: pair[1], reverse=True)
        hits = (HitView(rank, doc, score, grades.get(doc)) for rank, (doc, score) in enumerate(found, start=1))
        return ReturnedHits(self._name, tuple(hits)[: self._depth], len(rows))

    def _first(self, rows: Ints) -> Ints:
        """Return the rows of a list that may be returned: the first `depth`, and all with the same score as the last
        one.
        """
        if self._depth is None or not 0 < self._depth < len(rows):
            return rows
        scores, last = self._run.score[rows], len(rows) - self._depth
        first: Ints = rows[scores >= np.partition(scores, last)[last]]
        return first


R = TypeVar("R", bound=Record)
MAX_LISTED_IDS = 20  # maximum number of ids in an error message
RANKED = ("rank", "rank.queries")  # artifacts that may be left over from an earlier ranking


class GoldenQuestions:
    """The views of the queries of a golden set.

    Args:
        golden: the set.
        systems: systems whose lists are shown (default: the run's retrievers and their fusion; for files, no systems).
        reviews: current human labels; used only for a run.
        texts: whether to include texts of passages, reasons of judges and notes of humans.
        depth: maximum number of shown hits per system (default: all).

    Attributes:
        top: number of leading ranks that matter; 0 if the set has no ranking.

    Raises:
        NotFoundError, DataError: the set cannot be read.
    """

    def __init__(
        self,
        golden: GoldenSet,
        systems: Sequence[NamedSystem] | None = None,
        reviews: CurrentReviews | None = None,
        *,
        texts: bool = True,
        depth: int | None = None,
    ) -> None:
        own = depth if systems is None else 0
        self._source: _Source = _OfRun(golden, own) if isinstance(golden, RunGolden) else _OfFiles(golden)
        self._lists = None if systems is None else _lists(systems, depth)
        self.top = golden.top
        self._name, self._reviews, self._texts = golden.source, reviews, texts

    @property
    def ids(self) -> tuple[str, ...]:
        """The query ids, sorted."""
        return self._source.ids

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[QuestionView]:
        return map(self.view, self.ids)

    def briefs(self) -> Iterator[QuestionBrief]:
        """Yield a summary of each query without its passages. For a run, this is much cheaper than the views.

        Raises:
            DataError: a line is invalid.
        """
        return map(self._source.brief, self.ids)

    def view(self, qid: str, reviews: CurrentReviews | None = None) -> QuestionView:
        """Return the view of one query.

        Args:
            qid: the query id.
            reviews: newer human labels, which replace the labels given to the constructor.

        Raises:
            NotFoundError: the id is unknown; a similar id is suggested if there is one.
            DataError: a line is invalid.
        """
        if qid not in self._source.known:
            few = len(self.ids) <= MAX_LISTED_IDS
            remedy = did_you_mean(qid, self.ids, None if few else f"there are {len(self.ids):,} ids")
            raise NotFoundError(f"unknown query {qid!r}", where=self._name, remedy=remedy)
        found = self._source.view(qid, reviews or self._reviews)
        if self._lists is not None:
            grades = found.grades
            found = replace(found, systems=tuple(each.of(qid, grades) for each in self._lists))
        return found if self._texts else found.without_texts()


class _Source(Protocol):
    """Reads the views of queries from a run or from files."""

    def brief(self, qid: str) -> QuestionBrief: ...

    @property
    def ids(self) -> tuple[str, ...]: ...

    @property
    def known(self) -> frozenset[str]: ...

    def view(self, qid: str, reviews: CurrentReviews | None) -> QuestionView: ...


class _OfFiles:
    """Reads views from a file of labels and the files next to it. For JSON lines of raggs, the views also have texts
    and the order.
    """

    def __init__(self, golden: GoldenSet) -> None:
        found = golden.by_query() if isinstance(golden, FileGolden) else golden.by_query("grades")
        self._queries = {query.qid: query for query in found}
        self._sure = golden.sure
        self.ids = tuple(self._queries)
        self.known = frozenset(self.ids)

    def brief(self, qid: str) -> QuestionBrief:
        """Return a summary of the query."""
        found = self.view(qid, None)
        grades = tuple(grade for grade in found.grades.values() if grade is not None)
        return QuestionBrief(qid, found.text, found.language, found.metadata, len(found.passages), grades, None)

    def view(self, qid: str, reviews: CurrentReviews | None) -> QuestionView:
        """Return the query. Human labels are not included."""
        found: GoldenQuery = self._queries[qid]
        texts = {passage.doc_id: passage for passage in found.pool}
        places = {record.doc_id: record for record in found.order if self._sure}
        passages = (_graded_view(grade, texts.get(grade.doc_id), places.get(grade.doc_id)) for grade in found.grades)
        return replace(_question_view(qid, found.query), passages=tuple(passages))


class _OfRun:
    """Reads views from the artifacts of a run."""

    def __init__(self, golden: RunGolden, depth: int | None) -> None:
        self._run, self._depth = golden.run, depth
        self._unread = (*(() if golden.top else RANKED), *(("retrieve",) if depth == 0 else ()))
        self._questions = ArtifactByQuery(self._run, "queries")
        self._files = dict[str, ArtifactByQuery]()

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The query ids, in the order of the artifact."""
        return self._questions.qids or ArtifactByQuery(self._run, "embed").qids

    @cached_property
    def known(self) -> frozenset[str]:
        """The query ids as a set."""
        return frozenset(self.ids)

    def _of(self, artifact: str, model: type[R], qid: str, depth: int | None = None) -> tuple[R, ...]:
        if artifact in self._unread:
            return ()
        if artifact not in self._files:
            self._files[artifact] = ArtifactByQuery(self._run, artifact)
        return self._files[artifact].of(qid, model, depth)

    def view(self, qid: str, reviews: CurrentReviews | None) -> QuestionView:
        """Return the query with all data in its lines of the artifacts."""
        query = next(iter(self._questions.of(qid, QueryRecord)), None)
        pooled = self._of("merge", MergeRecord, qid)
        passages = tuple(self._passages(qid, pooled))
        if reviews is not None and query is not None:
            passages = tuple(
                replace(view, words=_human_labels(reviews, query, record.passage))
                for view, record in zip(passages, pooled, strict=True)
            )
        found = self._embedded(replace(_question_view(qid, query), passages=passages, course=self._course(qid)))
        return replace(found, systems=tuple(self._systems(qid, pooled, found.grades)))

    def brief(self, qid: str) -> QuestionBrief:
        """Return a summary of the query."""
        query = next(iter(self._questions.of(qid, QueryRecord)), None)
        found, course = self._embedded(_question_view(qid, query)), self._course(qid)
        judged = self._of("judge", JudgeRecord, qid)
        grades = tuple(record.grade for record in judged if record.grade is not None)
        doubt = None if course is None else course.expected_inversions
        # before the judge has reached the query, the size of its pool
        pooled = len(judged) or len(self._of("merge", MergeRecord, qid))
        return QuestionBrief(qid, found.text, found.language, found.metadata, pooled, grades, doubt)

    def _passages(self, qid: str, pooled: Sequence[MergeRecord]) -> Iterator[PassageView]:
        judged = {record.doc_id: record for record in self._of("judge", JudgeRecord, qid)}
        ranked = {record.doc_id: record for record in self._of("rank", RankRecord, qid)}
        pruned = {record.doc_id: record for record in self._of("prune", PruneRecord, qid)}
        for record in pooled:
            doc_id = record.doc_id
            cut = pruned.get(doc_id)
            yield PassageView(
                doc_id=doc_id,
                pooled=record.rank,
                sources=record.sources,
                title=record.title,
                text=record.text,
                span=record.span,
                source=passage_source(record.metadata, record.span),
                judged=judged.get(doc_id),
                place=ranked.get(doc_id),
                cut="" if cut is None or cut.kept else cut.why,
                duplicate_of=record.duplicate_of,
            )

    def _embedded(self, found: QuestionView) -> QuestionView:
        record = next(iter(self._of("embed", EmbedRecord, found.qid)), None)
        if record is None:
            return found
        rewrite = "" if record.rewrite == record.text else record.rewrite
        return replace(found, text=found.text or record.text, rewrite=rewrite, language=record.language)

    def _course(self, qid: str) -> RankingRecord | None:
        return next(iter(self._of("rank.queries", RankingRecord, qid)), None)

    def _systems(
        self, qid: str, pooled: Sequence[MergeRecord], grades: dict[str, int | None]
    ) -> Iterator[ReturnedHits]:
        # a retriever without hits has an empty list
        lists: dict[str, list[HitView]] = {name: [] for name in self._retrievers}
        why: dict[str, tuple[str, ...]] = {}
        for record in self._of("retrieve", RetrieveRecord, qid, self._depth):
            why[record.retriever] = record.escalated
            hit = HitView(record.rank, record.doc_id, record.score, grades.get(record.doc_id))
            lists.setdefault(record.retriever, []).append(hit)
        if len(lists) > 1 and FUSION_NAME not in lists:
            lists[FUSION_NAME] = [
                HitView(each.rank, each.doc_id, each.score, grades[each.doc_id]) for each in pooled[: self._depth]
            ]
        return (
            ReturnedHits(name, tuple(hits), self._found(len(hits)), why.get(name, ())) for name, hits in lists.items()
        )

    @cached_property
    def _retrievers(self) -> tuple[str, ...]:
        """The retrievers whose lists are read."""
        lock = self._run.manifest.stages.get("retrieve")
        if lock is None or "retrieve" in self._unread or not self._run.file("retrieve").is_file():
            return ()
        named = (name.partition(" ") for name in sorted(lock.components))
        return tuple(name for kind, _, name in named if kind == "retriever" and name)

    def _found(self, hits: int) -> int | None:
        """Return the number of hits, or None if there may be more than were read."""
        return hits if self._depth is None or hits < self._depth else None


def _lists(systems: Sequence[NamedSystem], depth: int | None) -> list[SystemLists]:

    return [SystemLists(system, depth) for system in systems]


def _graded_view(grade: JudgeRecord, passage: Passage | None, place: RankRecord | None) -> PassageView:
    """Return the view of a passage from a file, where the rank in the pool is unknown."""
    found = PassageView(grade.doc_id, judged=grade, place=place, duplicate_of=grade.duplicate_of)
    return (
        found
        if passage is None
        else replace(
            found,
            title=passage.title,
            text=passage.text,
            span=passage.span,
            source=passage_source(passage.metadata, passage.span),
        )
    )


def _question_view(qid: str, query: Query | None) -> QuestionView:
    if query is None:
        return QuestionView(qid)
    return QuestionView(qid, query.text, "", query.language or "", query.answer, query.metadata)


def _human_labels(reviews: CurrentReviews, query: Query, passage: Passage) -> tuple[HumanLabel, ...]:
    key = key_of(query, passage)
    decided = [reviews.settling[key]] if key in reviews.settling else []
    said = (*reviews.grades.get(key, {}).values(), *decided)
    return tuple(HumanLabel(word.who, word.grade, word.note, word.settles) for word in said)
