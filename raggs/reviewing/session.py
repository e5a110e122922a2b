"""Concurrent labelling: the queue of each annotator, and how labels are stored.

A label is on disk before it is confirmed. Labels are stored only in reviews.jsonl: other programs may write this file,
too, and a restart resumes from it. A label that is sent twice, because its confirmation was lost, is stored once.
Items are shown without grades of models or of other annotators. A lock admits one request at a time.

`ReviewMarks` holds the labels that the queue and adjudication need, with little memory. Its rules are those of
`raggs.parts.reviews`: the latest line of an annotator for an item counts, and replacements apply only to lines of the
same annotator. A withdrawn line is treated as never written. A test compares both implementations.

`ReviewQueue` selects the next item: in the order of the plan, or else in a random order per annotator, by query or by
passage. Each item needs the label of one annotator, and a share of the items those of two. Items that enough
annotators have labelled or hold are not offered, nor are adjudicated items.

`Leases` records the items currently displayed, in memory for some minutes, so that two annotators do not label the same
item unintentionally.
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
from raggs.base.text import clean_passage, clean_unicode, join_wrapped_lines
from raggs.parts.reviews import HEX, GradeReview, Key, Review, ReviewStore, ShownRecord, ShownStore, Withdrawal
from raggs.reviewing.pool import ItemView, ReviewPool, view_of

LATEST = 20  # latest labels used for the pace


class ReviewMark(NamedTuple):
    """A label of an annotator for an item.

    Attributes:
        sign: hash of grade, note and seconds, which identifies a repeated request.
        byte: offset of its line.
    """

    line: str
    sign: int
    grade: int | None
    note: str
    byte: int


class ReviewDecision(NamedTuple):
    """An adjudicated grade of an item."""

    line: str
    who: str
    item: int
    grade: int | None
    note: str


@dataclass
class Reviewer:
    """Labels of an annotator.

    Attributes:
        done: whether the annotator has a valid label, by item.
        marks: the valid label, by item.
        older: all labels by item, oldest first; only for items with more than the valid label.
        stack: line ids and items of all labels, oldest first, including invalid ones.
        lines: item of each line.
        twice: items that were labelled again without replacing the first label.
        seconds: durations of the latest labels.
    """

    done: NDArray[np.bool_]
    marks: dict[int, ReviewMark] = field(default_factory=dict)
    older: dict[int, tuple[ReviewMark, ...]] = field(default_factory=dict)
    stack: list[tuple[str, int]] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    twice: set[int] = field(default_factory=set)
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=LATEST))

    def said(self, item: int) -> tuple[ReviewMark, ...]:
        """Return all labels of an item, oldest first."""
        return self.older.get(item) or ((self.marks[item],) if item in self.marks else ())

    def holding(self) -> list[tuple[str, int]]:
        """Return line ids and items of the valid labels, oldest first."""
        return [entry for entry in self.stack if self._holds(entry)]

    def last(self) -> tuple[str, int] | None:
        """Return line id and item of the latest valid label."""
        return next((entry for entry in reversed(self.stack) if self._holds(entry)), None)

    def _holds(self, entry: tuple[str, int]) -> bool:
        line, item = entry
        return item in self.marks and self.marks[item].line == line


def sign_of(grade: int | None, note: str, seconds: float | None) -> int:
    """Return a hash that identifies a label that is sent twice."""
    return hash((grade, note, seconds))


class ReviewMarks:
    """All labels of the items of a pool.

    Args:
        numbers: item numbers by key.

    Attributes:
        words: number of annotators with a valid label, by item.
        settled: whether the item is adjudicated, by item.
    """

    def __init__(self, numbers: Mapping[Key, int]) -> None:
        self._numbers = numbers
        self.words = np.zeros(len(numbers), np.int32)
        self.settled = np.zeros(len(numbers), np.bool_)
        self._decisions = dict[int, list[str]]()  # line ids by item
        self._decided = dict[str, ReviewDecision]()  # by line id, in file order
        self._gone = set[str]()  # ids of withdrawn lines
        self._named = dict[str, tuple[str, str]]()  # annotator and replaced line, by replacing line
        self._replaced = Counter[str]()  # number of valid lines that replace a line
        self._people = dict[str, Reviewer]()

    def person(self, who: str) -> Reviewer:
        """Return the labels of an annotator, possibly empty."""
        if who not in self._people:
            self._people[who] = Reviewer(np.zeros(len(self._numbers), np.bool_))
        return self._people[who]

    def words_on(self, item: int) -> dict[str, ReviewMark]:
        """Return the valid labels of an item, by annotator."""
        return {who: person.marks[item] for who, person in sorted(self._people.items()) if item in person.marks}

    def undecided(self) -> dict[int, list[int]]:
        """Return the human grades of each item that is not adjudicated."""
        found = dict[int, list[int]]()
        for person in self._people.values():
            for item, mark in person.marks.items():
                if mark.grade is not None and not self.settled[item]:
                    found.setdefault(item, []).append(mark.grade)
        return found

    def decision(self, item: int) -> ReviewDecision | None:
        """Return the valid adjudication of an item; None if there is none."""
        lines = reversed(self._decisions.get(item, ()))
        return next((self._decided[line] for line in lines if self._up(line)), None)

    def decided_by(self, who: str) -> Iterator[ReviewDecision]:
        """Yield the valid adjudications of an annotator, latest first."""
        mine = (made for made in reversed(self._decided.values()) if made.who == who)
        return (made for made in mine if self.decision(made.item) == made)

    def note(self, review: Review, byte: int = 0) -> None:
        """Add a line, which starts at a byte offset of its file. Lines must be added in file order."""
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
        """Invalidate a line; if it had replaced another line and is withdrawn, that line is valid again."""
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
        """Set the valid label of an annotator for an item, from all labels."""
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
    """A browser tab of an annotator."""

    who: str
    tab: str


class Leases:
    """Items that are currently assigned to browser tabs.

    Args:
        now: monotonic clock in seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._held = dict[LeaseHolder, dict[int, float]]()  # expiry by item, in the order of assignment

    def take(self, holder: LeaseHolder, item: int, *, first: bool = False) -> None:
        """Assign an item to a tab, or extend its lease. With `first`, it precedes the other items of the tab."""
        held = self._held.setdefault(holder, {})
        if first:
            held.pop(item, None)
            self._held[holder] = held = {item: 0.0, **held}
        held[item] = self._now() + MINUTES * 60

    def release(self, who: str, item: int) -> None:
        """Release an item from all tabs of the annotator."""
        for holder, held in self._held.items():
            if holder.who == who:
                held.pop(item, None)

    def of(self, holder: LeaseHolder) -> list[int]:
        """Return the items of a tab, and extend their leases."""
        held = self._held.get(holder, {})
        for item in held:
            held[item] = self._now() + MINUTES * 60
        return [*held]

    def others(self, holder: LeaseHolder) -> Iterator[tuple[bool, int]]:
        """Yield each item that another tab holds, and whether that tab belongs to the same annotator."""
        for other, held in [*self._held.items()]:
            for item, until in [*held.items()]:
                if until < self._now() and other != holder:
                    del held[item]
                elif other != holder:
                    yield other.who == holder.who, item
            if not held:
                del self._held[other]


