"""Pools, answers and findings of the diagnosis of a judge. An undefined number is null.

If the golden set is a run, its pools and grades are used. Otherwise pools are made with the run's configuration, by its
retrievers without paid models. Near-duplicates are removed as in the rank stage, and the judge grades pools that have
no grades yet.

The judge is called for missing grades, to order the complete pool by one prompt, and for the rank stage. The order in
which a list is shown depends only on the seed, the query and the number of the presentation. Paid answers are stored
by prompt and sample, so an interrupted diagnosis does not pay twice. A repeated ranking starts with different batches.

Each figure with an interval is a mean of one value per pool. The interval comes from resampled pools.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from raggs.base.artifacts import MIN_GRADE, EmbedRecord, JournalRecord, MergeRecord, Passage, Query, RetrieveRecord
from raggs.base.document import Column
from raggs.base.errors import PrerequisiteError
from raggs.base.hashing import generator
from raggs.base.types import Number, finite_or_none
from raggs.config.models import RunConfig
from raggs.diagnosis.base import Bench, DiagnosisFindings
from raggs.diagnosis.models import MeanPart
from raggs.evaluation.models import ReportPart
from raggs.golden.base import GoldenQuery
from raggs.golden.runs import RunGolden
from raggs.llm.client import LLM, MeteredLLM
from raggs.parts import retrievers
from raggs.parts.embedders import Embedder
from raggs.parts.judges import Judge, Ordering
from raggs.parts.retrievers import Retriever, name_of
from raggs.parts.rewriters import NoRewriter
from raggs.parts.workspace import judge_prompts
from raggs.stages.base import PassageLookup, StageWork
from raggs.stages.embed import prepare, with_vectors
from raggs.stages.merge import STAGE as MERGE
from raggs.stages.rank_config import RankConfig
from raggs.stages.replay import Batch, KeptPool, RankingProcess, known_entries
from raggs.stats.intervals import bootstrap_mean
from raggs.stats.judge_sharpness import (
    ObservedOrder,
    OrderPicks,
    PoolEstimates,
    by_pool,
    kept_by_place,
    mean_disagreement,
    mean_overlap,
    reversed_pairs,
    with_grades,
)


class JudgeAnswerRow(ReportPart):
    """Stored answers of the judge: one order of a list, one complete ranking, or the grades of a pool."""

    qid: str
    sample: int = Field(description="number of the repetition or, for the rank stage, of the ranking")
    shown: tuple[str, ...] = Field(
        description="passages in presentation order or, for a ranking, the pool by fused rank"
    )
    order: tuple[str, ...] | None = Field(description="order, best first; null if the judge returned none")
    error: str | None = None
    scores: tuple[float, ...] = Field(
        (), description="for a ranking: scores of the passages in `order`, in grades; for grading: grades of `shown`"
    )
    sharpness: Number = None
    position_bias: Number = Field(
        None, description="for a ranking: position bias, as the gain of the first position in grades"
    )
    asked: int = Field(1, description="number of calls")
    failed: int = 0
    errors: tuple[str, ...] = ()
    first: int = Field(0, description="number of batches won by the passage shown first")


class JudgeAnswerCosts(ReportPart):
    """All answers of one kind, and their cost. The cost includes answers that earlier invocations paid for."""

    rows: tuple[JudgeAnswerRow, ...]
    calls: int
    tokens: int
    usd: float


class PoolsPart(MeanPart):
    """A mean over pools."""

    pools: int


def _usd(value: float) -> str:
    return f"{value:.4g}" if value else "0"


class OrderMethodPart(ReportPart):
    """Results of one method to order pools."""

    name: Annotated[str, Column("way")]
    again: Annotated[
        PoolsPart,
        Column(
            "same order",
            "score",
            legend="share of pairs that are reversed when the same list is shown again",
        ),
    ] = Field(description="share of pairs that are reversed when the same list is shown again")
    otherwise: Annotated[
        PoolsPart,
        Column(
            "other order",
            "score",
            legend="share of pairs reversed in another presentation order; rank stage: in a repeated ranking",
        ),
    ] = Field(description="share of pairs reversed in another presentation order; rank stage: in a repeated ranking")
    tau: Annotated[PoolsPart, Column("tau", "score")] = Field(
        description="Kendall's tau with the other order: 1 - 2 × share of reversed pairs"
    )
    top: Annotated[PoolsPart, Column("overlap@{top}", "score")] = Field(
        description="share of the first `top` passages that both orders have in common"
    )
    asked: Annotated[int, Column("asked")] = Field(description="number of calls for the orders")
    failed: Annotated[int, Column("failed")] = Field(description="number of calls without a valid order")
    calls: Annotated[float, Column("calls", text="{:.4g}")] = Field(
        description="mean number of calls per order of one pool"
    )
    tokens: Annotated[float, Column("tokens", text="{:,.0f}")] = Field(
        description="mean number of tokens sent per order of one pool"
    )
    usd: Annotated[float, Column("USD", text=_usd)] = Field(description="mean cost in USD per order of one pool")


class PlacePart(ReportPart):
    """How often passages that are neighbours in one order are in the same order in another one."""

    first: int
    last: int
    again: Annotated[PoolsPart, Column("one prompt, repeated", "score")] = Field(
        description="neighbours in an order by one prompt that keep their order in its repetition"
    )
    against: Annotated[PoolsPart, Column("one prompt, by rank stage", "score")] = Field(
        description="neighbours in an order by one prompt that have the same order in the rank stage"
    )
    ranked: Annotated[PoolsPart, Column("rank stage, repeated", "score")] = Field(
        description="neighbours in a ranking by the rank stage that keep their order in its repetition"
    )

    @property
    def places(self) -> Annotated[str, Column("places")]:
        """First and last rank of the range."""
        return f"{self.first}–{self.last + 1}"


class PositionBiasPart(ReportPart):
    """Position bias: effect of the position at which a passage is shown."""

    toward: PoolsPart = Field(description="one prompt: share of reversed pairs won by the passage shown first")
    single: PoolsPart = Field(description="one prompt: gain of the first position over the last, in grades")
    first: PoolsPart = Field(description="rank stage: share of batches won by the passage shown first")
    fair_first: float
    ranked: PoolsPart = Field(description="rank stage: gain of the first position over the last, in grades")


class JudgeFindings(DiagnosisFindings):
    """Findings of the diagnosis of a judge."""

    judge: str
    pools: int
    size: int = Field(description="number of passages in the longest pool")
    batch: int = Field(description="passages per batch of the rank stage")
    showings: int
    repeats: int
    rankings: int
    top: int
    single: OrderMethodPart
    informed: OrderMethodPart = Field(
        description="one prompt, combined with the grades that the rank stage starts from"
    )
    ranked: OrderMethodPart
    gain: PoolsPart = Field(description="`otherwise` of `informed` minus that of the rank stage, paired by pool")
    between: PoolsPart = Field(description="Kendall's tau between one prompt and the rank stage")
    favour: PositionBiasPart
    sharpness: PoolsPart = Field(description="sharpness of one prompt, on the scale of the rank stage")
    ranked_sharpness: PoolsPart
    places: tuple[PlacePart, ...]
    grading: Mapping[str, float] = Field(
        description="number and cost (USD) of the calls for the grades that the rank stage starts from"
    )
    errors: Mapping[str, int] = Field(description="reasons for missing orders, with counts")


MIN_POOL_PASSAGES = 5  # pools with fewer passages are not used


@dataclass(frozen=True)
class QueryPool:
    """A query with the passages to order, best fused rank first. `grades` is empty if the passages were not graded
    yet.
    """

    query: Query
    passages: tuple[Passage, ...]
    grades: tuple[int, ...] = ()


def pools_of(bench: Bench, run: RunConfig, count: int, size: int) -> list[QueryPool]:
    """Return up to `count` pools, sorted by query. From a run, the longest pools are chosen, with ties broken at
    random.

    Raises:
        PrerequisiteError: no pool has at least five passages, or every retriever uses paid models.
    """
    golden = bench.golden if bench.has("golden") else None
    if isinstance(golden, RunGolden):
        held = [pool for each in golden.by_query("pool", "grades") if (pool := _graded_head(each, size))]
        lot = generator(bench.seed, "pools", len(held)).permutation(len(held)).tolist()
        order = sorted(range(len(held)), key=lambda at: (-len(held[at].passages), lot[at]))
        found = [held[at] for at in order[:count]]
    else:
        found = list(_searched(bench, run, count, size))
    found = [pool for pool in found if len(pool.passages) >= MIN_POOL_PASSAGES]
    if not found:
        raise PrerequisiteError(
            f"no pool has at least {MIN_POOL_PASSAGES} passages",
            remedy="create pools of this size: raggs run --config raggs.yaml --to judge",
        )
    return sorted(found, key=lambda pool: pool.query.qid)


def pools_above_floor(pools: Sequence[QueryPool], ordering: RankConfig) -> list[QueryPool]:
    """Return the pools that the rank stage ranks, without the passages below its floor. Pools without grades are kept.

    Pools with fewer than `MIN_POOL_PASSAGES` remaining passages are dropped.

    Raises:
        PrerequisiteError: no pool has a relevant passage, or no pool has enough passages at or above the floor.
    """
    best, floor = ordering.min_best_grade, ordering.floor
    if not (ranked := [pool for pool in pools if max(pool.grades, default=best) >= best]):
        told = f"no pool has a passage of grade {best} or more (rank.min_best_grade)"
        raise PrerequisiteError(told, remedy=f"pass --set rank.min_best_grade={MIN_GRADE} to rank every query")
    found = [pool if not pool.grades else _pool_above_floor(pool, floor) for pool in ranked]
    if not (kept := [pool for pool in found if len(pool.passages) >= MIN_POOL_PASSAGES]):
        told = f"no pool has at least {MIN_POOL_PASSAGES} passages of grade {floor} (rank.floor) or more"
        raise PrerequisiteError(told, remedy=f"pass --set rank.floor={MIN_GRADE} to order all passages")
    return kept


def _pool_above_floor(pool: QueryPool, floor: int) -> QueryPool:
    pairs = zip(pool.passages, pool.grades, strict=True)
    kept = [(passage, grade) for passage, grade in pairs if grade >= floor]
    return QueryPool(pool.query, tuple(passage for passage, _ in kept), tuple(grade for _, grade in kept))


def _graded_head(found: GoldenQuery, size: int) -> QueryPool | None:
    """Return the first passages of a pool that have a grade and are not duplicates; None without the query's text."""
    if found.query is None:
        return None
    texts = {passage.doc_id: passage for passage in found.pool}
    kept = [
        (texts[each.doc_id], each.grade)
        for each in found.grades
        if each.grade is not None and each.duplicate_of is None and each.doc_id in texts
    ][:size]
    return QueryPool(found.query, tuple(passage for passage, _ in kept), tuple(grade for _, grade in kept))


