"""Questions made noisy and rewritten, as a run would prepare them: the same hygiene, language and rewriter.

Questions with the ideal texts that they are compared to: raggs' own, or a golden set's with its best passages.

Cosines of noisy and rewritten questions to their ideal texts, by embedder, language, level and rewriter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files

import numpy as np

from raggs.base.adapter import AdapterConfig
from raggs.base.arrays import Floats, Vectors
from raggs.base.artifacts import EmbedRecord, Query
from raggs.base.errors import DataError, ProviderError
from raggs.base.hashing import hash_value
from raggs.base.languages import detect_language
from raggs.base.settings import Causes
from raggs.base.types import number
from raggs.chunking.specs import spec_name
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.models import MeanPart
from raggs.diagnosis.noise.models import NONE, LevelPart, NoiseDiagnosisConfig
from raggs.evaluation.models import Part
from raggs.llm.rehearsal import UNKNOWN
from raggs.parts import noises, rewriters
from raggs.parts.embedders.base import Embedder
from raggs.parts.noises.base import Asked, Noise
from raggs.parts.noises.levels import noisy
from raggs.parts.rewriters.base import Rewriter
from raggs.stages.embed import prepare
from raggs.stats.comparison import bootstrap_mean
from raggs.stats.probes.noise import Share, change, percent, regained
from raggs.sweeps.part_store import all_or_none

AHEAD = 16  # questions that may wait for a language model at once


@dataclass(frozen=True)
class Condition:
    """What is done to a question before it is searched for.

    Attributes:
        level: of noise.
        rewriter: its settings.
        draw: which of the draws of noise.
    """

    level: int
    rewriter: AdapterConfig
    draw: int = 0

    @property
    def name(self) -> str:
        """Of the rewriter."""
        return spec_name(self.rewriter)

    @property
    def plain(self) -> Condition:
        """The same noise without rewriting."""
        return replace(self, rewriter=rewriters.REGISTRY.load("none").Config.model_validate({"type": "none"}))


class Questions:
    """Makes questions noisy and rewrites them.

    Args:
        bench: of the diagnosis.
        config: which noises and rewriters.
    """

    def __init__(self, bench: Bench, config: NoiseDiagnosisConfig) -> None:
        self._bench, self._config = bench, config
        self._rewriters = {spec_name(spec): bench.workshop.rewriter(spec, bench.rehearsal) for spec in config.rewriters}

    @cached_property
    def noises(self) -> tuple[Noise, ...]:
        """Those that are added."""
        return tuple(noises.REGISTRY.of(spec)(spec) for spec in self._config.noises)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that rewriters pay."""
        return tuple(dict.fromkeys(model for each in self._rewriters.values() for model in each.models))

    def pays(self, condition: Condition) -> bool:
        """Whether its rewriter asks a model."""
        return bool(self._rewriters[condition.name].models)

    def causes(self, condition: Condition) -> Causes:
        """All that can change what a question becomes."""
        done = [noise.causes() for noise in self.noises] if condition.level else []
        drawn = [condition.draw, self._bench.seed] if condition.level else []
        rewriter = self._rewriters[condition.name].causes()
        return {"noises": done, "level": condition.level, "drawn": drawn, "rewriter": rewriter}

    def noisy(self, query: Query, language: str, condition: Condition) -> Query:
        """A question with its noise."""
        asked = Asked(f"{query.qid}/{condition.draw}", language, condition.level, self._bench.seed)
        return query.model_copy(update={"text": noisy(query.text, asked, self.noises)})

    def prepared(self, queries: Sequence[tuple[Query, str]], condition: Condition) -> list[EmbedRecord]:
        """What is searched for; where models only remember, a question stands for a rewrite that is not known.

        Args:
            queries: each with the language of its noise, which is its own unless it says another.

        Raises:
            ProviderError: as the rewriter.
        """
        rewriter = self._rewriters[condition.name]
        texts = [(self.noisy(query, language, condition), language) for query, language in queries]

        async def everything() -> list[EmbedRecord]:
            ahead = asyncio.Semaphore(AHEAD)

            async def one(query: Query, language: str) -> EmbedRecord:
                async with ahead:
                    return await self._one(query, rewriter, language)

            return await all_or_none(one(*each) for each in texts)

        return self._bench.workshop.loop.run(everything())

    async def _one(self, query: Query, rewriter: Rewriter, language: str) -> EmbedRecord:
        try:
            return await prepare(query, rewriter, language)
        except ProviderError as error:
            if self._bench.rehearsal is None or UNKNOWN not in str(error):
                raise
            return await prepare(query, self._rewriters["none"], language)


OWN = "raggs' own questions and ideal texts"
GOLDEN = "the golden set's questions and their best passages"


@dataclass(frozen=True)
class Ideal:
    """A question, the text that answers it best, and the question's language."""

    key: str
    question: str
    text: str
    language: str


@cache
def own_questions(language: str) -> tuple[Ideal, ...]:
    """raggs' own, in the order of their file."""
    text = (files(__package__) / f"questions.{language}.txt").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line and not line.startswith("#")]
    return tuple(Ideal(f"{language}/{at}", question, ideal, language) for at, (question, ideal) in enumerate(rows))


