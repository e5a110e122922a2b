"""What a run's figures of the judge's health say, in sentences for people.

Computes nothing and shows nothing: the command line prints these lines, and so may a report.

What a cascade's figures say, in sentences.

What neighbours do to grades where several passages are graded in one call, in sentences for people.

How the budget of a set was spread over its questions, in sentences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from raggs.base.artifacts import MIN_GRADE
from raggs.base.judge_health import (
    COUNT_CALLS,
    COUNT_DEEPER,
    COUNT_ENDED,
    COUNT_NEAR_TIES,
    COUNT_NOT_RANKED,
    COUNT_QUERIES,
    COUNT_SETTLED,
    COUNT_SHARING,
    ERROR_CORRELATION_WARNING,
    GROUP_SHIFT_WARNING,
    SLOPE,
    STOP_BUDGET,
    STOP_NO_ORDER,
    STOP_SHARED_BUDGET,
    CanaryHealth,
    CascadeGrade,
    CascadeHealth,
    GradeShift,
    Health,
    HumanAgreement,
    JudgeHealth,
    JudgingDepth,
    PairAgreement,
    PanelHealth,
    RankHealth,
    SelfAgreement,
    grade_apart,
    sources_words,
)
from raggs.base.text import plural
from raggs.parts.judges import grade_noises, is_exact
from raggs.runs.manifests.models import snapshots

if TYPE_CHECKING:
    from raggs.runs.manifests.models import LockedAnswerer, StageLock


def cascade_words(found: CascadeHealth | None) -> Iterator[tuple[str, bool]]:
    """Of how many passages the good judge was asked and why, how far both agree by cheap grade, and what is wrong.

    Each sentence with whether it is a warning.
    """
    if found is None:
        return
    asked, overruled = found.asked, found.overruled
    if asked.total:
        why = f"{found.by_rule:,} by their cheap grade, {found.by_chance:,} at random"
        yield (
            f"cascade: the good judge was asked of {asked.count:,} of {plural(asked.total, 'passage')} "
            f"({asked.rate:.0%}: {why})",
            False,
        )
    if overruled.total:
        yield f"cascade: it gave another grade to {overruled.count:,} of them ({overruled.rate:.0%})", False
    if agree := ", ".join(
        _cascadewords_agreement(grade, each) for grade, each in found.grades.items() if each.agree is not None
    ):
        yield f"cascade: by cheap grade, it agrees on {agree}", False
    if found.ask_from is not None and found.missed.total:
        low, high = found.unseen.interval
        yield (
            f"cascade: {found.missed.count:,} of {found.missed.total:,} asked at random are a {found.ask_from} or more "
            f"to it: of all such it was not shown {found.unseen.share:.0%} (95%: {low:.0%} to {high:.0%})",
            False,
        )
    elif not found.by_chance and asked.count < asked.total:
        yield "cascade: nothing was asked at random, so how often the cheap judge errs alone is not known", False
    yield from ((f"warning: {warning}", True) for warning in found.warnings)


def _cascadewords_agreement(grade: str, found: CascadeGrade) -> str:
    low, high = found.interval
    doubt = "" if low == high else f" ({low:.0%} to {high:.0%})"
    return f"{found.agree:.0%} of the {grade}s{doubt}"


CONTEXT_EFFECTS = {
    "neighbours": "beside good passages rather than bad ones",
    "incited": "beside a passage that asks for a 5 for all",
    "place": "by being shown first in a call rather than last",
    "samples": "for each grade that its company is better, as its samples show",
}
REMEDY = "use a smaller judge.group, or judge.samples: 3, each of which shows other companies"


def company_words(found: Mapping[str, GradeShift]) -> Iterator[tuple[str, bool]]:
    """A sentence for each shift that was measured, and whether it warns: beyond `LEAK` (or `SLOPE`) and chance."""
    for name, shift in found.items():
        if shift.grades is None or shift.interval is None:
            yield f"company: too few questions to tell what a grade moves {CONTEXT_EFFECTS[name]}", False
            continue
        low, high = shift.interval
        measured = f"{shift.grades:+.2f} [{low:+.2f}, {high:+.2f}]"
        yield (
            f"company: a grade moves by {measured} {CONTEXT_EFFECTS[name]} ({plural(shift.questions, 'question')})",
            False,
        )
        if abs(shift.grades) >= (SLOPE if name == "samples" else GROUP_SHIFT_WARNING) and (low > 0 or high < 0):
            yield f"warning: grades hang on the passages shown beside: {REMEDY}", True


def share_words(mine: int, shares: Sequence[int]) -> Iterator[str]:
    """What a question got, and why others got more; `shares`: calls of every question."""
    fewer, more = sum(share < mine for share in shares), sum(share > mine for share in shares)
    yield (
        f"of the {plural(sum(shares), 'call')} that {plural(len(shares), 'question')} share {mine:,} went here, "
        f"{sum(shares) / len(shares):.1f} on average: {fewer:,} got fewer, {more:,} got more"
    )
    why = "each next call goes where it is expected to put most pairs right"
    if more:
        why += ": those that got more had more pairs in doubt in their top, after as many calls as this one"
    elif fewer:
        why += ": of all tops this one had most pairs in doubt, after as many calls"
    yield why


def spread_words(counts: Mapping[str, int]) -> Iterator[str]:
    """How many calls questions got, by the counts of a lock; nothing where they share no budget."""
    if COUNT_CALLS not in counts:
        return
    spent, questions = plural(counts[COUNT_CALLS], "call"), plural(counts[COUNT_SHARING], "question")
    low, high = counts["quarter"], counts["three quarters"]
    half = f"half of them {low:,}" if low == high else f"half of them {low:,} to {high:,}"
    ended = f"; {counts[COUNT_ENDED]:,} ended before it was spent" if counts[COUNT_ENDED] else ""
    yield f"budget: {spent} over {questions}, {counts['least']:,} to {counts['most']:,} each, {half}{ended}"


TOLD_BIAS = 0.1  # grades; less is not worth a word
OUTCOMES = {
    COUNT_SETTLED: "settled",
    "cap": "stopped at the cap (rank.max_calls)",
    STOP_SHARED_BUDGET: "stopped at the set's budget (rank.budget)",
    STOP_BUDGET: "stopped when the budget of the run ended",
    STOP_NO_ORDER: "without any order",
    COUNT_NEAR_TIES: "with near-ties at the edge of the top",
    COUNT_NOT_RANKED: "not ranked",
}
BY_RULE = "orders by rule and without noise; equals stand in a fixed order, which is as good as any other"
CONFIDENCE = (
    "score: in grades, whose ends it may pass by some tenths; "
    "conf.: how surely a passage stands above the next one (50%: as good as tied)"
)


class SummaryLine(NamedTuple):
    """A sentence, and whether it is a warning."""

    text: str
    warning: bool = False


def lock_lines(lock: StageLock) -> Iterator[SummaryLine]:
    """What there is to tell of the counts and of the health in a stage's lock."""
    if (line := depth_line(lock.counts)) is not None:
        yield line
    if lock.stage == "rank" and isinstance(floor := lock.params.get("floor"), int) and floor > MIN_GRADE:
        yield SummaryLine(f"order: passages below grade {floor} are not ordered (rank.floor): by grade and fused rank")
    yield from map(SummaryLine, settled_words(lock))
    yield from map(SummaryLine, spread_words(lock.counts))
    yield from _noise(lock)
    yield from health_lines(lock.health, exact=is_exact(lock.components.get("judge")))


