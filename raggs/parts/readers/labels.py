"""Judgments in the formats of the field, into columns: TREC qrels, BEIR tables, CSV with a header, ranx JSON.

TREC qrels into columns: the fast way of `raggs.parts.readers.tokens`. It has no slow way of its own; see
`labels`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raggs.base.arrays import ByteTexts, Ints
from raggs.base.errors import DataError
from raggs.base.tables import NO_COLUMNS, ColumnNames
from raggs.base.trec import INTEGER, Label, read_qrels
from raggs.metrics.columns import IdColumn, Qrels, Scale, usual_scale
from raggs.parts.readers.shapes import Cell, Shape, line_cells, nested_cells, replayable, shape_of, table_cells
from raggs.parts.readers.tokens import OddError, numbers, read_table

COLUMNS, GRADE = 4, 3
DIGITS = 9  # more are no grade


class Labels(NamedTuple):
    """Labels as columns: the sorted queries; each label's query among them, non-decreasing; its grade; its passage."""

    qids: tuple[str, ...]
    query: Ints
    grade: Ints
    docs: IdColumn


def quick_labels(path: Path) -> Labels | None:
    """The labels in a file, or in a ``.gz`` of one; None where it is odd, empty or cannot be read."""
    try:
        known, query, docs, grade, _ = read_table(path, COLUMNS, GRADE, _grades)
    except (OddError, OSError, EOFError, zlib.error):
        return None
    query = _places(known)[query]
    order = np.argsort(query, kind="stable")
    return Labels(
        tuple(name.decode() for name in sorted(known)), query[order], grade[order], IdColumn([docs.take(order)])
    )


def _grades(texts: ByteTexts) -> Ints:
    characters = texts.view(np.uint8).reshape(len(texts), -1)
    figures = (characters >= ord("0")) & (characters <= ord("9"))
    signs = (characters == ord("-")) | (characters == ord("+"))
    if not (figures | signs | (characters == 0)).all() or (figures.sum(axis=1) > DIGITS).any():
        raise OddError
    return numbers(texts).astype(np.int64)


def _places(known: list[bytes]) -> Ints:
    """Shape (queries,): the place of each query in the order of all."""
    places = np.empty(len(known), dtype=np.int64)
    places[np.argsort(np.array(known))] = np.arange(len(known))
    return places


NAME_IT = (
    "raggs eval and raggs sweep take --scale 0-{high} for labels that start from 0, --scale 1-5 to insist; for other "
    "commands, a label 0 says that they start from 0"
)


def read_labels(path: Path, columns: ColumnNames = NO_COLUMNS) -> Iterator[Label]:
    """The labels of a file in any known format; line 0 where the format has no lines.

    Args:
        path: the file.
        columns: which column of a table is which, as `--column` says.

    Raises:
        NotFoundError, DataError: the file cannot be read, or a line of it cannot be right.
    """
    with replayable(path) as file:
        match shape_of(file, columns):
            case Shape.NESTED:
                yield from (_label(cell, file) for cell in nested_cells(file))
            case Shape.LINES:
                yield from (_label(cell, file) for cell in line_cells(file, columns, graded=True))
            case Shape.TABLE:
                yield from (_label(cell, file) for cell in table_cells(file, columns, graded=True))
            case Shape.TREC:
                yield from read_qrels(file)


def read_judgments(path: Path, scale: Scale | None = None, columns: ColumnNames = NO_COLUMNS) -> Qrels:
    """The judgments in a file.

    Args:
        path: the file.
        scale: what the grades mean; if it is left out, `usual_scale` says.
        columns: which column of a table is which, as `--column` says.

    Raises:
        NotFoundError, DataError: as `read_labels`; a grade outside the scale; no label at all; labels from which
            the scale cannot be guessed.
    """
    with replayable(path) as file:
        return _judgments(file, scale, columns)


def _judgments(path: Path, scale: Scale | None, columns: ColumnNames) -> Qrels:
    if shape_of(path, columns) is Shape.TREC and (quick := quick_labels(path)) is not None:
        with suppress(DataError):  # the other way names the line
            return Qrels(*quick, scale or _guessed(quick.grade, path))
    labels = list(read_labels(path, columns))
    if not labels:
        raise DataError("holds no labels", where=path, remedy="one label a line: qid 0 docid grade")
    grades = np.array([label.grade for label in labels], dtype=np.int64)
    known = scale or _guessed(grades, path)
    outside = np.flatnonzero(~known.holds(grades))
    if len(outside):
        wrong = labels[int(outside[0])]
        raise DataError(
            f"query {wrong.qid}, passage {wrong.doc_id}: grade {wrong.grade} lies outside the scale "
            f"{known.low} to {known.high}",
            where=path,
            line=wrong.line or None,
            remedy="correct it, or name the scale, e.g. --scale 0-7",
        )
    return Qrels.from_columns([one.qid for one in labels], [one.doc_id for one in labels], grades, known)


def _guessed(grades: np.ndarray[tuple[int], np.dtype[np.int64]], path: Path) -> Scale:
    return usual_scale(np.unique(grades).tolist(), where=path, remedy=NAME_IT)


def _label(cell: Cell, path: Path) -> Label:
    value = cell.value.removesuffix(".0")  # as libraries of tables write whole numbers
    if not INTEGER.fullmatch(value):
        message = f"grade {cell.value!r} of query {cell.qid}, passage {cell.doc_id} is not an integer"
        raise DataError(message, where=path, line=cell.line or None, remedy="grades are whole numbers")
    return Label(cell.line, cell.qid, cell.doc_id, int(value))
