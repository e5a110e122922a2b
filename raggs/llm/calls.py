"""What can be asked of a provider, and what it answers, as values that know their size and how to be sent.

Under which keys the cache holds an answer.

A model is its provider's name, its own and, where the user says that two servers differ, its `model_id`. Where it is
asked is no part of it: the same model behind another port gives the same answers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Generic, TypeVar

from raggs.base.hashing import hash_value
from raggs.base.types import as_list, as_object, as_text
from raggs.llm import providers
from raggs.llm.messages import Answerer, Message, most_written
from raggs.llm.prices import HIDDEN, estimate_tokens, provider_of, reasons
from raggs.llm.settings import LLMSettings, Price

MAX_CALL_TOKENS = 1_000_000_000  # of one call
SEARCH_PASSAGES, PASSAGE_TOKENS = 100, 500  # of a search; of a passage with its query, until it counts twice
NO_LIMIT: Mapping[str, int] = {}
LIMITS = ("max_completion_tokens", "max_tokens")  # how parameters name the longest answer


@dataclass(frozen=True)
class ProviderResponse:
    """What came back. Tokens are None where the server did not count; `headers` go by their lower-case names; `by`:
    who answered, as the answer states it."""

    prompt_tokens: int | None
    completion_tokens: int | None
    headers: Mapping[str, str]
    by: Answerer | None = field(default=None, kw_only=True, compare=False)

    @property
    def searches(self) -> int:
        """Units by which a reranker is charged for."""
        return 0

    @property
    def cut_off(self) -> bool:
        """Whether it ended at the limit of its length."""
        return False

    @property
    def prefix(self) -> CachedPrefix:
        """What the provider remembered of the prompt."""
        return NEW


@dataclass(frozen=True)
class CachedPrefix:
    """Tokens of a prompt that a provider read from its cache, and others that it wrote into it, as it says."""

    cached: int = 0
    written: int = 0


NEW = CachedPrefix()


@dataclass(frozen=True)
class Completion(ProviderResponse):
    """What a model said. `finish`: "stop", "length" (cut off), "content_filter" or None."""

    content: str
    finish: str | None
    refusal: str | None
    remembered: CachedPrefix = NEW

    @property
    def cut_off(self) -> bool:
        return self.finish == "length"

    @property
    def prefix(self) -> CachedPrefix:
        return self.remembered


@dataclass(frozen=True)
class Embeddings(ProviderResponse):
    """What should be one vector for each text, as it came: neither number, order nor values are checked yet."""

    data: Sequence[object]


@dataclass(frozen=True)
class Relevances(ProviderResponse):
    """What should be one score for each passage, as it came, unchecked. `units`: searches, told or estimated."""

    data: Sequence[object]
    units: int

    @property
    def searches(self) -> int:
        return self.units


A = TypeVar("A", bound=ProviderResponse)


@dataclass(frozen=True)
class Call(ABC, Generic[A]):
    """One call. `parameters` are the model's own; `KIND` is how the model is asked."""

    KIND: ClassVar[providers.CallKind]

    model: str
    parameters: Mapping[str, object]

    @property
    @abstractmethod
    def prompt_tokens(self) -> int:
        """An estimate of what is sent."""

    @abstractmethod
    def answer_tokens(self, longest: int) -> int:
        """What to reserve for the answer, where the longest one so far had `longest` tokens."""

    @property
    def own_limit(self) -> int:
        """The longest answer that its parameters allow, in tokens; 0 where they say nothing."""
        return 0

    @property
    def own_limit_name(self) -> str:
        """The parameter that says so."""
        return ""

    def likely_tokens(self, longest: int) -> int:
        """What the answer is likely to have, where the longest one so far had `longest` tokens."""
        return self.answer_tokens(longest)

    @property
    def searches(self) -> int:
        """An estimate of the units by which a reranker is charged for."""
        return 0

    @property
    def written_tokens(self) -> int:
        """Tokens that the provider may write into its cache, at most."""
        return 0

    def most_usd(self, price: Price, answer_tokens: int) -> float:
        """What it costs at most with an answer of so many tokens."""
        return price.most_usd(self.prompt_tokens, answer_tokens, self.searches, self.written_tokens)

    def prepare(self, settings: LLMSettings) -> None:
        """Load what `send` needs, so that the time of the first call does not hold it."""
        providers.prepare(self.KIND, self.model, self.parameters, settings)

    @abstractmethod
    async def send(self, settings: LLMSettings, *, formatted: bool, limit: Mapping[str, int] = NO_LIMIT) -> A:
        """Ask once; tokens are told or estimated. `limit`: of the answer, over what its parameters say.

        Raises:
            Fault: the call failed.
        """


