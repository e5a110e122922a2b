"""What goes to a language model and what comes back, as values.

Each request names the query that it is made for, so that its calls are booked on it whichever task makes them.

How a provider is told what of a prompt comes again, where it has to be told; the words stay what they are.

Most providers remember the beginnings of prompts by themselves. Two do not find ours: Anthropic remembers what is
marked and nothing else (guide "Prompt caching"); OpenAI's models that charge for writing into their cache (GPT-5.6 and
later) remember whole prompts, up to the passage that no other prompt holds, unless marks say otherwise (its Python
library, `PromptCacheOptions`). Both are told that the system message comes again, where that is long enough to be
remembered; the latter otherwise that nothing does, so that nothing is charged for. Marks are no part of a key.

Which model answered: the names that a provider states in its answers, and whether they are those of before.

A model is asked by a name that may be an alias ("gpt-5-mini"). The answer states the snapshot ("gpt-5-mini-2025-08-07")
in `model`, often a `system_fingerprint`, and from a router the provider that it chose. These names are the answerer.

Another snapshot is another name in `model`, and nothing else:

- A name that is not stated is unknown, not different. Servers that state no model never stop a run.
- A fingerprint is of the servers' configuration. OpenAI changes it for the same snapshot, also between two calls of
  one minute, so that it says nothing about the weights. It is recorded and shown, and it never stops a run.
- A router chooses its provider for each call, so that is recorded and shown, too.
- A provider that states the alias itself ("gpt-5-mini") hides its snapshots. Only a fingerprint can tell then.

Records, journals and ledgers name an answerer by `key`, a hash of its names. Equal names have equal keys in every
process, so a resumed run writes the bytes of an undisturbed one.
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
    """One question with the form its answer must have.

    Attributes:
        model: the provider's name and the model's, as litellm knows them ("openai/gpt-5-mini").
        messages: dicts of `role` and `content`.
        schema: JSON Schema of the answer.
        schema_name: its name, letters and underscores; the ledger's name for the task.
        check: turns the parsed answer into a value; raises ValueError with a phrase that tells the model what is
            wrong with it ("the grade must be a whole number from 1 to 5").
        qid: the query on which the ledger books it; empty where it serves several queries or none.
        sample: distinguishes repeated asks of the same question.
        max_output_tokens: the expected length of an answer, for the budget; no limit is sent to the model.
        patient: whether the answer may take hours, so that a batch can give it.
        parameters: more completion parameters, over those of the settings.
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


@dataclass(frozen=True)
class EmbedRequest:
    """Texts to be turned into vectors of `dims` numbers, at most `batch` of them in one call.

    `qid`: the query on which the ledger books it; empty where it serves several queries or none.
    """

    model: str
    texts: Sequence[str]
    dims: int
    batch: int = 128
    parameters: Mapping[str, object] = field(default_factory=dict)
    qid: str = ""


@dataclass(frozen=True)
class RerankRequest:
    """Passages to be scored by how well each answers `query`, at most `batch` of them in one call.

    `fresh`: ask for all, also for what was paid for before, so that the time is that of just this request. `qid`: the
    query on which the ledger books it; empty where it serves several queries or none.
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
    """What answers took when they were paid for, whenever that was.

    Attributes:
        calls: that were answered.
        tokens: that were sent.
        ms: between question and answer, without waits for a turn, one call after the other; None where not known.
        usd: what they cost.
        searches: units by which a request for just this would be paid, of rerankers that are paid so.
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
    """Scores in the order of the passages, higher is better; and what they took."""

    scores: tuple[float, ...]
    took: CallUsage


@dataclass(frozen=True)
class Reply(Generic[T]):
    """A checked value; or None with `error`, and `raw` as far as there was any text.

    `took`: what all calls took that were answered, also where the answer was kept. `unusable`: whether there is no
    value since no answer could be used, not even a corrected one, rather than for want of answers. `rejected`: whether
    the provider would not have the question itself, such as one longer than the model's context. `answerer`: key of
    the model that answered (see `Answerer`), empty where none did.
    """

    value: T | None
    error: str | None = None
    raw: str | None = None
    took: CallUsage = field(default=CallUsage(), compare=False)
    unusable: bool = False
    rejected: bool = False
    answerer: str = field(default="", compare=False)


SURE_TOKENS = 1024  # below, no provider of `UNASKED` writes anything


def add_cache_marks(model: str, body: Mapping[str, object], *, home: bool) -> Mapping[str, object]:
    """The body of a chat completion with marks, for who needs them. `home`: whether the provider itself is asked."""
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
    """From now on without marks: its provider does not know its own. They are worth money, and no answer."""
    _unmarked_models.add(model)


_unmarked_models: set[str] = set()


def charges_for_writing(model: str) -> bool:
    """Whether its provider writes prompts into its cache without being told to, and charges for that."""
    price = list_price(model) if provider_of(model) in UNASKED else None
    return price is not None and price.cache_write is not None and price.cache_write > price.input


