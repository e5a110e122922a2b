"""Tables of judgments for spreadsheets, and JSON lines of raggs.

The JSON lines format contains everything in a golden set; `raggs import` writes it, too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from raggs.base.artifacts import JudgeRecord, Passage, RankRecord, RetrieveRecord, Validity
from raggs.base.errors import DataError
from raggs.base.jsonl import read_objects
from raggs.base.tables import IMPORT_ROLES, open_table
from raggs.base.text import BYTE_ORDER_MARK, plural
from raggs.golden.base import (
    CONFIDENCE_FIELDS,
    GOLDEN_CONTENTS,
    RUNS,
    GoldenContent,
    GoldenQuery,
    GoldenSet,
    LabelRecord,
)
from raggs.golden.files import CORPUS as lines_CORPUS
from raggs.golden.files import JUDGMENTS as lines_JUDGMENTS
from raggs.golden.files import ORDER as lines_ORDER
from raggs.golden.files import QUERIES as files_QUERIES
from raggs.golden.files import UNJUDGED as lines_UNJUDGED
from raggs.golden.files import orders_of, passage_facts, words_of
from raggs.golden.formats import Exporter, ImportedSet, Importer, write_lines, write_objects
from raggs.golden.formats.cases import CaseContents, CaseExporter, made_passage_id, sound_id, write_json_lines
from raggs.golden.formats.labelled_files import (
    MAX_SHOWN_NAMES,
    SetPieces,
    first_of,
    missing_file_error,
    rank_record,
    runs_beside,
)
from raggs.golden.formats.trec import write_passages, write_systems
from raggs.parts.file_shapes import AS_GRADED, GradeFormat, sidecar, stated_labels
from raggs.parts.queries.fields import made_id, query_of
from raggs.parts.queries.writing import query_facts, query_object, spreadsheet_line

TABLE = "golden.csv"
HEADER = (
    *("qid", "question", "doc_id", "title", "passage", "grade", "rank", "confidence"),
    *("judge", "reason", "duplicate_of", "skipped", "error"),
)
UNORDERED = "unordered"  # extra column for sets with passages that have no judged order


class CsvExporter(CaseExporter):
    """A table of judgments for spreadsheets: passage, grade, order, confidence.

    `golden.csv` has one row per pooled passage, best fused passage first, with its grade from 1 to 5 and its rank in
    the order. `--grades` affects only the labels next to it. A question without passages has its own row. The file
    starts with a byte order mark, so that spreadsheets detect UTF-8. A cell that a spreadsheet would run as a formula
    starts with an apostrophe. If passages are below `rank.floor`, a column `unordered` marks them.
    """

    FORMAT: ClassVar[str] = "csv"
    HOLDS: ClassVar[frozenset[GoldenContent] | None] = frozenset(
        {
            *("grades", "unjudged", "judges", "reasons", "duplicates"),
            *("order", "below", "lists", "questions", "texts"),
        }
    )

    @property
    def holds(self) -> frozenset[GoldenContent] | None:
        """Parts that can be restored from the files. They do not depend on the options, because the table always
        contains grades.
        """
        return self.HOLDS

    def write_cases(self, golden: GoldenSet, folder: Path) -> dict[str, int]:
        """Write the table; see `CaseExporter.write_cases`."""
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


def _row(graded: JudgeRecord, passage: Passage | None, place: RankRecord | None) -> list[str]:
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


FILE = "golden.csv"
TEXT_COLUMNS = ("judge", "reason", "duplicate_of", "skipped", "error", "unordered")  # text columns of raggs' own tables
CONFIDENCE = "confidence"  # a column of raggs' own tables, which is ignored
REQUIRED_COLUMNS = "a column for the query (question or qid), one for the passage (passage or doc_id), and grade"
Row = Mapping[str, str]


@dataclass
class _JudgmentTable:
    """Contents of the rows of a table."""

    read: CaseContents
    grades: dict[str, list[JudgeRecord]] = field(default_factory=dict)
    orders: dict[str, list[RankRecord]] = field(default_factory=dict)


class CsvImporter(Importer):
    """A table of judgments: a CSV file, or a folder with golden.csv.

    It has the columns `question` or `qid`, `passage` or `doc_id`, and `grade`, separated by comma, semicolon or tab. If
    you change a grade in the table, the changed grade is imported.
    """

    FORMAT = "csv"
    ROLES = IMPORT_ROLES

    def read(self, path: Path) -> ImportedSet:
        """Read the set; see `Importer.read`."""
        file = first_of(path, FILE) if path.is_dir() else path
        if file is None:
            raise missing_file_error(path, self.FORMAT, FILE)
        labels = stated_labels(file.parent) if sidecar(file) else None
        table, opened = (
            _JudgmentTable(CaseContents(file, "line")),
            open_table(file, (*IMPORT_ROLES, *TEXT_COLUMNS), (), self.columns),
        )
        found = opened.places.keys()
        if "grade" not in found or not {"qid", "question"} & found or not {"doc_id", "passage"} & found:
            remedy = f"it needs {REQUIRED_COLUMNS}; use --column ROLE=NAME to name columns"
            raise DataError("a required column is missing", where=file, line=1, remedy=remedy)
        for line, row in opened.rows:
            _add(table, row, file, line)
        kept = tempfile.TemporaryDirectory(prefix="raggs-")
        questions, corpus = write_json_lines(table.read, Path(kept.name))
        lists = runs_beside(file.parent, labels, table.grades)[1] if labels else []
        orders = {qid: sorted(found, key=lambda each: each.rank) for qid, found in table.orders.items()}
        unread = [name for name in opened.unread if name != CONFIDENCE]
        notes = (f"ignored columns: {', '.join(unread)}",) if unread else ()
        pieces = SetPieces(labels or file, table.grades, orders, False, questions, corpus, lists, kept, notes)
        return replace(pieces.put_together(), form=AS_GRADED if labels else None)


def _add(table: _JudgmentTable, row: Row, path: Path, line: int) -> None:
    question, passage = row.get("question", ""), row.get("passage", "")
    asked = question.strip()
    qid = sound_id(row.get("qid", "").strip() or (made_id(question) if asked else ""), path, line)
    facts = {"answer": row.get("answer", ""), "language": row.get("language", "").strip()}
    facts = {name: value for name, value in facts.items() if value.strip()}
    if asked:
        query = query_of({"_id": qid, "text": question, **facts}, path, line)
        facts = query.model_dump(include={"text", *facts})
    table.read.add_query(qid, facts, line)
    known = row.get("doc_id", "").strip()
    if not (known or passage.strip()):
        if row["grade"].strip():
            raise DataError("a grade without a passage", where=path, line=line, remedy="add the passage or its id")
        return
    doc_id = sound_id(known or made_passage_id(passage), path, line)
    if passage.strip():
        table.read.add_text(doc_id, row.get("title", ""), passage, line)
    if not table.read.add_label(qid, doc_id, line):
        first = table.read.labels[qid, doc_id]
        said = f"{doc_id} is graded twice for {qid} (first in line {first})"
        raise DataError(said, where=path, line=line, remedy="keep one of the rows")
    grade = _whole_number(row["grade"], path, line)
    table.grades.setdefault(qid, []).append(_graded(qid, doc_id, grade, row))
    rank = _whole_number(row.get("rank", ""), path, line)
    if rank is not None and rank > 0 and grade is not None:
        hit = RetrieveRecord(qid=qid, retriever=FILE, rank=rank, doc_id=doc_id, score=0)
        marked = {"unordered": bool(row.get("unordered"))}
        table.orders.setdefault(qid, []).append(rank_record(hit, grade).model_copy(update=marked))


def _graded(qid: str, doc_id: str, grade: int | None, row: Row) -> LabelRecord:
    return LabelRecord(
        qid=qid,
        doc_id=doc_id,
        grade=grade,
        judge=row.get("judge", ""),
        reason=row.get("reason", ""),
        duplicate_of=row.get("duplicate_of") or None,
        skipped=row.get("skipped") or None,
        error=row.get("error") or None,
    )


def _whole_number(cell: str, path: Path, line: int) -> int | None:
    """Return the integer in a cell, which a spreadsheet may write as 4.0. Return None for an empty cell."""
    text = cell.strip().removesuffix(".0")
    if not text:
        return None
    if not text.removeprefix("-").isdecimal() or len(text) > 9:
        raise DataError(
            f"{cell!r} is not an integer", where=path, line=line, remedy="write grades (0 to 5) and ranks as integers"
        )
    return int(text)


GAIN = GradeFormat("gain")
TOP, JUDGMENTS, UNJUDGED, ORDER = "golden.jsonl", "judgments.jsonl", "unjudged.jsonl", "order.jsonl"
QUERIES, CORPUS = "queries.jsonl", "corpus.jsonl"


class JsonlExporter(Exporter):
    """JSON lines: everything in the set, and the ranked top with texts.

    `golden.jsonl` is sorted by query id and rank. Each line contains the query, the passage, its grade (1 to 5) and
    gain (0 to 4). `confidence` is the probability that the passage is truly better than the next one in the full order.
    `score` is the ranker's score. A set without an order (`rank: null`) lists every graded passage by grade, then fused
    rank, with `unordered: true`.

    `judgments.jsonl` contains every graded passage with source and reason of the grade, and `unjudged.jsonl` the
    passages without a grade. `order.jsonl` contains every rank, `queries.jsonl` the queries with all additional data,
    `corpus.jsonl` the pooled passages (after an import, the whole corpus), and `runs/` the lists of each retriever.
    """

    FORMAT: ClassVar[str] = "jsonl"
    SIDECAR: ClassVar[str] = "golden.jsonl.meta.json"
    LABELS: ClassVar[str] = JUDGMENTS
    HOLDS: ClassVar[frozenset[GoldenContent] | None] = frozenset(GOLDEN_CONTENTS)

    @property
    def holds(self) -> frozenset[GoldenContent] | None:
        """All parts. They do not depend on the options, because grades are stored next to gains."""
        return self.HOLDS

    def numbers(self, golden: GoldenSet) -> GradeFormat | None:
        """Return the numeric format of the set."""
        return golden.form

    def write(self, golden: GoldenSet, folder: Path) -> list[Path]:
        """Write all files; see `Exporter.write`.

        Raises:
            DataError: the ranking contains an unknown query, or a passage that is not in its pool.
            ProviderError: the folder is not writable.
        """
        rows = {
            TOP: write_objects(folder / TOP, _objects(golden)),
            JUDGMENTS: write_objects(folder / JUDGMENTS, _judgments(golden)),
            UNJUDGED: write_objects(folder / UNJUDGED, _unjudged(golden)),
            ORDER: write_objects(folder / ORDER, _order(golden)),
            QUERIES: write_objects(folder / QUERIES, map(query_object, golden.queries())),
            CORPUS: write_passages(golden, folder / CORPUS, self.options.corpus),
        }
        lists = write_systems(golden, folder, folder / JUDGMENTS)
        files = {**{name: {"rows": count} for name, count in rows.items()}, **lists}
        return [
            *(folder / name for name in files),
            self.write_sidecar(golden, folder, files),
        ]


def _objects(golden: GoldenSet) -> Iterator[dict[str, object]]:
    """Yield the ranked top of each query, with one query in memory at a time. If the set was made without an order
    (`rank: null`), yield all graded passages.
    """
    if golden.by_grade:
        yield from _by_grade(golden)
        return
    for query in golden.by_query("pool", "order"):
        texts = {passage.doc_id: passage for passage in query.pool}
        for record in query.order:
            if record.rank <= golden.top and not (golden.partial and record.doc_id not in texts):
                found = _object(query, record, texts.get(record.doc_id))
                unknown = (
                    *(() if golden.sure else CONFIDENCE_FIELDS),
                    *(() if golden.form == AS_GRADED else ("grade", "gain")),
                )
                yield {name: value for name, value in found.items() if name not in unknown}


def _object(golden: GoldenQuery, record: RankRecord, passage: Passage | None) -> dict[str, object]:
    unordered = {"unordered": True} if record.unordered else {}
    said = {"score": record.score, "confidence": record.confidence, **unordered}
    return _jsonl_row(golden, record.doc_id, record.rank, record.grade, said, passage)


def _by_grade(golden: GoldenSet) -> Iterator[dict[str, object]]:
    for query in golden.by_query("pool", "grades"):
        texts = {passage.doc_id: passage for passage in query.pool}
        for rank, each in enumerate(query.by_grade, start=1):
            yield _jsonl_row(query, each.doc_id, rank, each.grade or 0, {"unordered": True}, texts.get(each.doc_id))


def _jsonl_row(
    golden: GoldenQuery, doc_id: str, rank: int, grade: int, said: Mapping[str, object], passage: Passage | None
) -> dict[str, object]:
    if passage is None or golden.query is None:
        lost = f"passage {doc_id} of query {golden.qid} is ranked but not in the pool"
        raise DataError(lost, remedy="run raggs audit on the run")
    asked = query_facts(golden.query)
    return {
        "qid": golden.qid,
        "query": golden.query.text,
        **{name: asked[name] for name in ("language", "answer", "references") if name in asked},
        **({"query_metadata": asked["metadata"]} if "metadata" in asked else {}),
        "rank": rank,
        "doc_id": doc_id,
        "grade": grade,
        "gain": GAIN.written(grade),
        **said,
        "title": passage.title,
        "text": passage.text,
        **passage_facts(passage),
    }


def _judgments(golden: GoldenSet) -> Iterator[dict[str, object]]:
    """Yield every graded passage, best fused passage first."""
    for query in golden.by_query("grades"):
        for graded in query.grades:
            if graded.grade is not None:
                known = {"gain": GAIN.written(graded.grade)} if golden.form == AS_GRADED else {}
                yield {
                    "qid": query.qid,
                    "doc_id": graded.doc_id,
                    "grade": graded.grade,
                    **known,
                    **_label_details(graded),
                }


def _unjudged(golden: GoldenSet) -> Iterator[dict[str, object]]:
    """Yield every pooled passage without a grade, best fused passage first."""
    for query in golden.by_query("grades"):
        for graded in query.grades:
            if graded.grade is None:
                yield {"qid": query.qid, "doc_id": graded.doc_id, **_label_details(graded)}


def _label_details(graded: JudgeRecord) -> dict[str, object]:
    """Return the details of a label that are known, such as its reason."""
    several = len(graded.grades) > 1 or graded.votes
    found = {
        "judge": graded.judge,
        "reason": graded.reason,
        "samples": list(graded.grades) if several else None,
        "votes": {member: list(votes) for member, votes in graded.votes.items()},
        "duplicate_of": graded.duplicate_of,
        "skipped": graded.skipped,
        "error": graded.error,
        **graded.model_dump(mode="json", include={*Validity.model_fields}),
    }
    return {name: value for name, value in found.items() if value}


def _order(golden: GoldenSet) -> Iterator[dict[str, object]]:
    unknown = {"v", *(() if golden.sure else CONFIDENCE_FIELDS), *(() if golden.form == AS_GRADED else ("grade",))}
    for query in golden.by_query("order"):
        for record in query.order:
            yield record.model_dump(mode="json", exclude=unknown)


class JsonlImporter(Importer):
    """JSON lines of raggs: judgments.jsonl, and the files next to it."""

    FORMAT = "jsonl"

    def read(self, path: Path) -> ImportedSet:
        """Read the set; see `Importer.read`."""
        labels = first_of(path, lines_JUDGMENTS) if path.is_dir() else path
        if labels is None:
            raise missing_file_error(path, self.FORMAT, lines_JUDGMENTS)
        folder = labels.parent
        grades = words_of([labels, *filter(None, [first_of(folder, lines_UNJUDGED)])], self.columns)
        order = first_of(folder, lines_ORDER)
        sure = all(row.keys() >= CONFIDENCE_FIELDS for _, row in read_objects(order)) if order else False
        orders = orders_of(order)
        if order and (strange := sorted(orders.keys() - grades.keys())):
            said = (
                f"has an order for {plural(len(strange), 'query')} without labels: "
                f"{', '.join(strange[:MAX_SHOWN_NAMES])}"
            )
            raise DataError(said, where=order, remedy=f"remove these lines, or add the labels to {labels.name}")
        lists = sorted(each for each in (folder / RUNS).glob("*.trec") if each.stat().st_size)
        questions, corpus = first_of(folder, files_QUERIES), first_of(folder, lines_CORPUS)
        return SetPieces(labels, grades, orders, sure, questions, corpus, lists).put_together()
