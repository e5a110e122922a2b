"""Settings, findings and cosine measurements of the diagnosis of noise. An undefined number is null.

Queries come from raggs or from a golden set. Each has an ideal text, which answers it best; in a golden set, this is
the passage with the highest grade. Noise is added to the queries. They are then cleaned as in a run, and rewritten by
each of the given rewriters. Cosines of noisy and rewritten queries with their ideal texts are measured for each
embedder, language, level and rewriter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, field_validator

from raggs.base.adapter import AdapterConfig, OneOf
from raggs.base.arrays import Floats, Vectors
from raggs.base.artifacts import EmbedRecord, Query
from raggs.base.document import Column
from raggs.base.errors import DataError, ProviderError
from raggs.base.hashing import hash_value
from raggs.base.languages import detect_language
from raggs.base.settings import Causes, Flag
from raggs.base.text import did_you_mean
from raggs.base.types import Number, finite_or_none
from raggs.chunking.models import parse_spec, spec_name
from raggs.diagnosis.base import Bench, DiagnosisConfig, DiagnosisFindings, from_word
from raggs.diagnosis.models import MeanPart
from raggs.evaluation.models import ReportPart
from raggs.llm.rehearsal import NOT_CACHED_MESSAGE
from raggs.parts import noises, rewriters
from raggs.parts.embedders import Embedder, FittingTexts
from raggs.parts.noises import LANGUAGES, NOISE_LEVELS, Noise, NoiseConfig, NoiseRequest, noisy
from raggs.parts.rewriters import Rewriter
from raggs.stages.embed import prepare, query_vectors
from raggs.stats.intervals import bootstrap_mean
from raggs.stats.name_margins import RecoveredShare, noise_change, percent, recovered_share
from raggs.sweeps.outputs import all_or_none

NO_REWRITER = "none"
ALL = tuple(noises.REGISTRY.builtin)


NoiseSpec = Annotated[NoiseConfig, OneOf(noises.REGISTRY), from_word(noises.REGISTRY, NoiseConfig)]
RewriterSpec = Annotated[AdapterConfig, OneOf(rewriters.REGISTRY), from_word(rewriters.REGISTRY, AdapterConfig)]


class NoiseDiagnosisConfig(DiagnosisConfig):
    """Settings of the diagnosis of noise."""

    type: Literal["noise"] = "noise"
    languages: Annotated[tuple[str, ...], Flag(value="CODE")] = Field(
        LANGUAGES, min_length=1, description="languages of the queries"
    )
    levels: tuple[int, ...] = Field(
        NOISE_LEVELS,
        min_length=1,
        description="noise levels (0 to 4) that are compared by cosine; 0 (no noise) is always included",
    )
    noises: tuple[NoiseSpec, ...] = Field(
        ALL, validate_default=True, min_length=1, description="kinds of noise that are added"
    )
    rewriters: tuple[RewriterSpec, ...] = Field(
        (NO_REWRITER, "clean"),
        validate_default=True,
        min_length=1,
        description="query rewriters to compare; no rewriting is always included",
    )
    draws: int = Field(3, ge=1, le=100, description="number of random draws of noise per query and level")
    of: Literal["own", "golden"] = Field(
        "own",
        description="source of queries and ideal texts: raggs' built-in ones, or the golden set with its best passages",
    )
    retrieval: Annotated[bool, Flag(("--search/--cosine-only",))] = Field(
        True, description="also search with the golden set's queries after adding noise"
    )
    searched: Annotated[tuple[int, ...], Flag(("--searched-level",))] = Field(
        (0, 2, 4), min_length=1, description="noise levels used for search; 0 (no noise) is always included"
    )
    depth: int = Field(50, ge=10, le=1000, description="number of passages per list")
    cutoffs: Annotated[tuple[int, ...], Flag(value="K")] = Field(
        (10, 30), min_length=1, description="cutoffs of metrics and overlaps"
    )

    @field_validator("languages")
    @classmethod
    def _know_the_languages(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        for language in languages:
            if language not in LANGUAGES:
                raise ValueError(f"there is no noise in {language!r}: {did_you_mean(language, LANGUAGES)}")
        return tuple(dict.fromkeys(languages))

    @field_validator("levels", "searched")
    @classmethod
    def _know_the_levels(cls, levels: tuple[int, ...]) -> tuple[int, ...]:
        for level in levels:
            if level not in NOISE_LEVELS:
                raise ValueError(f"no noise level {level}: levels are 0 (unchanged) to 4")
        if not any(levels):
            raise ValueError("add a level above 0: level 0 has no noise")
        return tuple(sorted({0, *levels}))

    @field_validator("cutoffs")
    @classmethod
    def _count_from_one(cls, cutoffs: tuple[int, ...]) -> tuple[int, ...]:
        if min(cutoffs) < 1:
            raise ValueError(f"a cutoff is at least 1, not {min(cutoffs)}")
        return tuple(sorted(set(cutoffs)))

    @field_validator("rewriters")
    @classmethod
    def _begin_with_none(cls, found: tuple[AdapterConfig, ...]) -> tuple[AdapterConfig, ...]:
        if len(set(map(spec_name, found))) < len(found):
            raise ValueError("a rewriter is given twice")
        plain = parse_spec(NO_REWRITER, rewriters.REGISTRY, AdapterConfig)
        return (plain, *(each for each in found if each.type != NO_REWRITER))


class LevelPart(ReportPart):
    """Cosines of queries of one language, level and rewriter with their ideal texts, by one embedder."""

    embedder: Annotated[str, Column("embedder")]
    language: Annotated[str, Column("language")]
    level: Annotated[int, Column("level")]
    rewriter: Annotated[str, Column("rewriter")]
    cosine: Annotated[MeanPart, Column("cosine", "score")]
    change: MeanPart = Field(
        description="value minus that at level 0 without rewriting, paired; negative: less similar"
    )
    percent: Number = Field(description="difference from level 0 as a percentage of the mean at level 0")
    regained: Annotated[MeanPart, Column("back", "share")] = Field(
        description="share of the loss that rewriting recovers; null if there is no rewriting or no significant loss"
    )

    @property
    def base(self) -> bool:
        """Whether this is the baseline: no noise and no rewriting."""
        return self.level == 0 and self.rewriter == NO_REWRITER

    @property
    def changed(self) -> Annotated[MeanPart | None, Column("change", "signed")]:
        """Table cell of the change; None for the baseline."""
        return None if self.base else self.change

    @property
    def changed_percent(self) -> Annotated[Number, Column("change %", "percent")]:
        """Table cell of the change in percent; None for the baseline."""
        return None if self.base else self.percent


class TargetPart(ReportPart):
    """A published figure that raggs has not reproduced."""

    model: str
    language: str
    level: int
    cosine: float


class NoiseEndToEndPart(ReportPart):
    """Result of one system on one measure, for the golden set's queries with one noise level and one rewriter."""

    system: Annotated[str, Column("system")]
    level: Annotated[int, Column("level")]
    rewriter: Annotated[str, Column("rewriter")]
    measure: Annotated[str, Column("measure")]
    questions: int = Field(description="number of queries for which the metric is defined")
    mean: Annotated[MeanPart, Column("with noise", "score")]
    change: Annotated[MeanPart, Column("change", "signed")] = Field(
        description="value minus that of the unchanged queries, paired; negative: worse"
    )
    gained: MeanPart = Field(
        description="value minus that with the same noise without rewriting, paired; null if there is no rewriting"
    )
    regained: MeanPart = Field(
        description="share of the loss that rewriting recovers; null if there is no rewriting or no significant loss"
    )


