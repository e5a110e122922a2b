"""Where people differ, side by side, and what was decided: for whoever settles it, after everybody has spoken."""

from __future__ import annotations

from datetime import UTC, datetime

from raggs.artifacts import MAX_GRADE, MIN_GRADE, Frozen
from raggs.errors import NotFoundError, UsageError
from raggs.reviewing.pool import Pool
from raggs.reviewing.session import ItemView, view_of
from raggs.reviews.folding import Reviewed, fold
from raggs.reviews.models import HEX, GradeReview, Withdrawal
from raggs.reviews.store import ReviewStore
from raggs.text import clean_unicode

SHOWN = 20


class Word(Frozen):
    """What one said of an item; null: cannot tell."""

    who: str
    grade: int | None
    note: str


class Difference(Frozen):
    """An item on which people differ."""

    view: ItemView
    words: tuple[Word, ...]


class Differences(Frozen):
    """Where people differ and nobody has decided, the farthest apart first; and the line that was just noted."""

    line: str | None
    total: int
    first: tuple[Difference, ...]


class Deciding:
    """Differences between people, and decisions.

    Args:
        prompt: the rubric that is shown.
    """

    def __init__(self, pool: Pool, store: ReviewStore, prompt: str) -> None:
        self._pool, self._store, self._prompt = pool, store, prompt

    def differences(self, line: str | None = None) -> Differences:
        """What is to be decided."""
        held = fold(self._store.read())
        found = sorted(self._apart(held))
        first = tuple(self._difference(held, number) for _, number in found[:SHOWN])
        return Differences(line=line, total=len(found), first=first)

    def settle(self, who: str, item: str, grade: int | None, note: str) -> Differences:
        """Decide on an item.

        Raises:
            UsageError: the grade is none.
            NotFoundError: there is no such item.
            ProviderError: the disk refuses; nothing is noted.
        """
        if grade is None or not MIN_GRADE <= grade <= MAX_GRADE:
            raise UsageError(f"a decision is a grade in {MIN_GRADE}..{MAX_GRADE}")
        number = self._pool.numbers.get((item[:HEX], item[HEX:]))
        if number is None:
            raise NotFoundError("there is no such passage here; load the page again")
        asked = self._pool.items[number]
        review = GradeReview(
            who=who,
            at=datetime.now(UTC),
            qid=asked.qid,
            query=asked.key[0],
            doc_id=asked.doc_id,
            passage=asked.key[1],
            grade=grade,
            note=clean_unicode(note),
            prompt=self._prompt,
            blind=False,
            settles=True,
        )
        self._store.append(review)
        return self.differences(review.id)

    def reopen(self, who: str, line: str) -> Differences:
        """Take one's own decision back.

        Raises:
            UsageError: it does not hold, or is another's.
        """
        held = fold(self._store.read()).settling.values()
        found = next((review for review in held if review.id == line and review.who == who), None)
        if found is None:
            raise UsageError("there is nothing to take back")
        self._store.append(Withdrawal(who=who, at=datetime.now(UTC), qid=found.qid, query=found.query, replaces=line))
        return self.differences()

    def _apart(self, held: Reviewed) -> list[tuple[int, int]]:
        """How far people are apart on an item, negative, and its number."""
        found = []
        for key, words in held.grades.items():
            grades = {word.grade for word in words.values() if word.grade is not None}
            number = self._pool.numbers.get(key)
            if number is not None and len(grades) > 1 and key not in held.settling:
                found.append((min(grades) - max(grades), number))
        return found

    def _difference(self, held: Reviewed, number: int) -> Difference:
        words = held.grades[self._pool.items[number].key]
        said = tuple(Word(who=who, grade=word.grade, note=word.note) for who, word in sorted(words.items()))
        return Difference(view=view_of(self._pool, number), words=said)
