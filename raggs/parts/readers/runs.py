"""Runs in the formats of the field, into columns: TREC, CSV with a header, ranx JSON; plain or ``.gz``.

TREC runs into columns: the fast way of `raggs.parts.readers.tokens`, and `raggs.base.trec` where that is not
sure.
"""

from __future__ import annotations

import math
import zlib
from array import array
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from raggs.base.arrays import Floats, Ints, Vectors
from raggs.base.errors import DataError
from raggs.base.tables import NO_COLUMNS, ColumnNames
from raggs.base.trec import RankOrder, as_number, read_scored
from raggs.metrics.columns import Run
from raggs.parts.readers.shapes import Cell, Shape, line_cells, nested_cells, replayable, shape_of, table_cells
from raggs.parts.readers.tokens import CHUNK, OddError, numbers, read_table

COLUMNS, RANK, SCORE = 6, 3, 4


def read_trec_run(path: Path, size: int = CHUNK) -> Run:
    """The run in a file, or in a ``.gz`` of one.

    Raises:
        NotFoundError, DataError: as `raggs.base.trec.read_scored`.
    """
    run = quick_run(path, size)
    return _slow(path) if run is None else run


def quick_run(path: Path, size: int = CHUNK) -> Run | None:
    """The run in a file, read `size` bytes at a time; None where it is odd, empty, wrong or cannot be read.

    Raises:
        DataError: its scores rise with the rank.
    """
    try:
        found = read_table(path, COLUMNS, SCORE, numbers, size, RANK)
    except (OddError, OSError, EOFError, zlib.error):
        return None
    run = Run(tuple(name.decode() for name in found.known), found.query, found.number, found.docs)
    if run.twice() is not None:
        return None
    return replace(run, note=rank_order(found.query, found.rank, found.number).checked(path))


def rank_order(query: Ints, rank: Floats, score: Floats) -> RankOrder:
    """What `RankOrder` finds in the rows of a file, all at once."""
    found = RankOrder()
    turn = np.sign(np.diff(rank)) * np.sign(np.diff(score))
    turn[query[1:] != query[:-1]] = 0
    found.disagree, found.agree = int(np.count_nonzero(turn > 0)), int(np.count_nonzero(turn < 0))
    return found


def _slow(path: Path) -> Run:
    qids, docs, scores = [], [], array("d")
    order = RankOrder()
    for row in read_scored(path, order):
        qids.append(row.qid)
        docs.append(row.doc_id)
        scores.append(row.score)
    run = Run.from_columns(qids, docs, np.frombuffer(scores) if scores else np.empty(0))
    return replace(run, note=order.checked(path))


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
