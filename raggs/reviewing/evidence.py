"""Human evidence sets: which combinations of passages suffice for an answer to a query.

An annotator sees the sets that are stored with a query, and its passages with the best grades. The annotator accepts,
rejects, edits and adds sets, or states that no set suffices. Grades are visible, so the display of each passage is
recorded first, and later labels of the passage do not count as blind. If an annotator may still have to grade some of
them, the page shows nothing before the annotator agrees.

Queries that no annotator has decided come first, of these the ones with stored sets. If annotators give different sets
for a query, any annotator can adjudicate. Several runs may contain a query; its passages are those of the first one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from threading import RLock
from typing import Literal

from pydantic import ValidationError

from raggs.base.artifacts import Frozen, Groups, JudgeRecord, Passage, QueryRecord
from raggs.base.errors import NotFoundError, UsageError
from raggs.base.hashing import generator
from raggs.base.jsonl import first_fault
from raggs.base.text import clean_passage, clean_unicode, join_wrapped_lines
from raggs.golden.questions import GoldenQuestions
from raggs.golden.runs import RunGolden
from raggs.golden.views import PassageView
from raggs.parts.reviews import (
    CurrentReviews,
    EvidenceReview,
    ShownRecord,
    Withdrawal,
    passage_digest,
    question_digest,
)
from raggs.reviewing.ordering import UngradedReviews
from raggs.reviewing.pool import terms_of
from raggs.reviewing.session import Session
from raggs.runs.manifests.open_run import OpenedRun

MIN_QUERY_GRADE = 4  # a query without stored sets needs a passage of this grade
MIN_PASSAGE_GRADE, MAX_CANDIDATES = 3, 12  # passages to choose from, in addition to those of sets

EvidenceFilter = Literal["open", "differ"]


class EvidencePassage(Frozen):
    """A passage to choose; the text is empty if the passage is not in the pool of the query."""

    doc_id: str
    title: str
    text: str
    source: str
    grade: int | None


class AnnotatorSets(Frozen):
    """The sets that an annotator gave."""

    who: str
    sets: Groups
    note: str


class EvidenceView(Frozen):
    """A query as annotators see it. `given` contains the differing sets of annotators if the query is disputed."""

    query: str
    qid: str
    question: str
    terms: tuple[str, ...]
    passages: tuple[EvidencePassage, ...]
    proposed: Groups
    given: tuple[AnnotatorSets, ...]


class EvidenceTask(Frozen):
    """The next query.

    Attributes:
        line: line that was just stored.
        done, left: numbers of queries that the annotator has decided or that are adjudicated, and of the others.
        differ: number of queries with differing sets of annotators.
        unblinds: number of passages that the annotator may still have to grade without seeing other grades. If it is
            not 0, the query is not shown.
        first: the query; None if there is none, or if it is not shown.
        withdrawn: the annotator's sets for the query that were just withdrawn.
    """

    line: str | None
    done: int
    left: int
    differ: int
    unblinds: int
    first: EvidenceView | None
    withdrawn: AnnotatorSets | None = None


@dataclass(frozen=True)
class EvidenceQuery:
    """A query of a run, with its stored sets."""

    run: int
    record: QueryRecord
    digest: str


class EvidenceSession:
    """Queries of runs, and the sets that annotators give for them."""

    def __init__(self, runs: Sequence[OpenedRun], session: Session) -> None:
        self._runs, self._session, self._lock = runs, session, RLock()
        self._held = UngradedReviews(session.store)
        self._opened = dict[int, GoldenQuestions]()
        self._known = dict[str, Mapping[str, str]]()  # digests of passages by query and passage id

    @cached_property
    def _queries(self) -> Mapping[str, EvidenceQuery]:
        """The queries with stored sets or a good passage, by digest; read at the first visit."""
        found = dict[str, EvidenceQuery]()
        for number, run in enumerate(self._runs):
            judged = run.typed("judge", JudgeRecord) if run.file("judge").is_file() else iter(())
            good = {record.qid for record in judged if (record.grade or 0) >= MIN_QUERY_GRADE}
            for record in run.typed("queries", QueryRecord):
                if record.evidence or record.qid in good:
                    digest = question_digest(record)
                    found.setdefault(digest, EvidenceQuery(number, record, digest))
        return found

    def upcoming(
        self,
        who: str,
        wanted: EvidenceFilter = "open",
        later: Collection[str] = (),
        *,
        seen: bool = False,
        line: str | None = None,
        withdrawn: EvidenceReview | None = None,
    ) -> EvidenceTask:
        """Return the next query for an annotator.

        Args:
            wanted: queries that the annotator has not decided, or queries with differing sets.
            later: digests of queries that come last.
            seen: whether the annotator agrees to see grades of passages that are not yet graded blind.
            line: line that was just stored.
            withdrawn: sets that were just withdrawn; their query comes before all others.

        Raises:
            DataError: a file of a run has changed.
            ProviderError: the record of the display cannot be written.
        """
        with self._lock:
            held = self._held.read()
            differ = [digest for digest in self._queries if self._is_disputed(held, digest)]
            left = [digest for digest in self._queries if not self._is_decided(held, who, digest)]
            order = generator(self._session.settings.seed, "review", "evidence", who).permutation(len(self._queries))
            place = dict(zip(self._queries, order.tolist(), strict=True))
            first = withdrawn and withdrawn.query

            def rank(digest: str) -> tuple[bool, bool, bool, bool, int]:
                stored = bool(self._queries[digest].record.evidence)
                return digest != first, digest in later, digest in held.evidence, not stored, place[digest]

            chosen = min(left if wanted == "open" else differ, key=rank, default=None)
            view = None if chosen is None else self._view(self._queries[chosen], held, disputed=wanted == "differ")
            unblinds = 0 if view is None or seen else self._unblinds(who, view)
            if view is not None and not unblinds:
                self._record_display(who, view)
            again = withdrawn if view is not None and view.query == first else None
            return EvidenceTask(
                line=line,
                done=len(self._queries) - len(left),
                left=len(left),
                differ=len(differ),
                unblinds=unblinds,
                first=None if unblinds else view,
                withdrawn=again and AnnotatorSets(who=who, sets=again.sets, note=again.note),
            )

    def note(
        self,
        who: str,
        query: str,
        shown: Sequence[str],
        proposed: Groups,
        sets: Groups,
        note: str,
        seconds: float | None,
        *,
        settles: bool = False,
    ) -> str:
        """Store the sets of a query, and return the line id. A repeated request is stored once.

        Args:
            query: digest of the query.
            shown: ids of the passages that were shown.
            proposed: sets that were shown.
            sets: sets that suffice; empty if no set does.
            settles: whether the sets adjudicate differing sets of annotators.

        Raises:
            UsageError: a set is invalid, or the query is already adjudicated by another annotator.
            NotFoundError: the query or a passage does not exist.
            ProviderError: the file cannot be written; nothing is stored.
        """
        with self._lock:
            asked, held = self._find(query), self._held.read()
            known: dict[str, str | None] = {**dict.fromkeys(_members(asked.record.evidence)), **self._digests(query)}
            if unknown := [doc_id for doc_id in (*shown, *_members(sets), *_members(proposed)) if doc_id not in known]:
                raise NotFoundError(f"query {asked.record.qid} has no passage {unknown[0]!r}; reload the page")
            before = held.settling_evidence.get(query) if settles else held.evidence.get(query, {}).get(who)
            try:
                review = EvidenceReview(
                    who=who,
                    at=datetime.now(UTC),
                    qid=asked.record.qid,
                    query=query,
                    shown=tuple(shown),
                    passages=tuple(known[doc_id] for doc_id in shown),
                    proposed=proposed,
                    sets=sets,
                    note=clean_unicode(note),
                    seconds=seconds,
                    blind=False,
                    settles=settles,
                )
            except ValidationError as error:
                raise UsageError(first_fault(error)) from error
            if before is not None and (before.who, before.sets, before.seconds) == (who, review.sets, seconds):
                return before.id
            if settles and before is not None and before.who != who:
                raise UsageError(f"already adjudicated by {before.who}")
            self._session.store.append(review)
            return review.id

    def undo(self, who: str, line: str | None = None) -> EvidenceReview:
        """Return sets of the annotator, the latest or those of the given line, after they are withdrawn.

        Raises:
            UsageError: there is no such line by this annotator.
        """
        with self._lock:
            held = self._held.read()
            given = [*(each[who] for each in held.evidence.values() if who in each), *held.settling_evidence.values()]
            mine = [each for each in given if each.who == who]
            found = held.latest_evidence.get(who) if line is None else next((e for e in mine if e.id == line), None)
            if found is None:
                raise UsageError("there is no decision on evidence to undo")
            self._session.store.append(Withdrawal.of(found))
            return found

    def _find(self, digest: str) -> EvidenceQuery:
        if digest not in self._queries:
            raise NotFoundError("unknown query; reload the page")
        return self._queries[digest]

    def _pool(self, asked: EvidenceQuery) -> tuple[PassageView, ...]:
        if asked.run not in self._opened:
            self._opened[asked.run] = GoldenQuestions(RunGolden(self._runs[asked.run]), depth=0)
        return self._opened[asked.run].view(asked.record.qid).passages

    def _digests(self, query: str) -> Mapping[str, str]:
        """Return the digest of each passage in the pool of a query, by passage id."""
        if query not in self._known:
            pool = self._pool(self._queries[query])
            self._known[query] = {each.doc_id: passage_digest(_passage(each)) for each in pool}
        return self._known[query]

    def _is_decided(self, held: CurrentReviews, who: str, query: str) -> bool:
        given = [held.evidence.get(query, {}).get(who), held.settling_evidence.get(query)]
        return any(each is not None and each.sets_in(self._digests(query)) is not None for each in given)

    def _is_disputed(self, held: CurrentReviews, query: str) -> bool:
        if len(held.evidence.get(query, {})) < 2:
            return False
        found = held.settled_evidence(query, self._digests(query))
        return found is not None and found.sets is None

    def _view(self, asked: EvidenceQuery, held: CurrentReviews, *, disputed: bool) -> EvidenceView:
        digests = self._digests(asked.digest)
        given = held.evidence.get(asked.digest, {}).values() if disputed else ()
        votes = tuple(
            AnnotatorSets(who=each.who, sets=sets, note=each.note)
            for each in given
            if (sets := each.sets_in(digests)) is not None
        )
        named = dict.fromkeys(
            (*_members(asked.record.evidence), *(doc for vote in votes for doc in _members(vote.sets)))
        )
        pooled = sorted(self._pool(asked), key=_quality)
        good = [each.doc_id for each in pooled if (each.grade or 0) >= MIN_PASSAGE_GRADE and not each.repeats]
        wanted = {*named, *good[:MAX_CANDIDATES]}
        passages = [_passage_view(each) for each in pooled if each.doc_id in wanted]
        passages += [
            EvidencePassage(doc_id=each, title="", text="", source="", grade=None)
            for each in named
            if each not in digests
        ]
        question = asked.record.in_context(asked.record.language or "en")
        return EvidenceView(
            query=asked.digest,
            qid=asked.record.qid,
            question=clean_unicode(question),
            terms=terms_of(question),
            passages=tuple(passages),
            proposed=asked.record.evidence,
            given=votes,
        )

    def _keys(self, view: EvidenceView) -> Iterator[tuple[str, str]]:
        digests = self._digests(view.query)
        yield from ((view.query, digest) for each in view.passages if (digest := digests.get(each.doc_id)))

    def _unblinds(self, who: str, view: EvidenceView) -> int:
        """Return the number of passages that the annotator may still have to grade blind."""
        session = self._session
        keys = [key for key in self._keys(view) if not session.shown.knows(who, key)]
        numbers = [session.pool.numbers[key] for key in keys if key in session.pool.numbers]
        return session.closed_to(who, numbers).count(False) if session.settings.blind else 0

    def _record_display(self, who: str, view: EvidenceView) -> None:
        now = datetime.now(UTC)
        self._session.shown.note(
            *(ShownRecord(who=who, at=now, query=query, passage=passage) for query, passage in self._keys(view))
        )


def _members(sets: Groups) -> tuple[str, ...]:
    return tuple(doc_id for members in sets for doc_id in members)


def _passage(view: PassageView) -> Passage:
    return Passage(doc_id=view.doc_id, title=view.title, text=view.text)


def _quality(view: PassageView) -> tuple[int, float, float]:
    """Return the sort key of a passage: by grade, then as ranked, then as fused."""
    ranked = float("inf") if view.place is None else view.place.rank
    return -(view.grade or 0), ranked, float("inf") if view.pooled is None else view.pooled


def _passage_view(view: PassageView) -> EvidencePassage:
    return EvidencePassage(
        doc_id=view.doc_id,
        title=clean_passage(view.title),
        text=join_wrapped_lines(clean_passage(view.text)),
        source=view.span.source if view.span else "",
        grade=view.grade,
    )