def _noise(lock: StageLock) -> Iterator[SummaryLine]:
    """How often a simulated judge's grades differ from their labels."""
    noises = [f"{noise:g}" for noise in grade_noises(lock.components.get("judge"))] if lock.stage == "judge" else []
    if not noises:
        return
    found = lock.health.noise if isinstance(lock.health, JudgeHealth) else None
    told = "how many grades that changed was not measured"
    if found is not None and found.rate is not None:
        told = f"{found.rate:.0%} of {plural(found.total, 'grade')} differ from the labels"
    yield SummaryLine(
        f"warning: the judge adds simulated noise (grade_noise {', '.join(noises)}): {told}", warning=True
    )


def answerer_lines(answerers: Collection[LockedAnswerer]) -> Iterator[SummaryLine]:
    """Which snapshots of each model answered; a warning if there are several of one."""
    named = snapshots(answerers)
    for asked in dict.fromkeys(each.asked for each in answerers):
        mine = [each for each in answerers if each.asked == asked]
        parts = [f"{model} ({plural(count, 'answer')})" for model, count in named.get(asked, {}).items()]
        if silent := sum(each.answers for each in mine if each.recorded and each.model is None):
            parts.append(f"{plural(silent, 'answer')} that state no model")
        if before := sum(each.answers for each in mine if not each.recorded):
            parts.append(f"{plural(before, 'answer')} of which this was not recorded")
        counts = {what: len({getattr(each, what) for each in mine} - {None}) for what in ("fingerprint", "provider")}
        parts += [f"{count} {what}s" for what, count in counts.items() if count > 1]
        if (count := len(named.get(asked, {}))) > 1:
            told = f"warning: {asked} answered as {count} snapshots, whose answers may differ: {', '.join(parts)}"
            yield SummaryLine(told, warning=True)
        else:
            yield SummaryLine(f"answered by {asked or 'models whose names are lost'}: {', '.join(parts)}")


