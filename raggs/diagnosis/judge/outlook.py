"""What the diagnosis of a judge would ask that is not paid for yet: its work, with a judge that only remembers.

One prompt of a pool is counted exactly. A ranking is followed until the first answer that is missing; what may come
after it is bounded by `rank.max_calls`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from raggs.base.artifacts import JournalRecord
from raggs.config.models import RunConfig
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.judge.asking import Plan, Rankings, graded, grades_of, judge_of, one_prompt
from raggs.diagnosis.judge.pools import Pool, reaching
from raggs.llm.prices import HIDDEN, reasons
from raggs.llm.rehearsal import Asked, Rehearsal
from raggs.parts.judges.litellm import GRADE_TOKENS, LABEL_TOKENS
from raggs.parts.workshop import Judge, Task
from raggs.runs.manifests.models import Estimate


class Outlook:
    """See the module.

    Args:
        bench: one that rehearses.
        rehearsal: its language models.
    """

    def __init__(self, bench: Bench, run: RunConfig, rehearsal: Rehearsal) -> None:
        self._bench, self._run, self._llm = bench, run, rehearsal
        self._judge: Judge = judge_of(bench, run, rehearsal)
        self._before: dict[tuple[str, str], Asked] = {}

    def lines(self, pools: Sequence[Pool], plan: Plan) -> tuple[Estimate, ...]:
        """A line for each model and part of the work; one without a price for a judge that pays nobody."""
        loop = self._bench.workshop.loop
        found: list[Estimate] = []
        rows = loop.run(grades_of(self._judge, pools))
        if rows:
            found += self._counted("grades", "grade", GRADE_TOKENS, sum(len(row.shown) for row in rows))
        if not self._llm.missing:
            pools = reaching(graded(pools, rows), self._run.ordering)
        sizes = [len(pool.passages) for pool in pools]
        loop.run(one_prompt(self._judge, pools, plan))
        length = LABEL_TOKENS * (max(sizes) + 2)
        found += self._counted("one prompt", "order", length, len(pools) * plan.showings * plan.repeats)
        unknown = self._llm.missing > 0 and bool(rows)
        beyond = loop.run(self._beyond(graded(pools, rows), plan, unknown=unknown))
        most = len(pools) * plan.rankings * self._run.ordering.max_calls
        length = LABEL_TOKENS * (self._run.ordering.list_length + 2)
        return (*found, *self._counted("rank stage", "order", length, most, beyond))

    async def _beyond(self, pools: Sequence[Pool], plan: Plan, *, unknown: bool) -> int:
        """Calls that may come after those that were counted."""
        rankings, beyond = Rankings(self._judge, self._run), 0
        for pool in pools:
            for number in range(plan.rankings):
                beyond += await self._followed(rankings, pool, number, unknown=unknown)
        return beyond

    async def _followed(self, rankings: Rankings, pool: Pool, number: int, *, unknown: bool) -> int:
        course, most = await rankings.begun(pool, number), self._run.ordering.max_calls
        while batches := course.next_round():
            before, entries = self._llm.missing, []
            for batch in batches:
                said = await rankings.ask(pool, batch, number)
                order = None if said.order is None else tuple(batch.shown[place] for place in said.order)
                entries.append(
                    JournalRecord(qid="q", state="", engine="", round=0, slot=0, shown=batch.shown, order=order)
                )
            if unknown or self._llm.missing > before or not self._judge.models:
                return max(0, most - course.asked)
            course.learn(entries)
        return 0

    def _counted(self, stage: str, task: Task, length: int, most: int, beyond: int = 0) -> Iterator[Estimate]:
        """What was asked since the last part, and `beyond` more like it."""
        if not self._judge.models:
            who = f"{self._judge.name} (local)"
            exact = not beyond
            yield Estimate(stage=stage, calls=most, input_tokens=0, output_tokens=0, usd=0.0, exact=exact, who=who)
        for model in self._judge.calls(task):
            asked, before = self._llm.asked(model, task), self._before.get((model, task), Asked())
            calls, tokens = asked.calls - before.calls, asked.tokens - before.tokens
            more = beyond * tokens // max(1, calls)
            hidden = HIDDEN if reasons(model, self._run.llm.parameters_of(model)) else 0
            price, output = self._bench.workshop.llm.price(model), (calls + beyond) * (length + hidden)
            yield Estimate(
                stage=stage,
                calls=calls + beyond,
                cached=asked.known - before.known,
                input_tokens=tokens + more,
                output_tokens=output,
                hidden_tokens=hidden,
                repairs=self._run.llm.max_repairs,
                usd=None if price is None else price.usd(tokens + more, output),
                exact=not beyond,
                who=model,
            )
            self._before[model, task] = replace(asked)