@dataclass(frozen=True)
class _Lookup:
    """The services that the merge stage needs."""

    queries: Mapping[str, Query]
    passages: PassageLookup


def _searched(bench: Bench, run: RunConfig, count: int, size: int) -> Iterator[QueryPool]:
    """Search for some randomly chosen queries, and yield their pools."""
    qids = list(bench.queries)
    lot = generator(bench.seed, "pools", len(qids)).permutation(len(qids)).tolist()
    chosen = {qids[at]: bench.queries[qids[at]] for at in sorted(lot[:count])}
    hits = sorted(_hits(bench, run, list(chosen.values())), key=lambda hit: (hit.qid, hit.retriever, hit.rank))
    work, lookup = StageWork({"retrieve": lambda: iter(hits)}), _Lookup(chosen, bench.passages)
    pooled: dict[str, list[MergeRecord]] = {}
    for record in MERGE.run(work, run.merge, lookup):
        if record.duplicate_of is None:
            pooled.setdefault(record.qid, []).append(record)
    for qid, records in pooled.items():
        yield QueryPool(chosen[qid], tuple(record.passage for record in records[:size]))


def _hits(bench: Bench, run: RunConfig, queries: Sequence[Query]) -> Iterator[RetrieveRecord]:
    own = next(iter(bench.embedders.values())) if run.embed.embedder is not None else None
    embedder = own if own is not None and not own.models else None
    records = _search_records(bench, run, queries, embedder)
    for retriever in _free_retrievers(bench, run, embedder, list(bench.queries)):
        for query, found in zip(queries, retriever.search(records), strict=True):
            for rank, hit in enumerate(found, start=1):
                name = name_of(retriever.config)
                yield RetrieveRecord(
                    qid=query.qid, retriever=name, rank=rank, doc_id=hit.doc_id, score=float(hit.score)
                )


