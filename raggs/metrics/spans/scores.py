"""Recall, precision, IoU, F1 and precision_omega of retrieved chunks, in characters or tokens.

Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval", Chroma 2024. With t_e what the references of a
question hold and t_r what its retrieved chunks hold, where |t_e and t_r| counts each character once and |t_r| counts
one as often as it is retrieved:

    recall = |t_e and t_r| / |t_e|        precision = |t_e and t_r| / |t_r|
    IoU = |t_e and t_r| / (|t_e| + |t_r| - |t_e and t_r|)        F1 = 2 |t_e and t_r| / (|t_e| + |t_r|)

precision_omega is the precision if all chunks that hold something of a reference were retrieved, and no other. Where
nothing is retrieved, precision is 0.

`compat` is what the report's own code does in its place: a chunk hits that merely touches a reference, the divisor of
precision_omega is the union of the chunks that hit and of the references, and "min" retrieves no more than 20.

What a list of passages adds of the characters that are wanted, rank after rank: each character counts where it is
first read.

Pure, and in time that grows with the passages and with what they hold: so any cutoff is one sum.

Where a chunk stands, searched for by its text: for parity with code that knows no places.

A chunk's own offsets are better: the first place at which a text stands is another one than its own wherever the
document repeats itself.

What reading a list costs and gives, in characters: of each retrieved passage its length, how much of it is judged,
and how much relevant text it adds to what stands above it. So the value at any cutoff is a quotient of sums.
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
MAX_COMPAT_CHUNKS = 20  # chunks that "min" retrieves in the report's code
MEASURES = ("recall", "precision", "iou", "f1", "precision_omega")
NO_CHUNK = -1


@dataclass(frozen=True)
class ReferenceColumns:
    """What answers each question.

    Attributes:
        count: of the questions.
        references: the spans that answer; those of one question do not overlap.
        question: shape (references,), whose reference each is, from 0.
    """

    count: int
    references: Spans
    question: Ints

    def __post_init__(self) -> None:
        if self.question.shape != self.references.document.shape:
            raise ValueError("each reference needs one question")
        if len(self.question) and not 0 <= self.question.min() <= self.question.max() < self.count:
            raise ValueError(f"a reference belongs to no question in 0..{self.count - 1}")
        if (pair := self.overlapping()) is not None:
            raise ValueError(f"references {pair[0]} and {pair[1]} of question {self.question[pair[0]]} overlap")

    def overlapping(self) -> tuple[int, int] | None:
        """The rows of the first two references of one question that overlap, or None."""
        return overlapping(self.references, self.question)


def overlapping(references: Spans, question: Ints) -> tuple[int, int] | None:
    """The rows of the first two spans of one question that overlap, or None."""
    order = np.lexsort((references.start, references.document, question))
    one, next_ = order[:-1], order[1:]
    same = (question[one] == question[next_]) & (references.document[one] == references.document[next_])
    bad = np.flatnonzero(same & (references.start[next_] < references.end[one]))
    return (int(one[bad[0]]), int(next_[bad[0]])) if len(bad) else None


@dataclass(frozen=True)
class ChunkTargets:
    """Chunks and what they hold of the references: all that does not depend on what is retrieved.

    Attributes:
        questions: and their references.
        chunks: of all documents.
        line: of the documents.
        ruler: what is counted.
        compat: whether the report's code is followed instead of its formulas.
    """

    questions: ReferenceColumns
    chunks: Spans
    line: DocumentOffsets
    ruler: LengthScale
    compat: bool = False

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Rows of a reference and of a chunk that holds something of it (in compat, or touches it)."""
        index = SpanIndex(self.line.starts(self.chunks), self.line.ends(self.chunks), touching=self.compat)
        references = self.questions.references
        return index.overlapping(self.line.starts(references), self.line.ends(references))

    @cached_property
    def lengths(self) -> Floats:
        """Of the chunks, in units."""
        return self.ruler.between(self.line.starts(self.chunks), self.line.ends(self.chunks))

    @cached_property
    def wanted(self) -> Floats:
        """|t_e| of each question."""
        references = self.questions.references
        lengths = self.ruler.between(self.line.starts(references), self.line.ends(references))
        return total(self.questions.count, self.questions.question, lengths)

    @cached_property
    def hits(self) -> Ints:
        """Chunks that hold something of each question's references, each once."""
        return np.bincount(self._hitting[0], minlength=self.questions.count)

    @property
    def least(self) -> Ints:
        """How many chunks "min" retrieves for each question."""
        return np.minimum(self.hits, MAX_COMPAT_CHUNKS) if self.compat else self.hits

    @cached_property
    def omega(self) -> Floats:
        """precision_omega of each question; NaN without a reference."""
        question, chunk = self._hitting
        held = self.held(np.ones(len(self.pairs[0]), dtype=bool))
        if self.compat:
            shown = self._union(question, chunk)
        else:
            shown = total(self.questions.count, question, self.lengths[chunk])
        return np.where(self.wanted > 0, _ratio(held, shown), np.nan)

    def held(self, which: Flags) -> Floats:
        """What some of the pairs hold of each question's references, each character once.

        Args:
            which: shape of the pairs.
        """
        reference, chunk = self.pairs[0][which], self.pairs[1][which]
        references, line = self.questions.references, self.line
        starts = np.maximum(line.starts(references)[reference], line.starts(self.chunks)[chunk])
        ends = np.minimum(line.ends(references)[reference], line.ends(self.chunks)[chunk])
        asked = self.questions.question[reference]
        return union(self.questions.count, asked, starts, ends, line.length, self.ruler)

    @cached_property
    def keys(self) -> Ints:
        """One number for the question and the chunk of each pair."""
        return self.questions.question[self.pairs[0]] * max(1, len(self.chunks)) + self.pairs[1]

    @cached_property
    def _hitting(self) -> tuple[Ints, Ints]:
        """Question and chunk of the pairs, each combination once."""
        question, chunk = np.divmod(np.unique(self.keys), max(1, len(self.chunks)))
        return question, chunk

    def _union(self, question: Ints, chunk: Ints) -> Floats:
        """Of the chunks that hit and the references, by question."""
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
    """Values of the questions; each has shape (questions,) and lies in 0..1; NaN for a question without references.

    Attributes:
        values: by the names in `MEASURES`.
        retrieved: how many chunks were looked at.
        lengths: of these together, in units.
    """

    values: Mapping[str, Floats]
    retrieved: Ints
    lengths: Floats


