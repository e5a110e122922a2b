"""Settings and findings of the diagnosis of names, its names and topics, and the generated test cases (bundles). An
undefined number is null.

Bundles are generated in several repetitions. All repetitions ask for the same authors and topics, but each draws other
distractors and wordings. The draws depend only on the seed, the language, and the numbers of repetition and query. If
you increase the number of repetitions or queries, the existing bundles therefore do not change.

Names and topics come from raggs' own lists or from two fields of a corpus. raggs' lists contain names of many origins,
with diacritics, hyphens, particles and apostrophes. They contain the same topics in each language. About half of the
drawn names are common in countries of the language.

The names that occur in a text are either those of a corpus field, or are found by this rule: two to four consecutive
words with a capital first letter. Particles (van, de la) between them are allowed, and initials count as words.
Function words at the start, such as "What", are dropped. Places and titles of two capitalised words therefore also
count as names, but a name of one word does not. If such a sequence in a query does not occur in any passage, its
longest end that does is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import cycle, product
from typing import Annotated, Literal

import numpy as np
import regex
from pydantic import Field, field_validator, model_validator

from raggs.base.adapter import OneOf
from raggs.base.artifacts import Passage
from raggs.base.document import Cell, Column, NumberForm, bounded
from raggs.base.errors import DataError
from raggs.base.hashing import generator
from raggs.base.languages import FUNCTION_WORDS, fold_accents
from raggs.base.settings import Flag
from raggs.base.text import clean_unicode, did_you_mean, one_line, plural
from raggs.base.types import Number
from raggs.diagnosis.base import DiagnosisConfig, DiagnosisFindings, from_word
from raggs.evaluation.models import ReportPart
from raggs.parts import perturbers
from raggs.parts.indexes.passages import Passages, PassageStore
from raggs.parts.perturbers import (
    PARTICLES,
    Bundle,
    BundleText,
    ChangeFamily,
    PerturberConfig,
    label_of,
    name_parts,
)

MAX_QUESTIONS = 5000
MAX_RUNS = 200


PerturberSpec = Annotated[PerturberConfig, OneOf(perturbers.REGISTRY), from_word(perturbers.REGISTRY, PerturberConfig)]
ALL = tuple(perturbers.REGISTRY.builtin)


class NamesConfig(DiagnosisConfig):
    """Settings of the diagnosis of names."""

    type: Literal["names"] = "names"
    languages: Annotated[tuple[str, ...], Flag(value="CODE")] = Field(
        ("en", "fr"), min_length=1, description="languages of the test queries"
    )
    questions: int = Field(
        100, ge=2, le=MAX_QUESTIONS, description="number of queries per language; they are the same in all repetitions"
    )
    runs: int = Field(15, ge=1, le=MAX_RUNS, description="number of repetitions with new distractors and wordings")
    reranker_runs: int = Field(
        3,
        ge=1,
        le=MAX_RUNS,
        description="number of repetitions for rerankers, which are slower because they cannot reuse vectors",
    )
    perturbers: tuple[PerturberSpec, ...] = Field(
        ALL, validate_default=True, description="perturbers: changes of the texts that are tested"
    )
    raw: bool = Field(False, description="do not apply Unicode normalisation to the texts")
    name_field: Annotated[str | None, Flag(value="FIELD")] = Field(
        None, min_length=1, description="metadata field of the passages that contains names"
    )
    topic_field: Annotated[str | None, Flag(value="FIELD")] = Field(
        None, min_length=1, description="metadata field of the passages that contains the topic"
    )
    min_drop: Annotated[float, Flag(value="PERCENT")] = Field(
        50.0, ge=0, le=100, description="minimum decrease of the name margin in percent if the identity is removed"
    )
    max_drop: Annotated[float, Flag(value="PERCENT")] = Field(
        20.0, ge=0, le=100, description="maximum decrease of the name margin in percent for another form or layout"
    )
    end_to_end: Annotated[bool, Flag(("--end-to-end/--probes-only",))] = Field(
        True, description="also change and search the queries of the golden set that contain names"
    )
    cutoff: Annotated[int, Flag(value="K")] = Field(
        10, ge=1, le=1000, description="cutoff of N-Recall4+ (recall if grades are not 1 to 5) on the golden set"
    )
    most_passages: int = Field(
        20_000, ge=100, description="maximum number of passages that are searched; judged passages are always included"
    )

    @field_validator("languages")
    @classmethod
    def _know_the_languages(cls, languages: tuple[str, ...]) -> tuple[str, ...]:

        for language in languages:
            if language not in WORDINGS:
                raise ValueError(f"there are no test queries in {language!r}: {did_you_mean(language, WORDINGS)}")
        return tuple(dict.fromkeys(languages))

    @model_validator(mode="after")
    def _take_both_fields_or_none(self) -> NamesConfig:
        if (self.name_field is None) != (self.topic_field is None):
            raise ValueError("pass both --name-field and --topic-field, or neither")
        if len({each.type for each in self.perturbers}) < len(self.perturbers):
            raise ValueError("a perturber is given twice")
        return self


class MarginPart(ReportPart):
    """Mean of margins, or of their changes, over all queries and repetitions."""

    value: Number = Field(description="mean over repetitions")
    sd: Number = Field(description="standard deviation over repetitions")
    run_low: Number = Field(description="95% interval over repetitions")
    run_high: Number
    low: Number = Field(description="95% interval over resampled queries")
    high: Number
    count: int = Field(description="number of test cases with a value")

    def cell(self, form: NumberForm = "score") -> Cell:
        """Return the table cell, with the interval over queries."""
        return bounded(self.value, self.low, self.high, form)


FAMILIES = {"identity": "identity removed", "form": "another form", "layout": "another layout"}
MARKS = {True: "", False: "✗", None: "?"}


class AblationPart(ReportPart):
    """Effect of one perturbation on the name margins of one scorer in one language."""

    perturber: Annotated[str, Column("perturber")]
    family: Annotated[ChangeFamily, Column("kind", text=FAMILIES.get)] = Field(
        description="whether it removes the identity, changes the form, or changes the layout"
    )
    percent: Annotated[MarginPart, Column("change %", "percent", mark="mark")] = Field(
        description="mean change in percent over test cases with a base margin of at least 0.02"
    )
    of_means: Annotated[Number, Column("change of mean %", "percent", bounds=("of_means_low", "of_means_high"))] = (
        Field(description="change of the mean name margin in percent")
    )
    of_means_low: Number
    of_means_high: Number
    absolute: Annotated[MarginPart, Column("change", "signed")] = Field(
        description="mean change of the name margin, in the unit of the scores"
    )
    left_out: int = Field(description="number of test cases with a base margin below 0.02, which have no percentage")
    holds: bool | None = Field(description="whether the change is within the limit; null if inconclusive")

    @property
    def label(self) -> Annotated[str, Column("change of the names")]:
        """Plain name of the perturber."""
        return label_of(self.perturber)

    @property
    def spread(self) -> Annotated[Number, Column("repetition sd", text="{:z.1f}")]:
        """Standard deviation of `percent` over repetitions."""
        return self.percent.sd

    @property
    def mark(self) -> str:
        """Mark that tables show after the change: ✗ if the limit is not met, ? if the interval contains the limit."""
        return MARKS[self.holds]


class SubjectPart(ReportPart):
    """Results of one embedder or reranker in one language."""

    scorer: Annotated[str, Column("scorer")]
    what: Literal["embedder", "reranker"]
    language: Annotated[str, Column("language")]
    questions: int
    runs: int
    name: Annotated[
        MarginPart,
        Column(
            "name",
            "score",
            legend="score of the right author minus the better score of two other authors on the same topic",
        ),
    ] = Field(description="name margin: score of the right author minus the better score of two other authors")
    topic: Annotated[
        MarginPart,
        Column("topic", "score", legend="score of the right topic minus the score of another topic by the same author"),
    ] = Field(description="topic margin: score of the right topic minus the score of another topic")
    both: Annotated[MarginPart, Column("both", "score")]
    ratio: Annotated[Number, Column("name / topic", "score", bounds=("ratio_low", "ratio_high"))] = Field(
        description="mean name margin divided by mean topic margin"
    )
    ratio_low: Number
    ratio_high: Number
    small: float = Field(description="share of test cases with a name margin below 0.02")
    ablations: tuple[AblationPart, ...]

    @property
    def spread(
        self,
    ) -> Annotated[Number, Column("repetition sd", "score", legend="standard deviation of the means over repetitions")]:
        """Standard deviation of the mean name margin over repetitions."""
        return self.name.sd


class NamesEndToEndPart(ReportPart):
    """Effect of one perturbation on a golden set's queries with names, by dense search with one embedder."""

    embedder: Annotated[str, Column("embedder")]
    perturber: Annotated[str, Column("perturber")]
    before: Annotated[Number, Column("before", "score")] = Field(description="mean over queries")
    after: Annotated[Number, Column("after", "score")]
    difference: Annotated[Number, Column("change", "signed", bounds=("low", "high"))]
    low: Number = Field(description="95% interval of the paired difference")
    high: Number
    passages: Annotated[int, Column("passages changed", text="{:,}")] = Field(
        description="number of passages that the perturber changed"
    )
    margin: Annotated[Number, Column("name margin %", "percent")] = Field(
        description="change of the mean name margin in percent, in the test cases"
    )

    @property
    def label(self) -> Annotated[str, Column("change of the names")]:
        """Plain name of the perturber."""
        return label_of(self.perturber)


