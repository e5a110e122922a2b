"""Runs in the formats of the field, into columns: TREC, CSV with a header, ranx JSON; plain or ``.gz``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from raggs.base.arrays import Vectors
from raggs.base.errors import DataError
from raggs.base.tables import NO_COLUMNS, ColumnNames
from raggs.base.trec import RankOrder, as_number
from raggs.metrics.columns import Run
from raggs.parts.readers.pipes import replayable
from raggs.parts.readers.shapes import Cell, Shape, line_cells, nested_cells, shape_of, table_cells
from raggs.parts.readers.trecrun import read_trec_run


def read_run(path: Path, columns: ColumnNames = NO_COLUMNS) -> Run:
    """The run in a file.

    Args:
        path: the file.
        columns: which column of a table is which, as `--column` says.

    Raises:
        NotFoundError, DataError: the file cannot be read, or a line of it cannot be right; it holds no rows; its
            scores rise with the rank.
    """
    with replayable(path) as file:
        return _read(file, columns)


def read_two_logits(path: Path) -> tuple[Run, Vectors]:
    """Return the run in a table or JSON lines with two logits a passage: `logit_no` and `logit_yes`.

    Returns:
        The run, whose scores are logit_yes - logit_no, and the logits, shape (rows, 2), no before yes, float32.

    Raises:
        NotFoundError, DataError: as `read_run`; the file is of another form, or lacks one of the columns.
    """
    with replayable(path) as file:
        shape = shape_of(file, {"score": "logit_yes"})
        remedy = "give a table or JSON lines with qid, doc_id, logit_no and logit_yes"
        if shape not in (Shape.LINES, Shape.TABLE):
            raise DataError("holds no two logits a passage", where=path, remedy=remedy)
        cells = line_cells if shape is Shape.LINES else table_cells
        try:
            no, yes = (list(cells(file, {"score": name}, graded=False)) for name in ("logit_no", "logit_yes"))
        except DataError as error:
            error.remedy = remedy
            raise
    pairs = np.array([[_score(a, path), _score(b, path)] for a, b in zip(no, yes, strict=True)], dtype=np.float64)
    if not len(pairs):
        raise DataError("holds no rows", where=path, remedy="one passage a line")
    run = Run.from_columns([cell.qid for cell in yes], [cell.doc_id for cell in yes], pairs[:, 1] - pairs[:, 0])
    return run, pairs.astype(np.float32)


def _read(path: Path, columns: ColumnNames) -> Run:
    match shape_of(path, columns):
        case Shape.NESTED:
            run = _run(nested_cells(path), path)
        case Shape.LINES:
            run = _run(line_cells(path, columns, graded=False), path)
        case Shape.TABLE:
            run = _run(table_cells(path, columns, graded=False), path)
        case Shape.TREC:
            run = read_trec_run(path)
    if not len(run.query):
        raise DataError("holds no rows", where=path, remedy="one passage a line: qid Q0 docid rank score tag")
    return run


def _run(cells: Iterable[Cell], path: Path) -> Run:
    rows, order = list(cells), RankOrder()
    scores = [_score(cell, path) for cell in rows]
    for cell, score in zip(rows, scores, strict=True):
        order.note(cell.qid, cell.rank, score)
    run = Run.from_columns([cell.qid for cell in rows], [cell.doc_id for cell in rows], scores)
    return replace(run, note=order.checked(path))


def _score(cell: Cell, path: Path) -> float:
    score = as_number(cell.value)
    if not math.isfinite(score):
        message = f"score {cell.value!r} of query {cell.qid}, passage {cell.doc_id} is not a finite number"
        raise DataError(message, where=path, line=cell.line or None, remedy="remove or repair it")
    return score
