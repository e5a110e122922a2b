"""What all engines share: checking the input, handing out rounds, folding answers in their order.

Passages are numbered by the sorted order of their ids. The order in which a pool was listed decides only how passages
that hardly gain anything stand among each other.
Renaming passages without changing their sorted order changes nothing but names; any other renaming changes
which random numbers meet which passage and how exact ties fall. Randomness comes from (seed, round, slot) alone.

The same presentation is never asked twice: a cached or deterministic judge would repeat itself, and a repetition is
no second opinion. Where all presentations of a batch were shown, which happens to small batches, others are shown at
random instead; a pool is done once there are no others.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.base.seeds import generator
from raggs.ranking.base import Ranker, Ranking

LOWEST, HIGHEST = 1.0, 5.0
ROUNDING = 1e-9
TRIES = 200  # draws for a new presentation of the chosen batch, before other batches are tried


class RoundRanker(Ranker):
    """The bookkeeping of a `Ranker`. An engine adds `_choose`, `_learn`, `_settled` and `ranking`.

    Attributes:
        ids: the pool, sorted.
        prior: starting scores aligned with `ids`: the grades; ungraded passages start at the mean of the others,
            or in the middle of the scale where nothing is graded.
        size: passages in a batch, at most.
        calls, skipped: answers folded so far, by kind.
        spent: what they cost, in calls.
        informed: orders that were there beforehand.

    Raises:
        ValueError: an argument cannot be right.
    """

    VERSION: ClassVar[int] = 1

    def __init__(
        self,
        ids: Sequence[str],
        grades: Sequence[float | None],
        *,
        top: int,
        batch_size: int,
        seed: int,
        max_calls: int,
    ) -> None:
        _check(ids, grades, top, batch_size, max_calls)
        by_id = sorted(range(len(ids)), key=lambda position: ids[position])
        self.ids: tuple[str, ...] = tuple(ids[position] for position in by_id)
        self._listed = np.array(by_id)  # by passage number: its place among the ids as they were given
        self.prior = start_scores([grades[position] for position in by_id])
        self.top = top
        self.size = min(batch_size, len(self.ids))
        self.max_calls = max_calls
        self.calls = 0
        self.skipped = 0
        self.spent = 0.0
        self.informed = 0
        self._seed = seed
        self._told_for: list[Mapping[int, float]] = []  # by each choice of a length: what lists told for their price
        self._rounds = 0
        self._number = {name: index for index, name in enumerate(self.ids)}
        self._shown: set[tuple[int, ...]] = set()
        self._lists: list[Ints] = []  # by slot of the round: passage numbers in the order of presentation
        self._waiting: list[frozenset[str] | None] = []  # by slot of the round; None once answered
        self._answers: dict[int, Ints | None] = {}  # answered, not folded yet: an earlier slot is still awaited

    @abstractmethod
    def _choose(self, count: int, rng: np.random.Generator) -> list[Ints]:
        """At least one and at most `count` batches of distinct passage numbers, `size` at most, in any order."""

    @abstractmethod
    def _learn(self, order: Ints, shown: Ints) -> None:
        """Fold one answer: passage numbers from best to worst, and as they were shown. `calls` counts it already."""

    @abstractmethod
    def _settled(self) -> str | None:
        """The engine's own reason to stop, if any."""

    @abstractmethod
    def ranking(self) -> Ranking:
        """See `Ranker.ranking`."""

    @property
    def stop_reason(self) -> str | None:
        """Why nothing more would be asked, judged by the answers folded so far."""
        if len(self.ids) == 1:
            return "nothing to judge"
        if (self.calls or self.informed) and (reason := self._settled()):
            return reason
        if not self._unshown():
            return "every presentation was shown"
        return "cap" if self._affordable() < 1 else None

    @property
    def told_by_length(self) -> Mapping[int, float]:
        """See `Ranker.told_by_length`: over the choices among all lengths; near the end some cost too much."""
        most = max(map(len, self._told_for), default=0)
        free = [told for told in self._told_for if len(told) == most]
        return {length: sum(told[length] for told in free) / len(free) for length in (free[0] if free else ())}

    def _price(self, _size: int) -> float:
        """Of a batch, in calls."""
        return 1.0

    def price(self, batches: Sequence[Sequence[str]]) -> float:
        """See `Ranker.price`."""
        return sum(self._price(len(batch)) for batch in batches)

    def _affordable(self) -> int:
        """How many more batches may be asked, at most."""
        return int((self.max_calls - self.spent + ROUNDING) / self._price(2))

    @property
    def done(self) -> bool:
        """See `Ranker.done`."""
        return not self._waiting and self.stop_reason is not None

    def next_batches(self, count: int) -> tuple[tuple[str, ...], ...]:
        """See `Ranker.next_batches`."""
        if count < 1:
            raise ValueError(f"a round needs at least one batch, not {count}")
        if self._waiting:
            open_slots = sum(batch is not None for batch in self._waiting)
            raise ValueError(f"{open_slots} batches of the last round are neither observed nor skipped")
        if self.done:
            return ()
        count = min(count, self._affordable(), self._unshown())
        return self._open(self._choose(count, generator(self._seed, "choice", self._rounds)))

    def _open(self, chosen: Sequence[Ints]) -> tuple[tuple[str, ...], ...]:
        """A round of these batches, shuffled."""
        self._lists = [self._present(members, slot) for slot, members in enumerate(chosen)]
        batches = [tuple(self.ids[index] for index in shown) for shown in self._lists]
        self._rounds += 1
        self._waiting = [frozenset(batch) for batch in batches]
        return tuple(batches)

    def observe(self, order: Sequence[str]) -> None:
        """See `Ranker.observe`."""
        self._answer(order, np.array([self._number.get(name, -1) for name in order], dtype=np.int64))

    def skip(self, batch: Sequence[str]) -> None:
        """See `Ranker.skip`."""
        self._answer(batch, None)

    def _numbered(self, groups: Sequence[Sequence[str]]) -> list[list[int]]:
        """An order given beforehand in passage numbers, checked."""
        names = [name for group in groups for name in group]
        if self._rounds:
            raise ValueError("an order given beforehand comes before the first round")
        if unknown := sorted(set(names) - self._number.keys()):
            raise ValueError(f"not in the pool: {', '.join(unknown)}")
        if len(set(names)) < len(names) or len(groups) < 2 or not all(groups):
            raise ValueError("an order has two groups or more, and names nobody twice")
        return [[self._number[name] for name in group] for group in groups]

    def _answer(self, names: Sequence[str], answer: Ints | None) -> None:
        members = frozenset(names)
        if len(members) != len(names) or members not in self._waiting:
            raise ValueError(f"not a permutation of an outstanding batch: {', '.join(map(str, names)) or 'nothing'}")
        slot = self._waiting.index(members)
        self._waiting[slot] = None
        self._answers[slot] = answer
        self._fold()

    def _fold(self) -> None:
        """Fold the answers that no earlier slot holds up; close the round after the last."""
        awaited = next((slot for slot, batch in enumerate(self._waiting) if batch is not None), len(self._waiting))
        for slot in sorted(slot for slot in self._answers if slot < awaited):
            answer = self._answers.pop(slot)
            self.spent += self._price(self._lists[slot].size)
            if answer is None:
                self.skipped += 1
            else:
                self.calls += 1
                self._learn(answer, self._lists[slot])
        if awaited == len(self._waiting):
            self._waiting = []

    def _present(self, members: Ints, slot: int) -> Ints:
        rng = generator(self._seed, "presentation", self._rounds, slot)
        shown, tries = rng.permutation(members), 1
        while tuple(shown.tolist()) in self._shown:  # ends: a round asks for no more presentations than are left
            among = members if tries < TRIES else np.arange(len(self.ids))
            shown, tries = rng.permutation(among)[: members.size], tries + 1
        self._shown.add(tuple(shown.tolist()))
        return shown

    def _unshown(self) -> int:
        """How many presentations are left: few in small pools, more than anyone asks for in others."""
        return math.perm(len(self.ids), self.size) - len(self._shown)


