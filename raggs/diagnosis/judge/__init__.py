"""Diagnosis `judge`: whether the run's judge orders a pool consistently. It compares one prompt with the whole pool (up
to 40 passages by default) and the rank stage.

`measuring` contains pools, orders, grades and findings; this module contains the diagnosis, its forecast, tables and
plots. If all grades are known, a dry run counts the calls with one prompt per pool exactly. It follows each ranking to
the first missing answer, and assumes that the ranking then uses all of its `rank.max_calls`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

from pydantic import Field

from raggs.base.artifacts import MIN_GRADE, JournalRecord
from raggs.base.document import Legend, Section, Table, table_of, terms_of, without_intervals
from raggs.base.errors import PrerequisiteError
from raggs.base.hashing import hash_value
from raggs.base.settings import Causes, causes_of
from raggs.base.text import plural
from raggs.config.models import RunConfig
from raggs.diagnosis.base import Bench, Diagnosis, DiagnosisConfig, verdict_sentences
from raggs.diagnosis.judge.measuring import (
    MIN_POOL_PASSAGES,
    JudgeAnswerCosts,
    JudgeAnswers,
    JudgeFindings,
    OrderMethodPart,
    PoolsPart,
    PositionBiasPart,
    QueryPool,
    Rankings,
    RepeatPlan,
    graded,
    grades_of,
    judge_of,
    kept_answers,
    one_prompt,
    pools_above_floor,
    pools_of,
)
from raggs.diagnosis.models import KeyFigure, NextAction
from raggs.evaluation.svg import SHARE, AxisLimit, ChartAxis, Curve, ForestRow, chart, forest
from raggs.llm.rehearsal import DryRunLLM
from raggs.parts.judges import Judge
from raggs.runs.forecast import follow
from raggs.stages.replay import Batch

COIN = 0.5


def verdict(found: JudgeFindings) -> str:
    """Return how often orders change with one prompt and with the rank stage, and whether the rank stage is worth its
    calls.
    """
    single, ranked = found.single, found.ranked
    if single.otherwise.mean is None and single.again.mean is None:
        told = (
            f"{found.judge} returned no complete order: {single.failed} of {single.asked} answers "
            "were not a valid order"
        )
        return verdict_sentences(told)
    if all(part.mean == 0 and not part.high for part in (single.again, single.otherwise, ranked.otherwise)):
        return verdict_sentences(
            f"{found.judge} returns the same order of {found.size} passages every time, so repeated ranking "
            "adds nothing"
        )
    shown, turned = _shown_again(single)
    told = f"{found.judge} reverses {_share(turned)} of all pairs if {found.size} passages are shown {shown}"
    if ranked.otherwise.mean is not None:
        told += f"; the rank stage {_share(ranked.otherwise)} ({_cost(ranked)} per pool, not {_cost(single)})"
    return verdict_sentences(told, _gain_clause(found.gain))


def _shown_again(single: OrderMethodPart) -> tuple[str, PoolsPart]:
    """Return how passages were shown again, and the share of reversed pairs."""
    if single.otherwise.mean is None:
        return "in the same order again", single.again
    return "in another order", single.otherwise


def _gain_clause(gain: PoolsPart) -> str:
    """Return the benefit of ranking beyond the grades, as a clause."""
    if gain.mean is None or gain.low is None or gain.high is None:
        return ""
    if gain.low == gain.high == 0:
        return "Given the grades, no pair is reversed, so ranking adds nothing"
    if gain.low > 0:
        return f"Ranking is worthwhile: it reverses {_fewer_pairs(gain.mean, gain.low, gain.high)}"
    if gain.high < 0:
        return f"Ranking is not worthwhile: it reverses {_fewer_pairs(gain.mean, gain.low, gain.high)}"
    told = _fewer_pairs(gain.mean, gain.low, gain.high)
    return f"Inconclusive: ranking reverses {told}, which may be chance; use more pools (--pools)"


def _fewer_pairs(mean: float, low: float, high: float) -> str:
    """Return a difference of shares of reversed pairs in percentage points; "more pairs" if its mean is negative."""
    if mean < 0:
        return f"{_points(-mean, -high, -low)} more pairs than one prompt with the grades"
    return f"{_points(mean, low, high)} fewer pairs than one prompt with the grades"


def _points(mean: float, low: float, high: float) -> str:
    return f"{100 * mean:.1f} [{100 * low:.1f}, {100 * high:.1f}] percentage points"


def _share(part: PoolsPart) -> str:
    if part.mean is None:
        return "–"
    held = "" if part.low is None or part.high is None else f" [{100 * part.low:.1f}, {100 * part.high:.1f}]"
    return f"{100 * part.mean:.1f}%{held}"


def _cost(part: OrderMethodPart) -> str:
    calls = f"{part.calls:.3g} {'call' if part.calls == 1 else 'calls'}"
    return f"{calls} and {part.usd:.2g} USD" if part.usd else calls


def _methods_section(found: JudgeFindings) -> Section:
    ways = (found.single, found.informed, found.ranked)
    sentences = [
        f"{plural(found.pools, 'pool')}, each shown in {found.showings} orders, {found.repeats} times per order, and "
        f"ranked {found.rankings} times",
        f"rank correlation (tau) of one prompt and the rank stage: {_number(found.between)}",
    ]
    if found.grading.get("calls"):
        calls, usd = found.grading["calls"], found.grading["usd"]
        sentences.append(f"the grades that the rank stage starts from cost {calls:,.0f} calls and {usd:.2g} USD")
    terms = (
        Legend("[ ]", "95% confidence interval over pools (bootstrap); with fewer than ten pools, it is too narrow"),
        *terms_of(ways, "again", "otherwise"),
        Legend("calls, tokens, USD", "per order of one pool"),
    )
    columns = ("name", "again", "otherwise", "tau", "top", "calls", "tokens", "usd")
    table = table_of(ways, *columns, top=str(found.top))
    return Section("Stability of orders", tuple(sentences), table, (), terms)


def _places(found: JudgeFindings) -> Section:
    said = "share of neighbouring pairs that keep their order in a repetition; random guessing gives 0.5"
    sharp = (
        f"sharpness on the scale of the rank stage: {_number(found.sharpness)} in one prompt, "
        f"{_number(found.ranked_sharpness)} in its own batches (at 3, a difference of one grade is ordered "
        "correctly in 19 of 20 cases)"
    )
    table = table_of(found.places, "places", "again", "against", "ranked")
    return Section("Stability by position", (said, sharp), table)


def _position_bias_section(favour: PositionBiasPart) -> Section:
    fair = f"{favour.fair_first:.3g}"
    rows = (
        ("one prompt: share of reversed pairs won by the passage shown first", favour.toward.cell(), "0.5"),
        ("one prompt: gain of the first position over the last, in grades", favour.single.cell(), "0"),
        ("rank stage: share of batches won by the passage shown first", favour.first.cell(), fair),
        ("rank stage: gain of the first position over the last, in grades", favour.ranked.cell(), "0"),
    )
    low, high = favour.toward.low, favour.toward.high
    told = "no significant position bias in one prompt"
    if low is None or high is None:
        told = "too few reversed pairs to estimate the position bias"
    elif low > COIN:
        told = "position bias in one prompt: early passages are preferred"
    elif high < COIN:
        told = "position bias in one prompt: late passages are preferred"
    return Section("Position bias", (told,), Table.of(("quantity", "measured", "without bias"), rows))


def _failures(found: JudgeFindings) -> tuple[Section, ...]:
    parts = [part for part in (found.single, found.ranked) if part.failed]
    said = tuple(f"{count} times: {error}" for error, count in found.errors.items())
    table = table_of(parts, "name", "asked", "failed")
    return (Section("Failures", said, table),) if parts else ()


def _number(part: PoolsPart) -> str:
    if part.mean is None:
        return "–"
    return f"{part.mean:.2f}" + ("" if part.low is None or part.high is None else f" [{part.low:.2f}, {part.high:.2f}]")


def _by_place(found: JudgeFindings) -> str:
    """Return the plot of how often neighbours keep their order, by rank."""
    kinds: Mapping[str, list[PoolsPart]] = {
        "one prompt, repeated": [part.again for part in found.places],
        "rank stage, repeated": [part.ranked for part in found.places],
    }
    lines = []
    for shift, (name, parts) in zip((-0.07, 0.07), kinds.items(), strict=True):
        known = [(at + shift, part.mean, part) for at, part in enumerate(parts) if part.mean is not None]
        spans = tuple(None if part.low is None or part.high is None else (part.low, part.high) for *_, part in known)
        if known:
            lines.append(Curve((name,), tuple((at, mean) for at, mean, _ in known), spans))
    names = {float(at): part.places for at, part in enumerate(found.places)}
    across = ChartAxis("position in the order", ticks=list(names), names=names)
    up = ChartAxis("share of pairs that keep their order", SHARE, limit=AxisLimit(COIN, f"random guessing {COIN:g}"))
    return chart(f"Where do neighbouring pairs keep their order? ({found.judge})", (across, up), lines=lines)


async def count_asks(
    llm: DryRunLLM, judge: Judge, run: RunConfig, pools: Sequence[QueryPool], plan: RepeatPlan
) -> None:
    """Make the calls of the diagnosis with dry-run models, part by part. Count at most `rank.max_calls` calls for each
    ranking.
    """
    ordering, paid = run.ordering, bool(judge.models)
    llm.turn_to("grades")
    rows = await grades_of(judge, pools)
    if not llm.missing:
        pools = pools_above_floor(graded(pools, rows), ordering)
    llm.turn_to("one prompt")
    await one_prompt(judge, pools, plan)
    unknown = not paid or (llm.missing > 0 and bool(rows))
    llm.turn_to("rank stage")
    rankings, beyond = Rankings(judge, run), 0
    for pool in graded(pools, rows):
        for number in range(plan.rankings):

            async def answer(batch: Batch, pool: QueryPool = pool, number: int = number) -> JournalRecord | None:
                said = await rankings.ask(pool, batch, number)
                order = None if said.order is None else tuple(batch.shown[place] for place in said.order)
                found = JournalRecord(qid="q", state="", engine="", round=0, slot=0, shown=batch.shown, order=order)
                return None if unknown else found

            course = await rankings.begun(pool, number)
            beyond += await follow(llm, course, iter(course.next_round, ()), answer, ordering.max_calls)
    if paid and beyond:
        with llm.standing_for(beyond):
            await judge.order(pools[0].query, pools[0].passages[: ordering.list_length])
    if not paid:
        calls = {
            "grades": sum(len(row.shown) for row in rows),
            "one prompt": len(pools) * plan.showings * plan.repeats,
            "rank stage": len(pools) * plan.rankings * ordering.max_calls,
        }
        for part, count in calls.items():
            llm.turn_to(part)
            exact = part != "rank stage" or not beyond
            llm.count(f"{judge.name} (local)", part, count, exact=exact, paid=False)


class JudgeDiagnosisConfig(DiagnosisConfig):
    """Settings of the diagnosis `judge`: numbers of pools, orders and repetitions."""

    type: Literal["judge"] = "judge"
    pools: int = Field(10, ge=1, description="number of pools")
    size: int = Field(40, ge=MIN_POOL_PASSAGES, description="maximum number of passages per pool")
    showings: int = Field(2, ge=1, description="number of different presentation orders per pool")
    repeats: int = Field(2, ge=1, description="number of calls per presentation order")
    rankings: int = Field(2, ge=1, description="number of times that the rank stage ranks each pool")
    top: int = Field(10, ge=1, description="number of top passages whose overlap is compared")


class JudgeDiagnosis(Diagnosis[JudgeFindings]):
    """Test whether the judge orders passages consistently, and what the rank stage gains."""

    Config = JudgeDiagnosisConfig
    Result = JudgeFindings
    TITLE = "How stable is the judge's order, and is the rank stage worthwhile?"
    EXAMPLES = (
        "--config raggs.yaml --dry-run",
        "--config raggs.yaml --pools 5 --rankings 1",
    )
    NEEDS = ("run",)
    STAGES = ("judge", "rank")
    TIME = "minutes"
    OVER = "pool"
    config: JudgeDiagnosisConfig

    _pools: list[QueryPool] | None = None
    _about: Causes | None = None

    def causes(self, bench: Bench) -> Causes:
        """Return everything that can change the findings, including the pools and all that can change the judge's
        answers.
        """
        return {**super().causes(bench), **self._asked(bench)}

    def _asked(self, bench: Bench) -> Causes:
        """Return everything that can change the judge's answers. It is computed only once, because it reads the code of
        Python judges.
        """
        if self._about is None:
            run, judge = _run(bench), judge_of(bench, _run(bench))
            pools = [
                [each.query.model_dump(mode="json"), [[one.doc_id, one.content] for one in each.passages], each.grades]
                for each in self._chosen(bench)
            ]
            self._about = {
                "judge": {task: judge.causes(task) for task in ("grade", "order")},
                "llm": run.llm.causes_for(judge.models) if judge.models else None,
                "pools": hash_value(pools),
            }
        return self._about

    def models(self, bench: Bench) -> tuple[str, ...]:
        """Return the judge's models."""
        return judge_of(bench, _run(bench)).models

    def check(self, bench: Bench) -> None:
        """Check the judge before anything is paid for.

        Raises:
            RaggsError: a price or file is missing, or a query is not valid.
        """
        judge_of(bench, _run(bench)).check(bench.queries.values())

    def forecast(self, bench: Bench) -> tuple[str, ...]:
        run, pools, llm = _run(bench), self._chosen(bench), bench.counting
        bench.workspace.loop.run(count_asks(llm, judge_of(bench, run, llm), run, pools, self._plan(bench)))
        size, floor = max(len(pool.passages) for pool in pools), run.ordering.floor
        which = f" of at least grade {floor} (rank.floor)" if floor > MIN_GRADE else ""
        return (
            f"{plural(len(pools), 'pool')} of up to {size} passages{which}",
            f"one prompt of each: {self.config.showings} presentation orders, {self.config.repeats} calls per order",
            f"the rank stage: {plural(self.config.rankings, 'ranking')} of each pool in batches of "
            f"{run.ordering.list_length}, at most {run.ordering.max_calls} calls per ranking",
        )

    def measure(self, bench: Bench) -> JudgeFindings:
        """Grade pools without grades, order each pool by one prompt and by the rank stage, and compare the orders."""
        run, plan, pools = _run(bench), self._plan(bench), self._chosen(bench)
        about = [self.config.type, bench.seed, bench.causes("run"), self._asked(bench)]
        grading = JudgeAnswerCosts(rows=(), calls=0, tokens=0, usd=0.0)
        if any(not pool.grades for pool in pools):
            grading = kept_answers(bench, run, [*about, "grades"], partial(grades_of, pools=pools))
            pools = pools_above_floor(graded(pools, grading.rows), run.ordering)
        shown = [plan.showings, plan.repeats]
        single = kept_answers(bench, run, [*about, "one prompt", shown], partial(one_prompt, pools=pools, plan=plan))
        ranked = kept_answers(
            bench,
            run,
            [*about, "rank", plan.rankings, causes_of(run.ordering)],
            lambda judge: Rankings(judge, run).all(pools, plan.rankings),
        )
        grades = {
            pool.query.qid: dict(zip((each.doc_id for each in pool.passages), pool.grades, strict=True))
            for pool in pools
        }
        answers = JudgeAnswers(single, ranked, grades, self.config.top, run.ordering.list_length, bench.seed)
        return self._found(bench, run, grading, answers)

    def decision_effect(self, found: JudgeFindings) -> str:
        return "Unchanged: scores use grades, and this diagnosis tests only the golden order."

    def action(self, found: JudgeFindings) -> NextAction | None:
        ordered = any(part.mean is not None for part in (found.single.otherwise, found.single.again))
        return None if ordered else NextAction(text="read the answers in the table of failures")

    def rests_on(self, found: JudgeFindings) -> int:
        return found.pools

    def sections(self, found: JudgeFindings) -> tuple[Section, ...]:
        """Return the tables: the methods, results by rank, position bias, and failures."""
        return (_methods_section(found), _places(found), _position_bias_section(found.favour), *_failures(found))

    def key_figure(self, found: JudgeFindings) -> KeyFigure | None:
        """Return the share of pairs that one prompt reverses."""
        shown, turned = _shown_again(found.single)
        label = f"of all pairs are reversed if the passages are shown {shown}"
        return KeyFigure.of(label, (turned.mean, turned.low, turned.high), ".1%")

    def main_table(self, found: JudgeFindings) -> Table | None:
        """Return the share of reversed pairs and the number of calls of each method."""
        table = table_of((found.single, found.informed, found.ranked), "name", "again", "otherwise", "tau", "calls")
        return None if table is None else without_intervals(table)

    def plots(self, found: JudgeFindings) -> Mapping[str, str]:
        """Return the plots: the share of pairs that change, and how often neighbours keep their order, by rank."""
        ways = [
            (f"{found.single.name}, repeated", found.single.again),
            (f"{found.single.name}, other order", found.single.otherwise),
            (f"{found.informed.name}, other order", found.informed.otherwise),
            (f"{found.ranked.name}, repeated", found.ranked.otherwise),
        ]
        rows = [ForestRow(name, part.mean, part.low, part.high) for name, part in ways if part.mean is not None]
        drawn = {}
        if rows:
            told = "share of reversed pairs, 95% interval over pools"
            drawn["disagreement"] = forest(
                f"How often does the order of a pair change? ({found.judge})", rows, told, changes=False, within=SHARE
            )
        if any(part.again.mean is not None or part.ranked.mean is not None for part in found.places):
            drawn["places"] = _by_place(found)
        return drawn

    def _found(self, bench: Bench, run: RunConfig, grading: JudgeAnswerCosts, answers: JudgeAnswers) -> JudgeFindings:
        size = max(len(row.shown) for row in answers.ranked.rows)
        found = JudgeFindings(
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
            single=answers.of_prompts(f"one prompt, {size} passages", answers.orders),
            informed=answers.of_prompts(f"one prompt, {size} passages, with the grades", answers.informed),
            ranked=answers.rank_stage(f"rank stage, batches of {run.ordering.list_length}"),
            gain=answers.gain,
            between=answers.between,
            favour=answers.favour,
            sharpness=answers.sharpness,
            ranked_sharpness=answers.ranked_sharpness,
            places=answers.places(),
            grading={"calls": float(grading.calls), "usd": grading.usd},
            errors=answers.errors(),
        )
        return found.model_copy(update={"verdict": verdict(found)})

    def _plan(self, bench: Bench) -> RepeatPlan:
        return RepeatPlan(bench.seed, self.config.showings, self.config.repeats, self.config.rankings)

    def _chosen(self, bench: Bench) -> list[QueryPool]:
        """Return the pools. They are searched for only once."""
        if self._pools is None:
            run = _run(bench)
            found = pools_of(bench, run, self.config.pools, self.config.size)
            self._pools = pools_above_floor(found, run.ordering)
        return self._pools


def _run(bench: Bench) -> RunConfig:
    if bench.run is None:
        raise PrerequisiteError(
            "this diagnosis needs a run's configuration", remedy="pass the configuration: --config raggs.yaml"
        )
    return bench.run
