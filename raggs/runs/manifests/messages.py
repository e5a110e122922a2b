"""Sentences about a judge's health. They put the statistics in a run's locks into words.

This module neither computes statistics nor prints: the command line and the report print its sentences.
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
    from raggs.runs.manifests.models import LockedAnswerer, RunManifest, StageLock


def cascade_words(found: CascadeHealth | None) -> Iterator[tuple[str, bool]]:
    """Yield sentences about a cascade: the share of passages sent to the good judge, agreement by grade, and
    warnings.

    Each sentence comes with a flag: whether it is a warning.
    """
    if found is None:
        return
    asked, overruled = found.asked, found.overruled
    if asked.total:
        why = f"{found.by_rule:,} because of their cheap grade, {found.by_chance:,} at random"
        yield (
            f"cascade: the good judge graded {asked.count:,} of {plural(asked.total, 'passage')} "
            f"({asked.rate:.0%}: {why})",
            False,
        )
    if overruled.total:
        yield (
            f"cascade: the good judge changed {overruled.count:,} of {plural(overruled.total, 'cheap grade')} "
            f"({overruled.rate:.0%})",
            False,
        )
    if agree := ", ".join(
        _cascadewords_agreement(grade, each) for grade, each in found.grades.items() if each.agree is not None
    ):
        yield f"cascade: agreement by cheap grade: {agree}", False
    if found.ask_from is not None and found.missed.total:
        low, high = found.unseen.interval
        yield (
            f"cascade: of {found.missed.total:,} sent at random, {found.missed.count:,} have grade "
            f"{found.ask_from} or higher. Of all such passages, {found.unseen.share:.0%} [{low:.0%}, {high:.0%}] "
            "were not sent to the good judge",
            False,
        )
    elif not found.by_chance and asked.count < asked.total:
        yield "cascade: no passage was sent at random, so the error rate of the cheap judge is unknown", False
    yield from ((f"warning: {warning}", True) for warning in found.warnings)


def _cascadewords_agreement(grade: str, found: CascadeGrade) -> str:
    low, high = found.interval
    doubt = "" if low == high else f" ({low:.0%} to {high:.0%})"
    return f"{found.agree:.0%} of the {grade}s{doubt}"


CONTEXT_EFFECTS = {
    "neighbours": "next to good passages rather than bad ones",
    "incited": "next to a passage that demands grade 5 for all",
    "place": "if it is shown first in a call rather than last",
    "samples": "for each grade by which the mean of the other passages in the call is higher",
}
REMEDY = "set a smaller judge.group, or judge.samples: 3, which groups the passages differently each time"


def company_words(found: Mapping[str, GradeShift]) -> Iterator[tuple[str, bool]]:
    """Yield a sentence for each measured group context effect, and a warning if the shift is significant and at least
    `GROUP_SHIFT_WARNING` grades.

    If the shift was measured between repeated samples, the threshold is `SLOPE`.
    """
    for name, shift in found.items():
        if shift.grades is None or shift.interval is None:
            yield f"group context: too few queries to measure how a grade changes {CONTEXT_EFFECTS[name]}", False
            continue
        low, high = shift.interval
        measured = f"{shift.grades:+.2f} [{low:+.2f}, {high:+.2f}]"
        yield (
            f"group context: a grade changes by {measured} {CONTEXT_EFFECTS[name]} "
            f"({plural(shift.questions, 'query')})",
            False,
        )
        if abs(shift.grades) >= (SLOPE if name == "samples" else GROUP_SHIFT_WARNING) and (low > 0 or high < 0):
            yield f"warning: grades depend on the other passages of the call: {REMEDY}", True


def share_words(mine: int, shares: Sequence[int]) -> Iterator[str]:
    """Yield why one query got `mine` calls, and other queries more or fewer. `shares` contains the number of calls of
    each query.
    """
    fewer, more = sum(share < mine for share in shares), sum(share > mine for share in shares)
    yield (
        f"{plural(len(shares), 'query')} share {plural(sum(shares), 'call')}; this query got {mine:,}, "
        f"the mean is {sum(shares) / len(shares):.1f}: {fewer:,} got fewer, {more:,} got more"
    )
    why = "each call goes to the query whose order it is expected to improve most"
    if more:
        why += ": queries with more calls had a more uncertain top after the same number of calls"
    elif fewer:
        why += ": this query had the most uncertain top after the same number of calls"
    yield why


def spread_words(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield how the calls of a shared budget were distributed over queries, or nothing if queries share no budget."""
    if COUNT_CALLS not in counts:
        return
    spent, questions = plural(counts[COUNT_CALLS], "call"), plural(counts[COUNT_SHARING], "query")
    low, high = counts["quarter"], counts["three quarters"]
    half = f"the middle half got {low:,}" if low == high else f"the middle half got {low:,} to {high:,}"
    ended = f"; {counts[COUNT_ENDED]:,} finished before the budget was used up" if counts[COUNT_ENDED] else ""
    yield f"shared budget: {spent} over {questions}, {counts['least']:,} to {counts['most']:,} each; {half}{ended}"


