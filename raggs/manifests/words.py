"""What a run's figures say, in sentences for people: of the judge's health, and of one query's order.

Computes nothing and shows nothing: the command line prints these lines, and so may a report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from raggs.health import (
    ECHO,
    AgainstPeople,
    Canaries,
    Depth,
    Health,
    JudgeHealth,
    PairAgreement,
    Panel,
    RankHealth,
    Samples,
    grade_apart,
    sources_words,
)
from raggs.judges.exactness import is_exact
from raggs.manifests.pilotwords import care_words, price_words
from raggs.stages.statistics import DEEPER, QUESTIONS
from raggs.text import plural

if TYPE_CHECKING:
    from raggs.manifests.explain import Explanation
    from raggs.manifests.models import StageLock
    from raggs.ranking import Lock

TOLD_BIAS = 0.1  # grades; less is not worth a word
SHOWN_LOCKS = 20
SHOWN_DOUBTS = 5
SURE = 0.95
BY_RULE = "answers by rule and never errs; equals stand in a fixed order, which is as good as any other"
STOPS = {
    "cap": "the calls allowed were used up; a higher rank.max_calls would make it surer",
    "few inversions expected": "so few wrongly ordered pairs are expected in the top that more calls were not worth it",
    "stable": "the top stayed the same for long enough",
    "everything is settled": "each place of the top is locked",
    "every presentation was shown": "the judge has seen all the pool can show, and would only repeat itself",
    "nobody ordered them": "passages of which nobody has said an order stand by grade and by fused rank",
    "fewer than two reach the floor": "passages below rank.floor stand by grade and by fused rank",
    "nothing to judge": "a pool of one needs no judge",
}


CONFIDENCE = (
    "score: in grades, whose ends it may pass by some tenths; "
    "conf.: how surely a passage stands above the next one (50%: as good as tied)"
)
PLACES = (
    "95 %: the ranks that are plausible; score: in grades, with its standard error; shown: judged batches with it; "
    "won-lost: against the others in them; "
    "above next: how surely it is better than the next one (batches for it : against)"
)


class Line(NamedTuple):
    """A sentence, and whether it is a warning."""

    text: str
    warning: bool = False


# --- the judge ------------------------------------------------------------------------------------------------


def lock_lines(lock: StageLock) -> Iterator[Line]:
    """What there is to tell of the counts and of the health in a stage's lock."""
    if (line := depth_line(lock.counts)) is not None:
        yield line
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
        yield from _panel(health.panel)
        if health.canaries is not None:
            yield _canaries(health.canaries)
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


# --- one query's order ----------------------------------------------------------------------------------------


def order_lines(found: Explanation) -> Iterator[str]:
    """Why nothing more was asked, what the engine makes of the judge, what remains unsure, and the locks."""
    yield from _ending(found)
    yield from _doubts(found)
    yield from _locks(found)


def against_next(found: Explanation, place: int) -> str:
    """Confidence that a passage stands above the next one, and the batches that said so or the contrary."""
    order = found.ranking.order
    if place + 1 == len(order):
        return ""
    first, second = order[place], order[place + 1]
    ahead, behind = found.wins.get((first, second), 0), found.wins.get((second, first), 0)
    return f"{found.ranking.position_confidence[place]:.0%} ({ahead}:{behind})"


def _ending(found: Explanation) -> Iterator[str]:
    """Why nothing more was asked, and what the engine makes of the judge."""
    ranking, config = found.ranking, found.config
    most = f"what {config.max_calls} of five cost" if found.profile else str(config.max_calls)
    yield (
        f"{plural(ranking.calls, 'judged batch')}, {found.failed} failed, of at most {most}; "
        f"stopped: {ranking.stop_reason}"
    )
    if found.profile:
        lists = ", ".join(f"{count:,} of {length}" for length, count in sorted(found.lengths.items(), reverse=True))
        yield f"lists, each as long as told most for its price: {lists}"
        yield f"  {care_words(found.profile)}"
        if found.told_by_length:
            yield f"  {price_words(found.profile, found.told_by_length)}"
    if found.told:
        yield f"before that, people's orders: {', '.join(f'{count:,} by {who}' for who, count in found.told.items())}"
    if ranking.stop_reason in STOPS:
        yield f"  {STOPS[ranking.stop_reason]}"
    if ranking.unordered:
        yield f"{plural(ranking.unordered, 'passage')} below grade {config.floor} not ordered: by grade and fused rank"
    if found.exact:
        yield f"judge: {BY_RULE}"
    elif ranking.sharpness is not None:
        yield f"judge on this query: {judge_words(ranking.sharpness, ranking.echo, ranking.position_bias)}"


def _doubts(found: Explanation) -> Iterator[str]:
    """What remains unsure: the closest neighbours of the top, and who may belong to it or not."""
    ranking, ordered = found.ranking, len(found.ranking.order) - found.ranking.unordered
    top = found.config.top
    if not found.exact:
        yield f"{ranking.expected_inversions:.1f} wrongly ordered pairs expected in the top {top}"
    pairs = list(zip(ranking.position_confidence, pairwise(ranking.order[:ordered]), strict=False))[:top]
    open_pairs = sorted((chance, pair) for chance, pair in pairs if chance < SURE)
    if open_pairs:
        yield f"least sure of the top {top}, by the chance that the first is better:"
    for chance, (first, second) in open_pairs[:SHOWN_DOUBTS]:
        yield f"  {chance:.0%} {first} above {second}"
    edge = [
        f"{doc_id} {chance:.0%}"
        for doc_id, chance in zip(ranking.order[:ordered], ranking.membership, strict=False)
        if 1 - SURE < chance < SURE
    ]
    if edge:
        more = f" … and {len(edge) - 2 * SHOWN_DOUBTS} more" if len(edge) > 2 * SHOWN_DOUBTS else ""
        shown = ", ".join(edge[: 2 * SHOWN_DOUBTS])
        yield f"may belong to the top {top} or not, with the chance that they do: {shown}{more}"


def _locks(found: Explanation) -> Iterator[str]:
    """The settled pairs in the order in which they were made, and those that were taken back."""
    ranking = found.ranking
    neighbours = set(pairwise(ranking.order))
    between = sum((lock.winner, lock.loser) in neighbours for lock in ranking.locks)
    yield (
        f"{plural(len(ranking.locks), 'lock')} ({between} between neighbours), {len(ranking.released)} released; "
        "z: standard errors between the two when it was made"
    )
    for lock in ranking.locks[:SHOWN_LOCKS]:
        yield f"  {_lock(lock)}"
    if len(ranking.locks) > SHOWN_LOCKS:
        yield f"  … and {plural(len(ranking.locks) - SHOWN_LOCKS, 'more lock')}; all of them with --json"
    for lock in ranking.released[:SHOWN_LOCKS]:
        yield f"  released, later answers said otherwise: {_lock(lock)}"


def _lock(lock: Lock) -> str:
    evidence = f"won {plural(lock.evidence, 'batch')}" if lock.evidence else "by way of others"
    return f"call {lock.call}: {lock.winner} above {lock.loser} (z {lock.z:.1f}, {evidence})"
