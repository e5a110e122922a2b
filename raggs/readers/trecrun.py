"""TREC runs into columns: the fast way of `raggs.readers.tokens`, and `raggs.trec` where that is not sure."""

from __future__ import annotations

import zlib
from array import array
from pathlib import Path

import numpy as np

from raggs.metrics.columns import Run
from raggs.readers.tokens import OddError, numbers, read_table
from raggs.trec import read_scored

COLUMNS, SCORE = 6, 4


def read_trec_run(path: Path) -> Run:
    """The run in a file, or in a ``.gz`` of one.

    Raises:
        NotFoundError, DataError: as `raggs.trec.read_scored`.
    """
    try:
        return _fast(path)
    except (OddError, OSError, EOFError, zlib.error):
        return _slow(path)


def _slow(path: Path) -> Run:
    qids, docs, scores = [], [], array("d")
    for row in read_scored(path):
        qids.append(row.qid)
        docs.append(row.doc_id)
        scores.append(row.score)
    return Run.from_columns(qids, docs, np.frombuffer(scores) if scores else np.empty(0))


def _fast(path: Path) -> Run:
    found = read_table(path, COLUMNS, SCORE, numbers)
    run = Run(tuple(name.decode() for name in found.known), found.query, found.number, found.docs)
    if run.twice() is not None:
        raise OddError
    return run
