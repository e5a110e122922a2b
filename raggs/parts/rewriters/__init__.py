"""Rewriters: base class and registry. A rewriter converts a query to the text that is searched for.

A rewriter can also expand the query: it adds texts that are searched with it (see `raggs.parts.rewriters.expansion`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.registry import Registry
from raggs.base.settings import Causes
from raggs.llm import LLM
from raggs.prompts import PromptUse


@dataclass(frozen=True)
class RewriterContext:
    """Resources for rewriters."""

    llm: LLM


class Expansion(NamedTuple):
    """Texts that are searched together with a query: other wordings of it, and passages that answer it."""

    variants: tuple[str, ...] = ()
    hypothetical: tuple[str, ...] = ()


class Rewriter(Adapter, ABC):
    """Restates the information need of a query. Created as ``cls(config, context)``."""

    # whether the rewriter needs no context and is deterministic, so that an audit can repeat its rewrites
    BY_RULE: ClassVar[bool] = False
    TASK: ClassVar[PromptUse] = "rewrite"  # task of its calls in the ledger
    READS_HISTORY: ClassVar[bool] = False  # whether it reads the earlier turns of a conversation

    def __init__(self, config: AdapterConfig, context: RewriterContext | None = None) -> None:
        self.config = config

    @property
    def models(self) -> tuple[str, ...]:
        """Language models, each with at most one request per query; empty if there are none."""
        return ()

    def placeholders(self, text: str) -> tuple[str, ...]:
        """Return as many texts as `expand` adds to the query `text`, of their usual length, for cost estimates."""
        return ()

    @property
    def repeats(self) -> int:
        """Number of times that the text for lexical retrievers contains the query, if the query is expanded."""
        return 1

    def causes(self) -> Causes:
        """Return everything that affects a rewrite: settings, code version, prompt, model."""
        return self.own_causes()

    @abstractmethod
    async def rewrite(self, query: Query, text: str, language: str) -> str:
        """Return the information need in `text` (the query on one line, in valid Unicode), in `language`; never empty.

        Raises:
            ProviderError: a language model returned no usable answer.
        """

    async def expand(self, query: Query, text: str, language: str) -> Expansion:
        """Return texts to search for together with `text`, the rewritten query.

        Raises:
            ProviderError: a language model returned no usable answer.
        """
        return Expansion()


REGISTRY: Registry[Rewriter] = Registry(
    "rewriter",
    "rewriters",
    "raggs.parts.rewriters:Rewriter",
    {
        "conversation": "raggs.parts.rewriters.llm:ConversationRewriter",
        "clean": "raggs.parts.rewriters.clean:CleanRewriter",
        "hyde": "raggs.parts.rewriters.expansion:HydeRewriter",
        "llm": "raggs.parts.rewriters.llm:LlmRewriter",
        "multi_query": "raggs.parts.rewriters.expansion:MultiQueryRewriter",
        "none": "raggs.parts.rewriters:NoRewriter",
    },
)


class NoRewriter(Rewriter):
    """Does not rewrite: raggs searches for the original query."""

    BY_RULE = True

    class Config(AdapterConfig):
        type: Literal["none"] = "none"

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        """Return the text unchanged."""
        return text
