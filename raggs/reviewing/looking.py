"""Look: what runs decided, question by question, to read. Nothing here writes, and it is offered only when asked for.

Whoever grades blind must not see it: a server that offers it notes every word as given with a machine's before the
eyes. Lists are made once for a run, at the first visit; a question is read when it is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from raggs.base.errors import NotFoundError
from raggs.base.frozen import Frozen
from raggs.golden.questions import Questions
from raggs.golden.runs import RunGolden
from raggs.golden.sheets import kind_of, sheet_of, slim
from raggs.parts.reviews.store import ReviewStore
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
