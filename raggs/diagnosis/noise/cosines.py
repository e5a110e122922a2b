"""Cosines of noisy and rewritten questions to their ideal texts, by embedder, language, level and rewriter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from raggs.base.arrays import Floats, Vectors
from raggs.base.artifacts import Query
from raggs.base.errors import DataError
from raggs.base.hashing import hash_value
from raggs.base.jsontypes import number
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.noise.asking import Condition, Questions
from raggs.diagnosis.noise.models import NONE, LevelPart, NoiseDiagnosisConfig
from raggs.diagnosis.noise.texts import Ideal
from raggs.diagnosis.parts import MeanPart
from raggs.evaluation.models import Part
from raggs.metrics.stats import bootstrap_mean
from raggs.parts.embedders.base import Embedder
from raggs.stats.probes.noise import Share, change, percent, regained

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