def written_unasked(model: str, tokens: int, *, home: bool) -> int:
    """Of a prompt of so many tokens, those that its provider writes into its cache, as no mark keeps it from that."""
    told = home and provider_of(model) == "openai"
    return tokens if tokens >= SURE_TOKENS and not told and charges_for_writing(model) else 0


def most_written(model: str, messages: Sequence[Message], prompt_tokens: int) -> int:
    """Tokens of a prompt that its provider writes into its cache, at most."""
    if provider_of(model) == "anthropic":
        system = next((message["content"] for message in messages if message["role"] == "system"), "")
        return prompt_tokens if remembered_tokens(model, system) else 0
    return prompt_tokens if prompt_tokens >= SURE_TOKENS and charges_for_writing(model) else 0


def _with_mark(model: str, body: Mapping[str, object], mark: Mapping[str, object]) -> dict[str, object]:
    """The body, its system message marked if it is long enough."""
    messages = [_marked_message(model, as_object(message), mark) for message in as_list(body.get("messages"))]
    return {**body, "messages": messages}


def _marked_message(model: str, message: Mapping[str, object], mark: Mapping[str, object]) -> Mapping[str, object]:
    text = as_text(message.get("content")) or ""
    if message.get("role") != "system" or not remembered_tokens(model, text):
        return message
    return {**message, "content": [{"type": "text", "text": text, **mark}]}


KEY_LENGTH = 10  # hexadecimal digits: two of 200 answerers share a key once in 50 million runs
LONGEST_NAME = 200  # characters of a name that a server states
MAX_ANSWERERS = 200  # of a run; a server may state another fingerprint in each answer
OTHER_ANSWERERS = "(others)"  # the fingerprint, or the model, of those beyond that


class Answerer(Frozen):
    """Who answered a call, by the names that the answer states. All but `asked` are null where none was recorded."""

    asked: str = Field(description="the model's name in the configuration")
    provider: str | None = Field(None, description="that the answer states, else that of the model's name")
    model: str | None = Field(None, description="the name in the answer; null where it states none")
    fingerprint: str | None = Field(None, description="`system_fingerprint`, where the answer states one")

    @classmethod
    def of(cls, asked: str, answer: Mapping[str, object]) -> Answerer:
        """Who gave an `answer`, which is a JSON object as it came."""
        stated = {name: _name(answer.get(field)) for name, field in FIELDS.items()}
        return cls(asked=asked, **{**stated, "provider": stated["provider"] or provider_of(asked)})

    @property
    def key(self) -> str:
        """The name in records: a hash of all names."""
        return hash_value([self.asked, self.provider, self.model, self.fingerprint])[:KEY_LENGTH]

    @property
    def recorded(self) -> bool:
        """Whether anything is known. Of an answer that an earlier version cached, nothing is."""
        return self.provider is not None

    @property
    def stated(self) -> dict[str, str]:
        """The names that are known, but for `asked`, as the cache keeps them."""
        return {name: value for name in FIELDS if (value := getattr(self, name)) is not None}


FIELDS: Mapping[str, str] = {"provider": "provider", "model": "model", "fingerprint": "system_fingerprint"}


def _name(found: object) -> str | None:
    """A name in an answer, on one line and of bounded length; None where there is none."""
    text = as_text(found)
    return mask(one_line(replace_surrogates(text[: 2 * LONGEST_NAME])))[:LONGEST_NAME] or None if text else None


class Answerers:
    """All answerers of a run, by key.

    Args:
        allow_mixed: whether other snapshots than those of before may go on with the run.
    """

    def __init__(self, *, allow_mixed: bool = False) -> None:
        self._allow_mixed = allow_mixed
        self._known: dict[str, Answerer] = {}
        self._before: dict[str, set[str]] = {}  # by the model that is asked, the names of the snapshots of before

    def learn(self, answerers: Iterable[Answerer]) -> None:
        """Take those that some file names."""
        self._known.update((each.key, each) for each in answerers)

    def expect(self, answerers: Iterable[Answerer]) -> None:
        """From now on, only these snapshots may go on with the run, of each model that has any."""
        for each in answerers:
            if each.model is not None:
                self._before.setdefault(each.asked, set()).add(each.model)

    def note(self, answerer: Answerer) -> str:
        """The key of an answerer; beyond `MAX_ANSWERERS` that of all others of the same snapshot."""
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
        """The answerer of a key; one of which nothing is known where its names are lost."""
        return self._known.get(key) or Answerer(asked="")

    def another(self, answerer: Answerer) -> bool:
        """Whether it is another snapshot than those of before, and such a one may not go on."""
        before = self._before.get(answerer.asked)
        return not self._allow_mixed and bool(before) and answerer.model not in (None, *(before or ()))

    def require(self, answerer: Answerer | None) -> None:
        """Find out whether an answer may be used.

        Raises:
            SnapshotError: it is of another snapshot than the answers of before.
        """
        if answerer is not None and self.another(answerer):
            before = " and ".join(sorted(self._before[answerer.asked]))
            raise SnapshotError(
                f"{answerer.asked} now answers as {answerer.model}, and this run was answered by {before}",
                remedy="pass --allow-mixed to go on with both, or name one as the model: then all is asked again",
            )
