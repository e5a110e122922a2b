"""The kind `judge`: pools, orders of them in one prompt and by the rank stage, and what the difference is worth.

What the diagnosis of a judge would ask that is not paid for yet: its work, with a judge that only remembers.

One prompt of a pool is counted exactly. A ranking is followed until the first answer that is missing; what may come
after it is bounded by `rank.max_calls`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from pydantic import Field

from raggs.base.artifacts import MIN_GRADE, JournalRecord
from raggs.base.errors import PrerequisiteError
from raggs.base.hashing import hash_value
from raggs.base.settings import Causes, causes_of
from raggs.base.text import plural
from raggs.config.models import RunConfig
from raggs.diagnosis.base import Diagnosis, DiagnosisConfig, Forecast
from raggs.diagnosis.bench import Bench
from raggs.diagnosis.judge import showing
from raggs.diagnosis.judge.asking import (
    FEWEST,
    Plan,
    Pool,
    Rankings,
    graded,
    grades_of,
    judge_of,
    kept,
    one_prompt,
    pools_of,
    reaching,
)
from raggs.diagnosis.judge.finding import Answers
from raggs.diagnosis.judge.models import Asking, JudgeFound
from raggs.evaluation.document import Section
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


class JudgeConfig(DiagnosisConfig):
    """How often the judge is asked."""

    type: Literal["judge"] = "judge"
    pools: int = Field(10, ge=1, description="pools that are ordered")
    size: int = Field(40, ge=FEWEST, description="passages of a pool, at most")
    showings: int = Field(2, ge=1, description="orders in which one prompt shows a pool")
    repeats: int = Field(2, ge=1, description="asks of each of these")
    rankings: int = Field(2, ge=1, description="rankings of each pool by the rank stage")
    top: int = Field(10, ge=1, description="how many of the first are compared")


class JudgeDiagnosis(Diagnosis[JudgeFound]):
    """What the rank stage buys with this judge: one prompt of 40 passages against many of five."""

    Config = JudgeConfig
    Result = JudgeFound
    TITLE = "Does the judge order the same passages alike, and what does the rank stage buy?"
    NEEDS = ("run",)
    STAGES = ("judge", "rank")
    TIME = "minutes"
    OVER = "pool"
    config: JudgeConfig

    _pools: list[Pool] | None = None
    _about: Causes | None = None

    def causes(self, bench: Bench) -> Causes:
        """With the pools, and all that can change the judge's answers."""
        return {**super().causes(bench), **self._asked(bench)}

    def _asked(self, bench: Bench) -> Causes:
        """Who is asked of what; looked up once, since it reads the code of Python judges."""
        if self._about is None:
            self._about = self._looked_up(bench)
        return self._about

    def _looked_up(self, bench: Bench) -> Causes:
        run, judge = _run(bench), judge_of(bench, _run(bench))
        asked = {task: judge.causes(task) for task in ("grade", "order")}
        llm = run.llm.causes_for(judge.models) if judge.models else None
        pools = [
            [pool.query.model_dump(mode="json"), [[each.doc_id, each.content] for each in pool.passages], pool.grades]
            for pool in self._chosen(bench)
        ]
        return {"judge": asked, "llm": llm, "pools": hash_value(pools)}

    def models(self, bench: Bench) -> tuple[str, ...]:
        """The judge's."""
        return judge_of(bench, _run(bench)).models

    def check(self, bench: Bench) -> None:
        """Find what the judge lacks before anything is paid for.

        Raises:
            RaggsError: a price, a file, or something in the questions.
        """
        judge_of(bench, _run(bench)).check(bench.queries.values())

    def forecast(self, bench: Bench) -> Forecast:
        """Every ask, as far as it can be known; a ranking is bounded by `rank.max_calls`."""
        if bench.rehearsal is None:
            return Forecast()
        run, pools = _run(bench), self._chosen(bench)
        lines = Outlook(bench, run, bench.rehearsal).lines(pools, self._plan(bench))
        size, floor = max(len(pool.passages) for pool in pools), run.ordering.floor
        which = f" that reach grade {floor} (rank.floor)" if floor > MIN_GRADE else ""
        what = (
            f"{plural(len(pools), 'pool')} of up to {size} passages{which}",
            f"one prompt of each: {self.config.showings} orders of showing, {self.config.repeats} asks of each",
            f"the rank stage: {plural(self.config.rankings, 'ranking')} of each pool, {run.ordering.list_length} each, "
            f"{run.ordering.max_calls} calls at most",
        )
        return Forecast(what, lines)

    def measure(self, bench: Bench) -> JudgeFound:
        """Grade what has no grade, order each pool in one prompt, rank it, compare."""
        run, plan, pools = _run(bench), self._plan(bench), self._chosen(bench)
        about = [self.config.type, bench.seed, bench.causes("run"), self._asked(bench)]
        grading = Asking(rows=(), calls=0, tokens=0, usd=0.0)
        if any(not pool.grades for pool in pools):
            grading = kept(bench, run, [*about, "grades"], partial(grades_of, pools=pools))
            pools = reaching(graded(pools, grading.rows), run.ordering)
        shown = [plan.showings, plan.repeats]
        single = kept(bench, run, [*about, "one prompt", shown], partial(one_prompt, pools=pools, plan=plan))
        ranked = kept(
            bench,
            run,
            [*about, "rank", plan.rankings, causes_of(run.ordering)],
            lambda judge: Rankings(judge, run).all(pools, plan.rankings),
        )
        grades = {
            pool.query.qid: dict(zip((each.doc_id for each in pool.passages), pool.grades, strict=True))
            for pool in pools
        }
        answers = Answers(single, ranked, grades, self.config.top, run.ordering.list_length, bench.seed)
        return self._found(bench, run, grading, answers)

    def rests_on(self, found: JudgeFound) -> int:
        return found.pools

    def sections(self, found: JudgeFound) -> tuple[Section, ...]:
        """See `showing`."""
        return showing.sections(found)

    def plots(self, found: JudgeFound) -> Mapping[str, str]:
        """See `showing`."""
        return showing.plots(found)

    def _found(self, bench: Bench, run: RunConfig, grading: Asking, answers: Answers) -> JudgeFound:
        size = max(len(row.shown) for row in answers.ranked.rows)
        found = JudgeFound(
            verdict=".",
            passed=None,
            judge=judge_of(bench, run).name,
            pools=len(answers.qids),
            size=size,
            batch=run.ordering.list_length,
            showings=self.config.showings,
            repeats=self.config.repeats,
            rankings=self.config.rankings,
            top=self.config.top,
            single=answers.one_prompt(f"one prompt of {size}"),
            informed=answers.with_grades(f"one prompt of {size}, with the grades"),
            ranked=answers.rank_stage(f"rank stage, {run.ordering.list_length} at a time"),
            gain=answers.gain,
            between=answers.between,
            favour=answers.favour,
            sharpness=answers.sharpness,
            ranked_sharpness=answers.ranked_sharpness,
            places=answers.places(),
            grading={"calls": float(grading.calls), "usd": grading.usd},
            errors=answers.errors(),
        )
        return found.model_copy(update={"verdict": showing.verdict(found)})

    def _plan(self, bench: Bench) -> Plan:
        return Plan(bench.seed, self.config.showings, self.config.repeats, self.config.rankings)

    def _chosen(self, bench: Bench) -> list[Pool]:
        """The pools, found once."""
        if self._pools is None:
            run = _run(bench)
            found = pools_of(bench, run, self.config.pools, self.config.size)
            self._pools = reaching(found, run.ordering)
        return self._pools


def _run(bench: Bench) -> RunConfig:
    if bench.run is None:
        raise PrerequisiteError("this diagnosis needs a run's configuration", remedy="name it: --config raggs.yaml")
    return bench.run
