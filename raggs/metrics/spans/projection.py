"""Projection of grades from judged passages to passages with other boundaries.

Each character of a judged passage has the passage's grade. A new passage gets its grade from its characters by a
`ProjectionRule`. No texts are needed, only ranges and grades. The time grows with the number of judged ranges, of new
passages, and of overlapping pairs.

A new passage with exactly the range of a judged one keeps its grade (the highest, if there are several). A passage with
too few judged characters stays unjudged instead of getting a low grade. If its judged characters already give a
sufficient grade (`proof`), it gets this grade.
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
SHARE_TOLERANCE = 1e-9  # tolerance for rounding errors in comparisons of shares


@dataclass(frozen=True)
class ProjectionRule:
    """How the grades of characters determine the grade of a passage.

    Attributes:
        by: "share": the highest grade g such that at least `least` of the passage's judged characters have grade g or
            higher. "cover": the higher of two grades: that of "share", and the highest grade of a judged passage of
            which the new passage contains at least `least`. "mean": the mean over the judged characters, halves rounded
            up. "max": the highest grade of any character.
        least: the share, above 0 and at most 1.
        known: minimum share of judged characters. A passage with fewer is unjudged, unless its grade is at least
            `proof`.
        proof: lowest grade that a passage gets regardless of its unjudged characters.
        overlap: grade of a character that several judged passages contain: "lowest" (an answer is unlikely to be in a
            passage that was judged irrelevant) or "highest".

    Raises:
        ValueError: a share is out of its range.
    """

    by: By = "cover"
    least: float = 0.5
    known: float = 0.5
    proof: int = 4
    overlap: Overlap = "lowest"

    def __post_init__(self) -> None:
        if not (0 < self.least <= 1 and 0 <= self.known <= 1):
            raise ValueError(
                f"0 < least <= 1 and 0 <= known <= 1 do not hold for least={self.least}, known={self.known}"
            )


@dataclass(frozen=True)
class JudgedSpans:
    """Judged character ranges of some queries.

    Attributes:
        queries: number of queries.
        spans: the ranges; ranges of the same query may overlap.
        query: shape (ranges,), query of each range, from 0.
        grade: shape (ranges,), grade of each range, 0 or more.
        line: offsets of the documents.
    """

    queries: int
    spans: Spans
    query: Ints
    grade: Ints
    line: DocumentOffsets

    def __post_init__(self) -> None:
        if not self.query.shape == self.grade.shape == self.spans.document.shape:
            raise ValueError("each judged range needs one query and one grade")
        if len(self.query) and (not 0 <= self.query.min() <= self.query.max() < self.queries or self.grade.min() < 0):
            raise ValueError(f"each judged range needs a query in 0..{self.queries - 1} and a grade of at least 0")

    def levels(self) -> Ints:
        """Return the grades that occur, ascending."""
        return np.unique(self.grade)

    def from_grade(self, grade: int, overlap: Overlap = "lowest") -> Stretches:
        """Return the ranges of the characters with at least this grade, merged so that they do not overlap."""
        if overlap == "highest":
            return self._merged(self.grade >= grade)
        return _subtract_stretches(self._merged(self.grade >= 0), self._merged(self.grade < grade))

    def _merged(self, which: Flags) -> Stretches:
        starts, ends = self.line.starts(self.spans)[which], self.line.ends(self.spans)[which]
        return merge_stretches(self.query[which], starts, ends, self.line.length)


@dataclass(frozen=True)
class Stretches:
    """Ranges on the line of documents, by query; columns of shape (ranges,), sorted by query and start."""

    query: Ints
    starts: Ints
    ends: Ints

    @property
    def lengths(self) -> Ints:
        """Lengths in characters."""
        return self.ends - self.starts


@dataclass(frozen=True)
class ProjectedPassages:
    """Grades of the passages that overlap a judged range of a query, sorted by query, then passage.

    Attributes:
        query, passage: shape (pairs,), numbers of the query and the passage.
        grade: shape (pairs,); `UNJUDGED_GRADE` if the passage stays unjudged (see `ProjectionRule.known`).
        share: shape (pairs,), share of the passage's characters that are judged, above 0 and at most 1.
    """

    query: Ints
    passage: Ints
    grade: Ints
    share: Floats

    @property
    def holes(self) -> int:
        """Number of pairs of a query and a passage without a grade."""
        return int((self.grade == UNJUDGED_GRADE).sum())


def project(painted: JudgedSpans, passages: Spans, rule: ProjectionRule) -> ProjectedPassages:
    """Return the grades of the passages that overlap a judged range.

    Args:
        painted: the judged ranges.
        passages: passages of the same documents; they may overlap.
        rule: how grades are projected.
    """
    return _Projection(painted, passages, rule).projected()


def merge_stretches(query: Ints, starts: Ints, ends: Ints, width: int) -> Stretches:
    """Return the union of each query's ranges, on a line of length `width`; ranges that touch are merged."""
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
    """Return `whole` without `parts`, all of which are inside `whole`."""
    query = np.concatenate([whole.query, parts.query])
    # the remaining ranges start where a whole range starts or a part ends
    edges = np.concatenate([whole.starts, parts.ends])
    stops = np.concatenate([parts.starts, whole.ends])
    start = np.lexsort((edges, query))
    stop = np.lexsort((stops, np.concatenate([parts.query, whole.query])))
    found = Stretches(query[start], edges[start], stops[stop])
    kept = found.lengths > 0
    return Stretches(found.query[kept], found.starts[kept], found.ends[kept])


