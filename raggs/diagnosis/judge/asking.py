"""Who is asked for what, how often: grades that are missing, one prompt of the whole pool, and the rank stage.

The presentation of a list depends on the seed, the question and its number alone. An answer that was paid for is
remembered by what was asked and by its sample, so that whoever is stopped pays nothing twice; a ranking that is done
again begins with other batches.

The pools that a judge is tried on: of a run's own judge stage, or searched for by the run's configuration.

Near-duplicates are left out, as the rank stage leaves them out. Pools that are searched for come from the retrievers
that pay nobody, and their grades have yet to be asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from raggs.base.arrays import shortest_floats
from raggs.base.artifacts import MIN_GRADE, EmbedRecord, JournalRecord, MergeRecord, Passage, Query, RetrieveRecord
from raggs.base.errors import PrerequisiteError
from raggs.base.seeds import generator
from raggs.config.models import RunConfig
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.judge.models import Asking, Row
from raggs.golden.base import GoldenQuery
from raggs.golden.runs import RunGolden
from raggs.llm.client import Overheard
from raggs.parts import retrievers
from raggs.parts.retrievers.base import Retriever, name_of
from raggs.parts.rewriters.none import NoRewriter
from raggs.parts.workshop import LLM, Embedder, Judge, Ordering, judge_prompts
from raggs.stages.base import PassageLookup, Work
from raggs.stages.embed import prepare
from raggs.stages.merge import STAGE as MERGE
from raggs.stages.rank_config import RankConfig
from raggs.stages.replay import Batch, Course, KeptPool, known_entries

FEWEST = 5  # passages of a pool


@dataclass(frozen=True)
class Pool:
    """A question with the passages that are to be ordered, best fused first; without grades where nobody gave any."""

    query: Query
    passages: tuple[Passage, ...]
    grades: tuple[int, ...] = ()


def pools_of(bench: Bench, run: RunConfig, count: int, size: int) -> list[Pool]:
    """So many pools, sorted by query, the longest ones first chosen, equal ones by lot.

    Raises:
        PrerequisiteError: no pool has five passages, or no retriever can search without paying.
    """
    golden = bench.golden if bench.has("golden") else None
    if isinstance(golden, RunGolden):
        found = _longest(
            filter(None, (_judged(each, size) for each in golden.by_query("pool", "grades"))), count, bench
        )
    else:
        found = list(_searched(bench, run, count, size))
    found = [pool for pool in found if len(pool.passages) >= FEWEST]
    if not found:
        raise PrerequisiteError(
            f"no pool has {FEWEST} passages to order", remedy="raggs run --config raggs.yaml --to judge makes pools"
        )
    return sorted(found, key=lambda pool: pool.query.qid)


def reaching(pools: Sequence[Pool], ordering: RankConfig) -> list[Pool]:
    """The pools without the passages that the rank stage leaves unordered; as they are where grades are to come.

    Raises:
        PrerequisiteError: no pool has a relevant passage, or too few passages of each reach the floor.
    """
    best, floor = ordering.min_best_grade, ordering.floor
    if not (ranked := [pool for pool in pools if max(pool.grades, default=best) >= best]):
        told = f"no pool has a passage of grade {best} or more (rank.min_best_grade)"
        raise PrerequisiteError(told, remedy=f"pass --set rank.min_best_grade={MIN_GRADE} to rank every query")
    found = [pool if not pool.grades else _above(pool, floor) for pool in ranked]
    if not (kept := [pool for pool in found if len(pool.passages) >= FEWEST]):
        told = f"no pool has {FEWEST} passages that reach rank.floor ({floor})"
        raise PrerequisiteError(told, remedy=f"pass --set rank.floor={MIN_GRADE}, under which all are ordered")
    return kept


def _above(pool: Pool, floor: int) -> Pool:
    pairs = zip(pool.passages, pool.grades, strict=True)
    kept = [(passage, grade) for passage, grade in pairs if grade >= floor]
    return Pool(pool.query, tuple(passage for passage, _ in kept), tuple(grade for _, grade in kept))


def _judged(found: GoldenQuery, size: int) -> Pool | None:
    """The first passages of a pool that have a grade of their own."""
    if found.query is None:
        return None
    texts = {passage.doc_id: passage for passage in found.pool}
    kept = [
        (texts[each.doc_id], each.grade)
        for each in found.grades
        if each.grade is not None and each.duplicate_of is None and each.doc_id in texts
    ][:size]
    return Pool(found.query, tuple(passage for passage, _ in kept), tuple(grade for _, grade in kept))


def _longest(pools: Iterator[Pool], count: int, bench: Bench) -> list[Pool]:
    held = list(pools)
    lot = generator(bench.seed, "pools", len(held)).permutation(len(held)).tolist()
    order = sorted(range(len(held)), key=lambda at: (-len(held[at].passages), lot[at]))
    return [held[at] for at in order[:count]]


@dataclass(frozen=True)
class _Lookup:
    """What the merge stage asks for."""

    queries: Mapping[str, Query]
    passages: PassageLookup


def _searched(bench: Bench, run: RunConfig, count: int, size: int) -> Iterator[Pool]:
    """Some questions by lot, searched for."""
    qids = list(bench.queries)
    lot = generator(bench.seed, "pools", len(qids)).permutation(len(qids)).tolist()
    chosen = {qids[at]: bench.queries[qids[at]] for at in sorted(lot[:count])}
    hits = sorted(_hits(bench, run, list(chosen.values())), key=lambda hit: (hit.qid, hit.retriever, hit.rank))
    work, lookup = Work({"retrieve": lambda: iter(hits)}), _Lookup(chosen, bench.passages)
    pooled: dict[str, list[MergeRecord]] = {}
    for record in MERGE.run(work, run.merge, lookup):
        if record.duplicate_of is None:
            pooled.setdefault(record.qid, []).append(record)
    for qid, records in pooled.items():
        yield Pool(chosen[qid], tuple(record.passage for record in records[:size]))


def _hits(bench: Bench, run: RunConfig, queries: Sequence[Query]) -> Iterator[RetrieveRecord]:
    own = next(iter(bench.embedders.values())) if run.embed.embedder is not None else None
    embedder = own if own is not None and not own.models else None
    records = _asked(bench, run, queries, embedder)
    for retriever in _free(bench, run, embedder, list(bench.queries)):
        for query, found in zip(queries, retriever.search(records), strict=True):
            for rank, hit in enumerate(found, start=1):
                name = name_of(retriever.config)
                yield RetrieveRecord(
                    qid=query.qid, retriever=name, rank=rank, doc_id=hit.doc_id, score=float(hit.score)
                )


def _free(bench: Bench, run: RunConfig, embedder: Embedder | None, qids: Sequence[str]) -> list[Retriever]:
    """The retrievers that pay nobody.

    Raises:
        PrerequisiteError: there is none.
    """
    kinds = [(spec, retrievers.REGISTRY.of(spec)) for spec in run.retrieve.retrievers]
    free = [spec for spec, kind in kinds if not kind.paid(spec) and (embedder or not kind.needs_vectors(spec))]
    if not free:
        raise PrerequisiteError(
            "there are no pools yet, and each retriever asks a model that is paid",
            remedy="raggs run --config raggs.yaml --to merge makes pools",
        )
    return [bench.workshop.retriever(spec, bench.passages, qids, embedder) for spec in free]


def _asked(bench: Bench, run: RunConfig, queries: Sequence[Query], embedder: Embedder | None) -> list[EmbedRecord]:
    """The questions as they are searched for, by the run's rewriter where that pays nobody."""
    own = bench.workshop.rewriter(run.embed.rewrite)
    rewriter = bench.workshop.rewriter(NoRewriter.Config()) if own.models else own
    prepared = [bench.workshop.loop.run(prepare(query, rewriter, run.embed.language)) for query in queries]
    if embedder is None:
        return prepared
    vectors = embedder.embed_queries([record.rewrite for record in prepared])
    return [
        record.model_copy(update={"embedding": tuple(shortest_floats(vector)), "embedder": embedder.identity})
        for record, vector in zip(prepared, vectors, strict=True)
    ]


