"""What goes to a language model and what comes back, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Message = dict[str, str]


@dataclass(frozen=True)
class Request(Generic[T]):
    """One question with the form its answer must have.

    Attributes:
        model: the provider's name and the model's, as litellm knows them ("openai/gpt-5-mini").
        messages: dicts of `role` and `content`.
        schema: JSON Schema of the answer.
        schema_name: its name, letters and underscores.
        check: turns the parsed answer into a value; raises ValueError with a phrase that tells the model what is
            wrong with it ("the grade must be a whole number from 1 to 5").
        sample: distinguishes repeated asks of the same question.
        max_output_tokens: the expected length of an answer, for the budget; no limit is sent to the model.
        patient: whether the answer may take hours, so that a batch can give it.
        parameters: more completion parameters, over those of the settings.
    """

    model: str
    messages: Sequence[Message]
    schema: Mapping[str, Any]
    schema_name: str
    check: Callable[[Any], T]
    sample: int = 0
    max_output_tokens: int = 300
    patient: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EmbedRequest:
    """Texts to be turned into vectors of `dims` numbers, at most `batch` of them in one call."""

    model: str
    texts: Sequence[str]
    dims: int
    batch: int = 128
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply(Generic[T]):
    """A checked value; or None with `error`, and `raw` as far as there was any text."""

    value: T | None
    error: str | None = None
    raw: str | None = None


@dataclass(frozen=True)
class Usage:
    """What was used so far; `after - before` is the cost of what lies between."""

    calls: int = 0  # sent to a provider, retries and repairs included
    cached: int = 0  # answers that cost nothing: from the cache, or shared with the same question in flight
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0  # upper bound: see `Price.usd`
    saved_usd: float = 0.0  # what the cached answers had cost
    failed: int = 0  # questions that ended without a value
    repaired: int = 0  # questions whose value took a corrective question

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, entry.name) + getattr(other, entry.name) for entry in fields(self)))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, entry.name) - getattr(other, entry.name) for entry in fields(self)))