def _free_retrievers(bench: Bench, run: RunConfig, embedder: Embedder | None, qids: Sequence[str]) -> list[Retriever]:
    """Return the run's retrievers that work without paid models. Those that need vectors are omitted without an
    embedder.

    Raises:
        PrerequisiteError: there is none.
    """
    kinds = [(spec, retrievers.REGISTRY.of(spec)) for spec in run.retrieve.retrievers]
    free = [spec for spec, kind in kinds if not kind.paid(spec) and (embedder or not kind.needs_vectors(spec))]
    if not free:
        raise PrerequisiteError(
            "no pools exist yet, and every retriever needs a paid model",
            remedy="create pools: raggs run --config raggs.yaml --to merge",
        )
    return [bench.workspace.retriever(spec, bench.passages, qids, embedder) for spec in free]


def _search_records(
    bench: Bench, run: RunConfig, queries: Sequence[Query], embedder: Embedder | None
) -> list[EmbedRecord]:
    """Return the queries to search for. The run's rewriter rewrites them, if it calls no paid model."""
    own = bench.workspace.rewriter(run.embed.rewrite)
    rewriter = bench.workspace.rewriter(NoRewriter.Config()) if own.models else own
    prepared = [bench.workspace.loop.run(prepare(query, rewriter, run.embed.language)) for query in queries]
    return prepared if embedder is None else with_vectors(prepared, embedder)


