"""What holds now: all lines of reviews.jsonl folded, by question and passage.

Of each reviewer the latest word on an item counts, by the order of lines, whatever their clocks said. What was taken
back was never said: the word before it holds again, and so does one whose place it took. Where several reviewers
spoke, what they agree on holds; else what was settled; else the lower median, and the conflict stays visible.
"Cannot tell" is an answer, but no grade: an item on which nobody could tell has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median_low
from typing import Literal, Protocol, TypeVar

from raggs.parts.reviews.models import GradeReview, Key, OrderReview, Review

How = Literal["one", "agreed", "settled", "median"]


@dataclass(frozen=True)
class Settled:
    """The grade of a passage by people.

    Attributes:
        grade: 1 to 5.
        by: who gave grades, in the order of their words.
        how: by one reviewer, by several of one mind, by a decision among them, or by their lower median.
    """

    grade: int
    by: tuple[str, ...]
    how: How

    @property
    def conflict(self) -> bool:
        """Whether reviewers differ, and nobody has decided."""
        return self.how == "median"


@dataclass
class Reviewed:
    """All that people say now.

    Attributes:
        grades: by item, each reviewer's word on it.
        blind: by item, what each said before they had seen a machine's grade; also where they changed it afterwards.
        orders: each reviewer's orders, by question and the passages that were shown.
        latest_order: of each reviewer who gave orders, the latest.
        settling: by item, the decision between differing words.
        unmatched: ids that withdrawals and replacements name, of lines that there are not.
    """

    grades: dict[Key, dict[str, GradeReview]] = field(default_factory=dict)
    blind: dict[Key, dict[str, GradeReview]] = field(default_factory=dict)
    orders: dict[tuple[str, frozenset[str]], dict[str, OrderReview]] = field(default_factory=dict)
    latest_order: dict[str, OrderReview] = field(default_factory=dict)
    settling: dict[Key, GradeReview] = field(default_factory=dict)
    unmatched: list[str] = field(default_factory=list)

    def settled(self, key: Key) -> Settled | None:
        """The grade that holds for an item; None where nobody gave one."""
        words = [word for word in self.grades.get(key, {}).values() if word.grade is not None]
        decided = self.settling.get(key)
        if decided is not None and decided.grade is not None:
            return Settled(decided.grade, tuple(dict.fromkeys([*(word.who for word in words), decided.who])), "settled")
        if not words:
            return None
        grades, by = [word.grade or 0 for word in words], tuple(word.who for word in words)
        if len(set(grades)) == 1:
            return Settled(grades[0], by, "agreed" if len(words) > 1 else "one")
        return Settled(median_low(grades), by, "median")

    def items(self) -> dict[Key, Settled]:
        """Every item that has a grade."""
        keys = dict.fromkeys([*self.grades, *self.settling])
        return {key: settled for key in keys if (settled := self.settled(key)) is not None}

    @property
    def unseen(self) -> Reviewed:
        """What people said before they had seen what a machine said, also where they changed it afterwards."""
        settling = {key: word for key, word in self.settling.items() if word.blind}
        return replace(self, grades=self.blind, settling=settling)

    def stale(self, present: Mapping[tuple[str, str], Key]) -> list[GradeReview]:
        """Words on passages, or for questions, whose text is another one now. They are kept, and do not count.

        Args:
            present: by query id and passage id, what is filed under these ids now.
        """
        known = set(present.values())
        return [
            word
            for key, words in self.grades.items()
            for word in words.values()
            if key not in known and (word.qid, word.doc_id) in present
        ]


def fold(reviews: Iterable[Review]) -> Reviewed:
    """What holds after all lines, in their order."""
    found, named = Reviewed(), [(line.id, line) for line in reviews]
    for review in holding([each for each in named if each[1].blind], []):
        if isinstance(review, GradeReview) and not review.settles:
            _note_word(found.blind, review)
    for review in holding(named, found.unmatched):
        if isinstance(review, GradeReview):
            _note_grade(found, review)
        elif isinstance(review, OrderReview):
            found.orders.setdefault((review.query, frozenset(review.passages)), {})[review.who] = review
            found.latest_order[review.who] = review
    return found


def standing(reviews: Iterable[Review]) -> Iterator[Review]:
    """Grades and orders that nobody took back, and whose place none such took; in their order."""
    yield from holding([(line.id, line) for line in reviews], [])


class Spoken(Protocol):
    """What of a line decides whether it, and others, hold."""

    @property
    def who(self) -> str:
        """The reviewer."""

    @property
    def replaces(self) -> str | None:
        """The line whose place it takes, or that it takes back."""

    @property
    def takes_back(self) -> bool:
        """Whether it does nothing else."""


S = TypeVar("S", bound=Spoken)


def holding(lines: Sequence[tuple[str, S]], unmatched: list[str]) -> Iterator[S]:
    """As `standing`, of lines with their ids; `unmatched` gets what is named and is no earlier line of the same one."""
    places = dict[str, int]()
    names = dict[int, int]()  # by line, the line that it names
    for number, (name, line) in enumerate(lines):
        if line.replaces is not None:
            old = places.get(line.replaces)
            if old is None or lines[old][1].who != line.who or lines[old][1].takes_back:
                unmatched.append(line.replaces)
            else:
                names[number] = old
        places[name] = number
    gone = {old for number, old in names.items() if lines[number][1].takes_back}
    gone |= {old for number, old in names.items() if number not in gone}
    yield from (line for number, (_, line) in enumerate(lines) if number not in gone and not line.takes_back)


def _note_grade(found: Reviewed, review: GradeReview) -> None:
    if review.settles:
        found.settling.pop(review.key, None)  # so that the latest decision stands last
        found.settling[review.key] = review
    else:
        _note_word(found.grades, review)


def _note_word(grades: dict[Key, dict[str, GradeReview]], review: GradeReview) -> None:
    words = grades.setdefault(review.key, {})
    words.pop(review.who, None)  # so that the latest word stands last
    words[review.who] = review
