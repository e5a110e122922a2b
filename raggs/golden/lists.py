"""What a system returned, question by question, out of columns: best first, equal scores as trec_eval has them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from raggs.base.arrays import Ints
from raggs.golden.systems import System
from raggs.golden.views import Hit, Returned


class Lists:
    """A system's lists by question.

    Args:
        depth: how many hits are given; all if left out.
    """

    def __init__(self, system: System, depth: int | None) -> None:
        self._name, self._run, self._depth = system.name, system.run, depth
        order = np.argsort(self._run.query, kind="stable")
        ends = np.cumsum(np.bincount(self._run.query, minlength=len(self._run.qids)))[:-1]
        self._rows = dict(zip(self._run.qids, np.split(order, ends), strict=True))

    def of(self, qid: str, grades: Mapping[str, int | None]) -> Returned:
        """What it returned; nothing where it has no list for the question.

        Args:
            grades: by passage; those of others are not judged.
        """
        rows = self._rows.get(qid)
        if rows is None:
            return Returned(self._name, (), 0)
        first = self._first(rows)
        docs = [doc.decode() for doc in self._run.docs.take(first).tolist()]
        found = sorted(zip(docs, self._run.score[first].tolist(), strict=True), reverse=True)
        found.sort(key=lambda pair: pair[1], reverse=True)
        hits = (Hit(rank, doc, score, grades.get(doc)) for rank, (doc, score) in enumerate(found, start=1))
        return Returned(self._name, tuple(hits)[: self._depth], len(rows))

    def _first(self, rows: Ints) -> Ints:
        """Of a list's rows those that may be given: as many as are wanted, and all that share the last one's score."""
        if self._depth is None or not 0 < self._depth < len(rows):
            return rows
        scores, last = self._run.score[rows], len(rows) - self._depth
        first: Ints = rows[scores >= np.partition(scores, last)[last]]
        return first
