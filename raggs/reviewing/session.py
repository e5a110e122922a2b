"""People grading at the same time: what each is asked, and what becomes of their words.

A word is on the disk before it is acknowledged, and what holds is what reviews.jsonl says: other programs may write
there too, and a restart goes on. A word that is sent twice, since its acknowledgement was lost, is noted once. Nobody
is told what a machine or another reviewer said. One lock lets one request through at a time.

Who has said what of which item: what queue and decisions need of reviews.jsonl, in little memory.

The rules are those of `raggs.parts.reviews`: each reviewer's latest word on an item holds, by the order of
lines; a line that takes another's place ends that one if it is of the same reviewer; what is taken back was never said.
A test compares them.

Which item comes next for whom, in an order of the reviewer's own, drawn from the seed: by question or by passage.

Every item is wanted from one reviewer, a share of them from two; what others have said, hold or decided is not asked.

Who has which item before their eyes, so that two do not grade one unknowingly. In memory, for some minutes.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median
from threading import RLock
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from raggs.base.artifacts import MAX_GRADE, MIN_GRADE, Frozen, Passage
from raggs.base.errors import NotFoundError, UsageError
from raggs.base.hashing import derive_seed, generator
from raggs.base.text import clean_passage, clean_unicode
from raggs.parts.reviews import HEX, GradeReview, Key, Review, ReviewStore, ShownRecord, ShownStore, Withdrawal
from raggs.reviewing.pool import ItemView, ReviewPool, view_of

LATEST = 20  # words of which the pace is told


class ReviewMark(NamedTuple):
    """A reviewer's word on an item.

    Attributes:
        sign: of grade, note and seconds, by which it is known when it comes again.
        byte: at which its line begins.
    """

    line: str
    sign: int
    grade: int | None
    note: str
    byte: int


class ReviewDecision(NamedTuple):
    """What somebody decided on an item."""

    line: str
    who: str
    item: int
    grade: int | None
    note: str


@dataclass
class Reviewer:
    """A reviewer.

    Attributes:
        done: by item, whether a word of theirs holds.
        marks: that word.
        older: by item, all that they ever said, oldest first; only where that is more than the word that holds.
        stack: ids and items of their words, oldest first; those that hold no longer too.
        lines: the item of each line.
        twice: items that they graded again without replacing what they had said.
        seconds: of the latest words.
    """

    done: NDArray[np.bool_]
    marks: dict[int, ReviewMark] = field(default_factory=dict)
    older: dict[int, tuple[ReviewMark, ...]] = field(default_factory=dict)
    stack: list[tuple[str, int]] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    twice: set[int] = field(default_factory=set)
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=LATEST))

    def said(self, item: int) -> tuple[ReviewMark, ...]:
        """All that they ever said of an item, oldest first."""
        return self.older.get(item) or ((self.marks[item],) if item in self.marks else ())

    def holding(self) -> list[tuple[str, int]]:
        """Their words that hold, oldest first."""
        return [entry for entry in self.stack if self._holds(entry)]

    def last(self) -> tuple[str, int] | None:
        """Their latest word that holds: line and item."""
        return next((entry for entry in reversed(self.stack) if self._holds(entry)), None)

    def _holds(self, entry: tuple[str, int]) -> bool:
        line, item = entry
        return item in self.marks and self.marks[item].line == line


def sign_of(grade: int | None, note: str, seconds: float | None) -> int:
    """What a word that is sent twice is known by."""
    return hash((grade, note, seconds))


class ReviewMarks:
    """All that was said of the items of a pool.

    Args:
        numbers: of the items, by key.

    Attributes:
        words: by item, of how many reviewers a word holds.
        settled: by item, whether a decision holds.
    """

    def __init__(self, numbers: Mapping[Key, int]) -> None:
        self._numbers = numbers
        self.words = np.zeros(len(numbers), np.int32)
        self.settled = np.zeros(len(numbers), np.bool_)
        self._decisions = dict[int, list[str]]()  # lines, by item
        self._decided = dict[str, ReviewDecision]()  # by line, in their order
        self._gone = set[str]()  # lines that were taken back
        self._named = dict[str, tuple[str, str]]()  # who and what, by line that takes that one's place
        self._replaced = Counter[str]()  # how many lines that hold take a line's place
        self._people = dict[str, Reviewer]()

    def person(self, who: str) -> Reviewer:
        """A reviewer, who may have said nothing yet."""
        if who not in self._people:
            self._people[who] = Reviewer(np.zeros(len(self._numbers), np.bool_))
        return self._people[who]

    def words_on(self, item: int) -> dict[str, ReviewMark]:
        """Everybody's word on an item that holds, by name."""
        return {who: person.marks[item] for who, person in sorted(self._people.items()) if item in person.marks}

    def undecided(self) -> dict[int, list[int]]:
        """Of each item on which nobody has decided, the grades that people give."""
        found = dict[int, list[int]]()
        for person in self._people.values():
            for item, mark in person.marks.items():
                if mark.grade is not None and not self.settled[item]:
                    found.setdefault(item, []).append(mark.grade)
        return found

    def decision(self, item: int) -> ReviewDecision | None:
        """What holds as decided on an item."""
        lines = reversed(self._decisions.get(item, ()))
        return next((self._decided[line] for line in lines if self._up(line)), None)

    def decided_by(self, who: str) -> Iterator[ReviewDecision]:
        """What somebody decided and holds, the latest first."""
        mine = (made for made in reversed(self._decided.values()) if made.who == who)
        return (made for made in mine if self.decision(made.item) == made)

    def note(self, review: Review, byte: int = 0) -> None:
        """Take a line in, which begins at a byte of its file. Lines come in their order."""
        if review.replaces is not None:
            self._take_back(review, review.replaces)
        item = self._numbers.get(review.key) if isinstance(review, GradeReview) else None
        if item is None or not isinstance(review, GradeReview):
            return
        if review.settles:
            self._decisions.setdefault(item, []).append(review.id)
            self._decided[review.id] = ReviewDecision(review.id, review.who, item, review.grade, review.note)
            self.settled[item] = True
        else:
            self._say(item, review, byte)

    def _say(self, item: int, review: GradeReview, byte: int) -> None:
        person, line = self.person(review.who), review.id
        if person.done[item]:
            person.twice.add(item)
        sign = sign_of(review.grade, review.note, review.seconds)
        words = (*person.said(item), ReviewMark(line, sign, review.grade, review.note, byte))
        person.stack.append((line, item))
        person.lines[line] = item
        if review.seconds is not None:
            person.seconds.append(review.seconds)
        self._stand(review.who, item, words)

    def _take_back(self, by: Review, line: str) -> None:
        """Let a line hold no longer: what it had taken the place of holds again, if it is itself taken back."""
        if not self._is_of(by.who, line):
            return
        if not isinstance(by, Withdrawal):
            self._named[by.id] = by.who, line
            self._replaced[line] += 1
        elif line not in self._gone:
            self._gone.add(line)
            if (named := self._named.pop(line, None)) is not None:
                self._replaced[named[1]] -= 1
                self._look_again(*named)
        self._look_again(by.who, line)

    def _is_of(self, who: str, line: str) -> bool:
        decided, named = self._decided.get(line), self._named.get(line)
        mine = (decided is not None and decided.who == who) or (named is not None and named[0] == who)
        return mine or line in self.person(who).lines

    def _look_again(self, who: str, line: str) -> None:
        if line in self._decided:
            item = self._decided[line].item
            self.settled[item] = any(map(self._up, self._decisions[item]))
        elif (number := self.person(who).lines.get(line)) is not None:
            self._stand(who, number, self.person(who).said(number))

    def _up(self, line: str) -> bool:
        return line not in self._gone and not self._replaced[line]

    def _stand(self, who: str, item: int, words: tuple[ReviewMark, ...]) -> None:
        """Find the word of a reviewer that holds of an item, among all that they said."""
        person = self.person(who)
        held = next((mark for mark in reversed(words) if self._up(mark.line)), None)
        if held is None or len(words) > 1:
            person.older[item] = words
        self.words[item] += (held is not None) - int(person.done[item])
        person.done[item] = held is not None
        if held is None:
            person.marks.pop(item, None)
        else:
            person.marks[item] = held


