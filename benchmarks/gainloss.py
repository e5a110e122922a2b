"""Measure loss and calls of the rank stage with its default settings, and the agreement of two seeds on the top.

    python benchmarks/gainloss.py --data FOLDER          a quarter of an hour; FOLDER as in ranking.py
    python benchmarks/gainloss.py --quick                synthetic queries, under a minute

There are two sets of queries: the labelled collection, and synthetic queries with 1 to 5 useful passages in a pool of
40. Pools, true utilities and judges are those of `ranking.py` (ranking_worlds.py). As in a run, a query without a grade
of 3 or more is not ranked. Each world is ranked twice, with two seeds.

The gain-weighted loss is defined in docs/reference/ranking-model.md, and computed from the true utilities here. The
loss of DCG weights the same gains by the discounts of their ranks. The script imports only `make_ranker` from raggs. So
you can measure an older version: PYTHONPATH=CHECKOUT python benchmarks/gainloss.py ... --least 1.

`--cap N` with `--saving 0` gives the loss at equal numbers of calls. `--oracle` gives a lower bound of the loss:
the engine knows the passages that deserve more than grade 1, and compares only these. The others follow below them.

Each figure is a mean over queries, and each query is the mean of its worlds and seeds. The figure after +- is the
standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the processes share the cores

import numpy as np
from ranking_worlds import (
    JUDGES,
    Floats,
    Query,
    World,
    load_queries,
    make_judge,
    make_world,
    scarce_queries,
    synthetic_queries,
    world_options,
    worlds_of,
)

from raggs.ranking import Ranking, make_ranker

TOP = 20
SEEDS = (1, 2)
AGREEMENT = 0.95
USELESS = 1.5
Values = Mapping[str, float]


def gain_loss(utilities: Floats, top: int = TOP) -> float:
    """Return the gain lost by inversions whose upper passage is in the top; utilities are in ranked order."""
    gains = np.maximum(utilities - USELESS, 0.0)
    return float(np.triu(np.maximum(gains[None, :] - gains[:, None], 0.0), k=1)[:top].sum())


def dcg_lost(utilities: Floats, top: int = TOP) -> float:
    """Return the DCG of the best order minus that of this order."""
    gains = np.maximum(utilities - USELESS, 0.0)
    discounts = 1.0 / np.log2(np.arange(2, 2 + min(top, gains.size)))
    return float((np.sort(gains)[::-1][: discounts.size] - gains[: discounts.size]) @ discounts)


class Setting(NamedTuple):
    """Settings of the rankings.

    Attributes:
        least: minimum best grade of a ranked query.
        cap: maximum number of calls per ranking.
        oracle: whether the engine knows the useful passages.
        options: options of the engine.
    """

    least: int
    cap: int
    oracle: bool
    options: Mapping[str, float]


def ranked(world: World, kind: str, seed: int, setting: Setting) -> Ranking:
    """Return one ranking; the judge's errors depend on its seed."""
    ask, number = make_judge(JUDGES[kind], world, seed, "gainloss"), {name: at for at, name in enumerate(world.ids)}
    pool = [at for at in range(len(world.ids)) if not setting.oracle or world.utility[at] >= USELESS]
    ids, grades = [world.ids[at] for at in pool], [float(world.grades[at]) for at in pool]
    ranker = make_ranker("bayes", ids, grades, top=TOP, seed=seed, max_calls=setting.cap, **setting.options)
    while not ranker.done:
        for batch in ranker.next_batches(4):
            order = ask(np.array([number[name] for name in batch]))
            ranker.skip(batch) if order is None else ranker.observe([world.ids[at] for at in order])
    return ranker.ranking()


def measured(query: Query, kind: str, world_seed: int, setting: Setting) -> Values | None:
    """Return means over both seeds of a world; None if its query is not ranked."""
    world = make_world(query, world_seed)
    if world.grades.max() < setting.least or (setting.oracle and (world.utility >= USELESS).sum() < 2):
        return None
    truth = dict(zip(world.ids, world.utility.tolist(), strict=True))
    found = [ranked(world, kind, 1000 * world_seed + seed, setting) for seed in SEEDS]
    rest = [(set(truth) - set(each.order)) for each in found]
    lines = [np.array([truth[name] for name in (*each.order, *more)]) for each, more in zip(found, rest, strict=True)]
    stable = [
        (getattr(each, "agreement", None) or 0.0) >= AGREEMENT and each.stop_reason not in ("cap",) for each in found
    ]
    tops = [set(each.order[:TOP]) for each in found]
    return {
        "calls": float(np.mean([each.calls for each in found])),
        "cap": float(np.mean([each.stop_reason == "cap" for each in found])),
        "loss": float(np.mean([gain_loss(line) for line in lines])),
        "dcg": float(np.mean([dcg_lost(line) for line in lines])),
        "stable": float(np.mean(stable)),
        "both": float(all(stable)),
        "either": float(any(stable)),
        "agree": len(tops[0] & tops[1]) / len(tops[0]),
        "predicted": float(np.mean([getattr(each, "agreement", None) or np.nan for each in found])),
    }


