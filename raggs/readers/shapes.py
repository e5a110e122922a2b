"""Telling file formats apart by their first line, and reading those that are no TREC file.

A nested file is one JSON object ``{qid: {doc_id: number}}`` (ranx); a table has a header that names its columns
(BEIR's TSV, CSV); JSON lines have an object with the same names for each number. Ids hold no white space, as TREC
tools could not read them back.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from raggs.errors import DataError
from raggs.inputs import MOST_WHOLE
from raggs.jsonl import raw_lines, read_objects
from raggs.text import one_line
from raggs.trec import INTEGER, Seen

QUERY_COLUMNS = ("query-id", "query_id", "q_id", "qid", "query")
DOC_COLUMNS = ("corpus-id", "corpus_id", "doc_id", "docid", "docno", "doc", "passage_id", "document_id")
GRADE_COLUMNS = ("grade", "score", "relevance", "rel", "label")
SCORE_COLUMNS = ("score",)
DELIMITERS = ("\t", ",", ";")
QRELS = ("qid", "0", "docid", "grade")
RUN = ("qid", "Q0", "docid", "rank", "score", "tag")
FORM = "write {qid: {doc_id: number}}"


SURROGATE = re.compile("[\ud800-\udfff]")


class Shape(Enum):
    TREC = "trec"
    TABLE = "table"
    NESTED = "nested"
    LINES = "lines"


class Cell(NamedTuple):
    """A number for a query and a passage, as text; line 0 where the format has no lines."""

    line: int
    qid: str
    doc_id: str
    value: str


def shape_of(path: Path) -> Shape:
    """The format of a file, by its first line.

    Raises:
        NotFoundError, DataError: as `raw_lines`.
    """
    first = next(raw_lines(path, MOST_WHOLE), (0, ""))[1].strip()
    if _trec(first.split()):
        return Shape.TREC  # also where an id looks like the beginning of another format
    if first.startswith("{"):
        return Shape.LINES if _keyed(first) else Shape.NESTED
    return Shape.TABLE if _delimiter(first) else Shape.TREC


def table_cells(path: Path, *, graded: bool) -> Iterator[Cell]:
    """The rows of a table with a header.

    Args:
        path: the file.
        graded: whether the numbers are grades, else scores.

    Raises:
        DataError: the header lacks a column, a row has other columns than it, or an id is wrong.
    """
    lines = raw_lines(path)
    first, header = next(lines)
    delimiter = _delimiter(header) or ","
    names = [name.lower() for name in _row(header, delimiter, path, first)]
    places = (
        _place(names, QUERY_COLUMNS, path),
        _place(names, DOC_COLUMNS, path),
        _place(names, GRADE_COLUMNS if graded else SCORE_COLUMNS, path),
    )
    seen = Seen(path)
    for number, text in lines:
        row = _row(text, delimiter, path, number)
        if len(row) != len(names):
            message = f"{len(row)} columns, the header has {len(names)}"
            raise DataError(message, where=path, line=number, remedy="give each row a cell for each column")
        qid, doc_id, value = (row[place] for place in places)
        check_ids(path, number, qid, doc_id)
        seen.note(qid, doc_id, number)
        yield Cell(number, qid, doc_id, value)


def line_cells(path: Path, *, graded: bool) -> Iterator[Cell]:
    """The numbers of JSON lines, an object each.

    Args:
        path: the file.
        graded: whether the numbers are grades, else scores.

    Raises:
        DataError: an object lacks a name, or an id or number is wrong.
    """
    seen = Seen(path)
    for number, row in read_objects(path):
        names = list(row)
        wanted = (QUERY_COLUMNS, DOC_COLUMNS, GRADE_COLUMNS if graded else SCORE_COLUMNS)
        qid, doc_id, value = (row[names[_place(names, each, path, number)]] for each in wanted)
        if not isinstance(qid, str) or not isinstance(doc_id, str):
            raise DataError("an id is no text", where=path, line=number, remedy="write ids as texts")
        check_ids(path, number, qid, doc_id)
        seen.note(qid, doc_id, number)
        yield Cell(number, qid, doc_id, json.dumps(value))


def nested_cells(path: Path) -> Iterator[Cell]:
    """The numbers of ``{qid: {doc_id: number}}``.

    Raises:
        DataError: not such an object, or a key that stands twice.
    """
    for qid, inner in _object(path).items():
        if not isinstance(inner, dict):
            message = f"query {qid} has no object of passages"
            raise DataError(message, where=path, remedy=FORM)
        for doc_id, value in inner.items():
            if not isinstance(value, int | float) or isinstance(value, bool):
                message = f"query {qid}, passage {doc_id}: {json.dumps(value)} is not a number"
                raise DataError(message, where=path, remedy=FORM)
            check_ids(path, None, qid, doc_id)
            yield Cell(0, qid, doc_id, str(int(value) if isinstance(value, float) and value.is_integer() else value))


def _object(path: Path) -> dict[str, Any]:
    text = "".join(line for _, line in raw_lines(path, MOST_WHOLE))
    try:
        found = json.loads(text, object_pairs_hook=lambda pairs: _once(pairs, path))
    except json.JSONDecodeError as error:
        raise DataError(f"not valid JSON ({error.msg})", where=path, line=error.lineno, remedy="mend it") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a thousand brackets
        raise DataError(f"not valid JSON ({error})", where=path, remedy=FORM) from error
    if not isinstance(found, dict):
        raise DataError("not a JSON object", where=path, remedy=FORM)
    return found


def _once(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{one_line(twice)!r} stands twice", where=path, remedy="keep one")
    return found


def _trec(columns: list[str]) -> bool:
    """Whether the columns of a first line can only be those of a TREC file."""
    if len(columns) == len(QRELS):
        return INTEGER.fullmatch(columns[-1]) is not None
    return len(columns) == len(RUN) and columns[1] == RUN[1]


def _keyed(line: str) -> bool:
    """Whether a line is an object that names a query and a passage."""
    try:
        found = json.loads(line) if any(f'"{name}"' in line for name in DOC_COLUMNS) else {}
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and bool(found.keys() & set(QUERY_COLUMNS) and found.keys() & set(DOC_COLUMNS))


def _delimiter(header: str) -> str | None:
    """What separates the columns of a header; None where the line is no header of ours."""
    for delimiter in DELIMITERS:
        names = {name.strip().strip('"').lower() for name in header.split(delimiter)}
        if len(names) > 2 and names & set(QUERY_COLUMNS) and names & set(DOC_COLUMNS):
            return delimiter
    return None


def _row(text: str, delimiter: str, path: Path, line: int) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([text.rstrip("\r\n")], delimiter=delimiter))]
    except csv.Error as error:
        raise DataError(f"not a row of a table ({error})", where=path, line=line, remedy="mend it") from error


def _place(names: list[str], wanted: tuple[str, ...], path: Path, line: int = 1) -> int:
    for name in wanted:
        if name in names:
            return names.index(name)
    raise DataError(
        f"no column {' or '.join(wanted)} in the header: {', '.join(names)}",
        where=path,
        line=line,
        remedy="name the columns in the first line",
    )


def check_ids(path: Path, line: int | None, *ids: str) -> None:
    """Refuse ids that files cannot hold.

    Raises:
        DataError: one is empty, or holds white space, NUL, or half of a surrogate pair.
    """
    for name in ids:
        if name.split() != [name]:
            said = f"id {one_line(name)!r} holds white space" if name.strip() else "an id is empty"
            raise DataError(said, where=path, line=line, remedy="ids are words without spaces")
        if "\0" in name or SURROGATE.search(name):
            raise DataError(f"id {name!a} is no text", where=path, line=line, remedy="write ids in Unicode")
