"""Askers by name: who makes a question of a window of a document; one file and one line each (see `Asker`).

What an asker is: windows of documents in, one question with the excerpts that answer it out.

An asker is not believed: whether an excerpt stands in its window is found out by somebody else. One that fails says so
in its answer; it never makes up for a failure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from raggs.base.adapter import Adapter, AdapterConfig
from raggs.base.registry import Registry
from raggs.base.secrets import mask
from raggs.base.settings import Causes
from raggs.base.text import replace_surrogates

if TYPE_CHECKING:
    from raggs.llm import LLM

QuestionKind = Literal["fact", "procedure", "comparison", "list", "unanswerable"]
Style = Literal["plain", "conversational"]
KINDS: tuple[QuestionKind, ...] = get_args(QuestionKind)
MAX_EXCERPTS = 5  # as in Chroma's report
MAX_QUESTION_CHARS = 600  # of a question


@dataclass(frozen=True)
class Assignment:
    """What is asked for.

    Attributes:
        qid: of the question.
        windows: texts of documents: one, of a comparison two.
        kind: of question.
        language: ISO 639-1 code of the windows.
        persona: who asks, in words; empty for nobody in particular.
        style: how the question is worded.
        earlier: questions that are not to be repeated.
    """

    qid: str
    windows: tuple[str, ...]
    kind: QuestionKind = "fact"
    language: str = "en"
    persona: str = ""
    style: Style = "plain"
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """A question with the excerpts that answer it, word for word as its asker says; or None with `error`.

    `kind`: where it turned out to be of another kind than was asked for.
    """

    text: str | None
    excerpts: tuple[str, ...] = ()
    error: str | None = None
    raw: str | None = None
    kind: QuestionKind | None = None

    def __post_init__(self) -> None:
        for name, value in (("text", self.text), ("error", self.error), ("raw", self.raw)):
            if value and (clean := mask(replace_surrogates(value))) != value:
                object.__setattr__(self, name, clean)


@dataclass(frozen=True)
class AskerContext:
    """What an asker may use."""

    llm: LLM


class Asker(Adapter, ABC):
    """Makes questions. Built as ``cls(config, context)``; cheap to build."""

    NOTE = ""  # what whoever reads scores over its questions must know; empty: nothing but that they were made up

    def __init__(self, config: AdapterConfig, context: AskerContext) -> None:
        self.config = config
        self.context = context

    @property
    @abstractmethod
    def name(self) -> str:
        """Who asks, for the record: type and model or file."""

    @property
    def models(self) -> tuple[str, ...]:
        """The language models of which each question asks one call; empty where nobody is paid."""
        return ()

    @property
    def kinds(self) -> Collection[QuestionKind]:
        """The kinds of question that it can make."""
        return KINDS

    def causes(self) -> Causes:
        """All that can change its questions: settings, content of files, prompt, model."""
        return self.own_causes()

    def check(self) -> None:
        """Find what it lacks before anything is asked or paid for.

        Raises:
            DataError: a file is not what it should be.
            ConfigError: the model, or its price under a cap, is not known.
        """
        return

    @abstractmethod
    async def ask(self, assignment: Assignment) -> Question:
        """One question about the windows.

        Raises:
            BudgetError, AuthenticationError: the run must stop.
        """


REGISTRY: Registry[Asker] = Registry(
    "asker",
    "askers",
    "raggs.parts.askers:Asker",
    {
        "extractive": "raggs.parts.askers.offline:ExtractiveAsker",
        "litellm": "raggs.parts.askers.litellm:LiteLLMAsker",
        "scripted": "raggs.parts.askers.offline:ScriptedAsker",
    },
)
