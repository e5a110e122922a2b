"""The decision section: recommendations, checks of the golden set, blockers, next steps and cost.

Each check has findings and a state, and in most cases a threshold or a next step. Most sentences are those of
`raggs status`, `raggs judge check` and `raggs eval`. The state of a check that was not run is "unknown", never "good".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Literal

from pydantic import Field

from raggs.base.document import UNDEFINED
from raggs.base.judge_health import COUNT_NOT_RANKED, COUNT_SETTLED, GATE_FAILED_TEXT, JudgeHealth, RankHealth
from raggs.base.text import plural
from raggs.base.types import Number, as_object
from raggs.evaluation.analyses.losses import Waterfall
from raggs.evaluation.messages import KNOBS, difference_sentence, inconclusive, query_count
from raggs.evaluation.models import ComparisonPart, EvalReport, ReportPart
from raggs.evaluation.study import HARM_NOTE_FROM, HOLES
from raggs.metrics.names import parse_measure
from raggs.parts.judges import is_exact
from raggs.reporting.base import DIGITS, ReportFacts, ReportSection, deciding_comparisons, is_ahead, point_meaning
from raggs.reporting.figures import SvgFigure, differences
from raggs.runs.manifests.costs import failed_judge_gates
from raggs.runs.manifests.messages import (
    OUTCOMES,
    answerer_lines,
    health_lines,
    inversions_words,
    lock_lines,
    settled_words,
)
from raggs.runs.manifests.models import StageLock
from raggs.stages.rank_health import CUT_SHORT
from raggs.stats.comparison import MARGIN, POWER
from raggs.sweeps.models import SweepReport

State = Literal["good", "doubt", "bad", "unknown"]
ORDERING = frozenset(("prune", "rank"))  # stages that do not affect grades
MAX_CUT_SHORT_SHARE = 0.1  # share of the top pairs, or of queries, above which the order is flagged
STATE_WORDS: dict[State, str] = {"good": "pass", "doubt": "warning", "bad": "fail", "unknown": "not run"}


class NextStep(ReportPart):
    """A next step: reason and command, which may be empty."""

    why: str
    command: str


class TrustCheck(ReportPart):
    """One check of a golden set."""

    name: str
    state: State
    said: tuple[str, ...]
    threshold: str = Field(description="threshold of the state; empty if there is none")
    step: NextStep | None = None

    @property
    def word(self) -> str:
        """The state in words."""
        return STATE_WORDS[self.state]


def checks(facts: ReportFacts) -> Iterator[TrustCheck]:
    """Yield all checks, in the order of the page."""
    yield _completeness_check(facts)
    if facts.report is not None:
        if warnings := [said for said in facts.report.warnings if GATE_FAILED_TEXT not in said]:
            yield TrustCheck(name="Evaluation", state="bad", said=tuple(warnings), threshold="no warning")
        yield _holes(facts, facts.report)
    if facts.run is not None:
        yield from _judge(facts)
    yield human_agreement_check(facts)


def _completeness_check(facts: ReportFacts) -> TrustCheck:
    failed = facts.golden.provenance.failed if facts.golden.provenance else 0
    missing = _missing_stages(facts)
    said = [facts.golden.lacks] if facts.golden.lacks else []
    said += [f"stages not run yet: {', '.join(missing)}"] if missing else []
    said += [f"{plural(failed, 'judgment')} failed (no grade)"] if failed else []
    lost = bool(failed or facts.golden.lacks) or not ORDERING.issuperset(missing)
    state: State = "bad" if facts.golden.lacks or "judge" in missing else "doubt" if lost else "good"
    again = None
    if facts.run is not None and lost:
        again = NextStep(why="finish the golden set", command=facts.run.command)
    whole = ("all queries were processed, and no judgment failed",) if facts.run else ("labels from a file",)
    return TrustCheck(
        name="Completeness",
        state=state,
        said=tuple(said) or whole,
        threshold="all stages completed (prune and rank only for orders), no query omitted, no judgment failed",
        step=again,
    )


def _missing_stages(facts: ReportFacts) -> list[str]:
    """Return the stages of the run that have not been started."""
    if facts.run is None:
        return []
    begun = {part.stage for part in facts.run.parts}
    return [name for name in facts.run.pipeline.order if name not in facts.run.manifest.stages and name not in begun]


def _holes(facts: ReportFacts, report: EvalReport) -> TrustCheck:
    """Return the check of the share of unjudged passages in system outputs."""
    threshold = f"warning above {HARM_NOTE_FROM:.0%}; above {HOLES:.0%}, scores are unreliable"
    measure = next((name for name in report.measures if parse_measure(name).measure.NAME == "holes"), None)
    known = [] if measure is None else [(each.name, each.scores[measure].mean) for each in report.systems]
    shares = {name: mean for name, mean in known if mean is not None}
    if not shares:
        return TrustCheck(name="Unjudged", state="unknown", said=("not measured",), threshold=threshold)
    worst = max(shares, key=lambda name: shares[name])
    # without negative labels, high shares of unjudged passages are normal
    stops = shares[worst] > HOLES and bool(report.warnings)
    state: State = "bad" if stops else "doubt" if shares[worst] > HARM_NOTE_FROM else "good"
    said = f"{measure}: at most {shares[worst]:.0%} of a system's passages are unjudged ({worst})"
    said = said if shares[worst] else f"{measure}: no unjudged passages"
    step = None
    if state != "good":
        command = f"raggs eval -g {quote(facts.place)} -r FILE --bounds"
        step = NextStep(why="show the bounds of scores for all grades of unjudged passages", command=command)
    return TrustCheck(name="Unjudged", state=state, said=(said,), threshold=threshold, step=step)


def _judge(facts: ReportFacts) -> Iterator[TrustCheck]:
    if facts.run is None:
        return
    stages = facts.run.manifest.stages
    locks = [lock for lock in (stages.get("judge"), stages.get("rank")) if lock is not None]
    yield _health(locks)
    yield from _canaries(stages.get("judge"))
    yield from _gate(facts)
    yield from _inversions(facts, stages.get("rank"))


def _health(locks: list[StageLock]) -> TrustCheck:
    """Return the check of the judge's health, without figures that have a separate check."""
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
    said = tuple(line.text for line in lines) or ("no health data",)
    state: State = "doubt" if any(line.warning for line in lines) else "good" if lines else "unknown"
    whose = (f"judge: {name}",) if name else ()
    return TrustCheck(name="Judge", state=state, said=(*whose, *said), threshold="no health warning")


