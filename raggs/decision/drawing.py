"""Which items to read by chance, each with a probability that is known: what estimates of a judge's error rest on.

Items are drawn within strata (a judge's grades), rare ones more often: a share in proportion to the root of a stratum's
size. Within one, every item has the same chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raggs.arrays import Floats, Ints
from raggs.seeds import generator


@dataclass(frozen=True)
class Drawn:
    """A random part.

    Attributes:
        items: their numbers, in an order that is random too: who stops early has read a random part of it.
        chance: shape (items drawn,), the probability with which each was drawn, in 0..1.
    """

    items: Ints
    chance: Floats


def draw(stratum: Ints, count: int, seed: int) -> Drawn:
    """Draw items without replacement, at random within strata.

    Args:
        stratum: shape (items,), a number for the stratum of each.
        count: how many; all where there are no more.
        seed: of the draw; equal seeds draw equal items.
    """
    names, inside, sizes = np.unique(stratum, return_inverse=True, return_counts=True)
    wanted = _shared_out(sizes, min(count, len(stratum)))
    turn = generator(seed, "draw").permutation(len(stratum))
    by_stratum = turn[np.argsort(inside[turn], kind="stable")]
    first = np.cumsum(sizes) - sizes
    place = np.arange(len(stratum)) - first[inside[by_stratum]]
    chosen = by_stratum[place < wanted[inside[by_stratum]]]
    items = generator(seed, "order", *names.tolist()).permutation(chosen)
    return Drawn(items, (wanted / sizes)[inside[items]])


def _shared_out(sizes: Ints, count: int) -> Ints:
    """How many of each stratum: by roots of sizes, none above its size, `count` in all."""
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
    return given
