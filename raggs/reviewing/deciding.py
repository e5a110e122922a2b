"""Adjudication of differing grades, display of model grades after labelling, and browsing of runs.

Adjudication: grades of others and of models are shown one passage at a time. Passages that the same annotator may still
have to label are not shown; they are only counted. The display is recorded first, so that later labels of the passage
do not count as blind.

Disputes are items on which annotators, or annotators and a model, differ. They are ordered by importance: by the effect
on comparisons of systems, or by the difference of the grades.

`RunBrowser` shows the results of runs, read-only and only if enabled. Blind annotators must not see them: a server that
offers it stores every label as not blind. Lists are built at the first visit; a query is read when it is opened.

`ModelLabelReveal` shows a model's grade to an annotator who has labelled the passage, if the server allows it. The
first label stays as the blind one. A change is a separate line that replaces it and is marked as not blind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Lock, RLock
from typing import Annotated, Literal

from pydantic import PlainSerializer

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, Frozen
from raggs.base.errors import NotFoundError, UsageError
from raggs.base.text import clean_unicode
from raggs.golden.questions import GoldenQuestions
from raggs.golden.runs import RunGolden
from raggs.golden.views import QuestionBrief, kind_of, sheet_json, sheet_of
from raggs.parts.reviews import GradeReview, Key, ReviewStore
from raggs.reviewing.pool import ItemLabel, ItemView, ModelJudges, ReviewPool, terms_of, view_of
from raggs.reviewing.session import Session
from raggs.runs.manifests.open_run import OpenedRun

Kind = Literal["people", "model"]


@dataclass(frozen=True, slots=True)
class Dispute:
    """An item with differing grades that is not adjudicated.

    Attributes:
        kind: whether annotators differ, or annotators who agree and a model.
        grades: all grades, human ones first.
    """

    number: int
    key: Key
    kind: Kind
    grades: tuple[int, ...]

    @property
    def apart(self) -> int:
        """Difference between the highest and the lowest grade."""
        return max(self.grades) - min(self.grades)


class DecisiveVerdict(Frozen):
    """The comparison on which adjudicating an item has the largest effect.

    Attributes:
        one, other, measure: two systems and the metric.
        apart: current difference.
        moves: maximum change of the difference by one of the given grades.
    """

    one: str
    other: str
    measure: str
    apart: float
    moves: float


@dataclass(frozen=True)
class DisputeWeights:
    """Importance of disputes.

    Attributes:
        told: sentence on how importance is measured, or why verdicts are not used.
        impact: whether importance is the effect on comparisons.
        worth: importance by item, at least 0.
        why: comparison with the largest effect, by item.
    """

    told: str
    impact: bool = False
    worth: Mapping[Key, float] = field(default_factory=dict)
    why: Mapping[Key, DecisiveVerdict] = field(default_factory=dict)


Weigh = Callable[[tuple[Dispute, ...]], DisputeWeights]


def disputes(pool: ReviewPool, undecided: Mapping[int, Sequence[int]], machine: ModelJudges) -> Iterator[Dispute]:
    """Yield every item with differing grades, among the items that are not adjudicated."""
    judged = machine.all_grades()
    for number, people in undecided.items():
        grades = (*people, *(grade for row in judged if (grade := row[number])))
        if len({*grades}) > 1:
            kind: Kind = "people" if len({*people}) > 1 else "model"
            yield Dispute(number, pool.items[number].key, kind, grades)


def by_size(_: tuple[Dispute, ...]) -> DisputeWeights:
    """Weigh disputes only by the difference of their grades."""
    return DisputeWeights("without a comparison of systems")


WEIGHING_WAIT_SECONDS = 0.3  # small runs are weighed within this time


class WeighedDisputes:
    """Disputes with their importance, which is computed again only for new disputes.

    Adjudicating one dispute hardly changes the importance of others. Weighing 100,000 passages takes half a minute.
    Therefore it runs in a thread, and the previous importance applies until it has finished.
    """

    def __init__(self, weigh: Weigh) -> None:
        self._weigh, self._known = weigh, frozenset[Key]()
        self._thread = ThreadPoolExecutor(1, "weigh")
        self._running: Future[DisputeWeights] | None = None
        self.weights = DisputeWeights("")

    @property
    def running(self) -> bool:
        """Whether the importance is being computed."""
        return self._running is not None

    def weighed(self, found: Iterable[Dispute]) -> tuple[Dispute, ...]:
        """Return all disputes, unordered; importance is updated if necessary."""
        all_of = tuple(found)
        keys = frozenset(each.key for each in all_of)
        if self._running is None and (not keys <= self._known or not self.weights.told):
            self._known, self._running = keys, self._thread.submit(self._weigh, all_of)
        running = self._running
        if running is not None and wait([running], WEIGHING_WAIT_SECONDS).done:
            self._running = None
            self.weights = running.result()
        return all_of

    def place(self, each: Dispute) -> tuple[float, int, int]:
        """Return the sort key of a dispute: by importance, then by difference of grades."""
        return -self.weights.worth.get(each.key, 0.0), -each.apart, each.number


DisputeFilter = Literal["all", "people", "model"]


class Difference(Frozen):
    """An item with differing grades. `why` is the effect of adjudication on a comparison."""

    kind: Kind
    view: ItemView
    words: tuple[ItemLabel, ...]
    why: DecisiveVerdict | None


class Differences(Frozen):
    """The state of adjudication.

    Attributes:
        line: line that was just stored.
        people, model: number of disputes of each kind that the annotator can adjudicate.
        waiting: number of disputes that the annotator may still have to label.
        weighing: whether the effect on comparisons is being computed; the order may change when it is known.
        impact: whether disputes are ordered by the effect on comparisons; otherwise by the difference of grades.
        told: sentence on how importance is measured.
        first: most important of the requested disputes.
        reason: reason of the decision on `first` that was just withdrawn.
    """

    line: str | None
    people: int
    model: int
    waiting: int
    weighing: bool
    impact: bool
    told: str
    first: Difference | None
    reason: str = ""


class Adjudication:
    """Disputes and their adjudication."""

    def __init__(self, session: Session, machine: ModelJudges, weigh: Weigh = by_size) -> None:
        self._session, self._machine = session, machine
        self._pool, self._store = session.pool, session.store
        self._weighed, self._lock = WeighedDisputes(weigh), RLock()

    def upcoming(
        self,
        who: str,
        wanted: DisputeFilter = "all",
        later: Collection[str] = (),
        *,
        line: str | None = None,
        first: Key | None = None,
        reason: str = "",
    ) -> Differences:
        """Return the next dispute for an annotator.

        Args:
            wanted: kind of dispute.
            later: items that come last.
            line: line that was just stored.
            first: item that comes before all others.
            reason: reason of its decision, which was just withdrawn.

        Raises:
            DataError: a file of a run has changed.
            ProviderError: the record of the display cannot be written.
        """
        with self._lock:
            found = self._weighed.weighed(disputes(self._pool, self._session.undecided(), self._machine))
            closed = self._session.closed_to(who, [each.number for each in found])
            open_ = [each for each, shut in zip(found, closed, strict=True) if shut]
            asked = [each for each in open_ if wanted in ("all", each.kind)]
            put_off = {*later}
            place = self._weighed.place
            next_ = min(
                asked, key=lambda each: (each.key != first, "".join(each.key) in put_off, place(each)), default=None
            )
            return Differences(
                line=line,
                people=sum(each.kind == "people" for each in open_),
                model=sum(each.kind == "model" for each in open_),
                waiting=len(found) - len(open_),
                weighing=self._weighed.running,
                impact=self._weighed.weights.impact,
                told=self._weighed.weights.told,
                first=None if next_ is None else self._shown(who, next_),
                reason=reason if next_ is not None and next_.key == first else "",
            )

    def settle(self, who: str, item: str, grade: int | None, note: str) -> str:
        """Store an adjudicated grade and return its line id. A repeated request is stored once.

        Raises:
            UsageError: the grade is invalid, the item is already adjudicated, or its grades were not shown to the
                annotator.
            NotFoundError: the item does not exist.
            ProviderError: the file cannot be written; nothing is stored.
        """
        if grade is None or not MIN_GRADE <= grade <= MAX_GRADE:
            raise UsageError(f"an adjudicated grade must be in {MIN_GRADE}..{MAX_GRADE}")
        with self._lock:
            number = self._session.number(item)
            asked, before, note = self._pool.items[number], self._session.decision(number), clean_unicode(note)
            if before is not None and (before.who, before.grade, before.note) == (who, grade, note):
                return before.line
            if before is not None:
                raise UsageError(f"already adjudicated by {before.who}: {before.grade}")
            if not self._session.shown.knows(who, asked.key):
                raise UsageError("the other grades were not shown; reload the page")
            review = GradeReview(
                who=who,
                at=datetime.now(UTC),
                qid=asked.qid,
                query=asked.key[0],
                doc_id=asked.doc_id,
                passage=asked.key[1],
                grade=grade,
                note=note,
                prompt=self._session.settings.prompt,
                blind=False,
                settles=True,
            )
            self._store.append(review)
            return review.id

    def reopen(self, who: str, line: str | None = None) -> tuple[Key, str]:
        """Withdraw an adjudication of the annotator, the latest or the given line, and return its item and reason.

        Raises:
            UsageError: there is no such adjudication by this annotator.
        """
        with self._lock:
            found = next((made for made in self._session.decided_by(who) if line in (None, made.line)), None)
            if found is None:
                raise UsageError("there is no decision to undo")
            self._store.append(self._session.withdrawal(who, found.item, found.line))
            return self._pool.items[found.item].key, found.note

    def _shown(self, who: str, dispute: Dispute) -> Difference:
        self._session.show(who, dispute.number)
        words = self._session.words_on(dispute.number)
        said = [ItemLabel(who=name, grade=word.grade, note=word.note) for name, word in words.items()]
        return Difference(
            kind=dispute.kind,
            view=view_of(self._pool, dispute.number),
            words=(*said, *self._machine.voices(dispute.number)),
            why=self._weighed.weights.why.get(dispute.key),
        )


def _line(brief: QuestionBrief) -> dict[str, object]:
    return {
        "id": brief.qid,
        "text": brief.text,
        "language": brief.language,
        "kind": kind_of(brief.metadata),
        "pool": brief.pooled,
        "graded": brief.graded,
        "relevant": brief.relevant,
        "doubt": None if brief.doubt is None else round(brief.doubt, 2),
    }


class RunQuestionList(Frozen):
    """The queries of a run, and the names of all runs."""

    runs: tuple[str, ...]
    run: int
    questions: tuple[Annotated[QuestionBrief, PlainSerializer(_line)], ...]


class RunBrowser:
    """Read-only access to the results of runs.

    Args:
        runs: runs with grades.
        store: human labels, which are shown next to the judge's.
    """

    def __init__(self, runs: Sequence[OpenedRun], store: ReviewStore) -> None:
        self._runs, self._store, self._lock = runs, store, Lock()
        self._lists = dict[int, RunQuestionList]()
        self._opened = dict[int, GoldenQuestions]()

    def questions(self, run: int) -> RunQuestionList:
        """Return the queries of a run, by its number.

        Raises:
            NotFoundError: the run does not exist.
            DataError: a line is invalid.
        """
        with self._lock:
            if run not in self._lists:
                names = tuple(each.manifest.name for each in self._runs)
                self._lists[run] = RunQuestionList(runs=names, run=run, questions=tuple(self._of(run).briefs()))
            return self._lists[run]

    def sheet(self, run: int, qid: str) -> bytes:
        """Return a query as JSON of a `QuestionSheet`.

        Raises:
            NotFoundError: the run or the query does not exist.
            DataError: a line is invalid.
        """
        with self._lock:
            questions = self._of(run)
            sheet = sheet_of(questions.view(qid, self._store.held()), questions.top)
        return sheet_json(replace(sheet, terms=terms_of(sheet.text)))

    def _of(self, run: int) -> GoldenQuestions:
        if not 0 <= run < len(self._runs):
            raise NotFoundError(f"run {run + 1} does not exist")
        if run not in self._opened:
            self._opened[run] = GoldenQuestions(RunGolden(self._runs[run]))
        return self._opened[run]


class RevealedItem(Frozen):
    """An item with the annotator's latest label and the models' grades. `line` is the id of the label."""

    view: ItemView
    line: str
    own: ItemLabel
    words: tuple[ItemLabel, ...]


class ModelLabelReveal:
    """Display of the models' grades after labelling.

    Args:
        allowed: whether the server allows it.
    """

    def __init__(self, session: Session, machine: ModelJudges, allowed: bool) -> None:
        self._session, self._machine, self._allowed = session, machine, allowed

    def reveal(self, who: str, item: str | None) -> RevealedItem:
        """Return the models' grades of an item; default: the item that the annotator labelled last.

        Raises:
            UsageError: it is not allowed, or the annotator has not labelled the item.
            NotFoundError: the item does not exist.
            DataError: a file of a run has changed.
            ProviderError: the record of the display cannot be written.
        """
        number, own = self._own(who, item)
        self._session.show(who, number)
        return RevealedItem(
            view=view_of(self._session.pool, number),
            line=own.id,
            own=ItemLabel(who=who, grade=own.grade, note=own.note),
            words=self._machine.voices(number),
        )

    def change(self, who: str, item: str, grade: int | None, note: str) -> RevealedItem:
        """Store another grade after the model's was shown; None means "cannot tell". An unchanged label is not stored.

        Raises:
            UsageError: the grade is invalid, or the model's was not shown.
            NotFoundError, DataError, ProviderError: see `reveal`.
        """
        if grade is not None and not MIN_GRADE <= grade <= MAX_GRADE:
            raise UsageError(f"grade {grade} is outside {MIN_GRADE}..{MAX_GRADE}")
        number, own = self._own(who, item)
        asked, note = self._session.pool.items[number], clean_unicode(note)
        if not self._session.shown.knows(who, asked.key):
            raise UsageError("the model's grade was not shown; reload the page")
        if (own.grade, own.note) != (grade, note or own.note):
            changed = own.model_copy(
                update={
                    "at": datetime.now(UTC),
                    "grade": grade,
                    "note": note or own.note,
                    "seconds": None,
                    "blind": False,
                    "replaces": own.id,
                }
            )
            self._session.store.append(changed)
        return self.reveal(who, item)

    def _own(self, who: str, item: str | None) -> tuple[int, GradeReview]:
        if not self._allowed:
            raise UsageError("model grades are hidden on this server", remedy="raggs review serve RUN --reveal")
        number = self._session.latest(who) if item is None else self._session.number(item)
        own = None if number is None else self._session.word(who, number)
        if number is None or own is None:
            raise UsageError("grade the passage first; the model's grade is shown afterwards")
        return number, own