class ShufflePart(ReportPart):
    """How similar a system's lists are to its lists for the unchanged queries."""

    system: Annotated[str, Column("system")]
    level: Annotated[int, Column("level")]
    rewriter: Annotated[str, Column("rewriter")]
    k: Annotated[int, Column("k")]
    overlap: Annotated[
        MeanPart,
        Column("overlap", "score", legend="share of the first k passages that are also found without noise"),
    ] = Field(description="share of the first k passages that are in both lists, with and without noise")
    tau: Annotated[
        MeanPart, Column("tau", "score", legend="Kendall's tau over the passages in the first k of both lists")
    ] = Field(description="Kendall's tau over the passages in the first k of both lists, with and without noise")


class ExamplePart(ReportPart):
    """An example: one query with noise, and the text that is searched for."""

    language: Annotated[str, Column("language")]
    level: Annotated[int, Column("level")]
    text: Annotated[str, Column("question")]
    rewritten: Annotated[Mapping[str, str], Column("by {key}")] = Field(description="by rewriter")


class NoiseFindings(DiagnosisFindings):
    """Findings of the diagnosis of noise."""

    source: str = Field(description="source of queries and ideal texts")
    questions: Mapping[str, int] = Field(description="number of compared queries by language")
    draws: int
    noises: tuple[str, ...]
    cosines: tuple[LevelPart, ...]
    targets: tuple[TargetPart, ...] = Field(description="published results, which raggs has not reproduced")
    searched: int = Field(description="number of queries of the golden set that were searched with noise")
    strange: int = Field(
        description="number of judged queries that are not searched because their language is not in `languages`"
    )
    ends: tuple[NoiseEndToEndPart, ...]
    shuffles: tuple[ShufflePart, ...]
    untold: str | None = Field(description="reason why nothing was searched; else null")
    examples: tuple[ExamplePart, ...]


