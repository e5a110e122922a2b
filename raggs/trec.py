"""TREC files: qrels (``qid 0 docid grade``) and runs (``qid Q0 docid rank score tag``).

Columns are separated by white space; lines that begin with ``#`` are comments, save those that read as a row: whether
such a query counts is nothing to be guessed. A ``.gz`` file is read as it is.
Reading is one pass; what stays in memory is each (qid, docid) seen, to find what stands twice.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from raggs.errors import DataError
from raggs.jsonl import raw_lines

INTEGER = re.compile(r"[+-]?[0-9]{1,9}")


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


class Seen:
    """Where each (qid, docid) of a file stands."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: defaultdict[str, dict[str, int]] = defaultdict(dict)

    def note(self, qid: str, doc_id: str, number: int) -> None:
        first = self._lines[qid].setdefault(doc_id, number)
        if first != number:
            message = f"query {qid} and passage {doc_id} stand twice (first in line {first})"
            raise DataError(message, where=self._path, line=number, remedy="keep one")


def read_qrels(path: Path) -> Iterator[Label]:
    """The labels of a qrels file, in its order.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: not UTF-8, not 4 columns, a NUL, a grade that is no integer, a (qid, docid) twice, or a comment that
            reads as a label; with file and line.
    """
    seen = Seen(path)
    for number, (qid, _, doc_id, grade) in _rows(path, "qid 0 docid grade", lambda row: _is_grade(row[3])):
        if not _is_grade(grade):
            message = f"grade {grade!r} is not an integer"
            raise DataError(message, where=path, line=number, remedy="grades are whole numbers")
        seen.note(qid, doc_id, number)
        yield Label(number, qid, doc_id, int(grade))


def read_scored(path: Path) -> Iterator[Scored]:
    """The hits of a run file, in its order; its rank column is not used.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: not UTF-8, not 6 columns, a NUL, a score that is no finite number, a (qid, docid) twice, or a comment
            that reads as a hit; with file and line.
    """
    seen = Seen(path)
    form = "qid Q0 docid rank score tag"
    for number, (qid, _, doc_id, _, text, _) in _rows(path, form, lambda row: math.isfinite(as_number(row[4]))):
        score = as_number(text)
        if not math.isfinite(score):
            message = f"score {text!r} is not a finite number"
            raise DataError(message, where=path, line=number, remedy="remove or repair the line")
        seen.note(qid, doc_id, number)
        yield Scored(number, qid, doc_id, score)


def as_number(text: str) -> float:
    """The value of `text`, or NaN where it is none; digits of other scripts, which other tools read as 0, are none."""
    try:
        return math.nan if "_" in text or not text.isascii() else float(text)
    except ValueError:
        return math.nan


def _is_grade(text: str) -> bool:
    return INTEGER.fullmatch(text) is not None


def _rows(path: Path, form: str, counts: Callable[[list[str]], bool]) -> Iterator[tuple[int, list[str]]]:
    """The lines of a file in columns as `form` names them; `counts`: whether such columns hold the number they need."""
    count = len(form.split())
    for number, text in raw_lines(path):
        columns = text.split()
        if text.startswith("#"):
            if columns[0] != "#" and len(columns) == count and counts(columns):
                message = f"begins with # as a comment does, and reads as a row of query {columns[0]!r}"
                remedy = "rename the query, or write a space after the # of a comment"
                raise DataError(message, where=path, line=number, remedy=remedy)
            continue
        if "\0" in text:
            raise DataError("holds NUL, which is no part of an id", where=path, line=number, remedy="remove it")
        if len(columns) != count:
            message = f"{len(columns)} columns instead of {count}"
            raise DataError(message, where=path, line=number, remedy=f"expected: {form}; ids hold no spaces")
        yield number, columns
