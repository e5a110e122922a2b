"""A table for people: a row a judgment, for spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from raggs.base.artifacts import Passage, RankRecord
from raggs.base.text import BYTE_ORDER_MARK
from raggs.golden.base import GoldenQuery, GoldenSet, Graded
from raggs.golden.exporters.cases import CaseExporter
from raggs.golden.exporters.files import write_lines
from raggs.golden.parts import Part
from raggs.parts.queries.writing import spreadsheet_line

TABLE = "golden.csv"
HEADER = (
    *("qid", "question", "doc_id", "title", "passage", "grade", "rank", "confidence"),
    *("judge", "reason", "duplicate_of", "skipped", "error"),
)
UNORDERED = "unordered"  # a column of sets with passages that nobody was asked to order


class CsvExporter(CaseExporter):
    """A table of judgments for spreadsheets: passage, grade, order, confidence.

    `golden.csv` has a row for each pooled passage, best fused first, with its grade from 1 to 5, whatever `--grades`
    says of the labels beside, and its rank in the order; a question without any has a row of its own. It begins with a
    byte order mark, by which spreadsheets know that it is UTF-8. A cell that one would run as a formula gets an
    apostrophe in front. Where passages stand below `rank.floor`, a column `unordered` says so.
    """

    FORMAT: ClassVar[str] = "csv"
    HOLDS: ClassVar[frozenset[Part] | None] = frozenset(
        {
            *("grades", "unjudged", "judges", "reasons", "duplicates"),
            *("order", "below", "lists", "questions", "texts"),
        }
    )

    @property
    def holds(self) -> frozenset[Part] | None:
        """The same whatever is asked: grades stand in the table."""
        return self.HOLDS

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """See `CaseExporter.write_cases`."""
        return {TABLE: write_lines(folder / TABLE, _lines(golden)) - 1}


def _lines(golden: GoldenSet) -> Iterator[str]:
    marked = any(record.unordered for query in golden.by_query("order") for record in query.order)
    header = (*HEADER, UNORDERED) if marked else HEADER
    yield BYTE_ORDER_MARK + spreadsheet_line(header)
    for query in golden.by_query():
        question = query.query.text if query.query else ""
        if not query.grades:
            yield spreadsheet_line([query.qid, question, *[""] * (len(header) - 2)])
        for row in _rows(query):
            yield spreadsheet_line([query.qid, question, *row][: len(header)])


def _rows(query: GoldenQuery) -> Iterator[list[str]]:
    places = {record.doc_id: record for record in query.order}
    texts = {passage.doc_id: passage for passage in query.pool}
    for graded in query.grades:
        place = places.get(graded.doc_id)
        yield [*_row(graded, texts.get(graded.doc_id), place), "yes" if place and place.unordered else ""]


def _row(graded: Graded, passage: Passage | None, place: RankRecord | None) -> list[str]:
    return [
        graded.doc_id,
        passage.title if passage else "",
        passage.text if passage else "",
        "" if graded.grade is None else str(graded.grade),
        str(place.rank) if place else "",
        str(place.confidence) if place else "",
        graded.judge,
        graded.reason,
        graded.duplicate_of or "",
        graded.skipped or "",
        graded.error or "",
    ]
