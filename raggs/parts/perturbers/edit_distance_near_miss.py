"""Impostors that are all but the right name: one, two or three of its letters are others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from pydantic import Field

from raggs.base.seeds import generator
from raggs.parts.perturbers.base import Perturber, PerturberConfig, Place
from raggs.parts.perturbers.bundles import Bundle

LETTERS = "abcdefghijklmnopqrstuvwxyz"
TRIES = 50  # for a name of a corpus that no other one has yet


class EditDistanceNearMiss(Perturber):
    """Other authors become the right name with one, two and three letters substituted (C2a, C2b, C4)."""

    FAMILY = "identity"

    class Config(PerturberConfig):
        type: Literal["edit_distance_near_miss"] = "edit_distance_near_miss"
        distances: tuple[int, int, int] = Field((1, 2, 3), description="letters substituted in C2a, C2b and C4")

    config: Config

    def bundle(self, bundle: Bundle, seed: int) -> Bundle:
        """C1 and C3 stay; the others bear the question's name with letters substituted."""
        true = bundle.question.author
        wrong = (substituted(true, count, seed, self.config.type, bundle.key) for count in self.config.distances)
        second, third, fifth = wrong
        first, *_, fourth, _ = bundle.candidates
        return bundle.with_authors(first.author, second, third, fourth.author, fifth)

    def renamed(self, names: Iterable[str], place: Place) -> dict[str, str]:
        """All names of a corpus become near misses of the first of them in the alphabet, no two the same."""
        ordered = sorted(set(names))
        taken, found = set(ordered[:1]), {}
        for number, name in enumerate(ordered[1:]):
            count = self.config.distances[number % len(self.config.distances)]
            for again in range(TRIES):
                new = substituted(ordered[0], count, place.seed, self.config.type, name, again)
                if new not in taken:
                    break
            taken.add(new)
            found[name] = new
        return found


def substituted(name: str, count: int, seed: int, *names: object) -> str:
    """`name` with `count` of its letters, or all where there are fewer, replaced by others of the same case.

    Levenshtein distance `count`, or less by chance.
    """
    rng = generator(seed, *names, name, count)
    letters = [at for at, letter in enumerate(name) if letter.isalpha()]
    chosen = rng.permutation(np.array(letters, dtype=np.int64))[:count]
    found = list(name)
    for at in chosen.tolist():
        others = LETTERS.replace(name[at].lower(), "")
        new = others[int(rng.integers(len(others)))]
        found[at] = new.upper() if name[at].isupper() else new
    return "".join(found)