@dataclass(frozen=True)
class ChatCall(Call[Completion]):
    """A conversation. `expected_tokens`: the likely length of the answer, for the budget; `key`: of the answer in the
    cache, for batches."""

    KIND: ClassVar[providers.CallKind] = "chat"

    messages: Sequence[Message]
    response_format: Mapping[str, object]
    expected_tokens: int
    key: str = ""

    @cached_property
    def prompt_tokens(self) -> int:
        """Of all messages and of the form of the answer, estimated."""
        contents = sum(estimate_tokens(message["content"]) for message in self.messages)
        return contents + estimate_tokens(str(self.response_format))

    @cached_property
    def written_tokens(self) -> int:
        """See `Call.written_tokens`."""
        return most_written(self.model, self.messages, self.prompt_tokens)

    @property
    def own_limit_name(self) -> str:
        """See `Call.own_limit_name`."""
        return next((name for name in LIMITS if type(self.parameters.get(name)) is int), "")

    @property
    def own_limit(self) -> int:
        """See `Call.own_limit`."""
        found = self.parameters.get(self.own_limit_name)
        return found if isinstance(found, int) else 0

    def answer_tokens(self, longest: int) -> int:
        """The user's limit, else the longest that was seen or foreseen."""
        return self.own_limit or self.likely_tokens(longest)

    def likely_tokens(self, longest: int) -> int:
        """The longest that was seen or foreseen, with hidden reasoning."""
        hidden = HIDDEN if reasons(self.model, self.parameters) else 0
        thinking = as_object(self.parameters.get("thinking")).get("budget_tokens")
        return max(self.expected_tokens + max(hidden, thinking if isinstance(thinking, int) else 0), longest)

    async def send(self, settings: LLMSettings, *, formatted: bool, limit: Mapping[str, int] = NO_LIMIT) -> Completion:
        """Ask once, for structured output where `formatted`."""
        form = {"response_format": self.response_format} if formatted else {}
        body = {"messages": list(self.messages), **self.parameters, **form, **limit}
        return self.measured(completion_of(self.model, *await providers.chat(self.model, body, settings)))

    def measured(self, found: Completion) -> Completion:
        """With estimates where the server did not count."""
        return replace(
            found,
            prompt_tokens=found.prompt_tokens or self.prompt_tokens,
            completion_tokens=found.completion_tokens or estimate_tokens(found.content),
        )


@dataclass(frozen=True)
class EmbedCall(Call[Embeddings]):
    """Texts to be embedded together."""

    KIND: ClassVar[providers.CallKind] = "embedding"

    texts: Sequence[str]

    @cached_property
    def prompt_tokens(self) -> int:
        """Of all texts, estimated."""
        return sum(map(estimate_tokens, self.texts))

    def answer_tokens(self, longest: int) -> int:
        """Vectors are not charged for."""
        return 0

    async def send(self, settings: LLMSettings, *, formatted: bool, limit: Mapping[str, int] = NO_LIMIT) -> Embeddings:
        """Ask once."""
        body = {"input": list(self.texts), **self.parameters}
        answer, headers = await providers.embeddings(self.model, body, settings)
        sent, _ = _counts(answer)
        by = Answerer.of(self.model, answer)
        return Embeddings(sent or self.prompt_tokens, 0, headers, as_list(answer.get("data")), by=by)