def _canaries(lock: StageLock | None) -> Iterator[TrustCheck]:
    if lock is None or is_exact(lock.components.get("judge")):
        return
    health = lock.health.canaries if isinstance(lock.health, JudgeHealth) else None
    threshold = "all as expected"
    if health is None or not health.passed.total:
        said = "no hidden control items were judged (judge.canaries)"
        yield TrustCheck(name="Canaries", state="unknown", said=(said,), threshold=threshold)
        return
    lines = tuple(health_lines(JudgeHealth(canaries=health)))
    passed = health.passed.count == health.passed.total and not any(line.warning for line in lines)
    state: State = "good" if passed else "doubt"
    yield TrustCheck(name="Canaries", state=state, said=tuple(line.text for line in lines), threshold=threshold)


def _gate(facts: ReportFacts) -> Iterator[TrustCheck]:
    if facts.run is None:
        return
    manifest = facts.run.manifest
    asked = as_object(as_object(manifest.config.get("judge")).get("gate"))
    limits = [f"{name} {value:g}" for name, value in asked.items() if isinstance(value, int | float)]
    threshold = f"judge.gate: {', '.join(limits)}" if limits else "no gate is set (judge.gate)"
    below = failed_judge_gates(manifest)
    if below:
        step = NextStep(why="show the inputs of the judge", command=f"raggs why {quote(facts.place)} judge")
        yield TrustCheck(name="Gate", state="bad", said=(GATE_FAILED_TEXT, *below), threshold=threshold, step=step)
    elif limits:
        yield TrustCheck(name="Gate", state="good", said=("the judge passes its gate",), threshold=threshold)