MIN_REPEAT_DISTANCE = 20  # minimum number of labels between an item and its repetition


By = Literal["question", "passage"]


class SharingSettings(Protocol):
    """Settings of the queue: see `SessionSettings`."""

    @property
    def seed(self) -> int:
        """Random seed of orders and samples."""

    @property
    def overlap(self) -> float:
        """Share of the items that two annotators label."""

    @property
    def repeats(self) -> float:
        """Share of the items that an annotator labels twice."""

    @property
    def by(self) -> By:
        """Whether the passages of a query come together, or passages of all queries are mixed."""


class ReviewQueue:
    """Order in which annotators label items.

    Args:
        shown: records of displayed grades; such items are not repeated, because a second label would not be blind.
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
        """Return the number of items that can currently be offered to an annotator."""
        return int(np.count_nonzero(self.open_to(who)))

    def progress(self, who: str, question: int) -> QueryProgress:
        """Return the progress of an annotator in a query, by its number."""
        same = np.flatnonzero(self._questions == question)
        done, free = self._marks.person(who).done[same], self.open_to(who)[same]
        return QueryProgress(done=int(np.count_nonzero(done)), left=int(np.count_nonzero(free)))

    def skip(self, who: str, item: int) -> None:
        """Move an item to the end of an annotator's queue."""
        skipped = self._skipped.setdefault(who, {})
        skipped.pop(item, None)
        skipped[item] = None

    def skipped_last(self, who: str, items: Sequence[int]) -> list[int]:
        """Return items in their order, then those that the annotator skipped in the order of skipping."""
        place = {item: number for number, item in enumerate(self._skipped.get(who, {}), start=1)}
        return sorted(items, key=lambda item: place.get(item, 0))

    def next(self, holder: LeaseHolder) -> int | None:
        """Return the next item for a tab without assigning it; None if none is left."""
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
        if found is None:  # items of another tab of the annotator, which may have been closed
            return self._first(holder.who, free)
        again = self._repetition(holder.who, found, held | set(elsewhere))
        return found if again is None else again

    def open_to(self, who: str) -> NDArray[np.bool_]:
        """Return whether each item can currently be offered to an annotator."""
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
        """Return the order of the plan, shuffled queries with shuffled passages each, or all passages shuffled."""
        if self._pool.planned:
            return np.arange(len(self._pool.items), dtype=np.int32)
        if who not in self._orders:
            drawn = generator(self._seed, "review", "order", who)
            questions = len(self._pool.questions)
            places = drawn.permutation(questions)[self._questions] if self._by == "question" else self._questions * 0
            self._orders[who] = np.lexsort((drawn.random(len(places)), places)).astype(np.int32)
        return self._orders[who]

    def _repetition(self, who: str, fresh: int, held: set[int]) -> int | None:
        """Return an item that the annotator labelled earlier, if a repetition is due before the new item."""
        drawn = derive_seed(self._seed, "review", "repeat", who, self._pool.items[fresh].key)
        if (who, fresh) in self._preceded or drawn >= self._repeats * 2**64:
            return None
        self._preceded.add((who, fresh))
        person = self._marks.person(who)
        seen = self._shown.of(who)
        gone = person.twice | held | {self._pool.numbers[key] for key in seen if key in self._pool.numbers}
        old = [item for _, item in person.holding()[:-MIN_REPEAT_DISTANCE] if item not in gone]
        return old[drawn % len(old)] if old else None


