"""JSON lines of raggs as a golden set: labels with what they say of near-duplicates and of doubt, the order, the texts.

So whatever is computed of a run's grades, or shown of its questions, is of its export, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, get_args

from pydantic import BaseModel, Field, ValidationError

from raggs.base.artifacts import MIN_GRADE, Frozen, Passage, RankRecord
from raggs.base.errors import DataError
from raggs.base.jsonl import first_fault, read_objects
from raggs.base.tables import LABEL_ROLES, NO_COLUMNS, ColumnNames, ObjectColumns, object_id
from raggs.base.trec import Seen
from raggs.base.types import as_list, as_text
from raggs.golden.base import GoldenQuery, Graded, SetPart
from raggs.golden.files import QUERIES, FileGolden, unpacked_passage
from raggs.golden.parts import SURE
from raggs.parts.readers.scales import sidecar
from raggs.parts.readers.shapes import check_ids

if TYPE_CHECKING:
    from raggs.golden.judgments import Judgments
    from raggs.metrics.columns import Scale

M = TypeVar("M", bound=BaseModel)
Samples = tuple[int | None, ...]
JUDGMENTS, UNJUDGED, ORDER, CORPUS = "judgments.jsonl", "unjudged.jsonl", "order.jsonl", "corpus.jsonl"
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


class _Row(NamedTuple):
    qid: str
    doc_id: str
    samples: tuple[int, ...]
    facet: str


class LinesGolden(FileGolden):
    """`judgments.jsonl` of an export, and what lies beside it: other words on passages, the order, the texts."""

    def __init__(
        self, labels: Path, questions: Path | None = None, name: str = "", columns: ColumnNames = NO_COLUMNS
    ) -> None:
        super().__init__(labels, questions or _there(labels.parent / QUERIES), name, columns)
        order, top = _there(labels.parent / ORDER), sidecar(labels).get("top")
        self.top = top if isinstance(top, int) and order else 0
        self.sure = order is None or next((row.keys() >= SURE for _, row in read_objects(order)), True)

    def by_query(self, *parts: SetPart) -> Iterator[GoldenQuery]:
        """See `GoldenSet.by_query`.

        Raises:
            DataError: a line cannot be right.
        """
        wanted, folder = parts or get_args(SetPart), self.labels.parent
        asked = {query.qid: query for query in self.queries()}
        grades = words_of(filter(None, (self.labels, _there(folder / UNJUDGED))), self.columns)
        orders = orders_of(_there(folder / ORDER)) if "order" in wanted else {}
        texts = _texts(_there(folder / CORPUS), grades) if "pool" in wanted else {}
        for qid in sorted({*asked, *grades}):
            found = grades.get(qid, [])
            yield GoldenQuery(
                qid,
                asked.get(qid),
                tuple(texts[each.doc_id] for each in found if each.doc_id in texts),
                tuple(found) if "grades" in wanted else (),
                tuple(orders.get(qid, ())),
            )

    def judgments(self, scale: Scale | None = None) -> Judgments:
        """See `GoldenSet.judgments`."""
        import numpy as np

        from raggs.metrics.columns import belief_of
        from raggs.metrics.label_uncertainty import Doubt

        found = super().judgments(scale)
        rows = sorted(_rows(self.labels), key=lambda row: row.qid)  # stable: as the columns have them
        sigma = _sigma(self.labels.parent / ORDER)
        doubt = Doubt(
            np.array([sigma.get((row.qid, row.doc_id), 0.0) for row in rows]), tuple(row.samples for row in rows)
        )
        belief = belief_of([(row.qid, row.doc_id) for row in rows], _placed(self.labels.parent / ORDER))
        found = replace(found, qrels=replace(found.qrels, belief=belief))
        return replace(found, doubt=doubt, facets={row.doc_id: row.facet for row in rows})


def _rows(labels: Path) -> Iterator[_Row]:
    for _, row in read_objects(labels):
        qid, doc_id = str(row.get("qid")), str(row.get("doc_id"))
        samples = tuple(each for each in as_list(row.get("samples")) if isinstance(each, int))
        yield _Row(qid, doc_id, samples if len(samples) > 1 else (), as_text(row.get("duplicate_of")) or doc_id)


def _sigma(order: Path) -> dict[tuple[str, str], float]:
    """The standard error of each ranked passage that was shown to the judge; none where it is not said."""
    if not order.is_file():
        return {}
    found = ((row, row.get("sigma")) for _, row in read_objects(order) if row.get("exposures"))
    return {(str(row.get("qid")), str(row.get("doc_id"))): sigma for row, sigma in found if isinstance(sigma, float)}


def _placed(order: Path) -> dict[tuple[str, str], tuple[float, float]]:
    """Score and standard error of each ranked passage; none where they are not said, or no judge was shown any."""
    if not order.is_file():
        return {}
    rows = [row for _, row in read_objects(order)]
    if not any(row.get("exposures") for row in rows):
        return {}
    said = ((row, row.get("score"), row.get("sigma")) for row in rows)
    return {
        (str(row.get("qid")), str(row.get("doc_id"))): (float(score), float(sigma))
        for row, score, sigma in said
        if isinstance(score, int | float) and isinstance(sigma, int | float) and not row.get("unordered")
    }


def words_of(files: Iterable[Path], columns: ColumnNames = NO_COLUMNS) -> dict[str, list[Graded]]:
    """By query what the lines of some files say of passages.

    Args:
        files: the labels first, then passages without a grade.
        columns: which field is which, as `--column` says.

    Raises:
        NotFoundError, DataError: a file is missing, a line cannot be right, or a passage occurs twice for a query.
    """
    grades: dict[str, list[Graded]] = {}
    places: dict[tuple[str, str], str] = {}
    for place, path in enumerate(files):
        seen = Seen(path)
        for number, row in _named_rows(path, columns, LABEL_ROLES if place == 0 else LABEL_ROLES[:2]):
            if isinstance(row.get("grade"), bool):
                raise DataError("a grade is true or false", where=path, line=number, remedy="write a whole number")
            word = _record(path, number, row, Word)
            check_ids(path, number, word.qid, word.doc_id)
            seen.note(word.qid, word.doc_id, number)
            first = places.setdefault((word.qid, word.doc_id), f"{path.name}:{number}")
            if first != f"{path.name}:{number}":
                said = f"query {word.qid} and passage {word.doc_id} occur twice (first in {first})"
                raise DataError(said, where=path, line=number, remedy="keep one")
            grades.setdefault(word.qid, []).append(word.graded)
    return grades


def _named_rows(path: Path, columns: ColumnNames, required: tuple[str, ...]) -> Iterator[tuple[int, dict[str, object]]]:
    """The objects of a file under the names of raggs; those of an export have them already."""
    if sidecar(path):
        yield from read_objects(path)
        return
    known = ObjectColumns(path, LABEL_ROLES, columns, required)
    for number, row in read_objects(path):
        cells = known.cells(row, number)
        ids = {role: object_id(cells[role], path, number) for role in ("qid", "doc_id")}
        yield number, {**row, **cells, **ids}


def orders_of(path: Path | None) -> dict[str, list[RankRecord]]:
    """By query its order; what lines do not say of how sure they are is that nothing is known.

    Raises:
        DataError: a line cannot be right, or a passage or a rank occurs twice for a query.
    """
    orders: dict[str, list[RankRecord]] = {}
    places: dict[tuple[str, object], int] = {}
    for number, row in read_objects(path) if path else ():
        record = _record(path, number, {**UNSURE, **row}, RankRecord)
        for what, value in (("passage", record.doc_id), ("rank", record.rank)):
            first = places.setdefault((record.qid, value), number)
            if first != number:
                said = f"{what} {value} of query {record.qid} occurs twice (first in line {first})"
                raise DataError(said, where=path, line=number, remedy="keep one")
        orders.setdefault(record.qid, []).append(record)
    return orders


def _record(path: Path | None, number: int, row: Mapping[str, object], model: type[M]) -> M:
    try:
        return model.model_validate({name: value for name, value in row.items() if name in model.model_fields})
    except ValidationError as error:
        said = first_fault(error)
        raise DataError(said, where=path, line=number, remedy="export it again, or mend the line") from error


def _there(path: Path) -> Path | None:
    return path if path.is_file() and path.stat().st_size else None


def _texts(path: Path | None, grades: Mapping[str, Iterable[Graded]]) -> dict[str, Passage]:
    """The passages that were judged, by id."""
    if path is None:
        return {}
    from raggs.parts.corpora.jsonl import JsonlConfig, JsonlCorpus  # late: what is scored needs no texts

    wanted = {graded.doc_id for found in grades.values() for graded in found}
    passages = map(unpacked_passage, JsonlCorpus(JsonlConfig(path=path)).passages())
    return {passage.doc_id: passage for passage in passages if passage.doc_id in wanted}
