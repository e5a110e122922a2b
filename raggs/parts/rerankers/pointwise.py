"""A language model that says of each passage by itself how relevant it is, as a whole number from 0 to 100.

A number belongs to one question and one passage, so what was paid for at 200 candidates is known at 50. Passages with
the same number keep the order in which they came.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from raggs.base.errors import ProviderError
from raggs.base.settings import PromptName
from raggs.base.text import plural, shorten
from raggs.base.types import JsonObject
from raggs.llm import Took
from raggs.parts.rerankers.base import Outlay, Reranking
from raggs.parts.rerankers.chat import ChatConfig, ChatReranker
from raggs.prompts import PromptUse

if TYPE_CHECKING:
    from raggs.base.artifacts import Passage
    from raggs.llm import Reply

MOST = 100
ANSWER_TOKENS = 12
SCHEMA = {
    "type": "object",
    "properties": {"relevance": {"type": "integer"}},
    "required": ["relevance"],
    "additionalProperties": False,
}


class PointwiseReranker(ChatReranker):
    """A language model that says of each passage how relevant it is, from 0 to 100; each is paid for once."""

    INDEPENDENT: ClassVar[bool] = True
    TASK: ClassVar[PromptUse] = "relevance"

    class Config(ChatConfig):
        type: Literal["pointwise"] = "pointwise"
        prompt: PromptName = Field("relevance@1", description="a prompt's name, or the path of a Markdown file")

    config: Config

    def outlay(self, model: str, candidates: int, query: int, passage: int) -> Outlay:
        return self._outlay(candidates, candidates * (query + passage), ANSWER_TOKENS)

    async def rerank(self, query: str, language: str, passages: Sequence[Passage]) -> Reranking:
        asked = [asyncio.ensure_future(self._relevance(query, language, passage)) for passage in passages]
        try:
            replies = await asyncio.gather(*asked)
        finally:
            for each in asked:
                each.cancel()
        scores = [float(reply.value) for reply in replies if reply.value is not None]
        if len(scores) < len(passages):
            raise self._failed(query, replies)
        took = sum((reply.took for reply in replies), Took())
        ms = self._duration(replies) if passages else None
        return Reranking.of(passages, scores, tokens=took.tokens, ms=ms, calls=took.calls, usd=took.usd)

    async def _relevance(self, query: str, language: str, passage: Passage) -> Reply[int]:
        guard = self.context.llm.guard
        fields = {"query": guard(query), "passage": guard(passage.content)}
        return await self._ask(language, fields, SCHEMA, check_relevance, ANSWER_TOKENS)

    def _duration(self, replies: Iterable[Reply[int]]) -> float | None:
        """From the first question to the last answer, as many at a time as the settings allow; None if not known."""
        settings = self.context.llm.settings
        times = [reply.took.ms for reply in replies]
        known = [ms for ms in times if ms is not None]
        slots = settings.of(self.config.model).concurrency or settings.concurrency
        return side_by_side(known, slots) if len(known) == len(times) else None

    def _failed(self, query: str, replies: Sequence[Reply[int]]) -> ProviderError:
        errors = [reply.error for reply in replies if reply.value is None]
        about = f"{len(errors)} of {plural(len(replies), 'passage')} for the query {shorten(query, 40)!r}"
        told = f"{self.config.model} did not say how relevant {about} are: {errors[0]}"
        return ProviderError(told, remedy="run again: what was paid is cached")


def check_relevance(answer: JsonObject) -> int:
    """The number of an answer.

    Raises:
        ValueError: it is no whole number from 0 to 100.
    """
    found = answer.get("relevance")
    if type(found) is not int or not 0 <= found <= MOST:  # bool is an int to isinstance
        raise ValueError(f'"relevance" must be a whole number from 0 to {MOST}')
    return found


def side_by_side(times: Sequence[float], slots: int) -> float:
    """How long calls of such times take in all, `slots` at a time, each beginning when one before it has ended."""
    ends = [0.0] * min(slots, len(times))
    for time in times:
        heapq.heapreplace(ends, ends[0] + time)
    return max(ends, default=0.0)
