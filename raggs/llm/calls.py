"""Calls to providers with estimates of their size and cost, the answers, and the cache keys of answers.

A model is identified by the provider's name, the model's name and, if the user declares that two servers differ, its
`model_id`. The address is not included, because the same model at another address gives the same answers.
"""

from __future__ import annotations

import json
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

MAX_CALL_TOKENS = 1_000_000_000  # larger counts in answers are ignored
# Passages per search; tokens per passage with its query, above which it counts as several.
SEARCH_PASSAGES, PASSAGE_TOKENS = 100, 500
NO_LIMIT: Mapping[str, int] = {}
LIMITS = ("max_completion_tokens", "max_tokens")  # parameter names for the maximum answer length


@dataclass(frozen=True)
class ProviderResponse:
    """A provider's answer. Tokens are None if the server did not count them. Names in `headers` are lower-case. `by` is
    the model that answered, as stated in the answer.
    """

    prompt_tokens: int | None
    completion_tokens: int | None
    headers: Mapping[str, str]
    by: Answerer | None = field(default=None, kw_only=True, compare=False)

    @property
    def searches(self) -> int:
        """Number of searches, the unit that some rerankers charge by."""
        return 0

    @property
    def cut_off(self) -> bool:
        """Whether the answer ended at its length limit."""
        return False

    @property
    def prefix(self) -> CachedPrefix:
        """The cached part of the prompt."""
        return NEW


@dataclass(frozen=True)
class CachedPrefix:
    """Prompt tokens that the provider reports as read from its cache, and as written into it."""

    cached: int = 0
    written: int = 0


NEW = CachedPrefix()


@dataclass(frozen=True)
class Completion(ProviderResponse):
    """Answer of a chat or decision model.

    Attributes:
        content: its text. For a decision model, the answer as a JSON object.
        finish: the provider's reason for the end, such as "stop", "length" (cut off) or "content_filter"; None if
            missing.
        alternatives: for each token, its alternatives with their log-probabilities, unchecked; empty if not requested.
    """

    content: str
    finish: str | None
    refusal: str | None
    remembered: CachedPrefix = NEW
    alternatives: Sequence[Sequence[tuple[str, object]]] = ()

    @property
    def cut_off(self) -> bool:
        return self.finish == "length"

    @property
    def prefix(self) -> CachedPrefix:
        return self.remembered

    @property
    def content_with_alternatives(self) -> str:
        """Content and alternatives as a JSON object (see `ChatRequest.logprobs`); empty without alternatives."""
        shown = {"content": self.content, "logprobs": self.alternatives}
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":")) if self.alternatives else ""


@dataclass(frozen=True)
class Embeddings(ProviderResponse):
    """Unchecked vectors of texts: their number, order and values may be wrong."""

    data: Sequence[object]


@dataclass(frozen=True)
class Relevances(ProviderResponse):
    """Unchecked scores of passages. `units`: number of searches, counted or estimated."""

    data: Sequence[object]
    units: int

    @property
    def searches(self) -> int:
        return self.units


A = TypeVar("A", bound=ProviderResponse)


@dataclass(frozen=True)
class Call(ABC, Generic[A]):
    """One call. `parameters` are those of the model. `KIND` is the type of endpoint."""

    KIND: ClassVar[providers.CallKind]

    model: str
    parameters: Mapping[str, object]

    @property
    @abstractmethod
    def prompt_tokens(self) -> int:
        """Estimated number of tokens of the request."""

    @abstractmethod
    def answer_tokens(self, longest: int) -> int:
        """Return the tokens to reserve for the answer. `longest` is the length of the longest answer so far."""

    @property
    def own_limit(self) -> int:
        """Maximum answer length that the call's own parameters set, in tokens; 0 if they set none."""
        return 0

    @property
    def own_limit_name(self) -> str:
        """Name of the parameter that sets this maximum; empty if there is none."""
        return ""

    def likely_tokens(self, longest: int) -> int:
        """Return the likely number of answer tokens. `longest` is the length of the longest answer so far."""
        return self.answer_tokens(longest)

    @property
    def searches(self) -> int:
        """Estimated number of searches, the unit that some rerankers charge by."""
        return 0

    @property
    def written_tokens(self) -> int:
        """Maximum number of tokens that the provider may write into its cache."""
        return 0

    def most_usd(self, price: Price, answer_tokens: int) -> float:
        """Return the maximum cost in USD with an answer of `answer_tokens` tokens."""
        return price.most_usd(self.prompt_tokens, answer_tokens, self.searches, self.written_tokens)

    def prepare(self, settings: LLMSettings) -> None:
        """Load everything that `send` needs, so that loading does not count as latency of the first call."""
        providers.prepare(self.KIND, self.model, self.parameters, settings)

    @abstractmethod
    async def send(self, settings: LLMSettings, *, formatted: bool, limit: Mapping[str, int] = NO_LIMIT) -> A:
        """Send the call once, with counted or estimated tokens. `limit` overrides the answer limit in the parameters.

        Raises:
            Fault: the call failed.
        """


