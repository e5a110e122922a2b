"""Count the queries that separate two close systems: with grades, with utilities, and with more samples of grades.

    python benchmarks/utilities.py --data FOLDER --out benchmarks/results/utilities.md    several minutes
    python benchmarks/utilities.py --quick                                                synthetic queries

Pools, true utilities and judges are those of `ranking.py` (ranking_worlds.py). A medium or noisy judge orders lists of
five for the engine of the rank stage. A grade is off by one in a quarter of the cases. Each world of a query counts as
a query.

Two systems order the pool by a value plus noise. They share most of the noise, and one has slightly more of it. The
value is the utility (`by utility`) or the human grade (`by grade`). With `by grade`, the order within a grade is
random.

Both orders are scored by nDCG@10. The gains come from the grades, from the expected gain after 40 and 80 ranking calls,
or from the mean of k grades. With k = 2 and 3, the numbers of calls are equal, because a call grades one passage. With
k = 6 and 11, the numbers of passages read are equal. `true utilities` is the upper bound. A sample of the grades reads
40 passages, and a ranking call reads 5.

The result is the smallest number of queries for which a paired t-test at 5% finds the better system in 80% of 1,000
resamples. The figure after +- is the standard error over 40 resamples of the queries with all their worlds. The errors
of samples are independent here. If a real judge repeats its errors, samples help less.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the processes share the cores

import numpy as np
from ranking_methods import BATCH, engine
from ranking_tables import BEGIN, END, put_between_markers
from ranking_worlds import (
    JUDGES,
    LEAST,
    MOST,
    POOL,
    SLIP,
    Floats,
    Query,
    World,
    load_queries,
    make_judge,
    make_world,
    ndcg,
    synthetic_queries,
)
from scipy.stats import t as student

from raggs.base.hashing import generator
from raggs.metrics.columns import expected_gains

TOP, CALLS, SHARED = 10, (40, 80), 0.7
BETTER, WORSE = 0.4, 0.55
PAIRS = 6  # of systems, in each world
POWER, LEVEL, DRAWS, OUTER, MOST_QUERIES = 0.8, 0.05, 1000, 40, 5_000
GAINS = np.arange(MOST - LEAST + 1, dtype=float)
KINDS = ("by utility", "by grade")
Differences = dict[tuple[str, str], Floats]  # by kind of systems and kind of gains, shape (pairs,)


def sampled(world: World, count: int, seed: int) -> Floats:
    """Return the mean of `count` samples of the grades, with equally frequent errors."""
    rng = generator(seed, "samples", world.qid)
    more = world.human + np.where(rng.random((count - 1, world.human.size)) < SLIP, 1, 0) * rng.choice(
        [-1, 1], (count - 1, world.human.size)
    )
    return np.vstack([world.grades, np.clip(more, LEAST, MOST)]).mean(axis=0)


def gains_of(world: World, judge: str, seed: int) -> dict[str, Floats]:
    """Return the gain of each passage, by kind of gains."""
    found = {"grades": world.grades - LEAST}
    ask = make_judge(JUDGES[judge], world, seed, judge, "utilities")
    number = {name: at for at, name in enumerate(world.ids)}
    play = engine("bayes", saving=0.0)
    for shot in play(world, ask, CALLS, generator(seed, "utilities", world.qid)):
        if (ranking := shot.ranking) is None:
            continue
        score, sigma = np.empty(len(number)), np.empty(len(number))
        at = [number[name] for name in ranking.order]
        score[at], sigma[at] = ranking.scores, ranking.sigma
        found[f"utilities, {shot.budget} calls"] = expected_gains(score, sigma, GAINS, LEAST)
    for calls in CALLS:
        for count in (1 + calls // POOL, 1 + calls * BATCH // POOL):
            found[f"{count} samples"] = sampled(world, count, seed) - LEAST
    return found | {"true utilities": np.clip(world.utility, LEAST, MOST) - LEAST}


def played(task: tuple[Query, int, str]) -> Differences:
    """Return the scores of the better system minus those of the worse one."""
    query, seed, judge = task
    world = make_world(query, seed)
    gains, rng = gains_of(world, judge, seed), generator(seed, "systems", query.qid)
    found: dict[tuple[str, str], list[float]] = {}
    for kind in KINDS:
        sees = world.utility if kind == "by utility" else world.human
        for _ in range(PAIRS):
            noise = rng.normal(size=(3, sees.size))
            orders = [np.argsort(-(sees + SHARED * noise[0] + own)) for own in (BETTER * noise[1], WORSE * noise[2])]
            for way, gain in gains.items():
                one, other = (ndcg(gain[order], TOP) for order in orders)
                found.setdefault((kind, way), []).append(one - other)
    return {key: np.array(values) for key, values in found.items()}


def power(values: Floats, count: int, rng: np.random.Generator) -> float:
    """Return the share of resamples in which a paired t-test finds the better system."""
    drawn = values[rng.integers(values.size, size=(DRAWS, count))]
    spread = drawn.std(axis=1, ddof=1) / np.sqrt(count)
    found = drawn.mean(axis=1) > student.ppf(1 - LEVEL / 2, count - 1) * np.maximum(spread, 1e-12)
    return float(found.mean())


def needed(values: Floats, rng: np.random.Generator) -> float:
    """Return the smallest number of queries with the power, to 2%, at most `MOST_QUERIES`."""
    low, high = 3.0, 6.0
    while high < MOST_QUERIES and power(values, round(high), rng) < POWER:
        low, high = high, 1.6 * high
    while high / low > 1.02:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if power(values, round(middle), rng) >= POWER else (middle, high)
    return min(high, MOST_QUERIES)


def approximate(values: Floats) -> float:
    """Return the number of queries by the normal approximation, for standard errors."""
    return float((1.96 + 0.842) ** 2 * values.var(ddof=1) / values.mean() ** 2)


def reads(way: str) -> int:
    """Return the number of passages that a judge reads per query."""
    kind, _, number = way.partition(", ")
    if kind == "utilities":
        return POOL + BATCH * int(number.split()[0])
    return POOL * (int(way.split()[0]) if way.endswith("samples") else 1)


def cells(found: Mapping[str, Floats]) -> list[list[str]]:
    """Return rows: gains, queries needed, the ratio to grades, and passages read in total, with standard errors.

    Args:
        found: differences by kind of gains, shape (queries, differences).
    """
    rng = generator(1, "power")
    count = len(found["grades"])
    picks = [rng.integers(count, size=count) for _ in range(OUTER)]
    tried = {way: np.array([approximate(each[pick].ravel()) for pick in picks]) for way, each in found.items()}
    required = {way: needed(each.ravel(), rng) for way, each in found.items()}
    rows = []
    for way, number in required.items():
        wide = number * np.log(tried[way]).std(ddof=1)
        share, spread = number / required["grades"], np.log(tried[way] / tried["grades"]).std(ddof=1)
        cost = "" if way == "true utilities" else f"{number * reads(way) / 1000:.1f} ± {wide * reads(way) / 1000:.1f}"
        rows.append([way, f"{number:.0f} ± {wide:.0f}", f"{share:.2f} ± {share * spread:.2f}", cost])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--quick", action="store_true", help="use 8 synthetic queries and one world")
    parser.add_argument("--worlds", type=int, default=4, help="worlds per query [default: 4]")
    parser.add_argument(
        "--judges",
        nargs="*",
        default=["medium", "noisy"],
        choices=list(JUDGES),
        help="judges [default: medium noisy]",
    )
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    synthetic = given.quick or given.data is None
    queries: Sequence[Query] = synthetic_queries(8, 1) if synthetic else load_queries(given.data)
    worlds = range(1, 2 if given.quick else given.worlds + 1)
    about = f"{len(queries)} queries, {len(worlds)} worlds per query, {PAIRS} pairs of systems per world."
    head = ["judge", "systems", "gains of nDCG", "queries", "relative to grades", "passages read in total (thousands)"]
    lines = [about, "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    with ProcessPoolExecutor(2) as pool:
        for judge in given.judges:
            tasks = [(query, seed, judge) for query in queries for seed in worlds]
            each = list(pool.map(played, tasks, chunksize=4))
            for kind in KINDS:
                found = {
                    way: np.array([one[kind, way] for one in each]).reshape(len(queries), -1)
                    for own, way in each[0]
                    if own == kind
                }
                lines += ["| " + " | ".join([judge, kind, *row]) + " |" for row in cells(found)]
    print("\n".join(lines))
    if given.out:
        page = given.out.read_text(encoding="utf-8") if given.out.exists() else f"{BEGIN}\n{END}\n"
        given.out.write_text(put_between_markers(page, "\n".join(lines)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
