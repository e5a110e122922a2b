"""Which questions go: those asked already, and those with an excerpt that is about something else.

Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval", Chroma 2024: two questions whose cosine is above a
threshold are duplicates, and a question goes with all its excerpts if its cosine with any of them is below another.
Of duplicates the report does not say which stays; here it is the earlier one, and what went makes nobody else go.

Thresholds belong to an embedder and a corpus. The report's are those of OpenAI's text-embedding-3-large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats, Ints, Vectors

BLOCK = 1024  # questions compared at a time: 4 MB a block of cosines


@dataclass(frozen=True)
class Thresholds:
    """Cosines, -1..1.

    Attributes:
        excerpt: below it an excerpt is not about its question.
        duplicate: above it two questions are the same.
    """

    excerpt: float = 0.41
    duplicate: float = 0.70

    def __post_init__(self) -> None:
        for name, value in (("excerpt", self.excerpt), ("duplicate", self.duplicate)):
            if not -1 <= value <= 1:
                raise ValueError(f"the {name} threshold is {value}; cosines lie in -1..1")


DEFAULT = Thresholds()
THRESHOLDS: Mapping[str, Thresholds] = {  # the report's table of corpora
    "state_of_the_union": Thresholds(0.40, 0.70),
    "wikitexts": Thresholds(0.42, 0.73),
    "chatlogs": Thresholds(0.43, 0.71),
    "finance": Thresholds(0.42, 0.70),
    "pubmed": Thresholds(0.40, 0.67),
}
# Of embedders whose cosines stand elsewhere. Of the report's 472 questions, which all passed there, the report's
# thresholds would take out 63 as duplicates and 197 for an excerpt under WordLlama; these take 1 and 20.
OF_EMBEDDERS: Mapping[str, Thresholds] = {"wordllama": Thresholds(excerpt=0.15, duplicate=0.85)}


def thresholds_for(corpus: str, embedder: str = "") -> Thresholds:
    """The usual thresholds: an embedder's own by its type, else the report's of one of its corpora, else its usual."""
    return OF_EMBEDDERS.get(embedder, THRESHOLDS.get(corpus, DEFAULT))


@dataclass(frozen=True)
class Duplicate:
    """A question that goes.

    Attributes:
        row: its number.
        of: the earlier question that stays, the nearest of those.
        cosine: of the two.
        threshold: that it is above.
    """

    row: int
    of: int
    cosine: float
    threshold: float

    def __str__(self) -> str:
        return f"cosine {self.cosine:.3f} with question {self.of + 1}, above {self.threshold:g}"


@dataclass(frozen=True)
class Irrelevant:
    """A question that goes.

    Attributes:
        row: its number.
        excerpt: the row of its excerpt that is furthest from it.
        cosine: of the two.
        threshold: that it is below.
    """

    row: int
    excerpt: int
    cosine: float
    threshold: float

    def __str__(self) -> str:
        return f"cosine {self.cosine:.3f} with an excerpt, below {self.threshold:g}"


def duplicates(
    vectors: Vectors, thresholds: float | Floats = DEFAULT.duplicate, groups: Sequence[int] | Ints | None = None
) -> tuple[Duplicate, ...]:
    """The questions that were asked before.

    Each question in order is compared with the earlier ones that stay; time grows as questions times those, memory as
    the questions.

    Args:
        vectors: shape (questions, dims), of unit length or zero (then equal to none).
        thresholds: one, or one a question: a question goes when its cosine is above its own.
        groups: shape (questions,): only questions of one group are compared, such as those of one corpus.

    Returns:
        In the order of the questions.

    Raises:
        ValueError: the shapes do not fit.
    """
    count = len(vectors)
    limits = np.broadcast_to(np.asarray(thresholds, dtype=np.float64), (count,))
    group = np.zeros(count, dtype=np.int64) if groups is None else np.asarray(groups, dtype=np.int64)
    if vectors.ndim != 2 or group.shape != (count,):
        raise ValueError("vectors need a row a question, groups a number a question")
    order = np.argsort(group, kind="stable")
    apart = np.flatnonzero(np.diff(group[order])) + 1
    found = [gone for rows in np.split(order, apart) for gone in _of_group(vectors, rows, limits)]
    return tuple(sorted(found, key=lambda gone: gone.row))


def _of_group(vectors: Vectors, rows: Ints, limits: Floats) -> list[Duplicate]:
    gone: list[Duplicate] = []
    kept = np.empty(0, dtype=np.int64)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        best, nearest = _nearest(vectors, block, kept)
        within = vectors[block] @ vectors[block].T
        stays: list[int] = []
        for place, row in enumerate(block.tolist()):
            cosine, of = float(best[place]), int(nearest[place])
            if stays and float((near := within[place, stays]).max()) > cosine:
                cosine, of = float(near.max()), int(block[stays[int(near.argmax())]])
            if cosine > limits[row]:
                gone.append(Duplicate(row, of, cosine, float(limits[row])))
            else:
                stays.append(place)
        kept = np.concatenate([kept, block[stays]])
    return gone


def _nearest(vectors: Vectors, block: Ints, kept: Ints) -> tuple[Floats, Ints]:
    """For each question of a block its highest cosine with those kept, and the first that has it; -inf without."""
    best = np.full(len(block), -np.inf)
    nearest = np.full(len(block), -1, dtype=np.int64)
    for start in range(0, len(kept), BLOCK):
        part = kept[start : start + BLOCK]
        cosines = vectors[block] @ vectors[part].T
        first = cosines.argmax(axis=1)
        top = cosines[np.arange(len(block)), first]
        better = top > best
        best[better], nearest[better] = top[better], part[first[better]]
    return best, nearest


def excerpt_cosines(questions: Vectors, excerpts: Vectors, owner: Sequence[int] | Ints) -> Floats:
    """The cosine of each excerpt with its question, shape (excerpts,).

    Args:
        questions, excerpts: shapes (questions, dims) and (excerpts, dims), of unit length.
        owner: shape (excerpts,), whose excerpt each is.
    """
    found: Floats = np.einsum("ij,ij->i", excerpts, questions[np.asarray(owner, dtype=np.int64)]).astype(np.float64)
    return found


def irrelevant(
    questions: Vectors,
    excerpts: Vectors,
    owner: Sequence[int] | Ints,
    thresholds: float | Floats = DEFAULT.excerpt,
) -> tuple[Irrelevant, ...]:
    """The questions with an excerpt that is about something else.

    Args:
        questions, excerpts, owner: as `excerpt_cosines`.
        thresholds: one, or one a question: a question goes when a cosine is below its own.

    Returns:
        In the order of the questions, each with its furthest excerpt; a question without excerpts stays.
    """
    cosines = excerpt_cosines(questions, excerpts, owner)
    limits = np.broadcast_to(np.asarray(thresholds, dtype=np.float64), (len(questions),))
    gone: list[Irrelevant] = []
    asked = np.asarray(owner, dtype=np.int64)
    first = set()
    for row in np.lexsort((cosines, asked)).tolist():
        question = int(asked[row])
        if question not in first and cosines[row] < limits[question]:
            gone.append(Irrelevant(question, row, float(cosines[row]), float(limits[question])))
        first.add(question)
    return tuple(gone)
