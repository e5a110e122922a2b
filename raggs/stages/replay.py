"""A query's ranking from its pool and the answers of its journal, whoever asks: the stage, an audit, an explanation.

The state of a ranking is a fold over its journal, and `RankingProcess` is the fold: rounds of batches out, their
answers in. The rank stage answers each round from the journal and asks the judge for what it lacks; `replay` answers
from the journal alone and says what it lacks. Nothing here asks anybody, reads a file or knows a configuration.

One query's batches and who answers them: the journal, else the judge, whose answer is noted before it is used.

Passages that are not worth an order, below the others: by grade, then fused rank, and marked.

Nobody was asked about them, and what is said of them says so: equals are as good as tied, between others the grades
alone speak, each place of their block is plausible, and they have no share in the wrongly ordered pairs that are
expected. None can stand above one that was ordered, though a grade that is one too low may have brought it here.

What a few questions teach of the judge before all are ranked, where the length of lists is open.

The pilot's questions are drawn by their ids, so that the same ones are asked in every run over the same questions.
Their first lists have several lengths; from all answers together it is learned how sharp the judge is, how its care
falls along a list, and what a long list costs it. These lists are paid once: they are the first round of their own
questions' rankings. What was learned goes into every question's journal, and its ranking is a fold over that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from statistics import NormalDist
from typing import NamedTuple

from raggs.base.artifacts import MAX_GRADE, JournalRecord, JudgeProfile, Passage, PruneRecord, Query
from raggs.base.errors import BudgetError
from raggs.base.hashing import derive_seed
from raggs.base.judge_health import STOP_BUDGET, STOP_NO_ORDER, STOP_NO_RELEVANT, STOP_SHARED_BUDGET
from raggs.llm.prices import estimate_tokens
from raggs.parts.judges import TYPICAL, Judge, KnownOrder, OrderPrice
from raggs.ranking import Pilot, Profile, Ranker, Ranking
from raggs.ranking.base import PILOT_SIZES, TYPICAL_LENGTH
from raggs.ranking.bayes import expected_loss_reduction
from raggs.stages.base import Journal

TOO_FEW = "fewer than two reach the floor"
SPREAD = 0.7  # grades: a utility strays by 0.5 from the deserved grade, and one grade in four is one off
SLIPS = ((-1, 0.125), (0, 0.75), (1, 0.125))
STRAYING = NormalDist(0.0, 0.5 * 2**0.5)  # of the difference of two utilities

Graded = tuple[str, int]


@dataclass(frozen=True)
class PartedPool:
    """A pool parted by a floor.

    Attributes:
        ordered: what is put before the judge, by fused rank; of a pool in which nothing reaches the floor the first of
            the others, since an engine needs a pool.
        below: by grade, then fused rank.
        reached: how many reach the floor.
        too_few: why no judge is called if fewer than two reach the floor.
    """

    ordered: tuple[Graded, ...]
    below: tuple[Graded, ...]
    reached: int
    too_few: str = TOO_FEW


def part_pool(pool: Sequence[Graded], floor: int, min_best: int = 1) -> PartedPool:
    """A pool, which is not empty and stands by fused rank, parted by the grade from which on passages are ordered.

    Where a single one reaches the floor, there is nothing to ask. If no grade reaches `min_best`, all are below.
    """
    ranked = max(grade for _, grade in pool) >= min_best
    least = floor if ranked else MAX_GRADE + 1
    reached = tuple(item for item in pool if item[1] >= least)
    below = tuple(sorted((item for item in pool if item[1] < least), key=lambda item: -item[1]))
    return PartedPool(reached or below[:1], below, len(reached), TOO_FEW if ranked else STOP_NO_RELEVANT)


def fill_ranking(ranking: Ranking, pool: PartedPool, top: int) -> Ranking:
    """A ranking of the ordered ones, with all others below."""
    kept, count = pool.reached, len(pool.below)
    if not count:
        return ranking
    size, grades = kept + count, dict(pool.ordered)
    told = [*(grades[doc_id] for doc_id in ranking.order[:kept][-1:]), *(grade for _, grade in pool.below)]
    sure = ranking.position_confidence[: max(kept - 1, 0)]
    share = max(0, min(top, size) - kept) / count
    return replace(
        ranking,
        order=(*ranking.order[:kept], *(doc_id for doc_id, _ in pool.below)),
        scores=(*ranking.scores[:kept], *(float(grade) for _, grade in pool.below)),
        sigma=(*ranking.sigma[:kept], *(SPREAD,) * count),
        exposures=(*ranking.exposures[:kept], *(0,) * count),
        position_confidence=(*sure, *(win_probability(better - worse) for better, worse in pairwise(told)), 1.0),
        rank_low=(*ranking.rank_low[:kept], *(kept + 1,) * count),
        rank_high=(*ranking.rank_high[:kept], *(size,) * count),
        membership=(*ranking.membership[:kept], *(share,) * count),
        stop_reason=pool.too_few if kept < 2 else ranking.stop_reason,
        unordered=count,
    )


def win_probability(gap: int) -> float:
    """Chance that a passage truly stands above one whose grade is `gap` lower, by the grades alone; of equals half."""
    chances = (STRAYING.cdf(gap + one - other) * p * q for (one, p), (other, q) in product(SLIPS, SLIPS))
    return round(sum(chances), 4)


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


class JournalAnswers:
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


class RankingProcess:
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

    def __init__(self, ranker: Ranker, parallel: int, pool: PartedPool, top: int) -> None:
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
        return expected_loss_reduction(self._ranker.doubt, self.spent, len(self.ids), self._top)

    def price(self, batches: Sequence[Batch]) -> float:
        """What batches cost, in calls, as `rank.max_calls` counts them."""
        return self._ranker.price([batch.shown for batch in batches])

    def leave(self) -> None:
        """Nothing more is asked here, since all questions together have no more to spend."""
        self._end = STOP_SHARED_BUDGET

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
        self._silent, self._end = self._silent + silent, STOP_NO_ORDER if 0 < silent == len(entries) else ""

    def cut(self, batches: Sequence[Batch], entries: Sequence[JournalRecord]) -> None:
        """Take in those answers to a round that there are, and end: nobody is paid for the others."""
        orders = {entry.slot: entry.order for entry in entries}
        for batch in batches:
            self._take(batch.shown, orders.get(batch.slot))
        unpaid = len(batches) - len(entries)
        self.asked -= unpaid
        self._silent += unpaid + sum(entry.silent is not None for entry in entries)
        self._end = STOP_BUDGET

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
        return fill_ranking(found, self._pool, self._top)


@dataclass(frozen=True)
class Replay:
    """What a journal leads to: a ranking, None for an empty pool or where an answer is missing; and what is wrong."""

    ranking: Ranking | None
    problem: str | None = None


def replay(
    course: RankingProcess | None, answers: JournalAnswers, *, spent: bool = False, shared: bool = False
) -> Replay:
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
    return Replay(course.ranking(), leftover_problem(left))


def leftover_problem(left: int) -> str | None:
    """What is wrong where so many entries are left at the end of a course."""
    return f"{left} entries beyond the end" if left else None


def rounds(course: RankingProcess, told: JournalRecord | None) -> Iterator[tuple[Batch, ...]]:
    """All rounds of a course; before each next one the answers to the last must be learned."""
    if told is not None:
        if course.upcoming < told.round:
            yield course.pilot_round()
        course.believe(told)
    while batches := course.next_round():
        yield batches


QUESTIONS = 12
LISTS = sum(PILOT_SIZES) // TYPICAL_LENGTH  # calls of five that the lists of a question cost
ANSWERED = 5  # tokens of an answer for each passage of the list: a label with its marks has three, as sent ones count


def pilot_questions(qids: Iterable[str], seed: int, most: int = QUESTIONS) -> frozenset[str]:
    """Those that are asked first, at most so many."""
    return frozenset(sorted(qids, key=lambda qid: derive_seed(seed, "pilot", qid))[:most])


def affordable(calls: float) -> int:
    """How many questions may be asked first where all share a budget of so many calls: half of it buys their lists."""
    return min(QUESTIONS, int(calls / 2 / LISTS))


def overhead(asked: Sequence[tuple[Query, Mapping[str, Passage]]], price: OrderPrice = TYPICAL) -> float:
    """What a call costs beside its passages, in passages: of these questions with their pools, by their tokens."""
    lengths = [estimate_tokens(passage.text) for _, pool in asked for passage in pool.values()]
    questions = [estimate_tokens(query.text) for query, _ in asked]
    if not lengths:
        return 0.0
    passage = sum(lengths) / len(lengths) + ANSWERED * price.dearer
    return round((price.instructions + sum(questions) / len(questions)) / passage, 2)


def learn_profile(pilots: Sequence[Pilot], price: float) -> JudgeProfile:
    """What they teach; `price`: of a call beside its passages, in passages."""
    from raggs.ranking.profile import fit_profile

    found = fit_profile(pilots, price)
    return JudgeProfile(
        questions=len(pilots),
        sharpness=round(found.sharpness, 3),
        doubt=round(found.doubt, 3),
        left=tuple(round(each, 4) for each in found.left),
        strain=found.strain,
        overhead=found.overhead,
        sigma=found.sigma,
        slip=found.slip,
        favour=tuple(round(each, 3) for each in found.favour),
        favour_doubt=None if found.favour_doubt is None else round(found.favour_doubt, 3),
        echo=round(found.echo, 3),
    )


def profile_entry(blank: JournalRecord, number: int, profile: JudgeProfile) -> JournalRecord:
    """The entry of what was learned, as round `number`."""
    return blank.model_copy(update={"round": number, "profile": profile})


class JudgedBatches:
    """Answers to one query's batches: the journal's, and where it has none that succeeded, the judge's.

    Args:
        blank: what the entries of the query have in common.

    Attributes:
        used: every answer that was given.
    """

    def __init__(
        self, blank: JournalRecord, query: Query, passages: Mapping[str, Passage], judge: Judge, journal: Journal
    ) -> None:
        self.used: list[JournalRecord] = []
        self._blank = blank
        self._known = JournalAnswers(entry for entry in journal.entries(query.qid) if entry.state == blank.state)
        self._query = query
        self._passages = passages
        self._judge = judge
        self._journal = journal

    def told(self, orders: Iterable[KnownOrder]) -> list[JournalRecord]:
        """The entries of orders that are there before anything is asked; new ones are in the journal."""
        entries, before = known_entries(self._blank, orders), self._known.known
        for entry in entries:
            if entry not in before:
                self._journal.append(entry)
        self.used += entries
        return entries

    def believed(self, number: int, profile: JudgeProfile) -> JournalRecord:
        """The entry of what was learned of the judge; a new one is in the journal."""
        entry = profile_entry(self._blank, number, profile)
        if entry != self._known.believed:
            self._journal.append(entry)
        self.used.append(entry)
        return entry

    @property
    def overhead(self) -> float | None:
        """Of a call, as the journal reckoned with it before; None where it did not."""
        return None if self._known.profile is None else self._known.profile.overhead

    async def answer(self, batch: Batch) -> JournalRecord:
        """The batch's entry; a new one is in the journal before it is given."""
        known = self._known.get(batch)
        entry = known if known is not None and not known.failed else await self._ask(batch)
        self.used.append(entry)
        return entry

    async def paid(self, batch: Batch) -> JournalRecord | None:
        """The batch's entry, where the money has ended; None where it would cost something."""
        try:
            return await self.answer(batch)
        except BudgetError:
            return self.noted(batch)

    def noted(self, batch: Batch) -> JournalRecord | None:
        """The batch's entry in the journal, be it a failure."""
        return self._known.get(batch)

    async def _ask(self, batch: Batch) -> JournalRecord:
        ordering = await self._judge.order(self._query, [self._passages[doc_id] for doc_id in batch.shown])
        order = None if ordering.order is None else tuple(batch.shown[place] for place in ordering.order)
        said = {"order": order, "error": ordering.error, "silent": ordering.silent, "by": ordering.by}
        said["answerers"] = tuple(dict.fromkeys(ordering.answerers))
        entry = self._blank.model_copy(update={**batch._asdict(), **said})
        self._journal.append(entry)
        return entry


def known_entries(blank: JournalRecord, orders: Iterable[KnownOrder]) -> list[JournalRecord]:
    """The entries of orders that were there before anything was asked: the first round. `blank`: what they share."""
    return [
        blank.model_copy(
            update={
                "slot": slot,
                "shown": tuple(doc_id for group in order.groups for doc_id in group),
                "groups": order.groups,
                "sharpness": order.sharpness,
                "by": order.by,
            }
        )
        for slot, order in enumerate(orders)
    ]
