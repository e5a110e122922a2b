"""TREC runs into columns: the fast way of `raggs.readers.tokens`, and `raggs.trec` where that is not sure."""

from __future__ import annotations

import gzip
import zlib
from array import array
from pathlib import Path

import numpy as np

from raggs.metrics.columns import Run
from raggs.metrics.ids import IdColumn
from raggs.readers.tokens import OddError, chunks, ids, numbered, numbers, tokens
from raggs.trec import read_run

CHUNK = 1 << 22  # bytes; its arrays stay in the processor's cache
COLUMNS = 6
QUERY, DOC, SCORE = 0, 2, 4


def read_trec_run(path: Path) -> Run:
    """The run in a file, or in a ``.gz`` of one.

    Raises:
        NotFoundError, DataError: as `raggs.trec.read_run`.
    """
    try:
        return _fast(path)
    except (OddError, OSError, EOFError, zlib.error):
        return _slow(path)


def _slow(path: Path) -> Run:
    qids, docs, scores = [], [], array("d")
    for row in read_run(path):
        qids.append(row.qid)
        docs.append(row.doc_id)
        scores.append(row.score)
    return Run.from_columns(qids, docs, np.frombuffer(scores) if scores else np.empty(0))


def _fast(path: Path) -> Run:
    known: dict[bytes, int] = {}
    queries, docs, scores = [], [], []
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        for chunk in chunks(file, CHUNK):
            buffer, starts, ends = tokens(chunk, COLUMNS)
            queries.append(numbered(ids(buffer, starts[:, QUERY], ends[:, QUERY]), known))
            docs.append(ids(buffer, starts[:, DOC], ends[:, DOC]))
            scores.append(numbers(ids(buffer, starts[:, SCORE], ends[:, SCORE])))
    if not queries:
        return Run((), np.empty(0, np.int64), np.empty(0), IdColumn(()))
    qids = tuple(name.decode() for name in known)
    run = Run(qids, np.concatenate(queries), np.concatenate(scores), IdColumn(docs))
    if run.twice() is not None:
        raise OddError
    return run
