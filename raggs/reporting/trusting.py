"""Can the golden set be trusted? One check a question, each with what was found, its threshold and what to do.

The sentences are those of `raggs status`, `raggs judge check` and `raggs eval`; a check adds whether they are good
news. What was not looked at is "unknown", never good.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Literal

from pydantic import Field

from raggs.base.health import JudgeHealth, RankHealth
from raggs.base.jsontypes import as_object
from raggs.base.text import plural
from raggs.evaluation.models import Part, Report
from raggs.evaluation.strangers import HARMLESS, HOLES
from raggs.metrics.names import parse_measure
from raggs.parts.judges.exactness import is_exact
from raggs.reporting.base import Facts
from raggs.runs.manifests.gate import FALLEN, fallen
from raggs.runs.manifests.models import StageLock
from raggs.runs.manifests.words import (
    OUTCOMES,
    answerer_lines,
    health_lines,
    inversions_words,
    lock_lines,
    settled_words,
)
from raggs.stages.rankrecords import CUT_SHORT, NOT_RANKED, SETTLED

State = Literal["good", "doubt", "bad", "unknown"]
ORDERING = frozenset(("prune", "rank"))  # stages that grades do without
WRONG = 0.1  # of the pairs of a top; beyond, its order is rough
WORDS: dict[State, str] = {"good": "fine", "doubt": "with care", "bad": "stops here", "unknown": "not known"}


class Step(Part):
    """Something to do: why, and the command."""

    why: str
    command: str


class Check(Part):
    """One thing that a golden set is trusted by."""

    name: str
    state: State
    said: tuple[str, ...]
    threshold: str = Field(description="by which the state was told; empty where there is none")
    step: Step | None = None

    @property
    def word(self) -> str:
        """The state as it is written."""
        return WORDS[self.state]


def checks(facts: Facts) -> Iterator[Check]:
    """All checks, in the order in which a reader asks."""
    yield _whole(facts)
    if facts.report is not None:
        if warnings := [said for said in facts.report.warnings if FALLEN not in said]:
            yield Check(name="Evaluation", state="bad", said=tuple(warnings), threshold="no warning")
        yield _holes(facts, facts.report)
    if facts.run is not None:
        yield from _judge(facts)
    yield _people(facts)


def _whole(facts: Facts) -> Check:
    failed = facts.golden.provenance.failed if facts.golden.provenance else 0
    missing = _missing(facts)
    said = [facts.golden.lacks] if facts.golden.lacks else []
    said += [f"not done yet: {', '.join(missing)}"] if missing else []
    said += [f"{plural(failed, 'judgment')} failed, without a grade"] if failed else []
    lost = bool(failed or facts.golden.lacks) or not ORDERING.issuperset(missing)
    state: State = "bad" if facts.golden.lacks or "judge" in missing else "doubt" if lost else "good"
    again = None
    if facts.run is not None and lost:
        again = Step(why="finish the golden set", command=facts.run.command)
    whole = ("every query was worked on, no judgment failed",) if facts.run else ("labels from a file",)
    return Check(
        name="Completeness",
        state=state,
        said=tuple(said) or whole,
        threshold="every stage done (prune and rank for orders alone), no query left out, no failed judgment",
        step=again,
    )


def _missing(facts: Facts) -> list[str]:
    """The stages of the run that have not been done, nor begun."""
    if facts.run is None:
        return []
    begun = {part.stage for part in facts.run.parts}
    return [name for name in facts.run.pipeline.order if name not in facts.run.manifest.stages and name not in begun]


def _holes(facts: Facts, report: Report) -> Check:
    """How much of what systems show nobody judged."""
    threshold = f"up to {HARMLESS:.0%} fine, above {HOLES:.0%} scores say nothing"
    measure = next((name for name in report.measures if parse_measure(name).measure.NAME == "holes"), None)
    known = [] if measure is None else [(each.name, each.scores[measure].mean) for each in report.systems]
    shares = {name: mean for name, mean in known if mean is not None}
    if not shares:
        return Check(name="Unjudged", state="unknown", said=("not measured",), threshold=threshold)
    worst = max(shares, key=lambda name: shares[name])
    stops = shares[worst] > HOLES and bool(report.warnings)  # where all labels are relevant, that is the custom
    state: State = "bad" if stops else "doubt" if shares[worst] > HARMLESS else "good"
    said = f"{measure}: of what a system shows there, {shares[worst]:.0%} is unjudged at most ({worst})"
    step = None
    if state != "good":
        command = f"raggs eval -g {quote(facts.place)} -r FILE --bounds"
        step = Step(why="see what unjudged passages could make of the scores", command=command)
    return Check(name="Unjudged", state=state, said=(said,), threshold=threshold, step=step)


def _judge(facts: Facts) -> Iterator[Check]:
    if facts.run is None:
        return
    stages = facts.run.manifest.stages
    locks = [lock for lock in (stages.get("judge"), stages.get("rank")) if lock is not None]
    yield _health(locks)
    yield from _canaries(stages.get("judge"))
    yield from _gate(facts)
    yield from _inversions(facts, stages.get("rank"))


def _health(locks: list[StageLock]) -> Check:
    """The judge's figures, without those that have a check of their own."""
    lines = []
    for lock in locks:
        told = lock.health
        if isinstance(told, JudgeHealth):
            told = told.model_copy(update={"canaries": None})
        elif isinstance(told, RankHealth):
            told = told.model_copy(update={"expected_inversions": None})
        counts = {name: count for name, count in lock.counts.items() if name not in OUTCOMES}
        lines += [*lock_lines(lock.model_copy(update={"health": told, "counts": counts}))]
    lines += [*answerer_lines([each for lock in locks for each in lock.answerers.values()])]
    name = next((lock.judge for lock in locks if lock.judge), "")
    said = tuple(line.text for line in lines) or ("nothing is known of its health",)
    state: State = "doubt" if any(line.warning for line in lines) else "good" if lines else "unknown"
    whose = (f"the judge is {name}",) if name else ()
    return Check(name="Judge", state=state, said=(*whose, *said), threshold="no warning of its health")