TOLD_BIAS = 0.1  # in grades; a smaller position bias is not printed
OUTCOMES = {
    COUNT_SETTLED: "settled",
    "cap": "stopped at the maximum number of calls (rank.max_calls)",
    STOP_SHARED_BUDGET: "stopped when the set budget was used up (rank.budget)",
    STOP_BUDGET: "stopped when the run's budget was used up",
    STOP_NO_ORDER: "without any order",
    COUNT_NEAR_TIES: "with near-ties at the edge of the top",
    COUNT_NOT_RANKED: "not ranked",
}
BY_RULE = (
    "rule-based, so its answers contain no random errors; passages with equal scores are in a fixed, arbitrary order"
)
CONFIDENCE = "score: estimated grade; conf.: probability of being better than the next passage"


class SummaryLine(NamedTuple):
    """A sentence about a stage, and whether it is a warning."""

    text: str
    warning: bool = False


def lock_lines(lock: StageLock) -> Iterator[SummaryLine]:
    """Yield the sentences about the counts and the judge's health in a stage's lock."""
    if (line := depth_line(lock.counts)) is not None:
        yield line
    if lock.stage == "rank" and isinstance(floor := lock.params.get("floor"), int) and floor > MIN_GRADE:
        yield SummaryLine(f"order: passages below grade {floor} (rank.floor) are sorted by grade and fused rank only")
    yield from map(SummaryLine, settled_words(lock))
    yield from map(SummaryLine, spread_words(lock.counts))
    yield from _noise(lock)
    yield from health_lines(lock.health, exact=is_exact(lock.components.get("judge")))


def _noise(lock: StageLock) -> Iterator[SummaryLine]:
    """Yield a warning if the judge adds simulated noise, with the share of grades that the noise changed."""
    noises = [f"{noise:g}" for noise in grade_noises(lock.components.get("judge"))] if lock.stage == "judge" else []
    if not noises:
        return
    found = lock.health.noise if isinstance(lock.health, JudgeHealth) else None
    told = "the share of grades changed by it was not measured"
    if found is not None and found.rate is not None:
        told = f"{found.rate:.0%} of {plural(found.total, 'grade')} differ from the labels"
    yield SummaryLine(
        f"warning: the judge adds simulated noise (grade_noise {', '.join(noises)}): {told}", warning=True
    )


def answerer_lines(answerers: Collection[LockedAnswerer]) -> Iterator[SummaryLine]:
    """Yield which model versions answered, for each model. If several versions of one model answered, the sentence is a
    warning.
    """
    named = snapshots(answerers)
    for asked in dict.fromkeys(each.asked for each in answerers):
        mine = [each for each in answerers if each.asked == asked]
        parts = [f"{model} ({plural(count, 'answer')})" for model, count in named.get(asked, {}).items()]
        if silent := sum(each.answers for each in mine if each.recorded and each.model is None):
            parts.append(f"{plural(silent, 'answer')} from an unnamed model")
        if before := sum(each.answers for each in mine if not each.recorded):
            parts.append(f"{plural(before, 'answer')} without a recorded version")
        counts = {what: len({getattr(each, what) for each in mine} - {None}) for what in ("fingerprint", "provider")}
        parts += [f"{count} {what}s" for what, count in counts.items() if count > 1]
        if (count := len(named.get(asked, {}))) > 1:
            told = f"warning: {asked} answered with {count} versions, which may grade differently: {', '.join(parts)}"
            yield SummaryLine(told, warning=True)
        else:
            yield SummaryLine(f"model versions of {asked or 'unknown models'}: {', '.join(parts)}")


def mixed_versions(manifest: RunManifest) -> Iterator[str]:
    """Yield a sentence for each model of which several versions gave grades. Only the manifest is read."""
    lock = manifest.stages.get("judge")
    for asked, named in snapshots(lock.answerers.values() if lock else ()).items():
        if len(named) > 1:
            counts = ", ".join(f"{model} ({count:,})" for model, count in sorted(named.items()))
            yield f"Grades come from {len(named)} versions of {asked}, which may grade differently: {counts}."


def settled_words(lock: StageLock, *, short: bool = False) -> Iterator[str]:
    """Yield for how many queries the top is stable, why it is not stable for the others, and how many queries were not
    ranked.

    Args:
        short: whether to omit the reasons.
    """
    found = {name: lock.counts[name] for name in OUTCOMES if name in lock.counts}
    not_ranked = found.pop(COUNT_NOT_RANKED, 0)
    if found:
        top, settled = lock.params.get("top"), found.pop(COUNT_SETTLED, 0)
        others = "" if short else "".join(f"; {count:,} {OUTCOMES[name]}" for name, count in found.items())
        yield f"top {top} stable for {settled:,} of {plural(settled + sum(found.values()), 'query')}{others}"
    if not_ranked:
        least = lock.params.get("min_best_grade")
        yield f"not ranked: {plural(not_ranked, 'query')} without a passage of grade {least} or higher"