def _inversions(facts: ReportFacts, lock: StageLock | None) -> Iterator[TrustCheck]:
    health = lock.health if lock is not None else None
    if lock is None or not isinstance(health, RankHealth) or health.expected_inversions is None:
        return
    if is_exact(lock.components.get("judge")) and COUNT_SETTLED not in lock.counts:
        return
    said, doubt, threshold = _order_found(facts, lock, health.expected_inversions)
    calls = lock.params.get("max_calls")
    step = None
    if doubt and facts.run is not None and isinstance(calls, int):
        command = f"{facts.run.command} --set {_doubled_budget_setting(lock.params.get('budget'), calls)}"
        step = NextStep(why="let the judge order more batches, for a more certain order", command=command)
    yield TrustCheck(name="Order", state="doubt" if doubt else "good", said=said, threshold=threshold, step=step)


def _order_found(facts: ReportFacts, lock: StageLock, inversions: float) -> tuple[tuple[str, ...], bool, str]:
    """Return findings on the orders, whether they are a warning, and the threshold."""
    outcomes = {name: lock.counts[name] for name in OUTCOMES if name in lock.counts}
    ranked = sum(count for name, count in outcomes.items() if name != COUNT_NOT_RANKED)
    if ranked:
        cut = sum(outcomes.get(name, 0) for name in CUT_SHORT)
        limit = f"warning above {MAX_CUT_SHORT_SHARE:.0%} of queries that stopped at a cap or budget"
        return tuple(settled_words(lock)), cut > MAX_CUT_SHORT_SHARE * ranked, limit
    pairs = facts.golden.top * (facts.golden.top - 1) / 2
    wrong = inversions / pairs if pairs else 0.0
    share = f"that is {wrong:.0%} of the pairs in the top {facts.golden.top}; metrics of grades are not affected"
    return (
        (inversions_words(inversions), share),
        wrong > MAX_CUT_SHORT_SHARE,
        f"warning above {MAX_CUT_SHORT_SHARE:.0%} of pairs; a random order has 50%",
    )


def _doubled_budget_setting(budget: object, calls: int) -> str:
    """Return the setting that doubles the budget of the rank stage: calls per query, or the budget of all queries."""
    shared = budget if isinstance(budget, Mapping) else {}
    of_all = next(((name, value) for name, value in shared.items() if value is not None), None)
    return f"rank.max_calls={2 * calls}" if of_all is None else f"rank.budget.{of_all[0]}={2 * of_all[1]:g}"


def human_agreement_check(facts: ReportFacts) -> TrustCheck:
    """Return the check of the judge against human labels, with the command that plans more labels."""
    people, step = facts.people, None
    if facts.run is not None and "judge" not in _missing_stages(facts):
        command = f"raggs review plan {quote(facts.place)} --minutes 60 --out plan.jsonl"
        step = NextStep(why="label the most informative passages by hand", command=command)
    if not people.trust:
        said = people.why or "the judge was not compared with human labels"
        return TrustCheck(name="Human labels", state="unknown", said=(said,), threshold="", step=step)
    comparing = people.trust[0]
    states: dict[str, State] = {"yes": "good", "no": "bad", "not yet": "doubt"}
    state = states[comparing.answer]
    # the sentences include their thresholds
    return TrustCheck(
        name="Human labels", state=state, said=people.said, threshold="", step=step if state == "doubt" else None
    )


