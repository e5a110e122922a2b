"""Askers: base class and registry. An asker writes a question about one or two windows of documents.

An asker also returns the excerpts that answer the question. The caller verifies that they occur in the windows. If a
call fails, the answer has an `error` and no question.
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
MAX_QUESTION_CHARS = 600  # maximum length of a question


@dataclass(frozen=True)
class Assignment:
    """Request for one question.

    Attributes:
        qid: id of the question.
        windows: excerpts of documents; two for a comparison, otherwise one.
        kind: kind of question.
        language: ISO 639-1 code of the windows.
        persona: description of the simulated user; empty if no user is simulated.
        style: wording style.
        earlier: questions that must not be repeated.
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
    """The asker's answer: a question and the excerpts that answer it; on failure, `text` is None and `error` is set.

    `kind` is the kind of the question if the asker selects it; None if it is the requested kind.
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
    """Resources for askers."""

    llm: LLM


class Asker(Adapter, ABC):
    """Writes questions. Created as ``cls(config, context)``."""

    NOTE = ""  # how the questions were made, as shown with scores; empty: no note is shown

    def __init__(self, config: AdapterConfig, context: AskerContext) -> None:
        self.config = config
        self.context = context

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the asker as stored with each question: its type, followed by its model or file if it has one."""

    @property
    def models(self) -> tuple[str, ...]:
        """Language models that get one request per question; empty if there are none."""
        return ()

    @property
    def kinds(self) -> Collection[QuestionKind]:
        """Supported kinds of questions."""
        return KINDS

    def causes(self) -> Causes:
        """Return everything that affects the questions: settings, file contents, prompt, model."""
        return self.own_causes()

    def check(self) -> None:
        """Raise an error if a prerequisite is missing, before the first call.

        Raises:
            DataError: a file is invalid.
            ConfigError: the model is unknown, or its price is unknown although a budget is set.
        """
        return

    @abstractmethod
    async def ask(self, assignment: Assignment) -> Question:
        """Return one question about the windows; on failure, an answer with `error`.

        Raises:
            BudgetError, AuthenticationError: no further call can succeed, so the run must stop.
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
