"""The parts of a person's name, as western bibliographies part it: given names, and a family name with its particles.

A rule, not knowledge: where the family name stands first, as in Chinese or Hungarian, it takes the last word for it.
"""

from __future__ import annotations

from typing import NamedTuple

WORDS = (
    "al af ap ben bin bint da dal dalla das de dei del della den der des di do dos du e el ibn la las le los san st "
    "st. ten ter und van vom von y zu zum zur"
)
PARTICLES = frozenset(WORDS.split())


class NameParts(NamedTuple):
    """`given` is empty where a name is one word."""

    given: str
    family: str


def name_parts(name: str) -> NameParts:
    """``Ludwig van Beethoven``: ("Ludwig", "van Beethoven"); ``Plato``: ("", "Plato")."""
    words = name.split()
    start = len(words) - 1
    while start > 1 and words[start - 1].casefold() in PARTICLES:
        start -= 1
    return NameParts(" ".join(words[: max(start, 0)]), " ".join(words[max(start, 0) :]))


def initials(given: str) -> str:
    """``Jean-Pierre Louis``: ``J.-P. L.``; what is an initial already stays."""
    return " ".join("-".join(_initial(part) for part in word.split("-") if part) for word in given.split())


def _initial(word: str) -> str:
    return word if word.endswith(".") else f"{word[0]}."
