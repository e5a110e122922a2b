"""How many questions it takes to tell two close systems apart: with grades, with utilities, with more grade samples.

    python benchmarks/utilities.py --data FOLDER --out benchmarks/results/utilities.md    some minutes
    python benchmarks/utilities.py --quick                                                made-up queries

Pools, truth and judges are those of `ranking.py` (ranking_worlds.py): a judge of medium or low sharpness orders lists
of five for the engine of the rank stage; a stage grade is off by one in a quarter of the cases. A question is a query
in one of its worlds. Two systems order the pool by what they see plus noise, most of which they share; one is a little
noisier. `inside` systems see the utility, with what a grade leaves open; `grades alone` systems see the human grade, so
that no order inside a grade is worth anything to them. Both orders are scored by nDCG@10 with gains from, in turn, the
stage grades, the expected gain by the ranking after 40 and 80 calls, and the mean of k grades: at equal calls (a call
grades one passage: k = 2 and 3) and at equal passages read (k = 6 and 11). `truth` knows the utilities. All passages
read: questions times what is read for each, 40 for every sample of the grades, 5 for every call of the ranking.

Questions needed: the least number at which a paired t-test at 5 % finds the right winner in 80 % of 1,000 resamples of
the questions. +- is a standard error over 40 resamples of the queries, with all their worlds. Samples of a grade err
anew each time here, which flatters them: a real judge repeats itself.
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
POWER, LEVEL, DRAWS, OUTER, MOST_QUESTIONS = 0.8, 0.05, 1000, 40, 5_000
GAINS = np.arange(MOST - LEAST + 1, dtype=float)
KINDS = ("inside", "grades alone")
Differences = dict[tuple[str, str], Floats]  # by kind and way: shape (pairs,)


def sampled(world: World, count: int, seed: int) -> Floats:
    """The mean of the stage grade and `count` - 1 more, each off by one as often as that."""
    rng = generator(seed, "samples", world.qid)
    more = world.human + np.where(rng.random((count - 1, world.human.size)) < SLIP, 1, 0) * rng.choice(
        [-1, 1], (count - 1, world.human.size)
    )
    return np.vstack([world.grades, np.clip(more, LEAST, MOST)]).mean(axis=0)


def gains_of(world: World, judge: str, seed: int) -> dict[str, Floats]:
    """By way, the gain of each passage."""
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
    return found | {"truth": np.clip(world.utility, LEAST, MOST) - LEAST}


def played(task: tuple[Query, int, str]) -> Differences:
    """The better system less the worse one."""
    query, seed, judge = task
    world = make_world(query, seed)
    gains, rng = gains_of(world, judge, seed), generator(seed, "systems", query.qid)
    found: dict[tuple[str, str], list[float]] = {}
    for kind in KINDS:
        sees = world.utility if kind == "inside" else world.human
        for _ in range(PAIRS):
            noise = rng.normal(size=(3, sees.size))
            orders = [np.argsort(-(sees + SHARED * noise[0] + own)) for own in (BETTER * noise[1], WORSE * noise[2])]
            for way, gain in gains.items():
                one, other = (ndcg(gain[order], TOP) for order in orders)
                found.setdefault((kind, way), []).append(one - other)
    return {key: np.array(values) for key, values in found.items()}


def power(values: Floats, count: int, rng: np.random.Generator) -> float:
    """How often a paired t-test finds the better system in so many questions."""
    drawn = values[rng.integers(values.size, size=(DRAWS, count))]
    spread = drawn.std(axis=1, ddof=1) / np.sqrt(count)
    found = drawn.mean(axis=1) > student.ppf(1 - LEVEL / 2, count - 1) * np.maximum(spread, 1e-12)
    return float(found.mean())


def needed(values: Floats, rng: np.random.Generator) -> float:
    """The least number of questions, to 2 %, that has the power; as many as are tried where none has."""
    low, high = 3.0, 6.0
    while high < MOST_QUESTIONS and power(values, round(high), rng) < POWER:
        low, high = high, 1.6 * high
    while high / low > 1.02:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if power(values, round(middle), rng) >= POWER else (middle, high)
    return min(high, MOST_QUESTIONS)


def approximate(values: Floats) -> float:
    """The same by the normal formula; for standard errors, which need no more."""
    return float((1.96 + 0.842) ** 2 * values.var(ddof=1) / values.mean() ** 2)


def reads(way: str) -> int:
    """The passages that a judge reads for a question."""
    kind, _, number = way.partition(", ")
    if kind == "utilities":
        return POOL + BATCH * int(number.split()[0])
    return POOL * (int(way.split()[0]) if way.endswith("samples") else 1)


def cells(found: Mapping[str, Floats]) -> list[list[str]]:
    """By way: questions needed, their share of what grades need, and passages read for them, with standard errors.

    Args:
        found: by way, shape (queries, differences).
    """
    rng = generator(1, "power")
    count = len(found["grades"])
    picks = [rng.integers(count, size=count) for _ in range(OUTER)]
    tried = {way: np.array([approximate(each[pick].ravel()) for pick in picks]) for way, each in found.items()}
    questions = {way: needed(each.ravel(), rng) for way, each in found.items()}
    rows = []
    for way, number in questions.items():
        wide = number * np.log(tried[way]).std(ddof=1)
        share, spread = number / questions["grades"], np.log(tried[way] / tried["grades"]).std(ddof=1)
        cost = "" if way == "truth" else f"{number * reads(way) / 1000:.1f} ±{wide * reads(way) / 1000:.1f}"
        rows.append([way, f"{number:.0f} ±{wide:.0f}", f"{share:.2f} ±{share * spread:.2f}", cost])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--quick", action="store_true", help="8 made-up queries, one world")
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--judges", nargs="*", default=["medium", "noisy"], choices=list(JUDGES))
    parser.add_argument("--out", type=Path, help="where the table goes, too")
    given = parser.parse_args()
    made = given.quick or given.data is None
    queries: Sequence[Query] = synthetic_queries(8, 1) if made else load_queries(given.data)
    worlds = range(1, 2 if given.quick else given.worlds + 1)
    about = f"{len(queries)} queries, {len(worlds)} worlds of each, {PAIRS} pairs of systems in each."
    head = ["judge", "systems", "gains", "questions needed", "of what grades need", "thousand passages read in all"]
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
        title = (__doc__ or "").partition("\n")[0].rstrip(".")
        given.out.write_text(f"# {title}\n\n`python benchmarks/utilities.py`: " + "\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
