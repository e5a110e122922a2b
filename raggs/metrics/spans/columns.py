"""Character ranges in documents as columns. All documents form one line, so one sort and one search serve all of
them.

Documents are numbers. On the line, one empty position separates two documents, so spans of different documents neither
overlap nor touch. Lengths are in characters or in tokens. If a range contains only part of a token, it counts that
fraction of the token. So the lengths of the parts of a text always add up to the length of the text.

`SpanIndex` finds the spans that overlap a given range. The time grows with the number of spans and of results. Spans
are divided into layers, in each of which starts and ends both ascend. Within a layer, the overlapping spans are
consecutive, and two binary searches find them. The number of layers is the depth of strict nesting. Chunks of one
chunker need only one layer, even if they overlap.
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
        start, end: positions of the first character, and of the first character after the range.
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
    """Positions of all documents on one line, in sequence.

    Attributes:
        base: shape (documents,), position of each document's first character.
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
    """Unit of length on the line: a table of positions with their distances from the start, interpolated linearly.

    Attributes:
        places: positions, ascending; if empty, the unit is the character.
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
            starts: for each document, the position of each token's first character, ascending; tokens may share a
                position.
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
        """Return the length of each range in units; 0 if the range ends before its start."""
        ends = np.maximum(starts, ends)
        if not len(self.places):
            return (ends - starts).astype(np.float64)
        found: Floats = np.interp(ends, self.places, self.totals) - np.interp(starts, self.places, self.totals)
        return found


def union(groups: int, group: Ints, starts: Ints, ends: Ints, width: int, ruler: LengthScale) -> Floats:
    """Return the length of the union of each group's ranges, shape (groups,).

    Args:
        groups: number of groups.
        group: shape (ranges,), group of each range, from 0.
        starts, ends: shape (ranges,), positions on the line.
        width: length of the line.
        ruler: unit of length.
    """
    order = np.lexsort((starts, group))
    group, starts, ends = group[order], starts[order], ends[order]
    # Shift each group to a separate line. One running maximum then gives the furthest end so far within each group.
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
    """Spans whose starts and ends both ascend; `rows` are their row numbers in the index."""

    rows: Ints
    starts: Ints
    ends: Ints


class SpanIndex:
    """Index that finds the spans that overlap a range.

    Args:
        starts, ends: shape (spans,), positions on the line.
        touching: whether spans that share only a boundary with a range, and empty spans, count as overlapping.
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
        """Number of layers: the depth of strict nesting."""
        return len(self._layers)

    def overlapping(self, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """Return all pairs of a given range and a span that overlaps it, as rows of both; sorted by range, then
        span.
        """
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
    """Return first, first + 1, ... (`counts` numbers) for each element of `first`, concatenated."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    found: Ints = np.arange(total) - np.repeat(ends - counts, counts) + np.repeat(first, counts)
    return found


def _layers(ends: Ints) -> Ints:
    """Return the layer of each span, for spans sorted by start.

    A span is put into the first layer whose last span does not end after it.
    """
    last: list[int] = []  # negated ends of the layers' last spans, ascending
    layer = np.zeros(len(ends), dtype=np.int64)
    for place, end in enumerate(ends.tolist()):
        number = bisect_left(last, -end)
        layer[place] = number
        last[number : number + 1] = [-end]
    return layer
