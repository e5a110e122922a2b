"""Which questions go: those asked already, and those with an excerpt that is about something else.

Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval", Chroma 2024: two questions whose cosine is above a
threshold are duplicates, and a question goes with all its excerpts if its cosine with any of them is below another.
Of duplicates the report does not say which stays; here it is the earlier one, and what went makes nobody else go.

Thresholds belong to an embedder and a corpus. The report's are those of OpenAI's text-embedding-3-large.

How far a question copies the rare words of what answers it: copied questions flatter lexical search.

    leakage(q) = sum of idf(w) over the words of q that stand in an excerpt of q / sum of idf(w) over the words of q
    idf(w) = ln(1 + (N - n(w) + 0.5) / (n(w) + 0.5))        N texts of the corpus, of which n(w) hold w

the idf of BM25 (Lucene's), so a copied rare word weighs as it does there. 0: no word is copied; 1: all are. Words are
those that search compares: stems without stop words and accents, each once, which the caller makes.

Measured (`benchmarks/leakage.py`) on the 472 questions of Chroma's chunking report over chunks of 200 tokens, recall of
the excerpts' characters in the first chunk, BM25 less all-MiniLM-L6-v2: +.025 in the third with the least leakage
(below .45), +.185 in the next (below .70), +.224 in the last; Spearman's rho +.15, p .001. Among the first five
chunks, where BM25 finds almost everything, it is +.047, +.113, +.107. WordLlama's vectors, themselves sums over words,
gain by copying as BM25 does: no slope is to be seen.

Which questions are for choosing (dev) and which for reporting (test).

A question's part is drawn by a hash of the seed and its key, and of nothing else: adding questions moves none. So the
shares hold in every type of question alike, in the mean and not to the question. With the window or document as key,
all questions about it are in one part, and what was chosen on dev has not seen what test asks about.

How hard questions are, by how many systems find what answers them.

The share of systems that find it is the classical difficulty of an item (the higher, the easier). It says as much as
the systems differ: three chunk sizes of one embedder are hardly more than one system. What nobody finds may be hard,
or its excerpts may be wrong: such questions are told apart, to be looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints, Vectors
from raggs.base.seeds import derive_seed

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


BINS = 10
HIGH = 0.8  # from here a question is copied
MOST_HIGH = 0.5  # share of copied questions from which a set is warned about


@dataclass(frozen=True)
class WordWeights:
    """How rare words are.

    Attributes:
        texts: of the corpus.
        holding: by word, how many of them hold it.
    """

    texts: int
    holding: Mapping[str, int]

    @classmethod
    def of(cls, texts: Iterable[Collection[str]]) -> WordWeights:
        """From the words of each text of the corpus: passages, windows or documents."""
        holding: Counter[str] = Counter()
        count = 0
        for words in texts:
            holding.update(set(words))
            count += 1
        return cls(count, holding)

    def idf(self, word: str) -> float:
        """See the module; a word that no text holds is the rarest."""
        held = self.holding.get(word, 0)
        return math.log(1 + (self.texts - held + 0.5) / (held + 0.5))


def leakage(question: Collection[str], excerpts: Iterable[Collection[str]], weights: WordWeights) -> float:
    """How far a question copies its excerpts, 0..1; NaN for a question without a word.

    Args:
        question: its words.
        excerpts: the words of each of its excerpts.
    """
    asked = set(question)
    held = set().union(*excerpts)
    whole = math.fsum(weights.idf(word) for word in sorted(asked))
    return math.fsum(weights.idf(word) for word in sorted(asked & held)) / whole if whole else math.nan


@dataclass(frozen=True)
class LeakageSummary:
    """Leakage over a set of questions.

    Attributes:
        count: of the questions with a value.
        mean, quartiles: of the values; the quartiles are the first, the median and the third.
        histogram: questions in each tenth of 0..1.
        high: share of the questions at or above `HIGH`.
    """

    count: int
    mean: float
    quartiles: tuple[float, float, float]
    histogram: tuple[int, ...]
    high: float

    @property
    def warning(self) -> str | None:
        """What a reader of scores over these questions must know; None where there is nothing to say."""
        if not self.count or self.high < MOST_HIGH:
            return None
        return (
            f"{self.high:.0%} of the questions copy the rare words of what answers them (leakage {HIGH:g} or more): "
            "scores over them flatter lexical search"
        )


def summarise_leakage(values: Sequence[float] | Floats) -> LeakageSummary:
    """The summary of values of `leakage`; NaN is left out."""
    valid = np.asarray(values, dtype=np.float64)
    valid = valid[~np.isnan(valid)]
    if not len(valid):
        return LeakageSummary(0, math.nan, (math.nan,) * 3, (0,) * BINS, math.nan)
    first, median, third = np.quantile(valid, [0.25, 0.5, 0.75]).tolist()
    bins, _ = np.histogram(valid, bins=BINS, range=(0.0, 1.0))
    high = float((valid >= HIGH).mean())
    return LeakageSummary(len(valid), float(valid.mean()), (first, median, third), tuple(bins.tolist()), high)


Part = Literal["dev", "test"]
DEV = 0.5
RANGE = 2.0**64


def part_of(key: str, seed: int, dev: float = DEV) -> Part:
    """The part of the question with this key.

    Args:
        key: of the question, or of what it is about.
        dev: the share of dev, 0..1. A larger share keeps all that a smaller one held.

    Raises:
        ValueError: the share is out of range.
    """
    if not 0 <= dev <= 1:
        raise ValueError(f"the share of dev is {dev}; it must lie in 0..1")
    return "dev" if derive_seed(seed, "split", key) < dev * RANGE else "test"


Level = Literal["easy", "medium", "hard", "unfound"]
DIFFICULTIES: tuple[Level, ...] = ("easy", "medium", "hard", "unfound")
EASY, MEDIUM = 2 / 3, 1 / 3  # shares of the systems, each included


@dataclass(frozen=True)
class Difficulty:
    """Of one question.

    Attributes:
        found: how many systems find it.
        systems: how many were asked.
        level: easy from two thirds of the systems, medium from one third, hard below, unfound by none.
    """

    found: int
    systems: int
    level: Level


def difficulties(hits: Flags) -> tuple[Difficulty, ...]:
    """The difficulty of each question.

    Args:
        hits: shape (questions, systems), whether a system finds what answers a question.

    Raises:
        ValueError: there is no system.
    """
    if hits.ndim != 2 or not hits.shape[1]:
        raise ValueError("hits need a row a question and a column for at least one system")
    systems = hits.shape[1]
    return tuple(Difficulty(found, systems, _level(found, systems)) for found in np.sum(hits, axis=1).tolist())


def _level(found: int, systems: int) -> Level:
    if not found:
        return "unfound"
    return "easy" if found >= EASY * systems else "medium" if found >= MEDIUM * systems else "hard"
