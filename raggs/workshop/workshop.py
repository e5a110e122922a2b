"""The workshop: from the settings of a part to the part.

Whatever a part needs of another one it is given here, so a retriever or a judge may be made of others by their
settings alone. Nothing is opened, loaded or imported before it is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from raggs import embedders, judges, queries, retrievers, rewriters
from raggs.adapter import AdapterConfig
from raggs.arrays import Vectors
from raggs.artifacts import Query
from raggs.embedders.base import Embedder, EmbedderConfig, EmbedderContext
from raggs.errors import PrerequisiteError
from raggs.indexes.passages import Passages
from raggs.indexes.places import Places
from raggs.judges.base import Judge, JudgeContext
from raggs.llm import LLM, BatchSettings, BudgetSettings, CallLedger, LLMSettings
from raggs.progress import Building, Hear, Waiting, deaf
from raggs.prompts import Prompt, load_prompt
from raggs.queries.load import load_queries
from raggs.retrievers.base import Retriever, RetrieverConfig, RetrieverContext, name_of
from raggs.rewriters.base import Rewriter, RewriterContext
from raggs.workshop.corpus import OpenCorpus, place_of

Owned = TypeVar("Owned", OpenCorpus, Retriever)


class Workshop:
    """Makes parts. One workshop serves one invocation: what its language models spend counts together.

    Args:
        workspace: below it lie the caches.
        llm: how language models are asked.
        budget: what may be spent.
        batch: how questions that can wait are asked by batches; None: directly.
        keeps_answers: whether paid answers are kept in the workspace.
        hear: is told what takes its time.
    """

    def __init__(
        self,
        workspace: Path,
        llm: LLMSettings | None = None,
        budget: BudgetSettings | None = None,
        *,
        batch: BatchSettings | None = None,
        keeps_answers: bool = True,
        hear: Hear = deaf,
    ) -> None:
        self.places = Places.of(workspace)
        self.ledger = CallLedger()
        self._settings = llm or LLMSettings()
        self._budget = budget or BudgetSettings()
        self._batch = batch
        self._answers = self.places.llm if keeps_answers else None
        self._hear = hear
        self._made: list[OpenCorpus | Retriever] = []

    @cached_property
    def llm(self) -> LLM:
        """Language models. Making it touches neither disk nor network."""
        return LLM(self._settings, self._budget, self._answers, self.ledger, self._batch, self._waiting)

    @cached_property
    def loop(self) -> asyncio.Runner:
        """The event loop in which everything that waits is awaited."""
        return asyncio.Runner()

    def queries(self, spec: AdapterConfig) -> Mapping[str, Query]:
        """All questions by id, sorted by id.

        Raises:
            NotFoundError, DataError: the file is missing or malformed (see `load_queries`).
        """
        return load_queries(queries.REGISTRY.of(spec)(spec), place_of(spec))

    def corpus(self, spec: AdapterConfig) -> OpenCorpus:
        """A corpus; closed with the workshop."""
        return self._own(OpenCorpus(spec, self.places, self._hear))

    def embedder(self, spec: EmbedderConfig) -> Embedder:
        """An embedder; its model is loaded at first use."""
        return embedders.REGISTRY.of(spec)(spec, EmbedderContext(self.llm, lambda: self.loop))

    def rewriter(self, spec: AdapterConfig) -> Rewriter:
        """A rewriter of questions."""
        return rewriters.REGISTRY.of(spec)(spec, RewriterContext(self.llm))

    def retrievers(
        self,
        specs: Iterable[RetrieverConfig],
        passages: Passages,
        queries: Collection[str],
        embedder: Embedder | None,
    ) -> Mapping[str, Retriever]:
        """Retrievers by name; see `retriever`."""
        return {name_of(spec): self.retriever(spec, passages, queries, embedder) for spec in specs}

    def retriever(
        self, spec: RetrieverConfig, passages: Passages, queries: Collection[str], embedder: Embedder | None
    ) -> Retriever:
        """A retriever over `passages`; its index is built or opened at first search. Closed with the workshop.

        Args:
            queries: the ids of all questions that it may be asked.
            embedder: by which those questions were embedded.
        """
        context = RetrieverContext(
            passages=passages,
            queries=queries,
            embed=_no_embedder if embedder is None else embedder.embed,
            embedder="" if embedder is None else embedder.identity,
            dims=0 if embedder is None else embedder.dims,
            places=self.places,
            progress=self.building,
            retriever=lambda other: self.retriever(other, passages, queries, embedder),
        )
        return self._own(retrievers.REGISTRY.of(spec)(spec, context))

    def judge(self, spec: AdapterConfig, grade: Prompt, order: Prompt) -> Judge:
        """A judge that is asked by these prompts, where it is a model."""
        context = JudgeContext(
            llm=self.llm, grade_prompt=grade, order_prompt=order, judge=lambda other: self.judge(other, grade, order)
        )
        return judges.REGISTRY.of(spec)(spec, context)

    def building(self, what: str, done: int, total: int) -> None:
        """Tell the listener how far something is that is made once."""
        self._hear(Building(what, done, total))

    def close(self) -> None:
        """Close what is open; a closed workshop is not used again."""
        if "llm" in self.__dict__:
            self.loop.run(self.llm.close())
        if "loop" in self.__dict__:
            self.loop.close()
        while self._made:
            self._made.pop().close()

    def _own(self, part: Owned) -> Owned:
        self._made.append(part)
        return part

    def _waiting(self, what: str, done: int, total: int) -> None:
        self._hear(Waiting(what, done, total))


def judge_prompts(grade: str, order: str) -> tuple[Prompt, Prompt]:
    """The prompts by which a judge grades and orders, by name or path.

    Raises:
        NotFoundError, ConfigError: there is none, or it lacks a part.
    """
    return load_prompt(grade, "grade"), load_prompt(order, "order")


def _no_embedder(_: Sequence[str]) -> Vectors:
    raise PrerequisiteError("no embedder is configured", remedy="set embed.embedder")
