"""What unjudged passages could make of a score: all of them at the lowest grade, all at the highest.

A hole that is filled becomes a judged passage of its query, so it counts in the ideal as well. Only holes within the
cutoff are filled; what lies behind it cannot be seen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.metrics.hits import Hits
from raggs.metrics.names import Named


class Bounds(NamedTuple):
    """Values by query, shape (queries,), with the holes at the lowest and at the highest grade."""

    lowest: Floats
    highest: Floats


class Fillings:
    """A run whose holes are filled once for each cutoff and grade, however many measures ask.

    Args:
        hits: the run.
    """

    def __init__(self, hits: Hits) -> None:
        self._hits = hits
        self._deepest = int(hits.length.max(initial=0))
        self._made: dict[tuple[int, int], Hits] = {}

    def bounds(self, named: Named) -> Bounds:
        """The values of a measure with its holes filled.

        Raises:
            DataError: as `Named.values`.
        """
        scale, cutoff = self._hits.qrels.scale, min(named.measure.cutoff, self._deepest)
        return Bounds(*(named.values(self._filled(cutoff, grade)) for grade in (scale.low, scale.high)))

    def _filled(self, k: int, grade: int) -> Hits:
        if (k, grade) not in self._made:
            self._made[k, grade] = filled(self._hits, k, grade)
        return self._made[k, grade]


def bounds(hits: Hits, named: Named) -> Bounds:
    """As `Fillings.bounds`, for one measure."""
    return Fillings(hits).bounds(named)


def filled(hits: Hits, k: int, grade: int) -> Hits:
    """The same run where each unjudged passage within the cutoff is judged with `grade`. Ties are kept as ranked."""
    query, rank = _holes(hits, k)
    qrels = hits.qrels
    names = (f"\x01{number}" for number in rank.tolist())  # no id of a file begins so
    more = replace(
        qrels,
        query=np.concatenate([qrels.query, query]),
        grade=np.concatenate([qrels.grade, np.full(len(query), grade)]),
        docs=qrels.docs.and_also(names),
        belief=None if qrels.belief is None else qrels.belief.extended(len(query)),
    )
    size = len(hits.query) + len(query)
    every, places = np.concatenate([hits.query, query]), np.concatenate([hits.rank, rank])
    item = np.concatenate([hits.item, len(qrels.query) + np.arange(len(query))])
    order = np.lexsort((places, every))
    facet = None if hits.facet is None else np.concatenate([hits.facet, np.full(len(query), -1)])
    first = None if hits.first is None else np.concatenate([hits.first, rank])[order]
    return replace(
        hits,
        qrels=more,
        facet=facet,
        first=first,
        query=every[order],
        item=item[order],
        rank=places[order],
        start=places[order] - 1,
        size=np.ones(size, dtype=np.int64),
        pooled=None,  # within the cutoff all are judged now
    )


def _holes(hits: Hits, k: int) -> tuple[Ints, Ints]:
    """Query and rank of each unjudged passage within the cutoff."""
    depth = np.minimum(hits.length, k)
    query = np.repeat(np.arange(len(depth)), depth)
    ends = np.cumsum(depth)
    rank = np.arange(len(query)) - np.repeat(ends - depth, depth) + 1
    hole = np.ones(len(query), dtype=bool)
    within = hits.rank <= depth[hits.query]
    hole[(ends - depth)[hits.query[within]] + hits.rank[within] - 1] = False
    return query[hole], rank[hole]
