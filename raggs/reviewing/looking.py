"""Look: what runs decided, question by question, to read. Nothing here writes, and it is offered only when asked for.

Whoever grades blind must not see it: a server that offers it notes every word as given with a machine's before the
eyes. Lists are made once for a run, at the first visit; a question is read when it is opened.

What the model said of a passage, for somebody who has graded it: only then, and only where whoever serves allows it.

The grade from before stays as the blind one. A change afterwards is a line of its own, which takes its place and is
marked as not blind. What is shown is noted first.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from threading import Lock

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, Frozen
from raggs.base.errors import NotFoundError, UsageError
from raggs.base.text import clean_unicode
from raggs.golden.questions import Questions
from raggs.golden.runs import RunGolden
from raggs.golden.views import kind_of, sheet_of, slim
from raggs.parts.reviews.store import GradeReview, ReviewStore
from raggs.reviewing.machine import ItemView, Machine, Voice, view_of
from raggs.reviewing.session import Session
from raggs.runs.manifests.opened import OpenedRun


class LookLine(Frozen):
    """A question in the list.

    Attributes:
        id, text, language, kind: of the question.
        pool, graded, relevant: passages of its pool, those with a grade, and those with grade 4 or 5.
        doubt: wrongly ordered pairs expected in the top; null where nothing is ranked.
    """

    id: str
    text: str
    language: str
    kind: str
    pool: int
    graded: int
    relevant: int
    doubt: float | None


class LookList(Frozen):
    """The questions of a run, and what all the runs are called."""

    runs: tuple[str, ...]
    run: int
    questions: tuple[LookLine, ...]


class Looking:
    """Runs to look at.

    Args:
        runs: those that are graded.
        store: of people's words, which stand beside the judge's.
    """

    def __init__(self, runs: Sequence[OpenedRun], store: ReviewStore) -> None:
        self._runs, self._store, self._lock = runs, store, Lock()
        self._lists = dict[int, LookList]()
        self._opened = dict[int, Questions]()

    def questions(self, run: int) -> LookList:
        """The questions of a run, by its number.

        Raises:
            NotFoundError: there is no such run.
            DataError: a line of it cannot be right.
        """
        with self._lock:
            if run not in self._lists:
                names = tuple(each.manifest.name for each in self._runs)
                self._lists[run] = LookList(runs=names, run=run, questions=tuple(_lines(self._of(run))))
            return self._lists[run]

    def sheet(self, run: int, qid: str) -> bytes:
        """A question, as JSON of a `Sheet`.

        Raises:
            NotFoundError: there is no such run or question.
            DataError: a line cannot be right.
        """
        with self._lock:
            questions = self._of(run)
            sheet = sheet_of(questions.view(qid, self._store.held()), questions.top)
        return slim(sheet)

    def _of(self, run: int) -> Questions:
        if not 0 <= run < len(self._runs):
            raise NotFoundError(f"there is no run {run + 1} here")
        if run not in self._opened:
            self._opened[run] = Questions(RunGolden(self._runs[run]))
        return self._opened[run]


def _lines(questions: Questions) -> list[LookLine]:
    return [
        LookLine(
            id=brief.qid,
            text=brief.text,
            language=brief.language,
            kind=kind_of(brief.metadata),
            pool=brief.pooled,
            graded=len(brief.grades),
            relevant=brief.relevant,
            doubt=None if brief.doubt is None else round(brief.doubt, 2),
        )
        for brief in questions.briefs()
    ]


class Revealed(Frozen):
    """An item with what its reviewer said last, and what the models said. `line`: of the reviewer's word."""

    view: ItemView
    line: str
    own: Voice
    words: tuple[Voice, ...]


class Revealing:
    """The models' words, after one's own.

    Args:
        allowed: whether anybody may see them.
    """

    def __init__(self, session: Session, machine: Machine, allowed: bool) -> None:
        self._session, self._machine, self._allowed = session, machine, allowed

    def reveal(self, who: str, item: str | None) -> Revealed:
        """What the models said of an item; of the one that the reviewer graded last where it is left out.

        Raises:
            UsageError: nobody may see it, or the reviewer has not graded it.
            NotFoundError: there is no such item.
            DataError: a run's file is not what it was.
            ProviderError: the disk refuses to note that it is shown.
        """
        number, own = self._own(who, item)
        self._session.show(who, number)
        return Revealed(
            view=view_of(self._session.pool, number),
            line=own.id,
            own=Voice(who=who, grade=own.grade, note=own.note),
            words=self._machine.voices(number),
        )

    def change(self, who: str, item: str, grade: int | None, note: str) -> Revealed:
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