class PredictionPart(ReportPart):
    """How well the change of the name margin, which is cheap to measure, predicts the change of recall."""

    spearman: Number = Field(
        description="rank correlation between the changes of name margin and metric, over perturbers and embedders"
    )
    low: Number = Field(description="95% interval over resampled queries of the golden set")
    high: Number
    points: int


class EndToEnd(ReportPart):
    """Effect of the perturbations on the search results of the golden set."""

    measure: str
    questions: int = Field(description="number of queries with names that occur in the corpus")
    judged: int
    passages: int = Field(description="number of passages that were searched")
    language: str = Field(description="the most frequent language of these queries")
    changes: tuple[NamesEndToEndPart, ...] = ()
    prediction: PredictionPart | None = None
    note: str | None = Field(None, description="reason why nothing was measured; else null")


class NamesFindings(DiagnosisFindings):
    """Name margins, the changes that destroy them, and the effect on recall."""

    source: str = Field(description="source of names and topics")
    names: Mapping[str, int] = Field(description="number of different names by language")
    cleaned: bool = Field(description="whether texts were normalised (Unicode)")
    min_drop: float
    max_drop: float
    subjects: tuple[SubjectPart, ...]
    end_to_end: EndToEnd | None = None


MIN_NAMES = 20  # minimum number of names, and minimum number of topics, to make bundles
MAX_TOPIC_CHARS = 200  # maximum length of a topic: longer values are texts, not titles
NAME_SEPARATOR = ";"  # separates the authors of a passage


