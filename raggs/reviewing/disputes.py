"""Where those who graded a passage differ: two people, or people and a model; most important first.

What is important is told by whoever weighs them: what a decision would do to the verdicts on systems, or else how far
the grades are apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from raggs.base.frozen import Frozen
from raggs.parts.reviews.models import Key
from raggs.reviewing.machine import Machine
from raggs.reviewing.pool import Pool

Kind = Literal["people", "model"]


@dataclass(frozen=True, slots=True)
class Dispute:
    """An item on which grades differ, and nobody has decided.

    Attributes:
        kind: whether people differ, or people of one mind and a model.
        grades: of everybody, people first, then models.
    """

    number: int
    key: Key
    kind: Kind
    grades: tuple[int, ...]

    @property
    def apart(self) -> int:
        """Grades between the lowest and the highest."""
        return max(self.grades) - min(self.grades)


class Pull(Frozen):
    """The verdict for which deciding an item does most.

    Attributes:
        one, other, measure: two systems, and by what they are compared.
        apart: how far they are, as labels stand.
        moves: how far a grade that somebody gave moves that, at most.
    """

    one: str
    other: str
    measure: str
    apart: float
    moves: float


@dataclass(frozen=True)
class Weights:
    """What deciding is worth.

    Attributes:
        told: by what, or why not by what it would do to verdicts; a sentence.
        impact: whether it is by that.
        worth: by item, 0 and up.
        why: by item, the verdict that it is about.
    """

    told: str
    impact: bool = False
    worth: Mapping[Key, float] = field(default_factory=dict)
    why: Mapping[Key, Pull] = field(default_factory=dict)


Weigh = Callable[[tuple[Dispute, ...]], Weights]


def disputes(pool: Pool, undecided: Mapping[int, Sequence[int]], machine: Machine) -> Iterator[Dispute]:
    """Every item on which somebody differs, among those on which nobody has decided, with people's grades."""
    judged = machine.all_grades()
    for number, people in undecided.items():
        grades = (*people, *(grade for row in judged if (grade := row[number])))
        if len({*grades}) > 1:
            kind: Kind = "people" if len({*people}) > 1 else "model"
            yield Dispute(number, pool.items[number].key, kind, grades)


def by_size(_: tuple[Dispute, ...]) -> Weights:
    """Weigh by how far the grades are apart alone."""
    return Weights("no systems are compared")


class Weighed:
    """Disputes by their worth; weighed again only when there are others than before.

    Deciding one leaves the others' worth nearly as it was, and weighing a large run takes seconds.
    """

    def __init__(self, weigh: Weigh) -> None:
        self._weigh, self._known = weigh, frozenset[Key]()
        self.weights = Weights("")

    def weighed(self, found: Iterable[Dispute]) -> tuple[Dispute, ...]:
        """All of them, weighed where that is needed; in no order."""
        all_of = tuple(found)
        keys = frozenset(each.key for each in all_of)
        if not keys <= self._known or not self.weights.told:
            self._known, self.weights = keys, self._weigh(all_of)
        return all_of

    def place(self, each: Dispute) -> tuple[float, int, int]:
        """Where one stands among the others, smaller first: by its worth, then the farthest apart."""
        return -self.weights.worth.get(each.key, 0.0), -each.apart, each.number