def judge_of(bench: Bench, run: RunConfig, llm: LLM | None = None) -> Judge:
    """The run's judge. `llm`: the models that it asks."""
    grade, order = judge_prompts(run.judge.prompt, run.ordering.prompt)
    questions = lambda: bench.queries.values()  # noqa: E731 - asked for where a judge wants them
    return bench.workshop.judge(run.judge.judge, grade, order, llm, questions)


@dataclass(frozen=True)
class Plan:
    """How often is asked.

    Attributes:
        seed: of the presentations.
        showings: orders in which a pool is shown.
        repeats: asks of each.
        rankings: of each pool by the rank stage.
    """

    seed: int
    showings: int
    repeats: int
    rankings: int

    def shown(self, pool: Pool, showing: int) -> list[int]:
        """The positions of a pool's passages in one order of presentation."""
        found: list[int] = (
            generator(self.seed, "shown", pool.query.qid, showing).permutation(len(pool.passages)).tolist()
        )
        return found


async def one_prompt(judge: Judge, pools: Sequence[Pool], plan: Plan) -> list[Row]:
    """Every pool in one prompt, each of its showings as often as the plan says."""
    asked = [
        (pool, plan.shown(pool, showing), repeat)
        for pool in pools
        for showing in range(plan.showings)
        for repeat in range(plan.repeats)
    ]

    async def ask(pool: Pool, places: list[int], repeat: int) -> Row:
        passages = [pool.passages[place] for place in places]
        said = await judge.reorder(pool.query, passages, sample=repeat)
        shown = tuple(passage.doc_id for passage in passages)
        order = None if said.order is None else tuple(shown[place] for place in said.order)
        error = said.error or said.silent
        return Row(qid=pool.query.qid, sample=repeat, shown=shown, order=order, error=error, failed=int(order is None))

    return list(await asyncio.gather(*(ask(*each) for each in asked)))