@dataclass(frozen=True)
class NameLists:
    """Names and topics for bundles.

    Attributes:
        home: names that are common in countries of the language; half of the draws are from this list.
        abroad: all other names; may be empty.
        topics: topics without duplicates.
        pairs: names, each with a topic that this person wrote about; empty if every name may be combined with every
            topic.
    """

    home: tuple[str, ...]
    abroad: tuple[str, ...]
    topics: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] = ()


@cache
def own_lists(language: str) -> NameLists:
    """Return raggs' own names and topics for a language of `WORDINGS`."""
    home: list[str] = []
    abroad: list[str] = []
    for line in _lines("people.txt"):
        _, languages, given, family = (part.strip() for part in line.split("|"))
        names = [f"{first} {last}" for first, last in product(_split_list(given), _split_list(family))]
        (home if language in languages.split() else abroad).extend(names)
    subjects, settings = _lines(f"topics.{language}.txt"), cycle(_lines(f"settings.{language}.txt"))
    topics = tuple(f"{subject} {setting}" for subject, setting in zip(subjects, settings, strict=False))
    return NameLists(tuple(home), tuple(abroad), topics)


def corpus_lists(rows: Iterable[tuple[str, str]], fields: tuple[str, str]) -> NameLists:
    """Return names and topics from two fields of a corpus.

    Args:
        rows: for each passage, the text of the name field and the text of the topic field.
        fields: names of the two fields.

    Raises:
        DataError: there are fewer than 20 names, or fewer than 20 topics.
    """
    pairs: dict[tuple[str, str], None] = {}
    for names, topic in rows:
        about = one_line(clean_unicode(topic))
        if about and len(about) <= MAX_TOPIC_CHARS:
            authors = (one_line(clean_unicode(name)) for name in names.split(NAME_SEPARATOR))
            pairs.update(((author, about), None) for author in authors if author)
    people = tuple(dict.fromkeys(name for name, _ in pairs))
    topics = tuple(dict.fromkeys(topic for _, topic in pairs))
    for found, field, what in ((people, fields[0], "name"), (topics, fields[1], "topic")):
        if len(found) < MIN_NAMES:
            told = plural(len(found), f"different {what}")
            raise DataError(
                f"the field {field!r} of the corpus gives {told}, at least {MIN_NAMES} are needed",
                remedy="pass other fields with --name-field and --topic-field, or none for the built-in lists",
            )
    return NameLists(people, (), topics, tuple(pairs))


