"""Filters, splits and windows for generated questions.

Removal of duplicates and of questions with an irrelevant excerpt: Smith and Troynikov, "Evaluating Chunking Strategies
for Retrieval", Chroma 2024. Two questions whose cosine is above a threshold are duplicates. A question is removed with
all its excerpts if its cosine with any of them is below another threshold. The report does not state which of two
duplicates remains. Here, the earlier question remains, and a removed question does not cause others to be removed.
Thresholds depend on the embedder and the corpus. The report's thresholds are for OpenAI's text-embedding-3-large.

Leakage: how far a question copies the rare words of its excerpts. Copied words bias scores towards lexical search.

    leakage(q) = sum of idf(w) over the words of q that occur in an excerpt of q / sum of idf(w) over the words of q
    idf(w) = ln(1 + (N - n(w) + 0.5) / (n(w) + 0.5))        N texts in the corpus, of which n(w) contain w

This is the idf of BM25 (Lucene's), so a copied rare word has the same weight as in BM25. Leakage is 0 if no word is
copied and 1 if all words are. The caller provides the words as lexical search compares them: distinct stems without
stop words and accents.

Measured (`benchmarks/leakage.py`) on the 472 questions of Chroma's chunking report over chunks of 200 tokens: recall of
the excerpts' characters in the first chunk, BM25 minus all-MiniLM-L6-v2. The difference is +0.025 in the third of the
questions with the least leakage (below 0.45), +0.185 in the next third (below 0.70) and +0.224 in the last third.
Spearman's rho is +0.15 (p 0.001). In the first five chunks, where BM25 finds almost everything, the differences are
+0.047, +0.113 and +0.107. WordLlama's vectors are sums over words and gain from copied words as BM25 does, so no trend
is visible.

Questions are split into a part for choosing (dev) and a part for reporting (test). A question's part depends only on a
hash of the seed and its key, so adding questions does not move others to another part. The shares are therefore
approximate: they hold on average within each type of question. If the key is the window or document, all questions
about it are in the same part. A choice made on dev then has not used the texts of the test questions.

Difficulty of questions: the share of systems that find a relevant passage. This is the classical difficulty of an item
(higher means easier). It is informative only if the systems differ: three chunk sizes of one embedder count as hardly
more than one system. If no system finds one, the question may be hard, or its excerpts may be wrong. Such questions
have a separate level, so that they can be reviewed.

Windows of documents from which questions are generated: the documents are divided into windows of about equal size. The
order of windows covers all parts of the documents evenly. In each prefix of this order, a document's number of windows
is proportional to its length, with an error of one or two. The windows of a document are spread evenly over it, and no
window is repeated before all were used. A longer order starts with the shorter one, so extending it does not change
earlier windows. A document of `n` windows and `L` characters gets the positions (i + u) / L, i = 0..n-1, with one
random u in [0, 1): the divisor method of apportionment with a random offset. The golden ratio determines which of its
windows is the i-th.

Threshold search: a binary search in which a person reviews pairs, as in the report. Pairs near the current value are
reviewed. If the pairs pass (the two questions mean the same, or the excerpt fits its question), the value decreases,
else it increases. A step shows up to three pairs and follows the majority, so a single unusual pair does not decide.
The state consists only of the answers, so undoing an answer removes it from the list.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count as count_up
from itertools import islice
from typing import Literal

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints, Vectors
from raggs.base.hashing import derive_seed, generator

QUESTIONS_PER_BLOCK = 1024  # questions compared at a time: 4 MB per block of cosines


@dataclass(frozen=True)
class Thresholds:
    """Cosine thresholds of the filters, each in -1..1.

    Attributes:
        excerpt: an excerpt with a lower cosine is not about its question.
        duplicate: two questions with a higher cosine are duplicates.
    """

    excerpt: float = 0.41
    duplicate: float = 0.70

    def __post_init__(self) -> None:
        for name, value in (("excerpt", self.excerpt), ("duplicate", self.duplicate)):
            if not -1 <= value <= 1:
                raise ValueError(f"the {name} threshold must be a cosine in -1..1, got {value}")


DEFAULT = Thresholds()
THRESHOLDS: Mapping[str, Thresholds] = {  # by corpus, from a table of the report
    "state_of_the_union": Thresholds(0.40, 0.70),
    "wikitexts": Thresholds(0.42, 0.73),
    "chatlogs": Thresholds(0.43, 0.71),
    "finance": Thresholds(0.42, 0.70),
    "pubmed": Thresholds(0.40, 0.67),
}
# Thresholds of embedders whose cosines have another range. All of the report's 472 questions had passed its filters.
# With WordLlama, the report's thresholds would remove 63 of them as duplicates and 197 because of an excerpt. The
# thresholds below remove 1 and 20. Those of lsa, fitted on the five documents of the report, follow the same rule: the
# 99th percentile of the highest cosine with an earlier question, and the 5th of the lowest cosine with an excerpt.
OF_EMBEDDERS: Mapping[str, Thresholds] = {
    "wordllama": Thresholds(excerpt=0.15, duplicate=0.85),
    "lsa": Thresholds(excerpt=0.35, duplicate=0.95),
}


def thresholds_for(corpus: str, embedder: str = "") -> Thresholds:
    """Return the default thresholds for an embedder and a corpus.

    The thresholds of the embedder type come first, then those of the corpus in the report, then general ones.
    """
    return OF_EMBEDDERS.get(embedder, THRESHOLDS.get(corpus, DEFAULT))


@dataclass(frozen=True)
class DuplicateQuestion:
    """A question to remove because it duplicates an earlier one.

    Attributes:
        row: row of the question.
        of: row of the most similar earlier question that remains.
        cosine: cosine of the two.
        threshold: the threshold that the cosine exceeds.
    """

    row: int
    of: int
    cosine: float
    threshold: float

    def __str__(self) -> str:
        return f"cosine {self.cosine:.3f} with question {self.of + 1}, above {self.threshold:g}"


@dataclass(frozen=True)
class IrrelevantQuestion:
    """A question to remove because an excerpt is not about it.

    Attributes:
        row: row of the question.
        excerpt: row of its excerpt with the lowest cosine.
        cosine: cosine of the two.
        threshold: the threshold that the cosine falls below.
    """

    row: int
    excerpt: int
    cosine: float
    threshold: float

    def __str__(self) -> str:
        return f"cosine {self.cosine:.3f} with an excerpt, below {self.threshold:g}"


def duplicates(
    vectors: Vectors, thresholds: float | Floats = DEFAULT.duplicate, groups: Sequence[int] | Ints | None = None
) -> tuple[DuplicateQuestion, ...]:
    """Return the questions that duplicate an earlier one.

    Each question is compared with the earlier questions that remain. Time grows with the number of questions times the
    number that remain, and memory with the number of questions.

    Args:
        vectors: shape (questions, dims), of unit length, or zero; a zero vector has the cosine 0 with every other.
        thresholds: one for all questions, or one per question; a question whose cosine exceeds its threshold is
            removed.
        groups: shape (questions,); only questions of the same group are compared, such as those of one corpus.

    Returns:
        Duplicates in the order of the questions.

    Raises:
        ValueError: the shapes do not match.
    """
    count = len(vectors)
    limits = np.broadcast_to(np.asarray(thresholds, dtype=np.float64), (count,))
    group = np.zeros(count, dtype=np.int64) if groups is None else np.asarray(groups, dtype=np.int64)
    if vectors.ndim != 2 or group.shape != (count,):
        raise ValueError("expected one row of `vectors` and one group per question")
    order = np.argsort(group, kind="stable")
    apart = np.flatnonzero(np.diff(group[order])) + 1
    found = [gone for rows in np.split(order, apart) for gone in _of_group(vectors, rows, limits)]
    return tuple(sorted(found, key=lambda gone: gone.row))


def _of_group(vectors: Vectors, rows: Ints, limits: Floats) -> list[DuplicateQuestion]:
    gone: list[DuplicateQuestion] = []
    kept = np.empty(0, dtype=np.int64)
    for start in range(0, len(rows), QUESTIONS_PER_BLOCK):
        block = rows[start : start + QUESTIONS_PER_BLOCK]
        best, nearest = _nearest(vectors, block, kept)
        within = vectors[block] @ vectors[block].T
        stays: list[int] = []
        for place, row in enumerate(block.tolist()):
            cosine, of = float(best[place]), int(nearest[place])
            if stays and float((near := within[place, stays]).max()) > cosine:
                cosine, of = float(near.max()), int(block[stays[int(near.argmax())]])
            if cosine > limits[row]:
                gone.append(DuplicateQuestion(row, of, cosine, float(limits[row])))
            else:
                stays.append(place)
        kept = np.concatenate([kept, block[stays]])
    return gone


def _nearest(vectors: Vectors, block: Ints, kept: Ints) -> tuple[Floats, Ints]:
    """Return each question's highest cosine with a kept question, and the first kept question with this cosine.

    If there are no kept questions, the cosine is -inf.
    """
    best = np.full(len(block), -np.inf)
    nearest = np.full(len(block), -1, dtype=np.int64)
    for start in range(0, len(kept), QUESTIONS_PER_BLOCK):
        part = kept[start : start + QUESTIONS_PER_BLOCK]
        cosines = vectors[block] @ vectors[part].T
        first = cosines.argmax(axis=1)
        top = cosines[np.arange(len(block)), first]
        better = top > best
        best[better], nearest[better] = top[better], part[first[better]]
    return best, nearest


def excerpt_cosines(questions: Vectors, excerpts: Vectors, owner: Sequence[int] | Ints) -> Floats:
    """Return the cosine of each excerpt with its question, shape (excerpts,).

    Args:
        questions, excerpts: shapes (questions, dims) and (excerpts, dims), of unit length.
        owner: shape (excerpts,), row of the question of each excerpt.
    """
    found: Floats = np.einsum("ij,ij->i", excerpts, questions[np.asarray(owner, dtype=np.int64)]).astype(np.float64)
    return found


def irrelevant(
    questions: Vectors,
    excerpts: Vectors,
    owner: Sequence[int] | Ints,
    thresholds: float | Floats = DEFAULT.excerpt,
) -> tuple[IrrelevantQuestion, ...]:
    """Return the questions with an excerpt that is not about them.

    Args:
        questions, excerpts, owner: as in `excerpt_cosines`.
        thresholds: one for all questions, or one per question; a question is removed if an excerpt has a lower cosine.

    Returns:
        The questions to remove, in their order, each with its least similar excerpt. Questions without excerpts remain.
    """
    cosines = excerpt_cosines(questions, excerpts, owner)
    limits = np.broadcast_to(np.asarray(thresholds, dtype=np.float64), (len(questions),))
    gone: list[IrrelevantQuestion] = []
    asked = np.asarray(owner, dtype=np.int64)
    first = set()
    for row in np.lexsort((cosines, asked)).tolist():
        question = int(asked[row])
        if question not in first and cosines[row] < limits[question]:
            gone.append(IrrelevantQuestion(question, row, float(cosines[row]), float(limits[question])))
        first.add(question)
    return tuple(gone)


LEAKAGE_BINS = 10
HIGH = 0.8  # questions with at least this leakage count as copied
MAX_HIGH_LEAKAGE_SHARE = 0.5  # if at least this share of the questions is copied, raggs warns


@dataclass(frozen=True)
class WordWeights:
    """Document frequencies of words, from which their idf is computed.

    Attributes:
        texts: number of texts in the corpus.
        holding: by word, the number of texts that contain the word.
    """

    texts: int
    holding: Mapping[str, int]

    @classmethod
    def of(cls, texts: Iterable[Collection[str]]) -> WordWeights:
        """Count in how many texts of a corpus (passages, windows or documents) each word occurs; return the weights."""
        holding: Counter[str] = Counter()
        count = 0
        for words in texts:
            holding.update(set(words))
            count += 1
        return cls(count, holding)

    def idf(self, word: str) -> float:
        """Return the idf of a word (see the module); a word that is in no text has the highest idf."""
        held = self.holding.get(word, 0)
        return math.log(1 + (self.texts - held + 0.5) / (held + 0.5))


def leakage(question: Collection[str], excerpts: Iterable[Collection[str]], weights: WordWeights) -> float:
    """Return how far a question copies its excerpts, 0..1; NaN for a question without words.

    Args:
        question: words of the question.
        excerpts: words of each of its excerpts.
        weights: document frequencies in the corpus.
    """
    asked = set(question)
    held = set().union(*excerpts)
    whole = math.fsum(weights.idf(word) for word in sorted(asked))
    return math.fsum(weights.idf(word) for word in sorted(asked & held)) / whole if whole else math.nan


@dataclass(frozen=True)
class LeakageSummary:
    """Summary of the leakage of a set of questions.

    Attributes:
        count: number of questions whose leakage is defined.
        mean, quartiles: mean of the values, and their first quartile, median and third quartile.
        histogram: number of questions in each tenth of 0..1.
        high: share of questions whose leakage is at least `HIGH`.
    """

    count: int
    mean: float
    quartiles: tuple[float, float, float]
    histogram: tuple[int, ...]
    high: float

    @property
    def warning(self) -> str | None:
        """Warning to show with scores over these questions; None if few questions are copied."""
        if not self.count or self.high < MAX_HIGH_LEAKAGE_SHARE:
            return None
        return (
            f"{self.high:.0%} of the questions copy the rare words of their excerpts (leakage {HIGH:g} or more): "
            "scores over them are biased towards lexical search"
        )


def summarise_leakage(values: Sequence[float] | Floats) -> LeakageSummary:
    """Return the summary of values of `leakage`; NaN is ignored."""
    valid = np.asarray(values, dtype=np.float64)
    valid = valid[~np.isnan(valid)]
    if not len(valid):
        return LeakageSummary(0, math.nan, (math.nan,) * 3, (0,) * LEAKAGE_BINS, math.nan)
    first, median, third = np.quantile(valid, [0.25, 0.5, 0.75]).tolist()
    bins, _ = np.histogram(valid, bins=LEAKAGE_BINS, range=(0.0, 1.0))
    high = float((valid >= HIGH).mean())
    return LeakageSummary(len(valid), float(valid.mean()), (first, median, third), tuple(bins.tolist()), high)


SplitPart = Literal["dev", "test"]
DEV = 0.5
RANGE = 2.0**64


def part_of(key: str, seed: int, dev: float = DEV) -> SplitPart:
    """Return the part (dev or test) of the question with this key.

    Args:
        key: key of the question, or of the text that the question is about.
        seed: random seed.
        dev: share of dev, 0..1. The dev part of a larger share contains the dev part of a smaller one.

    Raises:
        ValueError: the share is out of range.
    """
    if not 0 <= dev <= 1:
        raise ValueError(f"the share of dev must be in 0..1, got {dev}")
    return "dev" if derive_seed(seed, "split", key) < dev * RANGE else "test"


DifficultyLevel = Literal["easy", "medium", "hard", "unfound"]
DIFFICULTIES: tuple[DifficultyLevel, ...] = ("easy", "medium", "hard", "unfound")
EASY, MEDIUM = 2 / 3, 1 / 3  # minimum shares of the systems that find a relevant passage


@dataclass(frozen=True)
class QuestionDifficulty:
    """Difficulty of one question.

    Attributes:
        found: number of systems that find a relevant passage.
        systems: number of systems.
        level: "easy" if at least two thirds of the systems find one, "medium" from one third, "hard" below, "unfound"
            if no system does.
    """

    found: int
    systems: int
    level: DifficultyLevel


def difficulties(hits: Flags) -> tuple[QuestionDifficulty, ...]:
    """Return the difficulty of each question.

    Args:
        hits: shape (questions, systems), whether the system finds a relevant passage of the question.

    Raises:
        ValueError: the array is not two-dimensional or has no system.
    """
    if hits.ndim != 2 or not hits.shape[1]:
        raise ValueError("hits need one row per question and at least one column (system)")
    systems = hits.shape[1]
    return tuple(
        QuestionDifficulty(found, systems, _difficulty_level(found, systems)) for found in np.sum(hits, axis=1).tolist()
    )


def _difficulty_level(found: int, systems: int) -> DifficultyLevel:
    if not found:
        return "unfound"
    return "easy" if found >= EASY * systems else "medium" if found >= MEDIUM * systems else "hard"


SIZE = 4000  # window size in characters, as in the report
GOLDEN = (5**0.5 - 1) / 2
# Preferred positions of a window's edge, and the maximum distance of each, as a share of a window.
BREAKS = ((re.compile(r"\n\s*\n"), 0.1), (re.compile(r"\s+"), 1.0))
WORD_CHARACTER = re.compile(r"\w")


@dataclass(frozen=True, order=True)
class TextWindow:
    """A range of characters of one document.

    Attributes:
        document: number of the document, from 0.
        start, end: positions of the first character, and of the first one after the range. The range has no white space
            at its ends.
    """

    document: int
    start: int
    end: int


def stratified_windows(texts: Sequence[str], count: int, seed: int, *, size: int = SIZE) -> tuple[TextWindow, ...]:
    """Return `count` windows in an order that covers all parts of the documents evenly (see the module).

    A document of at most `size` characters is one window. Longer documents are divided into equal parts of at most
    `size` characters. Each edge between two parts moves to a blank line less than a tenth of a part away, or else to
    the nearest white space. In a part without white space (a page of Chinese), the edge does not move. Once all windows
    are used, the longer documents are divided again, with their edges a quarter to three quarters of a part later.

    Args:
        texts: texts of the documents.
        count: number of windows.
        seed: random seed of the order and of the later windows.
        size: maximum size of a part in characters; a window may be longer, because its edges move.

    Returns:
        `count` windows, each with at least one letter or digit. The tuple is empty if no document contains a letter or
        digit.

    Raises:
        ValueError: `count` is below 0 or `size` below 1.
    """
    if count < 0 or size < 1:
        raise ValueError(f"the number of windows must be at least 0 and their size at least 1, got {count} and {size}")
    rounds = (_round(texts, number, seed, size) for number in count_up())
    if not (first := next(rounds)):
        return ()
    return tuple(islice(_chain(first, rounds), count))


def _chain(first: list[TextWindow], rounds: Iterator[list[TextWindow]]) -> Iterator[TextWindow]:
    yield from first
    for windows in rounds:
        yield from windows


def _round(texts: Sequence[str], number: int, seed: int, size: int) -> list[TextWindow]:
    """Return all windows of one round through the documents, in the order of `stratified_windows`."""
    placed: list[tuple[float, TextWindow]] = []
    for document, text in enumerate(texts):
        chance = generator(seed, "windows", number, document)
        offset, turn, shift = chance.random(3).tolist()
        edges = _edges(text, size, (0.25 + 0.5 * shift) if number else 0.0)
        cells = [cell for cell in map(TextWindow, [document] * len(edges), edges, edges[1:]) if _holds_word(text, cell)]
        spread = sorted(range(len(cells)), key=lambda cell: (turn + cell * GOLDEN) % 1.0)
        placed += [((place + offset) / len(text), cells[cell]) for place, cell in enumerate(spread)]
    return [_trim(texts[window.document], window) for _, window in sorted(placed)]


def _holds_word(text: str, window: TextWindow) -> bool:
    return WORD_CHARACTER.search(text, window.start, window.end) is not None


def _edges(text: str, size: int, shift: float) -> list[int]:
    """Return the edges of a text's windows, including its start and end.

    Args:
        shift: share of a window by which all edges are shifted; the first and last window are then shorter.
    """
    parts = max(1, -(-len(text) // size))
    width = len(text) / parts
    if parts == 1:
        return [0, len(text)]
    wanted = [(place + shift) * width for place in range(parts) if place + shift > 0]
    cuts = (_nearest_break(text, round(place), width) for place in wanted)
    return sorted({0, *cuts, len(text)})


def _nearest_break(text: str, place: int, width: float) -> int:
    """Return the best edge near `place`.

    A nearby blank line comes first, then white space at most one part away, then `place` itself.
    """
    for pattern, share in BREAKS:
        reach = max(1, int(share * width))
        found = [match.end() for match in pattern.finditer(text, max(0, place - reach), place + reach)]
        if found:
            return min(found, key=lambda cut: abs(cut - place))
    return place


def _trim(text: str, window: TextWindow) -> TextWindow:
    """Remove white space at the ends of a window; return the window."""
    held = text[window.start : window.end]
    start = window.start + len(held) - len(held.lstrip())
    return TextWindow(window.document, start, start + len(held.strip()))


PAIRS_PER_STEP = 3  # maximum number of pairs to review per step
WIDTH = 0.01  # width of the interval at which the search ends
COSINE_BINS = 20


@dataclass(frozen=True)
class ThresholdBracket:
    """State of a threshold search.

    Attributes:
        low, high: bounds of the interval that contains the threshold.
        row: next pair to review; None if the search is finished.
    """

    low: float
    high: float
    row: int | None

    @property
    def threshold(self) -> float:
        """Middle of the interval, rounded to two decimals."""
        return round((self.low + self.high) / 2, 2)


@dataclass
class ThresholdSearch:
    """A search for the cosine above which pairs pass.

    Attributes:
        cosines: cosines of the pairs, shape (pairs,).
        answers: for each reviewed pair, whether the pair passes, in the order of the reviews.
    """

    cosines: Floats
    answers: list[bool] = field(default_factory=list)

    def answer(self, passes: bool) -> None:
        """Record the answer for the pair that `standing` returned."""
        self.answers.append(passes)

    def undo(self) -> bool:
        """Remove the last answer and return whether there was one."""
        return bool(self.answers) and self.answers.pop() is not None

    def standing(self) -> ThresholdBracket:
        """Return the state of the search after the answers so far."""
        if not len(self.cosines):
            return ThresholdBracket(-1.0, 1.0, None)
        low, high = float(self.cosines.min()), float(self.cosines.max())
        seen: set[int] = set()
        votes: list[bool] = []
        given = iter(self.answers)
        while high - low > WIDTH:
            row = None if _is_settled(votes) else self._nearest((low + high) / 2, low, high, seen)
            if row is None and not votes:
                break  # all pairs in the interval were reviewed
            if row is None:
                low, high = _halve_interval(low, high, votes)
                votes = []
                continue
            passes = next(given, None)
            if passes is None:
                return ThresholdBracket(low, high, row)
            seen.add(row)
            votes.append(passes)
        return ThresholdBracket(low, high, None)

    def _nearest(self, value: float, low: float, high: float, seen: set[int]) -> int | None:
        """Return the unreviewed pair whose cosine is nearest to a value, within the bounds; None if there is none."""
        order = np.argsort(np.abs(self.cosines - value), kind="stable").tolist()
        return next((row for row in order if row not in seen and low <= self.cosines[row] <= high), None)


def _is_settled(votes: Sequence[bool]) -> bool:
    """Return whether the majority of a step is certain before all its pairs are reviewed."""
    most = PAIRS_PER_STEP // 2 + 1
    return sum(votes) >= most or len(votes) - sum(votes) >= most


def _halve_interval(low: float, high: float, votes: Sequence[bool]) -> tuple[float, float]:
    middle = (low + high) / 2
    return (low, middle) if 2 * sum(votes) >= len(votes) else (middle, high)


def nearest_earlier(vectors: Vectors) -> tuple[Floats, list[int]]:
    """Return the highest cosine with an earlier question, and that question's row, for each question but the first."""
    cosines = np.full(max(0, len(vectors) - 1), -1.0)
    nearest = [0] * len(cosines)
    for row in range(1, len(vectors)):
        near = vectors[:row] @ vectors[row]
        nearest[row - 1] = int(near.argmax())
        cosines[row - 1] = float(near[nearest[row - 1]])
    return cosines, nearest


def furthest_excerpt(cosines: Floats, owner: Sequence[int]) -> tuple[Floats, list[int]]:
    """Return, for each question with excerpts, the lowest cosine of an excerpt and that excerpt's row.

    Args:
        cosines, owner: cosine and question of each excerpt, as in `excerpt_cosines`.
    """
    lowest: dict[int, int] = {}
    for row, question in enumerate(owner):
        if question not in lowest or cosines[row] < cosines[lowest[question]]:
            lowest[question] = row
    rows = [lowest[question] for question in sorted(lowest)]
    return np.asarray(cosines[rows], dtype=np.float64), rows


def histogram(cosines: Floats, bins: int = COSINE_BINS) -> tuple[tuple[float, int], ...]:
    """Return a histogram of cosines over 0..1: lower edge and count of each bin; negative cosines count as 0."""
    counts, edges = np.histogram(np.clip(cosines, 0.0, 1.0), bins=bins, range=(0.0, 1.0))
    return tuple(zip((round(float(edge), 6) for edge in edges), counts.tolist(), strict=False))