MAX_REWRITER_CALLS = 16  # maximum number of concurrent calls of a language model


@dataclass(frozen=True)
class NoiseCondition:
    """How a query is processed before the search.

    Attributes:
        level: noise level.
        rewriter: settings of the rewriter.
        draw: number of the random draw of noise.
    """

    level: int
    rewriter: AdapterConfig
    draw: int = 0

    @property
    def name(self) -> str:
        """Name of the rewriter."""
        return spec_name(self.rewriter)

    @property
    def plain(self) -> NoiseCondition:
        """The condition with the same noise, but without rewriting."""
        return replace(self, rewriter=rewriters.REGISTRY.load("none").Config.model_validate({"type": "none"}))


class NoisyQuestions:
    """Adds noise to queries and rewrites them.

    Args:
        bench: bench of the diagnosis.
        config: the kinds of noise, and the rewriters.
    """

    def __init__(self, bench: Bench, config: NoiseDiagnosisConfig) -> None:
        self._bench, self._config = bench, config
        self._rewriters = {
            spec_name(spec): bench.workspace.rewriter(spec, bench.rehearsal) for spec in config.rewriters
        }

    @cached_property
    def noises(self) -> tuple[Noise, ...]:
        """The noises that are added."""
        return tuple(noises.REGISTRY.of(spec)(spec) for spec in self._config.noises)

    @property
    def models(self) -> tuple[str, ...]:
        """Paid models of the rewriters."""
        return tuple(dict.fromkeys(model for each in self._rewriters.values() for model in each.models))

    def pays(self, condition: NoiseCondition) -> bool:
        """Return whether the condition's rewriter calls a paid model."""
        return bool(self._rewriters[condition.name].models)

    def causes(self, condition: NoiseCondition) -> Causes:
        """Return everything that can change a query processed under this condition."""
        done = [noise.causes() for noise in self.noises] if condition.level else []
        drawn = [condition.draw, self._bench.seed] if condition.level else []
        rewriter = self._rewriters[condition.name].causes()
        return {"noises": done, "level": condition.level, "drawn": drawn, "rewriter": rewriter}

    def noisy(self, query: Query, language: str, condition: NoiseCondition) -> Query:
        """Return a query with the noise of a condition."""
        asked = NoiseRequest(f"{query.qid}/{condition.draw}", language, condition.level, self._bench.seed)
        return query.model_copy(update={"text": noisy(query.text, asked, self.noises)})

    def prepared(self, queries: Sequence[tuple[Query, str]], condition: NoiseCondition) -> list[EmbedRecord]:
        """Return the texts to search for. With dry-run models, the query itself is used if its rewrite is unknown.

        Args:
            queries: each with the language of its noise. This is also the language of the query if it specifies
                none.
            condition: noise and rewriter.

        Raises:
            ProviderError: the rewriter failed.
        """
        rewriter = self._rewriters[condition.name]
        texts = [(self.noisy(query, language, condition), language) for query, language in queries]

        async def everything() -> list[EmbedRecord]:
            ahead = asyncio.Semaphore(MAX_REWRITER_CALLS)

            async def one(query: Query, language: str) -> EmbedRecord:
                async with ahead:
                    return await self._one(query, rewriter, language)

            return await all_or_none(one(*each) for each in texts)

        return self._bench.workspace.loop.run(everything())

    async def _one(self, query: Query, rewriter: Rewriter, language: str) -> EmbedRecord:
        try:
            return await prepare(query, rewriter, language)
        except ProviderError as error:
            if self._bench.rehearsal is None or NOT_CACHED_MESSAGE not in str(error):
                raise
            return await prepare(query, self._rewriters["none"], language)


OWN_TEXTS_LABEL = "built-in queries and ideal texts"
GOLDEN = "queries of the golden set and their best passages"


@dataclass(frozen=True)
class IdealText:
    """A query, the text that answers it best, and the query's language."""

    key: str
    question: str
    text: str
    language: str


@cache
def own_questions(language: str) -> tuple[IdealText, ...]:
    """Return raggs' own queries, in the order of their file."""
    text = (files(__package__) / f"questions.{language}.txt").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line and not line.startswith("#")]
    return tuple(IdealText(f"{language}/{at}", question, ideal, language) for at, (question, ideal) in enumerate(rows))


def language_of(query: Query, usual: str) -> str:
    """Return the language that a query specifies or, if it specifies none, the detected language."""
    return query.language or detect_language(query.text, usual)


def usual_language(bench: Bench) -> str:
    """Return the language that is used if no language can be detected."""
    return "en" if bench.run is None else bench.run.embed.language