def field_text(metadata: Mapping[str, object], field: str) -> str | None:
    """Return a metadata field as text. The items of a list are joined by `NAME_SEPARATOR`. If the field is missing or
    has another type, return None.
    """
    value = metadata.get(field)
    if isinstance(value, str):
        return value
    return NAME_SEPARATOR.join(str(each) for each in value) if isinstance(value, list | tuple) else None


def _lines(file: str) -> list[str]:
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


BY = "{label}{author}."
# maximum number of attempts to draw another topic, or a name that shares no part with the others; then the last draw is
# accepted
MAX_DRAW_TRIES = 200


@dataclass(frozen=True)
class LanguageWording:
    """Templates of queries, and of the works that are their candidates, in one language. The first of each list is
    the simplest.
    """

    questions: tuple[str, ...]
    works: tuple[str, ...]
    label: str


WORDINGS = {
    "en": LanguageWording(
        (
            "Which works by {author} on {topic}?",
            "Which papers by {author} on {topic}?",
            "Which publications by {author} on {topic}?",
            "Are there works by {author} on {topic}?",
        ),
        ("Research paper: '{topic}'.", 'Research paper "{topic}".', "Research article '{topic}'."),
        "Author: ",
    ),
    "fr": LanguageWording(
        (
            "Quels travaux de {author} sur {topic} ?",
            "Quels articles de {author} sur {topic} ?",
            "Quelles publications de {author} sur {topic} ?",
            "Y a-t-il des travaux de {author} sur {topic} ?",
        ),
        ("Article de recherche : '{topic}'.", "Article de recherche « {topic} ».", "Travail de recherche '{topic}'."),
        "Auteur : ",
    ),
}


def draw(lists: NameLists, language: str, *, questions: int, runs: int, seed: int) -> list[list[Bundle]]:
    """Return the bundles by repetition and query.

    Args:
        lists: at least `MIN_NAMES` names and topics.
        language: one of `WORDINGS`.
        questions, runs: number of queries and number of repetitions, each at least 1.
        seed: random seed.
    """
    asked = _author_topic_pairs(lists, language, questions, seed)
    return [
        [
            _bundle(lists, language, author, topic, f"{language}/{run}/{number}", seed)
            for number, (author, topic) in enumerate(asked)
        ]
        for run in range(runs)
    ]


