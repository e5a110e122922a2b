"""Which item comes next for whom, in an order of the reviewer's own, drawn from the seed: by question or by passage.

Every item is wanted from one reviewer, a share of them from two; what others have said, hold or decided is not asked.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from raggs.base.seeds import derive_seed, generator
from raggs.parts.reviews.shown import ShownStore
from raggs.reviewing.leases import Holder, Leases
from raggs.reviewing.marks import Marks
from raggs.reviewing.pool import Pool

APART = 20  # words between an item and its repetition, at least


By = Literal["question", "passage"]


class Sharing(Protocol):
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


class Queue:
    """The order of the work.

    Args:
        shown: whom others' words were shown on what: such an item does not come again, since nobody could be blind.
    """

    def __init__(self, pool: Pool, marks: Marks, leases: Leases, shown: ShownStore, sharing: Sharing) -> None:
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

    def next(self, holder: Holder) -> int | None:
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
        old = [item for _, item in person.holding()[:-APART] if item not in gone]
        return old[drawn % len(old)] if old else None
