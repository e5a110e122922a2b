"""The records of the pipeline that makes questions: what each line of each of its artifacts means.

All lines of one question bear its id in every artifact, so that each can be followed from its window to the end.

What the stages of this pipeline may use of the world.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import Field

from raggs.base.artifacts import Frozen, Identifier, Record, Reference
from raggs.parts.askers import Asker, QuestionKind, Style
from raggs.parts.retrievers import Retriever
from raggs.stages.base import Services
from raggs.stats.question_filters import SplitPart

Reason = Literal[
    "no answer", "not verbatim", "no excerpt", "not unanswerable", "one-sided", "duplicate", "off the question"
]


class Window(Frozen):
    """A part of one document: ``document[start:end] == text``, in characters."""

    source: str = Field(min_length=1, description="the document, by the name that the corpus gives it")
    start: int = Field(ge=0, strict=True)
    end: int = Field(ge=1, strict=True)
    text: str = Field(min_length=1)
    doc_id: Identifier | None = Field(
        None, description="the passage that it is of, where the corpus knows no documents, only passages"
    )


class SampleRecord(Record):
    """sample.jsonl: what is asked for: a kind of question about one window, or two. One line a question."""

    kind: QuestionKind = Field(description="fact, procedure, comparison (over two windows), list or unanswerable")
    style: Style = "plain"
    persona: str = Field("", description="who asks; empty for nobody in particular")
    language: str = Field(description="ISO 639-1 code of the first window")
    windows: tuple[Window, ...] = Field(min_length=1, max_length=2)


class AskRecord(Record):
    """ask.jsonl: what the asker said. One line a question."""

    question: str | None = Field(description="null where there was no answer that could be used")
    excerpts: tuple[str, ...] = Field((), description="as the asker gave them")
    kind: QuestionKind | None = Field(None, description="where it turned out to be of another kind than was asked for")
    earlier: int = Field(0, ge=0, description="earlier questions that were shown")
    asker: str = Field(description="who asked: type and model or file")
    error: str | None = Field(None, description="why there is no question")
    raw: str | None = Field(None, description="the answer that could not be used")


class VerifyRecord(Record):
    """verify.jsonl: a question with the places of its excerpts, or why it goes. One line a question."""

    question: str | None
    references: tuple[Reference, ...] = Field((), description="word for word in the windows; empty where it goes")
    rejected: Reason | None = Field(None, description="why it goes")
    detail: str = ""


class FilterRecord(Record):
    """filter.jsonl: which questions are kept, and what was measured of each. One line a question."""

    kept: bool
    rejected: Reason | None = Field(None, description="why it is not kept")
    detail: str = ""
    question: str | None
    references: tuple[Reference, ...] = ()
    relevance: float | None = Field(
        None, ge=-1, le=1, description="lowest cosine of the question with one of its excerpts"
    )
    nearest: Identifier | None = Field(None, description="the earlier question that it repeats")
    similarity: float | None = Field(None, ge=-1, le=1, description="cosine with that one")
    leakage: float | None = Field(
        None, ge=0, le=1, description="how far it copies the rare words of its excerpts; 1: all of them"
    )
    found_by: tuple[str, ...] | None = Field(
        None, description="the systems that find one of its excerpts; null where none was asked"
    )
    part: SplitPart = Field(
        "dev", description="dev: to choose by; test: to report on; all questions of a window in one"
    )


ARTIFACTS: dict[str, type[Record]] = {
    "sample": SampleRecord,
    "ask": AskRecord,
    "verify": VerifyRecord,
    "filter": FilterRecord,
}


@dataclass(frozen=True)
class Text:
    """A document of the corpus whole, or a passage where it knows none.

    Attributes:
        source: the document's name, or the passage's id.
        text: character for character.
        start: where it begins in the document.
        doc_id: the passage's id, where places in a document are not known.
    """

    source: str
    text: str
    start: int = 0
    doc_id: str | None = None


class QuestionServices(Services, Protocol):
    """The world as a stage of this pipeline sees it. `causes` knows "documents" and "asker" too."""

    @property
    def documents(self) -> Sequence[Text]: ...
    @property
    def asker(self) -> Asker: ...
    @property
    def systems(self) -> Mapping[str, Retriever]:
        """Retrievers that cost nothing, by which questions are told hard from easy."""
        ...
