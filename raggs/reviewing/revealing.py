"""What the model said of a passage, for somebody who has graded it: only then, and only where whoever serves allows it.

The grade from before stays as the blind one. A change afterwards is a line of its own, which takes its place and is
marked as not blind. What is shown is noted first.
"""

from __future__ import annotations

from datetime import UTC, datetime

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE
from raggs.base.errors import UsageError
from raggs.base.frozen import Frozen
from raggs.base.text import clean_unicode
from raggs.parts.reviews.models import GradeReview
from raggs.reviewing.machine import Machine, Voice
from raggs.reviewing.session import Session
from raggs.reviewing.views import ItemView, view_of


class Revealed(Frozen):
    """An item with what its reviewer said last, and what the models said. `line`: of the reviewer's word."""

    view: ItemView
    line: str
    own: Voice
    words: tuple[Voice, ...]


class Revealing:
    """The models' words, after one's own.

    Args:
        allowed: whether anybody may see them.
    """

    def __init__(self, session: Session, machine: Machine, allowed: bool) -> None:
        self._session, self._machine, self._allowed = session, machine, allowed

    def reveal(self, who: str, item: str | None) -> Revealed:
        """What the models said of an item; of the one that the reviewer graded last where it is left out.

        Raises:
            UsageError: nobody may see it, or the reviewer has not graded it.
            NotFoundError: there is no such item.
            DataError: a run's file is not what it was.
            ProviderError: the disk refuses to note that it is shown.
        """
        number, own = self._own(who, item)
        self._session.show(who, number)
        return Revealed(
            view=view_of(self._session.pool, number),
            line=own.id,
            own=Voice(who=who, grade=own.grade, note=own.note),
            words=self._machine.voices(number),
        )

    def change(self, who: str, item: str, grade: int | None, note: str) -> Revealed:
        """Give another grade after the model's was seen; None: cannot tell. What says the same is not noted.

        Raises:
            UsageError: the grade is none, or the model's was not seen.
            NotFoundError, DataError, ProviderError: as `reveal`.
        """
        if grade is not None and not MIN_GRADE <= grade <= MAX_GRADE:
            raise UsageError(f"grade {grade} is outside {MIN_GRADE}..{MAX_GRADE}")
        number, own = self._own(who, item)
        asked, note = self._session.pool.items[number], clean_unicode(note)
        if not self._session.shown.knows(who, asked.key):
            raise UsageError("the model's word on it was not shown; load the page again")
        if (own.grade, own.note) != (grade, note or own.note):
            changed = own.model_copy(
                update={
                    "at": datetime.now(UTC),
                    "grade": grade,
                    "note": note or own.note,
                    "seconds": None,
                    "blind": False,
                    "replaces": own.id,
                }
            )
            self._session.store.append(changed)
        return self.reveal(who, item)

    def _own(self, who: str, item: str | None) -> tuple[int, GradeReview]:
        if not self._allowed:
            raise UsageError("nobody sees the model's words here", remedy="raggs review serve RUN --reveal")
        number = self._session.latest(who) if item is None else self._session.number(item)
        own = None if number is None else self._session.word(who, number)
        if number is None or own is None:
            raise UsageError("the model's word is shown after one's own; grade it first")
        return number, own