def _task(task: tuple[Query, str, int], setting: Setting) -> Values | None:
    return measured(*task, setting)


def rows(
    name: str, queries: Sequence[Query], kind: str, worlds: Sequence[int], found: Sequence[Values | None]
) -> Iterator[str]:
    """Yield the rows of a set and judge for both tables."""
    ranked_only = [each for each in found if each is not None]
    calls = np.array([0.0 if each is None else each["calls"] for each in found]).reshape(len(queries), len(worlds))
    cells = [name, kind, f"{len(ranked_only)} of {len(found)}", spread(calls.mean(axis=1))]
    cells += [f"{mean(ranked_only, 'cap'):.0%}"]
    cells += [spread(by_query(queries, worlds, found, measure)) for measure in ("loss", "dcg")]
    yield "| " + " | ".join(cells) + " |"
    both = [each["agree"] for each in ranked_only if each["either"]]
    others = [each["agree"] for each in ranked_only if not each["either"]]
    shown = [f"{mean(ranked_only, 'stable'):.0%}", spread(np.array(both)), spread(np.array(others))]
    predicted = f"{mean(ranked_only, 'predicted'):.3f} / {mean(ranked_only, 'agree'):.3f}"
    yield "| " + " | ".join([name, kind, *shown, predicted]) + " |"


def by_query(queries: Sequence[Query], worlds: Sequence[int], found: Sequence[Values | None], measure: str) -> Floats:
    """Return the mean of a measure over the ranked worlds of each query that has one."""
    each = [found[at : at + len(worlds)] for at in range(0, len(queries) * len(worlds), len(worlds))]
    kept = [[one[measure] for one in own if one is not None] for own in each]
    return np.array([np.mean(own) for own in kept if own])


def mean(found: Sequence[Values], measure: str) -> float:
    return float(np.mean([each[measure] for each in found]))


def spread(values: Floats) -> str:
    """Return a mean and its standard error as text."""
    if values.size < 2:
        return "-"
    return f"{values.mean():.3g} ± {values.std(ddof=1) / np.sqrt(values.size):.2g}"


def main() -> int:
    parser = world_options(__doc__, "4 queries per set")
    judges = ["sharp", "medium", "noisy"]
    parser.add_argument("--judges", nargs="*", default=judges, choices=list(JUDGES), help="judges [default: three]")
    parser.add_argument("--least", type=int, default=3, help="minimum best grade of a ranked query [default: 3]")
    parser.add_argument("--saving", type=float, help="option `saving` of the engine [default: that of the engine]")
    parser.add_argument("--cap", type=int, default=80, help="maximum number of calls per ranking [default: 80]")
    parser.add_argument("--oracle", action="store_true", help="let the engine know the useful passages")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="number of processes")
    given = parser.parse_args()
    odd, count = given.parity == "odd", 8 if given.quick else 60
    whole = synthetic_queries(count, 1) if given.quick or given.data is None else load_queries(given.data)
    sets = {"labelled": whole, "few relevant": scarce_queries(count, 1)}
    worlds = worlds_of(given)
    options = {} if given.saving is None else {"saving": given.saving}
    setting = Setting(given.least, given.cap, given.oracle, options)
    print(
        "| set | judge | ranked | calls | at the maximum | gain-weighted loss | loss of DCG |",
        "|" + "---|" * 7,
        sep="\n",
    )
    second = [
        "| set | judge | stable tops | agreement, stable | agreement, others | expected / actual agreement |",
        "|" + "---|" * 6,
    ]
    with ProcessPoolExecutor(given.processes) as pool:
        for name, each in sets.items():
            queries = [query for query in each if query.number % 2 == odd]
            for kind in given.judges:
                tasks = [(query, kind, world) for query in queries for world in worlds]
                found = list(pool.map(partial(_task, setting=setting), tasks, chunksize=4))
                first, other = rows(name, queries, kind, worlds, found)
                print(first, flush=True)
                second.append(other)
    print("", *second, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
