"""What machines said of a pool: their grades in memory, their words on the disk until somebody may see them.

Read when it is first asked for, since grading needs none of it. Grades that people gave in a run are no machine's.

An item as a reviewer sees it: question and passage, cleaned, and nothing of any machine's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from raggs.base.artifacts import Frozen, JudgeRecord, MergeRecord, QueryRecord
from raggs.base.errors import DataError
from raggs.base.jsonl import read_on
from raggs.base.judge_health import PEOPLE, source_of
from raggs.base.languages import FUNCTION_WORDS, fold_accents
from raggs.base.text import clean_passage, clean_unicode
from raggs.parts.reviews.store import passage_digest, question_digest
from raggs.reviewing.pool import CHANGED, Pool
from raggs.runs.manifests.opened import OpenedRun


class Voice(Frozen):
    """What one said of an item; a null grade: cannot tell. `model`: whether it is a machine."""

    who: str
    grade: int | None
    note: str
    model: bool = False


@dataclass(frozen=True)
class _Graded:
    """A run's grades by item, 0 where there is none, and the byte at which each begins in its file."""

    path: Path
    grades: NDArray[np.int8]
    bytes: NDArray[np.int64]


class Machine:
    """The judges of some runs."""

    def __init__(self, runs: Sequence[OpenedRun], pool: Pool) -> None:
        self._runs, self._pool, self._lock = runs, pool, RLock()
        self._graded: list[_Graded] | None = None

    def all_grades(self) -> list[list[int]]:
        """For each run with a judge, the grade of each item; 0 where it has none.

        Raises:
            DataError: a run's file cannot be right.
        """
        return [graded.grades.tolist() for graded in self._rows()]

    def voices(self, number: int) -> tuple[Voice, ...]:
        """What was said of an item, with reasons.

        Raises:
            DataError: a run's file is not what it was.
        """
        return tuple(_voice(graded, number) for graded in self._rows() if graded.grades[number])

    def _rows(self) -> list[_Graded]:
        with self._lock:
            if self._graded is None:
                judged = [place for place, run in enumerate(self._runs) if run.file("judge").is_file()]
                self._graded = [self._read(self._runs[place], self._numbers(place)) for place in judged]
            return self._graded

    def _read(self, run: OpenedRun, numbers: Mapping[tuple[str, str], int]) -> _Graded:
        path, count = run.file("judge"), len(self._pool.items)
        found = _Graded(path, np.zeros(count, np.int8), np.zeros(count, np.int64))
        begin = 0
        for record, end in read_on(path, JudgeRecord, CHANGED):
            number = numbers.get((record.qid, record.doc_id))
            if number is not None and record.grade is not None and source_of(record.judge) != PEOPLE:
                found.grades[number], found.bytes[number] = record.grade, begin
            begin = end
        return found

    def _numbers(self, place: int) -> Mapping[tuple[str, str], int]:
        """The items of a run, by its ids."""
        if len(self._runs) == 1:
            return {(item.qid, item.doc_id): number for number, item in enumerate(self._pool.items)}
        return dict(self._searched(self._runs[place]))

    def _searched(self, run: OpenedRun) -> Iterator[tuple[tuple[str, str], int]]:
        questions = {record.qid: question_digest(record) for record in run.typed("queries", QueryRecord)}
        for record in run.typed("merge", MergeRecord):
            number = self._pool.numbers.get((questions.get(record.qid, ""), passage_digest(record.passage)))
            if number is not None:
                yield (record.qid, record.doc_id), number


def _voice(graded: _Graded, number: int) -> Voice:
    try:
        with graded.path.open("rb") as file:
            file.seek(int(graded.bytes[number]))
            record = JudgeRecord.model_validate_json(file.readline())
    except (OSError, ValidationError) as error:
        raise DataError(CHANGED, where=graded.path) from error
    if record.grade != graded.grades[number]:
        raise DataError(CHANGED, where=graded.path)
    return Voice(who=record.judge, grade=record.grade, note=clean_unicode(record.reason), model=True)


WORD = re.compile(r"[^\W_]+")
COMMON = frozenset(word for words in FUNCTION_WORDS.values() for word in words.split())


class ItemView(Frozen):
    """An item as a reviewer sees it: nothing of any machine's."""

    item: str
    question: str
    title: str
    text: str
    source: str
    around: bool
    terms: tuple[str, ...]


def view_of(pool: Pool, number: int) -> ItemView:
    """An item as the page shows it."""
    item, passage = pool.items[number], pool.passage(number)
    question = pool.questions[item.question]
    return ItemView(
        item="".join(item.key),
        question=clean_unicode(question),
        title=clean_passage(passage.title),
        text=clean_passage(passage.text),
        source=passage.span.source if passage.span else "",
        around=any(pool.around(passage)),
        terms=terms_of(question),
    )


def terms_of(question: str) -> tuple[str, ...]:
    """The words of a question that say what it is about, in lower case and without accents."""
    words = WORD.findall(fold_accents(clean_unicode(question).lower()))
    return tuple(dict.fromkeys(word for word in words if word not in COMMON and (len(word) > 2 or word.isdigit())))
