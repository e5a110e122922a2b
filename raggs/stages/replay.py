"""Compute a query's ranking from its pool and its journal. The rank stage, audits and explanations share this code.

The state of a ranking is a fold over its journal. `RankingProcess` is this fold: it yields rounds of batches and takes
their answers. The rank stage answers each round from the journal and calls the judge for missing and failed answers.
`replay` uses only the journal and reports what is missing.

`JudgedBatches` answers the batches of one query from the journal, an earlier version of the set, or the judge. A new
answer is written to the journal before it is used.

`part_pool` separates passages that are not worth ranking. They are placed below the others, by grade, then fused rank,
and are marked.

No judge orders these passages, and their statistics reflect this. Passages with equal grades count as tied; otherwise
only the grades decide. For each of these passages, every position below the ranked ones is plausible. They do not count
in the expected discordant pairs. None of them can move above a ranked passage, although its grade may be one too low.

If `rank.batch_size` is "auto", a judge profile is estimated from a few pilot queries before the other queries are
ranked.

The choice of pilot queries depends only on the seed, the ids and the size of a shared budget. A resumed run therefore
chooses the same ones. Their first lists have several lengths. From all answers together, raggs estimates the sharpness
of the judge, its loss of precision along a list, and the cost of long lists. These lists cost nothing extra, because
they are the first round of the pilot queries' own rankings. The profile is stored in the journal of every query, and
the query's ranking uses the profile from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
# standard deviation in grades: a utility deviates from the true grade by 0.5, and a quarter of the grades are off by
# one
SPREAD = 0.7
SLIPS = ((-1, 0.125), (0, 0.75), (1, 0.125))
STRAYING = NormalDist(0.0, 0.5 * 2**0.5)  # distribution of the difference of two utilities

Graded = tuple[str, int]


@dataclass(frozen=True)
class PartedPool:
    """A pool split at a minimum grade.

    Attributes:
        ordered: passages that the judge orders, by fused rank. If no passage reaches the minimum, this is the first of
            the other passages, because an engine needs a nonempty pool.
        below: the passages that do not reach the minimum, by grade, then fused rank.
        reached: number of passages that reach the minimum.
        too_few: reason why no judge is called if fewer than two passages reach the minimum.
    """

    ordered: tuple[Graded, ...]
    below: tuple[Graded, ...]
    reached: int
    too_few: str = TOO_FEW


def part_pool(pool: Sequence[Graded], floor: int, min_best: int = 1) -> PartedPool:
    """Split a nonempty pool, sorted by fused rank, at the minimum grade of passages that are ranked.

    If only one passage reaches the minimum, nothing is left to order. If no grade reaches `min_best`, no passage is
    ranked: all are in `below`.
    """
    ranked = max(grade for _, grade in pool) >= min_best
    least = floor if ranked else MAX_GRADE + 1
    reached = tuple(item for item in pool if item[1] >= least)
    below = tuple(sorted((item for item in pool if item[1] < least), key=lambda item: -item[1]))
    return PartedPool(reached or below[:1], below, len(reached), TOO_FEW if ranked else STOP_NO_RELEVANT)


def fill_ranking(ranking: Ranking, pool: PartedPool, top: int) -> Ranking:
    """Return the ranking of the ordered passages with all others appended."""
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
    """Return the probability that a passage is better than one whose grade is `gap` lower; 0.5 for equal grades."""
    chances = (STRAYING.cdf(gap + one - other) * p * q for (one, p), (other, q) in product(SLIPS, SLIPS))
    return round(sum(chances), 4)


@dataclass(frozen=True)
class KeptPool:
    """Input of the ranking of one query.

    Attributes:
        ids, grades: ids and grades of the passages to be ranked, by fused rank.
        followers: near-duplicates, keyed by the passage that represents them.
        distributions: for each of `ids`, the probabilities of the grades 1 to 5, or None; empty if no passage has any.
    """

    qid: str
    ids: tuple[str, ...]
    grades: tuple[int, ...]
    followers: Mapping[str, tuple[str, ...]]
    distributions: tuple[tuple[float, ...] | None, ...] = ()


def kept_pool(qid: str, records: Iterable[PruneRecord]) -> KeptPool:
    """Return the passages of a query's pool that remain after pruning."""
    kept = [record for record in records if record.kept and record.grade is not None]
    leaders = [record for record in kept if record.duplicate_of is None]
    followers: dict[str, tuple[str, ...]] = {}
    for record in kept:
        if record.duplicate_of is not None:
            followers[record.duplicate_of] = (*followers.get(record.duplicate_of, ()), record.doc_id)
    grades = tuple(record.grade for record in leaders if record.grade is not None)
    stated = tuple(record.distribution for record in leaders)
    ids = tuple(record.doc_id for record in leaders)
    return KeptPool(qid, ids, grades, followers, stated if any(stated) else ())