Answer = Literal["better", "worse", "equivalent", "inconclusive", "nothing to compare"]
MAX_QUERY_FACTOR = 10  # multiple of the existing queries, beyond which collecting more is not recommended
STATUS_WORDS: dict[Answer, str] = {
    "better": "conclusive",
    "worse": "conclusive",
    "equivalent": "conclusive",
    "inconclusive": "inconclusive",
    "nothing to compare": "one system only",
}
TRUST_WORDS: dict[State, str] = {
    "good": "yes, all checks passed",
    "doubt": "with caution",
    "bad": "no",
    "unknown": "as far as it was checked",
}
TRUST_ORDER: tuple[State, ...] = ("bad", "doubt", "unknown", "good")  # the first state found decides


class Recommendation(ReportPart):
    """A recommendation in one sentence, with its reasons."""

    headline: str
    answer: Answer = Field(description="verdict on the best other system, or on the choice of a sweep")
    said: tuple[str, ...] = Field(description="reasons, with all figures")
    but: str = Field("", description="significant disadvantage of the recommended system")
    joined: str = Field("", description="comparison of a sweep's choice with the recommended system")
    needed: int | None = Field(None, description="queries needed for a conclusive result, if it is inconclusive")

    @property
    def state(self) -> State:
        """State by which the answer is coloured."""
        return "good" if self.answer == "better" else "doubt" if self.answer == "inconclusive" else "unknown"


class DecisionPart(ReportPart):
    """Data of the section.

    Attributes:
        systems: recommendation by the evaluation; None if nothing was scored.
        sweeps: recommendations of the sweeps.
        unit: the unit of the headline's points, in plain words; empty if nothing was compared.
        figure: differences of all systems from the baseline, with intervals.
        trusted: worst state of the checks.
        blocks: reasons not to use the result, most severe first.
        steps: next steps, the most urgent first.
    """

    systems: Recommendation | None
    sweeps: tuple[Recommendation, ...]
    unit: str
    figure: SvgFigure | None
    trusted: State
    checks: tuple[TrustCheck, ...]
    blocks: tuple[str, ...]
    steps: tuple[NextStep, ...]
    cost: tuple[str, ...]
    thresholds: tuple[str, ...]

    @property
    def main(self) -> Recommendation | None:
        """The recommendation at the top: that of the evaluation, else of the first sweep."""
        return self.systems or next(iter(self.sweeps), None)

    @property
    def others(self) -> tuple[Recommendation, ...]:
        """Recommendations below the one at the top."""
        return self.sweeps if self.systems else self.sweeps[1:]

    @property
    def status(self) -> str:
        """Whether the comparison has a conclusive result, in words."""
        return "nothing was scored" if self.main is None else STATUS_WORDS[self.main.answer]

    @property
    def trust(self) -> str:
        """Whether the set can be trusted, in words, with the checks that decide."""
        deciding = [
            check.name.lower() for check in self.checks if check.state == self.trusted and self.trusted != "good"
        ]
        word = {"bad": "failed", "doubt": "warning", "unknown": "not run"}.get(self.trusted)
        return TRUST_WORDS[self.trusted] + (f" ({word}: {', '.join(deciding)})" if deciding else "")


class DecisionSection(ReportSection):
    """Which system does the set recommend, can the set be trusted, what blocks, what is next, and what did it cost?"""

    NAME = "decision"
    TITLE = "Decision"

    def data(self, facts: ReportFacts) -> DecisionPart:
        """Return the data of the section; every report has one."""
        report, found = facts.report, tuple(checks(facts))
        sweeps = tuple(_of_sweep(each.report, each.file, report) for each in facts.sweeps)
        systems = None if report is None else _of_systems(report)
        return DecisionPart(
            systems=systems,
            sweeps=sweeps,
            unit=point_meaning(report) if report and report.comparisons else "",
            figure=None if report is None else next(differences(report, report.measures[0]), None),
            trusted=next(state for state in TRUST_ORDER if state in {"good", *(check.state for check in found)}),
            checks=found,
            blocks=tuple(_blocks(found, facts)),
            steps=tuple(_steps(facts, [each for each in (systems, *sweeps) if each], found)),
            cost=tuple(_cost(facts)),
            thresholds=(*_thresholds(report), *_of_choices([each.report for each in facts.sweeps])),
        )


