"""The passages to label: an index of the runs' pools. Texts stay on disk.

An item is a query with a passage, identified by their texts. The same passage in two runs, or under two ids, is
one item. Near-duplicates are represented by one passage.

`ModelJudges` provides the models' grades: grades in memory, reasons on disk until they may be shown. Grades are read at
first use, because labelling does not need them. Human grades in a run are ignored.

`ItemView` is an item as annotators see it: cleaned query and passage, without any output of models.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from raggs.base.artifacts import Frozen, JudgeRecord, MergeRecord, Passage, QueryRecord
from raggs.base.errors import DataError, UsageError
from raggs.base.jsonl import read_on
from raggs.base.judge_health import HUMAN_SOURCE, reason_in_words, source_of
from raggs.base.languages import FUNCTION_WORDS, fold_accents
from raggs.base.text import clean_passage, clean_unicode, join_wrapped_lines
from raggs.parts.reviews import Key, PlanItem, passage_digest, question_digest
from raggs.runs.manifests.open_run import OpenedRun
from raggs.stats.correction import sampling_numbers

CHANGED = "the run has changed; restart the server"


@dataclass(frozen=True, slots=True)
class FilePosition:
    """Position of a pool line: number of the file and byte offset."""

    file: int
    byte: int


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A passage to be graded for a query.

    Attributes:
        key: key of its labels.
        qid: query id in the run.
        doc_id: passage id in the run.
        question: number of the query.
        place: position of its text.
    """

    key: Key
    qid: str
    doc_id: str
    question: int
    place: FilePosition


class ReviewPool:
    """Items by number.

    Attributes:
        items: items in the order of the runs.
        questions: query texts, by number.
        numbers: item numbers by key.
        chances: inclusion probability of randomly drawn items; None for others.
        planned: whether items are labelled in this order.
    """

    def __init__(
        self,
        files: Sequence[Path],
        items: Sequence[ReviewItem],
        questions: Sequence[str],
        sources: dict[str, list[tuple[int, int, FilePosition]]],
        chances: Sequence[float | None] = (),
        planned: bool = False,
    ) -> None:
        self.items, self.questions, self.planned = items, questions, planned
        self.chances = chances or [None] * len(items)
        self.numbers = {item.key: number for number, item in enumerate(items)}
        self._files, self._sources = files, sources

    def sampled(self, count: int, seed: int) -> ReviewPool:
        """Return `count` randomly drawn items with equal known probability; samples with the same seed are nested.

        Raises:
            UsageError: `count` is below 1 or above the number of items.
        """
        total = len(self.items)
        if not 1 <= count <= total:
            raise UsageError(f"cannot draw {count} of {total} passages", remedy="draw fewer: --sample N")
        lot = sampling_numbers(seed, ("".join(item.key) for item in self.items))
        drawn = sorted(np.argsort(lot, kind="stable")[:count].tolist())
        items = [self.items[number] for number in drawn]
        return ReviewPool(self._files, items, self.questions, self._sources, [count / total] * count)

    def planned_by(self, plan: Sequence[PlanItem]) -> ReviewPool:
        """Return the unlabelled items of a plan, in its order and with its probabilities.

        Raises:
            UsageError: none of them is in the pools, or all are labelled.
        """
        left = [item for item in plan if not item.read]
        if plan and not left:
            raise UsageError("all items of the plan are labelled", remedy="create a new plan: raggs review plan RUN")
        here = [(self.numbers[item.key], item.chance) for item in left if item.key in self.numbers]
        if not here:
            raise UsageError(
                "no passage of the plan is in these runs' pools", remedy="create a plan: raggs review plan RUN"
            )
        items = [self.items[number] for number, _ in here]
        return ReviewPool(
            self._files, items, self.questions, self._sources, [chance for _, chance in here], planned=True
        )

    def passage(self, number: int) -> Passage:
        """Return the passage of an item.

        Raises:
            DataError: the file of the run has changed.
        """
        item = self.items[number]
        found = self._read(item.place)
        if passage_digest(found) != item.key[1]:
            raise DataError(CHANGED, where=self._files[item.place.file])
        return found

    def around(self, passage: Passage) -> tuple[Passage | None, Passage | None]:
        """Return the passages before and after a passage in its source, if they are in a pool."""
        if passage.span is None:
            return None, None
        row = self._sources.get(passage.span.source, [])
        first = bisect_left(row, passage.span.start, key=lambda entry: entry[0])
        before = next((entry for entry in reversed(row[:first]) if entry[1] <= passage.span.end), None)
        after = next((entry for entry in row[first:] if entry[0] > passage.span.start), None)
        return (before and self._read(before[2])), (after and self._read(after[2]))

    def _read(self, place: FilePosition) -> Passage:
        path = self._files[place.file]
        try:
            with path.open("rb") as file:
                file.seek(place.byte)
                return MergeRecord.model_validate_json(file.readline()).passage
        except (OSError, ValidationError) as error:
            raise DataError(CHANGED, where=path) from error


