"""Compare ranking methods at equal numbers of calls, with simulated judges.

    python benchmarks/ranking.py --quick            synthetic queries, under two minutes
    python benchmarks/ranking.py --data FOLDER --out benchmarks/results/ranking.md   human grades, thirty minutes

FOLDER contains corpus.jsonl, queries.jsonl and qrels.trec with grades 1 to 5. A query with at least 8 labelled passages
gives a pool of 40: the labelled ones and random others. The true utility is the human grade (1 if unlabelled) plus
normal noise of 0.35. The methods see a grade that is off by one with probability 0.25. Judges are simulated around the
true utilities (ranking_worlds.py). The methods are in ranking_methods.py, the tables in ranking_tables.py.

Queries are split by the parity of the number in their id. The odd half is reported, and the even half is for tuning
(--parity even). All figures but the times are reproducible with --seed. Each figure is a mean over queries, and each
query is the mean of its worlds. The figure after +- is the standard error.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the processes share the cores

import numpy as np
from ranking_methods import METHODS, Method, Snapshot, engine
from ranking_tables import BEGIN, END, Key, Plan, Played, Rows, Values, put_between_markers, report
from ranking_worlds import JUDGES, Query, World, load_queries, make_judge, make_world, measures, synthetic_queries

from raggs.base.hashing import generator
from raggs.ranking import Ranking

TOP = 20
BUDGETS = (20, 40, 80, 160)
SHOWN = (100, 200, 400)  # passages read, in the study of batch sizes
SIZES = (3, 5, 8, 10)
ROUNDS = (1, 4, 8)
CAP = 160  # maximum calls, in the study of stopping rules
ENDS = {"online": engine("online"), "bayes": engine("bayes"), "bayes patient": engine("bayes", saving=0.005)}


def play_query(query: Query, plan: Plan, worlds: int) -> Played:
    """Run all methods and judges on one query, and return the means over its worlds."""
    gathered: defaultdict[Key, list[Values]] = defaultdict(list)
    for seed in range(plan.seed, plan.seed + worlds):
        world = make_world(query, seed)
        for study, judge, name, method, budgets in _played(plan):
            ask = make_judge(JUDGES[judge], world, seed, judge, study, name)
            for snapshot in method(world, ask, budgets, generator(seed, query.qid, study, name)):
                gathered[Key(study, judge, name, snapshot.budget)].append(values(world, snapshot))
    return {
        key: {name: float(np.mean([v[name] for v in found])) for name in found[0]} for key, found in gathered.items()
    }


def _played(plan: Plan) -> Iterator[tuple[str, str, str, Method, Sequence[int]]]:
    for judge in plan.judges:
        for name, method in METHODS.items():
            yield "methods", judge, name, method, plan.budgets
        for name, method in ENDS.items():
            yield "stop", judge, name, method, (CAP,)
    for judge in [name for name in ("medium", "noisy") if plan.studies and name in plan.judges]:
        for size in SIZES:
            budgets = tuple(shown // size for shown in SHOWN)
            yield "batch", judge, f"{size} a call", engine("bayes", batch_size=size, saving=0.0), budgets
        for parallel in ROUNDS:
            yield "rounds", judge, f"rounds of {parallel}", engine("bayes", parallel=parallel, saving=0.0), (40, 80)


def values(world: World, snapshot: Snapshot) -> Values:
    """Return all measures of a snapshot; the measures of confidence require a ranking of an engine."""
    found = measures(world, snapshot.order, TOP) | {"calls": float(snapshot.calls)}
    found["ms"] = 1000 * snapshot.seconds / max(snapshot.calls, 1)
    return found if snapshot.ranking is None else found | confidence(world, snapshot.ranking)


def confidence(world: World, ranking: Ranking) -> Values:
    """Compare locks, expected inversions and rank intervals of a ranking with the true order."""
    number = {name: index for index, name in enumerate(world.ids)}
    order = np.array([number[name] for name in ranking.order])
    utility = world.utility[order]
    ranks = 1 + np.argsort(np.argsort(-utility, kind="stable"), kind="stable")
    inside = (np.array(ranking.rank_low) <= ranks) & (ranks <= np.array(ranking.rank_high))
    head = utility[:TOP]
    truth = dict(zip(world.ids, world.utility.tolist(), strict=True))
    by_score = order[np.argsort(-np.array(ranking.scores), kind="stable")]
    return {
        "locks": float(len(ranking.locks)),
        "wrong": float(sum(truth[lock.winner] < truth[lock.loser] for lock in ranking.locks)),
        "expected": ranking.expected_inversions,
        "actual": float((head[:, None] < head[None, :])[np.triu_indices(head.size, k=1)].sum()),
        "coverage": float(inside.mean()),
        "width": float((np.array(ranking.rank_high) - np.array(ranking.rank_low)).mean()),
        "topological": measures(world, order, TOP)["tau20"] - measures(world, by_score, TOP)["tau20"],
    }


def gather(queries: Sequence[Query], plan: Plan, worlds: int, jobs: int) -> Rows:
    """Return the values of all queries, in the order of the queries for any number of processes."""
    tasks = (queries, itertools.repeat(plan), itertools.repeat(worlds))
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        results = pool.map(play_query, *tasks) if pool else map(play_query, *tasks)
        played = list(_counted(results, len(queries)))
    rows: defaultdict[Key, list[Values]] = defaultdict(list)
    for found in played:
        for key, one in found.items():
            rows[key].append(one)
    return rows


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, help="folder with corpus.jsonl, queries.jsonl and qrels.trec [default: synthetic queries]"
    )
    parser.add_argument(
        "--out", type=Path, help=f"also write the tables to this file, between {BEGIN} and {END} if it exists"
    )
    parser.add_argument(
        "--parity", choices=("odd", "even", "all"), default="odd", help="half of the queries [default: odd]"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="use 12 queries, 1 world, 3 judges and at most 80 calls, without further studies",
    )
    parser.add_argument("--queries", type=int, help="maximum number of queries")
    parser.add_argument("--worlds", type=int, help="worlds per query [default: 4; with --quick 1]")
    parser.add_argument("--judges", help=f"judges, separated by commas: {', '.join(JUDGES)}".replace("%", "%%"))
    parser.add_argument("--seed", type=int, default=1, help="random seed [default: 1]")
    parser.add_argument(
        "--jobs", type=int, default=min(os.cpu_count() or 1, 8), help="number of processes [default: number of cores]"
    )
    options = parser.parse_args(arguments)
    options.judges = _judges(parser, options)
    if options.out and options.out.exists():
        try:
            put_between_markers(options.out.read_text(encoding="utf-8"), "")
        except ValueError as error:
            parser.error(f"{options.out}: {error}")
    return options


def _judges(parser: argparse.ArgumentParser, options: argparse.Namespace) -> tuple[str, ...]:
    if options.judges is None:
        return ("medium", "noisy", "self-consistent") if options.quick else tuple(JUDGES)
    named = tuple(name.strip() for name in options.judges.split(","))
    if unknown := [name for name in named if name not in JUDGES]:
        parser.error(f"unknown judge: {', '.join(unknown)}; use one of: {', '.join(JUDGES)}")
    return named


PARITY: dict[str, Callable[[Query], bool]] = {
    "odd": lambda query: query.number % 2 == 1,
    "even": lambda query: query.number % 2 == 0,
    "all": lambda _query: True,
}


def _counted(results: Iterable[Played], total: int) -> Iterator[Played]:
    """Print the progress if stderr is a terminal."""
    for done, result in enumerate(results, start=1):
        if sys.stderr.isatty():
            print(f"\r{done} of {total} queries", end="\n" if done == total else "", file=sys.stderr, flush=True)
        yield result


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    found = load_queries(options.data) if options.data else synthetic_queries(60, options.seed)
    queries = [query for query in found if PARITY[options.parity](query)]
    queries = queries[: options.queries or (12 if options.quick else None)]
    if not queries:
        sys.exit("no query has enough labelled passages; add labels to qrels.trec")
    worlds = options.worlds or (1 if options.quick else 4)
    plan = Plan(options.judges, BUDGETS[:3] if options.quick else BUDGETS, not options.quick, options.seed)
    began = time.perf_counter()
    rows = gather(queries, plan, worlds, options.jobs)
    seconds = time.perf_counter() - began
    half = "" if options.parity == "all" else f"{options.parity} "
    source = "a labelled collection" if options.data else "a synthetic collection"
    about = (
        f"{len(queries)} {half}queries of {source}, {worlds} worlds per query, seed {options.seed}; {seconds:.0f} s"
        f" with {options.jobs} processes, Python {platform.python_version()}, numpy {np.__version__}."
    )
    tables = report(rows, plan, about)
    print(tables)
    if options.out:
        page = options.out.read_text(encoding="utf-8") if options.out.exists() else f"{BEGIN}\n{END}\n"
        options.out.write_text(put_between_markers(page, tables), encoding="utf-8")


if __name__ == "__main__":
    main()
