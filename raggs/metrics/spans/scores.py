"""Recall, precision, IoU, F1 and precision_omega of retrieved chunks, in characters or tokens.

Source: Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval", Chroma 2024. References are the relevant
passages of a question. Let t_e be their text and t_r the text of the retrieved chunks. |t_e and t_r| counts each
character once. |t_r| counts a character each time it is retrieved:

    recall = |t_e and t_r| / |t_e|        precision = |t_e and t_r| / |t_r|
    IoU = |t_e and t_r| / (|t_e| + |t_r| - |t_e and t_r|)        F1 = 2 |t_e and t_r| / (|t_e| + |t_r|)

precision_omega is the precision if exactly the chunks that overlap a reference were retrieved. If nothing is retrieved,
precision is 0.

`compat` follows the report's code instead of its formulas. A chunk that only touches a reference then counts as
overlapping. The divisor of precision_omega is then the union of the overlapping chunks and the references. The cutoff
"min", which retrieves as many chunks as overlap a reference, is then at most 20.

`new_characters` counts the relevant characters in each passage that no passage ranked above contains.
`RetrievedSpans` stores these counts, lengths and numbers of judged characters. The value of a measure at any cutoff is
then a ratio of sums.

`locate` finds a chunk's position by its text, for code that has no offsets. Use a chunk's own offsets if they are
known. If the document repeats itself, the first occurrence of a text may not be the chunk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.metrics.spans.columns import DocumentOffsets, LengthScale, SpanIndex, Spans, runs, total, union
from raggs.metrics.spans.projection import Stretches

MIN: Literal["min"] = "min"
Cutoff = int | Literal["min"]
MAX_COMPAT_CHUNKS = 20  # maximum number of chunks at the cutoff "min" in the report's code
MEASURES = ("recall", "precision", "iou", "f1", "precision_omega")
NO_CHUNK = -1


@dataclass(frozen=True)
class ReferenceColumns:
    """References (relevant passages) of each question.

    Attributes:
        count: number of questions.
        references: the reference spans; the references of one question do not overlap.
        question: shape (references,), index of each reference's question, from 0.
    """

    count: int
    references: Spans
    question: Ints

    def __post_init__(self) -> None:
        if self.question.shape != self.references.document.shape:
            raise ValueError("each reference needs one question index")
        if len(self.question) and not 0 <= self.question.min() <= self.question.max() < self.count:
            raise ValueError(f"each reference needs a question index from 0 to {self.count - 1}")
        if (pair := self.overlapping()) is not None:
            raise ValueError(f"references {pair[0]} and {pair[1]} of question {self.question[pair[0]]} overlap")

    def overlapping(self) -> tuple[int, int] | None:
        """Return the rows of the first two references of the same question that overlap; None if there are none."""
        return overlapping(self.references, self.question)


def overlapping(references: Spans, question: Ints) -> tuple[int, int] | None:
    """Return the rows of the first two spans of the same question that overlap; None if there are none."""
    order = np.lexsort((references.start, references.document, question))
    one, next_ = order[:-1], order[1:]
    same = (question[one] == question[next_]) & (references.document[one] == references.document[next_])
    bad = np.flatnonzero(same & (references.start[next_] < references.end[one]))
    return (int(one[bad[0]]), int(next_[bad[0]])) if len(bad) else None


@dataclass(frozen=True)
class ChunkTargets:
    """Chunks and their overlap with the references. All its values are independent of the retrieved chunks.

    Attributes:
        questions: questions and their references.
        chunks: chunks of all documents.
        line: offsets of the documents.
        ruler: unit of length.
        compat: whether to follow the report's code instead of its formulas.
    """

    questions: ReferenceColumns
    chunks: Spans
    line: DocumentOffsets
    ruler: LengthScale
    compat: bool = False

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Rows of each pair of a reference and a chunk that overlap or, with `compat`, touch."""
        index = SpanIndex(self.line.starts(self.chunks), self.line.ends(self.chunks), touching=self.compat)
        references = self.questions.references
        return index.overlapping(self.line.starts(references), self.line.ends(references))

    @cached_property
    def lengths(self) -> Floats:
        """Lengths of the chunks, in units."""
        return self.ruler.between(self.line.starts(self.chunks), self.line.ends(self.chunks))

    @cached_property
    def wanted(self) -> Floats:
        """Length |t_e| of each question's references, in units."""
        references = self.questions.references
        lengths = self.ruler.between(self.line.starts(references), self.line.ends(references))
        return total(self.questions.count, self.questions.question, lengths)

    @cached_property
    def hits(self) -> Ints:
        """Number of different chunks that overlap a reference of each question."""
        return np.bincount(self._hitting[0], minlength=self.questions.count)

    @property
    def least(self) -> Ints:
        """Number of chunks that the cutoff "min" retrieves for each question."""
        return np.minimum(self.hits, MAX_COMPAT_CHUNKS) if self.compat else self.hits

    @cached_property
    def omega(self) -> Floats:
        """Value of precision_omega for each question; NaN if the question has no reference."""
        question, chunk = self._hitting
        held = self.held(np.ones(len(self.pairs[0]), dtype=bool))
        if self.compat:
            shown = self._union(question, chunk)
        else:
            shown = total(self.questions.count, question, self.lengths[chunk])
        return np.where(self.wanted > 0, _ratio(held, shown), np.nan)

    def held(self, which: Flags) -> Floats:
        """Return how much of each question's references the chunks of some pairs cover; each character counts once.

        Args:
            which: shape (pairs,), which of `pairs` to use.
        """
        reference, chunk = self.pairs[0][which], self.pairs[1][which]
        references, line = self.questions.references, self.line
        starts = np.maximum(line.starts(references)[reference], line.starts(self.chunks)[chunk])
        ends = np.minimum(line.ends(references)[reference], line.ends(self.chunks)[chunk])
        asked = self.questions.question[reference]
        return union(self.questions.count, asked, starts, ends, line.length, self.ruler)

    @cached_property
    def keys(self) -> Ints:
        """Number of each pair's combination of question and chunk."""
        return self.questions.question[self.pairs[0]] * max(1, len(self.chunks)) + self.pairs[1]

    @cached_property
    def _hitting(self) -> tuple[Ints, Ints]:
        """Question and chunk of the pairs, without repeated combinations."""
        question, chunk = np.divmod(np.unique(self.keys), max(1, len(self.chunks)))
        return question, chunk

    def _union(self, question: Ints, chunk: Ints) -> Floats:
        """Return the length of the union of the overlapping chunks and the references of each question."""
        references, line = self.questions.references, self.line
        return union(
            self.questions.count,
            np.concatenate([question, self.questions.question]),
            np.concatenate([line.starts(self.chunks)[chunk], line.starts(references)]),
            np.concatenate([line.ends(self.chunks)[chunk], line.ends(references)]),
            line.length,
            self.ruler,
        )