@dataclass(frozen=True)
class ChatCall(Call[Completion]):
    """A chat call. `expected_tokens` is the likely answer length, for the budget. `key` is the cache key of the answer,
    for batches.
    """

    KIND: ClassVar[providers.CallKind] = "chat"

    messages: Sequence[Message]
    response_format: Mapping[str, object]
    expected_tokens: int
    key: str = ""

    @cached_property
    def prompt_tokens(self) -> int:
        """Estimated number of tokens of all messages and of the response format."""
        contents = sum(estimate_tokens(message["content"]) for message in self.messages)
        return contents + estimate_tokens(str(self.response_format))

    @cached_property
    def written_tokens(self) -> int:
        """Maximum tokens written into the provider's cache; see `Call.written_tokens`."""
        return most_written(self.model, self.messages, self.prompt_tokens)

    @property
    def own_limit_name(self) -> str:
        """Name of the limit parameter; see `Call.own_limit_name`."""
        return next((name for name in LIMITS if type(self.parameters.get(name)) is int), "")

    @property
    def own_limit(self) -> int:
        """Limit in the parameters; see `Call.own_limit`."""
        found = self.parameters.get(self.own_limit_name)
        return found if isinstance(found, int) else 0

    def answer_tokens(self, longest: int) -> int:
        """Return the user's limit, otherwise the longest observed or expected length."""
        return self.own_limit or self.likely_tokens(longest)

    def likely_tokens(self, longest: int) -> int:
        """Return the longest observed or expected length, with hidden reasoning."""
        hidden = HIDDEN if reasons(self.model, self.parameters) else 0
        thinking = as_object(self.parameters.get("thinking")).get("budget_tokens")
        return max(self.expected_tokens + max(hidden, thinking if isinstance(thinking, int) else 0), longest)

    async def send(self, settings: LLMSettings, *, formatted: bool, limit: Mapping[str, int] = NO_LIMIT) -> Completion:
        """Send the call once. `formatted` requests structured output, if the call has a response format."""
        form = {"response_format": self.response_format} if formatted and self.response_format else {}
        body = {"messages": list(self.messages), **self.parameters, **form, **limit}
        return self.measured(completion_of(self.model, *await providers.chat(self.model, body, settings)))

    def measured(self, found: Completion) -> Completion:
        """Return the answer with estimates for missing token counts."""
        return replace(
            found,
            prompt_tokens=found.prompt_tokens or self.prompt_tokens,
            completion_tokens=found.completion_tokens or estimate_tokens(found.content),
        )


@dataclass(frozen=True)
class DecisionCall(Call[Completion]):
    """A question about a text (see `DecisionRequest`). raggs counts only input tokens, without a discount for cached
    prompts, because providers charge for decisions in this way.
    """

    KIND: ClassVar[providers.CallKind] = "decision"

    text: str
    question: Mapping[str, object]

    @cached_property
    def prompt_tokens(self) -> int:
        """Estimated number of tokens of the text and of the question."""
        return estimate_tokens(self.text) + estimate_tokens(str(self.question))

    def answer_tokens(self, longest: int) -> int:
        """Return 0: probabilities are free."""
        return 0

    async def send(self, settings: LLMSettings, *, formatted: bool, limit: Mapping[str, int] = NO_LIMIT) -> Completion:
        """Send the call once."""
        body = {**self.parameters, "input": self.text, "questions": [dict(self.question)]}
        answer, headers = await providers.decide(self.model, body, settings)
        found = as_object(next(iter(as_list(answer.get("answers"))), None))
        refusal = "the model gave no probabilities" if found.get("type") == "refusal" else None
        content = json.dumps(found, ensure_ascii=False, sort_keys=True, separators=(",", ":")) if found else ""
        usage = as_object(answer.get("usage"))
        sent = _count(usage.get("input_tokens")) or _count(usage.get("prompt_tokens")) or self.prompt_tokens
        return Completion(sent, 0, headers, content, None, refusal, by=Answerer.of(self.model, answer))


@dataclass(frozen=True)
class EmbedCall(Call[Embeddings]):
    """Texts to embed together."""

    KIND: ClassVar[providers.CallKind] = "embedding"

    texts: Sequence[str]

    @cached_property
    def prompt_tokens(self) -> int:
        """Estimated number of tokens of all texts."""
        return sum(map(estimate_tokens, self.texts))

    def answer_tokens(self, longest: int) -> int:
        """Return 0: vectors are free."""
        return 0

    async def send(self, settings: LLMSettings, *, formatted: bool, limit: Mapping[str, int] = NO_LIMIT) -> Embeddings:
        """Send the call once."""
        body = {"input": list(self.texts), **self.parameters}
        answer, headers = await providers.embeddings(self.model, body, settings)
        sent, _ = _counts(answer)
        by = Answerer.of(self.model, answer)
        return Embeddings(sent or self.prompt_tokens, 0, headers, as_list(answer.get("data")), by=by)


