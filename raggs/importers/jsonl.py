"""JSON lines of raggs: all that a golden set holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, Field, ValidationError

from raggs.artifacts import MIN_GRADE, Frozen, RankRecord
from raggs.errors import DataError
from raggs.golden.base import RUNS, Graded
from raggs.golden.parts import SURE
from raggs.importers.base import ImportedSet, Importer
from raggs.importers.pieces import Pieces, first_of, missing
from raggs.jsonl import first_fault, read_objects

M = TypeVar("M", bound=BaseModel)
Samples = tuple[int | None, ...]
JUDGMENTS, UNJUDGED, ORDER = "judgments.jsonl", "unjudged.jsonl", "order.jsonl"
UNSURE: Mapping[str, object] = {
    "grade": MIN_GRADE,
    "score": 0.0,
    "sigma": 0.0,
    "confidence": 0.5,
    "rank_low": 1,
    "rank_high": 1,
    "membership": 0.5,
    "exposures": 0,
}


class Word(Frozen):
    """What a line says of a passage."""

    qid: str
    doc_id: str
    grade: int | None = None
    judge: str = ""
    reason: str = ""
    samples: Samples = ()
    votes: Mapping[str, Samples] = Field(default_factory=dict)
    duplicate_of: str | None = None
    skipped: str | None = None
    error: str | None = None

    @property
    def graded(self) -> Graded:
        """The same by itself."""
        return Graded(
            self.doc_id,
            self.grade if self.grade is None or self.grade >= 0 else None,
            self.samples,
            self.votes,
            self.judge,
            self.reason,
            self.duplicate_of,
            self.skipped,
            self.error,
        )


class JsonlImporter(Importer):
    """JSON lines of raggs: judgments.jsonl, and what lies beside it."""

    FORMAT = "jsonl"

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
        labels = first_of(path, JUDGMENTS) if path.is_dir() else path
        if labels is None:
            raise missing(path, self.FORMAT, JUDGMENTS)
        folder = labels.parent
        grades: dict[str, list[Graded]] = {}
        for file in (labels, *filter(None, [first_of(folder, UNJUDGED)])):
            for word in _rows(file, Word):
                grades.setdefault(word.qid, []).append(word.graded)
        sure, orders = _orders(first_of(folder, ORDER))
        lists = sorted(each for each in (folder / RUNS).glob("*.trec") if each.stat().st_size)
        questions, corpus = first_of(folder, "queries.jsonl"), first_of(folder, "corpus.jsonl")
        return Pieces(labels, grades, orders, sure, questions, corpus, lists).put_together()


def _orders(path: Path | None) -> tuple[bool, dict[str, list[RankRecord]]]:
    """The orders, and whether they say how sure they are."""
    orders: dict[str, list[RankRecord]] = {}
    sure = False
    for number, row in read_objects(path) if path else ():
        sure = row.keys() >= SURE
        record = _row(path, number, {**UNSURE, **row}, RankRecord)
        orders.setdefault(record.qid, []).append(record)
    return sure, orders


def _rows(path: Path, model: type[M]) -> Iterator[M]:
    return (_row(path, number, row, model) for number, row in read_objects(path))


def _row(path: Path | None, number: int, row: Mapping[str, object], model: type[M]) -> M:
    try:
        return model.model_validate({name: value for name, value in row.items() if name in model.model_fields})
    except ValidationError as error:
        said = first_fault(error)
        raise DataError(said, where=path, line=number, remedy="export it again, or mend the line") from error
