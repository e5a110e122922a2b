"""Runs that were made elsewhere: scored where they lie, without a look at any passage, and never copied.

A sweep of nothing else needs no corpus. Equal scores stand as trec_eval has them, so that a run is worth what
`raggs eval` says of its file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from raggs.base.arrays import Ints
from raggs.base.errors import DataError, NotFoundError
from raggs.base.hashing import hash_file
from raggs.metrics.columns import Run
from raggs.metrics.ids import IdColumn
from raggs.parts.readers.runs import read_run
from raggs.parts.workshop import Passages
from raggs.sweeps.partstore import Lists


def read_foreign(path: Path, sha256: str, k: int) -> Run:
    """The first `k` of each list.

    Raises:
        NotFoundError: the file is gone.
        DataError: it is another one by now, or no run.
    """
    run = read_run(path)
    if hash_file(path) != sha256:
        raise DataError("is not the run that the sweep read", where=path, remedy="run the sweep again")
    return first(run, k)


def sha256_of(path: Path) -> str:
    """Hash of the file.

    Raises:
        NotFoundError: it cannot be read.
    """
    try:
        return hash_file(path)
    except OSError as error:
        raise NotFoundError(f"cannot be read ({error.strerror})", where=path, remedy="correct its path") from error


def check_known(lists: Lists, passages: Passages, path: Path) -> None:
    """Refuse lists of another corpus than the one that the other systems search.

    Raises:
        DataError: the corpus lacks a passage.
    """
    shown = {doc for hits in lists.values() for doc, _ in hits}
    if strange := sorted(shown - passages.known(shown)):
        raise DataError(f"the corpus has no passage {strange[0]!r}", where=path, remedy="use a run over this corpus")


def first(run: Run, k: int) -> Run:
    """The first `k` of each list, ties by descending id as in trec_eval; rows stay in their order."""
    length = np.bincount(run.query, minlength=len(run.qids))
    if length.max(initial=0) <= k:
        return run
    rows = np.sort(_best(run, k))
    return Run(run.qids, run.query[rows], run.score[rows], IdColumn([run.docs.take(rows)]))


def lists_of(run: Run, k: int) -> Lists:
    """The first `k` of each list with their scores, best first."""
    rows = _best(run, k)
    found: dict[str, list[tuple[str, float]]] = {qid: [] for qid in run.qids}
    columns = run.query[rows].tolist(), run.docs.take(rows).tolist(), run.score[rows].tolist()
    for query, doc, score in zip(*columns, strict=True):
        found[run.qids[query]].append((doc.decode(), score))
    return found


def _best(run: Run, k: int) -> Ints:
    """The rows of the first `k` of each list, best first."""
    _, name = np.unique(run.docs.take(np.arange(len(run.docs))), return_inverse=True)
    order = np.lexsort((-name, -run.score, run.query))
    length = np.bincount(run.query, minlength=len(run.qids))
    offset = np.cumsum(length) - length
    place = np.arange(len(order)) - offset[run.query[order]]
    rows: Ints = order[place < k]
    return rows