def judge_of(bench: Bench, run: RunConfig, llm: LLM | None = None) -> Judge:
    """Return the run's judge; `llm` replaces its models."""
    grade, order = judge_prompts(run.judge.prompt, run.ordering.prompt)
    questions = lambda: bench.queries.values()  # noqa: E731 - evaluated only if the judge needs it
    return bench.workspace.judge(run.judge.judge, grade, order, llm, questions)


@dataclass(frozen=True)
class RepeatPlan:
    """How often the judge orders each pool.

    Attributes:
        seed: random seed of the presentations.
        showings: number of orders in which a pool is shown.
        repeats: number of calls per presentation order.
        rankings: number of times that the rank stage ranks each pool.
    """

    seed: int
    showings: int
    repeats: int
    rankings: int

    def shown(self, pool: QueryPool, showing: int) -> list[int]:
        """Return the order in which a pool's passages are shown, as positions in the pool."""
        found: list[int] = (
            generator(self.seed, "shown", pool.query.qid, showing).permutation(len(pool.passages)).tolist()
        )
        return found


async def one_prompt(judge: Judge, pools: Sequence[QueryPool], plan: RepeatPlan) -> list[JudgeAnswerRow]:
    """Return the judge's orders of every pool by one prompt, for each presentation order and each repetition."""
    asked = [
        (pool, plan.shown(pool, showing), repeat)
        for pool in pools
        for showing in range(plan.showings)
        for repeat in range(plan.repeats)
    ]

    async def ask(pool: QueryPool, places: list[int], repeat: int) -> JudgeAnswerRow:
        passages = [pool.passages[place] for place in places]
        said = await judge.reorder(pool.query, passages, sample=repeat)
        shown = tuple(passage.doc_id for passage in passages)
        order = None if said.order is None else tuple(shown[place] for place in said.order)
        error = said.error or said.silent
        return JudgeAnswerRow(
            qid=pool.query.qid, sample=repeat, shown=shown, order=order, error=error, failed=int(order is None)
        )

    return list(await asyncio.gather(*(ask(*each) for each in asked)))


