"""A language-model layer that talks to a server on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from raggs.llm import LLM, BudgetSettings, ChatRequest, LLMSettings, Price
from support.llm_server import LLMServer

MODEL = "openai/test-model"
PRICE = Price(input=1.0, output=10.0)


def check(answer: dict[str, Any]) -> int:
    if type(answer.get("grade")) is not int or not 1 <= answer["grade"] <= 5:
        raise ValueError('"grade" must be a whole number from 1 to 5')
    return answer["grade"]


def question(text: str = "what?", passage: str = "this", **changes: Any) -> ChatRequest[int]:
    """A request for a grade, in the form that the test server reads."""
    content = f"<data-00>\n{text}\n</data-00>\n\n<data-11>\n{passage}\n</data-11>"
    defaults: dict[str, Any] = {
        "model": MODEL,
        "messages": [{"role": "user", "content": content}],
        "schema": {"type": "object", "properties": {"grade": {"type": "integer"}}},
        "schema_name": "grade",
        "check": check,
    }
    return ChatRequest(**{**defaults, **changes})


async def until(holds: Callable[[], bool], limit_s: float = 60.0) -> None:
    """Wait for what a busy machine may bring late."""
    async with asyncio.timeout(limit_s):
        while not holds():
            await asyncio.sleep(0.005)


class Bench:
    """A server and layers that ask it; `run` runs one coroutine and closes the layer."""

    def __init__(self, server: LLMServer, folder: Path) -> None:
        self.server = server
        self.folder = folder

    def llm(
        self, *, max_usd: float | None = 5.0, max_calls: int | None = 1000, cached: bool = True, **settings: Any
    ) -> LLM:
        defaults = {
            "api_base": self.server.url,
            "prices": {MODEL: PRICE},
            "requests_per_minute": None,
            "timeout_s": 20.0,
            "backoff_s": 0.001,
        }
        budget = BudgetSettings(max_usd=max_usd, max_calls=max_calls)
        return LLM(LLMSettings(**{**defaults, **settings}), budget, self.folder / "llm" if cached else None)

    def run(self, work: Callable[[LLM], Awaitable[Any]], llm: LLM | None = None, **settings: Any) -> Any:
        used = llm or self.llm(**settings)

        async def main() -> Any:
            try:
                return await work(used)
            finally:
                await used.close()

        return asyncio.run(main())