async def grades_of(judge: Judge, pools: Sequence[Pool]) -> list[Row]:
    """Grades of the pools that have none, as `scores`; a passage on which the judge failed has the lowest."""

    async def grade(pool: Pool) -> Row:
        said = await asyncio.gather(*(judge.grade(pool.query, passage) for passage in pool.passages))
        return Row(
            qid=pool.query.qid,
            sample=0,
            shown=tuple(passage.doc_id for passage in pool.passages),
            order=None,
            scores=tuple(float(each.grade or MIN_GRADE) for each in said),
            asked=len(said),
            failed=sum(each.grade is None for each in said),
        )

    return list(await asyncio.gather(*(grade(pool) for pool in pools if not pool.grades)))


def graded(pools: Sequence[Pool], rows: Sequence[Row]) -> list[Pool]:
    """The pools with these grades, where they had none."""
    found = {row.qid: tuple(map(int, row.scores)) for row in rows}
    return [pool if pool.grades else replace(pool, grades=found[pool.query.qid]) for pool in pools]


ALL_ORDERED = {"floor": MIN_GRADE, "min_best_grade": MIN_GRADE}  # settings of a pool that is ranked as a whole


class Rankings:
    """Rankings of pools by the rank stage's own settings, each begun with another seed."""

    def __init__(self, judge: Judge, run: RunConfig) -> None:
        self._judge, self._config = judge, run.ordering

    async def all(self, pools: Sequence[Pool], rankings: int) -> list[Row]:
        """Every pool as often as is wanted."""
        asked = [self.ranked(pool, number) for pool in pools for number in range(rankings)]
        return list(await asyncio.gather(*asked))

    async def ranked(self, pool: Pool, number: int) -> Row:
        """One ranking."""
        course, asked = await self.begun(pool, number), _Asked()
        while batches := course.next_round():
            said = await asyncio.gather(*(self.ask(pool, batch, number) for batch in batches))
            course.learn([asked.take(batch, each) for batch, each in zip(batches, said, strict=True)])
            await asyncio.sleep(0)  # a ranker thinks for milliseconds; others wait for theirs
        found = course.ranking()
        spoke = asked.count == 0 or len(asked.errors) < asked.count  # a ranking that nobody spoke on is no order
        return Row(
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

    async def begun(self, pool: Pool, number: int) -> Course:
        """The course of the whole pool at its start; what people said of the pool is taken in."""
        ids = tuple(passage.doc_id for passage in pool.passages)
        config = self._config.model_copy(update={"seed": self._config.seed + number, **ALL_ORDERED})
        course = config.course(KeptPool(pool.query.qid, ids, pool.grades, {}))
        if course is None:
            raise TypeError("a pool without passages is not ranked")
        if course.informed:
            course.inform(known_entries(_entry((), None), await self._judge.known(pool.query, pool.passages)))
        return course

    def ask(self, pool: Pool, batch: Batch, number: int) -> Awaitable[Ordering]:
        """One batch put before the judge."""
        texts = {passage.doc_id: passage for passage in pool.passages}
        return self._judge.reorder(pool.query, [texts[doc_id] for doc_id in batch.shown], sample=number)


class _Asked:
    """What was asked for one ranking."""

    def __init__(self) -> None:
        self.count = self.first = 0
        self.errors: list[str] = []

    def take(self, batch: Batch, said: Ordering) -> JournalRecord:
        """Count an answer, and give it as rankings learn it."""
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


def kept(
    bench: Bench, run: RunConfig, causes: Sequence[object], ask: Callable[[Judge], Awaitable[list[Row]]]
) -> Asking:
    """Answers as they are kept, or asked for now, with what they took."""

    def make() -> list[Asking]:
        llm = Overheard(bench.workshop.llm)
        rows = bench.workshop.loop.run(_awaited(ask(judge_of(bench, run, llm))))
        took = llm.took
        calls = took.calls or sum(row.asked for row in rows)
        return [Asking(rows=tuple(rows), calls=calls, tokens=took.tokens, usd=took.usd)]

    return bench.kept(list(causes), Asking, make)[0]


async def _awaited(found: Awaitable[list[Row]]) -> list[Row]:
    return await found
