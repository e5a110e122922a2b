"""Stage 6: the kept passages of each query put in order by many small judgments.

The ranker chooses rounds of batches; the judge orders each batch; the ranker learns from the answers in the
round's order, whatever order they arrived in. Every answer is noted in the journal at once, and the ranker's
state is a fold over the journal: resuming and auditing are replays of the same code path (`fold`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, model_validator

from raggs import ranking
from raggs.adapter import NameOf
from raggs.artifacts import JournalRecord, MergeRecord, PruneRecord, Query, RankRecord, Record
from raggs.hashing import hash_value
from raggs.judges.base import Judge
from raggs.ranking import Ranker, Ranking, engine_options, make_ranker
from raggs.ranking.health import FINDINGS, Batch, HealthCounts
from raggs.seeds import derive_seed
from raggs.settings import PromptName, Settings, causes_of
from raggs.stages.base import Journal, Services, Stage, Tally, Work, run_ordered


class RankConfig(Settings):
    """How the golden order is found."""

    engine: Annotated[str, NameOf(ranking.REGISTRY)] = Field("bayes", description="see: raggs list engines")
    top: int = Field(20, ge=1, description="the part of the order that must be stable")
    batch_size: int = Field(5, ge=2, le=20, description="passages the judge orders at a time")
    max_calls: int = Field(80, ge=0, description="judge calls a query may use")
    parallel: int = Field(4, ge=1, description="batches of a query that are judged at once")
    prompt: PromptName = Field("order@1", description="a prompt's name, or the path of a Markdown file")
    seed: int = Field(7, ge=0)
    options: Mapping[str, int | float] = Field(
        default_factory=dict, description="of the engine; see: raggs list engines"
    )

    @model_validator(mode="after")
    def _options_fit(self) -> RankConfig:
        if self.options:
            known = engine_options(self.engine)
            unknown = sorted(self.options.keys() - known)
            if unknown:
                raise ValueError(f"engine {self.engine} has no option {unknown[0]!r}; known: {', '.join(known)}")
            self.ranker(("a", "b"), (1, 2), self.seed)  # says what is wrong with a value
        return self

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
            batch_size=self.batch_size,
            seed=seed,
            max_calls=self.max_calls,
            **self.options,
        )


@dataclass(frozen=True)
class Task:
    """What the ranking of one query starts from."""

    qid: str
    ids: tuple[str, ...]
    grades: tuple[int, ...]
    followers: Mapping[str, tuple[str, ...]]  # near-duplicates by representative

    def state(self, config: RankConfig, judge: Any) -> str:
        """A hash of all that decides the ranking's course; journal entries of another state say nothing here."""
        return hash_value([self.qid, self.ids, self.grades, causes_of(config), engine_version(config.engine), judge])[
            :16
        ]

    def ranker(self, config: RankConfig) -> Ranker:
        return config.ranker(self.ids, self.grades, derive_seed(config.seed, "rank", self.qid))


def engine_version(engine: str) -> str:
    """The engine and its version, as locks and journals name it."""
    return ranking.REGISTRY.edition(engine)


def task_of(qid: str, records: Iterable[PruneRecord]) -> Task:
    """The task of a query from its pruned pool."""
    kept = [record for record in records if record.kept and record.grade is not None]
    leaders = [(record.doc_id, record.grade) for record in kept if record.duplicate_of is None and record.grade]
    followers: dict[str, tuple[str, ...]] = {}
    for record in kept:
        if record.duplicate_of is not None:
            followers[record.duplicate_of] = (*followers.get(record.duplicate_of, ()), record.doc_id)
    return Task(qid, tuple(doc_id for doc_id, _ in leaders), tuple(grade for _, grade in leaders), followers)


Answers = dict[tuple[int, int], JournalRecord]


def known_answers(entries: Iterable[JournalRecord], state: str) -> Answers:
    """The journal's answers for one state, by round and slot."""
    return {(entry.round, entry.slot): entry for entry in entries if entry.state == state}


def learn(ranker: Ranker, round_entries: Sequence[JournalRecord]) -> None:
    """Give a whole round's answers to the ranker, in the round's order."""
    for entry in round_entries:
        if entry.order is None:
            ranker.skip(entry.shown)
        else:
            ranker.observe(entry.order)


def fold(task: Task, config: RankConfig, answers: Answers) -> tuple[Ranking | None, str | None]:
    """Replay a complete journal.

    Returns:
        The ranking, or None for an empty pool; and what the journal lacks or has too much, or None.
    """
    if not task.ids:
        return None, f"{len(answers)} entries for an empty pool" if answers else None
    ranker, used, number = task.ranker(config), 0, 0
    while not ranker.done:
        batches = ranker.next_batches(config.parallel)
        entries = [answers.get((number, slot)) for slot in range(len(batches))]
        for slot, (batch, entry) in enumerate(zip(batches, entries, strict=True)):
            if entry is None:
                return None, f"round {number}, slot {slot} is missing"
            if entry.shown != tuple(batch):
                return None, f"round {number}, slot {slot} shows other passages than the ranker asks for"
        learn(ranker, [entry for entry in entries if entry is not None])
        used += len(batches)
        number += 1
    return ranker.ranking(), None if used == len(answers) else f"{len(answers) - used} entries beyond the end"


