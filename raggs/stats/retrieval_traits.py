"""Traits of questions, and rules that turn measurements into findings, for the retrieval diagnosis.

Rules (`findings`): a rule is a row of a table with conditions, evidence and a recommended change. A rule applies if the
complete interval of each quantity is beyond the rule's limit, so that chance differences rarely give a finding. For
each quantity, the intervals of all systems or pairs analysed together are simultaneous (Bonferroni). The caller
computes the quantities, one value per question.

Quantities of lists per question (`copies_at`, `found_alone`, `missed_length`): near-duplicates, passages that only
another system found, length of missed passages. Each function returns one value per question, NaN if undefined, so that
`raggs.stats` can compute intervals of their means.

Traits (`traits_of`): properties that may distinguish failing questions from the others. There are three tables of
traits: flags, numbers split at their median, and levels compared with all other levels. To add a trait, add a row. Each
row has a recommended change, to be reported if questions with the trait fail. Values are 1 (has the trait), 0 (does
not) or NaN (unknown).

Wording of questions (`asked_by`, `holds_number`, `holds_identifier`): simple rules on a few words, not a parser. For a
language without a word list, the kind of question is empty.
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
"""Quantities by name, shape (questions,); NaN if a quantity is undefined for a question."""


@dataclass(frozen=True)
class TraitRule:
    """A rule that may give a finding.

    Attributes:
        name: name of the rule.
        sentence: statement about a system, without its name.
        knob: recommended change.
        above, below: by quantity, a limit; the complete interval of the quantity's mean must be above (below) this
            limit.
        beside: quantities that are not part of the condition, but reported with its evidence.
    """

    name: str
    sentence: str
    knob: str
    above: Mapping[str, float] = field(default_factory=dict)
    below: Mapping[str, float] = field(default_factory=dict)
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class TraitEvidence:
    """Mean of a quantity over `count` questions, with its simultaneous interval."""

    quantity: str
    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class TraitFinding:
    """Finding of a rule about a system or a pair: first the evidence of its condition, then the additional
    quantities.
    """

    rule: TraitRule
    about: str
    evidence: tuple[TraitEvidence, ...]


def findings(
    rules: Sequence[TraitRule], measured: Mapping[str, Quantities], *, seed: int, confidence: float = 0.95
) -> tuple[TraitFinding, ...]:
    """Return all findings of the rules, by system, in the order of the rules.

    Args:
        rules: the rules to apply.
        measured: quantities by system or pair; a rule gives no finding if one of its quantities is missing, or has
            values for too few questions.
        seed: random seed of the bootstrap.
        confidence: simultaneous confidence of the intervals of one quantity over all systems or pairs.
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
    """Yield the rule's evidence; nothing if the rule does not apply.

    `held` contains only quantities with values for enough questions.
    """
    needed = [*rule.above, *rule.below]
    if not all(name in held for name in needed):
        return
    over = all(held[name].low > limit for name, limit in rule.above.items())
    under = all(held[name].high < limit for name, limit in rule.below.items())
    if over and under:
        yield from (held[name] for name in needed)
        yield from (held[name] for name in rule.beside if name in held)