def settled_words(lock: StageLock) -> Iterator[str]:
    """How many tops are settled and why the others are not; how many queries were not ranked."""
    found = {name: lock.counts[name] for name in OUTCOMES if name in lock.counts}
    not_ranked = found.pop(COUNT_NOT_RANKED, 0)
    if found:
        top, settled = lock.params.get("top"), found.pop(COUNT_SETTLED, 0)
        others = "".join(f"; {count:,} {OUTCOMES[name]}" for name, count in found.items())
        yield f"settled: the top {top} of {settled:,} of {plural(settled + sum(found.values()), 'query')}{others}"
    if not_ranked:
        least = lock.params.get("min_best_grade")
        yield f"not ranked: {plural(not_ranked, 'query')} without a passage of grade {least} or more"


def depth_line(counts: Mapping[str, int]) -> SummaryLine | None:
    """How many questions were searched deeper, and why; None where depth was the same for all."""
    if COUNT_QUERIES not in counts:
        return None
    fired = ", ".join(
        f"{name} {count:,}" for name, count in counts.items() if name not in (COUNT_QUERIES, COUNT_DEEPER)
    )
    told = f" ({fired})" if fired else ""
    return SummaryLine(
        f"depth: {counts[COUNT_DEEPER]:,} of {plural(counts[COUNT_QUERIES], 'question')} searched deeper{told}"
    )


def health_lines(health: Health | None, *, exact: bool = False) -> Iterator[SummaryLine]:
    """What there is to tell of a stage's health.

    Args:
        exact: whether the judge answers by rule; then it has no errors to tell of, and pairs in doubt are ties.
    """
    if isinstance(health, JudgeHealth):
        yield from _depth(health.depth)
        yield from _samples(health.samples)
        if health.place is not None:
            yield from _group_context_lines({"place": health.place})
        yield from _panel(health.panel)
        yield from _cascade(health.cascade)
        if health.canaries is not None:
            yield _canaries(health.canaries)
            yield from _group_context_lines(health.canaries.company)
        if health.people is not None:
            yield _human_agreement_line(health.people)
        if health.sources:
            yield SummaryLine(f"grades: {sources_words(health.sources)}")
        if health.silent:
            yield SummaryLine(f"judge: nobody spoke on {plural(health.silent, 'passage')}; they have no grade")
        if health.replaced:
            yield SummaryLine(
                f"judge: {plural(health.replaced, 'answer')} with U+FFFD in place of what is no character"
            )
    elif isinstance(health, RankHealth) and health.first.total:
        yield from _orders(health, exact)


def inversions_words(inversions: float) -> str:
    """How many pairs of a query's top may stand the wrong way round."""
    return f"order: {inversions:.1f} wrongly ordered pairs expected in the top of a query, on average"


def judge_words(sharpness: float, echo: float | None, bias: float | None) -> str:
    """What an engine found out about a judge; nothing of a position bias that is not worth a word."""
    better = f"{grade_apart(sharpness):.0%}"
    words = [f"sharpness {sharpness:.1f} (of two passages a grade apart it prefers the better {better})"]
    if echo is not None:
        meaning = "it repeats its own errors" if echo > ERROR_CORRELATION_WARNING else "asking again is a fresh opinion"
        words.append(f"echo {echo:.2f} ({meaning})")
    if bias is not None and abs(bias) >= TOLD_BIAS:
        place = "first" if bias > 0 else "last"
        words.append(f"a passage gains {abs(bias):.1f} grades by being shown {place} (the order is free of it)")
    return ", ".join(words)