@dataclass(frozen=True)
class Scores:
    """Scores of the questions; NaN for a question without references.

    Attributes:
        values: by the names in `MEASURES`; each of shape (questions,) and in 0..1.
        retrieved: shape (questions,), number of chunks within the cutoff.
        lengths: shape (questions,), total length of these chunks, in units.
    """

    values: Mapping[str, Floats]
    retrieved: Ints
    lengths: Floats


def score(target: ChunkTargets, retrieved: Ints, cutoff: Cutoff) -> Scores:
    """Score the first chunks that were retrieved for each question.

    Args:
        target: the questions and all chunks.
        retrieved: shape (questions, k), rows of chunks, best first, without repetition; -1 fills the rest of a row.
        cutoff: number of chunks that count, or "min": as many as overlap a reference of the question.

    Raises:
        ValueError: the shape does not match, or `cutoff` is below 1.
    """
    count = target.questions.count
    if retrieved.ndim != 2 or len(retrieved) != count or (cutoff != MIN and cutoff < 1):
        raise ValueError(f"expected one row per question ({count}) and a cutoff of at least 1")
    widths = target.least if cutoff == MIN else np.full(count, cutoff)
    shown = (np.arange(retrieved.shape[1]) < widths[:, None]) & (retrieved != NO_CHUNK)
    asked, chunk = np.nonzero(shown)[0], retrieved[shown]
    which = np.isin(target.keys, asked * max(1, len(target.chunks)) + chunk)
    held, wanted = target.held(which), target.wanted
    read = total(count, asked, target.lengths[chunk])
    found = {
        "recall": _ratio(held, wanted),
        "precision": _ratio(held, read),
        "iou": _ratio(held, wanted + read - held),
        "f1": _ratio(2 * held, wanted + read),
        "precision_omega": target.omega,
    }
    values = {name: np.where(wanted > 0, found[name], np.nan) for name in MEASURES}
    return Scores(values, shown.sum(axis=1), read)