def _blocks(found: Sequence[TrustCheck], facts: ReportFacts) -> Iterator[str]:
    if facts.missing:
        yield facts.missing
    for check in found:
        if check.state == "bad":
            first, *rest = check.said
            yield f"{check.name}: {first}{f'; {len(rest)} more, see the checks' if rest else ''}"


# --- recommendations ------------------------------------------------------------------------------------------


def _of_sweep(sweep: SweepReport, file: str, report: EvalReport | None) -> Recommendation:
    """Return the choice of a sweep, whose configuration is `file`. It is conclusive if all these conditions hold:

    - Nearly all bootstrap samples of the queries choose the same system or an equivalent one.
    - The sweep has at least `MIN_CLAIM_QUERIES` queries.
    - Unjudged passages could not change the choice.
    """
    from raggs.stats.resampling import MIN_CLAIM_QUERIES  # imported lazily: most reports contain no sweep
    from raggs.sweeps.layout import rivals
    from raggs.sweeps.summary import chosen_share, is_separated, system_names

    chosen, said = sweep.choice.winner, (sweep.choice.sentence, *sweep.choice.unknown, *rivals(sweep, file))
    named = f"Sweep {sweep.name} ({plural(len(sweep.systems), 'configuration')})"
    if chosen is None:
        answer: Answer = "inconclusive" if sweep.choice.inconclusive else "worse"
        return Recommendation(headline=f"{named}: no configuration is within the limits.", answer=answer, said=said)
    share, separated = chosen_share(sweep), is_separated(sweep)
    sure = separated and sweep.questions >= MIN_CLAIM_QUERIES and not sweep.choice.inconclusive
    itself = " (the baseline of the sweep)" if chosen == sweep.baseline else ""
    names = system_names(sweep)
    who = "it or an equivalent one" if {names.get(each, each) for each in sweep.choice.tied} - {names[chosen]} else "it"
    often = "" if share is None else f": {who} is chosen in {share:.0%} of resamples of the queries"
    if separated:
        headline = f"use {names[chosen]}{itself}{'' if sure else ' for now'}{often}."
    else:
        headline = f"no single best configuration; {names[chosen]}{itself} leads{often}."
    joined = "" if report is None else _sweep_comparison(sweep, report, share)
    return Recommendation(
        headline=f"{named}: {headline}", answer="better" if sure else "inconclusive", said=said, joined=joined
    )


def _sweep_comparison(sweep: SweepReport, report: EvalReport, share: float | None) -> str:
    """Return how the choice of a sweep compares with the system that the evaluation recommends: in score, and also in
    latency and cost if the sweep has a system with that score. Empty if they cannot be compared.
    """
    from raggs.sweeps.comparing import best_first  # imported lazily, see above
    from raggs.sweeps.summary import is_separated, speed_and_cost, system_names

    first, measure, names = deciding_comparisons(report), report.measures[0], system_names(sweep)
    chosen = sweep.system(sweep.choice.winner or "")
    score = chosen.scores.get(measure)
    if not first or score is None or score.mean is None or sweep.golden.digest != report.golden.digest:
        return ""
    part = first[0]
    kept = part.system if part.verdict == "better" and not part.negligible else part.baseline
    mean = next((each.scores[measure].mean for each in report.systems if each.name == kept), None)
    if mean is None:
        return ""
    rows = [(row, found.mean) for row in best_first(sweep) if (found := row.scores.get(measure))]
    same = [row for row, value in rows if value is not None and abs(value - mean) < SAME_SCORE]
    count, change = plural(len(sweep.systems), "configuration"), score.mean - mean
    if names[chosen.name] in {names[row.name] for row in same}:
        return f"The sweep agrees: its best of {count} has the score of {kept}."
    if is_separated(sweep) and not same and abs(change) < MARGIN:
        best = f"{names[chosen.name]}, has about the score of {kept} ({_points(change)})"
        return f"The sweep agrees: its best of {count}, {best}."
    whose = f"{kept} ({names[same[0].name]} in the sweep)" if same else kept
    score_words = (
        f"has about the same score ({_points(change)})" if abs(change) < MARGIN else f"scores {_points(change)}"
    )
    more = list(speed_and_cost(chosen, same[0], sweep.jitter_ms)) if same else []
    *words, last = score_words, *more
    compared = f"Compared with {whose}, it {' and '.join(filter(None, (', '.join(words), last)))}."
    if is_separated(sweep):
        return f"The sweep of {count} recommends {names[chosen.name]}. {compared}"
    often = "" if share is None else f", chosen in {share:.0%} of resamples of the queries"
    rest = f" This does not justify a replacement of {kept}." if change < MARGIN else " That may be chance."
    first_choice = f"Its first choice is {names[chosen.name]}{often}."
    return f"The sweep of {count} found no single best one. {first_choice} {compared}{rest}"