class Batch(NamedTuple):
    """Passages to order together, in the order shown, and their position in the ranking process."""

    round: int
    slot: int
    shown: tuple[str, ...]

    def __str__(self) -> str:
        return f"round {self.round}, slot {self.slot}"


class JournalAnswers:
    """A query's journal entries, keyed by the batch that they answer."""

    def __init__(self, entries: Iterable[JournalRecord]) -> None:
        self._entries = {(entry.round, entry.slot): entry for entry in entries}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[JournalRecord]:
        return iter(self._entries.values())

    @property
    def known(self) -> list[JournalRecord]:
        """The orders that existed before the judge was called."""
        return sorted((entry for entry in self._entries.values() if entry.groups), key=lambda entry: entry.slot)

    @property
    def believed(self) -> JournalRecord | None:
        """The entry with the judge profile, or None."""
        return next((entry for entry in self._entries.values() if entry.profile), None)

    @property
    def profile(self) -> JudgeProfile | None:
        """The judge profile, or None."""
        return None if self.believed is None else self.believed.profile

    def get(self, batch: Batch) -> JournalRecord | None:
        """Return the batch's entry, or None if it is missing or shows other passages."""
        entry = self._entries.get(batch[:2])
        return entry if entry is not None and entry.shown == batch.shown else None

    def to(self, batches: Iterable[Batch]) -> tuple[list[JournalRecord], str | None]:
        """Return the entries of a round's batches, and the problem of the first batch without a valid answer."""
        found = [(self.get(batch), batch) for batch in batches]
        wrong = next((self.fault(batch) for entry, batch in found if entry is None), None)
        return [entry for entry, _ in found if entry is not None], wrong

    def fault(self, batch: Batch) -> str | None:
        """Return the problem of the batch's entry as a clause, or None."""
        entry = self._entries.get(batch[:2])
        if entry is None:
            return f"{batch} is missing"
        return None if entry.shown == batch.shown else f"{batch} shows other passages than the ranker requested"


