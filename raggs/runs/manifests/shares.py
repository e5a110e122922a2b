"""How the budget of a set was spread over its questions, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from raggs.base.text import plural
from raggs.stages.shares import ENDED, SHARING, SPENT


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
    if SPENT not in counts:
        return
    spent, questions = plural(counts[SPENT], "call"), plural(counts[SHARING], "question")
    low, high = counts["quarter"], counts["three quarters"]
    half = f"half of them {low:,}" if low == high else f"half of them {low:,} to {high:,}"
    ended = f"; {counts[ENDED]:,} ended before it was spent" if counts[ENDED] else ""
    yield f"budget: {spent} over {questions}, {counts['least']:,} to {counts['most']:,} each, {half}{ended}"