MINUTES = 10.0


class LeaseHolder(NamedTuple):
    """A window of a reviewer."""

    who: str
    tab: str


class Leases:
    """Items that are out.

    Args:
        now: a clock in seconds that does not go back.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._held = dict[LeaseHolder, dict[int, float]]()  # until when, by item, in the order in which they went out

    def take(self, holder: LeaseHolder, item: int, *, first: bool = False) -> None:
        """Give an item out, or for longer."""
        held = self._held.setdefault(holder, {})
        if first:
            held.pop(item, None)
            self._held[holder] = held = {item: 0.0, **held}
        held[item] = self._now() + MINUTES * 60

    def release(self, who: str, item: int) -> None:
        """An item came back; from whichever window of the reviewer."""
        for holder, held in self._held.items():
            if holder.who == who:
                held.pop(item, None)

    def of(self, holder: LeaseHolder) -> list[int]:
        """What a window holds; it is held for longer by this."""
        held = self._held.get(holder, {})
        for item in held:
            held[item] = self._now() + MINUTES * 60
        return [*held]

    def others(self, holder: LeaseHolder) -> Iterator[tuple[bool, int]]:
        """Every item that another window holds, and whether it is the reviewer's own."""
        for other, held in [*self._held.items()]:
            for item, until in [*held.items()]:
                if until < self._now() and other != holder:
                    del held[item]
                elif other != holder:
                    yield other.who == holder.who, item
            if not held:
                del self._held[other]


