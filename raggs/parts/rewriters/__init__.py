"""Rewriters by name: one file and one line each (see `Rewriter`).

What a rewriter is: a question in, what should be searched for out.

The rewriter that rewrites nothing.
"""

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
    """What a rewriter may use."""

    llm: LLM


class Rewriter(Adapter, ABC):
    """Restates a question's information need. Built as ``cls(config, context)``."""

    BY_RULE: ClassVar[bool] = False  # whether it needs no context and gives the same again, so that an audit repeats it

    def __init__(self, config: AdapterConfig, context: RewriterContext | None = None) -> None:
        self.config = config

    @property
    def models(self) -> tuple[str, ...]:
        """The language models of which each rewrite asks one call; empty where nobody is paid."""
        return ()

    def causes(self) -> Causes:
        """All that can change a rewrite: settings, code version, prompt, model."""
        return self.own_causes()

    @abstractmethod
    async def rewrite(self, query: Query, text: str, language: str) -> str:
        """The core of `text` (already cleaned), in `language`; never empty.

        Raises:
            ProviderError: a language model was needed and gave no usable answer.
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
    """Search for the question as it stands."""

    BY_RULE = True

    class Config(AdapterConfig):
        type: Literal["none"] = "none"

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        """The question as it is."""
        return text
