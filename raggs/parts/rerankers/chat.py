"""Rerankers that prompt a language model by chat: listwise and pointwise.

The prompt contains the query and the text of passages, each between markers that guard against prompt injection. The
prompt contains no identifiers and no scores.

Listwise: the model orders one window of passages per call, because many passages do not fit into one prompt. Windows
slide from the end of the list to its start and overlap, so that the best passages move up. After one pass, the first
`window - step` positions are the best according to the model; later positions are only partly sorted. Source: Sun et
al., Is ChatGPT Good at Search? (2023), section 3.2, with window 20 and step 10.

An incomplete order is used, too. Only the first occurrence of a label counts, and unknown labels are ignored. Omitted
passages come last, in their earlier order. If the call for a window fails, its passages keep their order. If the calls
for all windows fail, raggs raises an error.

Pointwise: the model rates the relevance of each passage, as a whole number from 0 to 100. A rating depends only on the
query and the passage, so ratings paid for at 200 candidates are reused at 50. Ties keep the order of the candidates.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self, TypeVar

from pydantic import Field, model_validator

from raggs.base.errors import ProviderError
from raggs.base.settings import Causes, PromptName
from raggs.base.text import plural, shorten
from raggs.base.types import JsonObject, as_list
from raggs.llm import CallUsage, ChatRequest, Parameters
from raggs.parts.rerankers import RerankedPassage, Reranker, RerankerConfig, RerankerContext, Reranking
from raggs.prompts import Prompt, PromptUse, label_texts, labels_for, load_prompt, order_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from raggs.base.artifacts import Passage
    from raggs.llm import Reply

T = TypeVar("T")


class ChatConfig(RerankerConfig):
    """Settings common to chat rerankers; each task has its own default `prompt`."""

    model: str = Field(min_length=1, description='provider and model, for example "openai/gpt-5-mini"')
    prompt: PromptName = Field(description="name of a prompt, or path of a Markdown file")
    parameters: Parameters = Field(default_factory=dict, description="call parameters; they override llm.parameters")


class ChatReranker(Reranker):
    """A reranker that prompts a model by chat. `TASK`: use of its prompt, and name of its calls in the ledger."""

    PAID: ClassVar[bool] = True
    TASK: ClassVar[PromptUse]
    Config: ClassVar[type[ChatConfig]]

    config: ChatConfig

    def __init__(self, config: ChatConfig, context: RerankerContext) -> None:
        super().__init__(config, context)
        self._prompt: Prompt = load_prompt(config.prompt, self.TASK)

    @property
    def models(self) -> tuple[str, ...]:
        return (self.config.model,)

    def causes(self) -> Causes:
        """Return everything that affects an order: model, parameters, text of the prompt, settings of the model."""
        llm = self.context.llm.settings.causes_for(self.models)
        return {**self.own_causes(), "prompt": self._prompt.sha256, "llm": llm}

    def check(self) -> None:
        """Check before the first call that the budget can be enforced.

        Raises:
            ConfigError: the model's price is unknown although a budget in USD is set.
        """
        self.context.llm.require_price(self.config.model)

    async def _ask(
        self,
        language: str,
        fields: Mapping[str, str],
        schema: Mapping[str, object],
        check: Callable[[JsonObject], T],
        tokens: int,
    ) -> Reply[T]:
        """Return the checked answer of the model.

        `fields` are the guarded values of the placeholders, and `tokens` is the likely output length.
        """
        return await self.context.llm.ask(
            ChatRequest(
                model=self.config.model,
                messages=self._prompt.render(language, **fields),
                schema=schema,
                schema_name=self.TASK,
                check=check,
                max_output_tokens=tokens,
                parameters=self.config.parameters,
            )
        )


LABEL_TOKENS = 8


class RerankOrder(NamedTuple):
    """Positions in the order of presentation, best first; `repaired`: labels were omitted, repeated or invented."""

    places: tuple[int, ...]
    repaired: bool


class ListwiseReranker(ChatReranker):
    """A language model that orders windows of passages, from the end of the list to its start."""

    INDEPENDENT: ClassVar[bool] = False
    TASK: ClassVar[PromptUse] = "rerank"

    class Config(ChatConfig):
        type: Literal["listwise"] = "listwise"
        prompt: PromptName = Field("rerank@1", description="name of a prompt, or path of a Markdown file")
        window: int = Field(20, ge=2, le=200, description="passages per call")
        step: int | None = Field(
            None, ge=1, description="positions by which the window moves up after each call; null: half of `window`"
        )
        passes: int = Field(1, ge=1, le=10, description="number of passes from the end of the list to its start")

        @model_validator(mode="after")
        def _no_gap(self) -> Self:
            if (self.step or 0) > self.window:
                raise ValueError("step must be at most window, otherwise passages between two windows are skipped")
            return self

    config: Config

    async def rerank(self, query: str, language: str, passages: Sequence[Passage]) -> Reranking:
        order, took, repaired = list(passages), CallUsage(), 0
        problems: list[str] = []
        for start, end in (asked := self._windows(len(passages))):
            reply = await self._window(query, language, order[start:end])
            took += reply.took
            if reply.value is None:
                problems.append(f"passages {start + 1} to {end} keep their order: {reply.error}")
                continue
            repaired += reply.value.repaired
            order[start:end] = [order[start + place] for place in reply.value.places]
        self._tell(query, problems, len(asked))
        return Reranking(
            tuple(RerankedPassage(passage.doc_id, 1 / place) for place, passage in enumerate(order, start=1)),
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

    async def _window(self, query: str, language: str, passages: Sequence[Passage]) -> Reply[RerankOrder]:
        labels, guard = labels_for(len(passages)), self.context.llm.guard
        shown = label_texts([passage.content for passage in passages], guard)
        return await self._ask(
            language,
            {"query": guard(query), "passages": shown},
            order_schema(labels),
            partial(read_order, labels=labels),
            _answer(len(labels)),
        )

    def _tell(self, query: str, problems: Sequence[str], asked: int) -> None:
        """Report the windows that failed.

        Raises:
            ProviderError: all windows failed.
        """
        about = f"{self.config.model}, query {shorten(query, 40)!r}"
        if problems and len(problems) == asked:
            raise ProviderError(f"{about}: no order: {problems[0]}", remedy="run again; paid answers are cached")
        for problem in problems:
            self.context.tell(f"{about}: {problem}")


def windows(count: int, size: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield start and end (exclusive) of each window, from the end of the list; nothing for fewer than two passages."""
    end = count
    while count > 1:
        start = max(0, end - size)
        yield start, end
        if start == 0:
            return
        end -= step