def _canaries(lock: StageLock | None) -> Iterator[Check]:
    if lock is None or is_exact(lock.components.get("judge")):
        return
    health = lock.health.canaries if isinstance(lock.health, JudgeHealth) else None
    threshold = "all as expected"
    if health is None or not health.passed.total:
        said = "no case of known grade was asked (judge.canaries)"
        yield Check(name="Canaries", state="unknown", said=(said,), threshold=threshold)
        return
    lines = tuple(health_lines(JudgeHealth(canaries=health)))
    passed = health.passed.count == health.passed.total and not any(line.warning for line in lines)
    state: State = "good" if passed else "doubt"
    yield Check(name="Canaries", state=state, said=tuple(line.text for line in lines), threshold=threshold)


def _gate(facts: Facts) -> Iterator[Check]:
    if facts.run is None:
        return
    manifest = facts.run.manifest
    asked = as_object(as_object(manifest.config.get("judge")).get("gate"))
    limits = [f"{name} {value:g}" for name, value in asked.items() if isinstance(value, int | float)]
    threshold = f"judge.gate: {', '.join(limits)}" if limits else "none was set (judge.gate)"
    below = fallen(manifest)
    if below:
        step = Step(why="see what made the judge what it is", command=f"raggs why {quote(facts.place)} judge")
        yield Check(name="Gate", state="bad", said=(FALLEN, *below), threshold=threshold, step=step)
    elif limits:
        yield Check(name="Gate", state="good", said=("the judge holds its gate",), threshold=threshold)


def _inversions(facts: Facts, lock: StageLock | None) -> Iterator[Check]:
    health = lock.health if lock is not None else None
    if lock is None or not isinstance(health, RankHealth) or health.expected_inversions is None:
        return
    if is_exact(lock.components.get("judge")) and SETTLED not in lock.counts:
        return
    said, doubt, threshold = _order_found(facts, lock, health.expected_inversions)
    calls = lock.params.get("max_calls")
    step = None
    if doubt and facts.run is not None and isinstance(calls, int):
        command = f"{facts.run.command} --set {_twice(lock.params.get('budget'), calls)}"
        step = Step(why="have the judge order more, for a surer order", command=command)
    yield Check(name="Order", state="doubt" if doubt else "good", said=said, threshold=threshold, step=step)


def _order_found(facts: Facts, lock: StageLock, inversions: float) -> tuple[tuple[str, ...], bool, str]:
    """What is said of the orders, whether it is a doubt, and from where on it is one."""
    outcomes = {name: lock.counts[name] for name in OUTCOMES if name in lock.counts}
    ranked = sum(count for name, count in outcomes.items() if name != NOT_RANKED)
    if ranked:
        cut = sum(outcomes.get(name, 0) for name in CUT_SHORT)
        limit = f"up to {WRONG:.0%} of the queries stopped at a cap or a budget"
        return tuple(settled_words(lock)), cut > WRONG * ranked, limit
    pairs = facts.golden.top * (facts.golden.top - 1) / 2
    wrong = inversions / pairs if pairs else 0.0
    share = f"that is {wrong:.0%} of the pairs of a top {facts.golden.top}; measures by grades do not see it"
    return (inversions_words(inversions), share), wrong > WRONG, f"up to {WRONG:.0%} of the pairs fine; a coin: 50%"


def _twice(budget: object, calls: int) -> str:
    """The setting that allows twice the calls."""
    shared = budget if isinstance(budget, Mapping) else {}
    of_all = next(((name, value) for name, value in shared.items() if value is not None), None)
    return f"rank.max_calls={2 * calls}" if of_all is None else f"rank.budget.{of_all[0]}={2 * of_all[1]:g}"


def _people(facts: Facts) -> Check:
    people = facts.people
    if not people.trust:
        step = None
        if facts.run is not None and "judge" not in _missing(facts):
            command = f"raggs review plan {quote(facts.place)} --minutes 60 --out plan.jsonl"
            step = Step(why="have a person read what would tell most", command=command)
        said = people.why or "no person's grades were held against the judge's"
        return Check(name="People", state="unknown", said=(said,), threshold="", step=step)
    comparing = people.trust[0]
    states: dict[str, State] = {"yes": "good", "no": "bad", "not yet": "doubt"}
    return Check(name="People", state=states[comparing.answer], said=people.said, threshold="")  # they name their own
