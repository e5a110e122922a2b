"""Passages as rows of a table: their columns, a sum for each row, and the line that the hash of all is made of."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping

from raggs.base.artifacts import Passage, Span
from raggs.base.errors import DataError
from raggs.base.hashing import canonical_json
from raggs.base.text import HYGIENE, fold_quotes, id_problem

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE passages (
    position INTEGER PRIMARY KEY,
    doc_id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    metadata TEXT NOT NULL,
    span TEXT,
    sum BLOB NOT NULL
);
"""
CLEANED = f"hygiene {HYGIENE}\n".encode()
COLUMNS = "doc_id, title, text, metadata, span, sum"
REPORT_EVERY = 1000
Progress = Callable[[str, int, int], None]
Row = tuple[str, str, str, str, str | None, bytes]


def row_of(passage: Passage) -> Row:
    """The columns of a passage."""
    span = None if passage.span is None else canonical_json(passage.span.model_dump())
    metadata = canonical_json(dict(passage.metadata))
    own = _sum(passage.doc_id, passage.title, passage.text, metadata, span)
    return passage.doc_id, passage.title, passage.text, metadata, span, own


def passage_of(row: Row) -> Passage:
    """The passage that a row holds.

    Raises:
        ValueError: it was altered, or is none.
    """
    doc_id, title, text, metadata, span, known = row
    if _sum(doc_id, title, text, metadata, span) != known:
        raise ValueError(f"passage {doc_id} is not what was stored")
    place = None if span is None else Span.model_validate_json(span)
    return Passage(doc_id=doc_id, title=title, text=text, span=place, metadata=json.loads(metadata))


def line_of(row: Row) -> bytes:
    """What the hash of a corpus is made of: a line of each passage, and one more where hygiene makes others read on."""
    span = row[4]
    line = canonical_json(row[:4] if span is None else (*row[:4], span)).encode() + b"\n"
    return line + CLEANED if is_cleaned(row) else line


def is_cleaned(row: Row) -> bool:
    """Whether Unicode hygiene changes what is read of a passage."""
    passage = Passage.model_construct(doc_id=row[0], title=row[1], text=row[2])
    return passage.content != passage.raw


def _sum(doc_id: str, title: str, text: str, metadata: str, span: str | None) -> bytes:
    """Of one row; its columns are parted by what no JSON and no id holds."""
    return hashlib.blake2b("\0".join((doc_id, metadata, span or "", title, text)).encode(), digest_size=8).digest()


def ingest(connection: sqlite3.Connection, source: Iterable[Passage], progress: Progress | None) -> Mapping[str, str]:
    """Insert every passage.

    Args:
        progress: called with ("passages", done, 0) now and then.

    Returns:
        `content_hash` of all rows, their number `count`, how many of them hygiene changes: `cleaned`, and how many hold
        typographic quotation marks: `folded`.

    Raises:
        DataError: no passage at all, two with the same id, or an id that files would lose.
    """
    digest, count, cleaned, folded = hashlib.sha256(), 0, 0, 0
    for position, passage in enumerate(source):
        if problem := id_problem(passage.doc_id):
            said = f"passage {position + 1} of the corpus: id {passage.doc_id!a} {problem}"
            raise DataError(said, remedy="rename it")
        row = row_of(passage)
        try:
            connection.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?)", (position, *row))
        except sqlite3.IntegrityError as error:
            raise _duplicate(connection, passage.doc_id, position) from error
        line = line_of(row)
        digest.update(line)
        cleaned += line.endswith(CLEANED)
        folded += fold_quotes(passage.content) != passage.content
        count = position + 1
        if progress is not None and count % REPORT_EVERY == 0:
            progress("passages", count, 0)
    if count == 0:
        raise DataError(
            "the corpus is empty", remedy="point corpus at a file or a folder that holds at least one passage"
        )
    if progress is not None:
        progress("passages", count, count)
    return {
        "content_hash": digest.hexdigest(),
        "count": str(count),
        "cleaned": str(cleaned),
        "folded": str(folded),
    }


def _duplicate(connection: sqlite3.Connection, doc_id: str, position: int) -> DataError:
    first = connection.execute("SELECT position FROM passages WHERE doc_id = ?", (doc_id,)).fetchone()[0]
    return DataError(
        f"two passages have the id {doc_id!r}: number {first + 1} and number {position + 1} of the corpus",
        remedy="give each passage an id of its own",
    )
