"""A query's ranking from its pool and the answers of its journal, whoever asks: the stage, an audit, an explanation.

The state of a ranking is a fold over its journal, and `Course` is the fold: rounds of batches out, their answers in.
The rank stage answers each round from the journal and asks the judge for what it lacks; `replay` answers from the
journal alone and says what it lacks. Nothing here asks anybody, reads a file or knows a configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from raggs.base.artifacts import JournalRecord, PruneRecord
from raggs.base.believed import JudgeProfile
from raggs.ranking import Pilot, Profile, Ranker, Ranking
from raggs.ranking.allocation import promise
from raggs.stages.floor import Parted, filled

MUTE = "nobody ordered them"
SPENT = "the budget ended"
SHARED = "the set's budget was spent"


@dataclass(frozen=True)
class KeptPool:
    """What the ranking of one query starts from.

    Attributes:
        ids, grades: the passages to be ranked, by fused rank, and the grade of each.
        followers: near-duplicates by the passage that stands for them.
    """

    qid: str
    ids: tuple[str, ...]
    grades: tuple[int, ...]
    followers: Mapping[str, tuple[str, ...]]


def kept_pool(qid: str, records: Iterable[PruneRecord]) -> KeptPool:
    """What pruning left of a query's pool."""
    kept = [record for record in records if record.kept and record.grade is not None]
    leaders = [(record.doc_id, record.grade) for record in kept if record.duplicate_of is None and record.grade]
    followers: dict[str, tuple[str, ...]] = {}
    for record in kept:
        if record.duplicate_of is not None:
            followers[record.duplicate_of] = (*followers.get(record.duplicate_of, ()), record.doc_id)
    return KeptPool(qid, tuple(doc_id for doc_id, _ in leaders), tuple(grade for _, grade in leaders), followers)


class Batch(NamedTuple):
    """Passages that are to be ordered together, as they are shown, and their place in the course of the ranking."""

    round: int
    slot: int
    shown: tuple[str, ...]

    def __str__(self) -> str:
        return f"round {self.round}, slot {self.slot}"


class Answers:
    """A query's journal entries by the batch that they answer."""

    def __init__(self, entries: Iterable[JournalRecord]) -> None:
        self._entries = {(entry.round, entry.slot): entry for entry in entries}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[JournalRecord]:
        return iter(self._entries.values())

    @property
    def known(self) -> list[JournalRecord]:
        """The orders that were there before anything was asked."""
        return sorted((entry for entry in self._entries.values() if entry.groups), key=lambda entry: entry.slot)

    @property
    def believed(self) -> JournalRecord | None:
        """The entry of what was learned of the judge; None where nothing was."""
        return next((entry for entry in self._entries.values() if entry.profile), None)

    @property
    def profile(self) -> JudgeProfile | None:
        """What was learned of the judge."""
        return None if self.believed is None else self.believed.profile

    def get(self, batch: Batch) -> JournalRecord | None:
        """The batch's entry; None where there is none, or one of other passages."""
        entry = self._entries.get(batch[:2])
        return entry if entry is not None and entry.shown == batch.shown else None

    def to(self, batches: Iterable[Batch]) -> tuple[list[JournalRecord], str | None]:
        """The entries of a round's batches, and what is wrong with the first that is no answer to its batch."""
        found = [(self.get(batch), batch) for batch in batches]
        wrong = next((self.fault(batch) for entry, batch in found if entry is None), None)
        return [entry for entry, _ in found if entry is not None], wrong

    def fault(self, batch: Batch) -> str | None:
        """What is wrong with the batch's entry, as a clause; None where nothing is."""
        entry = self._entries.get(batch[:2])
        if entry is None:
            return f"{batch} is missing"
        return None if entry.shown == batch.shown else f"{batch} shows other passages than the ranker asks for"