def _author_topic_pairs(lists: NameLists, language: str, questions: int, seed: int) -> list[tuple[str, str]]:
    """Return author and topic of each query. Every topic (or pair from the corpus) is used once before any is
    repeated.
    """
    found: list[tuple[str, str]] = []
    while len(found) < questions:
        rng = generator(seed, "asked", language, len(found))
        order: Sequence[tuple[str, str]] = lists.pairs or [(_name(lists, rng), topic) for topic in lists.topics]
        found += [order[at] for at in rng.permutation(len(order))]
    return found[:questions]


def _bundle(lists: NameLists, language: str, author: str, topic: str, key: str, seed: int) -> Bundle:
    rng, wording = generator(seed, "bundle", key), WORDINGS[language]
    others: list[str] = []
    for _ in range(3):
        others.append(_draw_other(lambda: _name(lists, rng), lambda name: _share_a_name(name, [author, *others])))
    away = _draw_other(lambda: lists.topics[rng.integers(len(lists.topics))], lambda other: other == topic)
    question = wording.questions[rng.integers(len(wording.questions))]
    shown = (wording.works[rng.integers(len(wording.works))], BY)
    first, second, third = others

    def candidate(who: str, what: str) -> BundleText:
        return BundleText(who, what, shown, wording.label)

    return Bundle(
        key,
        language,
        BundleText(author, topic, (question,)),
        (
            candidate(author, topic),
            candidate(first, topic),
            candidate(second, topic),
            candidate(author, away),
            candidate(third, away),
        ),
    )


def _name(lists: NameLists, rng: np.random.Generator) -> str:
    names = lists.abroad if lists.abroad and rng.random() < 0.5 else lists.home or lists.abroad
    return names[rng.integers(len(names))]


def _draw_other(drawn: Callable[[], str], wrong: Callable[[str], bool]) -> str:
    for _ in range(MAX_DRAW_TRIES):
        if not wrong(found := drawn()):
            break
    return found


def _share_a_name(name: str, others: Sequence[str]) -> bool:
    """Return whether a name has a given or family name in common with another name."""
    parts = set(name_parts(name)) - {""}
    return any(parts & set(name_parts(other)) for other in others)


LOOKED_AT = 500  # number of passages whose fields the error message lists if the requested field does not exist


def all_passages(passages: Passages) -> Iterator[Passage]:
    """Yield all passages in corpus order. Yield nothing if passages can only be fetched one by one."""
    if isinstance(passages, PassageStore):
        yield from passages


def field_rows(passages: Passages, name_field: str, topic_field: str) -> list[tuple[str, str]]:
    """Return the name field and the topic field of each passage that has both; ``title`` and ``text`` are fields as
    well.

    Raises:
        DataError: no passage has one of the fields.
    """
    found: list[tuple[str, str]] = []
    named = about = 0
    for passage in all_passages(passages):
        names, topic = field_of(passage, name_field), field_of(passage, topic_field)
        named += names is not None
        about += topic is not None
        if names is not None and topic is not None:
            found.append((names, topic))
    for count, field in ((named, name_field), (about, topic_field)):
        if not count:
            raise DataError(f"no passage of the corpus has a field {field!r}", remedy=_suggest_field(passages, field))
    return found


def field_of(passage: Passage, field: str) -> str | None:
    """Return a field of a passage: its title, its text, or a metadata field as in `field_text`. If the title or text is
    empty, or the metadata field has no text, return None.
    """
    if field in ("title", "text"):
        return (passage.title if field == "title" else passage.text) or None
    return field_text(passage.metadata, field)


