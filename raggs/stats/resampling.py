"""Elimination of systems during an evaluation (`halve`), and stability of the chosen system (`find_winners`).

`halve` drops systems that are significantly worse than others on the queries seen so far. Queries come in random order
without replacement. For each system, the null hypothesis is that it has the best mean over all queries. The test uses
betting: on each query, a gambler bets that the current leader beats the system, at odds that are fair under the null
hypothesis. If a capital of 1 grows to 1 / error, the hypothesis is rejected (Waudby-Smith and Ramdas, "Estimating means
of bounded random variables by betting", 2023, sections 4 and 5). By Ville's inequality, the error rate holds for all
rounds together, so the number of rounds needs no correction. The number of systems needs no correction either, because
only the best system's hypothesis is true. The only assumption on the differences is their range, so the test remains
valid if a system scores 0 on a few queries. In total, the system with the best mean over all queries is dropped with a
probability of at most `error`. Queries must not be in file order, because the first queries of a file may all be alike.

`resampled_means` is the nonparametric bootstrap over queries (Efron and Tibshirani, 1993, chapter 6; section 4.1 of
Dallaire, 2025). All systems share the resamples, so that the common difficulty of queries cancels out. The means of a
system depend only on its own values and the seed, not on the other systems.

`find_winners` estimates how often each system would be chosen with other queries of the same kind. For each resample of
the queries, the means are recomputed, and the rules of `raggs.stats.choice` choose under the same limits. Cost and
latency stay as measured. A dominated system is removed in advance only if the dominating system has the same value on
every query. Every other system may be the best in some resamples.
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
MAX_COUNT_CELLS = 1_000_000  # cells of the count matrix in memory at a time: 8 MB


def checked_values(values: npt.ArrayLike, systems: int) -> Floats:
    """Check values and return them as an array of shape (systems, queries); NaN if the measure is undefined.

    Raises:
        ValueError: the shape is wrong, or a value is infinite.
    """
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != systems:
        raise ValueError(f"expected one row of values per system ({systems}), got shape {matrix.shape}")
    if np.isinf(matrix).any():
        raise ValueError("a value is infinite; use NaN if a measure is undefined")
    return matrix


def resampled_means(values: Floats, *, draws: int, seed: int) -> Iterator[Floats]:
    """Yield means over resampled queries in blocks of shape (draws in the block, systems), `draws` in total.

    Args:
        values: shape (systems, queries); NaN is ignored, and a resample without a valid value gives NaN.
        draws: number of resamples, at least 1.
        seed: random seed.

    Raises:
        ValueError: `draws` is below 1.
    """
    if draws < 1:
        raise ValueError(f"the number of draws must be at least 1, got {draws}")
    patterns, of_row = np.unique(~np.isnan(values), axis=0, return_inverse=True)
    filled, weights = np.nan_to_num(values), patterns.astype(np.float64)
    for counts in _counts(values.shape[1], draws, seed):
        # einsum, because the rounding of a BLAS product depends on the number of rows and threads.
        totals = np.einsum("dq,sq->ds", counts, filled)
        drawn = np.einsum("dq,pq->dp", counts, weights)[:, of_row.ravel()]
        yield np.divide(totals, drawn, out=np.full_like(totals, np.nan), where=drawn > 0)


def _counts(queries: int, draws: int, seed: int) -> Iterator[Floats]:
    """Yield how often each query is drawn, in blocks of draws of shape (draws in the block, queries)."""
    rng, step = generator(seed, "decision", queries), max(1, MAX_COUNT_CELLS // max(queries, 1))
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        drawn = rng.integers(queries, size=(rows, queries)) if queries else np.zeros((rows, 0), dtype=np.int64)
        places = drawn + queries * np.arange(rows)[:, None]
        yield np.bincount(places.ravel(), minlength=rows * queries).reshape(rows, queries).astype(np.float64)


ERROR = 0.01
# each gambler's bet, as a share of the largest bet that cannot lose the complete capital
BET_SHARES = np.array([0.04, 0.07, 0.12, 0.2, 0.35, 0.5, 0.7, 0.95])
MIN_BET_ROOM = 1e-12


@dataclass(frozen=True)
class DroppedSystem:
    """A system that is significantly worse than another.

    Attributes:
        name: name of the system.
        by: the best system on the queries seen, among the systems of this round that may replace this one.
        difference: mean of `by` minus mean of this system, over the queries seen that count. May be 0 or negative,
            because `evidence` may have peaked on earlier queries.
        evidence: natural logarithm of the largest capital of the test so far; at least ln(1 / error).
    """

    name: str
    by: str
    difference: float
    evidence: float


@dataclass(frozen=True)
class HalvingRound:
    """Result of one round: the systems that remain (in the given order) and the systems that are dropped.

    Attributes:
        kept, dropped: each system that was evaluated in this round is in one of these.
        queries: number of queries seen so far, in all rounds.
        needed: minimum evidence to drop a system, ln(1 / error).
    """

    kept: tuple[str, ...]
    dropped: tuple[DroppedSystem, ...]
    queries: int
    needed: float


def draw_order(queries: int, seed: int) -> tuple[int, ...]:
    """Return a random permutation of 0..queries - 1: the order in which queries are evaluated."""
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
    """Drop the systems that are significantly worse on the queries seen.

    Args:
        names: all systems of the first round, including those dropped since.
        values: values of the primary measure, shape (names, queries seen in all rounds), columns in the order of
            `draw_order`; NaN if there is no value. A query counts if all systems that were evaluated on it have a
            value. A system without any value is not tested, is ignored in this rule, and remains.
        total: total number of queries.
        looked_at: for each system, the number of first queries on which it was evaluated; None: all. Systems evaluated
            on all queries seen are tested; the other systems were dropped before.
        replaces: shape (names, names); true if the row's system may drop the column's. A system that costs more or is
            slower does not make a cheaper or faster one superfluous. None: all may. The guarantee covers each
            system whose mean is not below that of any system that may replace it.
        error: maximum probability of dropping the best system, over all rounds; strictly between 0 and 1.
        span: difference between the largest and the smallest possible value of the measure.

    Raises:
        ValueError: shapes or numbers do not match, or a difference exceeds the span.
    """
    matrix = checked_values(values, len(names))
    queries = matrix.shape[1]
    if not (0 < error < 1 and span > 0 and queries <= total):
        raise ValueError(
            f"0 < error < 1, span > 0 and queries <= total do not hold for error={error}, span={span}, "
            f"queries={queries}, total={total}"
        )
    counts = np.array([queries] * len(names) if looked_at is None else looked_at, dtype=np.int64)
    if counts.shape != (len(names),) or (counts > queries).any():
        raise ValueError(f"expected one count of at most {queries} queries per system, got {counts.tolist()}")
    failed = np.isnan(matrix).all(axis=1)
    evaluated = np.where(failed, 0, counts)
    counting = _counting(matrix, evaluated)
    table = _table(matrix, evaluated, counting, span)
    allowed = _allowed(replaces, len(names))
    evidence = log_capital(table, evaluated, allowed, total)
    needed, dropped = math.log(1 / error), {}
    for row in np.flatnonzero((counts == queries) & (evidence >= needed)).tolist():
        by, gap = _leader(table[:, counting], row, (counts == queries) & ~failed, allowed)
        dropped[row] = DroppedSystem(names[row], names[by], gap * span, float(evidence[row]))
    kept = tuple(names[row] for row in np.flatnonzero(counts == queries).tolist() if row not in dropped)
    return HalvingRound(kept, tuple(dropped.values()), queries, needed)


def log_capital(table: Floats, counts: Ints, allowed: Flags, total: int) -> Floats:
    """Return each system's largest capital so far against the hypothesis that it is the best, as a logarithm.

    The capital is the mean over several gamblers. Each bets a different share of the largest bet that cannot ruin them.
    All of them bet on the leader so far among the systems that may replace the tested one.

    Args:
        table: shape (systems, queries seen), values of a column differ by at most 1; random order, without replacement.
        counts: for each system, the number of first queries on which it was evaluated.
        allowed: shape (systems, systems), whether the row's system may replace the column's.
        total: total number of queries.

    Returns:
        Shape (systems,), natural logarithm; infinite if no values of the remaining queries could make up for those
        seen.
    """
    capital = np.zeros((len(table), BET_SHARES.size))
    best, sums = np.zeros(len(table)), np.zeros(len(table))
    for query in range(table.shape[1]):
        now, there = table[:, query], counts > query
        gap, lead = _against_leader(now, sums, there, allowed)
        gain = _gain(gap, -lead / (total - query))  # mean of the remaining queries under the null hypothesis
        certain = np.isinf(gain)
        capital += np.log1p(np.where(certain, 0.0, gain)[:, None] * BET_SHARES)
        capital[certain] = math.inf
        best = np.maximum(best, np.logaddexp.reduce(capital, axis=1) - math.log(BET_SHARES.size))
        sums += np.where(there, now, 0.0)
    return best


def _against_leader(now: Floats, sums: Floats, there: Flags, allowed: Flags) -> tuple[Floats, Floats]:
    """Return by how much the leader on the earlier queries beats each system, on this query and in the earlier sums.

    Both are 0 if no system that was evaluated on this query may replace the system.
    """
    if allowed.all():
        leaders = np.full(len(now), np.where(there, sums, -math.inf).argmax())
    else:
        leaders = np.where(allowed & there[:, None], sums[:, None], -math.inf).argmax(axis=0)
    led = there & there[leaders] & allowed[leaders, np.arange(len(now))]
    return np.where(led, now[leaders] - now, 0.0), np.where(led, sums[leaders] - sums, 0.0)


def _gain(gap: Floats, fair: Floats) -> Floats:
    """Return the gain per unit of the largest bet, at least -1; infinite if the null hypothesis has become
    impossible.
    """
    room = 1.0 + fair
    gain = np.divide(gap - fair, room, out=np.zeros_like(gap), where=room > MIN_BET_ROOM)
    refuted: Flags = (room <= MIN_BET_ROOM) & (gap - fair > MIN_BET_ROOM) | (room < -MIN_BET_ROOM)
    return np.where(refuted, math.inf, gain)


def _counting(matrix: Floats, counts: Ints) -> Flags:
    """Return which queries count, shape (queries seen,): those on which each evaluated system has a value."""
    there = counts[:, None] > np.arange(matrix.shape[1])
    counting: Flags = np.asarray(~(np.isnan(matrix) & there).any(axis=0))
    return counting


def _table(matrix: Floats, counts: Ints, counting: Flags, span: float) -> Floats:
    """Return values in units of the span; 0 if a system has no value for a query, or the query does not count."""
    there = counts[:, None] > np.arange(matrix.shape[1])
    table = np.where(there & counting, matrix, 0.0) / span
    most = np.where(there, table, -math.inf).max(axis=0, initial=-math.inf)
    least = np.where(there, table, math.inf).min(axis=0, initial=math.inf)
    if (most - least > 1 + MIN_BET_ROOM).any():
        raise ValueError(f"two systems differ by more than the span of {span} on a query")
    return table


def _allowed(replaces: npt.ArrayLike | None, names: int) -> Flags:
    allowed = np.ones((names, names), dtype=np.bool_) if replaces is None else np.array(replaces, dtype=np.bool_)
    if allowed.shape != (names, names):
        raise ValueError(f"`replaces` must have the shape ({names}, {names}), got {allowed.shape}")
    return allowed


def _leader(table: Floats, row: int, there: Flags, allowed: Flags) -> tuple[int, float]:
    """Return the best of the other systems that may replace this one, and the difference of their means.

    Args:
        table: shape (systems, queries that count), at least one query.
    """
    means = table.mean(axis=1)
    rivals = there & allowed[:, row]
    rivals[row] = False
    best = int(np.where(rivals, means, -math.inf).argmax())
    return best, float(means[best] - means[row])


CONFIDENCE = 0.95
MIN_CLAIM_QUERIES = 10  # with fewer queries, resamples are too similar for a conclusion


@dataclass(frozen=True)
class WinShare:
    """A system and the share of resamples in which it wins, in 0..1."""

    name: str
    share: float


@dataclass(frozen=True)
class Winners:
    """How often each system wins.

    Attributes:
        shares: systems that win at least once, most frequent winner first; their shares and `none` sum to 1.
        none: share of resamples in which no system is within the limits.
        draws: number of resamples; the standard error of a share p is sqrt(p (1 - p) / draws).
        queries: number of queries that were resampled.
        confidence: share of resamples in 0..1 that a system must win to count as the winner.
        rivals: the smallest set of systems that together win the share `confidence`; empty if all systems together do
            not.
        told_apart: whether a single system wins at least the share `confidence`.
    """

    shares: tuple[WinShare, ...]
    none: float
    draws: int
    queries: int
    confidence: float
    rivals: tuple[str, ...]
    told_apart: bool

    @property
    def _asked(self) -> str:
        return "one query" if self.queries == 1 else f"the {self.queries:,} queries"

    @property
    def sentence(self) -> str:
        """One sentence that summarises the result."""
        return self.told()

    def told(self, *, equals: bool = False) -> str:
        """Return the summary sentence.

        With `equals`, the first system represents others that have the same value on every query. The sentence mentions
        them only if `told_apart` is true.
        """
        drawn = f"of {self.draws:,} resamples of {self._asked}"
        if not self.shares:
            return f"No system meets the limits in any {drawn}."
        best = self.shares[0]
        if self.told_apart:
            named = f"{best.name} or an identical system" if equals else best.name
            found = f"{named} is chosen in {best.share:.0%} {drawn}"
            if self.queries < MIN_CLAIM_QUERIES:
                return f"{found} (fewer than {MIN_CLAIM_QUERIES} queries: only an indication)."
            return f"The choice hardly depends on the sample of queries: {found}."
        listed = ", ".join(f"{each.name} {each.share:.0%}" for each in self.shares[:3])
        rest = len(self.rivals) - 3
        more = f" and {rest} more system{'s' if rest > 1 else ''}" if rest > 0 else ""
        missed = f"; in {self.none:.0%} no system meets the limits" if self.none else ""
        return f"The winner is inconclusive: {listed}{more} ({self.draws:,} resamples of {self._asked}){missed}."


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
    """Return how often each system would be chosen under resampled queries.

    Args:
        candidates: the systems, in the order of the rows of `values`.
        values: values of the primary measure, shape (systems, queries); NaN if undefined.
        limits: limits of the choice; a quality target applies to the mean of each resample.
        seed: random seed.
        draws: number of resamples, at least 1.
        confidence: share of resamples that a system must win to be the winner, strictly between 0 and 1.
        jitter_ms, peers: as in `choose`; equivalence is tested once, not in each resample.

    Raises:
        ValueError: a name is repeated, the shape is wrong, a value is infinite, or an argument is out of its range.
    """
    check_candidates(candidates)
    matrix = checked_values(values, len(candidates))
    if not 0 < confidence < 1:
        raise ValueError(f"the confidence must be strictly between 0 and 1, got {confidence}")
    fixed = ChoiceLimits(limits.latency_ms, limits.usd_per_1k)
    kept = [row for row, each in enumerate(candidates) if broken_limit(each, fixed) is None]
    kept = _undominated(candidates, matrix, kept, jitter_ms)
    field = CandidateColumns.of([candidates[row] for row in kept])
    wins, none = np.zeros(len(kept), dtype=np.int64), 0
    target = -np.inf if limits.quality is None else float(round_quality(limits.quality))
    for means in resampled_means(matrix[kept], draws=draws, seed=seed):
        for quality in round_quality(means):
            alive = quality >= target  # False for NaN
            if alive.any():
                wins[field.winner(quality, limits, jitter_ms, alive, peers)] += 1
            else:
                none += 1
    return _result([candidates[row].name for row in kept], wins, none, matrix.shape[1], confidence)


def _undominated(candidates: Sequence[Candidate], values: Floats, rows: Sequence[int], jitter_ms: float) -> list[int]:
    """Return the rows without dominated systems whose values equal those of the dominating system on every query.

    Such systems tie in all resamples, so the dominating system would be preferred in all of them.
    """
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
