"""The lines of a plan: which passages to read next, and why. A queue for whoever reads, in the order of the file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import Field

from raggs.base.artifacts import Identifier
from raggs.base.atomic import disk
from raggs.base.errors import DataError
from raggs.base.frozen import Frozen
from raggs.base.jsonl import Written, read_records, write_records
from raggs.parts.reviews.draws import Unit
from raggs.parts.reviews.models import Digest, Key


class PlanItem(Frozen):
    """A passage to be read for a question."""

    v: int = Field(1, ge=1, le=1, strict=True, description="version of the line's form")
    qid: Identifier = Field(description="query id, as the run has it")
    query: Digest = Field(description="digest of the question's text")
    doc_id: Identifier = Field(description="as the run has it")
    passage: Digest = Field(description="digest of the passage's title and text")
    worth: float = Field(ge=0, description="what reading it does for the verdicts, by expectation; 0: nothing")
    chance: float | None = Field(
        None, gt=0, le=1, description="probability with which it was drawn at random; null if chosen for its worth"
    )
    unit: Unit = Field("passage", description="what was drawn, where chance is given")
    seed: int | None = Field(None, description="of the numbers by which it was drawn, where chance is given")
    read: bool = Field(
        False, description="somebody has read it: it stands here since chance hit it, and nobody is asked again"
    )
    seconds: float = Field(gt=0, description="that reading it is expected to take")
    why: str = Field(description="for people: what makes it worth reading")

    @property
    def key(self) -> Key:
        """What its reviews are filed under."""
        return self.query, self.passage


def write_plan(path: Path, items: Iterable[PlanItem], option: str = "--out") -> Written:
    """Write a plan, whole or not at all.

    Args:
        option: by which the file was named, for the remedy.

    Raises:
        ProviderError: the disk refuses.
    """
    with disk(path, f"name a file that can be written: {option} FILE"):
        return write_records(path, items)


def read_plan(path: Path) -> list[PlanItem]:
    """The items of a plan, in its order.

    Raises:
        NotFoundError: there is no such file.
        DataError: a line is none of a plan, an item stands twice, or there is none.
    """
    items = list(read_records(path, PlanItem))
    if not items:
        raise DataError("a plan of nothing", where=path, remedy="raggs review plan RUN makes one")
    seen: set[Key] = set()
    for number, item in enumerate(items, start=1):
        if item.key in seen:
            said = f"query {item.qid} and passage {item.doc_id} stand twice"
            raise DataError(said, where=path, line=number, remedy="raggs review plan RUN writes it anew")
        seen.add(item.key)
    return items