class _Projection:
    """One projection. Each overlapping pair of a query and a passage has a key, and the keys ascend."""

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
        """Rows of a judged range and a passage that overlap, and the number of characters that they share."""
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
        """Number of judged characters in the passage of each pair, shape (pairs,)."""
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
        """Return the highest grade such that a passage contains enough characters with at least this grade."""
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
        """Yield each grade, ascending, and each pair's number of characters with at least this grade."""
        for grade in self._painted.levels().tolist():
            yield grade, self._held(self._painted.from_grade(grade, self._rule.overlap))

    def _covered(self) -> Ints:
        """Return the highest grade of a judged range of which the passage contains at least the share `least`."""
        place, passage, both = self._pairs
        spans = self._painted.spans
        enough = both >= self._rule.least * (spans.end - spans.start)[place] - SHARE_TOLERANCE
        return self._best(place[enough], passage[enough], 0)

    def _own(self) -> Ints:
        """Return the grade of a judged range with the same boundaries as the passage; negative if there is none."""
        place, passage, both = self._pairs
        spans = self._painted.spans
        same = (both == (spans.end - spans.start)[place]) & (both == (self._ends - self._starts)[passage])
        return self._best(place[same], passage[same], UNJUDGED_GRADE)

    def _best(self, place: Ints, passage: Ints, nothing: int) -> Ints:
        """Return the highest grade of the given judged ranges for each pair; `nothing` for a pair without such a
        range.
        """
        found = np.full(len(self._keys), nothing, dtype=np.int64)
        at = np.searchsorted(self._keys, self._key(self._painted.query[place], passage))
        np.maximum.at(found, at, self._painted.grade[place])
        return found

    def _held(self, stretches: Stretches) -> Floats:
        """Return how many characters of `stretches` the passage of each pair contains, shape (pairs,)."""
        row, passage = self._index.overlapping(stretches.starts, stretches.ends)
        starts, ends = np.maximum(stretches.starts[row], self._starts[passage]), self._ends[passage]
        at = np.searchsorted(self._keys, self._key(stretches.query[row], passage))
        both = np.minimum(stretches.ends[row], ends) - starts
        return np.bincount(at, weights=both, minlength=len(self._keys)).astype(np.float64)

    def _key(self, query: Ints, passage: Ints) -> Ints:
        found: Ints = query * self._width + passage
        return found
