"""What a cascade's figures say, in sentences; see `raggs.runs.manifests.words`."""

from __future__ import annotations

from collections.abc import Iterator

from raggs.base.health import Cascade, CascadeGrade
from raggs.base.text import plural


def cascade_words(found: Cascade | None) -> Iterator[tuple[str, bool]]:
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
    if agree := ", ".join(_agreement(grade, each) for grade, each in found.grades.items() if each.agree is not None):
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


def _agreement(grade: str, found: CascadeGrade) -> str:
    low, high = found.interval
    doubt = "" if low == high else f" ({low:.0%} to {high:.0%})"
    return f"{found.agree:.0%} of the {grade}s{doubt}"
