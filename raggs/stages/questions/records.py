"""Records of the pipeline that generates questions: the meaning of each line of each artifact.

A question has the same id in every artifact, so that it can be followed from its window to the end.

`QuestionServices` declares the services that the stages of this pipeline can use.
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
    """Part of one document: ``document[start:end] == text``, in characters. If `doc_id` is set, the positions refer to
    this passage.
    """

    source: str = Field(min_length=1, description="name of the document in the corpus")
    start: int = Field(ge=0, strict=True)
    end: int = Field(ge=1, strict=True)
    text: str = Field(min_length=1)
    doc_id: Identifier | None = Field(
        None, description="id of the passage that contains the window, if the corpus has passages but no documents"
    )


class SampleRecord(Record):
    """sample.jsonl: one requested question: its kind and the one or two windows it is about. One line per question."""

    kind: QuestionKind = Field(
        description="kind of question: fact, procedure, comparison (over two windows), list or unanswerable"
    )
    style: Style = "plain"
    persona: str = Field("", description="persona of the asker; empty: none")
    language: str = Field(description="language of the first window (ISO 639-1 code)")
    windows: tuple[Window, ...] = Field(min_length=1, max_length=2)


class AskRecord(Record):
    """ask.jsonl: answer of the question generator. One line per question."""

    question: str | None = Field(description="text of the question; null if the answer could not be used")
    excerpts: tuple[str, ...] = Field((), description="excerpts as the generator returned them")
    kind: QuestionKind | None = Field(None, description="kind of the question, if it differs from the requested one")
    earlier: int = Field(0, ge=0, description="number of earlier questions shown to the generator")
    asker: str = Field(description="question generator: type and model or file")
    error: str | None = Field(None, description="reason for a missing question")
    raw: str | None = Field(None, description="raw answer that could not be used")


class VerifyRecord(Record):
    """verify.jsonl: a question with the positions of its excerpts, or the reason for its rejection. One line per
    question.
    """

    question: str | None
    references: tuple[Reference, ...] = Field(
        (), description="excerpts, verbatim from the windows; empty if the question is rejected"
    )
    rejected: Reason | None = Field(None, description="reason for the rejection; null if the question is accepted")
    detail: str = ""


class FilterRecord(Record):
    """filter.jsonl: which questions are kept, and the measurements of each. One line per question."""

    kept: bool
    rejected: Reason | None = Field(None, description="reason for the rejection; null if the question is kept")
    detail: str = ""
    question: str | None
    references: tuple[Reference, ...] = ()
    relevance: float | None = Field(
        None, ge=-1, le=1, description="lowest cosine between the question and one of its excerpts"
    )
    nearest: Identifier | None = Field(None, description="id of the earlier question that this one repeats")
    similarity: float | None = Field(
        None, ge=-1, le=1, description="cosine with the earlier question that this one repeats"
    )
    leakage: float | None = Field(
        None,
        ge=0,
        le=1,
        description="share of the question's words that occur in its excerpts, weighted by rarity (idf); 1: all",
    )
    found_by: tuple[str, ...] | None = Field(
        None, description="systems that find one of its excerpts; null if not measured"
    )
    part: SplitPart = Field(
        "dev",
        description="dev: for choosing a configuration; test: for reporting. Questions with the same first window are "
        "in the same part",
    )


ARTIFACTS: dict[str, type[Record]] = {
    "sample": SampleRecord,
    "ask": AskRecord,
    "verify": VerifyRecord,
    "filter": FilterRecord,
}


@dataclass(frozen=True)
class Text:
    """A whole document of the corpus, or a passage if the corpus has no documents.

    Attributes:
        source: name of the document, or id of the passage.
        text: unmodified text.
        start: position of the text in the document, in characters.
        doc_id: id of the passage, if positions in a document are unknown.
    """

    source: str
    text: str
    start: int = 0
    doc_id: str | None = None


class QuestionServices(Services, Protocol):
    """All services of a stage of this pipeline. `causes` also accepts "documents" and "asker"."""

    @property
    def documents(self) -> Sequence[Text]: ...
    @property
    def asker(self) -> Asker: ...
    @property
    def systems(self) -> Mapping[str, Retriever]:
        """Retrievers without cost, used to measure the difficulty of questions."""
        ...