def _of_systems(report: EvalReport) -> Recommendation:
    """Return the recommendation on the best other system against the baseline, by the primary metric."""
    first = deciding_comparisons(report)
    if not first:
        return _uncompared_recommendation(report)
    best = first[0]
    open_ = best.verdict == "unjudged" or (best.verdict == "inconclusive" and is_ahead(best, report))
    return Recommendation(
        headline=_headline(best, report),
        answer="inconclusive" if best.verdict == "unjudged" else best.verdict,
        said=(*_reasons(best, report), *_harm_reasons(best, report), *_other_systems_reason(first[1:], best)),
        but=_disadvantage(best, report) if best.verdict == "better" else "",
        needed=best.queries_needed if open_ and best.unjudged is None else None,
    )


def _headline(best: ComparisonPart, report: EvalReport) -> str:
    """Return what to do, for a reader who does not know the metric."""
    base, system, ahead = best.baseline, best.system, is_ahead(best, report)
    queries = f"({plural(report.golden.queries, 'query')})"
    gap = f"{system} scores {_points(best.difference)}"
    match best.verdict:
        case "better" if best.negligible:
            return f"{gap} than {base}, which is too little to matter. Choose the cheaper system."
        case "better":
            return f"Replace {base} with {system}. {gap} {queries}."
        case "worse":
            return f"Keep {base}. {'' if len(report.systems) == 2 else 'Of the other systems, '}{gap} {queries}."
        case "equivalent":
            return f"{system} and {base} are equivalent. Choose the cheaper system {queries}."
        case "unjudged":
            return f"No decision yet. {gap} than {base}, but unjudged passages could reverse this {queries}."
        case _ if abs(best.difference or 0.0) < SAME_SCORE:
            return f"Keep {base}. {system} has the same score {queries}."
        case _:
            return f"Keep {base}{' for now' if ahead else ''}. {gap}, which may be chance {queries}."


SAME_SCORE = 0.0005  # smaller differences round to 0 with three decimals


def _points(difference: float | None) -> str:
    """Return a difference of scores: ``2.0 points of 100 less``."""
    change = 100 * (difference or 0.0)
    return f"{max(abs(change), 0.1):.1f} points of 100 {'more' if change > 0 else 'less'}"


def _uncompared_recommendation(report: EvalReport) -> Recommendation:
    """Return a recommendation for systems that were not compared."""
    measure = report.measures[0]
    scores = [(each.name, each.scores[measure].mean) for each in report.systems]
    said = [f"{name}: {measure} {_score(mean)}" for name, mean in scores]
    name, mean = scores[0] if len(scores) == 1 else ("", None)
    headline = f"{name} scores {_score(mean)} {measure}. There is no other system to compare with."
    if len(scores) != 1:
        headline = f"{plural(len(scores), 'system')} were scored, but none of them was compared with another one."
    return Recommendation(headline=headline, answer="nothing to compare", said=tuple(said))


def _score(value: Number) -> str:
    return UNDEFINED if value is None else f"{value:z.{DIGITS}f}"


