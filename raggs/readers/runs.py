"""Runs in the formats of the field, into columns: TREC, CSV with a header, ranx JSON; plain or ``.gz``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from raggs.errors import DataError
from raggs.metrics.columns import Run
from raggs.readers.pipes import replayable
from raggs.readers.shapes import Cell, Shape, line_cells, nested_cells, shape_of, table_cells
from raggs.readers.trecrun import read_trec_run
from raggs.trec import as_number


def read_run(path: Path) -> Run:
    """The run in a file.

    Raises:
        NotFoundError, DataError: the file cannot be read, or a line of it cannot be right; it holds no rows.
    """
    with replayable(path) as file:
        return _read(file)


def _read(path: Path) -> Run:
    match shape_of(path):
        case Shape.NESTED:
            run = _run(nested_cells(path), path)
        case Shape.LINES:
            run = _run(line_cells(path, graded=False), path)
        case Shape.TABLE:
            run = _run(table_cells(path, graded=False), path)
        case Shape.TREC:
            run = read_trec_run(path)
    if not len(run.query):
        raise DataError("holds no rows", where=path, remedy="one passage a line: qid Q0 docid rank score tag")
    return run


def _run(cells: Iterable[Cell], path: Path) -> Run:
    rows = list(cells)
    scores = [_score(cell, path) for cell in rows]
    return Run.from_columns([cell.qid for cell in rows], [cell.doc_id for cell in rows], scores)


def _score(cell: Cell, path: Path) -> float:
    score = as_number(cell.value)
    if not math.isfinite(score):
        message = f"score {cell.value!r} of query {cell.qid}, passage {cell.doc_id} is not a finite number"
        raise DataError(message, where=path, line=cell.line or None, remedy="remove or repair it")
    return score
