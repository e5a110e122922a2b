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

Which parts of the documents are shown to whoever asks questions about them.

The documents are tiled into windows of about one size, and the windows are put in an order in which every part has its
turn. In each beginning of that order a document has as many windows as its share of all characters says, give or take
one or two; those of one document lie evenly over it; and no character is shown again before all have been shown. A
longer order begins with the shorter one, so asking for more changes nothing that was asked.

A document of `n` windows and `L` characters gets the places (i + u) / L, i = 0..n-1, with one random u in [0, 1): the
divisor method of apportionment with a random offset. Which of its windows comes i-th follows the golden ratio.

Where a threshold stands, found by looking at pairs in binary search.

The report's way: pairs near a value are looked at, and the value moves down while they pass (these two do ask the
same; this excerpt is about its question) and up while they do not. A step shows up to three pairs and goes with most
of them, so one odd pair does not decide. The state is the answers alone: taking one back is forgetting it.
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

QUESTIONS_PER_BLOCK = 1024  # questions compared at a time: 4 MB a block of cosines


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
class DuplicateQuestion:
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
class IrrelevantQuestion:
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
) -> tuple[DuplicateQuestion, ...]:
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
    """For each question of a block its highest cosine with those kept, and the first that has it; -inf without."""
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
) -> tuple[IrrelevantQuestion, ...]:
    """The questions with an excerpt that is about something else.

    Args:
        questions, excerpts, owner: as `excerpt_cosines`.
        thresholds: one, or one a question: a question goes when a cosine is below its own.

    Returns:
        In the order of the questions, each with its furthest excerpt; a question without excerpts stays.
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
HIGH = 0.8  # from here a question is copied
MAX_HIGH_LEAKAGE_SHARE = 0.5  # share of copied questions from which a set is warned about


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
        if not self.count or self.high < MAX_HIGH_LEAKAGE_SHARE:
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
        return LeakageSummary(0, math.nan, (math.nan,) * 3, (0,) * LEAKAGE_BINS, math.nan)
    first, median, third = np.quantile(valid, [0.25, 0.5, 0.75]).tolist()
    bins, _ = np.histogram(valid, bins=LEAKAGE_BINS, range=(0.0, 1.0))
    high = float((valid >= HIGH).mean())
    return LeakageSummary(len(valid), float(valid.mean()), (first, median, third), tuple(bins.tolist()), high)


SplitPart = Literal["dev", "test"]
DEV = 0.5
RANGE = 2.0**64


def part_of(key: str, seed: int, dev: float = DEV) -> SplitPart:
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


DifficultyLevel = Literal["easy", "medium", "hard", "unfound"]
DIFFICULTIES: tuple[DifficultyLevel, ...] = ("easy", "medium", "hard", "unfound")
EASY, MEDIUM = 2 / 3, 1 / 3  # shares of the systems, each included


@dataclass(frozen=True)
class QuestionDifficulty:
    """Of one question.

    Attributes:
        found: how many systems find it.
        systems: how many were asked.
        level: easy from two thirds of the systems, medium from one third, hard below, unfound by none.
    """

    found: int
    systems: int
    level: DifficultyLevel


def difficulties(hits: Flags) -> tuple[QuestionDifficulty, ...]:
    """The difficulty of each question.

    Args:
        hits: shape (questions, systems), whether a system finds what answers a question.

    Raises:
        ValueError: there is no system.
    """
    if hits.ndim != 2 or not hits.shape[1]:
        raise ValueError("hits need a row a question and a column for at least one system")
    systems = hits.shape[1]
    return tuple(
        QuestionDifficulty(found, systems, _difficulty_level(found, systems)) for found in np.sum(hits, axis=1).tolist()
    )


def _difficulty_level(found: int, systems: int) -> DifficultyLevel:
    if not found:
        return "unfound"
    return "easy" if found >= EASY * systems else "medium" if found >= MEDIUM * systems else "hard"


SIZE = 4000  # characters, as in the report
GOLDEN = (5**0.5 - 1) / 2
# Where a cut may stand, and how far it moves for that, as a share of a window.
BREAKS = ((re.compile(r"\n\s*\n"), 0.1), (re.compile(r"\s+"), 1.0))
WORD_CHARACTER = re.compile(r"\w")


@dataclass(frozen=True, order=True)
class TextWindow:
    """Characters of one document.

    Attributes:
        document: its number, from 0.
        start, end: the first character, and the first one after the last; neither is white space.
    """

    document: int
    start: int
    end: int


def stratified_windows(texts: Sequence[str], count: int, seed: int, *, size: int = SIZE) -> tuple[TextWindow, ...]:
    """`count` windows in an order in which every part of the documents has its turn (see the module).

    A document of at most `size` characters is one window. Others are cut into equal parts of at most that, and the cuts
    moved to a blank line less than a tenth of a part away, or else to the nearest white space; a word as long as a
    part (a page of Chinese) is cut where it falls. When all windows are used, others are cut, a quarter to three
    quarters of a part further on.

    Args:
        texts: of the documents; windows hold at least one letter or digit.
        seed: of the order and of the later cuts.

    Returns:
        Fewer than `count` only if no document has a word: none.

    Raises:
        ValueError: `count` is below 0 or `size` below 1.
    """
    if count < 0 or size < 1:
        raise ValueError(f"{count} windows of {size} characters: both must be positive")
    rounds = (_round(texts, number, seed, size) for number in count_up())
    if not (first := next(rounds)):
        return ()
    return tuple(islice(_chain(first, rounds), count))


def _chain(first: list[TextWindow], rounds: Iterator[list[TextWindow]]) -> Iterator[TextWindow]:
    yield from first
    for windows in rounds:
        yield from windows


def _round(texts: Sequence[str], number: int, seed: int, size: int) -> list[TextWindow]:
    """Every part of every document once, in order."""
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
    """Where a text is cut, its start and end included.

    Args:
        shift: of a window, by which cuts move; the first and the last window are then shorter.
    """
    parts = max(1, -(-len(text) // size))
    width = len(text) / parts
    if parts == 1:
        return [0, len(text)]
    wanted = [(place + shift) * width for place in range(parts) if place + shift > 0]
    cuts = (_nearest_break(text, round(place), width) for place in wanted)
    return sorted({0, *cuts, len(text)})


def _nearest_break(text: str, place: int, width: float) -> int:
    """The nearest place to cut at: a blank line that is near, else white space no further than a part away."""
    for pattern, share in BREAKS:
        reach = max(1, int(share * width))
        found = [match.end() for match in pattern.finditer(text, max(0, place - reach), place + reach)]
        if found:
            return min(found, key=lambda cut: abs(cut - place))
    return place


def _trim(text: str, window: TextWindow) -> TextWindow:
    """The same without white space at its ends."""
    held = text[window.start : window.end]
    start = window.start + len(held) - len(held.lstrip())
    return TextWindow(window.document, start, start + len(held.strip()))


PAIRS_PER_STEP = 3  # pairs a step
WIDTH = 0.01  # a threshold that is known so well is found
COSINE_BINS = 20


@dataclass(frozen=True)
class ThresholdBracket:
    """Where a search stands.

    Attributes:
        low, high: between which the threshold lies.
        row: the pair to show next; None when the search is over.
    """

    low: float
    high: float
    row: int | None

    @property
    def threshold(self) -> float:
        """The middle, on two digits."""
        return round((self.low + self.high) / 2, 2)


@dataclass
class ThresholdSearch:
    """A search for the cosine above which pairs pass.

    Attributes:
        cosines: of the pairs, shape (pairs,).
        answers: given so far, whether the pair shown passes.
    """

    cosines: Floats
    answers: list[bool] = field(default_factory=list)

    def answer(self, passes: bool) -> None:
        """Note what was seen of the pair that `standing` shows."""
        self.answers.append(passes)

    def undo(self) -> bool:
        """Forget the last answer; whether there was one."""
        return bool(self.answers) and self.answers.pop() is not None

    def standing(self) -> ThresholdBracket:
        """Where the answers lead."""
        if not len(self.cosines):
            return ThresholdBracket(-1.0, 1.0, None)
        low, high = float(self.cosines.min()), float(self.cosines.max())
        seen: set[int] = set()
        votes: list[bool] = []
        given = iter(self.answers)
        while high - low > WIDTH:
            row = None if _is_settled(votes) else self._nearest((low + high) / 2, low, high, seen)
            if row is None and not votes:
                break  # every pair between was looked at
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
        """The pair nearest to a value that was not seen, between the bounds."""
        order = np.argsort(np.abs(self.cosines - value), kind="stable").tolist()
        return next((row for row in order if row not in seen and low <= self.cosines[row] <= high), None)


def _is_settled(votes: Sequence[bool]) -> bool:
    """Whether most of a step's pairs agree whatever the rest says."""
    most = PAIRS_PER_STEP // 2 + 1
    return sum(votes) >= most or len(votes) - sum(votes) >= most


