"""The lines of reviews.jsonl: who said what of which passage, when, and what they had before their eyes.

A question and a passage are known by what they say, not by their ids: a passage whose text changed is another one, and
the same passage in another run, or cut from another file, takes its reviews along. The ids that were shown are kept for
people and for finding what became stale. No line is ever changed; a later one may replace it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, PrivateAttr, RootModel, StringConstraints, model_validator

from raggs.base.artifacts import Grade, Identifier, Passage, Query, Span
from raggs.base.frozen import Frozen
from raggs.base.hashing import hash_bytes, hash_value

MOST_NAME, MOST_NOTE = 80, 10_000  # characters
HEX = 32  # of 64 digits

Digest = Annotated[str, StringConstraints(pattern=rf"^[0-9a-f]{{{HEX}}}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=MOST_NAME, pattern=r"^\S(.*\S)?$")]
Key = tuple[str, str]  # of a question and of a passage, by what they say


def question_digest(query: Query) -> str:
    """What a question is known by: 32 hex digits over its text as its author gave it."""
    return hash_bytes(query.text.encode())[:HEX]


def passage_digest(passage: Passage) -> str:
    """What a passage is known by: 32 hex digits over title and text as a judge reads them."""
    return hash_bytes(passage.content.encode())[:HEX]


def key_of(query: Query, passage: Passage) -> Key:
    """What a judgment of a passage for a question is filed under."""
    return question_digest(query), passage_digest(passage)


class _Line(Frozen):
    """What every line says.

    `chance` is what estimates need: the known probability with which the item was drawn at random; None where somebody,
    or a plan, chose it.
    """

    v: int = Field(1, ge=1, le=1, strict=True, description="version of the line's form")
    who: Name = Field(description="the reviewer, by the name that they gave")
    at: AwareDatetime = Field(description="when, by the clock of the machine; the order of lines counts, not clocks")
    qid: Identifier = Field(description="query id, as it was shown")
    query: Digest = Field(description="digest of the question's text")
    note: str = Field("", max_length=MOST_NOTE, description="the reviewer's words")
    seconds: float | None = Field(None, ge=0, description="from showing to answering")
    prompt: str = Field("", description="the rubric that was shown: name and version")
    blind: bool = Field(True, description="whether no machine's grade, rank or system was shown before")
    chance: float | None = Field(None, gt=0, le=1, description="probability with which it was drawn; null if chosen")
    replaces: str | None = Field(None, description="id of the reviewer's line that this one takes the place of")

    @property
    def takes_back(self) -> bool:
        """Whether it says nothing but that another line holds no longer."""
        return False

    _stored_id: str | None = PrivateAttr(None)  # of the line as it is stored, under another spelling of the name

    @property
    def id(self) -> str:
        """What other lines name this one by: 16 hex digits over all of it."""
        return self._stored_id or hash_value(self.model_dump(mode="json"))[:16]

    def spelled(self, name: str) -> Self:
        """Return the line with its reviewer's name in another spelling, under the same id."""
        if name == self.who:
            return self
        found = self.model_copy(update={"who": name})
        found._stored_id = self.id
        return found


class GradeReview(_Line):
    """A grade for a passage, or that one cannot tell."""

    kind: Literal["grade"] = "grade"
    doc_id: Identifier = Field(description="as it was shown")
    passage: Digest = Field(description="digest of the passage's title and text")
    span: Span | None = Field(None, description="where in the corpus it stands, where known")
    grade: Grade | None = Field(description="1 (not relevant) to 5 (answers); null: cannot tell")
    settles: bool = Field(False, description="decides where reviewers, or a reviewer and a model, differ")

    @property
    def key(self) -> Key:
        """What it is filed under."""
        return self.query, self.passage


class OrderReview(_Line):
    """A few passages from best to worst. Those in one group are equal."""

    kind: Literal["order"] = "order"
    shown: tuple[Identifier, ...] = Field(min_length=2, description="in the order of presentation")
    passages: tuple[Digest, ...] = Field(description="digests, in the order of `shown`")
    order: tuple[tuple[Identifier, ...], ...] = Field(description="groups of equals, best first")

    @model_validator(mode="after")
    def _of_the_same(self) -> Self:
        ordered = [doc_id for group in self.order for doc_id in group]
        if len(self.passages) != len(self.shown) or sorted(ordered) != sorted(set(self.shown)) or not all(self.order):
            raise ValueError("an order holds each passage that was shown once, and a digest of each is given")
        return self

    @property
    def places(self) -> tuple[int, ...]:
        """The group of each passage, 0 the best, in the order of presentation."""
        group = {doc_id: place for place, members in enumerate(self.order) for doc_id in members}
        return tuple(group[doc_id] for doc_id in self.shown)


class Withdrawal(_Line):
    """An earlier line of the same reviewer no longer holds: `replaces` names it."""

    kind: Literal["withdrawal"] = "withdrawal"
    replaces: str = Field(description="id of the line")

    @property
    def takes_back(self) -> bool:
        """It does."""
        return True


Review = GradeReview | OrderReview | Withdrawal


class ReviewLine(RootModel[Annotated[Review, Field(discriminator="kind")]]):
    """Any line of reviews.jsonl."""


def digests(passages: Sequence[Passage]) -> tuple[str, ...]:
    """Of each passage."""
    return tuple(map(passage_digest, passages))
