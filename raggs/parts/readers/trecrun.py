"""TREC runs into columns: the fast way of `raggs.parts.readers.tokens`, and `raggs.base.trec` where that is not
sure.
"""

from __future__ import annotations

import zlib
from array import array
from dataclasses import replace
from pathlib import Path

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.base.trec import RankOrder, read_scored
from raggs.metrics.columns import Run
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