class Course:
    """A ranking on its way: each round's batches, then the answers to all of them, until there are no more.

    It ends where nobody spoke on any batch of a round, or where somebody is not paid to.

    Args:
        ranker: a fresh one.
        parallel: batches in a round, at most.
        pool: the passages, parted by the grade from which on they are ordered.
        top: how many leading positions matter.

    Attributes:
        asked, spent: batches so far, and what they cost in calls, as `rank.max_calls` counts them.
        ids: the passages that are ordered, by grade and fused rank: the order where nobody ever says anything of them.
        informed: whether the engine takes in orders that were there before.
    """

    def __init__(self, ranker: Ranker, parallel: int, pool: Parted, top: int) -> None:
        self.asked, self.spent = 0, 0.0
        self.ids = tuple(doc_id for doc_id, _ in sorted(pool.ordered, key=lambda item: -item[1]))
        self.informed = ranker.INFORMED
        self._silent, self._end = 0, ""
        self._drawn: tuple[Batch, ...] | None = None
        self._pool, self._top = pool, top
        self._ranker = ranker
        self._parallel = parallel
        self._round = -1

    def inform(self, entries: Sequence[JournalRecord]) -> None:
        """Take in the orders that were there before: a round of their own, before all others.

        Raises:
            ValueError: one is not of this pool.
        """
        self._round += bool(entries)
        for entry in entries:
            self._ranker.inform(entry.groups or (), entry.sharpness or 0.0)

    @property
    def upcoming(self) -> int:
        """The number of the next round."""
        return self._round + 1

    def pilot_round(self) -> tuple[Batch, ...]:
        """Lists of several lengths, from which is learned how the judge orders them; no round where there are none."""
        return self._given_out(self._numbered(lists)) if (lists := self._ranker.pilot_batches()) else ()

    def pilot(self) -> Pilot:
        """What the answers so far say of the judge."""
        return self._ranker.pilot()

    def believe(self, entry: JournalRecord) -> None:
        """Take in what was learned of the judge: a round of its own."""
        if (found := entry.profile) is not None:
            self._round += 1
            told = {name: value for name, value in found if name != "questions"}
            self._ranker.believe(Profile(**told))

    def next_round(self) -> tuple[Batch, ...]:
        """The next batches; none at the end. All of the last ones must have been learnt."""
        found, self._drawn = self.draw(), None
        return self._given_out(found)

    def draw(self) -> tuple[Batch, ...]:
        """The next batches, which are not given out yet; none at the end."""
        if self._drawn is None:
            self._drawn = () if self._end else self._numbered(self._ranker.next_batches(self._parallel))
        return self._drawn

    @property
    def promise(self) -> float:
        """What a call of what is drawn is expected to remove; comparable between pools."""
        return promise(self._ranker.doubt, self.spent, len(self.ids), self._top)

    def price(self, batches: Sequence[Batch]) -> float:
        """What batches cost, in calls, as `rank.max_calls` counts them."""
        return self._ranker.price([batch.shown for batch in batches])

    def leave(self) -> None:
        """Nothing more is asked here, since all questions together have no more to spend."""
        self._end = SHARED

    def _given_out(self, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        self.asked += len(batches)
        self.spent += self.price(batches)
        return batches

    def _numbered(self, lists: Sequence[Sequence[str]]) -> tuple[Batch, ...]:
        self._round += 1
        return tuple(Batch(self._round, slot, tuple(shown)) for slot, shown in enumerate(lists))

    def learn(self, entries: Sequence[JournalRecord]) -> None:
        """Take in the answers to a whole round, in the order of its batches, in whatever order they were given."""
        for entry in entries:
            self._take(entry.shown, entry.order)
        silent = sum(entry.silent is not None for entry in entries)
        self._silent, self._end = self._silent + silent, MUTE if 0 < silent == len(entries) else ""

    def cut(self, batches: Sequence[Batch], entries: Sequence[JournalRecord]) -> None:
        """Take in those answers to a round that there are, and end: nobody is paid for the others."""
        orders = {entry.slot: entry.order for entry in entries}
        for batch in batches:
            self._take(batch.shown, orders.get(batch.slot))
        unpaid = len(batches) - len(entries)
        self.asked -= unpaid
        self._silent += unpaid + sum(entry.silent is not None for entry in entries)
        self._end = SPENT

    def _take(self, shown: Sequence[str], order: Sequence[str] | None) -> None:
        if order is None:
            self._ranker.skip(shown)
        else:
            self._ranker.observe(order)

    @property
    def told_by_length(self) -> Mapping[int, float]:
        """See `Ranker.told_by_length`."""
        return self._ranker.told_by_length

    def ranking(self) -> Ranking:
        """By all answers so far."""
        found = self._ranker.ranking()
        if self._silent:
            found = replace(found, skipped=found.skipped - self._silent)
        if self._end:
            order = found.order if any(found.exposures) else self.ids
            found = replace(found, stop_reason=self._end, order=order)
        return filled(found, self._pool, self._top)


@dataclass(frozen=True)
class Replay:
    """What a journal leads to: a ranking, None for an empty pool or where an answer is missing; and what is wrong."""

    ranking: Ranking | None
    problem: str | None = None


def replay(course: Course | None, answers: Answers, *, spent: bool = False, shared: bool = False) -> Replay:
    """Follow a course by the journal alone.

    Args:
        course: at its start; None for an empty pool, which nobody ranks.
        answers: all that the journal holds.
        spent: the money ended before the ranking did: it ends with the first round that lacks an answer.
        shared: all questions share one budget, so that a ranking may end before any of its rounds.
    """
    if course is None:
        return Replay(None, f"{len(answers)} entries for an empty pool" if answers else None)
    try:
        course.inform(answers.known)
    except (ValueError, TypeError) as error:
        return Replay(None, f"round 0 holds an order that cannot be taken in: {error}")
    left = len(answers) - len(answers.known) - (answers.believed is not None)
    for batches in rounds(course, answers.believed):
        if shared and not spent and not left:
            course.leave()
            break
        entries, wrong = answers.to(batches)
        left -= len(entries)
        if wrong and spent:
            course.cut(batches, entries)
            break
        if wrong:
            return Replay(None, wrong)
        course.learn(entries)
    return Replay(course.ranking(), beyond(left))


def beyond(left: int) -> str | None:
    """What is wrong where so many entries are left at the end of a course."""
    return f"{left} entries beyond the end" if left else None


def rounds(course: Course, told: JournalRecord | None) -> Iterator[tuple[Batch, ...]]:
    """All rounds of a course; before each next one the answers to the last must be learned."""
    if told is not None:
        if course.upcoming < told.round:
            yield course.pilot_round()
        course.believe(told)
    while batches := course.next_round():
        yield batches
