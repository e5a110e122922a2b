"""What the stages of this pipeline may use of the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from raggs.parts.askers.base import Asker
from raggs.parts.retrievers.base import Retriever
from raggs.stages.base import Services


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
