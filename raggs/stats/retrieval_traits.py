"""Findings by rule: a condition on what was measured of each question, the evidence beside, and what to turn.

A rule is a row of a table. It speaks where every quantity that it names lies beyond its limit with its whole interval,
so that nothing is found that chance makes; the intervals of all systems, or pairs of them, that are looked at together
hold together (Bonferroni). Whoever measures gives an array with a value a question; this only decides.

What lists hold, question by question: copies, what only another system found, how long the missed passages are.

Every function gives one value a question, NaN where it is not defined for it, so that means over questions have the
intervals of `raggs.stats`.

What questions have in common: the traits by which those that fail are told from the rest.

A trait is a row of one of three tables: a flag, a number that is cut at its median, or a level that is held against all
others. Another trait is another row. Each says what to turn where questions that have it fail. Texts in, numbers out:
1 has it, 0 has it not, NaN where nobody knows.

How a question is put: what it asks for, and whether it holds numbers or identifiers, told by rules on its letters.

Rules, not a parser: each looks at a few words, and says nothing where its language has no list.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.metrics.hits import Hits
from raggs.stats.comparison import least_queries
from raggs.stats.intervals import bootstrap_mean
from raggs.stats.question_filters import WordWeights, leakage

Quantities = Mapping[str, Floats]
"""By name, shape (questions,), NaN where a quantity is not defined for a question."""


@dataclass(frozen=True)
class TraitRule:
    """A finding that may be made.

    Attributes:
        name: of the rule.
        sentence: what it says of a system; without its name.
        knob: what to turn.
        above, below: by quantity, what its mean must lie above, or below, with its whole interval.
        beside: quantities that are shown with the evidence and decide nothing.
    """

    name: str
    sentence: str
    knob: str
    above: Mapping[str, float] = field(default_factory=dict)
    below: Mapping[str, float] = field(default_factory=dict)
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class TraitEvidence:
    """A mean over questions, with its interval at the confidence of the family; `count`: the questions."""

    quantity: str
    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class TraitFinding:
    """What a rule found of a system, or of a pair: the evidence that decided first, then what is shown beside."""

    rule: TraitRule
    about: str
    evidence: tuple[TraitEvidence, ...]


def findings(
    rules: Sequence[TraitRule], measured: Mapping[str, Quantities], *, seed: int, confidence: float = 0.95
) -> tuple[TraitFinding, ...]:
    """All that the rules find, by system in the order of the rules.

    Args:
        measured: by system, or by pair, its quantities; a rule that names one that is missing is silent.
        confidence: of all intervals together that one rule looks at.
    """
    each = 1.0 - (1.0 - confidence) / max(1, len(measured))
    found: list[TraitFinding] = []
    for about, quantities in measured.items():
        held = {name: _evidence(name, values, seed, each) for name, values in quantities.items()}
        told = {name: one for name, one in held.items() if one.count >= least_queries(1.0 - each)}
        found.extend(TraitFinding(rule, about, shown) for rule in rules if (shown := tuple(_applied(rule, told))))
    return tuple(found)


def _evidence(name: str, values: Floats, seed: int, confidence: float) -> TraitEvidence:
    found = bootstrap_mean(np.asarray(values, dtype=np.float64), confidence=confidence, seed=seed)
    return TraitEvidence(name, found.mean, found.low, found.high, found.count)


def _applied(rule: TraitRule, held: Mapping[str, TraitEvidence]) -> Iterator[TraitEvidence]:
    """The rule's evidence; nothing where it does not speak. `held`: of enough questions for any test to tell."""
    needed = [*rule.above, *rule.below]
    if not all(name in held for name in needed):
        return
    over = all(held[name].low > limit for name, limit in rule.above.items())
    under = all(held[name].high < limit for name, limit in rule.below.items())
    if over and under:
        yield from (held[name] for name in needed)
        yield from (held[name] for name in rule.beside if name in held)