def given(ids: Sequence[str], grades: Mapping[str, float | None]) -> Flags:
    """Which of the ids have a grade."""
    return np.array([grade is not None and not math.isnan(grade) for grade in map(grades.__getitem__, ids)])


def known_keys(prior: Floats, listed: Ints) -> Floats:
    """Below 0, highest for the passage that stands first by what is known: by grade, then as the pool was listed."""
    line = np.lexsort((listed, -prior))
    keys = np.empty(prior.size)
    keys[line] = -1.0 - np.arange(prior.size)
    return keys


def start_scores(grades: Sequence[float | None]) -> Floats:
    """Grades as scores; missing ones at the mean of the others, or at 3 where there are none."""
    scores = np.array([math.nan if grade is None else float(grade) for grade in grades])
    missing = np.isnan(scores)
    scores[missing] = (LOWEST + HIGHEST) / 2 if missing.all() else scores[~missing].mean()
    return scores


def _check(ids: Sequence[str], grades: Sequence[float | None], top: int, batch_size: int, max_calls: int) -> None:
    if not ids:
        raise ValueError("there is nothing to rank: the pool is empty")
    if len(set(ids)) != len(ids):
        twice = sorted(name for name in set(ids) if list(ids).count(name) > 1)
        raise ValueError(f"ids must be distinct; given more than once: {', '.join(twice[:5])}")
    if len(grades) != len(ids):
        raise ValueError(f"each id needs a grade or None: {len(ids)} ids, {len(grades)} grades")
    for name, grade in zip(ids, grades, strict=True):
        if grade is not None and not math.isnan(grade) and not LOWEST <= grade <= HIGHEST:
            raise ValueError(f"the grade of {name} must lie in {LOWEST:g} to {HIGHEST:g} or be NaN, not {grade}")
    for what, value, least in (("top", top, 1), ("batch_size", batch_size, 2), ("max_calls", max_calls, 0)):
        if value < least:
            raise ValueError(f"{what} must be at least {least}, not {value}")