def _suggest_field(passages: Passages, field: str) -> str:
    known = {"title": None, "text": None}
    for _, passage in zip(range(LOOKED_AT), all_passages(passages), strict=False):
        known |= dict.fromkeys(passage.metadata)
    return did_you_mean(field, known)


MIN_NAME_WORDS = 2
LETTER_PATTERN = r"[\p{L}\p{M}]"
NAME_WORD_PATTERN = rf"(?:\p{{Lu}}\.(?:-?\p{{Lu}}\.)*|\p{{Lu}}{LETTER_PATTERN}*+(?:['’‘ʻ-]{LETTER_PATTERN}++)*+)"
PARTICLE = rf"(?:{'|'.join(sorted(map(regex.escape, PARTICLES), key=len, reverse=True))})"
INSIDE_WORD_PATTERN = r"[\p{L}\p{M}\p{N}]"
RUN = regex.compile(
    rf"(?<!{INSIDE_WORD_PATTERN}){NAME_WORD_PATTERN}(?: (?:{PARTICLE} "
    rf"){{0,2}}{NAME_WORD_PATTERN}){{1,3}}(?!{INSIDE_WORD_PATTERN})"
)
POSSESSIVE = ("'s", "’s")
WORD_PATTERN = regex.compile(r"[\p{L}\p{M}]+")
SENTENCE_WORDS = frozenset(word for words in FUNCTION_WORDS.values() for word in words.split())


def runs_in(text: str) -> list[str]:
    """Return the word sequences that look like names, in text order."""
    found = (_trim_name(match[0]) for match in RUN.finditer(text))
    return [run for run in found if len(run.split()) >= MIN_NAME_WORDS]


def _trim_name(run: str) -> str:
    """Return the words without function words at the start and without a possessive ending."""
    words = run.removesuffix(POSSESSIVE[0]).removesuffix(POSSESSIVE[1]).split()
    while words and fold_accents(words[0]).lower() in SENTENCE_WORDS:
        del words[0]
    return " ".join(words)


class PersonNames:
    """Finds names in texts.

    Args:
        names: the names to find; duplicates are ignored.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(sorted(set(names)))
        self._by_word: dict[str, list[str]] = defaultdict(list)
        for name in self.names:
            if words := WORD_PATTERN.findall(name):
                self._by_word[words[0]].append(name)

    def within(self, text: str) -> list[str]:
        """Return the names that occur in a text as whole words, sorted."""
        near = (self._by_word[word] for word in set(WORD_PATTERN.findall(text)) & self._by_word.keys())
        return sorted(name for names in near for name in names if _is_in_text(name, text))


def asked_for(question: str, passages: Sequence[str]) -> list[str]:
    """Find names in a query by rule, and return those that occur in a passage. If a name does not occur, its longest
    end that does is returned.
    """
    found = []
    for run in runs_in(question):
        words = run.split()
        for start in range(len(words) - MIN_NAME_WORDS + 1):
            name = " ".join(words[start:])
            if any(_is_in_text(name, text) for text in passages):
                found.append(name)
                break
    return found


def _is_in_text(name: str, text: str) -> bool:
    """Return whether a name occurs in the text as whole words."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            return True
        at = text.find(name, at + 1)
    return False


def by_question(
    questions: Mapping[str, str], passages: Sequence[str], known: PersonNames | None
) -> dict[str, list[str]]:
    """Return the names of each query that contains a name from a passage.

    Args:
        questions: texts by id.
        passages: texts.
        known: names in a field of the corpus; None to find names by rule.
    """
    there: set[str] = set()
    if known is not None:
        there = {name for text in passages for name in known.within(text)}

    def named(text: str) -> Iterator[str]:
        if known is None:
            yield from asked_for(text, passages)
        else:
            yield from (name for name in known.within(text) if name in there)

    found = {qid: list(dict.fromkeys(named(text))) for qid, text in questions.items()}
    return {qid: names for qid, names in found.items() if names}