def copies_at(hits: Hits, k: int) -> Floats:
    """The share of the first `k` places that near-duplicates of a passage above take; NaN of an empty list.

    Only judged passages are known to be near-duplicates, so this is a lower bound where there are holes.
    """
    length = np.minimum(hits.length, k)
    if hits.facet is None:
        return np.where(length > 0, 0.0, np.nan)
    facet = hits.facet[hits.item]
    shown = (hits.rank <= k) & (facet >= 0)
    pairs = np.unique(np.stack([hits.query[shown], facet[shown]]), axis=1)
    rows = np.bincount(hits.query[shown], minlength=len(length))
    groups = np.bincount(pairs[0], minlength=len(length))
    return _share_or_nan(rows - groups, length)


def found_alone(other: Hits, hits: Hits, pool: int) -> Floats:
    """Of the relevant passages of each question, the share that `other` has among its first `pool` and `hits` has not.

    Both are of the same judgments. NaN of a question without relevant passages.
    """
    qrels = hits.qrels
    relevant = qrels.grade >= qrels.scale.relevant
    alone = relevant & _within_pool(other, pool) & ~_within_pool(hits, pool)
    count = len(hits.length)
    wanted = np.bincount(qrels.query[relevant], minlength=count)
    return _share_or_nan(np.bincount(qrels.query[alone], minlength=count), wanted)


def missed_length(hits: Hits, letters: Floats, pool: int) -> Floats:
    """How much longer the relevant passages are that are not among the first `pool` than those that are, in doublings.

    The base 2 logarithm of the ratio of their mean lengths; NaN of a question that has not both.

    Args:
        letters: shape (m,), the length of each judged passage in characters; NaN where it is not known.
    """
    qrels = hits.qrels
    relevant = (qrels.grade >= qrels.scale.relevant) & np.isfinite(letters) & (letters > 0)
    found = _within_pool(hits, pool)
    means = [_mean(hits, letters, relevant & side) for side in (~found, found)]
    return np.asarray(np.log2(means[0] / means[1]))


def _within_pool(hits: Hits, pool: int) -> Flags:
    """Shape (m,): which judged passages are among the first `pool`."""
    found = np.zeros(len(hits.qrels.query), dtype=bool)
    found[hits.item[hits.rank <= pool]] = True
    return found


def _mean(hits: Hits, values: Floats, chosen: Flags) -> Floats:
    query, count = hits.qrels.query[chosen], len(hits.length)
    sums = np.bincount(query, weights=values[chosen], minlength=count)
    return _share_or_nan(sums, np.bincount(query, minlength=count))


def _share_or_nan(part: Floats | Ints, whole: Floats | Ints) -> Floats:
    """NaN where there is nothing to be a share of."""
    held = whole > 0
    return np.where(held, part / np.where(held, whole, 1), np.nan)


WORD_PATTERN = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
DIGIT_PATTERN = re.compile(r"\d")
# What is searched for letter by letter: acronyms, camelCase, snake_case, calls, paths, options, versions.
IDENTIFIER = re.compile(
    r"\b[A-Z]{2,}s?\b|\b\w*[a-z]\w*[A-Z]\w*\b|\w+_\w+|\w+\(\)|\b\w+\.[a-z]\w+\b|(?:^|\s)--?[a-z][\w-]+|\bv?\d+\.\d+(?:\.\d+)*\b"
)
OPENING_WORDS = 4  # words among which the asking word stands ("In which year ...")
KEYWORDS = "by keywords"  # neither a question mark nor an asking word
OTHER_KIND = "otherwise"
YES_NO = "yes or no"

