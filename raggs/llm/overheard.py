"""Language models that are asked as before, and of which somebody wants to know what their answers took.

Whoever wants to know what one part of the work costs gives that part these models. What a kept answer took when it was
paid for counts like any other, so that the sum does not depend on what was asked before.
"""

from __future__ import annotations

from typing import TypeVar

from raggs.llm.client import LLM
from raggs.llm.messages import ChatRequest, Reply, Took
from raggs.llm.settings import Price

T = TypeVar("T")


class Overheard(LLM):
    """See the module.

    Args:
        llm: who is asked; closed by its owner.

    Attributes:
        took: what the answers took so far.
    """

    def __init__(self, llm: LLM) -> None:
        self.settings = llm.settings
        self.took = Took()
        self._llm = llm

    async def ask(self, request: ChatRequest[T]) -> Reply[T]:
        """As the models that are asked."""
        reply = await self._llm.ask(request)
        self.took += reply.took
        return reply

    def guard(self, content: str) -> str:
        """As the models that are asked."""
        return self._llm.guard(content)

    def price(self, model: str) -> Price | None:
        """As the models that are asked."""
        return self._llm.price(model)

    def require_price(self, model: str) -> None:
        """As the models that are asked."""
        self._llm.require_price(model)

    def require_batches(self, model: str) -> None:
        """As the models that are asked."""
        self._llm.require_batches(model)