def depth_line(counts: Mapping[str, int]) -> SummaryLine | None:
    """Return how many queries were searched deeper than the usual depth, and why. Return None if the depth is the same
    for all.
    """
    if COUNT_QUERIES not in counts:
        return None
    fired = ", ".join(
        f"{name} {count:,}" for name, count in counts.items() if name not in (COUNT_QUERIES, COUNT_DEEPER)
    )
    told = f" ({fired})" if fired else ""
    return SummaryLine(
        f"depth: {counts[COUNT_DEEPER]:,} of {plural(counts[COUNT_QUERIES], 'query')} searched deeper{told}"
    )


def health_lines(health: Health | None, *, exact: bool = False) -> Iterator[SummaryLine]:
    """Yield the sentences about the judge's health in one stage.

    Args:
        exact: whether the judge is rule-based. If it is, it makes no random errors, and uncertain pairs are ties.
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
            yield SummaryLine(f"judge: abstained on {plural(health.silent, 'passage')}, which have no grade")
        if health.replaced:
            yield SummaryLine(f"judge: {plural(health.replaced, 'answer')} with invalid characters, replaced by U+FFFD")
    elif isinstance(health, RankHealth) and health.first.total:
        yield from _orders(health, exact)


def inversions_words(inversions: float) -> str:
    """Return a clause with the expected number of discordant pairs in the top of a query, a mean over queries."""
    return f"{inversions:.1f} discordant pairs expected in the top of a query (mean over queries)"


def judge_words(sharpness: float, echo: float | None, bias: float | None) -> str:
    """Describe what the ranking engine estimated about the judge. A position bias below `TOLD_BIAS` is omitted."""
    better = f"{grade_apart(sharpness):.0%}"
    words = [f"sharpness {sharpness:.1f} (prefers the better of two passages one grade apart in {better} of cases)"]
    if echo is not None:
        meaning = "it repeats its own errors" if echo > ERROR_CORRELATION_WARNING else "errors hardly repeat"
        words.append(f"test-retest error correlation {echo:.2f} ({meaning})")
    if bias is not None and abs(bias) >= TOLD_BIAS:
        place = "first" if bias > 0 else "last"
        words.append(f"position bias: the passage shown {place} gains {abs(bias):.1f} grades (corrected in the order)")
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
        agree, each = _agreement(samples), f"{samples.asked} per passage"
        if samples.judged is not None:
            of = f"{samples.passages:,} of {plural(samples.judged, 'passage')}"
            each = f"{samples.asked} for {of}, the uncertain ones"
        yield SummaryLine(f"samples: {each}, {samples.unanimous:.0%} unanimous; pairs of samples {agree}")
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
        return SummaryLine("canaries: not used, because this judge does not read passages")
    missed = [
        f"{name} {rate.count:,} of {rate.total:,}" for name, rate in found.kinds.items() if rate.count < rate.total
    ]
    told = f" ({', '.join(missed)})" if missed else ""
    return SummaryLine(f"canaries: {passed.count:,} of {passed.total:,} pass{told}")


def _human_agreement_line(found: HumanAgreement) -> SummaryLine:
    compared = f"{plural(found.grades, 'grade')} of {plural(found.questions, 'query')}"
    if found.kappa is None or found.interval is None:
        return SummaryLine(f"human labels: {compared}, too few for kappa")
    low, high = found.interval
    return SummaryLine(f"human labels: kappa {found.kappa:.2f} [{low:.2f}, {high:.2f}], {compared}")


def _panel(panel: PanelHealth | None) -> Iterator[SummaryLine]:
    if panel is None:
        return
    for name, member in panel.members.items():
        if member.mean is not None:
            yield SummaryLine(f"panel: {name} gave {plural(member.given, 'grade')}, mean {member.mean:.2f}")
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
    parts = [
        f"the passage shown first wins {health.first.rate:.0%} of the batches ({health.fair_first:.0%} without bias)"
    ]
    if flips.total:
        parts.append(f"{flips.rate:.0%} of {flips.total:,} close pairs flip when judged again (50% for random answers)")
    if cycles.total:
        parts.append(f"{cycles.rate:.0%} of triples are cyclic (a over b over c over a)")
    parts.append(f"{invalid.count:,} of {plural(invalid.total, 'batch')} without a valid order")
    yield SummaryLine(f"judge: {', '.join(parts)}")
    if health.sharpness is not None:
        yield SummaryLine(f"judge: {judge_words(health.sharpness, health.echo, health.position_bias)}")
    if (inversions := health.expected_inversions) is not None:
        yield SummaryLine(inversions_words(inversions))
    yield from (SummaryLine(f"warning: {warning}", True) for warning in health.warnings)
