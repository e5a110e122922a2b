"""Stage 6: the kept passages of each query put in order by many small judgments.

Orders that people gave come first. The ranker chooses rounds of batches; the judge orders each batch; the ranker learns
from the answers in the round's order, whatever order they arrived in. Every answer is noted in the journal at once, and
the ranker's state is a fold over the journal (`raggs.stages.replay`): to resume is to replay, and to ask for what is
missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from raggs import ranking
from raggs.adapter import NameOf
from raggs.artifacts import (
    JournalRecord,
    MergeRecord,
    Passage,
    PruneRecord,
    Query,
    RankingRecord,
    RankRecord,
    Record,
)
from raggs.believed import JudgeProfile
from raggs.hashing import hash_value
from raggs.judges.base import Judge, KnownOrder
from raggs.ranking import Pilot, Ranker, engine_options, make_ranker
from raggs.seeds import derive_seed
from raggs.settings import Causes, Later, PromptName, Settings, causes_of
from raggs.stages.base import Journal, Services, Stage, Work
from raggs.stages.floor import parted
from raggs.stages.ordered import run_ordered
from raggs.stages.pilot import learned, overhead, pilot_questions, profile_entry
from raggs.stages.rankcalls import CountedCalls
from raggs.stages.rankhealth import RankStatistics
from raggs.stages.replay import Answers, Batch, Course, KeptPool, kept_pool, known_entries, rank_records


class RankConfig(Settings):
    """How the golden order is found."""

    engine: Annotated[str, NameOf(ranking.REGISTRY)] = Field(
        "bayes", description="how batches are chosen and answers become an order"
    )
    top: int = Field(20, ge=1, description="the part of the order that must be stable")
    batch_size: Annotated[int, Field(ge=2, le=20)] | Literal["auto"] = Field(
        5,
        description='passages the judge orders at a time; "auto": each time as many (5 to 20) as tell most for their'
        " price, by what a dozen questions teach of the judge",
    )
    max_calls: int = Field(
        80, ge=0, description='judge calls a query may use; with batch_size "auto", what so many lists of five cost'
    )
    parallel: int = Field(4, ge=1, description="batches of a query that are judged at once")
    floor: Later[int] = Field(
        1, ge=1, le=5, description="passages of a lower grade are not ordered, but stand below by grade and fused rank"
    )
    prompt: PromptName = Field("order@1", description="a prompt's name, or the path of a Markdown file")
    seed: int = Field(7, ge=0, description="of all random numbers of this stage")
    options: Mapping[str, int | float] = Field(default_factory=dict, description="of the engine, by name")

    @model_validator(mode="after")
    def _options_fit(self) -> RankConfig:
        if self.batch_size == "auto" and not ranking.REGISTRY.load(self.engine).LEARNS:
            raise ValueError(f'engine {self.engine} does not choose the length of lists: name a batch_size, not "auto"')
        if self.options:
            known = engine_options(self.engine)
            unknown = sorted(self.options.keys() - known)
            if unknown:
                raise ValueError(f"engine {self.engine} has no option {unknown[0]!r}; known: {', '.join(known)}")
            self.ranker(("a", "b"), (1, 2), self.seed)  # says what is wrong with a value
        return self

    @property
    def list_length(self) -> int:
        """Passages that the judge orders at a time; where that is open, those of the calls that `max_calls` counts."""
        return 5 if self.batch_size == "auto" else self.batch_size

    def ranker(self, ids: Sequence[str], grades: Sequence[int], seed: int) -> Ranker:
        """A fresh ranker over a pool, with these settings.

        Raises:
            ValueError: a setting cannot be right.
        """
        return make_ranker(
            self.engine,
            ids,
            grades,
            top=self.top,
            batch_size=None if self.batch_size == "auto" else self.batch_size,
            seed=seed,
            max_calls=self.max_calls,
            **self.options,
        )

    def course(self, pool: KeptPool) -> Course | None:
        """The ranking of a pool at its start; None for an empty one."""
        if not pool.ids:
            return None
        found = parted(tuple(zip(pool.ids, pool.grades, strict=True)), self.floor)
        ids, grades = zip(*found.ordered, strict=True)
        ranker = self.ranker(ids, grades, derive_seed(self.seed, "rank", pool.qid))
        return Course(ranker, self.parallel, found, self.top)

    def state(self, pool: KeptPool, judge: object, known: Sequence[KnownOrder] = ()) -> str:
        """A hash of all that decides a ranking's course; journal entries of another state say nothing here.

        Args:
            judge: all that can change its answers, as it states them.
            known: orders that are there before anything is asked.
        """
        parts = [pool.qid, pool.ids, pool.grades, causes_of(self), engine_version(self.engine), judge]
        parts += [[order.groups, order.sharpness, order.by] for order in known]
        return hash_value(parts)[:16]


def engine_version(engine: str) -> str:
    """The engine and its version, as locks and journals name it."""
    return ranking.REGISTRY.edition(engine)


class Rank(Stage[RankConfig]):
    NAME = "rank"
    VERSION = 3
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
            "engine": engine_version(config.engine),
            "judge": services.causes("judge", "order"),
            **services.causes("hygiene"),
        }

    def statistics(self, config: RankConfig) -> RankStatistics:
        return RankStatistics()

    def by_query(self, config: RankConfig) -> bool:
        return config.batch_size != "auto"  # else all rankings hang on what the pilot taught

    def run(self, work: Work, config: RankConfig, services: Services) -> Iterator[Record]:
        rankings = _Rankings(work, config, services)
        if config.batch_size == "auto":
            rankings.learn_the_judge()
        # Rounds of a query follow each other, so some queries at a time keep every slot of the concurrency filled; not
        # more, for where the money ends, those that are begun are left undone.
        ranked = run_ordered(services, _pools(work), rankings.rank, size=lambda _item: config.parallel)
        for done, records in enumerate(ranked, start=1):
            yield from records
            rankings.calls.given_out(done)


Item = tuple[KeptPool, Mapping[str, Passage]]


class _Rankings:
    """The rankings of all queries, which have a judge, a journal and what was learned of the judge in common."""

    def __init__(self, work: Work, config: RankConfig, services: Services) -> None:
        self.calls = CountedCalls(work.progress, len(services.queries), config.max_calls)
        self._work, self._config, self._services = work, config, services
        self._engine, self._answering = engine_version(config.engine), services.causes("judge", "order")
        self._turn = asyncio.Lock()
        self._pilots: frozenset[str] = frozenset()
        self._profile: JudgeProfile | None = None

    def learn_the_judge(self) -> None:
        """Ask the pilot's questions for their first lists."""
        self._pilots = pilot_questions(self._services.queries, self._config.seed)
        mine = (item for item in _pools(self._work) if item[0].qid in self._pilots)
        asked = [item for item in mine if (course := self._config.course(item[0])) and len(course.ids) > 1]
        found = list(run_ordered(self._services, asked, self._first_lists, size=lambda _item: self._config.parallel))
        if found:
            price = overhead([(self._services.queries[pool.qid], passages) for pool, passages in asked])
            self._profile = learned(found, price)

    async def rank(self, item: Item) -> list[Record]:
        """One query's records."""
        pool, passages = item
        course = self._config.course(pool)
        if course is None:
            self.calls.query_done(0)
            return []
        judged = await self._begun(course, pool, passages)
        if self._profile is not None:
            if pool.qid in self._pilots:
                await self._answered(course, judged, course.pilot_round())
            course.believe(judged.believed(course.upcoming, self._profile))
        while batches := await _next_round(course, self._turn):
            await self._answered(course, judged, batches)
        self.calls.query_done(course.asked)
        self._work.journal.settle(pool.qid, judged.used)
        return list(rank_records(pool, course.ranking()))

    async def _first_lists(self, item: Item) -> Pilot:
        pool, passages = item
        if (course := self._config.course(pool)) is None:
            raise TypeError("an empty pool is no pilot")
        judged = await self._begun(course, pool, passages)
        course.learn(await asyncio.gather(*map(judged.answer, course.pilot_round())))
        return course.pilot()

    async def _begun(self, course: Course, pool: KeptPool, passages: Mapping[str, Passage]) -> _JudgedBatches:
        query, journal = self._services.queries[pool.qid], self._work.journal
        known = await self._services.judge.known(query, [passages[doc_id] for doc_id in course.ids])
        state = self._config.state(pool, self._answering, known)
        blank = JournalRecord(qid=pool.qid, state=state, engine=self._engine, round=0, slot=0, shown=(), order=None)
        judged = _JudgedBatches(blank, query, passages, self._services.judge, journal)
        course.inform(judged.told(known) if course.informed else ())
        return judged

    async def _answered(self, course: Course, judged: _JudgedBatches, batches: Sequence[Batch]) -> None:
        course.learn(await asyncio.gather(*map(judged.answer, batches)))
        self.calls.made(len(batches))