def _signed(value: Number) -> str:
    return UNDEFINED if value is None else f"{value:+z.{DIGITS}f}"


def _reasons(best: ComparisonPart, report: EvalReport) -> Iterator[str]:
    """Yield the reasons of the answer."""
    yield difference_sentence(best, DIGITS)
    if best.unjudged is not None:
        yield inconclusive(best.unjudged)
        low, high = _signed(best.unjudged.low), _signed(best.unjudged.high)
        yield f"depending on their grades, the difference is between {low} and {high}"
    elif best.verdict == "equivalent":
        yield f"equivalent: the interval is within {MARGIN:g} of zero"
    elif best.verdict == "better" and best.negligible:
        yield f"the gain is significant but within {MARGIN:g}, which is negligible in practice"
    elif best.verdict == "worse":
        yield f"{best.baseline} is significantly better than the best other system"
    elif best.verdict == "inconclusive" and not is_ahead(best, report):
        yield f"its mean is below {best.baseline}, although not significantly, so nothing supports the replacement"
    elif best.verdict == "inconclusive" and best.queries_needed:
        there = report.golden.queries
        needed = f"{query_count(best.queries_needed)} queries are needed"
        yield f"{needed} for a conclusive result if the true difference equals the observed one; there are {there:,}"
        if best.queries_needed > MAX_QUERY_FACTOR * there:
            yield "such a small difference rarely matters in practice; choose the cheaper system"


def _disadvantage(best: ComparisonPart, report: EvalReport) -> str:
    """Return a sentence if the better system has significantly more misleading passages; otherwise an empty text."""
    for part in report.comparisons:
        same = (part.system, part.baseline, part.verdict) == (best.system, best.baseline, "worse")
        if same and parse_measure(part.measure).measure.NAME == "harm":
            more = f"{_points(part.difference)} in {part.measure}"
            return f"But {part.system} returns more passages of grade 1 or 2: {more}."
    return ""


def _harm_reasons(best: ComparisonPart, report: EvalReport) -> Iterator[str]:
    """Yield the differences in misleading passages, which the primary metric does not include."""
    for part in report.comparisons:
        same = (part.system, part.baseline) == (best.system, best.baseline)
        if same and part.measure != best.measure and parse_measure(part.measure).measure.NAME == "harm":
            shown = [each.scores[part.measure].mean for each in report.systems if each.name == part.system]
            sure = {"worse": "significantly more", "better": "significantly less"}.get(
                part.verdict, "no significant difference"
            )
            yield (
                f"{part.measure}, the share of its passages with grade 1 or 2: {_score(next(iter(shown), None))}, "
                f"{_change(part)} against {part.baseline}: {sure}"
            )


def _other_systems_reason(rest: Sequence[ComparisonPart], best: ComparisonPart) -> Iterator[str]:
    if rest:
        listed = ", ".join(f"{part.system} {_change(part)}" for part in rest)
        yield f"other systems against {best.baseline}: {listed}"


def _change(part: ComparisonPart) -> str:
    return f"{_signed(part.difference)} [{_signed(part.low)}, {_signed(part.high)}]"


# --- what is next, and what it cost ---------------------------------------------------------------------------


def _steps(facts: ReportFacts, ships: Sequence[Recommendation], found: Sequence[TrustCheck]) -> Iterator[NextStep]:
    """Yield the next steps, most urgent first: blockers, open comparisons, warnings, checks that were not run."""
    for state in ("bad", "open", "doubt", "unknown"):
        if state == "open":
            yield from _judging_steps(facts)
            yield from _more_questions(facts, ships)
        yield from (check.step for check in found if check.state == state and check.step is not None)
    if facts.judgments is not None and not (facts.report and facts.report.comparisons):
        command = f"raggs report {quote(facts.place)} --run A=a.trec --run B=b.trec --out report.html"
        yield NextStep(why="compare two systems", command=command)
    if facts.report is not None:
        yield from _improvement(facts, facts.report)
    if facts.run is not None:
        yield NextStep(why="verify the files of the golden set", command=f"raggs audit {quote(facts.place)}")


