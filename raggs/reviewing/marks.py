"""Who has said something of which item: what the queue needs of reviews.jsonl, in little memory.

The rules are those of `raggs.reviews.folding`: each reviewer's latest word on an item holds, by the order of lines, and
a line that takes another's place, or takes it back, ends that one if it is of the same reviewer. A test compares them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raggs.reviews.models import GradeReview, Key, Review

LATEST = 20  # words of which the pace is told


class Mark(NamedTuple):
    """A reviewer's word on an item that holds. `sign`: of grade, note and seconds, by which it is known when it comes
    again."""

    line: str
    sign: int


@dataclass
class Person:
    """A reviewer.

    Attributes:
        done: by item, whether a word of theirs holds.
        marks: that word.
        stack: ids and items of their words, oldest first; those that hold no longer too.
        lines: the item of each line.
        twice: items that they graded again without replacing what they had said.
        seconds: of the latest words.
    """

    done: NDArray[np.bool_]
    marks: dict[int, Mark] = field(default_factory=dict)
    stack: list[tuple[str, int]] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    twice: set[int] = field(default_factory=set)
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=LATEST))

    def holding(self) -> list[tuple[str, int]]:
        """Their words that hold, oldest first."""
        self.stack = [(line, item) for line, item in self.stack if item in self.marks and self.marks[item].line == line]
        return self.stack

    def last(self) -> tuple[str, int] | None:
        """Their latest word that holds: line and item."""
        while self.stack:
            line, item = self.stack[-1]
            if item in self.marks and self.marks[item].line == line:
                return line, item
            self.stack.pop()
        return None


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
        self._settling = dict[int, tuple[str, str]]()  # line and reviewer, by item
        self._people = dict[str, Person]()

    def person(self, who: str) -> Person:
        """A reviewer, who may have said nothing yet."""
        if who not in self._people:
            self._people[who] = Person(np.zeros(len(self._numbers), np.bool_))
        return self._people[who]

    def note(self, review: Review) -> None:
        """Take a line in. Lines come in their order."""
        if review.replaces is not None:
            self._take_back(review.who, review.replaces)
        item = self._numbers.get(review.key) if isinstance(review, GradeReview) else None
        if item is None or not isinstance(review, GradeReview):
            return
        if review.settles:
            self._settling[item] = review.id, review.who
            self.settled[item] = True
        else:
            self._say(item, review)

    def _say(self, item: int, review: GradeReview) -> None:
        person, line = self.person(review.who), review.id
        if person.done[item]:
            person.twice.add(item)
        else:
            person.done[item] = True
            self.words[item] += 1
        person.marks[item] = Mark(line, sign_of(review.grade, review.note, review.seconds))
        person.stack.append((line, item))
        person.lines[line] = item
        if review.seconds is not None:
            person.seconds.append(review.seconds)

    def _take_back(self, who: str, line: str) -> None:
        for item, (settling, decider) in [*self._settling.items()]:
            if (settling, decider) == (line, who):
                del self._settling[item]
                self.settled[item] = False
        person = self.person(who)
        number = person.lines.get(line)
        if number is not None and number in person.marks and person.marks[number].line == line:
            del person.marks[number]
            person.done[number] = False
            self.words[number] -= 1