# In the order in which they are looked for: "how many" before "how". Each is words that follow one another.
ASKING_WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "how many": "how many|how much|how long|how often|how far|how old",
        "how": "how",
        "why": "why",
        "which": "which|whose",
        "what": "what",
        "who": "who|whom",
        "when": "when",
        "where": "where",
    },
    "fr": {
        "how many": "combien",
        "how": "comment",
        "why": "pourquoi",
        "which": "quel|quelle|quels|quelles|lequel|laquelle|lesquels|lesquelles",
        "what": r"quoi|que|qu'\S+",
        "who": "qui",
        "when": "quand",
        "where": "où",
    },
    "de": {
        "how many": "wie viele|wie viel|wieviel|wie lange|wie oft",
        "how": "wie",
        "why": "warum|wieso|weshalb",
        "which": "welche|welcher|welches|welchen|welchem",
        "what": "was|wozu|womit",
        "who": "wer|wen|wem|wessen",
        "when": "wann",
        "where": "wo|wohin|woher",
    },
    "es": {
        "how many": "cuánto|cuánta|cuántos|cuántas|cuanto|cuantos|cuantas",
        "how": "cómo|como",
        "why": "por qué|por que",
        "which": "cuál|cuáles|cual|cuales",
        "what": "qué|que",
        "who": "quién|quiénes|quien|quienes",
        "when": "cuándo|cuando",
        "where": "dónde|donde",
    },
    "it": {
        "how many": "quanto|quanta|quanti|quante",
        "how": "come",
        "why": "perché|perche",
        "which": "quale|quali",
        "what": "cosa|che",
        "who": "chi",
        "when": "quando",
        "where": "dove",
    },
    "pt": {
        "how many": "quanto|quanta|quantos|quantas",
        "how": "como",
        "why": "por que|por quê|porque|porquê",
        "which": "qual|quais",
        "what": "o que|que",
        "who": "quem",
        "when": "quando",
        "where": "onde",
    },
    "nl": {
        "how many": "hoeveel|hoe lang|hoe vaak",
        "how": "hoe",
        "why": "waarom",
        "which": "welk|welke",
        "what": "wat",
        "who": "wie|wiens",
        "when": "wanneer",
        "where": "waar",
    },
}
DECIDING: Mapping[str, str] = {
    "en": r"(?:is|are|was|were|do|does|did|can|could|should|would|will|shall|has|have|had|may|must|isn't|aren't)\b",
    "fr": r"est-ce qu|(?:\S+ )?\S+-(?:t-)?(?:il|elle|on|ils|elles)\b",
    "de": r"(?:ist|sind|war|waren|hat|haben|kann|können|darf|soll|muss|wird|werden|gibt)\b",
    "es": r"¿?(?:es|son|está|están|hay|puede|pueden|tiene|se puede|debe)\b",
    "it": r"(?:è|sono|ha|può|possono|si può|deve|esiste)\b",
    "pt": r"(?:é|são|está|há|pode|podem|tem|deve|existe)\b",
    "nl": r"(?:is|zijn|was|heeft|kan|kunnen|mag|moet|wordt)\b",
}


def holds_number(text: str) -> bool:
    """Whether a digit stands in it."""
    return DIGIT_PATTERN.search(text) is not None


def holds_identifier(text: str) -> bool:
    """Whether it holds an acronym, an identifier of a program, a version or an option; never of a text in capitals."""
    return not text.isupper() and IDENTIFIER.search(text) is not None


def length_of(text: str) -> int:
    """Its words."""
    return len(WORD_PATTERN.findall(text))


def asked_by(text: str, language: str) -> str:
    """What kind of question it is: by its asking word, as a yes or no, by keywords, or otherwise.

    Args:
        language: ISO 639-1 code; empty text is given for a language without a list.
    """
    if language not in ASKING_WORDS:
        return ""
    plain = text.strip().lower().replace("’", "'")
    opening = " ".join(WORD_PATTERN.findall(plain)[:OPENING_WORDS])
    if first := _word_of(opening, language, at_once=True):
        return first
    if re.match(DECIDING[language], plain):
        return YES_NO
    return _word_of(opening, language, at_once=False) or (OTHER_KIND if plain.endswith(tuple("?.!:")) else KEYWORDS)


