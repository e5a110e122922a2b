"""TREC files: qrels (``qid 0 docid grade``) and runs (``qid Q0 docid rank score tag``).

Columns are separated by white space; lines that begin with ``#`` are comments; a ``.gz`` file is read as it is. Rows
come in the file's order with their line numbers: sorting, and what a negative grade means, are the caller's business.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from raggs.errors import DataError
from raggs.jsonl import raw_lines

Seen = defaultdict[str, dict[str, int]]


class Label(NamedTuple):
    """A judged passage; a negative grade means pooled but unjudged."""

    line: int
    qid: str
    doc_id: str
    grade: int


class Scored(NamedTuple):
    """A retrieved passage."""

    line: int
    qid: str
    doc_id: str
    score: float


def read_qrels(path: Path) -> Iterator[Label]:
    """The labels of a qrels file, in its order.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: not 4 columns, a grade that is no integer, or a (qid, docid) twice; with file and line.
    """
    seen: Seen = defaultdict(dict)
    for line, (qid, _, doc_id, grade) in _rows(path, 4, "qid 0 docid grade"):
        try:
            value = int(grade)
        except ValueError:
            message = f"grade {grade!r} is not an integer"
            raise DataError(message, where=path, line=line, remedy="grades are whole numbers") from None
        _once(seen, qid, doc_id, path, line)
        yield Label(line, qid, doc_id, value)


def read_run(path: Path) -> Iterator[Scored]:
    """The hits of a run file, in its order; its rank column is not used.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: not 6 columns, a score that is no finite number, or a (qid, docid) twice; with file and line.
    """
    seen: Seen = defaultdict(dict)
    for line, (qid, _, doc_id, _, score, _) in _rows(path, 6, "qid Q0 docid rank score tag"):
        try:
            value = float(score)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            message = f"score {score!r} is not a finite number"
            raise DataError(message, where=path, line=line, remedy="remove or repair the line")
        _once(seen, qid, doc_id, path, line)
        yield Scored(line, qid, doc_id, value)


def _once(seen: Seen, qid: str, doc_id: str, path: Path, line: int) -> None:
    first = seen[qid].setdefault(doc_id, line)
    if first != line:
        message = f"query {qid} and passage {doc_id} stand twice (first in line {first})"
        raise DataError(message, where=path, line=line, remedy="keep one of them")


def _rows(path: Path, count: int, form: str) -> Iterator[tuple[int, list[str]]]:
    for line, text in raw_lines(path):
        if text.startswith("#"):
            continue
        columns = text.split()
        if len(columns) != count:
            message = f"{len(columns)} columns instead of {count}"
            raise DataError(message, where=path, line=line, remedy=f"expected: {form}")
        yield line, columns
