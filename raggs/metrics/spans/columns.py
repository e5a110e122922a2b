"""Character ranges in documents as columns, on one line, so that one sort and one search serve all documents.

Documents are numbers. On the line, one empty position separates two documents, so spans of different documents neither
overlap nor touch. Lengths are in characters or in tokens. A token that is cut counts by its share of characters, so the
lengths of the parts of a text always sum to that of the text.

`SpanIndex` finds which spans overlap a given one, in time that grows with the number of spans and of results. Spans are
divided into layers in which both starts and ends ascend. Within a layer, the overlapping spans are consecutive and
found by two binary searches. The number of layers is the depth of strict nesting. Chunks of one chunker need only one
layer, even if they overlap.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raggs.base.arrays import Floats, Ints

SpanPlace = tuple[int, int, int]


@dataclass(frozen=True)
class Spans:
    """Half-open ranges of characters; each column has shape (spans,).

    Attributes:
        document: number of the document, from 0.
        start, end: first character, and the first one after the range; equal for an empty span.
    """

    document: Ints
    start: Ints
    end: Ints

    def __post_init__(self) -> None:
        if not (self.document.shape == self.start.shape == self.end.shape and self.document.ndim == 1):
            raise ValueError("document, start and end need one value per span")
        if len(self) and (min(self.document.min(), self.start.min()) < 0 or (self.end < self.start).any()):
            raise ValueError("0 <= document and 0 <= start <= end do not hold for a span")

    def __len__(self) -> int:
        return len(self.document)

    @classmethod
    def of(cls, rows: Iterable[SpanPlace]) -> Spans:
        """Return spans from rows of document, start and end.

        Raises:
            ValueError: a row is not a valid span.
        """
        table = np.array(list(rows), dtype=np.int64).reshape(-1, 3)
        return cls(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())


@dataclass(frozen=True)
class DocumentOffsets:
    """All documents in sequence on one line.

    Attributes:
        base: shape (documents,), offset of each document.
        length: length of the line.
    """

    base: Ints
    length: int

    @classmethod
    def of(cls, lengths: Sequence[int]) -> DocumentOffsets:
        """Return the offsets from the length of each document in characters."""
        ends = np.cumsum(np.asarray(lengths, dtype=np.int64) + 1)
        return cls(np.concatenate([[0], ends[:-1]]).astype(np.int64), int(ends[-1]) if len(ends) else 0)

    def starts(self, spans: Spans) -> Ints:
        """Return the starts of spans on the line."""
        return self.base[spans.document] + spans.start

    def ends(self, spans: Spans) -> Ints:
        """Return the ends of spans on the line."""
        return self.base[spans.document] + spans.end


@dataclass(frozen=True)
class LengthScale:
    """Unit of length on the line, interpolated between positions with a known distance from the start.

    Attributes:
        places: positions, ascending; empty: every character counts 1.
        totals: same shape, number of units before each position.
    """

    places: Ints
    totals: Floats

    @classmethod
    def characters(cls) -> LengthScale:
        """Return the scale that counts characters."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0))

    @classmethod
    def tokens(cls, line: DocumentOffsets, starts: Sequence[Sequence[int]], lengths: Sequence[int]) -> LengthScale:
        """Return the scale that counts tokens.

        Args:
            line: offsets of the documents.
            starts: for each document, the start of each token in characters, ascending; several may be equal.
            lengths: lengths of the documents in characters.
        """
        places: list[Ints] = []
        totals: list[Floats] = []
        before = 0
        for base, own, length in zip(line.base.tolist(), starts, lengths, strict=True):
            found, first = np.unique(np.asarray([*own, length], dtype=np.int64), return_index=True)
            places.append(found + base)
            totals.append(before + first.astype(np.float64))
            before += len(own)
        return cls(np.concatenate(places), np.concatenate(totals))

    def between(self, starts: Ints, ends: Ints) -> Floats:
        """Return the length of each range in units; 0 if it ends before its start."""
        ends = np.maximum(starts, ends)
        if not len(self.places):
            return (ends - starts).astype(np.float64)
        found: Floats = np.interp(ends, self.places, self.totals) - np.interp(starts, self.places, self.totals)
        return found


def union(groups: int, group: Ints, starts: Ints, ends: Ints, width: int, ruler: LengthScale) -> Floats:
    """Return the length of the union of the ranges of each group, shape (groups,).

    Args:
        groups: number of groups.
        group: shape (stretches,), in 0..groups-1.
        starts, ends: on the line.
        width: length of the line.
        ruler: unit of length.
    """
    order = np.lexsort((starts, group))
    group, starts, ends = group[order], starts[order], ends[order]
    # Each group has a separate line, so that the furthest end so far is one running maximum.
    shift = group * (width + 1)
    reach = np.maximum.accumulate(ends + shift) if len(ends) else ends
    before = np.concatenate([np.full(min(1, len(reach)), -1, dtype=np.int64), reach[:-1]])
    fresh = np.maximum(starts, before - shift)
    return total(groups, group, ruler.between(fresh, ends))


def total(groups: int, group: Ints, values: Floats) -> Floats:
    """Return the sum of the values of each group, shape (groups,)."""
    return np.bincount(group, weights=values, minlength=groups).astype(np.float64)


SearchSide = Literal["left", "right"]


@dataclass(frozen=True)
class _Layer:
    """Row numbers of spans whose starts and ends both ascend."""

    rows: Ints
    starts: Ints
    ends: Ints


class SpanIndex:
    """Index of spans on a line by overlap.

    Args:
        starts, ends: shape (spans,).
        touching: whether spans that share only a boundary, and empty spans, count as overlapping.
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
        """Depth of strict nesting."""
        return len(self._layers)

    def overlapping(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """Return all pairs of a given range and a span that overlaps it: their rows, sorted by range, then span."""
        asked: list[Ints] = [np.empty(0, dtype=np.int64)]
        found: list[Ints] = [np.empty(0, dtype=np.int64)]
        before: SearchSide = "left" if self._touching else "right"
        behind: SearchSide = "right" if self._touching else "left"
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
    """Return the concatenation of first, first + 1, ... for each `first`, with `counts` elements each."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    found: Ints = np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(first, counts)
    return found


def _layers(ends: Ints) -> Ints:
    """Return the layer of each span, in the order of starts: the first whose last end is not beyond the span's end."""
    last: list[int] = []  # negated ends of the layers' last spans, ascending
    layer = np.zeros(len(ends), dtype=np.int64)
    for place, end in enumerate(ends.tolist()):
        number = bisect_left(last, -end)
        layer[place] = number
        last[number : number + 1] = [-end]
    return layer