def _improvement(facts: ReportFacts, report: EvalReport) -> Iterator[NextStep]:
    """Yield how to reduce the largest loss of the best system, with the command that finds its causes unless it ran."""
    found = [each for each in Waterfall().found(report) if each.part.actual is not None]
    best = max(found, key=lambda each: each.part.actual or 0.0, default=None)
    if best is None or (best.part.losses[best.part.largest] or 0.0) < SAME_SCORE:
        return
    known = facts.run is None or any(each.kind == "retrieval" for each in facts.diagnoses)
    command = "" if known else f"raggs diagnose retrieval --golden {quote(facts.place)}"
    yield NextStep(why=f"improve {best.system}: {KNOBS[best.part.largest].partition(': ')[2]}", command=command)


def _judging_steps(facts: ReportFacts) -> Iterator[NextStep]:
    """Yield the command that judges the passages that could reverse the verdict."""
    best = deciding_comparisons(facts.report)[:1] if facts.report is not None else []
    for part in best:
        if part.unjudged is not None:
            why, _, command = part.unjudged.remedy.partition(": ")
            yield NextStep(why=f"{inconclusive(part.unjudged)}; {why}", command=command)


def _more_questions(facts: ReportFacts, ships: Sequence[Recommendation]) -> Iterator[NextStep]:
    needed = max((ship.needed or 0 for ship in ships), default=0)
    there = facts.report.golden.queries if facts.report is not None else 0
    if there < needed <= MAX_QUERY_FACTOR * there:
        more = needed - there
        why = f"add about {plural(more, 'query')} for a conclusive result, from logs or documents"
        yield NextStep(why=why, command=f"raggs questions DOCS --out questions.jsonl --n {more}")


def _cost(facts: ReportFacts) -> Iterator[str]:
    if facts.run is None:
        yield "labels from a file: cost unknown"
        return
    total, queries = facts.costs.total, facts.report.golden.queries if facts.report else 0
    if not (total.calls or total.saved_usd or total.unknown):
        yield "$0: no paid model was called"
        return
    each = f", ${total.usd / queries:,.4f} per query" if queries and total.usd else ""
    yield f"${total.usd:,.4f} spent in {plural(total.calls, 'call')}{each}; ${total.saved_usd:,.4f} saved by the cache"
    if (perhaps := total.perhaps_usd - total.unknown_usd) > 0:
        yield f"${perhaps:,.4f} of it is uncertain: calls that timed out and may have been billed"
    if total.unknown:
        yield total.possibly_billed


def _of_choices(sweeps: Sequence[SweepReport]) -> Iterator[str]:
    if not sweeps:
        return
    from raggs.stats.resampling import MIN_CLAIM_QUERIES  # imported lazily, see above

    for sweep in sweeps:
        share = f"{sweep.confidence:.0%} of bootstrap samples, with at least {MIN_CLAIM_QUERIES} queries"
        yield (
            f"sweep {sweep.name}: the choice is conclusive if it or an equivalent configuration is chosen in {share}, "
            "and unjudged passages could not change it"
        )


def _thresholds(report: EvalReport | None) -> Iterator[str]:
    """Yield the thresholds of the verdicts."""
    if report is None:
        return
    alpha: Number = 1.0 - report.confidence
    yield f"primary metric: {report.measures[0]} over {plural(report.golden.queries, 'query')}, seed {report.seed}"
    yield (
        f"better or worse: the {report.confidence:.0%} interval excludes 0, and the Holm-corrected p-value is below "
        f"{alpha:.2g} (paired randomisation test)"
    )
    yield "inconclusive: neither better, worse nor equivalent, or unjudged passages could reverse the verdict"
    yield f"equivalent: the interval is within {MARGIN:g} of zero"
    yield f"queries needed: for a power of {POWER:.0%} if the true difference equals the observed one"
    yield f"checks: {', '.join(STATE_WORDS.values())}; the worst check determines the result"
