"""From timings to what a query waits for. Pure.

Two figures that must not be mixed up:

- The usual wait of a query: of each query the median over rounds, summed over steps. `p50` is the median of these over
  queries, `p95_of_medians` their 95th percentile. Both hide what happens once in a while.
- The tail of single searches: `p95` is the time within which 95% of all single searches ended, over all queries and
  rounds. Limits are held against it.

The interval of `p95` comes from a bootstrap in which queries and rounds are both drawn with replacement (Owen, "The
pigeonhole bootstrap", 2007), since searches for one query resemble each other, and so do searches of one round. Warm-up
searches are not timed, so they are in no figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import median

import numpy as np

from raggs.base.arrays import Floats
from raggs.base.jsontypes import Number
from raggs.base.seeds import generator
from raggs.sweeps.models import LatencyPart, Spread, StepKind, Timing

TAIL = 0.95
DRAWS = 1000
CELLS = 2_000_000  # single searches of all draws that are weighed at a time


def sample(qids: Sequence[str], count: int) -> list[str]:
    """At most `count` questions, evenly spread over all."""
    count = min(count, len(qids))
    return [qids[at * len(qids) // count] for at in range(count)]


def latency_of(
    steps: Mapping[StepKind, Sequence[str]],
    timings: Iterable[Timing],
    questions: Sequence[str],
    *,
    confidence: float,
    seed: int,
) -> LatencyPart:
    """What is known of a system's waiting.

    Args:
        steps: by kind, the keys of what is done one after the other.
        timings: of these and other steps.
        questions: over which percentiles are taken.
        confidence: of the interval of the tail.
        seed: of its bootstrap.

    Returns:
        A kind with a step that was never timed is None, and so is the total.
    """
    wanted = {key for keys in steps.values() for key in keys}
    rounds: dict[str, list[Timing]] = {}
    for timing in timings:
        if timing.step in wanted:
            rounds.setdefault(timing.step, []).append(timing)

    def spread(keys: Sequence[str]) -> Spread | None:
        return _spread([rounds.get(key, []) for key in keys], questions, confidence, seed)

    parts = {kind: found for kind, keys in steps.items() if (found := spread(keys)) is not None}
    everything = [key for keys in steps.values() for key in keys]
    return LatencyPart(
        embed=parts.get("embed"),
        retrieve=parts.get("retrieve"),
        rerank=parts.get("rerank"),
        total=spread(everything) if parts.keys() == steps.keys() else None,
    )


def _spread(steps: Sequence[Sequence[Timing]], questions: Sequence[str], confidence: float, seed: int) -> Spread | None:
    """Percentiles of the sum of some steps, each with its rounds; None where one was never timed, or there is none."""
    if not steps or not all(steps):
        return None
    usual = _usual(steps, questions)
    singles = _singles(steps, questions)
    if not singles.size:  # no query was timed in every step
        singles = usual[None, :]
    low, high = tail_interval(singles, confidence, seed)
    p50, p95_of_medians = np.percentile(usual, [50, 100 * TAIL]).tolist()
    return Spread(
        p50=p50,
        p95=tail(singles),
        low=low,
        high=high,
        searches=singles.size,
        p95_of_medians=p95_of_medians,
        calls=max(sum(len(timing.ms) for timing in rounds) for rounds in steps),
        paid=any(timing.paid for rounds in steps for timing in rounds),
    )


def _usual(steps: Sequence[Sequence[Timing]], questions: Sequence[str]) -> Floats:
    """Return the usual wait of each query; one that a step was not timed for counts at the step's median."""
    total: Floats = np.zeros(len(questions))
    for rounds in steps:
        ms = _by_question(rounds)
        missing = median(ms.values())
        total += [ms.get(qid, missing) for qid in questions]
    return total


def _singles(steps: Sequence[Sequence[Timing]], questions: Sequence[str]) -> Floats:
    """Return the single searches, shape (rounds, queries timed in every step).

    A step that was timed in fewer rounds than others, as what is paid is, counts in the rounds that it lacks at each
    query's median.
    """
    numbers = sorted({timing.round for rounds in steps for timing in rounds})
    total: Floats = np.zeros((len(numbers), len(questions)))
    for rounds in steps:
        medians = _by_question(rounds)
        by_number = {timing.round: timing.ms for timing in rounds}
        for row, number in enumerate(numbers):
            ms = {**medians, **by_number.get(number, {})}
            total[row] += [ms.get(qid, np.nan) for qid in questions]
    found: Floats = total[:, ~np.isnan(total).any(axis=0)]
    return found


def _by_question(rounds: Sequence[Timing]) -> dict[str, float]:
    """The median over rounds."""
    qids = {qid for timing in rounds for qid in timing.ms}
    return {qid: median(timing.ms[qid] for timing in rounds if qid in timing.ms) for qid in qids}


def tail(searches: Floats) -> float:
    """Return the least time within which 95% of single searches ended."""
    return float(np.quantile(searches, TAIL, method="inverted_cdf"))


def tail_interval(searches: Floats, confidence: float, seed: int) -> tuple[Number, Number]:
    """Return the bounds of the tail's interval over resampled queries and rounds.

    Args:
        searches: milliseconds, shape (rounds, queries).

    Returns:
        The bounds; an upper one of None where there are too few searches for any to bound the tail: with n of them,
        the slowest one lies below the true tail with a probability of 0.95 to the power of n.
    """
    rounds, queries = searches.shape
    order = np.argsort(searches, axis=None, kind="stable")
    values, row, column = searches.ravel()[order], order // queries, order % queries
    found = np.empty(DRAWS)
    for start, (drawn_rounds, drawn_queries) in _counts(rounds, queries, seed):
        weights = np.cumsum(drawn_rounds[:, row] * drawn_queries[:, column], axis=1)
        reached = (weights >= TAIL * rounds * queries - 1e-9).argmax(axis=1)
        found[start : start + len(reached)] = values[reached]
    side = (1 - confidence) / 2
    low, high = np.quantile(found, [side, 1 - side], method="inverted_cdf").tolist()
    return low, high if side > TAIL**searches.size else None


@lru_cache(maxsize=8)
def _counts(rounds: int, queries: int, seed: int) -> tuple[tuple[int, tuple[Floats, Floats]], ...]:
    """How often each round and each query is drawn, a chunk of the draws at a time."""
    rng, step = generator(seed, "tail", rounds, queries), max(1, CELLS // (rounds * queries))
    return tuple(
        (start, (_draws(rng, rounds, min(step, DRAWS - start)), _draws(rng, queries, min(step, DRAWS - start))))
        for start in range(0, DRAWS, step)
    )


def _draws(rng: np.random.Generator, size: int, draws: int) -> Floats:
    drawn = rng.integers(size, size=(draws, size)) + size * np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=draws * size).reshape(draws, size).astype(np.float64)
