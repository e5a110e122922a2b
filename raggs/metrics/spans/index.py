"""Which of many spans overlap a given one, in time that grows with the spans and with what is found.

Spans are dealt into layers in which starts and ends both ascend: there, what overlaps a stretch is a run of
neighbours that two binary searches find. There are as many layers as spans lie strictly inside each other at the
deepest; chunks of one chunker, overlapping or not, need one.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raggs.base.arrays import Ints

Side = Literal["left", "right"]


@dataclass(frozen=True)
class _Layer:
    """Rows of the spans whose starts and ends both ascend."""

    rows: Ints
    starts: Ints
    ends: Ints


class SpanIndex:
    """Spans on a line, found by what they overlap.

    Args:
        starts, ends: shape (spans,).
        touching: whether spans that share only a boundary, and empty ones, count as overlapping.
    """

    def __init__(self, starts: Ints, ends: Ints, *, touching: bool = False) -> None:
        self._touching = touching
        kept = np.arange(len(starts)) if touching else np.flatnonzero(ends > starts)
        order = kept[np.lexsort((ends[kept], starts[kept]))]
        layer = _layers(ends[order])
        self._layers = [
            _Layer(rows, starts[rows], ends[rows])
            for number in range(int(layer.max()) + 1 if len(layer) else 0)
            for rows in [order[layer == number]]
        ]

    @property
    def layers(self) -> int:
        """How deep spans lie strictly inside each other."""
        return len(self._layers)

    def overlapping(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """All pairs of a given stretch and a span that overlaps it: their rows, sorted by stretch, then span."""
        asked: list[Ints] = [np.empty(0, dtype=np.int64)]
        found: list[Ints] = [np.empty(0, dtype=np.int64)]
        before: Side = "left" if self._touching else "right"
        behind: Side = "right" if self._touching else "left"
        for layer in self._layers:
            first = np.searchsorted(layer.ends, starts, before)
            last = np.searchsorted(layer.starts, ends, behind)
            counts = np.maximum(last - first, 0)
            asked.append(np.repeat(np.arange(len(starts)), counts))
            found.append(layer.rows[runs(first, counts)])
        rows, spans = np.concatenate(asked), np.concatenate(found)
        order = np.lexsort((spans, rows))
        return rows[order], spans[order]


def runs(first: Ints, counts: Ints) -> Ints:
    """first, first + 1, ... of each, as many as `counts` says; one behind the other."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    found: Ints = np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(first, counts)
    return found


def _layers(ends: Ints) -> Ints:
    """For spans in the order of their starts: the first layer whose last end is not beyond their own."""
    last: list[int] = []  # negated ends of the layers' last spans, which ascend
    layer = np.zeros(len(ends), dtype=np.int64)
    for place, end in enumerate(ends.tolist()):
        number = bisect_left(last, -end)
        layer[place] = number
        last[number : number + 1] = [-end]
    return layer