def score(target: ChunkTargets, retrieved: Ints, cutoff: Cutoff) -> Scores:
    """What the first chunks that were retrieved for each question hold of its references.

    Args:
        target: the questions and all chunks.
        retrieved: shape (questions, k), rows of chunks, best first, each once a question; -1 behind the last.
        cutoff: how many of them count, or "min": as many as hold something.

    Raises:
        ValueError: the shape does not fit, or `cutoff` is below 1.
    """
    count = target.questions.count
    if retrieved.ndim != 2 or len(retrieved) != count or (cutoff != MIN and cutoff < 1):
        raise ValueError(f"a row a question ({count}) and a cutoff of at least 1 are needed")
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
    """Mean and population standard deviation over the questions with a value; NaN where there is none."""

    mean: float
    sd: float
    count: int


def summary(values: Floats | Sequence[float]) -> MeanAndDeviation:
    """The summary of one measure's values."""
    valid = np.asarray(values, dtype=np.float64)
    valid = valid[~np.isnan(valid)]
    if not len(valid):
        return MeanAndDeviation(float("nan"), float("nan"), 0)
    return MeanAndDeviation(float(valid.mean()), float(valid.std()), len(valid))


def _ratio(part: Floats, whole: Floats) -> Floats:
    """part / whole; 0 where there is no whole."""
    found: Floats = np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)
    return found


NO_RANK = np.iinfo(np.int64).max


def new_characters(wanted: Stretches, shown: Spans, query: Ints, rank: Ints, line: DocumentOffsets) -> Ints:
    """Shape (shown,): the wanted characters of its query that each passage holds and no better ranked one does.

    Args:
        wanted: what is looked for, without overlaps within a query.
        shown: the places of the retrieved passages, in any order.
        query: shape (shown,), for which query each was retrieved.
        rank: shape (shown,), from 1, each once a query.
        line: of the documents.
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
    """The first place at which `text` stands: without one full stop at its end; failing that, whatever its case and
    its white space. None where it stands nowhere.
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
    """Retrieved passages with places; a row each, of queries that are judged, in any order.

    Attributes:
        query: shape (n,), the number of the row's query.
        rank: shape (n,), from 1.
        length: shape (n,), characters of the passage.
        judged: shape (n,), those of them that are judged.
        fresh: shape (n,), those of them that are relevant and stand in no passage above it.
        wanted: shape (queries,), all relevant characters, each once.
    """

    query: Ints
    rank: Ints
    length: Ints
    judged: Ints
    fresh: Ints
    wanted: Ints

    def within(self, values: Ints, k: int) -> Floats:
        """Shape (queries,): the sum of a column over the top k."""
        shown = self.rank <= k
        return np.bincount(self.query[shown], values[shown], len(self.wanted)).astype(np.float64)

    def judged_share(self, k: int) -> float:
        """Of all characters in the tops k, those that are judged; NaN where nothing was retrieved."""
        shown = self.rank <= k
        length = int(self.length[shown].sum())
        return float(self.judged[shown].sum()) / length if length else float("nan")
