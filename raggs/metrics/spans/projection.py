"""Projection of grades from judged passages to passages with other boundaries.

Each judged passage marks its characters with its grade. A new passage gets its grade from its characters by a
`ProjectionRule`. No texts are needed, only ranges and grades. The work grows with the number of judged ranges, of
passages, and of overlapping pairs.

A passage with exactly the range of a judged one keeps its grade. A passage of which too few characters were judged is
unjudged rather than graded low, unless the judged part already earns a sufficient grade (`proof`).
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
SHARE_TOLERANCE = 1e-9  # tolerance for rounding errors when a share is compared


@dataclass(frozen=True)
class ProjectionRule:
    """How graded characters determine a passage's grade.

    Attributes:
        by: "share": the highest grade such that at least `least` of its judged characters have it or a higher one.
            "cover": that, or the highest grade of a judged passage of which it contains at least `least`, if that
            is higher. "mean": the mean over its judged characters, halves rounded up. "max": the highest grade of any
            character.
        least: the share, above 0 and at most 1.
        known: minimum judged share of a passage; with less, it gets no grade unless that is at least `proof`.
        proof: a grade that is kept regardless of the unjudged characters.
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
        spans: the ranges; those of one query may overlap.
        query: shape (places,), in 0..queries-1.
        grade: shape (places,), 0 or more.
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
        """Return the characters with this grade or a higher one, as ranges without overlaps."""
        if overlap == "highest":
            return self._merged(self.grade >= grade)
        return _subtract_stretches(self._merged(self.grade >= 0), self._merged(self.grade < grade))

    def _merged(self, which: Flags) -> Stretches:
        starts, ends = self.line.starts(self.spans)[which], self.line.ends(self.spans)[which]
        return merge_stretches(self.query[which], starts, ends, self.line.length)


@dataclass(frozen=True)
class Stretches:
    """Ranges on the line of documents for some queries; columns of shape (stretches,), sorted by query and start."""

    query: Ints
    starts: Ints
    ends: Ints

    @property
    def lengths(self) -> Ints:
        """Lengths in characters."""
        return self.ends - self.starts


@dataclass(frozen=True)
class ProjectedPassages:
    """Passages that overlap a judged range, for each query; sorted by query, then passage.

    Attributes:
        query, passage: shape (pairs,).
        grade: shape (pairs,), or `UNJUDGED_GRADE`.
        share: shape (pairs,), share of the passage's characters that are judged, above 0 and at most 1.
    """

    query: Ints
    passage: Ints
    grade: Ints
    share: Floats

    @property
    def holes(self) -> int:
        """Number of pairs without a grade."""
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
    """Return the union of the ranges of each query, on a line of length `width`; ranges that touch are merged."""
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
    """Return the parts of `whole` that are in none of `parts`, which are all inside it."""
    query = np.concatenate([whole.query, parts.query])
    edges = np.concatenate([whole.starts, parts.ends])  # starts and ends of the remaining parts
    stops = np.concatenate([parts.starts, whole.ends])
    start = np.lexsort((edges, query))
    stop = np.lexsort((stops, np.concatenate([parts.query, whole.query])))
    found = Stretches(query[start], edges[start], stops[stop])
    kept = found.lengths > 0
    return Stretches(found.query[kept], found.starts[kept], found.ends[kept])


class _Projection:
    """One projection. Each pair of a query and a passage has one number, ascending."""

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
        """Rows of a judged range and a passage that overlap, and the number of common characters."""
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
        """Shape (pairs,): number of judged characters of each pair."""
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
        """Return the highest grade such that a passage contains enough characters of that grade or higher."""
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
        """Yield each grade, ascending, and each pair's number of characters with that grade or a higher one."""
        for grade in self._painted.levels().tolist():
            yield grade, self._held(self._painted.from_grade(grade, self._rule.overlap))

    def _covered(self) -> Ints:
        """Return the highest grade of a judged range of which a passage contains enough."""
        place, passage, both = self._pairs
        spans = self._painted.spans
        enough = both >= self._rule.least * (spans.end - spans.start)[place] - SHARE_TOLERANCE
        return self._best(place[enough], passage[enough], 0)

    def _own(self) -> Ints:
        """Return the grade of a judged range that equals the passage's range; negative if there is none."""
        place, passage, both = self._pairs
        spans = self._painted.spans
        same = (both == (spans.end - spans.start)[place]) & (both == (self._ends - self._starts)[passage])
        return self._best(place[same], passage[same], UNJUDGED_GRADE)

    def _best(self, place: Ints, passage: Ints, nothing: int) -> Ints:
        """Return the best grade of these ranges for each pair."""
        found = np.full(len(self._keys), nothing, dtype=np.int64)
        at = np.searchsorted(self._keys, self._key(self._painted.query[place], passage))
        np.maximum.at(found, at, self._painted.grade[place])
        return found

    def _held(self, stretches: Stretches) -> Floats:
        """Return how many characters of its query's ranges each passage contains, shape (pairs,)."""
        row, passage = self._index.overlapping(stretches.starts, stretches.ends)
        starts, ends = np.maximum(stretches.starts[row], self._starts[passage]), self._ends[passage]
        at = np.searchsorted(self._keys, self._key(stretches.query[row], passage))
        both = np.minimum(stretches.ends[row], ends) - starts
        return np.bincount(at, weights=both, minlength=len(self._keys)).astype(np.float64)

    def _key(self, query: Ints, passage: Ints) -> Ints:
        found: Ints = query * self._width + passage
        return found
