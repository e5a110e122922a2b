"""People grading at the same time: what each is asked, and what becomes of their words.

A word is on the disk before it is acknowledged, and what holds is what reviews.jsonl says: other programs may write
there too, and a restart goes on. A word that is sent twice, since its acknowledgement was lost, is noted once. Nobody
is told what a machine or another reviewer said. One lock lets one request through at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from threading import RLock

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, Passage
from raggs.base.errors import NotFoundError, UsageError
from raggs.base.frozen import Frozen
from raggs.base.text import clean_passage, clean_unicode
from raggs.parts.reviews.models import HEX, GradeReview, Withdrawal
from raggs.parts.reviews.shown import Shown, ShownStore
from raggs.parts.reviews.store import ReviewStore
from raggs.reviewing.choosing import By, Queue
from raggs.reviewing.leases import Holder, Leases
from raggs.reviewing.marks import Decision, Mark, Marks, sign_of
from raggs.reviewing.pool import Pool
from raggs.reviewing.views import ItemView, view_of

AHEAD = 3  # items that a window holds, so that a slow line does not stop anybody


@dataclass(frozen=True)
class SessionSettings:
    """How the work is shared.

    Attributes:
        seed: of the orders, the overlap and the repetitions.
        overlap: share of the items that two reviewers grade.
        repeats: share of items that a reviewer is asked a second time, unseen.
        prompt: name and version of the rubric that is shown.
        by: whether a question's passages come together, or those of all questions in one order.
        blind: whether nobody here can see what a machine said.
    """

    seed: int = 0
    overlap: float = 0.2
    repeats: float = 0.05
    prompt: str = ""
    by: By = "question"
    blind: bool = True


class Progress(Frozen):
    """How far a reviewer is. `pace`: seconds of a word, the median of the latest; None where none was timed."""

    done: int
    left: int
    pace: float | None


class Receipt(Frozen):
    """What a window is told after each step: the line that was noted, what comes next, and how far one is."""

    line: str | None
    last: str | None
    ahead: tuple[ItemView, ...]
    progress: Progress


class Around(Frozen):
    """What stands before and after a passage in its source; empty where nothing is known."""

    before: str
    after: str


class Session:
    """The work on a pool.

    Args:
        now: a clock in seconds that does not go back, for what is held.
    """

    def __init__(
        self,
        pool: Pool,
        store: ReviewStore,
        settings: SessionSettings,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pool, self.settings = pool, settings
        self.store, self._lock, self._read = store, RLock(), 0
        self.shown = ShownStore(store.folder)
        self.shown.of("")  # a line that cannot be right is told before anybody works
        self._leases = Leases(now)
        self._begin()

    def _begin(self) -> None:
        self._marks, self._read = Marks(self.pool.numbers), 0
        self._queue = Queue(self.pool, self._marks, self._leases, self.shown, self.settings)
        self._catch_up()

    def _catch_up(self) -> None:
        """Take in what was written since; all of it anew where the file became shorter."""
        size = self.store.size
        if size < self._read:
            self._begin()
        elif size > self._read:
            for review, end in self.store.since(self._read):
                self._marks.note(review, self._read)
                self._read = end

    def known(self, who: str) -> int:
        """How many words of that name hold here."""
        with self._lock:
            self._catch_up()
            return len(self._marks.person(who).marks)

    def upcoming(self, holder: Holder) -> Receipt:
        """What a window shows next."""
        with self._lock:
            self._catch_up()
            return self._receipt(holder, None)

    def grade(self, holder: Holder, item: str, grade: int | None, note: str, seconds: float | None) -> Receipt:
        """Note a grade; None: cannot tell.

        Raises:
            UsageError: the grade is none.
            NotFoundError: there is no such item.
            ProviderError: the disk refuses; nothing is noted.
        """
        if grade is not None and not MIN_GRADE <= grade <= MAX_GRADE:
            raise UsageError(f"grade {grade} is outside {MIN_GRADE}..{MAX_GRADE}")
        with self._lock:
            self._catch_up()
            number, note = self.number(item), clean_unicode(note)
            held = self._marks.person(holder.who).marks.get(number)
            if held is None or held.sign != sign_of(grade, note, seconds):
                self.store.append(self._review(holder.who, number, grade, note, seconds))
                self._catch_up()
            self._leases.release(holder.who, number)
            return self._receipt(holder, self._marks.person(holder.who).marks[number].line)

    def undo(self, holder: Holder, line: str | None) -> Receipt:
        """Take a reviewer's own word back, the latest or one by its line; its item comes next.

        Raises:
            UsageError: there is nothing to take back.
        """
        with self._lock:
            self._catch_up()
            person = self._marks.person(holder.who)
            last = person.last()
            number = person.lines.get(line) if line is not None else last and last[1]
            if number is None:
                raise UsageError("there is nothing to take back")
            held = person.marks.get(number)
            if held is not None and held.line == (line or held.line):
                self.store.append(self.withdrawal(holder.who, number, held.line))
                self._catch_up()
            self._leases.take(holder, number, first=True)
            return self._receipt(holder, None)

    def skip(self, holder: Holder, item: str) -> Receipt:
        """Ask for another item first.

        Raises:
            NotFoundError: there is no such item.
        """
        with self._lock:
            self._catch_up()
            number = self.number(item)
            self._leases.release(holder.who, number)
            self._queue.skip(holder.who, number)
            return self._receipt(holder, None)

    def around(self, item: str) -> Around:
        """The neighbours of an item's passage.

        Raises:
            NotFoundError: there is no such item.
        """
        before, after = self.pool.around(self.pool.passage(self.number(item)))
        return Around(before=_text(before), after=_text(after))

    def number(self, item: str) -> int:
        """The number of an item, by its id on the page.

        Raises:
            NotFoundError: there is none.
        """
        found = self.pool.numbers.get((item[:HEX], item[HEX:]))
        if found is None:
            raise NotFoundError("there is no such passage here; load the page again")
        return found

    def word(self, who: str, number: int) -> GradeReview | None:
        """A reviewer's word on an item that holds, as it was noted."""
        with self._lock:
            self._catch_up()
            mark = self._marks.person(who).marks.get(number)
            found = None if mark is None else next(self.store.since(mark.byte))[0]
            return found if isinstance(found, GradeReview) else None

    def words_on(self, number: int) -> dict[str, Mark]:
        """Everybody's word on an item that holds, by name."""
        with self._lock:
            self._catch_up()
            return self._marks.words_on(number)

    def undecided(self) -> dict[int, list[int]]:
        """Of each item on which nobody has decided, the grades that people give."""
        with self._lock:
            self._catch_up()
            return self._marks.undecided()

    def decision(self, number: int) -> Decision | None:
        """What holds as decided on an item."""
        with self._lock:
            self._catch_up()
            return self._marks.decision(number)

    def decided_by(self, who: str) -> list[Decision]:
        """What somebody decided and holds, the latest first."""
        with self._lock:
            self._catch_up()
            return [*self._marks.decided_by(who)]

    def latest(self, who: str) -> int | None:
        """The item of a reviewer's latest word that holds."""
        with self._lock:
            self._catch_up()
            last = self._marks.person(who).last()
            return last and last[1]

    def closed_to(self, who: str, numbers: Sequence[int]) -> list[bool]:
        """Whether each of some items is asked of a reviewer no more."""
        with self._lock:
            self._catch_up()
            return [not each for each in self._queue.open_to(who)[[*numbers]].tolist()]

    def show(self, who: str, number: int) -> None:
        """Note that a reviewer is shown what others, or a machine, said of an item.

        Raises:
            ProviderError: the disk refuses; then nothing may be shown.
        """
        query, passage = self.pool.items[number].key
        self.shown.note(Shown(who=who, at=datetime.now(UTC), query=query, passage=passage))

    def _receipt(self, holder: Holder, line: str | None) -> Receipt:
        while len(self._leases.of(holder)) < AHEAD and (number := self._queue.next(holder)) is not None:
            self._leases.take(holder, number)
        person = self._marks.person(holder.who)
        last = person.last()
        pace = round(median(person.seconds), 1) if person.seconds else None
        return Receipt(
            line=line,
            last=last and last[0],
            ahead=tuple(view_of(self.pool, number) for number in self._leases.of(holder)),
            progress=Progress(done=len(person.marks), left=self._queue.left(holder.who), pace=pace),
        )

    def _review(self, who: str, number: int, grade: int | None, note: str, seconds: float | None) -> GradeReview:
        item = self.pool.items[number]
        return GradeReview(
            who=who,
            at=datetime.now(UTC),
            qid=item.qid,
            query=item.key[0],
            doc_id=item.doc_id,
            passage=item.key[1],
            span=self.pool.passage(number).span,
            grade=grade,
            note=note,
            seconds=seconds,
            prompt=self.settings.prompt,
            blind=self.settings.blind and not self.shown.knows(who, item.key),
            chance=self.pool.chances[number],
        )

    def withdrawal(self, who: str, number: int, line: str) -> Withdrawal:
        """What takes back the line of that id about an item."""
        item = self.pool.items[number]
        return Withdrawal(who=who, at=datetime.now(UTC), qid=item.qid, query=item.key[0], replaces=line)


def _text(passage: Passage | None) -> str:
    return "" if passage is None else clean_passage(passage.text)
