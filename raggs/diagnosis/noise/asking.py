"""Questions made noisy and rewritten, as a run would prepare them: the same hygiene, language and rewriter."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from raggs.base.adapter import AdapterConfig
from raggs.base.artifacts import EmbedRecord, Query
from raggs.base.errors import ProviderError
from raggs.base.settings import Causes
from raggs.chunking.specs import spec_name
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.noise.models import NoiseDiagnosisConfig
from raggs.llm.rehearsal import UNKNOWN
from raggs.parts import noises, rewriters
from raggs.parts.noises.base import Asked, Noise
from raggs.parts.noises.levels import noisy
from raggs.parts.rewriters.base import Rewriter
from raggs.stages.embed import prepare
from raggs.sweeps.once import all_or_none

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