def _word_of(opening: str, language: str, *, at_once: bool) -> str:
    """The kind by an asking word at the beginning, or anywhere in the opening; empty without one."""
    start = "^" if at_once else r"(?<![\w'-])"
    kinds = ASKING_WORDS[language].items()
    return next((kind for kind, words in kinds if re.search(rf"{start}(?:{words})(?![\w-])", opening)), "")


MIN_SIDE_QUESTIONS = 5  # questions on either side of a trait; below, nothing could be told
MAX_TRAIT_LEVELS = 8  # of one kind that are looked at, the most frequent: each costs the others some of their power


@dataclass(frozen=True)
class RelevantPassage:
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
class AnsweredQuery:
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
    answers: tuple[RelevantPassage, ...] = ()


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
        return min(self.having, self.lacking) >= MIN_SIDE_QUESTIONS


Read = Callable[[AnsweredQuery, WordWeights], float]

HYBRID = "where vectors alone search, a lexical retriever beside them, fused (RRF)"
FLAGS: tuple[tuple[str, str, str, Read], ...] = (
    ("names", "hold a name", f"{HYBRID}; raggs diagnose names tells which embedder reads names",
     lambda asked, _: _flag(asked.names, asked.text)),
    ("numbers", "hold a number", f"{HYBRID}; numbers are words to BM25 and little to most embedders",
     lambda asked, _: _flag(holds_number(asked.text), asked.text)),
    ("identifiers", "hold an acronym or identifier", f"{HYBRID}; a tokenizer that keeps identifiers whole",
     lambda asked, _: _flag(holds_identifier(asked.text), asked.text)),
    ("unknown words", "hold a word that no passage has", "questions rewritten (embed.rewrite), spelling, synonyms",
     lambda asked, weights: _has_unknown_word(asked, weights)),
    ("rewritten", "were rewritten before the search", "compare with embed.rewrite: none; raggs diagnose noise",
     lambda asked, _: math.nan if asked.rewritten is None else float(asked.rewritten)),
    ("near-duplicates", "are answered by passages with near-duplicates", "near-duplicates left out before reranking",
     lambda asked, _: _any([answer.twin for answer in asked.answers])),
    ("other language", "are answered in another language than they ask in",
     "an embedder of several languages, or questions translated before the "
     "search", lambda asked, _: _is_other_language(asked)),
)  # fmt: skip
# Kind, name with the cut, knob, whether the lower half has the trait, and what is cut.
NUMBER_TRAITS: tuple[tuple[str, str, str, bool, Read], ...] = (
    ("length", "have more than {:g} words", "questions rewritten shorter (embed.rewrite); raggs diagnose noise", False,
     lambda asked, _: float(length_of(asked.text)) if asked.text else math.nan),
    ("rare words", "hold a word that stands in less than {:.2%} of the passages",
     f"{HYBRID}; an embedder of the subject's own", True, lambda asked, weights: _rarest(asked, weights)),
    ("other words", "share less than {:.0%} of their rare words with what answers them",
     "questions rewritten (embed.rewrite), a stronger dense embedder, a reranker", True,
     lambda asked, weights: _leakage_or_nan(asked, weights)),
    ("relevant passages", "have more than {:g} relevant passages",
     "a larger cutoff; near-duplicates left out before reranking", False,
     lambda asked, _: float(asked.relevant) if asked.relevant else math.nan),
    ("long passages", "are answered by passages of more than {:,.0f} characters",
     "shorter chunks (raggs chunks eval); an embedder that reads that "
     "far", False, lambda asked, _: _median_letters(asked)),
)  # fmt: skip
LEVEL_TRAITS: tuple[tuple[str, str, str, Callable[[AnsweredQuery], str]], ...] = (
    ("language", "ask in {}", "an embedder of that language; the stemmer and stop words of lexical search",
     lambda asked: asked.language if asked.text else ""),
    ("question type", "ask {}", "look at their examples; a reranker reads what is asked, not only what about",
     lambda asked: asked_by(asked.text, asked.language) if asked.text else ""),
    ("section", "are answered in {}", "look at how that section is cut, and at its titles (raggs chunks eval)",
     lambda asked: _section(asked)),
)  # fmt: skip