def language_of(query: Query, usual: str) -> str:
    """The language that a question says, or looks like."""
    return query.language or detect_language(query.text, usual)


def usual_language(bench: Bench) -> str:
    """Of questions whose own cannot be told."""
    return "en" if bench.run is None else bench.run.embed.language


def golden_questions(bench: Bench, language: str) -> tuple[Ideal, ...]:
    """The golden set's questions of a language that have a relevant passage, with the best of them; by id.

    Raises:
        RaggsError: there is no golden set or no corpus.
    """
    found = list(_best(bench, language))
    texts = bench.passages.get([doc for _, doc in found])
    return tuple(Ideal(query.qid, query.text, texts[doc].content, language) for query, doc in found if doc in texts)


def _best(bench: Bench, language: str) -> Iterator[tuple[Query, str]]:
    """Each question with the passage of its highest grade, the first by id."""
    qrels = bench.judgments.qrels
    best: dict[str, tuple[int, str]] = {}
    for row in range(len(qrels.docs)):
        if (grade := int(qrels.grade[row])) >= qrels.scale.relevant:
            qid, found = qrels.qids[qrels.query[row]], (-grade, qrels.docs.text(row))
            best[qid] = min(best.get(qid, found), found)
    for qid, query in bench.queries.items():
        if qid in best and language_of(query, usual_language(bench)) == language:
            yield query, best[qid][1]


VERSION = 1  # of the rows


class CosineRow(Part):
    """The cosines of all questions under one condition, one a question, in their order."""

    values: tuple[float, ...]


class Cosines:
    """Measures one embedder on the questions of one language."""

    def __init__(
        self, bench: Bench, questions: Questions, config: NoiseDiagnosisConfig, name: str, ideals: Sequence[Ideal]
    ) -> None:
        self._bench, self._questions, self._config = bench, questions, config
        self._name, self._ideals = name, ideals
        self._embedder: Embedder = bench.embedders[name]

    def parts(self) -> Iterator[LevelPart]:
        """For each rewriter and level, without rewriting first."""
        conditions = [Condition(level, spec) for spec in self._config.rewriters for level in self._config.levels]
        found = {(each.name, each.level): self._mean(each) for each in conditions}
        plain, seed = found[NONE, 0], self._bench.seed
        for each in conditions:
            values, noisy = found[each.name, each.level], found[NONE, each.level]
            yield LevelPart(
                embedder=self._name,
                language=self._ideals[0].language,
                level=each.level,
                rewriter=each.name,
                cosine=MeanPart.of(bootstrap_mean(values, seed=seed)),
                change=MeanPart.of(change(plain, values, seed)),
                percent=number(percent(plain, values)),
                regained=of_share(None if each.name == NONE else regained(plain, noisy, values, seed)),
            )

    def ask(self) -> None:
        """Embed everything once, for a forecast of what that takes."""
        for spec in self._config.rewriters:
            for condition in self._conditions(Condition(0, spec)):
                self._vectors(condition)

    def _conditions(self, condition: Condition) -> Iterator[Condition]:
        for level in self._config.levels:
            for draw in range(self._config.draws if level else 1):
                yield Condition(level, condition.rewriter, draw)

    def _mean(self, condition: Condition) -> Floats:
        """Shape (questions,): the mean over the draws; a rewriter's level has as many as the noise."""
        draws = range(self._config.draws if condition.level else 1)
        drawn = [self._values(Condition(condition.level, condition.rewriter, draw)) for draw in draws]
        return np.asarray(np.mean(drawn, axis=0))

    def _values(self, condition: Condition) -> Floats:
        causes = [
            "noise cosines",
            VERSION,
            self._embedder.causes(),
            self._questions.causes(condition),
            hash_value([[each.key, each.question, each.text, each.language] for each in self._ideals]),
        ]
        (row,) = self._bench.kept(causes, CosineRow, lambda: [self._row(condition)])
        return np.array(row.values)

    def _row(self, condition: Condition) -> CosineRow:
        texts, asked = self._vectors(condition)
        products = (texts * asked).sum(axis=1)
        if not np.abs(products).any():
            raise DataError(
                f"{self._name} knows no word of the questions in {self._ideals[0].language!r}",
                remedy="name an embedder of this language, or leave it out: --language en",
            )
        return CosineRow(values=tuple(round(float(each), 6) for each in products))

    def _vectors(self, condition: Condition) -> tuple[Vectors, Vectors]:
        """Of the ideal texts and of the questions, each of unit length."""
        queries = [
            (Query(qid=each.key, text=each.question, language=each.language), each.language) for each in self._ideals
        ]
        records = self._questions.prepared(queries, condition)
        texts = self._embedder.embed([each.text for each in self._ideals])
        return texts, self._embedder.embed_queries([record.rewrite for record in records])


def of_share(found: Share | None) -> MeanPart:
    """A share; null where there is none."""
    if found is None:
        return MeanPart()
    return MeanPart(mean=number(found.value), low=number(found.low), high=number(found.high))
