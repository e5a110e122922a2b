"""What neighbours do to grades where several passages are graded in one call, in sentences for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from raggs.base.health import LEAK, SLOPE, Shift
from raggs.base.text import plural

MOVES = {
    "neighbours": "beside good passages rather than bad ones",
    "incited": "beside a passage that asks for a 5 for all",
    "place": "by being shown first in a call rather than last",
    "samples": "for each grade that its company is better, as its samples show",
}
REMEDY = "use a smaller judge.group, or judge.samples: 3, each of which shows other companies"


def company_words(found: Mapping[str, Shift]) -> Iterator[tuple[str, bool]]:
    """A sentence for each shift that was measured, and whether it warns: beyond `LEAK` (or `SLOPE`) and chance."""
    for name, shift in found.items():
        if shift.grades is None or shift.interval is None:
            yield f"company: too few questions to tell what a grade moves {MOVES[name]}", False
            continue
        low, high = shift.interval
        measured = f"{shift.grades:+.2f} [{low:+.2f}, {high:+.2f}]"
        yield f"company: a grade moves by {measured} {MOVES[name]} ({plural(shift.questions, 'question')})", False
        if abs(shift.grades) >= (SLOPE if name == "samples" else LEAK) and (low > 0 or high < 0):
            yield f"warning: grades hang on the passages shown beside: {REMEDY}", True