MIN_REPEAT_DISTANCE = 20  # words between an item and its repetition, at least


By = Literal["question", "passage"]


class SharingSettings(Protocol):
    """How the work is shared: `SessionSettings`."""

    @property
    def seed(self) -> int:
        """Of orders and draws."""

    @property
    def overlap(self) -> float:
        """Share of the items that two reviewers grade."""

    @property
    def repeats(self) -> float:
        """Share of items that a reviewer grades a second time."""

    @property
    def by(self) -> By:
        """Whether a question's passages come together, or those of all questions in one order."""


class ReviewQueue:
    """The order of the work.

    Args:
        shown: whom others' words were shown on what: such an item does not come again, since nobody could be blind.
    """

    def __init__(
        self, pool: ReviewPool, marks: ReviewMarks, leases: Leases, shown: ShownStore, sharing: SharingSettings
    ) -> None:
        self._pool, self._marks, self._leases, self._shown = pool, marks, leases, shown
        self._seed, self._repeats, self._by = sharing.seed, sharing.repeats, sharing.by
        drawn = generator(sharing.seed, "review", "overlap").random(len(pool.items)) < sharing.overlap
        self._wanted = 1 + drawn.astype(np.int32)
        self._questions = np.array([item.question for item in pool.items], np.int32)
        self._orders = dict[str, NDArray[np.int32]]()
        self._skipped = dict[str, dict[int, None]]()
        self._preceded = set[tuple[str, int]]()

    def left(self, who: str) -> int:
        """How many items are still to be graded by a reviewer, as things stand."""
        return int(np.count_nonzero(self.open_to(who)))

    def skip(self, who: str, item: int) -> None:
        """Ask a reviewer for this item only when there is no other."""
        skipped = self._skipped.setdefault(who, {})
        skipped.pop(item, None)
        skipped[item] = None

    def next(self, holder: LeaseHolder) -> int | None:
        """An item for a window; it is not yet given out. None: there is none."""
        free = self.open_to(holder.who)
        held = set(self._leases.of(holder))
        free[[*held]] = False
        words, elsewhere = self._marks.words.copy(), []
        for own, item in self._leases.others(holder):
            if own:
                elsewhere.append(item)
            else:
                words[item] += 1
        free &= words < self._wanted
        unheld = free.copy()
        unheld[elsewhere] = False
        found = self._first(holder.who, unheld)
        if found is None:  # what another window of theirs holds, which may be closed
            return self._first(holder.who, free)
        again = self._repetition(holder.who, found, held | set(elsewhere))
        return found if again is None else again

    def open_to(self, who: str) -> NDArray[np.bool_]:
        """By item, whether a reviewer may still be asked to grade it, as things stand."""
        marks = self._marks
        return ~marks.person(who).done & ~marks.settled & (marks.words < self._wanted)

    def _first(self, who: str, free: NDArray[np.bool_]) -> int | None:
        skipped = self._skipped.get(who, {})
        unseen = free.copy()
        unseen[[*skipped]] = False
        order = self._order(who)
        found = unseen[order]
        if found.any():
            return int(order[int(found.argmax())])
        return next((item for item in skipped if free[item]), None)

    def _order(self, who: str) -> NDArray[np.int32]:
        """Questions shuffled, and the passages of each; or all passages shuffled; or as planned."""
        if self._pool.planned:
            return np.arange(len(self._pool.items), dtype=np.int32)
        if who not in self._orders:
            drawn = generator(self._seed, "review", "order", who)
            questions = len(self._pool.questions)
            places = drawn.permutation(questions)[self._questions] if self._by == "question" else self._questions * 0
            self._orders[who] = np.lexsort((drawn.random(len(places)), places)).astype(np.int32)
        return self._orders[who]

    def _repetition(self, who: str, fresh: int, held: set[int]) -> int | None:
        """An item that the reviewer graded a while ago, if one is to come before a fresh one."""
        drawn = derive_seed(self._seed, "review", "repeat", who, self._pool.items[fresh].key)
        if (who, fresh) in self._preceded or drawn >= self._repeats * 2**64:
            return None
        self._preceded.add((who, fresh))
        person = self._marks.person(who)
        seen = self._shown.of(who)
        gone = person.twice | held | {self._pool.numbers[key] for key in seen if key in self._pool.numbers}
        old = [item for _, item in person.holding()[:-MIN_REPEAT_DISTANCE] if item not in gone]
        return old[drawn % len(old)] if old else None


