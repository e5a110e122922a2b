"""The parts that a run and its workers make in the same way, each when it is first asked for.

What they do not share is who may ask: a worker spends nothing, and knows questions, passages and the embedder as the
client gave them.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property

from raggs.base.artifacts import Query
from raggs.config.models import RunConfig
from raggs.parts.workshop import Embedder, Passages, Retriever, Rewriter, Workshop


class ConfiguredParts(ABC):
    """Rewriter, retrievers and the event loop of a configuration.

    Args:
        config: the configuration.
        workshop: makes the parts; closed by whoever closes these.
    """

    def __init__(self, config: RunConfig, workshop: Workshop) -> None:
        self.config = config
        self.workshop = workshop

    @property
    @abstractmethod
    def queries(self) -> Mapping[str, Query]:
        """All questions by id."""

    @property
    @abstractmethod
    def passages(self) -> Passages:
        """The corpus."""

    @property
    @abstractmethod
    def embedder(self) -> Embedder | None:
        """The embedder, where one is configured."""

    @cached_property
    def rewriter(self) -> Rewriter:
        """The rewriter of questions."""
        return self.workshop.rewriter(self.config.embed.rewrite)

    @cached_property
    def retrievers(self) -> Mapping[str, Retriever]:
        """The retrievers by name."""
        specs = self.config.retrieve.searched
        return self.workshop.retrievers(specs, self.passages, self.queries.keys(), self.embedder)

    @cached_property
    def deeper(self) -> Mapping[str, Retriever]:
        """Those that search once more, and deeper, for questions that are escalated; by the same names."""
        specs = self.config.retrieve.again
        return self.workshop.retrievers(specs, self.passages, self.queries.keys(), self.embedder)

    @property
    def loop(self) -> asyncio.Runner:
        """The event loop of the work."""
        return self.workshop.loop

    def affords(self) -> float:
        """How many more calls the budget is likely to pay for."""
        return self.workshop.affords()

    @property
    def concurrency(self) -> int:
        """Calls that may be on their way at once."""
        return self.config.llm.concurrency
