"""Measure the time of a decision over 1,000 systems and 1,000 queries, and the losses of dropping systems early.

    python benchmarks/decision.py                     both tables, about a minute
    python benchmarks/decision.py time --systems 200  the first table
    python benchmarks/decision.py halving --sweeps 2000

Scores are simulated: queries differ in difficulty, systems differ slightly, and each score has noise. The first table
has the time of each part of a decision in one process, and its peak memory. The second table simulates whole sweeps.
It counts how often the system with the best mean over all queries is kept (with its 95% interval), and the share of
the work. The last columns use paired t-tests with the same total error. In the world "rare failures", systems are
slightly better than the best one, and score 0 on one query of twenty.
"""

from __future__ import annotations

import argparse
import itertools
import math
import resource
import time
from collections.abc import Callable

import numpy as np
from scipy.special import stdtr

from raggs.base.arrays import Floats, Ints
from raggs.base.hashing import generator
from raggs.stats.agreement import wilson
from raggs.stats.choice import ChoiceLimits, choose, turning_points
from raggs.stats.effects import contributions, main_effects, main_shifts, strongest_interactions
from raggs.stats.front import Candidate, find_front
from raggs.stats.resampling import draw_order, find_winners, halve

ERROR = 0.01
PARTS = (30, 100)
Drop = Callable[[Floats, Ints, int], list[int]]  # scores, evaluated queries by system, all queries: kept systems


def grid(systems: int) -> list[dict[str, str | int]]:
    """Return the levels of this many systems: 10 embedders, 5 indexes, 5 rerankers and 4 K."""
    axes = {"embedder": 10, "index": 5, "reranker": 5}
    levels = [[f"{axis} {place}" for place in range(count)] for axis, count in axes.items()]
    cells = itertools.product(*levels, (50, 100, 150, 200))
    return [dict(zip([*axes, "k"], cell, strict=True)) for cell in itertools.islice(cells, systems)]


def table(systems: int, queries: int, spread: float, *names: object) -> Floats:
    """Return scores from 0 to 1 in steps of 0.1; the means have the standard deviation `spread`."""
    rng = generator(1, "decision", systems, queries, spread, *names)
    hard = rng.beta(1.2, 1.2, queries)
    values = hard + rng.normal(0, spread, (systems, 1)) + rng.normal(0, 0.2, (systems, queries))
    return np.clip(values, 0, 1).round(1)


