"""Requests and replies as values, marks for prompt caching, and names of the answering models.

A request for one query names the query, so that its calls are booked on the query.

`add_cache_marks` marks the shared part of a prompt for providers that need it. The text of the prompt does not change.
Most providers cache the beginnings of prompts automatically. Marks are needed in two cases. Anthropic caches only
marked parts (guide "Prompt caching"). OpenAI models that charge for cache writes (GPT-5.6 and later) cache whole
prompts if there are no marks (`PromptCacheOptions` in OpenAI's Python library). This includes the part that no other
prompt shares. In both cases, the system message gets a mark if it is long enough to be cached. If it is too short,
these OpenAI models get the instruction to cache nothing, so no cache write is charged. Marks are not part of a cache
key.

`Answerer` records which model answered: the names stated in its answer. `Answerers` checks whether these names changed.
A model is requested by a name that may be an alias ("gpt-5-mini"). The answer states the snapshot
("gpt-5-mini-2025-08-07") in `model` and often a `system_fingerprint`. A router also states the chosen provider.

Only another name in `model` counts as another snapshot:

- A missing name is unknown, not different. Servers that state no model never stop a run.
- A fingerprint identifies the configuration of the servers. OpenAI changes it for the same snapshot, even between two
  calls within a minute, so it does not identify the weights. The fingerprint is recorded and shown, but never stops a
  run.
- A router chooses a provider for each call. This is recorded and shown, too.
- A provider that states only the alias ("gpt-5-mini") hides its snapshots. Only the fingerprint can then show a change.

Records, journals and ledgers refer to an answerer by `key`, a hash of its names. Equal names have equal keys in every
process, so a resumed run writes the same bytes as an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pydantic import Field

from raggs.base.artifacts import Frozen
from raggs.base.errors import SnapshotError
from raggs.base.hashing import hash_value
from raggs.base.secrets import mask
from raggs.base.text import one_line, replace_surrogates
from raggs.base.types import JsonObject, as_list, as_object, as_text
from raggs.llm.prices import UNASKED, list_price, provider_of, remembered_tokens

T = TypeVar("T")
Message = dict[str, str]


@dataclass(frozen=True)
class ChatRequest(Generic[T]):
    """One chat request, with the required form of its answer.

    Attributes:
        model: names of provider and model, as in litellm ("openai/gpt-5-mini").
        messages: dicts of `role` and `content`.
        schema: JSON Schema of the answer.
        schema_name: name of the schema (letters and underscores), and of the task in the ledger.
        check: converts the parsed answer into a value. Raises ValueError with a phrase for the model about the problem
            ("the grade must be a whole number from 1 to 5").
        qid: query that the calls are booked on; empty for several queries or none.
        sample: number that distinguishes repetitions of the same request.
        max_output_tokens: expected length of an answer, for the budget; sent to the model only with `logprobs`.
        patient: whether the answer may take hours, so that it can come from a batch.
        parameters: additional completion parameters, which override those of the settings.
        logprobs: number of alternatives whose log-probability is returned for each token of the answer. If above 0, the
            answer is free text of at most `max_output_tokens` tokens. `check` then gets the `content` of the answer,
            and `logprobs`: for each of its tokens, a list of alternatives, each a token and its log-probability.
            `schema` is not used.
    """

    model: str
    messages: Sequence[Message]
    schema: Mapping[str, object]
    schema_name: str
    check: Callable[[JsonObject], T]
    qid: str = ""
    sample: int = 0
    max_output_tokens: int = 300
    patient: bool = False
    parameters: Mapping[str, object] = field(default_factory=dict)
    logprobs: int = 0


@dataclass(frozen=True)
class DecisionRequest(Generic[T]):
    """A question about a text, answered by a probability for each of its options. The model generates no text.

    Attributes:
        model: names of provider and model, as in litellm.
        text: the text that the question is about.
        question: the question in the form of OpenAI's Decisions API, with `type`, `instructions` and `levels` or
            `choices`.
        schema_name: name of the task in the ledger.
        check: converts the answer, an object with `probabilities`, into a value. Raises ValueError with a phrase about
            the problem.
        qid: query that the calls are booked on; empty for several queries or none.
        sample: number that distinguishes repetitions of the same request.
        parameters: parameters of the call. Those of the settings are for chat models and are not sent.
    """

    model: str
    text: str
    question: Mapping[str, object]
    schema_name: str
    check: Callable[[JsonObject], T]
    qid: str = ""
    sample: int = 0
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class EmbedRequest:
    """Texts to embed as vectors of `dims` numbers, at most `batch` texts per call.

    `qid`: query that the calls are booked on; empty for several queries or none.
    """

    model: str
    texts: Sequence[str]
    dims: int
    batch: int = 128
    parameters: Mapping[str, object] = field(default_factory=dict)
    qid: str = ""


@dataclass(frozen=True)
class RerankRequest:
    """Passages to score by how well each answers `query`, at most `batch` passages per call.

    `fresh`: request all scores again, even paid ones, so that the latency is that of this request. `qid`: query
    that the calls are booked on; empty for several queries or none.
    """

    model: str
    query: str
    passages: Sequence[str]
    batch: int = 1000
    parameters: Mapping[str, object] = field(default_factory=dict)
    qid: str = ""
    fresh: bool = False


@dataclass(frozen=True)
class CallUsage:
    """Usage of answers when they were paid for, now or earlier.

    Attributes:
        calls: number of answered calls.
        tokens: number of tokens sent.
        ms: latency in milliseconds without waiting for a turn, summed over sequential calls; None if unknown.
        usd: cost in USD.
        searches: billing units of this request, for rerankers that charge by the search.
    """

    calls: int = 0
    tokens: int = 0
    ms: float | None = 0.0
    usd: float = 0.0
    searches: int = 0

    def __add__(self, other: CallUsage) -> CallUsage:
        ms = None if self.ms is None or other.ms is None else self.ms + other.ms
        searches = self.searches + other.searches
        return CallUsage(self.calls + other.calls, self.tokens + other.tokens, ms, self.usd + other.usd, searches)


@dataclass(frozen=True)
class RerankScores:
    """Scores in the order of the passages (higher is better), and their usage."""

    scores: tuple[float, ...]
    took: CallUsage


@dataclass(frozen=True)
class Reply(Generic[T]):
    """A validated value, or None with an `error`. `raw` is the text of the last answer, if there was any.

    `took`: usage of all answered calls, including cached ones. `unusable`: whether all answers were invalid, even after
    corrections. `rejected`: whether the provider rejected the request itself, for example if it exceeds the model's
    context. `answerer`: key of the model that answered (see `Answerer`), or empty.
    """

    value: T | None
    error: str | None = None
    raw: str | None = None
    took: CallUsage = field(default=CallUsage(), compare=False)
    unusable: bool = False
    rejected: bool = False
    answerer: str = field(default="", compare=False)


SURE_TOKENS = 1024  # for shorter prompts, providers in `UNASKED` write nothing into their cache


def add_cache_marks(model: str, body: Mapping[str, object], *, home: bool) -> Mapping[str, object]:
    """Return the body of a chat completion with cache marks if needed. `home`: whether the provider's own server is
    called.
    """
    provider = provider_of(model)
    if (
        not home
        or model in _unmarked_models
        or "prompt_cache_options" in body
        or "cache_control_injection_points" in body
    ):
        return body
    if provider == "anthropic":
        return _with_mark(model, body, {"cache_control": {"type": "ephemeral"}})
    if provider == "openai" and charges_for_writing(model):
        options = {"prompt_cache_options": {"mode": "explicit"}}
        return _with_mark(model, body, {"prompt_cache_breakpoint": {"mode": "explicit"}}) | options
    return body


def unmark(model: str) -> None:
    """Use no marks for a model from now on, because its server rejects them."""
    _unmarked_models.add(model)


_unmarked_models: set[str] = set()


def charges_for_writing(model: str) -> bool:
    """Return whether the model's provider caches prompts without marks and charges for writing."""
    price = list_price(model) if provider_of(model) in UNASKED else None
    return price is not None and price.cache_write is not None and price.cache_write > price.input


