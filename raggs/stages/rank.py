"""Stage 6: rank the kept passages of each query with many small ordering judgments.

Orders given by humans come first. The ranker chooses rounds of batches, and the judge orders each batch. The ranker
processes the answers in the order of the round, not of their arrival. Every answer is written to the journal before it
is used. The ranker's state is computed from the journal (`raggs.stages.replay`). To resume, raggs replays the journal
and requests only the missing and failed answers.

If the budget is used up, each unfinished ranking ends with the available answers and records this as its stop reason.

`CountedCalls` tracks the progress over all queries, in calls, for the progress display and its forecast.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

from raggs.base.artifacts import (
    JournalRecord,
    JudgeProfile,
    MergeRecord,
    Passage,
    PruneRecord,
    RankingRecord,
    RankRecord,
    Record,
)
from raggs.base.errors import BudgetError
from raggs.base.judge_health import STOP_BUDGET
from raggs.base.settings import Causes
from raggs.ranking import Pilot
from raggs.stages.base import ProgressCallback, Services, Stage, StageWork
from raggs.stages.earlier_version import earlier_orders
from raggs.stages.ordered import run_ordered
from raggs.stages.rank_config import RankConfig, engine_version
from raggs.stages.rank_health import RankStatistics, rank_records
from raggs.stages.replay import (
    QUESTIONS,
    Batch,
    JudgedBatches,
    KeptPool,
    RankingProcess,
    affordable,
    kept_pool,
    learn_profile,
    overhead,
    pilot_questions,
)
from raggs.stages.waves import SetBudget, SharedBudget, StartedRanking, in_waves

# Calls until a ranking ends or `rank.max_calls` of 80 are used up, with the default settings: mean of three simulated
# judges on labelled queries (36 with a sharp judge, 56 with a medium, 78 with a noisy one; `benchmarks/gainloss.py`).
LIKELY_CALLS = 56


def likely_calls(most: int) -> int:
    """Return the expected calls of a ranking with at most `most` calls, before anything is known about its judge."""
    return min(most, LIKELY_CALLS)


class CountedCalls:
    """Calls made and calls expected. Until a query has finished, the maximum per query is expected; then the mean of
    the finished queries. If the queries share a budget, the whole budget is expected until all queries have finished,
    but at most `total` times `most` calls.

    Args:
        tell: progress callback.
        total: number of queries.
        most: maximum number of calls per query.
        shared: maximum number of calls of all queries together, if they share a budget.
    """

    def __init__(self, tell: ProgressCallback, total: int, most: int, shared: float | None = None) -> None:
        self._tell = tell
        self._total = total
        self._most, self._shared = most, shared
        self._made = self._given = 0
        self._queries = self._theirs = 0  # finished queries and their calls

    @property
    def expected(self) -> int:
        """Expected calls over all queries."""
        if self._shared is not None and self._queries < self._total:
            return max(self._made, round(min(self._shared, self._total * self._most)))
        mean = self._theirs / self._queries if self._queries else self._most
        return max(self._made, round(self._theirs + (self._total - self._queries) * mean))

    def made(self, count: int) -> None:
        """Record that a round of `count` calls was answered."""
        self._made += count
        self._tell(self._given, self._total, self._made, self.expected)

    def query_done(self, count: int) -> None:
        """Record that the ranking of a query took `count` calls."""
        self._queries, self._theirs = self._queries + 1, self._theirs + count

    def given_out(self, done: int) -> None:
        """Report that the records of `done` queries were yielded."""
        self._given = done
        self._tell(done, self._total, self._made, self.expected)


class RankStage(Stage[RankConfig]):
    NAME = "rank"
    VERSION = 4
    READS = ("merge", "prune")
    BESIDE: ClassVar = {"rank.queries": RankingRecord}
    JOURNAL = "rank.journal"
    Config = RankConfig
    RECORD = RankRecord
    ASKS = "judge"

    def causes(self, config: RankConfig, services: Services) -> Causes:
        told = services.causes("orders")
        return {
            **({} if told is None else {"orders": told}),
            "queries": services.causes("queries"),
            "engine": engine_version(config.engine, config.batch_size),
            "judge": services.causes("judge", "order"),
            **services.causes("hygiene"),
            **({"prices": services.causes("prices")} if config.budget and config.budget.usd else {}),
        }

    def cut_short(self, record: Record) -> bool:
        return isinstance(record, RankingRecord) and record.stop_reason == STOP_BUDGET

    def statistics(self, config: RankConfig) -> RankStatistics:
        return RankStatistics(config.budget is not None)

    def by_query(self, config: RankConfig) -> bool:
        # With "auto" or a shared budget, all rankings depend on each other.
        return config.batch_size != "auto" and config.budget is None

    def run(self, work: StageWork, config: RankConfig, services: Services) -> Iterator[Record]:
        rankings = _QueryRankings(work, config, services)
        ranked = rankings.each() if config.budget is None else rankings.together(config.budget)
        for done, records in enumerate(ranked, start=1):
            yield from records
            rankings.calls.given_out(done)


Item = tuple[KeptPool, Mapping[str, Passage]]


class _QueryRankings:
    """The rankings of all queries. They share a judge, a journal and the estimated judge profile."""

    def __init__(self, work: StageWork, config: RankConfig, services: Services) -> None:
        self.calls = CountedCalls(work.progress, len(services.queries), config.max_calls)
        self._work, self._config, self._services = work, config, services
        self._engine = engine_version(config.engine, config.batch_size)
        self._answering = services.causes("judge", "order")
        self._earlier = earlier_orders(config.carry)
        self._turn = asyncio.Lock()
        self._pilots: frozenset[str] = frozenset()
        self._profile: JudgeProfile | None = None
        self._piloted: dict[str, tuple[RankingProcess, JudgedBatches]] = {}
        self._unlearned = False  # the budget ran out before the judge profile was estimated: no ranking is started

    def each(self) -> Iterator[list[Record]]:
        """Yield the records of each query, with a separate call limit per query."""
        self._learn_the_judge()
        # Rounds of a query are sequential, so a few concurrent queries keep every call slot busy. With more concurrent
        # queries, more rankings would be unfinished if the budget runs out.
        pools = (item for item in _pools(self._work) if item[0].qid not in self._work.done)
        yield from run_ordered(self._services.workspace, pools, self._rank, size=self._width)

    def together(self, budget: SetBudget) -> Iterator[list[Record]]:
        """Yield the records of each query if all queries share a budget."""
        work, config, services = self._work, self._config, self._services
        prices = services.causes("prices") if budget.usd else None
        texts = ((services.queries[pool.qid], passages) for pool, passages in _pools(work))
        purse = SharedBudget(budget, config.list_length, prices, texts)
        self.calls = CountedCalls(work.progress, len(services.queries), config.max_calls, purse.calls)
        self._learn_the_judge(affordable(purse.calls))
        begun = {item[0].qid: item for item in _pools(work)}
        ready = list(run_ordered(services.workspace, begun.values(), self._ready, size=self._width))
        in_waves([each for each in ready if each is not None], purse, services.workspace, self._answered)
        yield from (self._ended(each) for qid, each in zip(begun, ready, strict=True) if qid not in work.done)

    def _width(self, _item: Item) -> int:
        """Return how many calls a query requests at once."""
        return self._config.parallel

    def _learn_the_judge(self, most: int = QUESTIONS) -> None:
        """Estimate the judge profile from the first lists of the pilot queries, if `batch_size` is "auto".

        The profile is written to the journals before it is used. Prices may change between two runs and do not
        invalidate results, so a resumed run reuses the call overhead in the journal.
        """
        if self._config.batch_size != "auto":
            return
        self._pilots = pilot_questions(self._services.queries, self._config.seed, most)
        mine = (item for item in _pools(self._work) if item[0].qid in self._pilots)
        asked = [item for item in mine if (course := self._config.course(item[0])) and len(course.ids) > 1]
        lists = run_ordered(self._services.workspace, asked, self._first_lists, size=self._width)
        try:
            found = list(lists)
        except BudgetError:
            if not self._work.spent:
                raise
            found, self._unlearned = [], True
        if found:
            told = {judged.overhead for _, judged in self._piloted.values()}
            price = told.pop() if len(told) == 1 else None
            if price is None:
                texts = [(self._services.queries[pool.qid], passages) for pool, passages in asked]
                price = overhead(texts, self._services.judge.order_price)
            self._profile = learn_profile(found, price)
            for course, judged in self._piloted.values():
                judged.believed(course.upcoming, self._profile)

    async def _rank(self, item: Item) -> list[Record]:
        """Return the records of one query."""
        if (begun := await self._ready(item)) is not None:
            while batches := await _next_round(begun.course, self._turn):
                await self._answered(begun.course, begun.judged, batches)
        return self._ended(begun)

    async def _ready(self, item: Item) -> StartedRanking | None:
        """Return a ranking before its first round, or after its pilot round. Return None for an empty pool."""
        pool, passages = item
        if (course := self._config.course(pool)) is None:
            return None
        judged, paid = await self._begun(course, pool, passages), tuple[Batch, ...]()
        if self._profile is not None:
            if pool.qid in self._pilots:
                await self._answered(course, judged, paid := course.pilot_round())
            course.believe(judged.believed(course.upcoming, self._profile))
        return StartedRanking(pool, course, judged, paid)

    def _ended(self, begun: StartedRanking | None) -> list[Record]:
        if begun is None:
            self.calls.query_done(0)
            return []
        self.calls.query_done(begun.course.asked)
        self._work.journal.settle(begun.pool.qid, begun.judged.used)
        return list(rank_records(begun.pool, begun.course.ranking()))

    async def _first_lists(self, item: Item) -> Pilot:
        pool, passages = item
        if (course := self._config.course(pool)) is None:
            raise TypeError("an empty pool cannot be a pilot")
        judged = await self._begun(course, pool, passages)
        course.learn(await asyncio.gather(*map(judged.answer, course.pilot_round())))
        self._piloted[pool.qid] = course, judged
        return course.pilot()

    async def _begun(self, course: RankingProcess, pool: KeptPool, passages: Mapping[str, Passage]) -> JudgedBatches:
        query, journal = self._services.queries[pool.qid], self._work.journal
        known = await self._services.judge.known(query, [passages[doc_id] for doc_id in course.ids])
        earlier = self._earlier(query, pool, course.ids, passages)
        known = [*known, *earlier.known]
        state = self._config.state(pool, self._answering, known)
        blank = JournalRecord(qid=pool.qid, state=state, engine=self._engine, round=0, slot=0, shown=(), order=None)
        carried = partial(earlier.entry, blank)
        judged = JudgedBatches(blank, query, passages, self._services.judge, journal, carried)
        course.inform(judged.told(known) if course.informed else ())
        return judged

    async def _answered(self, course: RankingProcess, judged: JudgedBatches, batches: Sequence[Batch]) -> list[Batch]:
        """Pass the answers of a round to the ranking. Return the batches that the budget does not cover."""
        entries = await self._entries(judged, batches)
        if len(entries) < len(batches):
            course.cut(batches, entries)
        else:
            course.learn(entries)
        self.calls.made(len(entries))
        there = {entry.slot for entry in entries}
        return [batch for batch in batches if batch.slot not in there]

    async def _entries(self, judged: JudgedBatches, batches: Sequence[Batch]) -> list[JournalRecord]:
        """Return the answers of a round; only the paid ones if the budget is used up."""
        if not self._work.spent:
            return await asyncio.gather(*map(judged.answer, batches))
        found = map(judged.noted, batches) if self._unlearned else await asyncio.gather(*map(judged.paid, batches))
        return [entry for entry in found if entry is not None]


async def _next_round(course: RankingProcess, turn: asyncio.Lock) -> tuple[Batch, ...]:
    """Return the next round. A lock and a yield to the event loop separate rankers: each computes for milliseconds."""
    async with turn:
        await asyncio.sleep(0)
        return course.next_round()


def _pools(work: StageWork) -> Iterator[tuple[KeptPool, Mapping[str, Passage]]]:
    """Yield each query's pool with the passages that it shows. Both artifacts are sorted by qid, so one pass is
    enough.
    """
    merged = work.by_query("merge", MergeRecord)
    for qid, records in work.by_query("prune", PruneRecord):
        pool = kept_pool(qid, records)
        found = next(found for name, found in merged if name == qid)
        needed = set(pool.ids)
        yield pool, {record.doc_id: record.passage for record in found if record.doc_id in needed}


STAGE = RankStage()