@dataclass(frozen=True)
class RerankCall(Call[Relevances]):
    """Passages to be scored for one query. `sizes`: tokens of the query with each passage, estimated."""

    KIND: ClassVar[providers.CallKind] = "rerank"

    query: str
    passages: Sequence[str]

    @cached_property
    def sizes(self) -> Sequence[int]:
        """Tokens of the query with each passage, as rerankers read them, estimated."""
        query = estimate_tokens(self.query)
        return [query + estimate_tokens(passage) for passage in self.passages]

    @property
    def prompt_tokens(self) -> int:
        """Of the query with each of the passages, estimated."""
        return sum(self.sizes)

    @property
    def searches(self) -> int:
        """As rerankers count them that are paid by the search."""
        return searches_of(self.sizes)

    def answer_tokens(self, longest: int) -> int:
        """Scores are not charged for."""
        return 0

    async def send(self, settings: LLMSettings, *, formatted: bool, limit: Mapping[str, int] = NO_LIMIT) -> Relevances:
        """Ask once."""
        body = {**self.parameters, "query": self.query, "documents": list(self.passages)}
        answer, headers = await providers.rerank(self.model, body, settings)
        data = answer.get("results", answer.get("data"))  # Voyage's name for it
        tokens, units = _rerank_counts(answer)
        sent, by = tokens or self.prompt_tokens, Answerer.of(self.model, answer)
        return Relevances(sent, 0, headers, as_list(data), units or self.searches, by=by)


def searches_of(sizes: Sequence[int]) -> int:
    """Searches that Cohere charges for passages of so many tokens, each with the query.

    Every 100 passages begun are one search, and a passage counts again for each 500 tokens begun.
    """
    return -(-sum(-(-size // PASSAGE_TOKENS) for size in sizes) // SEARCH_PASSAGES)


def completion_of(model: str, answer: Mapping[str, object], headers: Mapping[str, str]) -> Completion:
    """What `model` said, from the JSON of a chat completion; empty where it says nothing."""
    choice = as_object(next(iter(as_list(answer.get("choices"))), None))
    message = as_object(choice.get("message"))
    special = as_object(message.get("provider_specific_fields"))
    return Completion(
        *_counts(answer),
        headers,
        content=as_text(message.get("content")) or "",
        finish=as_text(choice.get("finish_reason")),
        refusal=as_text(message.get("refusal")) or as_text(special.get("refusal")),
        remembered=prefix_of(as_object(answer.get("usage"))),
        by=Answerer.of(model, answer),
    )


def prefix_of(usage: Mapping[str, object]) -> CachedPrefix:
    """What the provider remembered of a prompt, by any of the names that are in use; no more than the prompt held.

    OpenAI and most others, and litellm for all: `prompt_tokens_details`. DeepSeek's own: `prompt_cache_hit_tokens`.
    """
    sent, details = _count(usage.get("prompt_tokens")) or 0, as_object(usage.get("prompt_tokens_details"))
    cached = _count(details.get("cached_tokens")) or _count(usage.get("prompt_cache_hit_tokens")) or 0
    written = _count(details.get("cache_write_tokens")) or 0
    return CachedPrefix(min(cached, sent), min(written, max(0, sent - cached)))


def _counts(answer: Mapping[str, object]) -> tuple[int | None, int | None]:
    """Tokens sent and received, as far as the server counted."""
    usage = as_object(answer.get("usage"))
    return _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))


def _rerank_counts(answer: Mapping[str, object]) -> tuple[int | None, int | None]:
    """Tokens that were read and searches, as far as the server counted."""
    usage, meta = as_object(answer.get("usage")), as_object(answer.get("meta"))
    billed, read = as_object(meta.get("billed_units")), as_object(meta.get("tokens"))
    told = (usage.get("total_tokens"), usage.get("prompt_tokens"), billed.get("total_tokens"), read.get("input_tokens"))
    tokens = next((count for found in told if (count := _count(found))), None)
    units = billed.get("search_units")
    return tokens, _count(math.ceil(units) if isinstance(units, float) and math.isfinite(units) else units)


def _count(found: object) -> int | None:
    return found if isinstance(found, int) and 0 < found <= MAX_CALL_TOKENS else None  # anything else is no count


def answer_key(model: str, settings: LLMSettings, parts: Mapping[str, object]) -> str:
    """Return the key of what `model` answers. `parts`: all else that can change the answer."""
    named = {"provider": provider_of(model), "model": model, **parts}
    model_id = settings.of(model).model_id
    return hash_value({**named, "address": None, **({"model_id": model_id} if model_id else {})})