async def _next_round(course: Course, turn: asyncio.Lock) -> tuple[Batch, ...]:
    """A ranker thinks for milliseconds. Were many to think in a row, answers and free slots would wait for all."""
    async with turn:
        await asyncio.sleep(0)
        return course.next_round()


class _JudgedBatches:
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
        self._known = Answers(entry for entry in journal.entries(query.qid) if entry.state == blank.state)
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

    async def answer(self, batch: Batch) -> JournalRecord:
        """The batch's entry; a new one is in the journal before it is given."""
        known = self._known.get(batch)
        entry = known if known is not None and not known.failed else await self._ask(batch)
        self.used.append(entry)
        return entry

    async def _ask(self, batch: Batch) -> JournalRecord:
        ordering = await self._judge.order(self._query, [self._passages[doc_id] for doc_id in batch.shown])
        order = None if ordering.order is None else tuple(batch.shown[place] for place in ordering.order)
        said = {"order": order, "error": ordering.error, "silent": ordering.silent, "by": ordering.by}
        entry = self._blank.model_copy(update={**batch._asdict(), **said})
        self._journal.append(entry)
        return entry


def _pools(work: Work) -> Iterator[tuple[KeptPool, Mapping[str, Passage]]]:
    """Each query's pool with the passages that it shows. Both artifacts are sorted by qid, so one pass is enough."""
    merged = work.by_query("merge", MergeRecord)
    for qid, records in work.by_query("prune", PruneRecord):
        pool = kept_pool(qid, records)
        found = next(found for name, found in merged if name == qid)
        needed = set(pool.ids)
        yield pool, {record.doc_id: record.passage for record in found if record.doc_id in needed}


STAGE = Rank()
