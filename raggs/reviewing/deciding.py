"""Where grades differ, side by side, and what was decided: for whoever settles it, after everybody has spoken.

Others' words and a model's are shown one passage at a time, and never of one that the same person may still be asked to
grade: such passages wait, and are counted. What is shown is noted first, so that no later grade of it passes for blind.

Where those who graded a passage differ: two people, or people and a model; most important first.

What is important is told by whoever weighs them: what a decision would do to the verdicts on systems, or else how far
the grades are apart.

Look: what runs decided, question by question, to read. Nothing here writes, and it is offered only when asked for.

Whoever grades blind must not see it: a server that offers it notes every word as given with a machine's before the
eyes. Lists are made once for a run, at the first visit; a question is read when it is opened.

What the model said of a passage, for somebody who has graded it: only then, and only where whoever serves allows it.

The grade from before stays as the blind one. A change afterwards is a line of its own, which takes its place and is
marked as not blind. What is shown is noted first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from raggs.reviewing.pool import ItemLabel, ItemView, ModelJudges, ReviewPool, view_of
from raggs.reviewing.session import Session
from raggs.runs.manifests.open_run import OpenedRun

Kind = Literal["people", "model"]


@dataclass(frozen=True, slots=True)
class Dispute:
    """An item on which grades differ, and nobody has decided.

    Attributes:
        kind: whether people differ, or people of one mind and a model.
        grades: of everybody, people first, then models.
    """

    number: int
    key: Key
    kind: Kind
    grades: tuple[int, ...]

    @property
    def apart(self) -> int:
        """Grades between the lowest and the highest."""
        return max(self.grades) - min(self.grades)


class DecisiveVerdict(Frozen):
    """The verdict for which deciding an item does most.

    Attributes:
        one, other, measure: two systems, and by what they are compared.
        apart: how far they are, as labels stand.
        moves: how far a grade that somebody gave moves that, at most.
    """

    one: str
    other: str
    measure: str
    apart: float
    moves: float


@dataclass(frozen=True)
class DisputeWeights:
    """What deciding is worth.

    Attributes:
        told: by what, or why not by what it would do to verdicts; a sentence.
        impact: whether it is by that.
        worth: by item, 0 and up.
        why: by item, the verdict that it is about.
    """

    told: str
    impact: bool = False
    worth: Mapping[Key, float] = field(default_factory=dict)
    why: Mapping[Key, DecisiveVerdict] = field(default_factory=dict)


Weigh = Callable[[tuple[Dispute, ...]], DisputeWeights]


def disputes(pool: ReviewPool, undecided: Mapping[int, Sequence[int]], machine: ModelJudges) -> Iterator[Dispute]:
    """Every item on which somebody differs, among those on which nobody has decided, with people's grades."""
    judged = machine.all_grades()
    for number, people in undecided.items():
        grades = (*people, *(grade for row in judged if (grade := row[number])))
        if len({*grades}) > 1:
            kind: Kind = "people" if len({*people}) > 1 else "model"
            yield Dispute(number, pool.items[number].key, kind, grades)


def by_size(_: tuple[Dispute, ...]) -> DisputeWeights:
    """Weigh by how far the grades are apart alone."""
    return DisputeWeights("no systems are compared")


class WeighedDisputes:
    """Disputes by their worth; weighed again only when there are others than before.

    Deciding one leaves the others' worth nearly as it was, and weighing a large run takes seconds.
    """

    def __init__(self, weigh: Weigh) -> None:
        self._weigh, self._known = weigh, frozenset[Key]()
        self.weights = DisputeWeights("")

    def weighed(self, found: Iterable[Dispute]) -> tuple[Dispute, ...]:
        """All of them, weighed where that is needed; in no order."""
        all_of = tuple(found)
        keys = frozenset(each.key for each in all_of)
        if not keys <= self._known or not self.weights.told:
            self._known, self.weights = keys, self._weigh(all_of)
        return all_of

    def place(self, each: Dispute) -> tuple[float, int, int]:
        """Where one stands among the others, smaller first: by its worth, then the farthest apart."""
        return -self.weights.worth.get(each.key, 0.0), -each.apart, each.number


DisputeFilter = Literal["all", "people", "model"]


class Difference(Frozen):
    """An item on which people, or people and a model, differ. `why`: what deciding would do to verdicts."""

    kind: Kind
    view: ItemView
    words: tuple[ItemLabel, ...]
    why: DecisiveVerdict | None


class Differences(Frozen):
    """What is to be decided.

    Attributes:
        line: that was just noted.
        people, model: how many of each kind, besides those that wait.
        waiting: how many the reviewer may still be asked to grade.
        impact: whether they stand by what deciding would do to verdicts; else by how far the grades are apart.
        told: by which verdicts, or why not.
        first: the most important of those asked for.
    """

    line: str | None
    people: int
    model: int
    waiting: int
    impact: bool
    told: str
    first: Difference | None


