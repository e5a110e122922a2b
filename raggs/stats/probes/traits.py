"""What questions have in common: the traits by which those that fail are told from the rest.

A trait is a row of one of three tables: a flag, a number that is cut at its median, or a level that is held against all
others. Another trait is another row. Each says what to turn where questions that have it fail. Texts in, numbers out:
1 has it, 0 has it not, NaN where nobody knows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats
from raggs.stats.asking import WordWeights, leakage
from raggs.stats.probes.wording import asked_by, holds_identifier, holds_number, length_of

FEWEST = 5  # questions on either side of a trait; below, nothing could be told
MOST_LEVELS = 8  # of one kind that are looked at, the most frequent: each costs the others some of their power


@dataclass(frozen=True)
class Answer:
    """A relevant passage.

    Attributes:
        language: ISO 639-1; empty where it is not clear.
        section: where it stands, by the first step of its path of titles; empty where it has no path.
        letters: its length in characters; None where its text is not known.
        words: as lexical search compares them; None where its text is not known.
        twin: whether a near-duplicate of it is known.
    """

    language: str = ""
    section: str = ""
    letters: int | None = None
    words: frozenset[str] | None = None
    twin: bool = False


@dataclass(frozen=True)
class Asked:
    """A question with what answers it.

    Attributes:
        text, language: of the question; empty where they are not known.
        words: as lexical search compares them.
        names: how many proper names it holds.
        rewritten: whether something else was searched for; None where that is not known.
        relevant: how many passages are relevant.
        answers: those of which more is known.
    """

    text: str
    language: str = ""
    words: frozenset[str] = frozenset()
    names: int = 0
    rewritten: bool | None = None
    relevant: int = 0
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True)
class Trait:
    """A trait of some questions.

    Attributes:
        kind: the row of a table that it is from.
        name: what those that have it do, as a clause: "hold a number".
        knob: what to turn where they fail.
        values: shape (questions,): 1, 0 or NaN.
    """

    kind: str
    name: str
    knob: str
    values: Floats

    @property
    def having(self) -> int:
        """How many have it."""
        return int((self.values == 1).sum())

    @property
    def lacking(self) -> int:
        """How many have it not."""
        return int((self.values == 0).sum())

    @property
    def told(self) -> bool:
        """Whether there are enough on both sides."""
        return min(self.having, self.lacking) >= FEWEST


Read = Callable[[Asked, WordWeights], float]

HYBRID = "where vectors alone search, a lexical retriever beside them, fused (RRF)"
FLAGS: tuple[tuple[str, str, str, Read], ...] = (
    ("names", "hold a name", f"{HYBRID}; raggs diagnose names tells which embedder reads names",
     lambda asked, _: _flag(asked.names, asked.text)),
    ("numbers", "hold a number", f"{HYBRID}; numbers are words to BM25 and little to most embedders",
     lambda asked, _: _flag(holds_number(asked.text), asked.text)),
    ("identifiers", "hold an acronym or identifier", f"{HYBRID}; a tokenizer that keeps identifiers whole",
     lambda asked, _: _flag(holds_identifier(asked.text), asked.text)),
    ("unknown words", "hold a word that no passage has", "questions rewritten (embed.rewrite), spelling, synonyms",
     lambda asked, weights: _unknown(asked, weights)),
    ("rewritten", "were rewritten before the search", "compare with embed.rewrite: none; raggs diagnose noise",
     lambda asked, _: math.nan if asked.rewritten is None else float(asked.rewritten)),
    ("near-duplicates", "are answered by passages with near-duplicates", "near-duplicates left out before reranking",
     lambda asked, _: _any([answer.twin for answer in asked.answers])),
    ("other language", "are answered in another language than they ask in",
     "an embedder of several languages, or questions translated before the search", lambda asked, _: _abroad(asked)),
)  # fmt: skip
# Kind, name with the cut, knob, whether the lower half has the trait, and what is cut.
NUMBERS: tuple[tuple[str, str, str, bool, Read], ...] = (
    ("length", "have more than {:g} words", "questions rewritten shorter (embed.rewrite); raggs diagnose noise", False,
     lambda asked, _: float(length_of(asked.text)) if asked.text else math.nan),
    ("rare words", "hold a word that stands in less than {:.2%} of the passages",
     f"{HYBRID}; an embedder of the subject's own", True, lambda asked, weights: _rarest(asked, weights)),
    ("other words", "share less than {:.0%} of their rare words with what answers them",
     "questions rewritten (embed.rewrite), a stronger dense embedder, a reranker", True,
     lambda asked, weights: _shared(asked, weights)),
    ("relevant passages", "have more than {:g} relevant passages",
     "a larger cutoff; near-duplicates left out before reranking", False,
     lambda asked, _: float(asked.relevant) if asked.relevant else math.nan),
    ("long passages", "are answered by passages of more than {:,.0f} characters",
     "shorter chunks (raggs chunks eval); an embedder that reads that far", False, lambda asked, _: _letters(asked)),
)  # fmt: skip
LEVELS: tuple[tuple[str, str, str, Callable[[Asked], str]], ...] = (
    ("language", "ask in {}", "an embedder of that language; the stemmer and stop words of lexical search",
     lambda asked: asked.language if asked.text else ""),
    ("question type", "ask {}", "look at their examples; a reranker reads what is asked, not only what about",
     lambda asked: asked_by(asked.text, asked.language) if asked.text else ""),
    ("section", "are answered in {}", "look at how that section is cut, and at its titles (raggs chunks eval)",
     lambda asked: _section(asked)),
)  # fmt: skip


def traits_of(asked: Sequence[Asked], weights: WordWeights) -> tuple[Trait, ...]:
    """All traits that at least one question has and one has not; see `Trait.told`.

    Args:
        weights: how rare words are in the corpus; of no texts where that is not known.
    """
    found = [*_flags(asked, weights), *_numbers(asked, weights), *_levels(asked)]
    return tuple(trait for trait in found if trait.having and trait.lacking)


def _flags(asked: Sequence[Asked], weights: WordWeights) -> Iterator[Trait]:
    for kind, name, knob, read in FLAGS:
        yield Trait(kind, name, knob, np.array([read(each, weights) for each in asked]))


def _numbers(asked: Sequence[Asked], weights: WordWeights) -> Iterator[Trait]:
    """Each cut at the median of what is known; the half of the trait is the one beyond it."""
    for kind, name, knob, below, read in NUMBERS:
        values = np.array([read(each, weights) for each in asked])
        known = np.isfinite(values)
        if known.any():
            cut = float(np.median(values[known]))
            has = values < cut if below else values > cut
            yield Trait(kind, name.format(cut), knob, np.where(known, has.astype(np.float64), np.nan))


def _levels(asked: Sequence[Asked]) -> Iterator[Trait]:
    """Each level against all others; of two only the rarer, since the other says the same."""
    for kind, name, knob, read in LEVELS:
        levels = [read(each) for each in asked]
        counts = Counter(filter(None, levels))
        often = [level for level, count in counts.most_common() if count >= FEWEST][:MOST_LEVELS]
        for level in often[1:] if len(counts) == 2 else often:
            values = [math.nan if not each else float(each == level) for each in levels]
            yield Trait(kind, name.format(level), knob, np.array(values))


def _flag(found: object, text: str) -> float:
    return float(bool(found)) if text else math.nan


def _any(flags: Sequence[bool]) -> float:
    return float(any(flags)) if flags else math.nan


def _unknown(asked: Asked, weights: WordWeights) -> float:
    if not weights.texts or not asked.words:
        return math.nan
    return float(any(word not in weights.holding for word in asked.words))


def _rarest(asked: Asked, weights: WordWeights) -> float:
    """The share of texts that hold the rarest of its words that any text holds."""
    held = [weights.holding[word] for word in asked.words if word in weights.holding]
    return min(held) / weights.texts if held else math.nan


def _shared(asked: Asked, weights: WordWeights) -> float:
    """Leakage: how far what answers it has its words, weighed by how rare they are."""
    excerpts = [answer.words for answer in asked.answers if answer.words is not None]
    return leakage(asked.words, excerpts, weights) if excerpts and weights.texts else math.nan


def _abroad(asked: Asked) -> float:
    known = [answer.language for answer in asked.answers if answer.language]
    return float(asked.language not in known) if known and asked.language else math.nan


def _letters(asked: Asked) -> float:
    known = [answer.letters for answer in asked.answers if answer.letters is not None]
    return float(np.median(known)) if known else math.nan


def _section(asked: Asked) -> str:
    """The section of most of what answers it; of equals the first."""
    counts = Counter(answer.section for answer in asked.answers if answer.section)
    return counts.most_common(1)[0][0] if counts else ""