def written_unasked(model: str, tokens: int, *, home: bool) -> int:
    """Return how many of `tokens` prompt tokens the provider writes into its cache unasked. If raggs can send marks
    that prevent this, return 0.
    """
    told = home and provider_of(model) == "openai"
    return tokens if tokens >= SURE_TOKENS and not told and charges_for_writing(model) else 0


def most_written(model: str, messages: Sequence[Message], prompt_tokens: int) -> int:
    """Return the maximum number of prompt tokens that the provider writes into its cache."""
    if provider_of(model) == "anthropic":
        system = next((message["content"] for message in messages if message["role"] == "system"), "")
        return prompt_tokens if remembered_tokens(model, system) else 0
    return prompt_tokens if prompt_tokens >= SURE_TOKENS and charges_for_writing(model) else 0


def _with_mark(model: str, body: Mapping[str, object], mark: Mapping[str, object]) -> dict[str, object]:
    """Return the body with its system message marked if it is long enough."""
    messages = [_marked_message(model, as_object(message), mark) for message in as_list(body.get("messages"))]
    return {**body, "messages": messages}


def _marked_message(model: str, message: Mapping[str, object], mark: Mapping[str, object]) -> Mapping[str, object]:
    text = as_text(message.get("content")) or ""
    if message.get("role") != "system" or not remembered_tokens(model, text):
        return message
    return {**message, "content": [{"type": "text", "text": text, **mark}]}


