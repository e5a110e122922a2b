"""The decision box: what the set says, whether it can be trusted, what blocks, what to do next, what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Literal

from pydantic import Field

from raggs.base.jsontypes import Number
from raggs.base.text import plural
from raggs.evaluation.models import ComparisonPart, Part, Report
from raggs.evaluation.words import inconclusive, score, signed, told
from raggs.metrics.names import parse_measure
from raggs.metrics.stats.compare import MARGIN
from raggs.metrics.stats.paired import POWER
from raggs.reporting.base import Facts, ReportSection
from raggs.reporting.best import compared, is_ahead
from raggs.reporting.trusting import WORDS, Check, State, Step, checks
from raggs.sweeps.models import SweepReport

Answer = Literal["yes", "no", "cannot tell", "nothing to compare"]
FAR = 10  # times the questions there are: whoever would need more will not ask for them
TRUST: dict[State, str] = {
    "good": "yes, by all that was looked at",
    "doubt": "with care",
    "bad": "no",
    "unknown": "as far as was looked at",
}


class Ship(Part):
    """One question with its answer."""

    question: str
    answer: Answer
    said: tuple[str, ...]
    needed: int | None = Field(None, description="queries that would tell, where the answer is open")


class DecisionPart(Part):
    """All of the box."""

    ships: tuple[Ship, ...]
    trusted: State
    checks: tuple[Check, ...]
    blocks: tuple[str, ...]
    steps: tuple[Step, ...]
    cost: tuple[str, ...]
    thresholds: tuple[str, ...]

    @property
    def trust(self) -> str:
        """Whether the set can be trusted, in words."""
        return TRUST[self.trusted]


class Decision(ReportSection):
    """What does the set say, can it be trusted, what blocks, what is next, and what did it cost?"""

    NAME = "decision"
    TITLE = "Decision"

    def data(self, facts: Facts) -> DecisionPart:
        """The box; every report has one."""
        ships, found = tuple(_ships(facts)), tuple(checks(facts))
        return DecisionPart(
            ships=ships,
            trusted=_trusted(found),
            checks=found,
            blocks=tuple(_blocks(found, facts)),
            steps=tuple(_steps(facts, ships, found)),
            cost=tuple(_cost(facts)),
            thresholds=(*_thresholds(facts.report), *_of_choices(facts.sweeps)),
        )


def _trusted(found: Sequence[Check]) -> State:
    """The worst state of all; what is not known counts for less than a doubt."""
    states = {check.state for check in found}
    order: tuple[State, ...] = ("bad", "doubt", "unknown", "good")
    return next(state for state in order if state in states or state == "good")


def _blocks(found: Sequence[Check], facts: Facts) -> Iterator[str]:
    if facts.missing:
        yield facts.missing
    for check in found:
        if check.state == "bad":
            yield f"{check.name}: {'; '.join(check.said)}"


# --- what to ship ---------------------------------------------------------------------------------------------


def _ships(facts: Facts) -> Iterator[Ship]:
    if facts.report is not None:
        yield _of_systems(facts.report)
    yield from map(_of_sweep, facts.sweeps)


def _of_sweep(sweep: SweepReport) -> Ship:
    """The choice, which is sure where it would be the choice of nearly all questions drawn anew."""
    from raggs.stats.decision.winners import FEWEST  # late: most reports are of no sweep
    from raggs.sweeps.layout import rivals

    chosen, said = sweep.choice.winner, (sweep.choice.sentence, *sweep.choice.unknown, *rivals(sweep))
    if chosen is None:
        answer: Answer = "cannot tell" if sweep.choice.inconclusive else "no"
        return Ship(question=f"Ship any of sweep {sweep.name}?", answer=answer, said=said)
    share = next((part.share for part in sweep.wins if part.system == chosen), None)
    drawn = (share is None or share >= sweep.confidence) and sweep.questions >= FEWEST
    sure = drawn and not sweep.choice.inconclusive
    return Ship(
        question=f"Ship {chosen}, of sweep {sweep.name}?",
        answer="yes" if sure else "cannot tell",
        said=said,
    )


def _of_systems(report: Report) -> Ship:
    """The best of the others against the baseline, by the first measure."""
    first = compared(report)
    if not first:
        return _alone(report)
    best = first[0]
    open_ = best.verdict == "unjudged" or (best.verdict == "unresolvable" and is_ahead(best, report))
    answers: dict[str, Answer] = {"win": "yes", "loss": "no", "tie": "no"}
    return Ship(
        question=f"Ship {best.system} in place of {best.baseline}?",
        answer="cannot tell" if open_ else answers.get(best.verdict, "no"),
        said=(*_why(best, report), *_harm(best, report), *_others(first[1:], best)),
        needed=best.queries_needed if open_ and best.unjudged is None else None,
    )


def _alone(report: Report) -> Ship:
    """Of one system, or of several that were not compared."""
    measure = report.measures[0]
    scores = [(each.name, each.scores[measure].mean) for each in report.systems]
    said = [f"{name}: {measure} {score(mean)}" for name, mean in scores]
    said.append("there is nothing that it is compared with")
    return Ship(question="Ship what?", answer="nothing to compare", said=tuple(said))


def _why(best: ComparisonPart, report: Report) -> Iterator[str]:
    """What the answer rests on."""
    yield told(best)
    if best.unjudged is not None:
        low, high = signed(best.unjudged.low), signed(best.unjudged.high)
        yield inconclusive(best.unjudged)
        yield f"with the grades that these may have, the difference lies between {low} and {high}"
    elif best.verdict == "tie":
        yield f"the interval lies within {MARGIN:g} of none: whichever is cheaper is as good"
    elif best.verdict == "win" and best.negligible:
        yield f"the gain is sure, and lies within {MARGIN:g}, which hardly anybody would notice"
    elif best.verdict == "loss":
        yield f"{best.baseline} is better than the best of the others"
    elif best.verdict == "unresolvable" and not is_ahead(best, report):
        yield f"it is behind {best.baseline} here, though that may be chance: nothing speaks for it"
    elif best.verdict == "unresolvable" and best.queries_needed:
        there = report.golden.queries
        needed = f"about {best.queries_needed:,} queries would tell"
        yield f"{needed}, were the difference the one seen here; there are {there:,}"
        if best.queries_needed > FAR * there:
            yield "so small a difference is hardly worth the telling: whichever is cheaper is as good a choice"


def _harm(best: ComparisonPart, report: Report) -> Iterator[str]:
    """What it shows that misleads: a gain may be bought with that, which the measure that decides does not see."""
    for part in report.comparisons:
        same = (part.system, part.baseline) == (best.system, best.baseline)
        if same and part.measure != best.measure and parse_measure(part.measure).measure.NAME == "harm":
            shown = [each.scores[part.measure].mean for each in report.systems if each.name == part.system]
            sure = {"loss": "surely more", "win": "surely less"}.get(part.verdict, "no sure difference")
            yield (
                f"{part.measure}, the share of what it shows with grade 1 or 2: {score(next(iter(shown), None))}, "
                f"{signed(part.difference)} [{signed(part.low)}, {signed(part.high)}] against {part.baseline}: {sure}"
            )


def _others(rest: Sequence[ComparisonPart], best: ComparisonPart) -> Iterator[str]:
    if rest:
        moved = (f"{signed(part.difference)} [{signed(part.low)}, {signed(part.high)}]" for part in rest)
        listed = ", ".join(f"{part.system} {move}" for part, move in zip(rest, moved, strict=True))
        yield f"of the others, against {best.baseline}: {listed}"


# --- what is next, and what it cost ---------------------------------------------------------------------------


def _steps(facts: Facts, ships: Sequence[Ship], found: Sequence[Check]) -> Iterator[Step]:
    """What to do, most urgent first: what blocks, what is open, what is in doubt, what is not known."""
    for state in ("bad", "open", "doubt", "unknown"):
        if state == "open":
            yield from _judging(facts)
            yield from _more_questions(facts, ships)
        yield from (check.step for check in found if check.state == state and check.step is not None)
    if facts.judgments is not None and not (facts.report and facts.report.comparisons):
        command = f"raggs report {quote(facts.place)} --run A=a.trec --run B=b.trec --out report.html"
        yield Step(why="compare two systems", command=command)
    if facts.run is not None:
        yield Step(why="is the golden set what it says?", command=f"raggs audit {quote(facts.place)}")


def _judging(facts: Facts) -> Iterator[Step]:
    """What has the passages judged that could reverse the verdict."""
    best = compared(facts.report)[:1] if facts.report is not None else []
    for part in best:
        if part.unjudged is not None:
            why, _, command = part.unjudged.remedy.partition(": ")
            yield Step(why=f"{inconclusive(part.unjudged)}; {why}", command=command)


def _more_questions(facts: Facts, ships: Sequence[Ship]) -> Iterator[Step]:
    needed = max((ship.needed or 0 for ship in ships), default=0)
    there = facts.report.golden.queries if facts.report is not None else 0
    if there < needed <= FAR * there:
        more = needed - there
        why = f"about {plural(more, 'more question')} would tell; from logs, or made of documents"
        yield Step(why=why, command=f"raggs questions DOCS --out questions.jsonl --n {more}")


def _cost(facts: Facts) -> Iterator[str]:
    if facts.run is None:
        yield "labels from a file: what they cost is not known"
        return
    total, queries = facts.costs.total, facts.report.golden.queries if facts.report else 0
    each = f", ${total.usd / queries:,.4f} a question" if queries and total.usd else ""
    yield f"${total.usd:,.4f} spent in {plural(total.calls, 'call')}{each}; ${total.saved_usd:,.4f} saved by the cache"
    if (perhaps := total.perhaps_usd - total.unknown_usd) > 0:
        yield f"${perhaps:,.4f} of it perhaps: calls without an answer in time"
    if total.unknown:
        yield total.possibly_billed


def _of_choices(sweeps: Sequence[SweepReport]) -> Iterator[str]:
    if not sweeps:
        return
    from raggs.stats.decision.winners import FEWEST  # late, as above

    for sweep in sweeps:
        share = f"{sweep.confidence:.0%} of questions drawn anew, of {FEWEST} or more"
        yield f"sweep {sweep.name}: its choice is sure if it stands in {share}"


def _thresholds(report: Report | None) -> Iterator[str]:
    """The numbers by which the verdict was told."""
    if report is None:
        return
    alpha: Number = 1.0 - report.confidence
    yield f"decided by {report.measures[0]}, over {plural(report.golden.queries, 'query')}, seed {report.seed}"
    yield (
        f"better or worse: the {report.confidence:.0%} interval leaves 0 out, and p after Holm's correction is below "
        f"{alpha:.2g} (paired randomisation)"
    )
    yield "inconclusive: unjudged passages could reverse the verdict, each with the grade least favourable to it"
    yield f"no difference that matters: the interval lies within {MARGIN:g} of none"
    yield f"queries that would tell: for a power of {POWER:.0%}, were the difference the one seen here"
    yield f"trust: {', '.join(f'{word} ({state})' for state, word in WORDS.items())}; the worst check decides"
