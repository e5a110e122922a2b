"""Query logs: one text per line, a table with a header, or JSON lines; all may be gzipped.

Only one column of a table, or one key of a JSON object, is read. Other data in a log (user, address) is private and
must not be copied.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from raggs.base.errors import DataError, UsageError
from raggs.base.files import read_lines
from raggs.base.jsonl import raw_lines, read_objects
from raggs.base.text import did_you_mean
from raggs.parts.queries.fields import ALIASES

DELIMITERS = {".csv": ",", ".tsv": "\t"}
OBJECTS = (".jsonl", ".ndjson")
LINES = (".txt", ".log", ".text")


def read_log(path: Path, column: str | None = None) -> Iterator[tuple[int, str | None]]:
    """Return an iterator over the entries of a log: line number (from 1), and text or None if the entry has no text.

    Args:
        path: a .txt, .log, .text, .csv, .tsv, .jsonl or .ndjson file, optionally gzipped.
        column: column or key of the text. If omitted, the first of text, query, question and user_input that exists,
            or the only column of a table.

    Raises:
        UsageError: the suffix is unknown, or `column` is given for a file without columns.
        NotFoundError: the file is missing or unreadable.
        DataError: it is not a file, not UTF-8, does not match its suffix, or lacks the column.
    """
    suffix = path.with_suffix("").suffix.lower() if path.suffix == ".gz" else path.suffix.lower()
    if suffix in DELIMITERS:
        return _of_table(path, DELIMITERS[suffix], column)
    if suffix in OBJECTS:
        return _of_objects(path, column)
    if suffix not in LINES:
        known = ", ".join((*LINES, *DELIMITERS, *OBJECTS))
        raise UsageError(f"{path}: unknown log format", remedy=f"use one of {known}, optionally gzipped")
    if column is not None:
        raise UsageError(f"{path} has one text per line, not columns", remedy="omit --column")
    return ((number, text) for number, text in raw_lines(path))


def _of_objects(path: Path, column: str | None) -> Iterator[tuple[int, str | None]]:
    found, seen = False, set[str]()
    for number, row in read_objects(path):
        name = column if column is not None else next((each for each in ALIASES["text"] if each in row), None)
        value = None if name is None else row.get(name)
        found = found or (name is not None and name in row)
        seen.update(row)
        yield number, value if isinstance(value, str) else None
    if seen and not found:
        raise _missing_column_error(path, column, sorted(seen))


def _of_table(path: Path, delimiter: str, column: str | None) -> Iterator[tuple[int, str | None]]:
    line = 1
    reader = csv.reader(_decode_lines(path), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        place = _column(path, header, column)
        line = reader.line_num + 1
        for row in reader:
            if any(cell.strip() for cell in row):
                yield line, row[place] if place < len(row) else None
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"not valid CSV ({error})", where=path, line=line, remedy="check the quotes") from error


def _decode_lines(path: Path) -> Iterator[str]:
    for number, line in enumerate(read_lines(path), start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            remedy = "convert the file to UTF-8"
            raise DataError("not UTF-8", where=path, line=number, remedy=remedy) from error


def _column(path: Path, header: Sequence[str], column: str | None) -> int:
    """Return the number of the column that contains the texts."""
    wanted = (column,) if column is not None else ALIASES["text"]
    for name in wanted:
        if name in header:
            return header.index(name)
    if column is None and len(header) <= 1:
        return 0
    raise _missing_column_error(path, column, header)


def _missing_column_error(path: Path, column: str | None, known: Sequence[str]) -> DataError:
    if column is None:
        said = f"no column {', '.join(ALIASES['text'])}"
        return DataError(said, where=path, remedy=f"set --column to one of: {', '.join(known)}")
    return DataError(f"no column {column!r}", where=path, remedy=did_you_mean(column, known))
