"""Who has said what of which item: what queue and decisions need of reviews.jsonl, in little memory.

The rules are those of `raggs.parts.reviews.folding`: each reviewer's latest word on an item holds, by the order of
lines; a line that takes another's place ends that one if it is of the same reviewer; what is taken back was never said.
A test compares them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raggs.parts.reviews.models import GradeReview, Key, Review, Withdrawal

LATEST = 20  # words of which the pace is told


class Mark(NamedTuple):
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


class Decision(NamedTuple):
    """What somebody decided on an item."""

    line: str
    who: str
    item: int
    grade: int | None
    note: str


@dataclass
class Person:
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
    marks: dict[int, Mark] = field(default_factory=dict)
    older: dict[int, tuple[Mark, ...]] = field(default_factory=dict)
    stack: list[tuple[str, int]] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    twice: set[int] = field(default_factory=set)
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=LATEST))

    def said(self, item: int) -> tuple[Mark, ...]:
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


class Marks:
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
        self._decided = dict[str, Decision]()  # by line, in their order
        self._gone = set[str]()  # lines that were taken back
        self._named = dict[str, tuple[str, str]]()  # who and what, by line that takes that one's place
        self._replaced = Counter[str]()  # how many lines that hold take a line's place
        self._people = dict[str, Person]()

    def person(self, who: str) -> Person:
        """A reviewer, who may have said nothing yet."""
        if who not in self._people:
            self._people[who] = Person(np.zeros(len(self._numbers), np.bool_))
        return self._people[who]

    def words_on(self, item: int) -> dict[str, Mark]:
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

    def decision(self, item: int) -> Decision | None:
        """What holds as decided on an item."""
        lines = reversed(self._decisions.get(item, ()))
        return next((self._decided[line] for line in lines if self._up(line)), None)

    def decided_by(self, who: str) -> Iterator[Decision]:
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
            self._decided[review.id] = Decision(review.id, review.who, item, review.grade, review.note)
            self.settled[item] = True
        else:
            self._say(item, review, byte)

    def _say(self, item: int, review: GradeReview, byte: int) -> None:
        person, line = self.person(review.who), review.id
        if person.done[item]:
            person.twice.add(item)
        sign = sign_of(review.grade, review.note, review.seconds)
        words = (*person.said(item), Mark(line, sign, review.grade, review.note, byte))
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

    def _stand(self, who: str, item: int, words: tuple[Mark, ...]) -> None:
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
