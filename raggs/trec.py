"""TREC files: qrels (``qid 0 docid grade``) and runs (``qid Q0 docid rank score tag``).

Columns are separated by white space; lines that begin with ``#`` are comments; a ``.gz`` file is read as it is.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from raggs.errors import DataError, NotFoundError


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
    seen: dict[tuple[str, str], int] = {}
    for number, columns in _rows(path, 4, "qid 0 docid grade"):
        qid, _, doc_id, grade = columns
        try:
            value = int(grade)
        except ValueError:
            raise DataError(f"grade {grade!r} is not an integer", where=path, line=number, remedy="grades are whole numbers") from None
        _once(seen, (qid, doc_id), path, number)
        yield Label(number, qid, doc_id, value)


def read_run(path: Path) -> Iterator[Scored]:
    """The hits of a run file, in its order; its rank column is not used.

    Raises:
        NotFoundError: the file is missing or unreadable.
        DataError: not 6 columns, a score that is no finite number, or a (qid, docid) twice; with file and line.
    """
    seen: dict[tuple[str, str], int] = {}
    for number, columns in _rows(path, 6, "qid Q0 docid rank score tag"):
        qid, _, doc_id, _, score, _ = columns
        try:
            value = float(score)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise DataError(f"score {score!r} is not a finite number", where=path, line=number, remedy="remove or repair the line")
        _once(seen, (qid, doc_id), path, number)
        yield Scored(number, qid, doc_id, value)


def _once(seen: dict[tuple[str, str], int], key: tuple[str, str], path: Path, number: int) -> None:
    first = seen.setdefault(key, number)
    if first != number:
        raise DataError(f"query {key[0]} and passage {key[1]} stand twice (first in line {first})", where=path, line=number, remedy="keep one")


def _rows(path: Path, count: int, form: str) -> Iterator[tuple[int, list[str]]]:
    for number, text in _lines(path):
        columns = text.split()
        if not columns or text.startswith("#"):
            continue
        if len(columns) != count:
            raise DataError(f"{len(columns)} columns instead of {count}", where=path, line=number, remedy=f"expected: {form}")
        yield number, columns


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        file = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
        with file:
            for number, line in enumerate(file, start=1):
                try:
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise DataError("not UTF-8", where=path, line=number, remedy="convert the file to UTF-8") from error
    except FileNotFoundError as error:
        raise NotFoundError("no such file", where=path, remedy="check the path") from error
    except (OSError, EOFError) as error:
        raise NotFoundError(f"cannot be read ({error})", where=path, remedy="check the file") from error
