"""Which systems need not be looked at further: those worse, beyond doubt, than another one on the queries seen so far.

The queries come in a random order without replacement, and each comparison is a bet: somebody who believes that a
system is at least as good as its rival over all queries sells bets on each difference at fair prices, and a capital of
1 that has grown to `systems / error` refutes the belief (Waudby-Smith and Ramdas, "Estimating means of bounded random
variables by betting", 2023, sections 4 and 5). By Ville's inequality that holds at all times at once, so rounds cost
nothing, and it needs no law of the differences but their range: a system that fails rarely and then wholly is not
mistaken for a steady one. A union bound over the rivals gives: the system with the best mean over all queries is
dropped in any of the rounds with a probability of at most `error`.

Must not see queries in the order of their file: the first ones may be of one kind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from raggs.arrays import Flags, Floats, Ints
from raggs.decision.resamples import checked_values
from raggs.seeds import generator

ERROR = 0.01
STAKES = np.array([0.04, 0.07, 0.12, 0.2, 0.35, 0.5, 0.7, 0.95])  # shares of the largest bet that cannot ruin
TINY = 1e-12


@dataclass(frozen=True)
class Dropped:
    """A system that is worse than a rival beyond doubt.

    Attributes:
        name, by: the system and its rival.
        difference: mean of the rival minus the system over the queries seen; above 0.
        evidence: natural logarithm of the capital; at least ln(systems / error).
    """

    name: str
    by: str
    difference: float
    evidence: float


@dataclass(frozen=True)
class Halving:
    """A round: who stays, in the order given, and who goes.

    Attributes:
        kept, dropped: each system stands in one of them.
        queries: seen so far, in all rounds.
        needed: the evidence that drops a system, ln(rivals / error).
    """

    kept: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    queries: int
    needed: float


def draw_order(queries: int, seed: int) -> tuple[int, ...]:
    """The order in which queries are to be looked at: places 0..queries - 1, each once, random by the seed."""
    return tuple(generator(seed, "halving").permutation(queries).tolist())


def halve(
    names: Sequence[str],
    values: npt.ArrayLike,
    *,
    total: int,
    systems: int,
    replaces: npt.ArrayLike | None = None,
    error: float = ERROR,
    span: float = 1.0,
) -> Halving:
    """Drop what is worse beyond doubt on the queries seen.

    Args:
        names: the systems still there.
        values: of the deciding measure, shape (names, queries seen in all rounds), columns in the order of
            `draw_order`. NaN, where a measure is undefined for one of two systems, counts as no difference.
        total: queries that there are in all.
        systems: that there were at the start, at least as many as names.
        replaces: shape (names, names); true where the system of the row may drop that of the column: one that costs
            more, or takes longer, does not make a cheaper or faster one superfluous. All may where None.
        error: the greatest probability of dropping the best system, over all rounds; inside 0..1.
        span: the largest value that the measure can take minus the smallest.

    Raises:
        ValueError: shapes or numbers do not fit, or a difference is larger than the span.
    """
    matrix = checked_values(values, len(names))
    queries = matrix.shape[1]
    if not (0 < error < 1 and span > 0 and queries <= total and len(names) <= systems):
        raise ValueError(
            f"0 < error < 1, span > 0, {queries} queries <= total and {len(names)} names <= systems do not hold for "
            f"error={error}, span={span}, total={total}, systems={systems}"
        )
    needed = math.log(max(systems - 1, 1) / error)
    allowed = _allowed(replaces, len(names))
    if not queries or len(names) < 2:
        return Halving(tuple(names), (), queries, needed)
    rows, rivals = _rivals(matrix, allowed)
    gaps = np.nan_to_num(matrix[rivals] - matrix[rows])
    if (np.abs(gaps) > span + TINY).any():
        raise ValueError(f"two systems differ by more than the span of {span} on a query")
    evidence = log_capital(gaps / span, total)
    dropped = {
        row: Dropped(names[row], names[rival], float(gap), float(found))
        for row, rival, gap, found in zip(rows.tolist(), rivals.tolist(), gaps.mean(axis=1), evidence, strict=True)
        if found >= needed
    }
    kept = tuple(name for row, name in enumerate(names) if row not in dropped)
    return Halving(kept, tuple(dropped.values()), queries, needed)


def log_capital(gaps: Floats, total: int) -> Floats:
    """The natural logarithm of the largest capital so far against "the mean over all `total` queries is 0 or less".

    The mean of several gamblers' capitals, who stake different shares of the largest bet that cannot ruin them.

    Args:
        gaps: shape (comparisons, queries seen), in -1..1, in random order without replacement.
        total: queries in all.

    Returns:
        Shape (comparisons,); infinite where no values of the queries left could make up for those seen.
    """
    seen = np.cumsum(gaps, axis=1) - gaps  # before each query
    capital = np.zeros((gaps.shape[0], STAKES.size))
    best = np.zeros(gaps.shape[0])
    for query in range(gaps.shape[1]):
        fair = -seen[:, query] / (total - query)  # the mean of what is left, were the belief true
        gain = _gain(gaps[:, query], fair)
        certain = np.isinf(gain)
        capital += np.log1p(np.where(certain, 0.0, gain)[:, None] * STAKES)
        capital[certain] = math.inf
        best = np.maximum(best, np.logaddexp.reduce(capital, axis=1) - math.log(STAKES.size))
    return best


def _gain(gap: Floats, fair: Floats) -> Floats:
    """Per unit of the largest bet: at least -1; infinite where the belief has become impossible."""
    room = 1.0 + fair
    gain = np.divide(gap - fair, room, out=np.zeros_like(gap), where=room > TINY)
    refuted: Flags = (room <= TINY) & (gap - fair > TINY) | (room < -TINY)
    return np.where(refuted, math.inf, gain)


def _allowed(replaces: npt.ArrayLike | None, names: int) -> Flags:
    allowed = np.ones((names, names), dtype=np.bool_) if replaces is None else np.array(replaces, dtype=np.bool_)
    if allowed.shape != (names, names):
        raise ValueError(f"who replaces whom is asked of {names} x {names} systems, got the shape {allowed.shape}")
    return allowed & ~np.eye(names, dtype=np.bool_)


def _rivals(matrix: Floats, allowed: Flags) -> tuple[Ints, Ints]:
    """Rows that have a rival ahead of them, and of each the best one that may replace it."""
    count = (~np.isnan(matrix)).sum(axis=1)
    means = np.divide(np.nansum(matrix, axis=1), count, out=np.full(len(matrix), -math.inf), where=count > 0)
    ahead = np.where(allowed, means[:, None], -math.inf)
    rivals = ahead.argmax(axis=0)
    rows = np.flatnonzero(ahead.max(axis=0) > means)
    return rows, rivals[rows]