class _Building:
    """Collects items and positions, run by run."""

    def __init__(self) -> None:
        self.items = dict[Key, ReviewItem]()
        self.questions = dict[str, int]()  # number by digest
        self.texts = list[str]()
        self.sources = dict[str, dict[int, tuple[int, int, FilePosition]]]()

    def add(self, run: OpenedRun, number: int) -> None:
        digests = {}
        for query in run.typed("queries", QueryRecord):
            digest = digests[query.qid] = question_digest(query)
            if digest not in self.questions:
                self.questions[digest] = len(self.texts)
                self.texts.append(query.in_context(query.language or "en"))
        for byte, record in located(run):
            place = FilePosition(number, byte)
            if record.span is not None:
                row = self.sources.setdefault(record.span.source, {})
                row.setdefault(record.span.start, (record.span.start, record.span.end, place))
            question = digests.get(record.qid)
            if question is not None and record.duplicate_of is None:
                key = question, passage_digest(record.passage)
                self.items.setdefault(key, ReviewItem(key, record.qid, record.doc_id, self.questions[question], place))


def open_pool(runs: Sequence[OpenedRun]) -> ReviewPool:
    """Return the passages of the runs' pools.

    Raises:
        NotFoundError: a run has no pool yet.
        DataError: a line is invalid.
        UsageError: the pools are empty.
    """
    building = _Building()
    for number, run in enumerate(runs):
        building.add(run, number)
    if not building.items:
        raise UsageError("the runs' pools are empty", remedy="fill them: raggs run --config CONFIG")
    sources = {name: sorted(row.values(), key=lambda entry: entry[0]) for name, row in building.sources.items()}
    return ReviewPool([run.file("merge") for run in runs], [*building.items.values()], building.texts, sources)


def located(run: OpenedRun) -> Iterator[tuple[int, MergeRecord]]:
    """Yield the records of a run's pool, each with the byte offset of its line."""
    records = run.typed("merge", MergeRecord)  # raises an error if the file is missing
    yield from zip(_line_starts(run.file("merge")), records, strict=True)


def _line_starts(path: Path) -> Iterator[int]:
    """Yield the byte offset of each line that is not blank."""
    begin = 0
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                yield begin
            begin += len(line)


class ItemLabel(Frozen):
    """A label of an item; a null grade means "cannot tell". `model`: whether it is from a model."""

    who: str
    grade: int | None
    note: str
    model: bool = False


@dataclass(frozen=True)
class _Graded:
    """Grades of a run by item (0: none), and the byte offset of each in its file."""

    path: Path
    grades: NDArray[np.int8]
    bytes: NDArray[np.int64]


class ModelJudges:
    """The judges of some runs."""

    def __init__(self, runs: Sequence[OpenedRun], pool: ReviewPool) -> None:
        self._runs, self._pool, self._lock = runs, pool, RLock()
        self._graded: list[_Graded] | None = None

    def all_grades(self) -> list[list[int]]:
        """Return the grades of all items for each run with a judge; 0 for items without a grade.

        Raises:
            DataError: a file of a run is invalid.
        """
        return [graded.grades.tolist() for graded in self._rows()]

    def voices(self, number: int) -> tuple[ItemLabel, ...]:
        """Return the models' grades of an item, with reasons.

        Raises:
            DataError: a file of a run has changed.
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
            if number is not None and record.grade is not None and source_of(record.judge) != HUMAN_SOURCE:
                found.grades[number], found.bytes[number] = record.grade, begin
            begin = end
        return found

    def _numbers(self, place: int) -> Mapping[tuple[str, str], int]:
        """Return the item numbers of a run, by query id and passage id."""
        if len(self._runs) == 1:
            return {(item.qid, item.doc_id): number for number, item in enumerate(self._pool.items)}
        return dict(self._searched(self._runs[place]))

    def _searched(self, run: OpenedRun) -> Iterator[tuple[tuple[str, str], int]]:
        questions = {record.qid: question_digest(record) for record in run.typed("queries", QueryRecord)}
        for record in run.typed("merge", MergeRecord):
            number = self._pool.numbers.get((questions.get(record.qid, ""), passage_digest(record.passage)))
            if number is not None:
                yield (record.qid, record.doc_id), number


def _voice(graded: _Graded, number: int) -> ItemLabel:
    try:
        with graded.path.open("rb") as file:
            file.seek(int(graded.bytes[number]))
            record = JudgeRecord.model_validate_json(file.readline())
    except (OSError, ValidationError) as error:
        raise DataError(CHANGED, where=graded.path) from error
    if record.grade != graded.grades[number]:
        raise DataError(CHANGED, where=graded.path)
    return ItemLabel(
        who=record.judge, grade=record.grade, note=reason_in_words(clean_unicode(record.reason)), model=True
    )


WORD_PATTERN = re.compile(r"[^\W_]+")
COMMON = frozenset(word for words in FUNCTION_WORDS.values() for word in words.split())


class ItemView(Frozen):
    """An item as annotators see it, without any output of models."""

    item: str
    qid: str
    question: str
    title: str
    text: str
    source: str
    around: bool
    terms: tuple[str, ...]


def view_of(pool: ReviewPool, number: int) -> ItemView:
    """Return an item as the page shows it."""
    item, passage = pool.items[number], pool.passage(number)
    question = pool.questions[item.question]
    return ItemView(
        item="".join(item.key),
        qid=item.qid,
        question=clean_unicode(question),
        title=clean_passage(passage.title),
        text=join_wrapped_lines(clean_passage(passage.text)),
        source=passage.span.source if passage.span else "",
        around=any(pool.around(passage)),
        terms=terms_of(question),
    )


def terms_of(question: str) -> tuple[str, ...]:
    """Return the content words of a query, in lower case and without accents."""
    words = WORD_PATTERN.findall(fold_accents(clean_unicode(question).lower()))
    return tuple(dict.fromkeys(word for word in words if word not in COMMON and (len(word) > 2 or word.isdigit())))
