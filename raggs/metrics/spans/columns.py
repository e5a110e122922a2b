"""Places in documents as columns, laid out on one line so that one sort and one search serve all documents.

Documents are numbers. On the line there is one empty place between two of them, so spans of different documents
neither overlap nor touch. A length counts characters, or tokens, of which a cut one counts by its share of characters:
parts of a text then add up to the text, whatever is cut where.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats, Ints

Place = tuple[int, int, int]


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
    def of(cls, rows: Iterable[Place]) -> Spans:
        """From rows of document, start and end.

        Raises:
            ValueError: a row is no span.
        """
        table = np.array(list(rows), dtype=np.int64).reshape(-1, 3)
        return cls(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())


@dataclass(frozen=True)
class Line:
    """All documents one behind the other.

    Attributes:
        base: shape (documents,), where each begins.
        length: of the whole line.
    """

    base: Ints
    length: int

    @classmethod
    def of(cls, lengths: Sequence[int]) -> Line:
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
class Ruler:
    """What a stretch of the line is long: interpolated between places whose distance from the line's start is known.

    Attributes:
        places: ascending; empty: every character counts 1.
        totals: shape of `places`, the units up to each.
    """

    places: Ints
    totals: Floats

    @classmethod
    def characters(cls) -> Ruler:
        """Counts characters."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0))

    @classmethod
    def tokens(cls, line: Line, starts: Sequence[Sequence[int]], lengths: Sequence[int]) -> Ruler:
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


def union(groups: int, group: Ints, starts: Ints, ends: Ints, width: int, ruler: Ruler) -> Floats:
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