def _depth(depth: JudgingDepth | None) -> Iterator[SummaryLine]:
    if depth is None:
        return
    total = depth.asked + depth.saved
    share = depth.saved / total if total else 0.0
    yield SummaryLine(
        f"depth: {depth.saved:,} of {plural(total, 'judgment')} saved ({share:.0%}), "
        f"{plural(depth.stopped, 'query')} stopped early"
    )


def _samples(samples: SelfAgreement | None) -> Iterator[SummaryLine]:
    if samples is not None and samples.passages:
        agree = _agreement(samples)
        yield SummaryLine(f"samples: {samples.asked} a passage, {samples.unanimous:.0%} unanimous, pairs {agree}")
        if samples.company is not None:
            yield from _group_context_lines({"samples": samples.company})


def _group_context_lines(found: Mapping[str, GradeShift]) -> Iterator[SummaryLine]:

    return (SummaryLine(*said) for said in company_words(found))


def _cascade(found: CascadeHealth | None) -> Iterator[SummaryLine]:
    if found is None:
        return

    yield from (SummaryLine(*said) for said in cascade_words(found))


def _canaries(found: CanaryHealth) -> SummaryLine:
    passed = found.passed
    if not passed.total:
        return SummaryLine("canaries: none, since this judge does not read passages")
    missed = [
        f"{name} {rate.count:,} of {rate.total:,}" for name, rate in found.kinds.items() if rate.count < rate.total
    ]
    told = f" ({', '.join(missed)})" if missed else ""
    return SummaryLine(f"canaries: {passed.count:,} of {passed.total:,} as expected{told}")


def _human_agreement_line(found: HumanAgreement) -> SummaryLine:
    compared = f"{plural(found.grades, 'grade')} of {plural(found.questions, 'question')}"
    if found.kappa is None or found.interval is None:
        return SummaryLine(f"against people: {compared}, too few for a kappa")
    low, high = found.interval
    return SummaryLine(f"against people: kappa {found.kappa:.2f} [{low:.2f}, {high:.2f}], {compared}")


def _panel(panel: PanelHealth | None) -> Iterator[SummaryLine]:
    if panel is None:
        return
    for name, member in panel.members.items():
        if member.mean is not None:
            yield SummaryLine(f"panel: {name} gave {plural(member.given, 'grade')}, on average {member.mean:.2f}")
    for pair in panel.agreement:
        if pair.pairs:
            yield SummaryLine(f"panel: {' and '.join(pair.judges)} {_agreement(pair)}")
    yield from (SummaryLine(f"warning: {warning}", True) for warning in panel.warnings)


def _agreement(found: SelfAgreement | PairAgreement) -> str:
    kappa = "" if found.kappa is None else f" (quadratic kappa {found.kappa:.2f})"
    return f"agree {found.exact:.0%}{kappa}"


def _orders(health: RankHealth, exact: bool) -> Iterator[SummaryLine]:
    if exact:
        yield SummaryLine(f"judge: {BY_RULE} ({plural(health.invalid.total, 'batch')})")
        return
    flips, cycles, invalid = health.flips, health.cycles, health.invalid
    parts = [f"first shown wins {health.first.rate:.0%} of the batches (a fair judge: {health.fair_first:.0%})"]
    if flips.total:
        parts.append(f"{flips.rate:.0%} of {flips.total:,} close pairs change places when asked again (a coin: 50%)")
    if cycles.total:
        parts.append(f"{cycles.rate:.0%} of triples go round in a circle (a over b over c over a)")
    parts.append(f"{invalid.count:,} of {plural(invalid.total, 'batch')} without an order")
    yield SummaryLine(f"judge: {', '.join(parts)}")
    if health.sharpness is not None:
        yield SummaryLine(f"judge: {judge_words(health.sharpness, health.echo, health.position_bias)}")
    if (inversions := health.expected_inversions) is not None:
        yield SummaryLine(inversions_words(inversions))
    yield from (SummaryLine(f"warning: {warning}", True) for warning in health.warnings)