ITEMS_AHEAD = 3  # items assigned to a tab in advance, so that a slow connection causes no delay


@dataclass(frozen=True)
class SessionSettings:
    """Settings of the queue.

    Attributes:
        seed: random seed of orders, overlap and repetitions.
        overlap: share of the items that two annotators label.
        repeats: share of the items that an annotator labels a second time, not marked as repetitions.
        prompt: name and version of the rubric that is shown.
        by: whether the passages of a query come together, or passages of all queries are mixed.
        blind: whether grades of models are hidden from all annotators.
    """

    seed: int = 0
    overlap: float = 0.2
    repeats: float = 0.05
    prompt: str = ""
    by: By = "question"
    blind: bool = True


class ReviewProgress(Frozen):
    """Progress of an annotator. `pace` is the median duration of the latest labels in seconds; None if not timed."""

    done: int
    left: int
    pace: float | None


class QueryProgress(Frozen):
    """Progress of an annotator in one query."""

    done: int
    left: int


class Receipt(Frozen):
    """Answer to each step of a tab.

    Attributes:
        line: id of the stored line; None if nothing was stored.
        last: id of the annotator's latest valid line.
        ahead: next items.
        queries: progress in the queries of these items.
        progress: progress in all queries.
    """

    line: str | None
    last: str | None
    ahead: tuple[ItemView, ...]
    queries: tuple[QueryProgress, ...]
    progress: ReviewProgress


class OwnLabel(Frozen):
    """A valid label of an annotator, and when it was stored (UTC)."""

    view: ItemView
    line: str
    at: datetime
    grade: int | None
    note: str


class OwnLabels(Frozen):
    """A page of an annotator's labels, latest first, and the number of labels that match."""

    labels: tuple[OwnLabel, ...]
    total: int


OWN_LABELS_AT_ONCE = 30


class PassageContext(Frozen):
    """Text before and after a passage in its source; empty if unknown."""

    before: str
    after: str