async def grades_of(judge: Judge, pools: Sequence[QueryPool]) -> list[JudgeAnswerRow]:
    """Return the grades of ungraded pools as `scores`. A passage on which the judge failed gets the lowest grade."""

    async def grade(pool: QueryPool) -> JudgeAnswerRow:
        said = await asyncio.gather(*(judge.grade(pool.query, passage) for passage in pool.passages))
        return JudgeAnswerRow(
            qid=pool.query.qid,
            sample=0,
            shown=tuple(passage.doc_id for passage in pool.passages),
            order=None,
            scores=tuple(float(each.grade or MIN_GRADE) for each in said),
            asked=len(said),
            failed=sum(each.grade is None for each in said),
        )

    return list(await asyncio.gather(*(grade(pool) for pool in pools if not pool.grades)))


def graded(pools: Sequence[QueryPool], rows: Sequence[JudgeAnswerRow]) -> list[QueryPool]:
    """Return the pools. Pools without grades get these grades."""
    found = {row.qid: tuple(map(int, row.scores)) for row in rows}
    return [pool if pool.grades else replace(pool, grades=found[pool.query.qid]) for pool in pools]


ALL_ORDERED = {"floor": MIN_GRADE, "min_best_grade": MIN_GRADE}  # settings that make the engine rank a pool completely


class Rankings:
    """Ranks pools with the settings of the run's rank stage. Each ranking of a pool has another seed."""

    def __init__(self, judge: Judge, run: RunConfig) -> None:
        self._judge, self._config = judge, run.ordering

    async def all(self, pools: Sequence[QueryPool], rankings: int) -> list[JudgeAnswerRow]:
        """Rank every pool as often as requested."""
        asked = [self.ranked(pool, number) for pool in pools for number in range(rankings)]
        return list(await asyncio.gather(*asked))

    async def ranked(self, pool: QueryPool, number: int) -> JudgeAnswerRow:
        """Rank one pool once."""
        course, asked = await self.begun(pool, number), _RankingCalls()
        while batches := course.next_round():
            said = await asyncio.gather(*(self.ask(pool, batch, number) for batch in batches))
            course.learn([asked.take(batch, each) for batch, each in zip(batches, said, strict=True)])
            await asyncio.sleep(0)  # the ranker computes for milliseconds, so other tasks must get a turn
        found = course.ranking()
        # if the judge gave no valid answer, there is no ranking
        spoke = asked.count == 0 or len(asked.errors) < asked.count
        return JudgeAnswerRow(
            qid=pool.query.qid,
            sample=number,
            shown=tuple(passage.doc_id for passage in pool.passages),
            order=found.order if spoke else None,
            scores=found.scores if spoke else (),
            sharpness=found.sharpness,
            position_bias=found.position_bias,
            asked=asked.count,
            failed=len(asked.errors),
            errors=tuple(asked.errors),
            first=asked.first,
        )

    async def begun(self, pool: QueryPool, number: int) -> RankingProcess:
        """Return the ranking process of the complete pool before its first call, with orders by humans included."""
        ids = tuple(passage.doc_id for passage in pool.passages)
        config = self._config.model_copy(update={"seed": self._config.seed + number, **ALL_ORDERED})
        course = config.course(KeptPool(pool.query.qid, ids, pool.grades, {}))
        if course is None:
            raise TypeError("a pool without passages is not ranked")
        if course.informed:
            course.inform(known_entries(_entry((), None), await self._judge.known(pool.query, pool.passages)))
        return course

    def ask(self, pool: QueryPool, batch: Batch, number: int) -> Awaitable[Ordering]:
        """Return the judge's order of one batch."""
        texts = {passage.doc_id: passage for passage in pool.passages}
        return self._judge.reorder(pool.query, [texts[doc_id] for doc_id in batch.shown], sample=number)


