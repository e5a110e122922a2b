"""Passages as rows of a table: their columns, a sum for each row, and the line that the hash of all is made of."""

from __future__ import annotations

import hashlib
import json

from raggs.artifacts import Passage, Span
from raggs.hashing import canonical_json

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
COLUMNS = "doc_id, title, text, metadata, span, sum"
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
    """The line of a passage that the hash of a corpus is made of."""
    span = row[4]
    return canonical_json(row[:4] if span is None else (*row[:4], span)).encode() + b"\n"


def _sum(doc_id: str, title: str, text: str, metadata: str, span: str | None) -> bytes:
    """Of one row; its columns are parted by what no JSON and no id holds."""
    return hashlib.blake2b("\0".join((doc_id, metadata, span or "", title, text)).encode(), digest_size=8).digest()