def copies_at(hits: Hits, k: int) -> Floats:
    """Return the share of the first `k` passages that are near-duplicates of a higher-ranked passage.

    The share is NaN for an empty list.

    Near-duplicates are known only among judged passages, so the share is a lower bound if some passages are unjudged.
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
    """Return the share of each question's relevant passages that are in the first `pool` of `other`, but not of `hits`.

    Both arguments must have the same judgments. A question without relevant passages has NaN.
    """
    qrels = hits.qrels
    relevant = qrels.grade >= qrels.scale.relevant
    alone = relevant & _within_pool(other, pool) & ~_within_pool(hits, pool)
    count = len(hits.length)
    wanted = np.bincount(qrels.query[relevant], minlength=count)
    return _share_or_nan(np.bincount(qrels.query[alone], minlength=count), wanted)


def missed_length(hits: Hits, letters: Floats, pool: int) -> Floats:
    """Return how much longer missed relevant passages are than found ones, as a base 2 logarithm (1: twice as long).

    A relevant passage counts as missed if it is not among the first `pool`. The value is the base 2 logarithm of the
    ratio of the mean lengths; NaN if no relevant passage was missed, or none was found.

    Args:
        hits: hits of the system.
        letters: shape (m,), length of each judged passage in characters; NaN if unknown.
        pool: number of first passages that count as found.
    """
    qrels = hits.qrels
    relevant = (qrels.grade >= qrels.scale.relevant) & np.isfinite(letters) & (letters > 0)
    found = _within_pool(hits, pool)
    means = [_mean(hits, letters, relevant & side) for side in (~found, found)]
    return np.asarray(np.log2(means[0] / means[1]))


def _within_pool(hits: Hits, pool: int) -> Flags:
    """Return which judged passages are among the first `pool`, shape (m,)."""
    found = np.zeros(len(hits.qrels.query), dtype=bool)
    found[hits.item[hits.rank <= pool]] = True
    return found


def _mean(hits: Hits, values: Floats, chosen: Flags) -> Floats:
    query, count = hits.qrels.query[chosen], len(hits.length)
    sums = np.bincount(query, weights=values[chosen], minlength=count)
    return _share_or_nan(sums, np.bincount(query, minlength=count))


def _share_or_nan(part: Floats | Ints, whole: Floats | Ints) -> Floats:
    """Return part / whole; NaN if `whole` is 0."""
    held = whole > 0
    return np.where(held, part / np.where(held, whole, 1), np.nan)


WORD_PATTERN = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
DIGIT_PATTERN = re.compile(r"\d")
# Terms that need an exact match: acronyms, camelCase, snake_case, function calls, paths, options, versions.
IDENTIFIER = re.compile(
    r"\b[A-Z]{2,}s?\b|\b\w*[a-z]\w*[A-Z]\w*\b|\w+_\w+|\w+\(\)|\b\w+\.[a-z]\w+\b|(?:^|\s)--?[a-z][\w-]+|\bv?\d+\.\d+(?:\.\d+)*\b"
)
OPENING_WORDS = 4  # number of first words in which a question word is searched ("In which year ...")
KEYWORDS = "by keywords"  # kind of a text without question word, yes-no form and final mark (? . ! :)
OTHER_KIND = "otherwise"
YES_NO = "yes or no"

# Phrases are tried in this order, so "how many" precedes "how". Each entry is a phrase of consecutive words.
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
    """Return whether the text contains a digit."""
    return DIGIT_PATTERN.search(text) is not None


def holds_identifier(text: str) -> bool:
    """Return whether the text contains an acronym, program identifier, version or option; False for text in
    capitals.
    """
    return not text.isupper() and IDENTIFIER.search(text) is not None


def length_of(text: str) -> int:
    """Return the number of words."""
    return len(WORD_PATTERN.findall(text))


def asked_by(text: str, language: str) -> str:
    """Return the kind of question: its question word in English, "yes or no", "by keywords" or "otherwise".

    Args:
        text: text of the question.
        language: ISO 639-1 code; for a language without a word list, the result is empty.
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
    """Return the kind of a question word at the start, or anywhere in the opening; empty if there is no such word."""
    start = "^" if at_once else r"(?<![\w'-])"
    kinds = ASKING_WORDS[language].items()
    return next((kind for kind, words in kinds if re.search(rf"{start}(?:{words})(?![\w-])", opening)), "")


MIN_SIDE_QUESTIONS = 5  # minimum number of questions with a trait, and without it, for a test
MAX_TRAIT_LEVELS = 8  # number of most frequent levels that are tested; each further test reduces the power of all