class RankingProcess:
    """A ranking in progress: yield the batches of a round, take all their answers, and repeat until no round is left.

    The process ends early if the judge abstained on every batch of a round, if the budget does not cover a batch, or if
    a shared budget is used up.

    Args:
        ranker: a new ranker.
        parallel: maximum number of batches per round.
        pool: the passages, split at the minimum grade of passages that are ranked.
        top: number of top positions that matter.

    Attributes:
        asked: number of batches so far.
        spent: cost of these batches in calls, as `rank.max_calls` counts them.
        ids: the passages that are ranked, by grade and fused rank. Without judgments, they stay in this order.
        informed: whether the engine uses orders that existed before the judge was called.
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
        """Process the orders that existed before the judge was called, as a separate first round.

        Raises:
            ValueError: an order is not from this pool.
        """
        self._round += bool(entries)
        for entry in entries:
            paid = {"paid": True} if entry.carried else {}  # an engine of another package may not accept it
            self._ranker.inform(entry.groups or (), entry.sharpness or 0.0, **paid)

    @property
    def upcoming(self) -> int:
        """The number of the next round."""
        return self._round + 1

    def pilot_round(self) -> tuple[Batch, ...]:
        """Return pilot lists of several lengths, from which the judge profile is estimated; empty if there are none."""
        return self._given_out(self._numbered(lists)) if (lists := self._ranker.pilot_batches()) else ()

    def pilot(self) -> Pilot:
        """Return the data about the judge from the answers so far."""
        return self._ranker.pilot()

    def believe(self, entry: JournalRecord) -> None:
        """Use the judge profile of an entry. It counts as a separate round."""
        if (found := entry.profile) is not None:
            self._round += 1
            told = {name: value for name, value in found if name != "questions"}
            self._ranker.believe(Profile(**told))

    def next_round(self) -> tuple[Batch, ...]:
        """Return the batches of the next round; empty at the end. All answers to the previous round must have been
        processed.
        """
        found, self._drawn = self.draw(), None
        return self._given_out(found)

    def draw(self) -> tuple[Batch, ...]:
        """Return the batches of the next round without starting the round; empty at the end."""
        if self._drawn is None:
            self._drawn = () if self._end else self._numbered(self._ranker.next_batches(self._parallel))
        return self._drawn

    @property
    def promise(self) -> float:
        """Expected loss reduction per call of the drawn batches; comparable between pools."""
        return expected_loss_reduction(self._ranker.doubt, self.spent, len(self.ids), self._top)

    def price(self, batches: Sequence[Batch]) -> float:
        """Return the cost of batches in calls, as `rank.max_calls` counts them."""
        return self._ranker.price([batch.shown for batch in batches])

    def leave(self) -> None:
        """End the ranking because the shared budget is used up."""
        self._end = STOP_SHARED_BUDGET

    def _given_out(self, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        self.asked += len(batches)
        self.spent += self.price(batches)
        return batches

    def _numbered(self, lists: Sequence[Sequence[str]]) -> tuple[Batch, ...]:
        self._round += 1
        return tuple(Batch(self._round, slot, tuple(shown)) for slot, shown in enumerate(lists))

    def learn(self, entries: Sequence[JournalRecord]) -> None:
        """Process the answers to a whole round, in the order of its batches and not of their arrival."""
        for entry in entries:
            self._take(entry.shown, entry)
        silent = sum(entry.silent is not None for entry in entries)
        self._silent, self._end = self._silent + silent, STOP_NO_ORDER if 0 < silent == len(entries) else ""

    def cut(self, batches: Sequence[Batch], entries: Sequence[JournalRecord]) -> None:
        """Process the available answers to a round and end the ranking, because the budget does not cover the other
        answers.
        """
        answers = {entry.slot: entry for entry in entries}
        for batch in batches:
            self._take(batch.shown, answers.get(batch.slot))
        unpaid = len(batches) - len(entries)
        self.asked -= unpaid
        self._silent += unpaid + sum(entry.silent is not None for entry in entries)
        self._end = STOP_BUDGET

    def _take(self, shown: Sequence[str], entry: JournalRecord | None) -> None:
        if entry is None or entry.order is None:
            self._ranker.skip(shown)
        elif entry.best is None:  # an engine of another package may not accept probabilities
            self._ranker.observe(entry.order)
        else:
            self._ranker.observe(entry.order, best=entry.best)

    @property
    def told_by_length(self) -> Mapping[int, float]:
        """Information by list length; see `Ranker.told_by_length`."""
        return self._ranker.told_by_length

    def ranking(self) -> Ranking:
        """Return the ranking from all answers so far."""
        found = self._ranker.ranking()
        if self._silent:
            found = replace(found, skipped=found.skipped - self._silent)
        if self._end:
            order = found.order if any(found.exposures) else self.ids
            found = replace(found, stop_reason=self._end, order=order)
        return fill_ranking(found, self._pool, self._top)


@dataclass(frozen=True)
class Replay:
    """Result of replaying a journal: a ranking, and the problem, if any. The ranking is None if the pool is empty, an
    answer is missing, or an order that existed before the judge was called is invalid.
    """

    ranking: Ranking | None
    problem: str | None = None


def replay(
    course: RankingProcess | None, answers: JournalAnswers, *, spent: bool = False, shared: bool = False
) -> Replay:
    """Follow a ranking process, using only the journal.

    Args:
        course: the process at its start; None for an empty pool, which is not ranked.
        answers: all journal entries of the query.
        spent: whether the budget ran out before the ranking ended. In this case, the ranking ends with the first round
            that lacks an answer.
        shared: whether all queries share one budget, so that a ranking may end before any of its rounds.
    """
    if course is None:
        return Replay(None, f"{len(answers)} entries for an empty pool" if answers else None)
    try:
        course.inform(answers.known)
    except (ValueError, TypeError) as error:
        return Replay(None, f"round 0 contains an invalid order: {error}")
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
    """Return the problem if entries are left at the end of a ranking process, or None."""
    return f"{left} entries after the end" if left else None


def rounds(course: RankingProcess, told: JournalRecord | None) -> Iterator[tuple[Batch, ...]]:
    """Yield all rounds of a process. The answers to each round must be processed before the next one is requested."""
    if told is not None:
        if course.upcoming < told.round:
            yield course.pilot_round()
        course.believe(told)
    while batches := course.next_round():
        yield batches


QUESTIONS = 12
LISTS = sum(PILOT_SIZES) // TYPICAL_LENGTH  # cost of the pilot lists of a query, in calls of five passages
# assumed answer tokens per passage of a list; a label with its separators has three
ANSWERED = 5


def pilot_questions(qids: Iterable[str], seed: int, most: int = QUESTIONS) -> frozenset[str]:
    """Return the pilot queries, at most `most`."""
    return frozenset(sorted(qids, key=lambda qid: derive_seed(seed, "pilot", qid))[:most])


def affordable(calls: float) -> int:
    """Return how many pilot queries a shared budget allows: up to half of the budget may be spent on their lists."""
    return min(QUESTIONS, int(calls / 2 / LISTS))


def overhead(asked: Sequence[tuple[Query, Mapping[str, Passage]]], price: OrderPrice = TYPICAL) -> float:
    """Return the overhead of a call as the number of passages that cost the same, from token counts of queries and
    pools.
    """
    lengths = [estimate_tokens(passage.text) for _, pool in asked for passage in pool.values()]
    questions = [estimate_tokens(query.text) for query, _ in asked]
    if not lengths:
        return 0.0
    passage = sum(lengths) / len(lengths) + ANSWERED * price.dearer
    return round((price.instructions + sum(questions) / len(questions)) / passage, 2)


def learn_profile(pilots: Sequence[Pilot], price: float) -> JudgeProfile:
    """Return the judge profile estimated from the pilots. `price` is the overhead of a call, as a number of
    passages.
    """
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
    """Return the journal entry of a judge profile, as round `number`."""
    return blank.model_copy(update={"round": number, "profile": profile})


class JudgedBatches:
    """Answers to one query's batches: from the journal if it has a successful answer, otherwise from an earlier version
    of the set, otherwise from the judge.

    Args:
        blank: the fields that all entries of the query share.
        earlier: returns the entry of a batch that an earlier version of the set has answered, or None.

    Attributes:
        used: all answers that were returned.
    """

    def __init__(
        self,
        blank: JournalRecord,
        query: Query,
        passages: Mapping[str, Passage],
        judge: Judge,
        journal: Journal,
        earlier: Callable[[Batch], JournalRecord | None] = lambda _: None,
    ) -> None:
        self.used: list[JournalRecord] = []
        self._blank = blank
        self._known = JournalAnswers(entry for entry in journal.entries(query.qid) if entry.state == blank.state)
        self._query = query
        self._passages = passages
        self._judge = judge
        self._journal = journal
        self._earlier = earlier

    def told(self, orders: Iterable[KnownOrder]) -> list[JournalRecord]:
        """Return the entries of orders that existed before the judge was called. New entries are written to the
        journal.
        """
        entries, before = known_entries(self._blank, orders), self._known.known
        for entry in entries:
            if entry not in before:
                self._journal.append(entry)
        self.used += entries
        return entries

    def believed(self, number: int, profile: JudgeProfile) -> JournalRecord:
        """Return the entry of the judge profile. A new entry is written to the journal."""
        entry = profile_entry(self._blank, number, profile)
        if entry != self._known.believed:
            self._journal.append(entry)
        self.used.append(entry)
        return entry

    @property
    def overhead(self) -> float | None:
        """Overhead of a call from the journal's profile, or None."""
        return None if self._known.profile is None else self._known.profile.overhead

    async def answer(self, batch: Batch) -> JournalRecord:
        """Return the batch's entry. A new entry is written to the journal first."""
        known = self._known.get(batch)
        entry = known if known is not None and not known.failed else await self._ask(batch)
        self.used.append(entry)
        return entry

    async def paid(self, batch: Batch) -> JournalRecord | None:
        """Return the batch's entry when the budget is used up. If a new answer would cost something, return the
        existing entry, if any.
        """
        try:
            return await self.answer(batch)
        except BudgetError:
            return self.noted(batch)

    def noted(self, batch: Batch) -> JournalRecord | None:
        """Return the batch's entry in the journal, even if it is a failure; None if there is none."""
        return self._known.get(batch)

    async def _ask(self, batch: Batch) -> JournalRecord:
        if (earlier := self._earlier(batch)) is not None:
            self._journal.append(earlier)
            return earlier
        ordering = await self._judge.order(self._query, [self._passages[doc_id] for doc_id in batch.shown])
        order = None if ordering.order is None else tuple(batch.shown[place] for place in ordering.order)
        said = {"order": order, "error": ordering.error, "silent": ordering.silent, "by": ordering.by}
        said["answerers"] = tuple(dict.fromkeys(ordering.answerers))
        entry = self._blank.model_copy(update={**batch._asdict(), **said, "best": ordering.best})
        self._journal.append(entry)
        return entry


def known_entries(blank: JournalRecord, orders: Iterable[KnownOrder]) -> list[JournalRecord]:
    """Return the entries of orders that existed before the judge was called: the first round. `blank` contains the
    fields that all entries share.
    """
    return [
        blank.model_copy(
            update={
                "slot": slot,
                "shown": tuple(doc_id for group in order.groups for doc_id in group),
                "groups": order.groups,
                "sharpness": order.sharpness,
                "by": order.by,
                "carried": order.carried,
            }
        )
        for slot, order in enumerate(orders)
    ]
