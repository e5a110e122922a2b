"""TREC runs into columns: the fast way of `raggs.readers.tokens`, and `raggs.trec` where that is not sure."""

from __future__ import annotations

import zlib
from array import array
from pathlib import Path

import numpy as np

from raggs.metrics.columns import Run
from raggs.readers.tokens import CHUNK, OddError, numbers, read_table
from raggs.trec import read_scored

COLUMNS, SCORE = 6, 4


def read_trec_run(path: Path, size: int = CHUNK) -> Run:
    """The run in a file, or in a ``.gz`` of one.

    Raises:
        NotFoundError, DataError: as `raggs.trec.read_scored`.
    """
    run = quick_run(path, size)
    return _slow(path) if run is None else run


def quick_run(path: Path, size: int = CHUNK) -> Run | None:
    """The run in a file, read `size` bytes at a time; None where it is odd, empty, wrong or cannot be read."""
    try:
        found = read_table(path, COLUMNS, SCORE, numbers, size)
    except (OddError, OSError, EOFError, zlib.error):
        return None
    run = Run(tuple(name.decode() for name in found.known), found.query, found.number, found.docs)
    return run if run.twice() is None else None


def _slow(path: Path) -> Run:
    qids, docs, scores = [], [], array("d")
    for row in read_scored(path):
        qids.append(row.qid)
        docs.append(row.doc_id)
        scores.append(row.score)
    return Run.from_columns(qids, docs, np.frombuffer(scores) if scores else np.empty(0))
