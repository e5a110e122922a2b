"""How every kind says its verdict: at most two sentences, what was found and what is to be done first.

All other figures stand in the tables beneath. Where a claim rests on few, the verdict says so before anything else; no
kind has words of its own for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raggs.base.text import plural
from raggs.diagnosis.base import Diagnosis, P
from raggs.stats.decision.winners import FEWEST as FEWEST

NAMED = 2  # of many things alike, that a verdict names


def said(found: str, then: str = "") -> str:
    """One sentence, or two: what was found, and what to do first."""
    return " ".join(f"{each}." for each in (found, then) if each)


def capital(text: str) -> str:
    """With a capital where a sentence begins."""
    return f"{text[:1].upper()}{text[1:]}"


def listed(words: Iterable[str]) -> str:
    """``a, b and c``."""
    *some, last = words
    return f"{', '.join(some)} and {last}" if some else last


def some_of(words: Sequence[str]) -> str:
    """The first of them; the others are counted: ``a, b and 3 more``."""
    more = [f"{len(words) - NAMED} more"] if len(words) > NAMED else []
    return listed([*words[:NAMED], *more])


def hedged(kind: Diagnosis[P], found: P) -> P:
    """The findings, whose verdict says where it rests on fewer questions than a claim can bear."""
    count = kind.rests_on(found)
    if count >= FEWEST:
        return found
    few = f"A hint by {plural(count, kind.OVER)}, where a claim takes {FEWEST}"
    return found.model_copy(update={"verdict": f"{few}: {found.verdict}"})