def traits_of(asked: Sequence[AnsweredQuery], weights: WordWeights) -> tuple[Trait, ...]:
    """All traits that at least one question has and one has not; see `Trait.told`.

    Args:
        weights: how rare words are in the corpus; of no texts where that is not known.
    """
    found = [*_flags(asked, weights), *_number_traits(asked, weights), *_level_traits(asked)]
    return tuple(trait for trait in found if trait.having and trait.lacking)


def _flags(asked: Sequence[AnsweredQuery], weights: WordWeights) -> Iterator[Trait]:
    for kind, name, knob, read in FLAGS:
        yield Trait(kind, name, knob, np.array([read(each, weights) for each in asked]))


def _number_traits(asked: Sequence[AnsweredQuery], weights: WordWeights) -> Iterator[Trait]:
    """Each cut at the median of what is known; the half of the trait is the one beyond it."""
    for kind, name, knob, below, read in NUMBER_TRAITS:
        values = np.array([read(each, weights) for each in asked])
        known = np.isfinite(values)
        if known.any():
            cut = float(np.median(values[known]))
            has = values < cut if below else values > cut
            yield Trait(kind, name.format(cut), knob, np.where(known, has.astype(np.float64), np.nan))


def _level_traits(asked: Sequence[AnsweredQuery]) -> Iterator[Trait]:
    """Each level against all others; of two only the rarer, since the other says the same."""
    for kind, name, knob, read in LEVEL_TRAITS:
        levels = [read(each) for each in asked]
        counts = Counter(filter(None, levels))
        often = [level for level, count in counts.most_common() if count >= MIN_SIDE_QUESTIONS][:MAX_TRAIT_LEVELS]
        for level in often[1:] if len(counts) == 2 else often:
            values = [math.nan if not each else float(each == level) for each in levels]
            yield Trait(kind, name.format(level), knob, np.array(values))


def _flag(found: object, text: str) -> float:
    return float(bool(found)) if text else math.nan


def _any(flags: Sequence[bool]) -> float:
    return float(any(flags)) if flags else math.nan


def _has_unknown_word(asked: AnsweredQuery, weights: WordWeights) -> float:
    if not weights.texts or not asked.words:
        return math.nan
    return float(any(word not in weights.holding for word in asked.words))


def _rarest(asked: AnsweredQuery, weights: WordWeights) -> float:
    """The share of texts that hold the rarest of its words that any text holds."""
    held = [weights.holding[word] for word in asked.words if word in weights.holding]
    return min(held) / weights.texts if held else math.nan


def _leakage_or_nan(asked: AnsweredQuery, weights: WordWeights) -> float:
    """Leakage: how far what answers it has its words, weighed by how rare they are."""
    excerpts = [answer.words for answer in asked.answers if answer.words is not None]
    return leakage(asked.words, excerpts, weights) if excerpts and weights.texts else math.nan


def _is_other_language(asked: AnsweredQuery) -> float:
    known = [answer.language for answer in asked.answers if answer.language]
    return float(asked.language not in known) if known and asked.language else math.nan


def _median_letters(asked: AnsweredQuery) -> float:
    known = [answer.letters for answer in asked.answers if answer.letters is not None]
    return float(np.median(known)) if known else math.nan


def _section(asked: AnsweredQuery) -> str:
    """The section of most of what answers it; of equals the first."""
    counts = Counter(answer.section for answer in asked.answers if answer.section)
    return counts.most_common(1)[0][0] if counts else ""
