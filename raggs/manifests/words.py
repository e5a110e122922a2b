"""What a run's figures of the judge's health say, in sentences for people.

Computes nothing and shows nothing: the command line prints these lines, and so may a report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from raggs.artifacts import MIN_GRADE
from raggs.health import (
    ECHO,
    AgainstPeople,
    Canaries,
    Cascade,
    Depth,
    Health,
    JudgeHealth,
    PairAgreement,
    Panel,
    RankHealth,
    Samples,
    Shift,
    grade_apart,
    sources_words,
)
from raggs.judges.exactness import is_exact
from raggs.manifests.shares import spread_words
from raggs.stages.statistics import DEEPER, QUESTIONS
from raggs.text import plural

if TYPE_CHECKING:
    from raggs.manifests.models import StageLock

TOLD_BIAS = 0.1  # grades; less is not worth a word
BY_RULE = "answers by rule and never errs; equals stand in a fixed order, which is as good as any other"
CONFIDENCE = (
    "score: in grades, whose ends it may pass by some tenths; "
    "conf.: how surely a passage stands above the next one (50%: as good as tied)"
)


class Line(NamedTuple):
    """A sentence, and whether it is a warning."""

    text: str
    warning: bool = False


def lock_lines(lock: StageLock) -> Iterator[Line]:
    """What there is to tell of the counts and of the health in a stage's lock."""
    if (line := depth_line(lock.counts)) is not None:
        yield line
    if lock.stage == "rank" and isinstance(floor := lock.params.get("floor"), int) and floor > MIN_GRADE:
        yield Line(f"order: passages below grade {floor} are not ordered (rank.floor): by grade and fused rank")
    yield from map(Line, spread_words(lock.counts))
    yield from health_lines(lock.health, exact=is_exact(lock.components.get("judge")))


def depth_line(counts: Mapping[str, int]) -> Line | None:
    """How many questions were searched deeper, and why; None where depth was the same for all."""
    if QUESTIONS not in counts:
        return None
    fired = ", ".join(f"{name} {count:,}" for name, count in counts.items() if name not in (QUESTIONS, DEEPER))
    told = f" ({fired})" if fired else ""
    return Line(f"depth: {counts[DEEPER]:,} of {plural(counts[QUESTIONS], 'question')} searched deeper{told}")


def health_lines(health: Health | None, *, exact: bool = False) -> Iterator[Line]:
    """What there is to tell of a stage's health.

    Args:
        exact: whether the judge answers by rule; then it has no errors to tell of, and pairs in doubt are ties.
    """
    if isinstance(health, JudgeHealth):
        yield from _depth(health.depth)
        yield from _samples(health.samples)
        if health.place is not None:
            yield from _company({"place": health.place})
        yield from _panel(health.panel)
        yield from _cascade(health.cascade)
        if health.canaries is not None:
            yield _canaries(health.canaries)
            yield from _company(health.canaries.company)
        if health.people is not None:
            yield _people(health.people)
        if health.sources:
            yield Line(f"grades: {sources_words(health.sources)}")
        if health.silent:
            yield Line(f"judge: nobody spoke on {plural(health.silent, 'passage')}; they have no grade")
        if health.replaced:
            yield Line(f"judge: {plural(health.replaced, 'answer')} with U+FFFD in place of what is no character")
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
        meaning = "it repeats its own errors" if echo > ECHO else "asking again is a fresh opinion"
        words.append(f"echo {echo:.2f} ({meaning})")
    if bias is not None and abs(bias) >= TOLD_BIAS:
        place = "first" if bias > 0 else "last"
        words.append(f"a passage gains {abs(bias):.1f} grades by being shown {place} (the order is free of it)")
    return ", ".join(words)


def _depth(depth: Depth | None) -> Iterator[Line]:
    if depth is None:
        return
    total = depth.asked + depth.saved
    share = depth.saved / total if total else 0.0
    yield Line(
        f"depth: {depth.saved:,} of {plural(total, 'judgment')} saved ({share:.0%}), "
        f"{plural(depth.stopped, 'query')} stopped early"
    )


def _samples(samples: Samples | None) -> Iterator[Line]:
    if samples is not None and samples.passages:
        agree = _agreement(samples)
        yield Line(f"samples: {samples.asked} a passage, {samples.unanimous:.0%} unanimous, pairs {agree}")
        if samples.company is not None:
            yield from _company({"samples": samples.company})


def _company(found: Mapping[str, Shift]) -> Iterator[Line]:
    from raggs.manifests.companywords import company_words  # late: most grade one by one

    return (Line(*said) for said in company_words(found))


def _cascade(found: Cascade | None) -> Iterator[Line]:
    if found is None:
        return
    from raggs.manifests.cascadewords import cascade_words

    yield from (Line(*said) for said in cascade_words(found))


def _canaries(found: Canaries) -> Line:
    passed = found.passed
    if not passed.total:
        return Line("canaries: none, since this judge does not read passages")
    missed = [
        f"{name} {rate.count:,} of {rate.total:,}" for name, rate in found.kinds.items() if rate.count < rate.total
    ]
    told = f" ({', '.join(missed)})" if missed else ""
    return Line(f"canaries: {passed.count:,} of {passed.total:,} as expected{told}")


def _people(found: AgainstPeople) -> Line:
    compared = f"{plural(found.grades, 'grade')} of {plural(found.questions, 'question')}"
    if found.kappa is None or found.interval is None:
        return Line(f"against people: {compared}, too few for a kappa")
    low, high = found.interval
    return Line(f"against people: kappa {found.kappa:.2f} [{low:.2f}, {high:.2f}], {compared}")


def _panel(panel: Panel | None) -> Iterator[Line]:
    if panel is None:
        return
    for name, member in panel.members.items():
        if member.mean is not None:
            yield Line(f"panel: {name} gave {plural(member.given, 'grade')}, on average {member.mean:.2f}")
    for pair in panel.agreement:
        if pair.pairs:
            yield Line(f"panel: {' and '.join(pair.judges)} {_agreement(pair)}")
    yield from (Line(f"warning: {warning}", True) for warning in panel.warnings)


def _agreement(found: Samples | PairAgreement) -> str:
    kappa = "" if found.kappa is None else f" (quadratic kappa {found.kappa:.2f})"
    return f"agree {found.exact:.0%}{kappa}"


def _orders(health: RankHealth, exact: bool) -> Iterator[Line]:
    if exact:
        yield Line(f"judge: {BY_RULE} ({plural(health.invalid.total, 'batch')})")
        return
    flips, cycles, invalid = health.flips, health.cycles, health.invalid
    parts = [f"first shown wins {health.first.rate:.0%} of the batches (a fair judge: {health.fair_first:.0%})"]
    if flips.total:
        parts.append(f"{flips.rate:.0%} of {flips.total:,} close pairs change places when asked again (a coin: 50%)")
    if cycles.total:
        parts.append(f"{cycles.rate:.0%} of triples go round in a circle (a over b over c over a)")
    parts.append(f"{invalid.count:,} of {plural(invalid.total, 'batch')} without an order")
    yield Line(f"judge: {', '.join(parts)}")
    if health.sharpness is not None:
        yield Line(f"judge: {judge_words(health.sharpness, health.echo, health.position_bias)}")
    if (inversions := health.expected_inversions) is not None:
        yield Line(inversions_words(inversions))
    yield from (Line(f"warning: {warning}", True) for warning in health.warnings)