class _RankingCalls:
    """Counts the calls of one ranking."""

    def __init__(self) -> None:
        self.count = self.first = 0
        self.errors: list[str] = []

    def take(self, batch: Batch, said: Ordering) -> JournalRecord:
        """Count an answer, and convert it to the form that the ranking engine uses."""
        self.count += 1
        if said.order is None:
            self.errors.append(said.error or said.silent or "no order")
        else:
            self.first += said.order[0] == 0
        return _entry(batch.shown, said)


def _entry(shown: Iterable[str], said: Ordering | None) -> JournalRecord:
    names = tuple(shown)
    order = None if said is None or said.order is None else tuple(names[place] for place in said.order)
    silent = None if said is None else said.silent
    blank = JournalRecord(qid="q", state="", engine="", round=0, slot=0, shown=names, order=order)
    return blank.model_copy(update={"silent": silent})


def kept_answers(
    bench: Bench,
    run: RunConfig,
    causes: Sequence[object],
    ask: Callable[[Judge], Coroutine[object, object, list[JudgeAnswerRow]]],
) -> JudgeAnswerCosts:
    """Return the answers with their cost. Answers that are not stored are requested now."""

    def make() -> list[JudgeAnswerCosts]:
        llm = MeteredLLM(bench.workspace.llm)
        rows = bench.workspace.loop.run(ask(judge_of(bench, run, llm)))
        took = llm.took
        calls = took.calls or sum(row.asked for row in rows)
        return [JudgeAnswerCosts(rows=tuple(rows), calls=calls, tokens=took.tokens, usd=took.usd)]

    return bench.kept(list(causes), JudgeAnswerCosts, make)[0]


POSITION_GROUP_ENDS = (5, 10, 20, 30, 40)  # last rank of each range of ranks
MAX_SHOWN_ERRORS = 3  # maximum number of failure reasons in the table