@dataclass(frozen=True)
class RerankCall(Call[Relevances]):
    """Passages to score for one query."""

    KIND: ClassVar[providers.CallKind] = "rerank"

    query: str
    passages: Sequence[str]

    @cached_property
    def sizes(self) -> Sequence[int]:
        """Estimated number of tokens of the query with each passage, because rerankers read both together."""
        query = estimate_tokens(self.query)
        return [query + estimate_tokens(passage) for passage in self.passages]

    @property
    def prompt_tokens(self) -> int:
        """Estimated number of tokens of the query with each passage, summed."""
        return sum(self.sizes)

    @property
    def searches(self) -> int:
        """Estimated number of searches, for rerankers that charge by the search."""
        return searches_of(self.sizes)

    def answer_tokens(self, longest: int) -> int:
        """Return 0: scores are free."""
        return 0

    async def send(self, settings: LLMSettings, *, formatted: bool, limit: Mapping[str, int] = NO_LIMIT) -> Relevances:
        """Send the call once."""
        body = {**self.parameters, "query": self.query, "documents": list(self.passages)}
        answer, headers = await providers.rerank(self.model, body, settings)
        data = answer.get("results", answer.get("data"))  # Voyage names the field `data`
        tokens, units = _rerank_counts(answer)
        sent, by = tokens or self.prompt_tokens, Answerer.of(self.model, answer)
        return Relevances(sent, 0, headers, as_list(data), units or self.searches, by=by)


def searches_of(sizes: Sequence[int]) -> int:
    """Return the number of searches that Cohere charges for. `sizes` are the tokens of each passage with the query.

    Up to 100 passages are one search. A passage of more than 500 tokens counts as one passage per 500 tokens, rounded
    up.
    """
    return -(-sum(-(-size // PASSAGE_TOKENS) for size in sizes) // SEARCH_PASSAGES)


def completion_of(model: str, answer: Mapping[str, object], headers: Mapping[str, str]) -> Completion:
    """Return the answer of `model` from the JSON of a chat completion; with empty content if it has no text."""
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
        alternatives=_alternatives(as_list(as_object(choice.get("logprobs")).get("content"))),
        by=Answerer.of(model, answer),
    )


def _alternatives(tokens: Sequence[object]) -> tuple[list[tuple[str, object]], ...]:
    """Return the alternatives of each token of an answer: the listed ones, and the token itself if it is not listed."""
    found = []
    for token in map(as_object, tokens):
        listed = [as_object(each) for each in as_list(token.get("top_logprobs"))]
        own = [] if any(each.get("token") == token.get("token") for each in listed) else [token]
        found.append([(as_text(each.get("token")) or "", each.get("logprob")) for each in (*listed, *own)])
    return tuple(found)


def prefix_of(usage: Mapping[str, object]) -> CachedPrefix:
    """Return the cached part of a prompt, from any of the common field names, limited to the prompt's length.

    OpenAI, most others and litellm use `prompt_tokens_details`. DeepSeek also has `prompt_cache_hit_tokens`.
    """
    sent, details = _count(usage.get("prompt_tokens")) or 0, as_object(usage.get("prompt_tokens_details"))
    cached = _count(details.get("cached_tokens")) or _count(usage.get("prompt_cache_hit_tokens")) or 0
    written = _count(details.get("cache_write_tokens")) or 0
    return CachedPrefix(min(cached, sent), min(written, max(0, sent - cached)))


def _counts(answer: Mapping[str, object]) -> tuple[int | None, int | None]:
    """Return the tokens sent and received, if the server counted them."""
    usage = as_object(answer.get("usage"))
    return _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))


def _rerank_counts(answer: Mapping[str, object]) -> tuple[int | None, int | None]:
    """Return the tokens read and the searches, if the server counted them."""
    usage, meta = as_object(answer.get("usage")), as_object(answer.get("meta"))
    billed, read = as_object(meta.get("billed_units")), as_object(meta.get("tokens"))
    told = (usage.get("total_tokens"), usage.get("prompt_tokens"), billed.get("total_tokens"), read.get("input_tokens"))
    tokens = next((count for found in told if (count := _count(found))), None)
    units = billed.get("search_units")
    return tokens, _count(math.ceil(units) if isinstance(units, float) and math.isfinite(units) else units)


def _count(found: object) -> int | None:
    return found if isinstance(found, int) and 0 < found <= MAX_CALL_TOKENS else None  # other values are not counts


def answer_key(model: str, settings: LLMSettings, parts: Mapping[str, object]) -> str:
    """Return the cache key of an answer of `model`. `parts` contains everything else that can change the answer."""
    named = {"provider": provider_of(model), "model": model, **parts}
    model_id = settings.of(model).model_id
    return hash_value({**named, "address": None, **({"model_id": model_id} if model_id else {})})