def _halve_interval(low: float, high: float, votes: Sequence[bool]) -> tuple[float, float]:
    middle = (low + high) / 2
    return (low, middle) if 2 * sum(votes) >= len(votes) else (middle, high)


def nearest_earlier(vectors: Vectors) -> tuple[Floats, list[int]]:
    """For each question but the first, its highest cosine with an earlier one, and which that is."""
    cosines = np.full(max(0, len(vectors) - 1), -1.0)
    nearest = [0] * len(cosines)
    for row in range(1, len(vectors)):
        near = vectors[:row] @ vectors[row]
        nearest[row - 1] = int(near.argmax())
        cosines[row - 1] = float(near[nearest[row - 1]])
    return cosines, nearest


def furthest_excerpt(cosines: Floats, owner: Sequence[int]) -> tuple[Floats, list[int]]:
    """For each question with excerpts, the lowest of their cosines, and the row of that excerpt.

    Args:
        cosines, owner: of the excerpts (`raggs.stats.question_filters.excerpt_cosines`).
    """
    lowest: dict[int, int] = {}
    for row, question in enumerate(owner):
        if question not in lowest or cosines[row] < cosines[lowest[question]]:
            lowest[question] = row
    rows = [lowest[question] for question in sorted(lowest)]
    return np.asarray(cosines[rows], dtype=np.float64), rows


def histogram(cosines: Floats, bins: int = COSINE_BINS) -> tuple[tuple[float, int], ...]:
    """How many cosines begin where: the lower edge of each bin of 0..1 and its count; what is below 0 counts as 0."""
    counts, edges = np.histogram(np.clip(cosines, 0.0, 1.0), bins=bins, range=(0.0, 1.0))
    return tuple(zip((round(float(edge), 6) for edge in edges), counts.tolist(), strict=False))