@dataclass(frozen=True)
class JudgeAnswers:
    """Compares all answers.

    Attributes:
        single: orders of complete pools in one prompt.
        ranked: rankings by the rank stage. Their `shown` is the pool by fused rank.
        grades: the grades that the rank stage starts from, by pool and passage.
        top: number of top passages whose overlap is compared.
        batch: number of passages per batch of the rank stage.
        seed: random seed of the intervals.
    """

    single: JudgeAnswerCosts
    ranked: JudgeAnswerCosts
    grades: Mapping[str, Mapping[str, int]]
    top: int
    batch: int
    seed: int

    @cached_property
    def qids(self) -> tuple[str, ...]:
        """Ids of the queries whose pools were ranked, sorted."""
        return tuple(sorted({row.qid for row in self.ranked.rows}))

    @cached_property
    def orders(self) -> Mapping[str, list[ObservedOrder]]:
        """Orders by one prompt, by pool."""
        return {qid: _observed_orders(self.single.rows, qid) for qid in self.qids}

    @cached_property
    def rankings(self) -> Mapping[str, list[ObservedOrder]]:
        """Rankings, by pool. Each ranking counts as a separate presentation."""
        return {qid: _observed_orders(self.ranked.rows, qid) for qid in self.qids}

    @cached_property
    def informed(self) -> Mapping[str, list[ObservedOrder]]:
        """Orders by one prompt, combined with the grades, by pool."""
        found = {}
        for qid in self.qids:  # grades are sorted by passage id, because `ObservedOrder` numbers passages by id
            grades = np.array([grade for _, grade in sorted(self.grades[qid].items())], dtype=np.float64)
            found[qid] = [with_grades(told, grades) for told in self.orders[qid]]
        return found

    # --- the three methods ---

    def of_prompts(self, name: str, orders: Mapping[str, list[ObservedOrder]]) -> OrderMethodPart:
        """Return the results of one prompt with the complete pool. `orders` are its orders, or its orders combined with
        the grades.
        """
        again = [mean_disagreement(orders[qid], same=True) for qid in self.qids]
        top = [mean_overlap(orders[qid], self.top, same=False) for qid in self.qids]
        return self._way(name, self.single, again, self._turned(orders), top)

    def rank_stage(self, name: str) -> OrderMethodPart:
        """Return the results of the rank stage. It never repeats a presentation, so `again` is undefined."""
        top = [mean_overlap(self.rankings[qid], self.top, same=True) for qid in self.qids]
        return self._way(name, self.ranked, [math.nan] * len(self.qids), self._afresh, top)

    @property
    def gain(self) -> PoolsPart:
        """Return by how much the share of reversed pairs is lower with the rank stage than with one prompt that uses
        the same grades.
        """
        return self.mean(np.array(self._turned(self.informed)) - np.array(self._afresh))

    @property
    def between(self) -> PoolsPart:
        """Return Kendall's tau between the two methods, as a mean over all pairs of their orders of a pool."""
        return self.mean([1 - 2 * _disagreement_between(self.orders[qid], self.rankings[qid]) for qid in self.qids])

    # --- position bias and sharpness ---

    @property
    def favour(self) -> PositionBiasPart:
        """Return the position bias of both methods."""
        rows = [row for row in self.ranked.rows if row.asked > row.failed]
        sizes = [min(self.batch, len(row.shown)) for row in rows]
        return PositionBiasPart(
            toward=self.mean([reversed_pairs(self.orders[qid]).share for qid in self.qids]),
            single=self.mean(self._picked.grades),
            first=self.mean(self._by_pool([row.first / (row.asked - row.failed) for row in rows], rows)),
            fair_first=float(np.mean([1 / size for size in sizes])) if sizes else 0.0,
            ranked=self.mean(self._by_pool([row.position_bias for row in rows], rows)),
        )

    @property
    def sharpness(self) -> PoolsPart:
        """Return the sharpness of one prompt, on the scale of the rank stage's utilities."""
        return self.mean(self._picked.sharpness)

    @property
    def ranked_sharpness(self) -> PoolsPart:
        """Return the sharpness that the ranking engine estimates from the rank stage's batches."""
        rows = self.ranked.rows
        return self.mean(self._by_pool([row.sharpness for row in rows], rows))

    def places(self) -> tuple[PlacePart, ...]:
        """Return how often neighbours keep their order, by range of ranks."""
        longest = max((len(row.shown) for row in self.ranked.rows), default=0)
        ends = [*(end for end in POSITION_GROUP_ENDS if end < longest - 1), max(1, longest - 1)]
        again, against, ranked = [], [], []
        for qid in self.qids:
            orders, rankings = self.orders[qid], self.rankings[qid]
            alike = [pair for pair in combinations(orders, 2) if pair[0].alike == pair[1].alike]
            again.append(kept_by_place(alike, ends))
            against.append(kept_by_place(list(product(orders, rankings)), ends))
            ranked.append(kept_by_place(list(combinations(rankings, 2)), ends))
        columns = [np.array(rows) for rows in (again, against, ranked)]
        firsts = [1, *(end + 1 for end in ends[:-1])]
        return tuple(
            PlacePart(
                first=first,
                last=end,
                again=self.mean(columns[0][:, at]),
                against=self.mean(columns[1][:, at]),
                ranked=self.mean(columns[2][:, at]),
            )
            for at, (first, end) in enumerate(zip(firsts, ends, strict=True))
        )

    def errors(self) -> dict[str, int]:
        """Return the most frequent reasons for missing orders with their counts, at most `MAX_SHOWN_ERRORS`."""
        said = [row.error or "no order" for row in self.single.rows if row.order is None]
        said += [error for row in self.ranked.rows for error in row.errors]
        return dict(Counter(said).most_common(MAX_SHOWN_ERRORS))

    def mean(self, values: npt.ArrayLike) -> PoolsPart:
        """Return the mean over pools, with its interval."""
        found = bootstrap_mean(np.asarray(values, dtype=np.float64), seed=self.seed)
        return PoolsPart(
            mean=finite_or_none(found.mean),
            low=finite_or_none(found.low),
            high=finite_or_none(found.high),
            pools=found.count,
        )

    # --- by pool ---

    def _turned(self, orders: Mapping[str, list[ObservedOrder]]) -> list[float]:
        return [mean_disagreement(orders[qid], same=False) for qid in self.qids]

    @cached_property
    def _afresh(self) -> list[float]:
        return [mean_disagreement(self.rankings[qid], same=True) for qid in self.qids]

    @cached_property
    def _picked(self) -> PoolEstimates:
        """Return sharpness and position bias of one prompt by pool, with the utilities of the first ranking."""
        utilities = {
            row.qid: dict(zip(row.order or (), row.scores, strict=True)) for row in self.ranked.rows if not row.sample
        }
        if not any(self._turned(self.orders)):  # all orders are equal: the answers do not determine the sharpness
            return by_pool([])
        given = [row for row in self.single.rows if row.order is not None]
        pools = [
            [_order_picks(row, utilities[qid]) for row in given if row.qid == qid]
            for qid in self.qids
            if qid in utilities
        ]
        return by_pool([pool for pool in pools if pool])

    def _by_pool(self, values: Sequence[Number], rows: Sequence[JudgeAnswerRow]) -> list[float]:
        """Return the mean of `values` over the rows of each pool."""
        found = [[value for value, row in zip(values, rows, strict=True) if row.qid == qid] for qid in self.qids]
        return [float(np.mean(np.array(each, dtype=np.float64))) if each else math.nan for each in found]

    def _way(
        self, name: str, asking: JudgeAnswerCosts, again: list[float], otherwise: list[float], top: list[float]
    ) -> OrderMethodPart:
        rows, asked = asking.rows, sum(row.asked for row in asking.rows)
        each = max(1, len(rows))
        return OrderMethodPart(
            name=name,
            again=self.mean(again),
            otherwise=self.mean(otherwise),
            tau=self.mean(1 - 2 * np.array(otherwise)),
            top=self.mean(top),
            asked=asked,
            failed=sum(row.failed for row in rows),
            calls=asking.calls / each,
            tokens=asking.tokens / each,
            usd=asking.usd / each,
        )


def _observed_orders(rows: Sequence[JudgeAnswerRow], qid: str) -> list[ObservedOrder]:
    return [ObservedOrder.of(row.shown, row.order) for row in rows if row.qid == qid and row.order is not None]


def _disagreement_between(orders: Sequence[ObservedOrder], others: Sequence[ObservedOrder]) -> float:
    found = [mean_disagreement([one, other], same=one.alike == other.alike) for one in orders for other in others]
    return float(np.mean(found)) if found else math.nan


def _order_picks(row: JudgeAnswerRow, utilities: Mapping[str, float]) -> OrderPicks:
    order, place = row.order or (), {name: at for at, name in enumerate(row.shown)}
    return OrderPicks.of([utilities[name] for name in order], [place[name] for name in order])
