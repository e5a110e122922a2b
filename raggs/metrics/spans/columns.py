"""Places in documents as columns, laid out on one line so that one sort and one search serve all documents.

Documents are numbers. On the line there is one empty place between two of them, so spans of different documents
neither overlap nor touch. A length counts characters, or tokens, of which a cut one counts by its share of characters:
parts of a text then add up to the text, whatever is cut where.

Which of many spans overlap a given one, in time that grows with the spans and with what is found.

Spans are dealt into layers in which starts and ends both ascend: there, what overlaps a stretch is a run of
neighbours that two binary searches find. There are as many layers as spans lie strictly inside each other at the
deepest; chunks of one chunker, overlapping or not, need one.
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
    """Half-open stretches of characters; each column has shape (spans,).

    Attributes:
        document: number of the document, from 0.
        start, end: the first character, and the first one after it; equal where a span holds nothing.
    """

    document: Ints
    start: Ints
    end: Ints

    def __post_init__(self) -> None:
        if not (self.document.shape == self.start.shape == self.end.shape and self.document.ndim == 1):
            raise ValueError("document, start and end need one value a span")
        if len(self) and (min(self.document.min(), self.start.min()) < 0 or (self.end < self.start).any()):
            raise ValueError("0 <= document and 0 <= start <= end do not hold for a span")

    def __len__(self) -> int:
        return len(self.document)

    @classmethod
    def of(cls, rows: Iterable[SpanPlace]) -> Spans:
        """From rows of document, start and end.

        Raises:
            ValueError: a row is no span.
        """
        table = np.array(list(rows), dtype=np.int64).reshape(-1, 3)
        return cls(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())


@dataclass(frozen=True)
class DocumentOffsets:
    """All documents one behind the other.

    Attributes:
        base: shape (documents,), where each begins.
        length: of the whole line.
    """

    base: Ints
    length: int

    @classmethod
    def of(cls, lengths: Sequence[int]) -> DocumentOffsets:
        """From the characters of each document."""
        ends = np.cumsum(np.asarray(lengths, dtype=np.int64) + 1)
        return cls(np.concatenate([[0], ends[:-1]]).astype(np.int64), int(ends[-1]) if len(ends) else 0)

    def starts(self, spans: Spans) -> Ints:
        """Where spans begin on the line."""
        return self.base[spans.document] + spans.start

    def ends(self, spans: Spans) -> Ints:
        """Where spans end on the line."""
        return self.base[spans.document] + spans.end


@dataclass(frozen=True)
class LengthScale:
    """What a stretch of the line is long: interpolated between places whose distance from the line's start is known.

    Attributes:
        places: ascending; empty: every character counts 1.
        totals: shape of `places`, the units up to each.
    """

    places: Ints
    totals: Floats

    @classmethod
    def characters(cls) -> LengthScale:
        """Counts characters."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0))

    @classmethod
    def tokens(cls, line: DocumentOffsets, starts: Sequence[Sequence[int]], lengths: Sequence[int]) -> LengthScale:
        """Counts tokens.

        Args:
            line: of the documents.
            starts: of each document, the character at which each token begins, ascending; several may share one.
            lengths: of the documents, in characters.
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
        """The length of each stretch, in units; those that end before they start have none."""
        ends = np.maximum(starts, ends)
        if not len(self.places):
            return (ends - starts).astype(np.float64)
        found: Floats = np.interp(ends, self.places, self.totals) - np.interp(starts, self.places, self.totals)
        return found


def union(groups: int, group: Ints, starts: Ints, ends: Ints, width: int, ruler: LengthScale) -> Floats:
    """The length of the union of the stretches of each group, shape (groups,).

    Args:
        group: shape (stretches,), in 0..groups-1.
        starts, ends: on the line.
        width: of the line.
    """
    order = np.lexsort((starts, group))
    group, starts, ends = group[order], starts[order], ends[order]
    # Each group on a line of its own, so that what reaches furthest so far is one running maximum.
    shift = group * (width + 1)
    reach = np.maximum.accumulate(ends + shift) if len(ends) else ends
    before = np.concatenate([np.full(min(1, len(reach)), -1, dtype=np.int64), reach[:-1]])
    fresh = np.maximum(starts, before - shift)
    return total(groups, group, ruler.between(fresh, ends))


def total(groups: int, group: Ints, values: Floats) -> Floats:
    """The sum of the values of each group, shape (groups,)."""
    return np.bincount(group, weights=values, minlength=groups).astype(np.float64)


SearchSide = Literal["left", "right"]


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
