"""Tables of judgments, as spreadsheets save them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from raggs.artifacts import Query, RankRecord, RetrieveRecord
from raggs.errors import DataError
from raggs.golden.base import Graded
from raggs.golden.scales import AS_GRADED, sidecar, stated_labels
from raggs.importers.base import ImportedSet, Importer
from raggs.importers.cases import CaseRead, made_passage_id, sound_id, written
from raggs.importers.pieces import Pieces, first_of, missing, placed, runs_beside
from raggs.inputs import read_text, table_rows
from raggs.queries.fields import made_id
from raggs.text import of_spreadsheet_cell

FILE = "golden.csv"
NAMES: Mapping[str, tuple[str, ...]] = {
    "qid": ("qid", "query_id", "query-id", "question_id"),
    "question": ("question", "query", "user_input", "text"),
    "doc_id": ("doc_id", "docid", "corpus-id", "passage_id", "document_id"),
    "passage": ("passage", "context", "document"),
    "grade": ("grade", "score", "relevance", "rel", "label"),
}
Row = Mapping[str, str]


@dataclass
class _Table:
    """What the rows hold."""

    read: CaseRead = field(default_factory=CaseRead)
    grades: dict[str, list[Graded]] = field(default_factory=dict)
    orders: dict[str, list[RankRecord]] = field(default_factory=dict)


class CsvImporter(Importer):
    """A table of judgments: a file of CSV, or a folder with golden.csv.

    It has columns `question` or `qid`, `passage` or `doc_id`, and `grade`; comma, semicolon or tab part them. A
    changed grade counts as it stands in the table.
    """

    FORMAT = "csv"

    def read(self, path: Path) -> ImportedSet:
        """See `Importer.read`."""
        file = first_of(path, FILE) if path.is_dir() else path
        if file is None:
            raise missing(path, self.FORMAT, FILE)
        labels = stated_labels(file.parent) if sidecar(file) else None
        table = _Table()
        for line, row in _rows(file):
            _add(table, row, file, line)
        kept = tempfile.TemporaryDirectory(prefix="raggs-")
        questions, corpus = written(table.read, Path(kept.name))
        lists = runs_beside(file.parent, labels, table.grades)[1] if labels else []
        orders = {qid: sorted(found, key=lambda each: each.rank) for qid, found in table.orders.items()}
        pieces = Pieces(labels or file, table.grades, orders, False, questions, corpus, lists, kept)
        return replace(pieces.put_together(), form=AS_GRADED if labels else None)


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    """The rows by the names of their columns, without the apostrophes that guard cells."""
    text = read_text(path)
    head = text.partition("\n")[0]
    rows = table_rows(text, path, max(",;\t", key=head.count))
    _, header = next(rows, (0, []))
    names = [_known(name.strip().lower()) for name in header]
    if "grade" not in names or not {"qid", "question"} & {*names} or not {"doc_id", "passage"} & {*names}:
        raise DataError("lacks a column", where=path, line=1, remedy="question or qid, passage or doc_id, and grade")
    for line, row in rows:
        if len(row) != len(names):
            said = f"{len(row)} columns, the header has {len(names)}"
            raise DataError(said, where=path, line=line, remedy="check the quotes")
        yield line, dict(zip(names, map(of_spreadsheet_cell, row), strict=True))


def _known(name: str) -> str:
    return next((field for field, names in NAMES.items() if name in names), name)


def _add(table: _Table, row: Row, path: Path, line: int) -> None:
    question, passage = row.get("question", ""), row.get("passage", "")
    qid = sound_id(row.get("qid") or (made_id(question) if question else ""), path, line)
    if question.strip():
        table.read.queries.setdefault(qid, Query(qid=qid, text=question))
    if not (row.get("doc_id") or passage.strip()):
        return
    doc_id = sound_id(row.get("doc_id") or made_passage_id(passage), path, line)
    if passage.strip():
        table.read.texts.setdefault(doc_id, (row.get("title", ""), passage))
    grade = _whole(row["grade"], path, line)
    found = table.grades.setdefault(qid, [])
    if any(graded.doc_id == doc_id for graded in found):
        raise DataError(f"{doc_id} is graded twice for {qid}", where=path, line=line, remedy="keep one of the rows")
    found.append(_graded(doc_id, grade, row))
    rank = _whole(row.get("rank", ""), path, line)
    if rank is not None and rank > 0 and grade is not None:
        hit = RetrieveRecord(qid=qid, retriever=FILE, rank=rank, doc_id=doc_id, score=0)
        marked = {"unordered": bool(row.get("unordered"))}
        table.orders.setdefault(qid, []).append(placed(hit, grade).model_copy(update=marked))


def _graded(doc_id: str, grade: int | None, row: Row) -> Graded:
    return Graded(
        doc_id,
        grade if grade is None or grade >= 0 else None,
        judge=row.get("judge", ""),
        reason=row.get("reason", ""),
        duplicate_of=row.get("duplicate_of") or None,
        skipped=row.get("skipped") or None,
        error=row.get("error") or None,
    )


def _whole(cell: str, path: Path, line: int) -> int | None:
    """A whole number, also as a spreadsheet may write it (4.0); None of an empty cell."""
    text = cell.strip().removesuffix(".0")
    if not text:
        return None
    if not text.removeprefix("-").isdecimal() or len(text) > 9:
        raise DataError(f"{cell!r} is no whole number", where=path, line=line, remedy="write grades as 0 to 5")
    return int(text)
