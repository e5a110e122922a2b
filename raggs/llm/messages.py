"""What goes to a language model and what comes back, as values.

Each request names the query that it is made for, so that its calls are booked on it whichever task makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from raggs.base.jsontypes import JsonObject

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
class Took:
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

    def __add__(self, other: Took) -> Took:
        ms = None if self.ms is None or other.ms is None else self.ms + other.ms
        searches = self.searches + other.searches
        return Took(self.calls + other.calls, self.tokens + other.tokens, ms, self.usd + other.usd, searches)


@dataclass(frozen=True)
class Scored:
    """Scores in the order of the passages, higher is better; and what they took."""

    scores: tuple[float, ...]
    took: Took


@dataclass(frozen=True)
class Reply(Generic[T]):
    """A checked value; or None with `error`, and `raw` as far as there was any text.

    `took`: what all calls took that were answered, also where the answer was kept. `unusable`: whether there is no
    value since no answer could be used, not even a corrected one, rather than for want of answers. `rejected`: whether
    the provider would not have the question itself, such as one longer than the model's context. `answerer`: key of
    the model that answered (see `raggs.llm.answerers`), empty where none did.
    """

    value: T | None
    error: str | None = None
    raw: str | None = None
    took: Took = field(default=Took(), compare=False)
    unusable: bool = False
    rejected: bool = False
    answerer: str = field(default="", compare=False)
