"""A question and its five candidates, as parts: a perturber changes the name, the label or the layout, never guesses.

A text is made of its parts at the last moment; nothing here knows how a bundle was drawn, nor who scores it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

Side = Literal["question", "candidate"]
AUTHOR = "{author}"
MARK = re.compile(r"(\{author\}|\{topic\}|\{label\})")  # any other brace is a letter


@dataclass(frozen=True)
class Piece:
    """One text.

    Attributes:
        author: the name in it.
        topic: what it is about.
        segments: its sentences in order, joined by blanks; ``{author}``, ``{topic}`` and ``{label}`` mark the places.
        label: what announces the author, such as "Author: ", with what parts it from the name.
    """

    author: str
    topic: str
    segments: tuple[str, ...]
    label: str = ""

    @property
    def text(self) -> str:
        """The text itself."""
        parts = {"{author}": self.author, "{topic}": self.topic, "{label}": self.label}
        return " ".join("".join(parts.get(each, each) for each in MARK.split(segment)) for segment in self.segments)


@dataclass(frozen=True)
class Bundle:
    """A question "Which works by A on T?" with the candidates C1, C2a, C2b, C3, C4, in this order.

    Attributes:
        key: names the bundle among all of a diagnosis: what is drawn for it hangs on that.
        language: ISO 639-1 code of the texts.
        candidates: right author and topic; two other authors on the topic; the author on another topic; neither.
    """

    key: str
    language: str
    question: Piece
    candidates: tuple[Piece, Piece, Piece, Piece, Piece]

    @property
    def texts(self) -> tuple[str, ...]:
        """The question, then the candidates."""
        return (self.question.text, *(each.text for each in self.candidates))

    def with_authors(self, *authors: str) -> Bundle:
        """The same with other names in the candidates, in their order."""
        first, second, third, fourth, fifth = (
            replace(piece, author=author) for piece, author in zip(self.candidates, authors, strict=True)
        )
        return replace(self, candidates=(first, second, third, fourth, fifth))