@dataclass(frozen=True)
class MeanAndDeviation:
    """Mean and population standard deviation over the questions with a value; NaN if there are none."""

    mean: float
    sd: float
    count: int


def summary(values: Floats | Sequence[float]) -> MeanAndDeviation:
    """Return mean and standard deviation of one measure's values."""
    valid = np.asarray(values, dtype=np.float64)
    valid = valid[~np.isnan(valid)]
    if not len(valid):
        return MeanAndDeviation(float("nan"), float("nan"), 0)
    return MeanAndDeviation(float(valid.mean()), float(valid.std()), len(valid))


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole; 0 if `whole` is 0."""
    found: Floats = np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)
    return found


NO_RANK = np.iinfo(np.int64).max


def new_characters(wanted: Stretches, shown: Spans, query: Ints, rank: Ints, line: DocumentOffsets) -> Ints:
    """Count the wanted characters of each passage that no passage ranked above it contains; shape (shown,).

    Args:
        wanted: the wanted ranges, which do not overlap within a query.
        shown: ranges of the retrieved passages, in any order.
        query: shape (shown,), query of each passage.
        rank: shape (shown,), rank of each passage, from 1, unique within a query.
        line: offsets of the documents.
    """
    width = line.length + 1
    index = SpanIndex(wanted.starts + wanted.query * width, wanted.ends + wanted.query * width)
    starts, ends = line.starts(shown) + query * width, line.ends(shown) + query * width
    row, part = index.overlapping(starts, ends)
    shift = wanted.query[part] * width
    low = np.maximum(starts[row], wanted.starts[part] + shift)
    high = np.minimum(ends[row], wanted.ends[part] + shift)
    edges = np.unique(np.concatenate([low, high]))
    first = np.searchsorted(edges, low)
    pieces = np.searchsorted(edges, high) - first
    piece, owner = runs(first, pieces), np.repeat(row, pieces)
    best = np.full(len(edges), NO_RANK, dtype=np.int64)
    np.minimum.at(best, piece, rank[owner])
    mine = best[piece] == rank[owner]
    lengths = np.diff(edges, append=edges[-1:])
    found = np.bincount(owner[mine], weights=lengths[piece[mine]], minlength=len(query))
    return found.astype(np.int64)


SPACE = re.compile(r"\s+")


def locate(text: str, document: str) -> tuple[int, int] | None:
    """Return the range of the first occurrence of `text` in `document`; None if `text` does not occur.

    A full stop at the end of `text` is ignored. If there is no exact match, case and white space are ignored.
    """
    wanted = text.removesuffix(".")
    start = document.find(wanted)
    if start >= 0:
        return start, start + len(wanted)
    words = [re.escape(word) for word in SPACE.split(wanted)]
    found = re.search(r"\s*".join(words), document, re.IGNORECASE)
    return None if found is None else found.span()


@dataclass(frozen=True)
class RetrievedSpans:
    """Retrieved passages of judged queries with their characters, one row per passage, in any order.

    Attributes:
        query: shape (n,), number of the passage's query.
        rank: shape (n,), rank of the passage, from 1.
        length: shape (n,), length of the passage in characters.
        judged: shape (n,), number of judged characters in the passage.
        fresh: shape (n,), number of relevant characters in the passage that no passage above it contains.
        wanted: shape (queries,), number of the query's relevant characters, each counted once.
    """

    query: Ints
    rank: Ints
    length: Ints
    judged: Ints
    fresh: Ints
    wanted: Ints

    def within(self, values: Ints, k: int) -> Floats:
        """Return the sum of a column over the top k of each query, shape (queries,)."""
        shown = self.rank <= k
        return np.bincount(self.query[shown], values[shown], len(self.wanted)).astype(np.float64)

    def judged_share(self, k: int) -> float:
        """Return the judged share of all characters in the top k; NaN if nothing was retrieved."""
        shown = self.rank <= k
        length = int(self.length[shown].sum())
        return float(self.judged[shown].sum()) / length if length else float("nan")
