"""Orders that moved, and whether more than their own doubt explains.

A ranking states a score and its standard error for each passage. If nothing had changed, the new score of a passage
would lie around the old one with the errors of both, so orders drawn in that way say how much of the head of `k` two
rankings of the same truth share. Less than all but `1 - confidence` of the draws share is a change beyond doubt.
Passages that one set alone ranks are no matter of doubt: only shared ones are drawn, and where there are no more than
`k` of them, the upper half is their head.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.base.jsontypes import Number, number
from raggs.base.seeds import generator
from raggs.evaluation.diffs.models import OrdersPart
from raggs.evaluation.diffs.sides import Ranked
from raggs.stats.agreement import overlap_at_k, rbo, tau_ap

DEEPEST = 20
DRAWS = 400
FEWEST = 4  # shared passages; of fewer, the upper half says nothing


@dataclass(frozen=True)
class OrderMove:
    """One question's orders.

    Attributes:
        tau_ap, rbo, overlap: see `OrdersPart`.
        shared: overlap of the heads of the shared passages; NaN where it was not tested.
        expected: its mean over the draws; NaN where it was not tested.
        beyond: whether it lies below what the draws allow; None where it was not tested.
    """

    tau_ap: float
    rbo: float
    overlap: float
    shared: float = math.nan
    expected: float = math.nan
    beyond: bool | None = None


def depth(old_top: int, new_top: int) -> int:
    """How many ranks both sets mean to be sure of, at most `DEEPEST`."""
    return min(old_top, new_top, DEEPEST)


def order_move(old: Ranked, new: Ranked, k: int, *, name: str, confidence: float, seed: int) -> OrderMove:
    """Compare two orders of one question, whose passages have the same ids.

    Args:
        k: of the heads, at least 1.
        name: of the question, for its draws.
        confidence: in 0..1.
        seed: of the draws.
    """
    seen = OrderMove(
        tau_ap(old.docs, new.docs), rbo(old.docs, new.docs).extrapolated, overlap_at_k(old.docs, new.docs, k)
    )
    place = {doc: number for number, doc in enumerate(new.docs)}
    here = np.array([number for number, doc in enumerate(old.docs) if doc in place], dtype=np.int64)
    there = np.array([place[doc] for doc in old.docs if doc in place], dtype=np.int64)
    doubt = np.hypot(old.sigma[here], new.sigma[there]) if len(here) else np.empty(0)
    if len(here) < min(FEWEST, k + 1) or not doubt.any():
        return seen
    head = k if len(here) > k else len(here) // 2
    drawn = _drawn(old.score[here], doubt, head, generator(seed, "orders", name))
    met = float((np.argsort(there)[:head] < head).mean())
    least = float(np.quantile(drawn, 1.0 - confidence, method="lower"))
    return OrderMove(seen.tau_ap, seen.rbo, seen.overlap, met, float(drawn.mean()), met < least)


def _drawn(score: Floats, doubt: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Shape (draws,): the share of the head of k, whose passages come first, that each draw has too."""
    drawn = score + rng.normal(size=(DRAWS, len(score))) * doubt
    heads: Ints = np.argpartition(-drawn, k - 1, axis=1)[:, :k]
    found: Floats = (heads < k).mean(axis=1)
    return found


def orders_part(moves: Sequence[OrderMove], k: int, *, confidence: float) -> OrdersPart | None:
    """Means over questions; None without any."""
    known = [move for move in moves if not math.isnan(move.tau_ap)]
    if not known:
        return None
    tested = [move for move in known if move.beyond is not None]
    return OrdersPart(
        compared=len(known),
        k=k,
        tau_ap=_mean([move.tau_ap for move in known]),
        rbo=_mean([move.rbo for move in known]),
        overlap=_mean([move.overlap for move in known]),
        shared=_mean([move.shared for move in tested]),
        expected=_mean([move.expected for move in tested]),
        tested=len(tested),
        beyond=sum(move.beyond is True for move in tested),
        by_chance=(1.0 - confidence) * len(tested),
    )


def _mean(values: Sequence[float]) -> Number:
    return number(float(np.mean(values))) if values else None
