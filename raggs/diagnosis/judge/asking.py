"""Who is asked for what, how often: grades that are missing, one prompt of the whole pool, and the rank stage.

The presentation of a list depends on the seed, the question and its number alone. An answer that was paid for is
remembered by what was asked and by its sample, so that whoever is stopped pays nothing twice; a ranking that is done
again begins with other batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from raggs.base.artifacts import MIN_GRADE, JournalRecord
from raggs.base.seeds import generator
from raggs.config.models import RunConfig
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.judge.models import Asking, Row
from raggs.diagnosis.judge.pools import Pool
from raggs.llm.overheard import Overheard
from raggs.parts.workshop import LLM, Judge, Ordering, judge_prompts
from raggs.stages.judgedbatches import known_entries
from raggs.stages.replay import Batch, Course, KeptPool


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
