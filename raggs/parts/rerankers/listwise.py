"""A language model that puts passages in order, a window at a time: many passages do not fit into one question.

Windows slide from the bottom of the list to its top and overlap, so that the best passages are carried upwards: after
one pass the first `window - step` places are the best that the model would choose, those further down are only better
than they were. Source: Sun et al., Is ChatGPT Good at Search? (2023), section 3.2, whose window is 20 and step 10.

An order need not be whole to be of use: what it names twice counts where it stands first, what was not shown is passed
over, and what it does not name comes last, in the order in which it was. A window whose question fails stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from raggs.base.errors import ProviderError
from raggs.base.settings import PromptName
from raggs.base.text import shorten
from raggs.base.types import JsonObject, as_list
from raggs.llm import Took
from raggs.parts.rerankers.base import Outlay, Reranked, Reranking
from raggs.parts.rerankers.chat import ChatConfig, ChatReranker
from raggs.prompts import PromptUse
from raggs.prompts.labels import labelled, labels_for, order_schema

if TYPE_CHECKING:
    from raggs.base.artifacts import Passage
    from raggs.llm import Reply

LABEL_TOKENS = 8


class Order(NamedTuple):
    """Places in the order of presentation, best first; `repaired`: whether the answer did not name each once."""

    places: tuple[int, ...]
    repaired: bool


class ListwiseReranker(ChatReranker):
    """A language model that orders windows of passages, from the bottom of the list upwards."""

    INDEPENDENT: ClassVar[bool] = False
    TASK: ClassVar[PromptUse] = "rerank"

    class Config(ChatConfig):
        type: Literal["listwise"] = "listwise"
        prompt: PromptName = Field("rerank@1", description="a prompt's name, or the path of a Markdown file")
        window: int = Field(20, ge=2, le=200, description="passages in one question")
        step: int | None = Field(
            None, ge=1, description="passages by which the next window stands higher; null: half of `window`"
        )
        passes: int = Field(1, ge=1, le=10, description="how often the windows go from the bottom to the top")

        @model_validator(mode="after")
        def _no_gap(self) -> Self:
            if (self.step or 0) > self.window:
                raise ValueError("step must be at most window, or passages between two windows are never read")
            return self

    config: Config

    def outlay(self, model: str, candidates: int, query: int, passage: int) -> Outlay:
        found = [end - start for start, end in self._windows(candidates)]
        return self._outlay(len(found), len(found) * query + sum(found) * passage, _answer(max(found, default=0)))

    async def rerank(self, query: str, language: str, passages: Sequence[Passage]) -> Reranking:
        order, took, repaired = list(passages), Took(), 0
        problems: list[str] = []
        for start, end in (asked := self._windows(len(passages))):
            reply = await self._window(query, language, order[start:end])
            took += reply.took
            if reply.value is None:
                problems.append(f"passages {start + 1} to {end} stay in their order: {reply.error}")
                continue
            repaired += reply.value.repaired
            order[start:end] = [order[start + place] for place in reply.value.places]
        self._tell(query, problems, len(asked))
        return Reranking(
            tuple(Reranked(passage.doc_id, 1 / place) for place, passage in enumerate(order, start=1)),
            tokens=took.tokens,
            ms=took.ms if asked else None,
            calls=took.calls,
            usd=took.usd,
            repaired=repaired,
            problems=tuple(problems),
        )

    def _windows(self, count: int) -> list[tuple[int, int]]:
        size = self.config.window
        return list(windows(count, size, self.config.step or size // 2)) * self.config.passes

    async def _window(self, query: str, language: str, passages: Sequence[Passage]) -> Reply[Order]:
        labels, guard = labels_for(len(passages)), self.context.llm.guard
        shown = labelled([passage.content for passage in passages], guard)
        return await self._ask(
            language,
            {"query": guard(query), "passages": shown},
            order_schema(labels),
            partial(read_order, labels=labels),
            _answer(len(labels)),
        )

    def _tell(self, query: str, problems: Sequence[str], asked: int) -> None:
        """Name what failed.

        Raises:
            ProviderError: nothing else did.
        """
        about = f"{self.config.model} on the query {shorten(query, 40)!r}"
        if problems and len(problems) == asked:
            raise ProviderError(f"{about} gave no order: {problems[0]}", remedy="run again: what was paid is cached")
        for problem in problems:
            self.context.tell(f"{about}: {problem}")


def windows(count: int, size: int, step: int) -> Iterator[tuple[int, int]]:
    """First and past the last place of each window, from the bottom up; none where there is nothing to order."""
    end = count
    while count > 1:
        start = max(0, end - size)
        yield start, end
        if start == 0:
            return
        end -= step


def read_order(answer: JsonObject, labels: Sequence[str]) -> Order:
    """The order of an answer, made whole.

    Raises:
        ValueError: it names none of the labels.
    """
    named, places = as_list(answer.get("order")), {label: place for place, label in enumerate(labels)}
    found = dict.fromkeys(places[label] for label in named if isinstance(label, str) and label in places)
    if not found:
        raise ValueError(f'"order" must hold each of the labels {", ".join(labels)} exactly once')
    missing = [place for place in places.values() if place not in found]
    return Order((*found, *missing), len(named) != len(labels) or bool(missing))


def _answer(labels: int) -> int:
    """Likely tokens of an order."""
    return LABEL_TOKENS * (labels + 2)