class Session:
    """Labelling of a pool by several annotators.

    Args:
        now: monotonic clock in seconds, for leases.
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
        self.shown.of("")  # reports an invalid line before the work starts
        self._leases = Leases(now)
        self._begin()

    def _begin(self) -> None:
        self._marks, self._read = ReviewMarks(self.pool.numbers), 0
        self._queue = ReviewQueue(self.pool, self._marks, self._leases, self.shown, self.settings)
        self._catch_up()

    def _catch_up(self) -> None:
        """Read new lines of the file; read it from the start if it has become shorter."""
        size = self.store.size
        if size < self._read:
            self._begin()
        elif size > self._read:
            for review, end in self.store.since(self._read):
                self._marks.note(review, self._read)
                self._read = end

    def known(self, who: str) -> int:
        """Return the number of valid labels under a name."""
        with self._lock:
            self._catch_up()
            return len(self._marks.person(who).marks)

    def upcoming(self, holder: LeaseHolder, qid: str | None = None) -> Receipt:
        """Return the next items of a tab, first those of the query `qid`.

        Raises:
            NotFoundError: the query does not exist.
            UsageError: the annotator has no passage left to grade for it.
        """
        with self._lock:
            self._catch_up()
            if qid is not None:
                self._prefer(holder, qid)
            return self._receipt(holder, None)

    def _prefer(self, holder: LeaseHolder, qid: str) -> None:
        numbers = [number for number, item in enumerate(self.pool.items) if item.qid == qid]
        if not numbers:
            raise NotFoundError(f"unknown query {qid!r}")
        free, others = self._queue.open_to(holder.who), {item for _, item in self._leases.others(holder)}
        wanted = [number for number in numbers if free[number] and number not in others]
        if not wanted:
            raise UsageError(f"you have no passage left to grade for query {qid!r}")
        for number in reversed(self._queue.skipped_last(holder.who, wanted)[:ITEMS_AHEAD]):
            self._leases.take(holder, number, first=True)

    def own(self, who: str, start: int, grade: int | None, text: str) -> OwnLabels:
        """Return an annotator's valid labels, latest first, from number `start`.

        Args:
            grade: only labels of this grade. 0 selects labels without a grade, and None selects all.
            text: only labels whose query or note contains it.
        """
        with self._lock:
            self._catch_up()
            person, wanted = self._marks.person(who), clean_unicode(text).casefold().strip()
            found = [
                (number, mark)
                for line, number in reversed(person.holding())
                if (mark := person.marks[number]).line == line
                and grade in (None, mark.grade or 0)
                and wanted in f"{self.pool.questions[self.pool.items[number].question]}\n{mark.note}".casefold()
            ]
            shown = found[start : start + OWN_LABELS_AT_ONCE]
        labels = (
            OwnLabel(
                view=view_of(self.pool, number),
                line=mark.line,
                at=next(self.store.since(mark.byte))[0].at,
                grade=mark.grade,
                note=mark.note,
            )
            for number, mark in shown
        )
        return OwnLabels(labels=tuple(labels), total=len(found))

    def grade(
        self,
        holder: LeaseHolder,
        item: str,
        grade: int | None,
        note: str,
        seconds: float | None,
        *,
        correct: bool = False,
    ) -> Receipt:
        """Store a grade; None means "cannot tell". With `correct`, it replaces the annotator's label of the item.

        Raises:
            UsageError: the grade is invalid.
            NotFoundError: the item does not exist.
            ProviderError: the file cannot be written; nothing is stored.
        """
        if grade is not None and not MIN_GRADE <= grade <= MAX_GRADE:
            raise UsageError(f"grade {grade} is outside {MIN_GRADE}..{MAX_GRADE}")
        with self._lock:
            self._catch_up()
            number, note = self.number(item), clean_unicode(note)
            held = self._marks.person(holder.who).marks.get(number)
            if held is None or held.sign != sign_of(grade, note, seconds):
                replaced = held.line if held is not None and correct else None
                self.store.append(self._review(holder.who, number, grade, note, seconds, replaced))
                self._catch_up()
            self._leases.release(holder.who, number)
            return self._receipt(holder, self._marks.person(holder.who).marks[number].line)

    def undo(self, holder: LeaseHolder, line: str | None) -> Receipt:
        """Withdraw a label of the annotator, the latest or the given line, and show its item next.

        Raises:
            UsageError: there is no such label.
        """
        with self._lock:
            self._catch_up()
            person = self._marks.person(holder.who)
            last = person.last()
            number = person.lines.get(line) if line is not None else last and last[1]
            if number is None:
                raise UsageError("there is no label to undo")
            held = person.marks.get(number)
            if held is not None and held.line == (line or held.line):
                self.store.append(self.withdrawal(holder.who, number, held.line))
                self._catch_up()
            self._leases.take(holder, number, first=True)
            return self._receipt(holder, None)

    def withdraw(self, holder: LeaseHolder, item: str) -> Receipt:
        """Show the item next, and first withdraw the annotator's label of it, if there is one.

        Raises:
            NotFoundError: the item does not exist.
        """
        with self._lock:
            self._catch_up()
            number = self.number(item)
            if (held := self._marks.person(holder.who).marks.get(number)) is not None:
                return self.undo(holder, held.line)
            self._leases.take(holder, number, first=True)
            return self._receipt(holder, None)

    def skip(self, holder: LeaseHolder, item: str) -> Receipt:
        """Move an item to the end of the queue.

        Raises:
            NotFoundError: the item does not exist.
        """
        with self._lock:
            self._catch_up()
            number = self.number(item)
            self._leases.release(holder.who, number)
            self._queue.skip(holder.who, number)
            return self._receipt(holder, None)

    def around(self, item: str) -> PassageContext:
        """Return the text around an item's passage.

        Raises:
            NotFoundError: the item does not exist.
        """
        before, after = self.pool.around(self.pool.passage(self.number(item)))
        return PassageContext(before=_text(before), after=_text(after))

    def number(self, item: str) -> int:
        """Return the number of an item, by its id on the page.

        Raises:
            NotFoundError: the item does not exist.
        """
        found = self.pool.numbers.get((item[:HEX], item[HEX:]))
        if found is None:
            raise NotFoundError("unknown passage; reload the page")
        return found

    def word(self, who: str, number: int) -> GradeReview | None:
        """Return the valid label of an annotator for an item, as stored; None if there is none."""
        with self._lock:
            self._catch_up()
            mark = self._marks.person(who).marks.get(number)
            found = None if mark is None else next(self.store.since(mark.byte))[0]
            return found if isinstance(found, GradeReview) else None

    def words_on(self, number: int) -> dict[str, ReviewMark]:
        """Return the valid labels of an item, by annotator."""
        with self._lock:
            self._catch_up()
            return self._marks.words_on(number)

    def undecided(self) -> dict[int, list[int]]:
        """Return the human grades of each item that is not adjudicated."""
        with self._lock:
            self._catch_up()
            return self._marks.undecided()

    def decision(self, number: int) -> ReviewDecision | None:
        """Return the valid adjudication of an item."""
        with self._lock:
            self._catch_up()
            return self._marks.decision(number)

    def decided_by(self, who: str) -> list[ReviewDecision]:
        """Return the valid adjudications of an annotator, latest first."""
        with self._lock:
            self._catch_up()
            return [*self._marks.decided_by(who)]

    def latest(self, who: str) -> int | None:
        """Return the item of an annotator's latest valid label; None without labels."""
        with self._lock:
            self._catch_up()
            last = self._marks.person(who).last()
            return last and last[1]

    def closed_to(self, who: str, numbers: Sequence[int]) -> list[bool]:
        """Return whether each item will no longer be offered to an annotator."""
        with self._lock:
            self._catch_up()
            return [not each for each in self._queue.open_to(who)[[*numbers]].tolist()]

    def show(self, who: str, number: int) -> None:
        """Record that an annotator is shown grades of others or of a model for an item.

        Raises:
            ProviderError: the record cannot be written; then nothing may be shown.
        """
        query, passage = self.pool.items[number].key
        self.shown.note(ShownRecord(who=who, at=datetime.now(UTC), query=query, passage=passage))

    def _receipt(self, holder: LeaseHolder, line: str | None) -> Receipt:
        while len(self._leases.of(holder)) < ITEMS_AHEAD and (number := self._queue.next(holder)) is not None:
            self._leases.take(holder, number)
        person = self._marks.person(holder.who)
        last = person.last()
        pace = round(median(person.seconds), 1) if person.seconds else None
        ahead = self._leases.of(holder)
        return Receipt(
            line=line,
            last=last and last[0],
            ahead=tuple(view_of(self.pool, number) for number in ahead),
            queries=tuple(self._queue.progress(holder.who, self.pool.items[number].question) for number in ahead),
            progress=ReviewProgress(done=len(person.marks), left=self._queue.left(holder.who), pace=pace),
        )

    def _review(
        self, who: str, number: int, grade: int | None, note: str, seconds: float | None, replaces: str | None = None
    ) -> GradeReview:
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
            replaces=replaces,
            prompt=self.settings.prompt,
            blind=self.settings.blind and not self.shown.knows(who, item.key),
            chance=self.pool.chances[number],
        )

    def withdrawal(self, who: str, number: int, line: str) -> Withdrawal:
        """Return a withdrawal of the line with that id, for an item."""
        item = self.pool.items[number]
        return Withdrawal(who=who, at=datetime.now(UTC), qid=item.qid, query=item.key[0], replaces=line)


def _text(passage: Passage | None) -> str:
    return "" if passage is None else join_wrapped_lines(clean_passage(passage.text))
