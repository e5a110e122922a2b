"""How far a question copies the rare words of what answers it: copied questions flatter lexical search.

    leakage(q) = sum of idf(w) over the words of q that stand in an excerpt of q / sum of idf(w) over the words of q
    idf(w) = ln(1 + (N - n(w) + 0.5) / (n(w) + 0.5))        N texts of the corpus, of which n(w) hold w

the idf of BM25 (Lucene's), so a copied rare word weighs as it does there. 0: no word is copied; 1: all are. Words are
those that search compares: stems without stop words and accents, each once, which the caller makes.

Measured (`benchmarks/leakage.py`) on the 472 questions of Chroma's chunking report over chunks of 200 tokens, recall of
the excerpts' characters in the first chunk, BM25 less all-MiniLM-L6-v2: +.025 in the third with the least leakage
(below .45), +.185 in the next (below .70), +.224 in the last; Spearman's rho +.15, p .001. Among the first five
chunks, where BM25 finds almost everything, it is +.047, +.113, +.107. WordLlama's vectors, themselves sums over words,
gain by copying as BM25 does: no slope is to be seen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats

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
