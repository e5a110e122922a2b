"""The one door to language models."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from raggs.llm.messages import Reply, Request, Usage
from raggs.llm.settings import BudgetSettings, LLMSettings, Price

T = TypeVar("T")


class LLM:
    """Asks language models."""

    def __init__(self, settings: LLMSettings, budget: BudgetSettings, cache_dir: Path | None) -> None:
        self.settings = settings

    async def ask(self, request: Request[T]) -> Reply[T]:
        """Ask."""
        raise NotImplementedError

    @property
    def usage(self) -> Usage:
        """What was used so far."""
        return Usage()

    def fence(self, content: str) -> str:
        """`content` between delimiters that its author cannot guess."""
        raise NotImplementedError

    def price(self, model: str) -> Price | None:
        """What `model` costs, from the settings or litellm's list; None where neither knows it."""
        raise NotImplementedError

    def estimate_tokens(self, text: str) -> int:
        """A conservative estimate of the tokens in `text`."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close connections and the cache."""