KEY_LENGTH = 10  # hexadecimal digits; with 200 answerers, two keys are equal in one of 50 million runs
LONGEST_NAME = 200  # maximum length of a name stated by a server, in characters
MAX_ANSWERERS = 200  # maximum per run; a server may state another fingerprint in each answer
OTHER_ANSWERERS = "(others)"  # fingerprint or model of the answerers beyond the maximum


class Answerer(Frozen):
    """The model that answered a call, by the names in the answer. If no names were recorded, all fields but `asked` are
    null.
    """

    asked: str = Field(description="name of the model in the configuration")
    provider: str | None = Field(
        None, description="provider that the answer states, otherwise the provider in the model's name"
    )
    model: str | None = Field(None, description="name of the model in the answer; null if missing")
    fingerprint: str | None = Field(None, description="`system_fingerprint` in the answer; null if missing")

    @classmethod
    def of(cls, asked: str, answer: Mapping[str, object]) -> Answerer:
        """Return the answerer of an `answer`, the unprocessed JSON object."""
        stated = {name: _name(answer.get(field)) for name, field in FIELDS.items()}
        return cls(asked=asked, **{**stated, "provider": stated["provider"] or provider_of(asked)})

    @property
    def key(self) -> str:
        """Key of the answerer in records: a hash of all its names."""
        return hash_value([self.asked, self.provider, self.model, self.fingerprint])[:KEY_LENGTH]

    @property
    def recorded(self) -> bool:
        """Whether names were recorded. Answers that an earlier version cached have no names."""
        return self.provider is not None

    @property
    def stated(self) -> dict[str, str]:
        """The known names except `asked`, as stored in the cache."""
        return {name: value for name in FIELDS if (value := getattr(self, name)) is not None}


FIELDS: Mapping[str, str] = {"provider": "provider", "model": "model", "fingerprint": "system_fingerprint"}


def _name(found: object) -> str | None:
    """Return a name in an answer, on one line and of bounded length, or None."""
    text = as_text(found)
    return mask(one_line(replace_surrogates(text[: 2 * LONGEST_NAME])))[:LONGEST_NAME] or None if text else None


class Answerers:
    """All answerers of a run, by key.

    Args:
        allow_mixed: whether the run may continue with other snapshots than before.
    """

    def __init__(self, *, allow_mixed: bool = False) -> None:
        self._allow_mixed = allow_mixed
        self._known: dict[str, Answerer] = {}
        self._before: dict[str, set[str]] = {}  # by requested model: names of the previous snapshots

    def learn(self, answerers: Iterable[Answerer]) -> None:
        """Register the answerers that a file names."""
        self._known.update((each.key, each) for each in answerers)

    def expect(self, answerers: Iterable[Answerer]) -> None:
        """Restrict models to these snapshots from now on. A model without a snapshot here stays unrestricted."""
        for each in answerers:
            if each.model is not None:
                self._before.setdefault(each.asked, set()).add(each.model)

    def note(self, answerer: Answerer) -> str:
        """Return the key of an answerer. Beyond `MAX_ANSWERERS`, further answerers of a known snapshot share one key.
        Those of all further snapshots of a model share one key, too.
        """
        if (key := answerer.key) in self._known:
            return key
        found = self._bounded(answerer)
        self._known[found.key] = found
        return found.key

    def _bounded(self, answerer: Answerer) -> Answerer:
        if len(self._known) < MAX_ANSWERERS:
            return answerer
        asked, model = answerer.asked, answerer.model
        if any((each.asked, each.model) == (asked, model) for each in self._known.values()):
            return answerer.model_copy(update={"provider": OTHER_ANSWERERS, "fingerprint": OTHER_ANSWERERS})
        return Answerer(asked=asked, provider=OTHER_ANSWERERS, model=OTHER_ANSWERERS)

    def named(self, key: str) -> Answerer:
        """Return the answerer of a key. If its names are unknown, all its fields are empty."""
        return self._known.get(key) or Answerer(asked="")

    def another(self, answerer: Answerer) -> bool:
        """Return whether the answerer stops the run: it is another snapshot than before, and mixing is not allowed."""
        before = self._before.get(answerer.asked)
        return not self._allow_mixed and bool(before) and answerer.model not in (None, *(before or ()))

    def require(self, answerer: Answerer | None) -> None:
        """Check that an answer may be used.

        Raises:
            SnapshotError: the answer is from another snapshot than earlier answers.
        """
        if answerer is not None and self.another(answerer):
            before = " and ".join(sorted(self._before[answerer.asked]))
            raise SnapshotError(
                f"{answerer.asked} now answers as {answerer.model}, but earlier answers of this run are from {before}",
                remedy="pass --allow-mixed to continue with both, or set the model to one of them to request "
                "everything again",
            )