@dataclass(frozen=True)
class RelevantPassage:
    """A relevant passage and its known properties.

    Attributes:
        language: ISO 639-1 code of the language; empty if the language is unclear.
        section: title of the passage's top-level section; empty if the passage has no sections.
        letters: length in characters; None if the text is unknown.
        words: words as lexical search compares them; None if the text is unknown.
        twin: whether a near-duplicate of the passage is known.
    """

    language: str = ""
    section: str = ""
    letters: int | None = None
    words: frozenset[str] | None = None
    twin: bool = False


@dataclass(frozen=True)
class AnsweredQuery:
    """A question with its relevant passages.

    Attributes:
        text, language: text and language of the question; empty if unknown.
        words: words as lexical search compares them.
        names: number of proper names in the question.
        rewritten: whether a rewritten query was searched; None if unknown.
        relevant: number of relevant passages.
        answers: those of the relevant passages about which more is known.
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
    """A trait, and which questions have it.

    Attributes:
        kind: name of the trait's row in its table.
        name: clause about the questions with the trait, such as "contain a number".
        knob: recommended change if these questions fail.
        values: shape (questions,), 1 with the trait, 0 without it, NaN if unknown.
    """

    kind: str
    name: str
    knob: str
    values: Floats

    @property
    def having(self) -> int:
        """Number of questions with the trait."""
        return int((self.values == 1).sum())

    @property
    def lacking(self) -> int:
        """Number of questions without the trait."""
        return int((self.values == 0).sum())

    @property
    def told(self) -> bool:
        """Whether both sides have enough questions for a test."""
        return min(self.having, self.lacking) >= MIN_SIDE_QUESTIONS


Read = Callable[[AnsweredQuery, WordWeights], float]

HYBRID = "for purely dense search, add a lexical retriever and fuse the lists (RRF)"
FLAGS: tuple[tuple[str, str, str, Read], ...] = (
    ("names", "contain a name", f"{HYBRID}; raggs diagnose names shows which embedder distinguishes names",
     lambda asked, _: _flag(asked.names, asked.text)),
    ("numbers", "contain a number", f"{HYBRID}; BM25 matches numbers exactly, most embedders hardly distinguish them",
     lambda asked, _: _flag(holds_number(asked.text), asked.text)),
    ("identifiers", "contain an acronym or identifier", f"{HYBRID}; use a tokenizer that does not split identifiers",
     lambda asked, _: _flag(holds_identifier(asked.text), asked.text)),
    ("unknown words", "contain a word that is in no passage", "rewrite questions (embed.rewrite), correct spelling",
     lambda asked, weights: _has_unknown_word(asked, weights)),
    ("rewritten", "were rewritten before the search", "compare with embed.rewrite: none; run raggs diagnose noise",
     lambda asked, _: math.nan if asked.rewritten is None else float(asked.rewritten)),
    ("near-duplicates", "have relevant passages with near-duplicates", "remove near-duplicates before reranking",
     lambda asked, _: _any([answer.twin for answer in asked.answers])),
    ("other language", "have relevant passages only in another language",
     "use a multilingual embedder, or translate questions before the "
     "search", lambda asked, _: _is_other_language(asked)),
)  # fmt: skip
# Kind, name with the split value, recommended change, whether the lower half has the trait, and the value that is
# split.
NUMBER_TRAITS: tuple[tuple[str, str, str, bool, Read], ...] = (
    ("length", "have more than {:g} words", "shorten questions by rewriting (embed.rewrite)", False,
     lambda asked, _: float(length_of(asked.text)) if asked.text else math.nan),
    ("rare words", "contain a word that is in less than {:.2%} of the passages",
     f"{HYBRID}; use an embedder for the subject area", True, lambda asked, weights: _rarest(asked, weights)),
    ("other words", "share less than {:.0%} of their rare words with their relevant passages",
     "rewrite questions (embed.rewrite), use a stronger dense embedder or a reranker", True,
     lambda asked, weights: _leakage_or_nan(asked, weights)),
    ("relevant passages", "have more than {:g} relevant passages",
     "use a larger cutoff; remove near-duplicates before reranking", False,
     lambda asked, _: float(asked.relevant) if asked.relevant else math.nan),
    ("long passages", "have relevant passages of more than {:,.0f} characters",
     "use shorter chunks (raggs chunks eval), or an embedder with a longer "
     "context", False, lambda asked, _: _median_letters(asked)),
)  # fmt: skip
LEVEL_TRAITS: tuple[tuple[str, str, str, Callable[[AnsweredQuery], str]], ...] = (
    ("language", "are in {}", "use an embedder for that language; check the stemmer and stop words of lexical search",
     lambda asked: asked.language if asked.text else ""),
    ("question type", "ask {}", "look at the examples; a reranker uses the full question",
     lambda asked: asked_by(asked.text, asked.language) if asked.text else ""),
    ("section", "have their relevant passages mostly in {}", "check the chunks of that section (raggs chunks eval)",
     lambda asked: _section(asked)),
)  # fmt: skip


def traits_of(asked: Sequence[AnsweredQuery], weights: WordWeights) -> tuple[Trait, ...]:
    """Return the traits that at least one question has and at least one lacks; see also `Trait.told`.

    Of the levels, only the most frequent ones with at least five questions are traits.

    Args:
        asked: the questions.
        weights: document frequencies of words in the corpus; if unknown, those of a corpus of 0 texts.
    """
    found = [*_flags(asked, weights), *_number_traits(asked, weights), *_level_traits(asked)]
    return tuple(trait for trait in found if trait.having and trait.lacking)


def _flags(asked: Sequence[AnsweredQuery], weights: WordWeights) -> Iterator[Trait]:
    for kind, name, knob, read in FLAGS:
        yield Trait(kind, name, knob, np.array([read(each, weights) for each in asked]))


def _number_traits(asked: Sequence[AnsweredQuery], weights: WordWeights) -> Iterator[Trait]:
    """Yield one trait per number, split at its median; questions on one side of the median have the trait."""
    for kind, name, knob, below, read in NUMBER_TRAITS:
        values = np.array([read(each, weights) for each in asked])
        known = np.isfinite(values)
        if known.any():
            cut = float(np.median(values[known]))
            has = values < cut if below else values > cut
            yield Trait(kind, name.format(cut), knob, np.where(known, has.astype(np.float64), np.nan))


def _level_traits(asked: Sequence[AnsweredQuery]) -> Iterator[Trait]:
    """Yield one trait per level, for at most eight frequent levels with at least five questions.

    Of two levels, only the rarer is a trait, because the other is its complement.
    """
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
    """Return the share of texts that contain the question's rarest known word."""
    held = [weights.holding[word] for word in asked.words if word in weights.holding]
    return min(held) / weights.texts if held else math.nan


def _leakage_or_nan(asked: AnsweredQuery, weights: WordWeights) -> float:
    """Return the leakage: the idf-weighted share of the question's words that its relevant passages contain."""
    excerpts = [answer.words for answer in asked.answers if answer.words is not None]
    return leakage(asked.words, excerpts, weights) if excerpts and weights.texts else math.nan


def _is_other_language(asked: AnsweredQuery) -> float:
    known = [answer.language for answer in asked.answers if answer.language]
    return float(asked.language not in known) if known and asked.language else math.nan


def _median_letters(asked: AnsweredQuery) -> float:
    known = [answer.letters for answer in asked.answers if answer.letters is not None]
    return float(np.median(known)) if known else math.nan


def _section(asked: AnsweredQuery) -> str:
    """Return the most frequent section of the relevant passages; if tied, the first of these sections."""
    counts = Counter(answer.section for answer in asked.answers if answer.section)
    return counts.most_common(1)[0][0] if counts else ""