def rare_failures(systems: int, queries: int, *names: object) -> Floats:
    """Return scores in which all but the best system are slightly better, but fail on one query of twenty."""
    rng = generator(1, "failures", systems, queries, *names)
    values = np.full((systems, queries), 0.82)
    for row in values[1:]:
        row[rng.choice(queries, queries // 20, replace=False)] = 0.0
    values[0] = 0.8
    return values


def measure_time(systems: int, queries: int) -> None:
    """Print the first table."""
    levels, values = grid(systems), table(systems, queries, 0.02)
    values[:, : queries // 25] = math.nan
    rng = generator(1, "candidates")
    candidates = [
        Candidate(
            str(row), float(rng.uniform(0, 5)), float(rng.uniform(50, 900)), (mean, mean / 2), int(level["k"]), 500
        )
        for row, (mean, level) in enumerate(zip(np.nanmean(values, axis=1).tolist(), levels, strict=True))
    ]
    limits = ChoiceLimits(latency_ms=500, usd_per_1k=3)
    grade = rng.integers(1, 6, size=200 * queries)
    pools = {
        str(row): (rng.integers(200, size=(queries, 10)) + 200 * np.arange(queries)[:, None]).ravel()
        for row in range(systems)
    }
    parts: dict[str, Callable[[], object]] = {
        "front": lambda: find_front(candidates),
        "choice under limits": lambda: choose(candidates, limits),
        "turning points": lambda: turning_points(candidates, "latency"),
        "winners, 1,000 draws": lambda: find_winners(candidates, values, limits, seed=1),
        "main effects, 1,000 draws": lambda: main_effects(levels, values, seed=1),
        "strongest interactions": lambda: strongest_interactions(levels, values, seed=1),
        "shifts of cost": lambda: main_shifts(levels, [each.usd_per_1k for each in candidates]),
        "a round of halving": lambda: halve([each.name for each in candidates], values[:, :100], total=queries),
        "leave-one-out of pools of 10": lambda: contributions(grade, pools),
    }
    print(f"| {systems:,} systems x {queries:,} queries | s |\n|---|---:|")
    total = 0.0
    for name, part in parts.items():
        began = time.perf_counter()
        part()
        total += (took := time.perf_counter() - began)
        print(f"| {name} | {took:.2f} |", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"| all | {total:.2f} |\n\nPeak memory, including the simulated input: {peak:.2f} GiB.\n", flush=True)


def bets(values: Floats, counts: Ints, total: int) -> list[int]:
    """Drop systems as raggs does."""
    done = halve([str(row) for row in range(len(values))], values, total=total, looked_at=counts.tolist(), error=ERROR)
    return [int(name) for name in done.kept]


def t_tests(values: Floats, counts: Ints, _: int) -> list[int]:
    """Drop systems by paired t-tests with the best one so far, corrected for systems and rounds."""
    left = np.flatnonzero(counts == values.shape[1])
    gaps = values[left[values[left].mean(axis=1).argmax()]] - values[left]
    spread = gaps.std(axis=1, ddof=1) / math.sqrt(values.shape[1])
    t = np.divide(gaps.mean(axis=1), spread, out=np.where(gaps.mean(axis=1) > 0, np.inf, 0.0), where=spread > 0)
    return left[stdtr(values.shape[1] - 1, -t) >= ERROR / (len(values) - 1) / len(PARTS)].tolist()


def play(values: Floats, drop: Drop, sweep: int) -> tuple[bool, float]:
    """Return whether a best system is left, and the share of pairs of system and query that was evaluated."""
    systems, queries = values.shape
    shuffled, left = values[:, draw_order(queries, sweep)], list(range(systems))
    counts = np.zeros(systems, dtype=np.int64)
    for part in PARTS:
        counts[left] = part
        left = drop(shuffled[:, :part], counts, queries)
    counts[left] = queries
    means = values.mean(axis=1)
    best = np.flatnonzero(means >= means.max() - 1e-12)
    return bool({*best.tolist()} & {*left}), counts.sum() / values.size


def measure_halving(sweeps: int) -> None:
    """Print the second table."""
    worlds: dict[str, Callable[[int], Floats]] = {
        f"{systems}, {queries}, {spread:g}": (lambda sweep, of=(systems, queries, spread): table(*of, sweep))
        for systems, queries, spread in ((24, 150, 0.0), (24, 150, 0.05), (50, 150, 0.1), (50, 300, 0.1))
    }
    worlds["24, 150, rare failures"] = lambda sweep: rare_failures(24, 150, sweep)
    print(f"{sweeps:,} simulated sweeps per row, rounds after {PARTS} queries.\n")
    print("| systems, queries, standard deviation of the means | best system kept | work |", end="")
    print(" best system kept by t-tests | work |")
    print("|---|---:|---:|---:|---:|")
    for name, make in worlds.items():
        cells = []
        for drop in (bets, t_tests):
            played = [play(make(sweep), drop, sweep) for sweep in range(sweeps)]
            kept = sum(kept for kept, _ in played)
            low, high = wilson(kept, sweeps)
            share = f"{kept / sweeps:.1%} ({low:.1%} to {high:.1%})"
            cells.append(f"{share} | {np.mean([work for _, work in played]):.0%}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["time", "halving"])
    parser.add_argument("--systems", type=int, default=1_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--sweeps", type=int, default=500)
    options = parser.parse_args()
    if options.what != "halving":
        measure_time(options.systems, options.queries)
    if options.what != "time":
        measure_halving(options.sweeps)


if __name__ == "__main__":
    main()
