"""Sentences that explain one query's order, and what was estimated about its judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from raggs.base.artifacts import JudgeProfile
from raggs.base.judge_health import STOP_NO_RELEVANT
from raggs.base.text import plural
from raggs.runs.manifests.messages import BY_RULE, judge_words, share_words

if TYPE_CHECKING:
    from raggs.ranking import Lock
    from raggs.runs.manifests.explain import Explanation

WORTH_A_WORD = 0.05  # in grades; a smaller position bias is mentioned without a number


def care_words(profile: JudgeProfile) -> str:
    """Return, as one line, what the pilot queries showed about the judge."""
    sharp = f"sharpness {profile.sharpness:.1f} for lists of five"
    falls = [(place + 1, left) for place, left in enumerate(profile.left) if place and left < profile.left[place - 1]]
    care = ", ".join(f"{left:.0%} from rank {pick} on" for pick, left in falls)
    tires = f"accuracy falls to {care}" if care else "accuracy is the same at all ranks"
    strain = f", less accuracy in long lists (strain {profile.strain:g})" if profile.strain else ""
    repeats = f"; test-retest error correlation {profile.echo:.1f}" if profile.echo else ""
    learned = f"judge profile from {plural(profile.questions, 'query')}"
    return f"{learned}: {sharp}; {tires}{strain}{_position_bias_clause(profile)}{repeats}"


def _position_bias_clause(profile: JudgeProfile) -> str:
    if not profile.favour:
        return ""
    gain = (profile.favour[0] - profile.favour[-1]) / profile.sharpness
    if abs(gain) < WORTH_A_WORD:
        return "; position bias at some places of a list"
    places = ("first", "last") if gain > 0 else ("last", "first")
    return f"; position bias: the {places[0]} of a list gains {abs(gain):.1f} grades over the {places[1]}"


def price_words(profile: JudgeProfile, told: Mapping[int, float]) -> str:
    """Return, as one line, the information per cost of a batch by its length, relative to the first length."""
    first, one = next(iter(told.items()))
    each = ", ".join(f"{length}: {amount / one:.2f}" for length, amount in told.items() if one)
    return (
        f"fixed cost of a call: as much as {profile.overhead:.1f} passages; information per cost by list length, "
        f"relative to {first}: {each}"
    )


SHOWN_LOCKS = 20
SHOWN_DOUBTS = 5
CERTAIN_FROM = 0.95
STOPS = {
    "cap": "rank.max_calls was reached; a higher value reduces the uncertainty",
    "a further call saves little": "another call would hardly improve the order",
    "stable": "the top did not change during the last calls",
    "everything is settled": "every rank of the top is certain (locked)",
    "every presentation was shown": "the judge has ordered every possible batch of the pool",
    "the set's budget was spent": "rank.budget was used up; a higher value reduces the uncertainty",
    "the budget ended": "the run's budget was used up; a higher budget continues from this order",
    "nobody ordered them": "no human order exists, so passages are sorted by grade and fused rank",
    "fewer than two reach the floor": "passages below rank.floor are sorted by grade and fused rank",
    "no relevant passage": "no grade reaches rank.min_best_grade: sorted by grade and fused rank, without calls",
    "nothing to judge": "a single passage needs no order",
}
RANK_TABLE_LEGEND = (
    "95%: plausible ranks; score: estimated grade with its standard error; shown: judged batches with the passage; "
    "won-lost: comparisons in these batches; "
    "above next: probability of being better than the next passage (batches for : against)"
)


def order_lines(found: Explanation) -> Iterator[str]:
    """Yield why the ranking stopped, what the engine estimated about the judge, which ranks are uncertain, and the
    locked pairs.
    """
    yield from _stop_sentences(found)
    yield from _uncertainty_sentences(found)
    yield from _locks(found)


def against_next(found: Explanation, place: int) -> str:
    """Return the probability that a passage is better than the next one, and the batches for and against it; empty for
    the last passage.
    """
    order = found.ranking.order
    if place + 1 == len(order):
        return ""
    first, second = order[place], order[place + 1]
    ahead, behind = found.wins.get((first, second), 0), found.wins.get((second, first), 0)
    return f"{found.ranking.position_confidence[place]:.0%} ({ahead}:{behind})"


def _stop_sentences(found: Explanation) -> Iterator[str]:
    """Yield why the ranking stopped, and what the engine estimated about the judge."""
    ranking, config = found.ranking, found.config
    most = f"the cost of {config.max_calls} lists of five" if found.profile else str(config.max_calls)
    yield (
        f"{plural(ranking.calls, 'judged batch')}, {found.failed} failed (maximum: {most}); "
        f"stopped: {ranking.stop_reason}"
    )
    if found.shares:
        yield from (f"  {line}" for line in share_words(ranking.calls + ranking.skipped, found.shares))
    if found.profile:
        lists = ", ".join(f"{count:,} of {length}" for length, count in sorted(found.lengths.items(), reverse=True))
        yield f"judged batches by number of passages: {lists}"
        yield f"  {care_words(found.profile)}"
        if found.told_by_length:
            yield f"  {price_words(found.profile, found.told_by_length)}"
    if found.told:
        told = ", ".join(f"{count:,} by {who}" for who, count in found.told.items())
        yield f"orders known before the judge was called: {told}"
    if ranking.stop_reason in STOPS:
        yield f"  {STOPS[ranking.stop_reason]}"
    if ranking.unordered and ranking.stop_reason != STOP_NO_RELEVANT:
        yield f"{plural(ranking.unordered, 'passage')} below grade {config.floor}, sorted by grade and fused rank only"
    if found.exact:
        yield f"judge: {BY_RULE}"
    elif ranking.sharpness is not None:
        yield f"judge on this query: {judge_words(ranking.sharpness, ranking.echo, ranking.position_bias)}"


def _uncertainty_sentences(found: Explanation) -> Iterator[str]:
    """Yield what is uncertain: the most uncertain pairs of neighbours in the top, and the passages that may or may not
    belong to the top.
    """
    ranking, ordered = found.ranking, len(found.ranking.order) - found.ranking.unordered
    top = found.config.top
    if not found.exact:
        yield f"{ranking.expected_inversions:.1f} discordant pairs expected in the top {top}"
        if ranking.agreement is not None and ranking.calls:
            yield f"expected overlap with the top {top} of a repeated ranking: {ranking.agreement:.0%}"
    pairs = list(zip(ranking.position_confidence, pairwise(ranking.order[:ordered]), strict=False))[:top]
    open_pairs = sorted((chance, pair) for chance, pair in pairs if chance < CERTAIN_FROM)
    if open_pairs:
        yield f"most uncertain pairs of the top {top}, with the probability that the first passage is better:"
    for chance, (first, second) in open_pairs[:SHOWN_DOUBTS]:
        yield f"  {chance:.0%} {first} above {second}"
    edge = [
        f"{doc_id} {chance:.0%}"
        for doc_id, chance in zip(ranking.order[:ordered], ranking.membership, strict=False)
        if 1 - CERTAIN_FROM < chance < CERTAIN_FROM
    ]
    if edge:
        more = f" … and {len(edge) - 2 * SHOWN_DOUBTS} more" if len(edge) > 2 * SHOWN_DOUBTS else ""
        shown = ", ".join(edge[: 2 * SHOWN_DOUBTS])
        yield f"passages that may belong to the top {top}, with the probability: {shown}{more}"


def _locks(found: Explanation) -> Iterator[str]:
    """Yield the locked pairs in the order in which they were locked, and then the pairs that were released."""
    ranking = found.ranking
    neighbours = set(pairwise(ranking.order))
    between = sum((lock.winner, lock.loser) in neighbours for lock in ranking.locks)
    yield (
        f"{plural(len(ranking.locks), 'locked pair')} ({between} of neighbours), {len(ranking.released)} released; "
        "z: score difference of the pair in standard errors when it was locked"
    )
    for lock in ranking.locks[:SHOWN_LOCKS]:
        yield f"  {_lock(lock)}"
    if len(ranking.locks) > SHOWN_LOCKS:
        yield f"  … and {plural(len(ranking.locks) - SHOWN_LOCKS, 'more locked pair')}: --json prints all"
    for lock in ranking.released[:SHOWN_LOCKS]:
        yield f"  released after contradicting answers: {_lock(lock)}"


def _lock(lock: Lock) -> str:
    evidence = f"won {plural(lock.evidence, 'batch')}" if lock.evidence else "through other passages"
    return f"call {lock.call}: {lock.winner} above {lock.loser} (z {lock.z:.1f}, {evidence})"
