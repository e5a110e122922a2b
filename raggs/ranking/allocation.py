"""Whose next round is asked where many rankings share one budget: where it promises most for its price.

The expected loss falls about as a power of what was heard, so the next call removes of it what is expected now, divided
by what was heard so far; the grades count as some calls that were heard already (`promise`). That is as good as the
planned drop of the variances, and costs nothing (benchmarks/results/setbudget.md).

Each ranking is asked once before any is asked again. After that comes wave after wave: the best offers that can still
be paid, a tenth of the rankings at a time (of few rankings up to a quarter). A wave is chosen by what all
earlier ones taught, and by nothing else: not by the time that an answer took.

Pure: offers in, offers out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

SHARE = 0.1  # of all rankings that are asked in a wave
SLOTS = 16  # rankings in a wave, so that many judgments run side by side; but of few rankings a quarter
QUARTER = 0.25
GRADED = 0.25  # calls of five that the grade of a passage is worth
SMALL = 1.5  # power of the size of a top that its wrong pairs are divided by
ROUNDING = 1e-9


class Offer(NamedTuple):
    """A ranking's next round.

    Attributes:
        name: of the ranking.
        gain: what the round is expected to remove, >= 0 (see `promise`).
        price: what it costs, > 0, in any unit.
        asked: whether the ranking has been asked before.
    """

    name: str
    gain: float
    price: float
    asked: bool


def promise(loss: float, calls: float, size: int, top: int) -> float:
    """What the next call of five removes of the loss that is expected of the order; comparable between pools.

    A wrong pair counts for more in a small top: half-way between counting pairs by the passage and by the pair.

    Args:
        loss: gain-weighted, expected now.
        calls: of five, heard so far.
        size: passages in the pool.
        top: how many leading positions matter.
    """
    weight = float(min(size, top) ** SMALL)
    return loss / weight / (calls + GRADED * size)


def next_wave(offers: Iterable[Offer], left: float, rankings: int) -> tuple[Offer, ...]:
    """The offers that are taken, best first; none where none can be paid.

    Args:
        offers: of the rankings that have a next round, in any order; names are distinct.
        left: of the budget, in the unit of the prices.
        rankings: how many there are, those that have ended included.
    """
    line = sorted(offers, key=lambda offer: (offer.asked, -offer.gain / offer.price, offer.name))
    first = sum(not offer.asked for offer in line)
    room, taken = first or wave_size(rankings), list[Offer]()
    for offer in line:
        if len(taken) == room:
            break
        if offer.price <= left + ROUNDING:
            taken.append(offer)
            left -= offer.price
    return tuple(taken)


def wave_size(rankings: int) -> int:
    """How many are asked in a wave."""
    return math.ceil(max(SHARE * rankings, min(SLOTS, QUARTER * rankings)))