def golden_questions(bench: Bench, language: str) -> tuple[IdealText, ...]:
    """Return the golden set's queries of a language that have a relevant passage, with the best passage; by id.

    Raises:
        RaggsError: the golden set or the corpus is missing.
    """
    qrels = bench.judgments.qrels
    best: dict[str, tuple[int, str]] = {}  # the passage with the highest grade; among equals, the first by id
    for row in range(len(qrels.docs)):
        if (grade := int(qrels.grade[row])) >= qrels.scale.relevant:
            qid, found = qrels.qids[qrels.query[row]], (-grade, qrels.docs.text(row))
            best[qid] = min(best.get(qid, found), found)
    usual = usual_language(bench)
    spoken = [query for qid, query in bench.queries.items() if qid in best and language_of(query, usual) == language]
    texts = bench.passages.get([best[query.qid][1] for query in spoken])
    pairs = [(query, texts.get(best[query.qid][1])) for query in spoken]
    return tuple(IdealText(query.qid, query.text, text.content, language) for query, text in pairs if text is not None)


VERSION = 1  # version of the format of stored rows


class CosineRow(ReportPart):
    """Cosines under one condition, one per query, in the order of the queries."""

    values: tuple[float, ...]


class Cosines:
    """Measures the cosines of one embedder on the queries of one language."""

    def __init__(
        self,
        bench: Bench,
        questions: NoisyQuestions,
        config: NoiseDiagnosisConfig,
        name: str,
        ideals: Sequence[IdealText],
    ) -> None:
        self._bench, self._questions, self._config = bench, questions, config
        self._name, self._ideals = name, ideals
        self._embedder: Embedder = bench.embedders[name].fitted(FittingTexts.of([each.text for each in ideals]))

    def parts(self) -> Iterator[LevelPart]:
        """Yield the results by rewriter and level, starting with those without rewriting."""
        conditions = [NoiseCondition(level, spec) for spec in self._config.rewriters for level in self._config.levels]
        found = {(each.name, each.level): self._mean(each) for each in conditions}
        plain, seed = found[NO_REWRITER, 0], self._bench.seed
        for each in conditions:
            values, noisy = found[each.name, each.level], found[NO_REWRITER, each.level]
            yield LevelPart(
                embedder=self._name,
                language=self._ideals[0].language,
                level=each.level,
                rewriter=each.name,
                cosine=MeanPart.of(bootstrap_mean(values, seed=seed)),
                change=MeanPart.of(noise_change(plain, values, seed)),
                percent=finite_or_none(percent(plain, values)),
                regained=of_share(None if each.name == NO_REWRITER else recovered_share(plain, noisy, values, seed)),
            )

    def ask(self) -> None:
        """Embed everything once with dry-run models, to forecast the cost."""
        for spec in self._config.rewriters:
            for level in self._config.levels:
                for draw in range(self._config.draws if level else 1):
                    self._vectors(NoiseCondition(level, spec, draw))

    def _mean(self, condition: NoiseCondition) -> Floats:
        """Return the mean over the draws of noise, shape (queries,)."""
        draws = range(self._config.draws if condition.level else 1)
        drawn = [self._values(NoiseCondition(condition.level, condition.rewriter, draw)) for draw in draws]
        return np.asarray(np.mean(drawn, axis=0))

    def _values(self, condition: NoiseCondition) -> Floats:
        causes = [
            "noise cosines",
            VERSION,
            self._embedder.causes(),
            self._questions.causes(condition),
            hash_value([[each.key, each.question, each.text, each.language] for each in self._ideals]),
        ]
        (row,) = self._bench.kept(causes, CosineRow, lambda: [self._row(condition)])
        return np.array(row.values)

    def _row(self, condition: NoiseCondition) -> CosineRow:
        texts, asked = self._vectors(condition)
        products = (texts * asked).sum(axis=1)
        if not np.abs(products).any():
            raise DataError(
                f"{self._name} knows no word of the queries in {self._ideals[0].language!r}",
                remedy="pass an embedder of this language, or other languages: --language en",
            )
        return CosineRow(values=tuple(round(float(each), 6) for each in products))

    def _vectors(self, condition: NoiseCondition) -> tuple[Vectors, Vectors]:
        """Return the vectors of the ideal texts and of the queries, each of unit length."""
        queries = [
            (Query(qid=each.key, text=each.question, language=each.language), each.language) for each in self._ideals
        ]
        records = self._questions.prepared(queries, condition)
        texts = self._embedder.embed([each.text for each in self._ideals])
        return texts, query_vectors(records, self._embedder)


def of_share(found: RecoveredShare | None) -> MeanPart:
    """Convert a share to the form that reports contain; null if there is none."""
    if found is None:
        return MeanPart()
    return MeanPart(mean=finite_or_none(found.value), low=finite_or_none(found.low), high=finite_or_none(found.high))
