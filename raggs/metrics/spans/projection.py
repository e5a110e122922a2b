"""Grades that were given to passages, carried over to passages that were cut differently.

Each judged passage paints its grade on its characters; a new passage gets the grade that its characters earned, by a
`ProjectionRule`. Pure: places and grades in, grades and shares out; nothing here knows a text. The work grows with the
judged places, the passages and the pairs of them that overlap.

A passage that was judged itself, at the very same place, keeps its grade. One of which too little was judged is a
hole, not a bad passage, unless what was judged of it is proof enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.metrics.spans.columns import DocumentOffsets, SpanIndex, Spans

UNJUDGED_GRADE = -1
By = Literal["cover", "share", "mean", "max"]
Overlap = Literal["highest", "lowest"]
GradeCondition = Callable[[Floats], Flags]
SHARE_TOLERANCE = 1e-9  # a share that is reached but for rounding is reached


@dataclass(frozen=True)
class ProjectionRule:
    """How painted characters become a passage's grade.

    Attributes:
        by: share: the highest grade that at least `least` of its judged characters have, or a higher one; cover: that,
            or the highest grade of a judged passage of which it holds at least `least`, whichever is higher; mean: the
            mean over its judged characters, halves up; max: the highest of any character.
        least: the share, above 0 and at most 1.
        known: of a passage less judged than this share no grade is told, unless it earned `proof`.
        proof: a grade that stands whatever the unjudged characters hold.
        overlap: what a character is painted that several judged passages hold: the lowest of their grades, for what
            answers can hardly stand in a passage that was judged not to; or the highest.

    Raises:
        ValueError: a share that is none.
    """

    by: By = "cover"
    least: float = 0.5
    known: float = 0.5
    proof: int = 4
    overlap: Overlap = "lowest"

    def __post_init__(self) -> None:
        if not (0 < self.least <= 1 and 0 <= self.known <= 1):
            raise ValueError(f"shares of {self.least} and {self.known} are none")


@dataclass(frozen=True)
class JudgedSpans:
    """Judged places of some queries.

    Attributes:
        queries: how many there are.
        spans: the places; those of one query may overlap.
        query: shape (places,), in 0..queries-1.
        grade: shape (places,), 0 or more.
        line: of the documents.
    """

    queries: int
    spans: Spans
    query: Ints
    grade: Ints
    line: DocumentOffsets

    def __post_init__(self) -> None:
        if not self.query.shape == self.grade.shape == self.spans.document.shape:
            raise ValueError("each judged place needs one query and one grade")
        if len(self.query) and (not 0 <= self.query.min() <= self.query.max() < self.queries or self.grade.min() < 0):
            raise ValueError(f"a judged place has no query in 0..{self.queries - 1}, or no grade")

    def levels(self) -> Ints:
        """The grades that occur, ascending."""
        return np.unique(self.grade)

    def from_grade(self, grade: int, overlap: Overlap = "lowest") -> Stretches:
        """The characters that are painted with this grade or a higher one, in stretches that do not overlap."""
        if overlap == "highest":
            return self._merged(self.grade >= grade)
        return _subtract_stretches(self._merged(self.grade >= 0), self._merged(self.grade < grade))

    def _merged(self, which: Flags) -> Stretches:
        starts, ends = self.line.starts(self.spans)[which], self.line.ends(self.spans)[which]
        return merge_stretches(self.query[which], starts, ends, self.line.length)


@dataclass(frozen=True)
class Stretches:
    """Places on the line of documents, of some queries; each column has shape (stretches,), sorted by query, start."""

    query: Ints
    starts: Ints
    ends: Ints

    @property
    def lengths(self) -> Ints:
        """In characters."""
        return self.ends - self.starts


@dataclass(frozen=True)
class ProjectedPassages:
    """The passages that hold something of a judged place, for each query; sorted by query, then passage.

    Attributes:
        query, passage: shape (pairs,).
        grade: shape (pairs,), or `UNJUDGED_GRADE`.
        share: shape (pairs,), of the passage's characters those that are judged, above 0 and at most 1.
    """

    query: Ints
    passage: Ints
    grade: Ints
    share: Floats

    @property
    def holes(self) -> int:
        """How many of them got no grade."""
        return int((self.grade == UNJUDGED_GRADE).sum())


def project(painted: JudgedSpans, passages: Spans, rule: ProjectionRule) -> ProjectedPassages:
    """The grades of the passages that hold something of a judged place.

    Args:
        painted: what was judged.
        passages: of the same documents; they may overlap.
        rule: by which grades are earned.
    """
    return _Projection(painted, passages, rule).projected()


def merge_stretches(query: Ints, starts: Ints, ends: Ints, width: int) -> Stretches:
    """The union of the stretches of each query, on a line of `width`; stretches that touch become one."""
    shift = query * (width + 1)
    order = np.argsort(starts + shift, kind="stable")
    low, high = (starts + shift)[order], (ends + shift)[order]
    reach = np.maximum.accumulate(high) if len(high) else high
    fresh = np.ones(len(low), dtype=bool)
    fresh[1:] = low[1:] > reach[:-1]
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(low)) - 1 if len(first) else first
    found = query[order][first]
    return Stretches(found, low[first] - found * (width + 1), reach[last] - found * (width + 1))


def _subtract_stretches(whole: Stretches, parts: Stretches) -> Stretches:
    """What of `whole` is in none of `parts`, which all lie within it."""
    query = np.concatenate([whole.query, parts.query])
    edges = np.concatenate([whole.starts, parts.ends])  # where what is left begins, and where it ends
    stops = np.concatenate([parts.starts, whole.ends])
    start = np.lexsort((edges, query))
    stop = np.lexsort((stops, np.concatenate([parts.query, whole.query])))
    found = Stretches(query[start], edges[start], stops[stop])
    kept = found.lengths > 0
    return Stretches(found.query[kept], found.starts[kept], found.ends[kept])


class _Projection:
    """One projection. The pairs of a query and a passage are known by one number each, ascending."""

    def __init__(self, painted: JudgedSpans, passages: Spans, rule: ProjectionRule) -> None:
        self._painted = painted
        self._rule = rule
        self._starts, self._ends = painted.line.starts(passages), painted.line.ends(passages)
        self._index = SpanIndex(self._starts, self._ends)
        self._width = max(1, len(passages))

    def projected(self) -> ProjectedPassages:
        query, passage = np.divmod(self._keys, self._width)
        grade = self._by_rule()
        share = self._judged / (self._ends - self._starts)[passage]
        unsure = (share < self._rule.known - SHARE_TOLERANCE) & (grade < self._rule.proof)
        own = self._own()
        return ProjectedPassages(
            query, passage, np.where(own >= 0, own, np.where(unsure, UNJUDGED_GRADE, grade)), share
        )

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints, Ints]:
        """Rows of a judged place and of a passage that overlap, and the characters that they share."""
        painted = self._painted
        starts, ends = painted.line.starts(painted.spans), painted.line.ends(painted.spans)
        place, passage = self._index.overlapping(starts, ends)
        both = np.minimum(ends[place], self._ends[passage]) - np.maximum(starts[place], self._starts[passage])
        return place, passage, both

    @cached_property
    def _keys(self) -> Ints:
        return np.unique(self._key(self._painted.query[self._pairs[0]], self._pairs[1]))

    @cached_property
    def _judged(self) -> Floats:
        """Shape (pairs,): the judged characters of each."""
        return self._held(self._painted.from_grade(0, self._rule.overlap))

    def _by_rule(self) -> Ints:
        match self._rule.by:
            case "mean":
                return self._mean()
            case "max":
                return self._highest(lambda held: held > 0)
            case "share":
                return self._shared()
        return np.maximum(self._shared(), self._covered())

    def _shared(self) -> Ints:
        wanted = self._rule.least * self._judged - SHARE_TOLERANCE
        return self._highest(lambda held: held >= wanted)

    def _highest(self, reached: GradeCondition) -> Ints:
        """The highest grade of which a passage holds enough characters, or characters of higher ones."""
        found = np.zeros(len(self._keys), dtype=np.int64)
        for grade, held in self._by_level():
            found[reached(held)] = grade
        return found

    def _mean(self) -> Ints:
        total, before = np.zeros(len(self._keys)), 0
        for grade, held in self._by_level():
            total += (grade - before) * held
            before = grade
        return np.floor(total / self._judged + 0.5 + SHARE_TOLERANCE).astype(np.int64)

    def _by_level(self) -> Iterator[tuple[int, Floats]]:
        """Each grade, ascending, and the characters of each pair that are painted with it or a higher one."""
        for grade in self._painted.levels().tolist():
            yield grade, self._held(self._painted.from_grade(grade, self._rule.overlap))

    def _covered(self) -> Ints:
        """The highest grade of a judged place of which a passage holds enough."""
        place, passage, both = self._pairs
        spans = self._painted.spans
        enough = both >= self._rule.least * (spans.end - spans.start)[place] - SHARE_TOLERANCE
        return self._best(place[enough], passage[enough], 0)

    def _own(self) -> Ints:
        """The grade of a judged place that is the passage's own; negative where none is."""
        place, passage, both = self._pairs
        spans = self._painted.spans
        same = (both == (spans.end - spans.start)[place]) & (both == (self._ends - self._starts)[passage])
        return self._best(place[same], passage[same], UNJUDGED_GRADE)

    def _best(self, place: Ints, passage: Ints, nothing: int) -> Ints:
        """The best grade of these places for each pair."""
        found = np.full(len(self._keys), nothing, dtype=np.int64)
        at = np.searchsorted(self._keys, self._key(self._painted.query[place], passage))
        np.maximum.at(found, at, self._painted.grade[place])
        return found

    def _held(self, stretches: Stretches) -> Floats:
        """Shape (pairs,): how many characters of the stretches of its query each passage holds."""
        row, passage = self._index.overlapping(stretches.starts, stretches.ends)
        starts, ends = np.maximum(stretches.starts[row], self._starts[passage]), self._ends[passage]
        at = np.searchsorted(self._keys, self._key(stretches.query[row], passage))
        both = np.minimum(stretches.ends[row], ends) - starts
        return np.bincount(at, weights=both, minlength=len(self._keys)).astype(np.float64)

    def _key(self, query: Ints, passage: Ints) -> Ints:
        found: Ints = query * self._width + passage
        return found
