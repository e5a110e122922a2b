"""Which systems need not be looked at further: those worse, beyond doubt, than others on the queries seen so far.

The queries come in a random order without replacement. Against the belief that a system is the best over all queries,
somebody bets on each query, at prices that are fair under that belief, that whoever leads so far will beat it; a
capital of 1 that has grown to 1 / error refutes the belief (Waudby-Smith and Ramdas, "Estimating means of bounded
random variables by betting", 2023, sections 4 and 5). By Ville's inequality that holds at all times at once, so rounds
cost nothing; only the belief about the best system is true, so the number of systems costs nothing either; and no law
of the differences is assumed but their range: a system that fails rarely, but then wholly, is not taken for the better
one. So the system with the best mean over all queries is dropped, in any round, with a probability of at most `error`.

Must not see queries in the order of their file: the first ones may be of one kind.

Means over resampled queries, the same draw for all systems: what would other questions of the same kind have shown?

The nonparametric bootstrap over queries (Efron and Tibshirani, 1993, chapter 6; section 4.1 of Dallaire, 2025). Systems
are compared on shared draws, so that what makes a question hard for all of them cancels out. A system's means depend on
its own values and the seed alone, never on which systems stand beside it.

How often would each system be chosen with other questions of the same kind? A winner out of noise is no winner.

Queries are resampled, each system's mean taken anew, and the rules of `choice` applied under the same limits; cost and
latency are held as they were measured. The front plays a part among systems that are equal on every query alone: who
has the best allowed quality without a rival is on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from raggs.base.arrays import Flags, Floats, Ints
from raggs.base.hashing import generator
from raggs.stats.choice import NO_LIMITS, CandidateColumns, ChoiceLimits, EquivalenceLookup, broken_limit
from raggs.stats.front import JITTER_MS, Candidate, check_candidates, find_front, round_quality

RESAMPLE_DRAWS = 1_000
MAX_COUNT_CELLS = 1_000_000  # of the matrix of counts at a time: 8 MB


def checked_values(values: npt.ArrayLike, systems: int) -> Floats:
    """Values of shape (systems, queries), NaN where a measure is undefined.

    Raises:
        ValueError: another shape, or a value that is infinite.
    """
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != systems:
        raise ValueError(f"values of {systems} systems by query are needed, got the shape {matrix.shape}")
    if np.isinf(matrix).any():
        raise ValueError("a value is infinite; use NaN where a measure is undefined")
    return matrix


def resampled_means(values: Floats, *, draws: int, seed: int) -> Iterator[Floats]:
    """Means over resampled queries, chunk by chunk of shape (draws in the chunk, systems), `draws` in all.

    Args:
        values: shape (systems, queries); NaN is left out, and a draw without a valid value is NaN.
        draws: at least 1.
        seed: of the run.

    Raises:
        ValueError: no draw.
    """
    if draws < 1:
        raise ValueError(f"at least one draw is needed, got {draws}")
    patterns, of_row = np.unique(~np.isnan(values), axis=0, return_inverse=True)
    filled, weights = np.nan_to_num(values), patterns.astype(np.float64)
    for counts in _counts(values.shape[1], draws, seed):
        # einsum, not BLAS: that rounds by the number of rows and of threads.
        totals = np.einsum("dq,sq->ds", counts, filled)
        drawn = np.einsum("dq,pq->dp", counts, weights)[:, of_row.ravel()]
        yield np.divide(totals, drawn, out=np.full_like(totals, np.nan), where=drawn > 0)


def _counts(queries: int, draws: int, seed: int) -> Iterator[Floats]:
    """How often each query is drawn, a chunk of the draws at a time: shape (draws in the chunk, queries)."""
    rng, step = generator(seed, "decision", queries), max(1, MAX_COUNT_CELLS // max(queries, 1))
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        drawn = rng.integers(queries, size=(rows, queries)) if queries else np.zeros((rows, 0), dtype=np.int64)
        places = drawn + queries * np.arange(rows)[:, None]
        yield np.bincount(places.ravel(), minlength=rows * queries).reshape(rows, queries).astype(np.float64)


ERROR = 0.01
BET_SHARES = np.array([0.04, 0.07, 0.12, 0.2, 0.35, 0.5, 0.7, 0.95])  # shares of the largest bet that cannot ruin
MIN_BET_ROOM = 1e-12


@dataclass(frozen=True)
class DroppedSystem:
    """A system that is worse than others beyond doubt.

    Attributes:
        name: of the system.
        by: the best of the queries seen, among those that may replace it.
        difference: mean of that one minus the system, over the queries seen; may be 0 where several share the lead.
        evidence: natural logarithm of the capital; at least ln(1 / error).
    """

    name: str
    by: str
    difference: float
    evidence: float


@dataclass(frozen=True)
class HalvingRound:
    """A round: who stays, in the order given, and who goes.

    Attributes:
        kept, dropped: each system that was still looked at stands in one of them.
        queries: seen so far, in all rounds.
        needed: the evidence that drops a system, ln(1 / error).
    """

    kept: tuple[str, ...]
    dropped: tuple[DroppedSystem, ...]
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
    looked_at: Sequence[int] | None = None,
    replaces: npt.ArrayLike | None = None,
    error: float = ERROR,
    span: float = 1.0,
) -> HalvingRound:
    """Drop what is worse beyond doubt on the queries seen.

    Args:
        names: all systems that there were at the start, also those dropped in earlier rounds.
        values: of the deciding measure, shape (names, queries seen in all rounds), columns in the order of
            `draw_order`. A query counts where all systems that were looked at on it have a value; NaN elsewhere. A
            system without any value plays no part, and is kept.
        total: queries that there are in all.
        looked_at: on how many of the first queries each system was; all where None. Those looked at on all queries
            seen are judged, the others were dropped before.
        replaces: shape (names, names); true where the system of the row may drop that of the column: one that costs
            more, or takes longer, does not make a cheaper or faster one superfluous. All may where None. The promise
            then holds for each system that none of those which may replace it betters.
        error: the greatest probability of dropping the best system, over all rounds; inside 0..1.
        span: the largest value that the measure can take minus the smallest.

    Raises:
        ValueError: shapes or numbers do not fit, or a difference is larger than the span.
    """
    matrix = checked_values(values, len(names))
    queries = matrix.shape[1]
    if not (0 < error < 1 and span > 0 and queries <= total):
        raise ValueError(f"0 < error < 1, span > 0 and {queries} queries <= {total} do not hold for {error}, {span}")
    counts = np.array([queries] * len(names) if looked_at is None else looked_at, dtype=np.int64)
    if counts.shape != (len(names),) or (counts > queries).any():
        raise ValueError(f"each system was looked at on at most {queries} queries, got {counts.tolist()}")
    failed = np.isnan(matrix).all(axis=1)
    table = _table(matrix, np.where(failed, 0, counts), span)
    allowed = _allowed(replaces, len(names))
    evidence = log_capital(table, np.where(failed, 0, counts), allowed, total)
    needed, dropped = math.log(1 / error), {}
    for row in np.flatnonzero((counts == queries) & (evidence >= needed)).tolist():
        by, gap = _leader(table, row, (counts == queries) & ~failed, allowed)
        dropped[row] = DroppedSystem(names[row], names[by], gap * span, float(evidence[row]))
    kept = tuple(names[row] for row in np.flatnonzero(counts == queries).tolist() if row not in dropped)
    return HalvingRound(kept, tuple(dropped.values()), queries, needed)


def log_capital(table: Floats, counts: Ints, allowed: Flags, total: int) -> Floats:
    """The natural logarithm of the largest capital so far against "none has a better mean over all `total` queries".

    The mean of several gamblers' capitals, who stake different shares of the largest bet that cannot ruin them, all of
    them on whoever leads so far against the system.

    Args:
        table: shape (systems, queries seen), no two of a column farther apart than 1; random order, no replacement.
        counts: on how many of the first queries each system was looked at.
        allowed: shape (systems, systems), who may stand in for whom.
        total: queries in all.

    Returns:
        Shape (systems,); infinite where no values of the queries left could make up for those seen.
    """
    capital = np.zeros((len(table), BET_SHARES.size))
    best, sums = np.zeros(len(table)), np.zeros(len(table))
    for query in range(table.shape[1]):
        now, there = table[:, query], counts > query
        gap, lead = _against_leader(now, sums, there, allowed)
        gain = _gain(gap, -lead / (total - query))  # what is left would have this mean, were the belief true
        certain = np.isinf(gain)
        capital += np.log1p(np.where(certain, 0.0, gain)[:, None] * BET_SHARES)
        capital[certain] = math.inf
        best = np.maximum(best, np.logaddexp.reduce(capital, axis=1) - math.log(BET_SHARES.size))
        sums += np.where(there, now, 0.0)
    return best


def _against_leader(now: Floats, sums: Floats, there: Flags, allowed: Flags) -> tuple[Floats, Floats]:
    """By system: how far whoever led before this query is ahead of it here, and in the sums until then."""
    if allowed.all():
        leaders = np.full(len(now), np.where(there, sums, -math.inf).argmax())
    else:
        leaders = np.where(allowed & there[:, None], sums[:, None], -math.inf).argmax(axis=0)
    led = there & there[leaders] & allowed[leaders, np.arange(len(now))]
    return np.where(led, now[leaders] - now, 0.0), np.where(led, sums[leaders] - sums, 0.0)


def _gain(gap: Floats, fair: Floats) -> Floats:
    """Per unit of the largest bet: at least -1; infinite where the belief has become impossible."""
    room = 1.0 + fair
    gain = np.divide(gap - fair, room, out=np.zeros_like(gap), where=room > MIN_BET_ROOM)
    refuted: Flags = (room <= MIN_BET_ROOM) & (gap - fair > MIN_BET_ROOM) | (room < -MIN_BET_ROOM)
    return np.where(refuted, math.inf, gain)


def _table(matrix: Floats, counts: Ints, span: float) -> Floats:
    """Values in units of the span, 0 where a system was not looked at and on queries that do not count."""
    there = counts[:, None] > np.arange(matrix.shape[1])
    counting = ~(np.isnan(matrix) & there).any(axis=0)
    table = np.where(there & counting, matrix, 0.0) / span
    most = np.where(there, table, -math.inf).max(axis=0, initial=-math.inf)
    least = np.where(there, table, math.inf).min(axis=0, initial=math.inf)
    if (most - least > 1 + MIN_BET_ROOM).any():
        raise ValueError(f"two systems differ by more than the span of {span} on a query")
    return table


def _allowed(replaces: npt.ArrayLike | None, names: int) -> Flags:
    allowed = np.ones((names, names), dtype=np.bool_) if replaces is None else np.array(replaces, dtype=np.bool_)
    if allowed.shape != (names, names):
        raise ValueError(f"who replaces whom is asked of {names} x {names} systems, got the shape {allowed.shape}")
    return allowed


def _leader(table: Floats, row: int, there: Flags, allowed: Flags) -> tuple[int, float]:
    """The best other system that may replace this one, and by how much its mean is better."""
    means = table.mean(axis=1)
    rivals = there & allowed[:, row]
    rivals[row] = False
    best = int(np.where(rivals, means, -math.inf).argmax())
    return best, float(means[best] - means[row])


CONFIDENCE = 0.95
MIN_CLAIM_QUERIES = 10  # queries; below, resamples of them are too alike to bear a claim


@dataclass(frozen=True)
class WinShare:
    """A system, and the share of draws that it wins, in 0..1."""

    name: str
    share: float


@dataclass(frozen=True)
class Winners:
    """Who wins how often.

    Attributes:
        shares: of the systems that win at all, most often first; they and `none` add up to 1.
        none: the share of draws in which no system holds the limits.
        draws: resamples; a share of p has a standard error of sqrt(p (1 - p) / draws) from that alone.
        queries: that were resampled.
        confidence: in 0..1, asked of whoever is called the winner.
        rivals: the fewest systems that together win that share of the draws; empty where they never do.
        told_apart: one system alone does.
    """

    shares: tuple[WinShare, ...]
    none: float
    draws: int
    queries: int
    confidence: float
    rivals: tuple[str, ...]
    told_apart: bool

    def share_of(self, name: str) -> float:
        """Of draws won by a system; 0 where it wins none."""
        return next((each.share for each in self.shares if each.name == name), 0.0)

    @property
    def _asked(self) -> str:
        return "one query alone" if self.queries == 1 else f"the {self.queries:,} queries"

    @property
    def sentence(self) -> str:
        """What may be said of it."""
        return self.told()

    def told(self, *, equals: bool = False) -> str:
        """The same where others are equal to the first on every query, and it wins in their place."""
        drawn = f"of {self.draws:,} resamples of {self._asked}"
        if not self.shares:
            return f"No system holds the limits in any {drawn}."
        best = self.shares[0]
        if self.told_apart:
            hint = "" if self.queries >= MIN_CLAIM_QUERIES else f": a hint, since a claim takes {MIN_CLAIM_QUERIES}"
            return f"{best.name} {'and its equals win' if equals else 'wins'} {best.share:.0%} {drawn}{hint}."
        listed = ", ".join(f"{each.name} {each.share:.0%}" for each in self.shares[:3])
        rest = len(self.rivals) - 3
        more = f" and {rest} more" if rest > 0 else ""
        missed = f"; in {self.none:.0%} no system holds the limits" if self.none else ""
        return f"The data do not tell the first from the others: {listed}{more} {drawn}{missed}."


def find_winners(
    candidates: Sequence[Candidate],
    values: npt.ArrayLike,
    limits: ChoiceLimits = NO_LIMITS,
    *,
    seed: int,
    draws: int = RESAMPLE_DRAWS,
    confidence: float = CONFIDENCE,
    jitter_ms: float = JITTER_MS,
    peers: EquivalenceLookup | None = None,
) -> Winners:
    """How often each system would be chosen under resampled queries.

    Args:
        candidates: in the order of the rows of `values`.
        values: of the deciding measure, shape (systems, queries); NaN where it is undefined.
        limits: those of the choice; a quality to be reached is asked of each draw's mean.
        seed: of the run.
        draws: at least 1.
        confidence: inside 0..1; the share of draws that makes a winner.
        jitter_ms, peers: as in `choose`; who is equivalent to whom is not judged anew in each draw.

    Raises:
        ValueError: a name twice, another shape, an infinite value, an argument out of its range.
    """
    check_candidates(candidates)
    matrix = checked_values(values, len(candidates))
    if not 0 < confidence < 1:
        raise ValueError(f"the confidence is {confidence}; it lies inside 0..1")
    fixed = ChoiceLimits(limits.latency_ms, limits.usd_per_1k)
    kept = [row for row, each in enumerate(candidates) if broken_limit(each, fixed) is None]
    kept = _undominated(candidates, matrix, kept, jitter_ms)
    field = CandidateColumns.of([candidates[row] for row in kept])
    wins, none = np.zeros(len(kept), dtype=np.int64), 0
    target = -np.inf if limits.quality is None else float(round_quality(limits.quality))
    for means in resampled_means(matrix[kept], draws=draws, seed=seed):
        for quality in round_quality(means):
            alive = quality >= target  # NaN is not
            if alive.any():
                wins[field.winner(quality, limits, jitter_ms, alive, peers)] += 1
            else:
                none += 1
    return _result([candidates[row].name for row in kept], wins, none, matrix.shape[1], confidence)


def _undominated(candidates: Sequence[Candidate], values: Floats, rows: Sequence[int], jitter_ms: float) -> list[int]:
    """Without those that another one dominates which does as well on every query: they are equal in all draws."""
    alike: dict[bytes, list[int]] = {}
    for row in rows:
        alike.setdefault(values[row].tobytes(), []).append(row)
    kept: set[int] = set()
    for group in alike.values():
        front = set(find_front([candidates[row] for row in group], jitter_ms).names) if len(group) > 1 else None
        kept |= {row for row in group if front is None or candidates[row].name in front}
    return sorted(kept)


def _result(names: list[str], wins: Ints, none: int, queries: int, confidence: float) -> Winners:
    draws = int(wins.sum()) + none
    order = sorted(np.flatnonzero(wins).tolist(), key=lambda row: (-wins[row], names[row]))
    shares = tuple(WinShare(names[row], float(wins[row]) / draws) for row in order)
    reached = np.cumsum([each.share for each in shares]) >= confidence
    rivals = tuple(each.name for each in shares[: int(reached.argmax()) + 1]) if reached.any() else ()
    return Winners(shares, none / draws, draws, queries, confidence, rivals, len(rivals) == 1)
