"""What a ranking's figures say of one query's order, in sentences for people.

Computes nothing and shows nothing: the command line prints these lines, and so may a report.

What a pilot taught and what lists of each length told for their price, in sentences for people. Computes nothing.
"""

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

WORTH_A_WORD = 0.05  # grades


def care_words(profile: JudgeProfile) -> str:
    """What was learned of a judge, in a line."""
    sharp = f"sharpness {profile.sharpness:.1f} for lists of five"
    falls = [(place + 1, left) for place, left in enumerate(profile.left) if place and left < profile.left[place - 1]]
    care = ", ".join(f"{left:.0%} from pick {pick}" for pick, left in falls)
    tires = f"of its care is left {care}" if care else "its care lasts to the end of a list"
    strain = f", and long lists cost it care (strain {profile.strain:g})" if profile.strain else ""
    repeats = f"; it errs the same way when asked again: echo {profile.echo:.1f}" if profile.echo else ""
    learned = f"of the judge, learned from {plural(profile.questions, 'question')}"
    return f"{learned}: {sharp}; {tires}{strain}{_position_bias_clause(profile)}{repeats}"


def _position_bias_clause(profile: JudgeProfile) -> str:
    if not profile.favour:
        return ""
    gain = (profile.favour[0] - profile.favour[-1]) / profile.sharpness
    if abs(gain) < WORTH_A_WORD:
        return "; it favours some places of a list"
    places = ("first", "last") if gain > 0 else ("last", "first")
    return f"; the {places[0]} of a list gains {abs(gain):.1f} grades over the {places[1]}"


def price_words(profile: JudgeProfile, told: Mapping[int, float]) -> str:
    """What lists of each length told for their price, in a line; of the first length 1."""
    first, one = next(iter(told.items()))
    each = ", ".join(f"{length}: {amount / one:.2f}" for length, amount in told.items() if one)
    return (
        f"a call costs as much as {profile.overhead:.1f} passages more; told for the price by lists of each length, "
        f"of {first} = 1: {each}"
    )


SHOWN_LOCKS = 20
SHOWN_DOUBTS = 5
CERTAIN_FROM = 0.95
STOPS = {
    "cap": "the calls allowed were used up; a higher rank.max_calls would make it surer",
    "a further call saves little": "a further call is expected to remove too little loss (rank.options.saving)",
    "stable": "the top stayed the same for long enough",
    "everything is settled": "each place of the top is locked",
    "every presentation was shown": "the judge has seen all the pool can show, and would only repeat itself",
    "the set's budget was spent": "all questions together used up rank.budget; a higher one would make it surer",
    "the budget ended": "what the run may spend was spent; a higher cap in budget goes on with this order",
    "nobody ordered them": "passages of which nobody has said an order stand by grade and by fused rank",
    "fewer than two reach the floor": "passages below rank.floor stand by grade and by fused rank",
    "no relevant passage": "no grade reaches rank.min_best_grade, so no judge was called: by grade and by fused rank",
    "nothing to judge": "a pool of one needs no judge",
}
RANK_TABLE_LEGEND = (
    "95%: the ranks that are plausible; score: in grades, with its standard error; shown: judged batches with it; "
    "won-lost: against the others in them; "
    "above next: how surely it is better than the next one (batches for it : against)"
)


def order_lines(found: Explanation) -> Iterator[str]:
    """Why nothing more was asked, what the engine makes of the judge, what remains unsure, and the locks."""
    yield from _stop_sentences(found)
    yield from _uncertainty_sentences(found)
    yield from _locks(found)


def against_next(found: Explanation, place: int) -> str:
    """Confidence that a passage stands above the next one, and the batches that said so or the contrary."""
    order = found.ranking.order
    if place + 1 == len(order):
        return ""
    first, second = order[place], order[place + 1]
    ahead, behind = found.wins.get((first, second), 0), found.wins.get((second, first), 0)
    return f"{found.ranking.position_confidence[place]:.0%} ({ahead}:{behind})"


def _stop_sentences(found: Explanation) -> Iterator[str]:
    """Why nothing more was asked, and what the engine makes of the judge."""
    ranking, config = found.ranking, found.config
    most = f"what {config.max_calls} of five cost" if found.profile else str(config.max_calls)
    yield (
        f"{plural(ranking.calls, 'judged batch')}, {found.failed} failed, of at most {most}; "
        f"stopped: {ranking.stop_reason}"
    )
    if found.shares:
        yield from (f"  {line}" for line in share_words(ranking.calls + ranking.skipped, found.shares))
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
    if ranking.unordered and ranking.stop_reason != STOP_NO_RELEVANT:
        yield f"{plural(ranking.unordered, 'passage')} below grade {config.floor} not ordered: by grade and fused rank"
    if found.exact:
        yield f"judge: {BY_RULE}"
    elif ranking.sharpness is not None:
        yield f"judge on this query: {judge_words(ranking.sharpness, ranking.echo, ranking.position_bias)}"


def _uncertainty_sentences(found: Explanation) -> Iterator[str]:
    """What remains unsure: the closest neighbours of the top, and who may belong to it or not."""
    ranking, ordered = found.ranking, len(found.ranking.order) - found.ranking.unordered
    top = found.config.top
    if not found.exact:
        yield f"{ranking.expected_inversions:.1f} wrongly ordered pairs expected in the top {top}"
        if ranking.agreement is not None and ranking.calls:
            yield f"another ranking is expected to share {ranking.agreement:.0%} of the top {top}"
    pairs = list(zip(ranking.position_confidence, pairwise(ranking.order[:ordered]), strict=False))[:top]
    open_pairs = sorted((chance, pair) for chance, pair in pairs if chance < CERTAIN_FROM)
    if open_pairs:
        yield f"least sure of the top {top}, by the chance that the first is better:"
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
