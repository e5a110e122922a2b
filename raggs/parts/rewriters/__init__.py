"""Rewriters: base class and registry. A rewriter converts a query to the text that is searched for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.artifacts import Query
from raggs.base.registry import Registry
from raggs.base.settings import Causes
from raggs.llm import LLM


@dataclass(frozen=True)
class RewriterContext:
    """Resources for rewriters."""

    llm: LLM


class Rewriter(Adapter, ABC):
    """Restates the information need of a query. Built as ``cls(config, context)``."""

    # whether the rewriter needs no context and is deterministic, so that an audit can repeat its rewrites
    BY_RULE: ClassVar[bool] = False

    def __init__(self, config: AdapterConfig, context: RewriterContext | None = None) -> None:
        self.config = config

    @property
    def models(self) -> tuple[str, ...]:
        """Language models that are called once per rewrite; empty if there are none."""
        return ()

    def causes(self) -> Causes:
        """Return everything that affects a rewrite: settings, code version, prompt, model."""
        return self.own_causes()

    @abstractmethod
    async def rewrite(self, query: Query, text: str, language: str) -> str:
        """Return the information need in `text` (the cleaned query), in `language`; never empty.

        Raises:
            ProviderError: a language model returned no usable answer.
        """


REGISTRY: Registry[Rewriter] = Registry(
    "rewriter",
    "rewriters",
    "raggs.parts.rewriters:Rewriter",
    {
        "clean": "raggs.parts.rewriters.clean:CleanRewriter",
        "llm": "raggs.parts.rewriters.llm:LlmRewriter",
        "none": "raggs.parts.rewriters:NoRewriter",
    },
)


class NoRewriter(Rewriter):
    """No rewriting: search for the original query."""

    BY_RULE = True

    class Config(AdapterConfig):
        type: Literal["none"] = "none"

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        """Return the text unchanged."""
        return text
