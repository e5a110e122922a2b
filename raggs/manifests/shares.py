"""How the budget of a set was spread over its questions, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from raggs.stages.shares import ENDED, SHARING, SPENT
from raggs.text import plural


def share_words(mine: int, shares: Sequence[int]) -> str:
    """What a question got, and why; `shares`: calls of every question."""
    fewer, mean = sum(share < mine for share in shares), sum(shares) / len(shares)
    return (
        "the set's budget goes where a call is expected to put most pairs right: "
        f"{plural(mine, 'call')} here, {mean:.1f} on average; {fewer:,} of {len(shares):,} got fewer"
    )


def spread_words(counts: Mapping[str, int]) -> Iterator[str]:
    """How many calls questions got, by the counts of a lock; nothing where they share no budget."""
    if SPENT not in counts:
        return
    spent, questions = plural(counts[SPENT], "call"), plural(counts[SHARING], "question")
    low, high = counts["quarter"], counts["three quarters"]
    half = f"half of them {low:,}" if low == high else f"half of them {low:,} to {high:,}"
    ended = f"; {counts[ENDED]:,} ended before it was spent" if counts[ENDED] else ""
    yield f"budget: {spent} over {questions}, {counts['least']:,} to {counts['most']:,} each, {half}{ended}"