def rank_records(task: Task, ranking: Ranking | None) -> Iterator[RankRecord]:
    """The ranking as records; near-duplicates follow their representative and share its numbers."""
    if ranking is None:
        return
    grades = dict(zip(task.ids, task.grades, strict=True))
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for lock in ranking.locks:
        below.setdefault(lock.winner, []).append(lock.loser)
        above.setdefault(lock.loser, []).append(lock.winner)
    rank = 0
    for position, doc_id in enumerate(ranking.order):
        for member in (doc_id, *task.followers.get(doc_id, ())):
            rank += 1
            yield RankRecord(
                qid=task.qid,
                rank=rank,
                doc_id=member,
                grade=grades[doc_id],
                score=ranking.scores[position],
                sigma=ranking.sigma[position],
                confidence=ranking.position_confidence[position],
                rank_low=ranking.rank_low[position],
                rank_high=ranking.rank_high[position],
                membership=ranking.membership[position],
                exposures=ranking.exposures[position],
                locks_out=tuple(sorted(below.get(doc_id, ()))),
                locks_in=tuple(sorted(above.get(doc_id, ()))),
                duplicate_of=None if member == doc_id else doc_id,
                expected_inversions=ranking.expected_inversions,
                sharpness=ranking.sharpness,
                echo=ranking.echo,
                position_bias=ranking.position_bias,
            )


class Batches(Tally):
    """The judge's health by the batches that it ordered, and by what the engine found out about it."""

    def __init__(self) -> None:
        self._counts = HealthCounts()
        self._qid = ""
        self._batches: list[Batch] = []

    def see(self, record: Record) -> None:
        if isinstance(record, RankRecord) and record.rank == 1:
            self._counts.find({name: getattr(record, name) for name in FINDINGS})
        if not isinstance(record, JournalRecord):
            return
        if record.qid != self._qid:
            self._end_query()
            self._qid = record.qid
        self._batches.append((record.shown, record.order))

    def summary(self) -> Mapping[str, Any]:
        self._end_query()
        return self._counts.health().summary()

    def _end_query(self) -> None:
        self._counts.add(self._batches)
        self._batches = []


class Rank(Stage[RankConfig]):
    NAME = "rank"
    VERSION = 2
    READS = ("merge", "prune")
    JOURNAL = "rank.journal"
    Config = RankConfig
    RECORD = RankRecord

    def causes(self, config: RankConfig, services: Services) -> dict[str, Any]:
        return {
            "queries": services.causes("queries"),
            "engine": engine_version(config.engine),
            "judge": services.causes("judge", "order"),
        }

    def tally(self, config: RankConfig) -> Tally:
        return Batches()

    def run(self, work: Work, config: RankConfig, services: Services) -> Iterator[RankRecord]:
        total = len(services.queries)
        judge = services.causes("judge", "order")
        turn = asyncio.Lock()

        async def rank(pair: tuple[Task, Mapping[str, MergeRecord]]) -> list[RankRecord]:
            task, pool = pair
            ranking = await self._rank(task, pool, task.state(config, judge), config, work, services, turn)
            return list(rank_records(task, ranking))

        # Rounds of a query follow each other, so many queries at a time keep every slot of the concurrency filled.
        for done, records in enumerate(run_ordered(services, _tasks(work), rank), start=1):
            yield from records
            work.progress(done, total)

    async def _rank(
        self,
        task: Task,
        pool: Mapping[str, MergeRecord],
        state: str,
        config: RankConfig,
        work: Work,
        services: Services,
        turn: asyncio.Lock,
    ) -> Ranking | None:
        if not task.ids:
            return None
        query = services.queries[task.qid]
        answers = known_answers(work.journal.entries(task.qid), state)
        ranker, number = task.ranker(config), 0
        used: list[JournalRecord] = []
        while not ranker.done:
            # A ranker thinks for milliseconds. Were many to think in a row, answers and free slots would wait for all.
            async with turn:
                await asyncio.sleep(0)
                batches = ranker.next_batches(config.parallel)
            pending = []
            for slot, batch in enumerate(batches):
                blank = JournalRecord(
                    qid=task.qid,
                    state=state,
                    engine=engine_version(config.engine),
                    round=number,
                    slot=slot,
                    shown=tuple(batch),
                    order=None,
                )
                pending.append(_answer(blank, answers.get((number, slot)), query, pool, work.journal, services.judge))
            entries = await asyncio.gather(*pending)
            learn(ranker, entries)
            used += entries
            number += 1
        work.journal.settle(task.qid, used)
        return ranker.ranking()


async def _answer(
    blank: JournalRecord,
    known: JournalRecord | None,
    query: Query,
    pool: Mapping[str, MergeRecord],
    journal: Journal,
    judge: Judge,
) -> JournalRecord:
    """The journal's answer where it has one that succeeded, else the judge's, noted in the journal."""
    if known is not None and known.shown == blank.shown and known.order is not None:
        return known
    ordering = await judge.order(query, [pool[doc_id].passage for doc_id in blank.shown])
    order = None if ordering.order is None else tuple(blank.shown[place] for place in ordering.order)
    entry = blank.model_copy(update={"order": order, "error": ordering.error})
    journal.append(entry)
    return entry


def _tasks(work: Work) -> Iterator[tuple[Task, Mapping[str, MergeRecord]]]:
    """Each query's task with the passages that it shows. Both artifacts are sorted by qid, so one pass is enough."""
    pools = work.by_query("merge", MergeRecord)
    for qid, records in work.by_query("prune", PruneRecord):
        task = task_of(qid, records)
        pool = next(pool for name, pool in pools if name == qid)
        needed = set(task.ids)
        yield task, {record.doc_id: record for record in pool if record.doc_id in needed}


STAGE = Rank()