def read_order(answer: JsonObject, labels: Sequence[str]) -> RerankOrder:
    """Return the order of an answer, completed with the omitted labels.

    Raises:
        ValueError: the answer contains none of the labels.
    """
    named, places = as_list(answer.get("order")), {label: place for place, label in enumerate(labels)}
    found = dict.fromkeys(places[label] for label in named if isinstance(label, str) and label in places)
    if not found:
        raise ValueError(f'"order" must hold each of the labels {", ".join(labels)} exactly once')
    missing = [place for place in places.values() if place not in found]
    return RerankOrder((*found, *missing), len(named) != len(labels) or bool(missing))


def _answer(labels: int) -> int:
    """Return the likely number of output tokens of an order."""
    return LABEL_TOKENS * (labels + 2)


MAX_RELEVANCE = 100
ANSWER_TOKENS = 12
SCHEMA = {
    "type": "object",
    "properties": {"relevance": {"type": "integer"}},
    "required": ["relevance"],
    "additionalProperties": False,
}


class PointwiseReranker(ChatReranker):
    """A language model that rates the relevance of each passage from 0 to 100; each pair is paid for once."""

    INDEPENDENT: ClassVar[bool] = True
    TASK: ClassVar[PromptUse] = "relevance"

    class Config(ChatConfig):
        type: Literal["pointwise"] = "pointwise"
        prompt: PromptName = Field("relevance@1", description="name of a prompt, or path of a Markdown file")

    config: Config

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
        took = sum((reply.took for reply in replies), CallUsage())
        ms = self._duration(replies) if passages else None
        return Reranking.of(passages, scores, tokens=took.tokens, ms=ms, calls=took.calls, usd=took.usd)

    async def _relevance(self, query: str, language: str, passage: Passage) -> Reply[int]:
        guard = self.context.llm.guard
        fields = {"query": guard(query), "passage": guard(passage.content)}
        return await self._ask(language, fields, SCHEMA, check_relevance, ANSWER_TOKENS)

    def _duration(self, replies: Iterable[Reply[int]]) -> float | None:
        """Return how long the calls take at the configured concurrency, by simulation; None if a call's duration is
        unknown.
        """
        settings = self.context.llm.settings
        times = [reply.took.ms for reply in replies]
        known = [ms for ms in times if ms is not None]
        slots = settings.of(self.config.model).concurrency or settings.concurrency
        return side_by_side(known, slots) if len(known) == len(times) else None

    def _failed(self, query: str, replies: Sequence[Reply[int]]) -> ProviderError:
        errors = [reply.error for reply in replies if reply.value is None]
        about = f"{len(errors)} of {plural(len(replies), 'passage')} for the query {shorten(query, 40)!r}"
        told = f"{self.config.model} returned no relevance for {about}: {errors[0]}"
        return ProviderError(told, remedy="run again; paid answers are cached")


def check_relevance(answer: JsonObject) -> int:
    """Return the rating in an answer.

    Raises:
        ValueError: the rating is not a whole number from 0 to 100.
    """
    found = answer.get("relevance")
    if type(found) is not int or not 0 <= found <= MAX_RELEVANCE:  # isinstance would accept a bool
        raise ValueError(f'"relevance" must be a whole number from 0 to {MAX_RELEVANCE}')
    return found


def side_by_side(times: Sequence[float], slots: int) -> float:
    """Return the total duration of calls that start in sequence, each on the first of `slots` parallel slots to be
    free.
    """
    ends = [0.0] * min(slots, len(times))
    for time in times:
        heapq.heapreplace(ends, ends[0] + time)
    return max(ends, default=0.0)
