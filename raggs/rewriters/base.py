"""What a rewriter is: a question in, what should be searched for out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from raggs.artifacts import Query
from raggs.llm import LLM


@dataclass(frozen=True)
class RewriterContext:
    """What a rewriter may use."""

    llm: LLM


class Rewriter(Protocol):
    """Restates a question's information need. Built as ``cls(config, context)``."""

    def causes(self) -> dict[str, Any]:
        """All that can change a rewrite: settings, code version, prompt, model."""
        ...

    async def rewrite(self, query: Query, text: str, language: str) -> str:
        """The core of `text` (already cleaned), in `language`; never empty.

        Raises:
            ProviderError: a language model was needed and gave no usable answer.
        """
        ...