class Adjudication:
    """Differences, and decisions."""

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
    ) -> Differences:
        """What a reviewer is to decide next.

        Args:
            wanted: the kind of difference.
            later: items that come last.
            line: that was just noted.
            first: an item that comes before all others.

        Raises:
            DataError: a run's file is not what it was.
            ProviderError: the disk refuses to note what is shown.
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
                impact=self._weighed.weights.impact,
                told=self._weighed.weights.told,
                first=None if next_ is None else self._shown(who, next_),
            )

    def settle(self, who: str, item: str, grade: int | None, note: str) -> str:
        """Decide on an item; the line. A decision that is sent twice is noted once.

        Raises:
            UsageError: the grade is none, somebody else has decided meanwhile, or the reviewer is still to grade it.
            NotFoundError: there is no such item.
            ProviderError: the disk refuses; nothing is noted.
        """
        if grade is None or not MIN_GRADE <= grade <= MAX_GRADE:
            raise UsageError(f"a decision is a grade in {MIN_GRADE}..{MAX_GRADE}")
        with self._lock:
            number = self._session.number(item)
            asked, before, note = self._pool.items[number], self._session.decision(number), clean_unicode(note)
            if before is not None and (before.who, before.grade, before.note) == (who, grade, note):
                return before.line
            if before is not None:
                raise UsageError(f"{before.who} has decided meanwhile: {before.grade}")
            if not self._session.shown.knows(who, asked.key):
                raise UsageError("what others said of it was not shown; load the page again")
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

    def reopen(self, who: str, line: str | None = None) -> Key:
        """Take one's own decision back, the latest or one by its line; what it was on.

        Raises:
            UsageError: it does not hold, or is another's.
        """
        with self._lock:
            found = next((made for made in self._session.decided_by(who) if line in (None, made.line)), None)
            if found is None:
                raise UsageError("there is nothing to take back")
            self._store.append(self._session.withdrawal(who, found.item, found.line))
            return self._pool.items[found.item].key

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
    """The questions of a run, and what all the runs are called."""

    runs: tuple[str, ...]
    run: int
    questions: tuple[Annotated[QuestionBrief, PlainSerializer(_line)], ...]


class RunBrowser:
    """Runs to look at.

    Args:
        runs: those that are graded.
        store: of people's words, which stand beside the judge's.
    """

    def __init__(self, runs: Sequence[OpenedRun], store: ReviewStore) -> None:
        self._runs, self._store, self._lock = runs, store, Lock()
        self._lists = dict[int, RunQuestionList]()
        self._opened = dict[int, GoldenQuestions]()

    def questions(self, run: int) -> RunQuestionList:
        """The questions of a run, by its number.

        Raises:
            NotFoundError: there is no such run.
            DataError: a line of it cannot be right.
        """
        with self._lock:
            if run not in self._lists:
                names = tuple(each.manifest.name for each in self._runs)
                self._lists[run] = RunQuestionList(runs=names, run=run, questions=tuple(self._of(run).briefs()))
            return self._lists[run]

    def sheet(self, run: int, qid: str) -> bytes:
        """A question, as JSON of a `QuestionSheet`.

        Raises:
            NotFoundError: there is no such run or question.
            DataError: a line cannot be right.
        """
        with self._lock:
            questions = self._of(run)
            sheet = sheet_of(questions.view(qid, self._store.held()), questions.top)
        return sheet_json(sheet)

    def _of(self, run: int) -> GoldenQuestions:
        if not 0 <= run < len(self._runs):
            raise NotFoundError(f"there is no run {run + 1} here")
        if run not in self._opened:
            self._opened[run] = GoldenQuestions(RunGolden(self._runs[run]))
        return self._opened[run]


class RevealedItem(Frozen):
    """An item with what its reviewer said last, and what the models said. `line`: of the reviewer's word."""

    view: ItemView
    line: str
    own: ItemLabel
    words: tuple[ItemLabel, ...]


class ModelLabelReveal:
    """The models' words, after one's own.

    Args:
        allowed: whether anybody may see them.
    """

    def __init__(self, session: Session, machine: ModelJudges, allowed: bool) -> None:
        self._session, self._machine, self._allowed = session, machine, allowed

    def reveal(self, who: str, item: str | None) -> RevealedItem:
        """What the models said of an item; of the one that the reviewer graded last where it is left out.

        Raises:
            UsageError: nobody may see it, or the reviewer has not graded it.
            NotFoundError: there is no such item.
            DataError: a run's file is not what it was.
            ProviderError: the disk refuses to note that it is shown.
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
        """Give another grade after the model's was seen; None: cannot tell. What says the same is not noted.

        Raises:
            UsageError: the grade is none, or the model's was not seen.
            NotFoundError, DataError, ProviderError: as `reveal`.
        """
        if grade is not None and not MIN_GRADE <= grade <= MAX_GRADE:
            raise UsageError(f"grade {grade} is outside {MIN_GRADE}..{MAX_GRADE}")
        number, own = self._own(who, item)
        asked, note = self._session.pool.items[number], clean_unicode(note)
        if not self._session.shown.knows(who, asked.key):
            raise UsageError("the model's word on it was not shown; load the page again")
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
            raise UsageError("nobody sees the model's words here", remedy="raggs review serve RUN --reveal")
        number = self._session.latest(who) if item is None else self._session.number(item)
        own = None if number is None else self._session.word(who, number)
        if number is None or own is None:
            raise UsageError("the model's word is shown after one's own; grade it first")
        return number, own
