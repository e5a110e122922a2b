"""The passages that may be graded: an index of the runs' pools, made once; their texts stay on the disk.

An item is a question with a passage, known by what they say, so that the same passage in two runs, or under two ids,
is read once. Near-duplicates are not asked: their representative stands for them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from raggs.base.artifacts import MergeRecord, Passage, QueryRecord
from raggs.base.errors import DataError, UsageError
from raggs.parts.reviews.store import Key, PlanItem, passage_digest, question_digest
from raggs.runs.manifests.opened import OpenedRun
from raggs.stats.correction.estimates import lots

CHANGED = "the run has changed since; start the page again"


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a pool: the file's number, and the byte at which it begins."""

    file: int
    byte: int


@dataclass(frozen=True, slots=True)
class Item:
    """A passage that is to be graded for a question.

    Attributes:
        key: what its reviews are filed under.
        qid: of the question, as the run has it.
        doc_id: of the passage, as the run has it.
        question: number of its question.
        place: where its text is.
    """

    key: Key
    qid: str
    doc_id: str
    question: int
    place: Place


class Pool:
    """What can be asked, by number.

    Attributes:
        items: in the order of the runs.
        questions: their texts, by number.
        numbers: of each item, by its key.
        chances: the probability with which each was drawn at random; None where it was not.
        planned: whether the order of the items is the order of the work.
    """

    def __init__(
        self,
        files: Sequence[Path],
        items: Sequence[Item],
        questions: Sequence[str],
        sources: dict[str, list[tuple[int, int, Place]]],
        chances: Sequence[float | None] = (),
        planned: bool = False,
    ) -> None:
        self.items, self.questions, self.planned = items, questions, planned
        self.chances = chances or [None] * len(items)
        self.numbers = {item.key: number for number, item in enumerate(items)}
        self._files, self._sources = files, sources

    def sampled(self, count: int, seed: int) -> Pool:
        """`count` items drawn at random, each with the same known probability; by one seed, more hold fewer.

        Raises:
            UsageError: there are not so many.
        """
        total = len(self.items)
        if not 1 <= count <= total:
            raise UsageError(f"{count} of {total} passages cannot be drawn", remedy="ask for fewer: --sample N")
        lot = lots(seed, ("".join(item.key) for item in self.items))
        drawn = sorted(np.argsort(lot, kind="stable")[:count].tolist())
        items = [self.items[number] for number in drawn]
        return Pool(self._files, items, self.questions, self._sources, [count / total] * count)

    def planned_by(self, plan: Sequence[PlanItem]) -> Pool:
        """The items of a plan that nobody had read, in its order, with the chances that it gives.

        Raises:
            UsageError: none of them is in the pools, or all are read.
        """
        left = [item for item in plan if not item.read]
        if plan and not left:
            raise UsageError("people have read all of the plan", remedy="raggs review plan RUN says what is next")
        here = [(self.numbers[item.key], item.chance) for item in left if item.key in self.numbers]
        if not here:
            raise UsageError("no passage of the plan is in these runs' pools", remedy="raggs review plan RUN makes one")
        items = [self.items[number] for number, _ in here]
        return Pool(self._files, items, self.questions, self._sources, [chance for _, chance in here], planned=True)

    def passage(self, number: int) -> Passage:
        """The passage of an item.

        Raises:
            DataError: the run's file is not what it was.
        """
        item = self.items[number]
        found = self._read(item.place)
        if passage_digest(found) != item.key[1]:
            raise DataError(CHANGED, where=self._files[item.place.file])
        return found

    def around(self, passage: Passage) -> tuple[Passage | None, Passage | None]:
        """What stands before and after a passage in its source, as far as it is in a pool."""
        if passage.span is None:
            return None, None
        row = self._sources.get(passage.span.source, [])
        first = bisect_left(row, passage.span.start, key=lambda entry: entry[0])
        before = next((entry for entry in reversed(row[:first]) if entry[1] <= passage.span.end), None)
        after = next((entry for entry in row[first:] if entry[0] > passage.span.start), None)
        return (before and self._read(before[2])), (after and self._read(after[2]))

    def _read(self, place: Place) -> Passage:
        path = self._files[place.file]
        try:
            with path.open("rb") as file:
                file.seek(place.byte)
                return MergeRecord.model_validate_json(file.readline()).passage
        except (OSError, ValidationError) as error:
            raise DataError(CHANGED, where=path) from error


class _Building:
    """Items and places as they are found, run after run."""

    def __init__(self) -> None:
        self.items = dict[Key, Item]()
        self.questions = dict[str, int]()  # number by digest
        self.texts = list[str]()
        self.sources = dict[str, dict[int, tuple[int, int, Place]]]()

    def add(self, run: OpenedRun, number: int) -> None:
        digests = {}
        for query in run.typed("queries", QueryRecord):
            digest = digests[query.qid] = question_digest(query)
            if digest not in self.questions:
                self.questions[digest] = len(self.texts)
                self.texts.append(query.text)
        for byte, record in located(run):
            place = Place(number, byte)
            if record.span is not None:
                row = self.sources.setdefault(record.span.source, {})
                row.setdefault(record.span.start, (record.span.start, record.span.end, place))
            question = digests.get(record.qid)
            if question is not None and record.duplicate_of is None:
                key = question, passage_digest(record.passage)
                self.items.setdefault(key, Item(key, record.qid, record.doc_id, self.questions[question], place))


def open_pool(runs: Sequence[OpenedRun]) -> Pool:
    """The passages of runs' pools.

    Raises:
        NotFoundError: a run has no pool yet.
        DataError: a line of it cannot be right.
        UsageError: there is nothing to grade.
    """
    building = _Building()
    for number, run in enumerate(runs):
        building.add(run, number)
    if not building.items:
        raise UsageError("the runs' pools are empty", remedy="raggs run --config CONFIG fills them")
    sources = {name: sorted(row.values(), key=lambda entry: entry[0]) for name, row in building.sources.items()}
    return Pool([run.file("merge") for run in runs], [*building.items.values()], building.texts, sources)


def located(run: OpenedRun) -> Iterator[tuple[int, MergeRecord]]:
    """The records of a run's pool, each with the byte at which its line begins."""
    records = run.typed("merge", MergeRecord)  # says it where there is none
    yield from zip(_line_starts(run.file("merge")), records, strict=True)


def _line_starts(path: Path) -> Iterator[int]:
    """The first byte of each line that is not blank."""
    begin = 0
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                yield begin
            begin += len(line)
