"""What can be asked of a provider, as values that know their size and how to be sent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from raggs.llm import provider
from raggs.llm.messages import Message
from raggs.llm.provider import Answer, Completion, Embeddings
from raggs.llm.settings import LLMSettings
from raggs.llm.tokens import estimate_tokens

LIMITS = ("max_completion_tokens", "max_tokens")  # how parameters name the longest answer

A = TypeVar("A", bound=Answer)


@dataclass(frozen=True)
class Call(ABC, Generic[A]):
    """One call. `parameters` are the model's own."""

    model: str
    parameters: Mapping[str, Any]

    @property
    @abstractmethod
    def prompt_tokens(self) -> int:
        """An estimate of what is sent."""

    @abstractmethod
    def answer_tokens(self, longest: int) -> int:
        """What to reserve for the answer, where the longest one so far had `longest` tokens."""

    @abstractmethod
    async def send(self, settings: LLMSettings, *, formatted: bool) -> A:
        """Ask once; tokens are told or estimated.

        Raises:
            Fault: the call failed.
        """


@dataclass(frozen=True)
class ChatCall(Call[Completion]):
    """A conversation. `expected_tokens`: the likely length of the answer, for the budget; `key`: of the answer in the
    cache, for batches."""

    messages: Sequence[Message]
    response_format: Mapping[str, Any]
    expected_tokens: int
    key: str = ""

    @cached_property
    def prompt_tokens(self) -> int:
        contents = sum(estimate_tokens(message["content"]) for message in self.messages)
        return contents + estimate_tokens(str(self.response_format))

    def answer_tokens(self, longest: int) -> int:
        """The limit where one is sent, else the longest that was seen or foreseen."""
        limits = [self.parameters[name] for name in LIMITS if isinstance(self.parameters.get(name), int)]
        return int(limits[0]) if limits else max(self.expected_tokens, longest)

    async def send(self, settings: LLMSettings, *, formatted: bool) -> Completion:
        form = {"response_format": self.response_format} if formatted else {}
        found = await provider.complete(
            self.model, self.messages, {**self.parameters, **form}, settings.api_base, settings.timeout_s
        )
        return self.measured(found)

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

    texts: Sequence[str]

    @cached_property
    def prompt_tokens(self) -> int:
        return sum(map(estimate_tokens, self.texts))

    def answer_tokens(self, longest: int) -> int:
        return 0

    async def send(self, settings: LLMSettings, *, formatted: bool) -> Embeddings:
        found = await provider.embed(self.model, self.texts, self.parameters, settings.api_base, settings.timeout_s)
        return replace(found, prompt_tokens=found.prompt_tokens or self.prompt_tokens, completion_tokens=0)
