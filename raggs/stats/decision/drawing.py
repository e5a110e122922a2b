"""Which items to read by chance, each with a probability that is known: what estimates of a judge's error rest on.

Every item has a number of its own, which hangs on the seed and its name alone (permanent random numbers: Brewer, Early
and Joyce, 1972). Those with the smallest numbers are drawn, within strata (a judge's grades), rare ones more often: a
share in proportion to the root of a stratum's size. Within one, every item has the same chance, and a larger draw holds
every smaller one, so that several are one that grows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.base.seeds import derive_seed


@dataclass(frozen=True)
class Drawn:
    """A random part.

    Attributes:
        items: their numbers, in an order that is random too: who stops early has read a random part of it.
        chance: shape (items drawn,), the probability with which each was drawn, in 0..1.
    """

    items: Ints
    chance: Floats


def lots(seed: int, names: Iterable[str]) -> Floats:
    """Shape (names,): a number in 0..1 for each, by seed and name alone."""
    return np.array([derive_seed(seed, "draw", name) / 2.0**64 for name in names], dtype=np.float64)


def draw(stratum: Ints, lot: Floats, count: int, held: Flags | None = None) -> Drawn:
    """Draw items without replacement, at random within strata.

    Args:
        stratum: shape (items,), a number for the stratum of each.
        lot: shape (items,), the number of each in 0..1, as `lots` gives it.
        count: how many; all where there are no more.
        held: shape (items,), what was drawn before by the same numbers: it is drawn again, also where that makes more
            than `count`. In strata where it is not what those numbers draw (the strata are others now) it does not
            count, for the chances would not be what they say.
    """
    _, inside, sizes = np.unique(stratum, return_inverse=True, return_counts=True)
    if count < len(sizes):  # a stratum of which none is drawn would have no chance
        inside, sizes = np.zeros(len(stratum), dtype=np.int64), np.array([len(stratum)])
    by_stratum = np.lexsort((lot, inside))
    place = np.empty(len(stratum), dtype=np.int64)
    place[by_stratum] = np.arange(len(stratum)) - (np.cumsum(sizes) - sizes)[inside[by_stratum]]
    wanted = _shared_out(sizes, min(count, len(stratum)))
    if held is not None:
        np.maximum(wanted, _before(inside[held], place[held], len(sizes)), out=wanted)
    chosen = np.flatnonzero(place < wanted[inside])
    # An order that does not hang on the number's size, by which items were drawn.
    items = chosen[np.argsort(lot[chosen] * 2.0**20 % 1.0, kind="stable")]
    return Drawn(items, (wanted / sizes)[inside[items]])


def _before(inside: Ints, place: Ints, strata: int) -> Ints:
    """How many of each stratum an earlier draw took; 0 where it did not take those with the smallest numbers."""
    last = np.zeros(strata, dtype=np.int64)
    np.maximum.at(last, inside, place + 1)
    found: Ints = np.where(np.bincount(inside, minlength=strata) == last, last, 0)
    return found


def _shared_out(sizes: Ints, count: int) -> Ints:
    """How many of each stratum: by roots of sizes, one at least, none above its size, `count` in all."""
    given = np.zeros(len(sizes), dtype=np.int64)
    while (rest := count - int(given.sum())) > 0:
        room = given < sizes
        weights = np.where(room, np.sqrt(sizes), 0.0)
        ideal = rest * weights / weights.sum()
        more = np.minimum(ideal.astype(np.int64), sizes - given)
        if not more.any():
            best = np.argsort(-ideal, kind="stable")[:rest]
            more[best] = np.minimum(1, sizes - given)[best]
        given += more
    while count >= len(sizes) and not given.all():
        given[np.argmax(given)] -= 1
        given[np.argmin(given)] += 1
    return given