ITEMS_AHEAD = 3  # items that a window holds, so that a slow line does not stop anybody


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


class ReviewProgress(Frozen):
    """How far a reviewer is. `pace`: seconds of a word, the median of the latest; None where none was timed."""

    done: int
    left: int
    pace: float | None


class Receipt(Frozen):
    """What a window is told after each step: the line that was noted, what comes next, and how far one is."""

    line: str | None
    last: str | None
    ahead: tuple[ItemView, ...]
    progress: ReviewProgress


class PassageContext(Frozen):
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
        pool: ReviewPool,
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
        self._marks, self._read = ReviewMarks(self.pool.numbers), 0
        self._queue = ReviewQueue(self.pool, self._marks, self._leases, self.shown, self.settings)
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

    def upcoming(self, holder: LeaseHolder) -> Receipt:
        """What a window shows next."""
        with self._lock:
            self._catch_up()
            return self._receipt(holder, None)

    def grade(self, holder: LeaseHolder, item: str, grade: int | None, note: str, seconds: float | None) -> Receipt:
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

    def undo(self, holder: LeaseHolder, line: str | None) -> Receipt:
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

    def skip(self, holder: LeaseHolder, item: str) -> Receipt:
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

    def around(self, item: str) -> PassageContext:
        """The neighbours of an item's passage.

        Raises:
            NotFoundError: there is no such item.
        """
        before, after = self.pool.around(self.pool.passage(self.number(item)))
        return PassageContext(before=_text(before), after=_text(after))

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

    def words_on(self, number: int) -> dict[str, ReviewMark]:
        """Everybody's word on an item that holds, by name."""
        with self._lock:
            self._catch_up()
            return self._marks.words_on(number)

    def undecided(self) -> dict[int, list[int]]:
        """Of each item on which nobody has decided, the grades that people give."""
        with self._lock:
            self._catch_up()
            return self._marks.undecided()

    def decision(self, number: int) -> ReviewDecision | None:
        """What holds as decided on an item."""
        with self._lock:
            self._catch_up()
            return self._marks.decision(number)

    def decided_by(self, who: str) -> list[ReviewDecision]:
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
        self.shown.note(ShownRecord(who=who, at=datetime.now(UTC), query=query, passage=passage))

    def _receipt(self, holder: LeaseHolder, line: str | None) -> Receipt:
        while len(self._leases.of(holder)) < ITEMS_AHEAD and (number := self._queue.next(holder)) is not None:
            self._leases.take(holder, number)
        person = self._marks.person(holder.who)
        last = person.last()
        pace = round(median(person.seconds), 1) if person.seconds else None
        return Receipt(
            line=line,
            last=last and last[0],
            ahead=tuple(view_of(self.pool, number) for number in self._leases.of(holder)),
            progress=ReviewProgress(done=len(person.marks), left=self._queue.left(holder.who), pace=pace),
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
