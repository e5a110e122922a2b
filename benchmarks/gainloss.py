"""What the default settings of the rank stage lose and cost, and how far two seeds agree on a settled top.

    python benchmarks/gainloss.py --data FOLDER          a quarter of an hour; FOLDER as of ranking.py
    python benchmarks/gainloss.py --quick                made-up queries, under a minute

Two sets: queries of the labelled collection, and made-up ones with 1 to 5 useful passages in a pool of 40. Pools,
truth and judges are those of `ranking.py` (ranking_worlds.py). A query without a grade of 3 or more is not ranked, as
in a run. Each world is ranked twice, with two seeds.

The gain-weighted loss is defined in docs/project/benchmarks-search-and-cost.md, here by true utilities. "DCG lost"
weighs the same gains by the discount of their rank, as nDCG does before normalisation. The script loads only
`make_ranker` of raggs, so it can also measure an older version:
PYTHONPATH=CHECKOUT python benchmarks/gainloss.py ... --least 1.

`--cap N` with `--saving 0` gives the loss at equal numbers of calls. `--oracle` gives a bound: the engine is told which
passages deserve more than grade 1, compares only these, and puts the others below them without a call.

A mean is taken over queries, each the mean of its worlds and seeds; +- is its standard error.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
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
)

from raggs.ranking import Ranking, make_ranker

TOP = 20
SEEDS = (1, 2)
AGREEMENT = 0.95
USELESS = 1.5
Values = Mapping[str, float]


def gain_loss(utilities: Floats, top: int = TOP) -> float:
    """Gain that inverted pairs lose, whose upper passage is in the top; utilities in ranked order."""
    gains = np.maximum(utilities - USELESS, 0.0)
    return float(np.triu(np.maximum(gains[None, :] - gains[:, None], 0.0), k=1)[:top].sum())


def dcg_lost(utilities: Floats, top: int = TOP) -> float:
    """DCG of the best order less that of this one."""
    gains = np.maximum(utilities - USELESS, 0.0)
    discounts = 1.0 / np.log2(np.arange(2, 2 + min(top, gains.size)))
    return float((np.sort(gains)[::-1][: discounts.size] - gains[: discounts.size]) @ discounts)


class Setting(NamedTuple):
    """How each world is ranked.

    Attributes:
        least: grade that a query needs to be ranked.
        cap: calls of a ranking, at most.
        oracle: whether the engine is told which passages are useful.
        options: of the engine.
    """

    least: int
    cap: int
    oracle: bool
    options: Mapping[str, float]


def ranked(world: World, kind: str, seed: int, setting: Setting) -> Ranking:
    """One ranking, with its own draw of the judge's errors."""
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
    """Means over both seeds of a world; None if its query is not ranked."""
    world = make_world(query, world_seed)
    if world.grades.max() < setting.least or (setting.oracle and (world.utility >= USELESS).sum() < 2):
        return None
    truth = dict(zip(world.ids, world.utility.tolist(), strict=True))
    found = [ranked(world, kind, 1000 * world_seed + seed, setting) for seed in SEEDS]
    rest = [(set(truth) - set(each.order)) for each in found]
    lines = [np.array([truth[name] for name in (*each.order, *more)]) for each, more in zip(found, rest, strict=True)]
    settled = [
        (getattr(each, "agreement", None) or 0.0) >= AGREEMENT and each.stop_reason not in ("cap",) for each in found
    ]
    tops = [set(each.order[:TOP]) for each in found]
    return {
        "calls": float(np.mean([each.calls for each in found])),
        "cap": float(np.mean([each.stop_reason == "cap" for each in found])),
        "loss": float(np.mean([gain_loss(line) for line in lines])),
        "dcg": float(np.mean([dcg_lost(line) for line in lines])),
        "settled": float(np.mean(settled)),
        "both": float(all(settled)),
        "either": float(any(settled)),
        "agree": len(tops[0] & tops[1]) / len(tops[0]),
        "predicted": float(np.mean([getattr(each, "agreement", None) or np.nan for each in found])),
    }


def _task(task: tuple[Query, str, int], setting: Setting) -> Values | None:
    return measured(*task, setting)


def rows(
    name: str, queries: Sequence[Query], kind: str, worlds: Sequence[int], found: Sequence[Values | None]
) -> Iterator[str]:
    """The row of a set and judge in both tables."""
    ranked_only = [each for each in found if each is not None]
    calls = np.array([0.0 if each is None else each["calls"] for each in found]).reshape(len(queries), len(worlds))
    cells = [name, kind, f"{len(ranked_only)} of {len(found)}", spread(calls.mean(axis=1))]
    cells += [f"{mean(ranked_only, 'cap'):.0%}"]
    cells += [spread(by_query(queries, worlds, found, measure)) for measure in ("loss", "dcg")]
    yield "| " + " | ".join(cells) + " |"
    both = [each["agree"] for each in ranked_only if each["either"]]
    others = [each["agree"] for each in ranked_only if not each["either"]]
    shown = [f"{mean(ranked_only, 'settled'):.0%}", spread(np.array(both)), spread(np.array(others))]
    predicted = f"{mean(ranked_only, 'predicted'):.3f} / {mean(ranked_only, 'agree'):.3f}"
    yield "| " + " | ".join([name, kind, *shown, predicted]) + " |"


def by_query(queries: Sequence[Query], worlds: Sequence[int], found: Sequence[Values | None], measure: str) -> Floats:
    """A measure's mean over the ranked worlds of each query that has one."""
    each = [found[at : at + len(worlds)] for at in range(0, len(queries) * len(worlds), len(worlds))]
    kept = [[one[measure] for one in own if one is not None] for own in each]
    return np.array([np.mean(own) for own in kept if own])


def mean(found: Sequence[Values], measure: str) -> float:
    return float(np.mean([each[measure] for each in found]))


def spread(values: Floats) -> str:
    """A mean and its standard error."""
    if values.size < 2:
        return "-"
    return f"{values.mean():.3g} ±{values.std(ddof=1) / np.sqrt(values.size):.2g}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--quick", action="store_true", help="4 made-up queries of each set, one world")
    parser.add_argument("--parity", choices=("odd", "even"), default="odd", help="which half of the queries")
    parser.add_argument("--worlds", type=int, default=2)
    parser.add_argument("--judges", nargs="*", default=["sharp", "medium", "noisy"], choices=list(JUDGES))
    parser.add_argument("--least", type=int, default=3, help="grade that a query needs to be ranked")
    parser.add_argument("--saving", type=float, help="option of the engine (default: its own)")
    parser.add_argument("--cap", type=int, default=80, help="calls of a ranking, at most")
    parser.add_argument("--oracle", action="store_true", help="tell the engine which passages are useful")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    given = parser.parse_args()
    odd, count = given.parity == "odd", 8 if given.quick else 60
    whole = synthetic_queries(count, 1) if given.quick or given.data is None else load_queries(given.data)
    sets = {"labelled": whole, "few relevant": scarce_queries(count, 1)}
    worlds = range(1, 2 if given.quick else given.worlds + 1)
    options = {} if given.saving is None else {"saving": given.saving}
    setting = Setting(given.least, given.cap, given.oracle, options)
    print("| set | judge | ranked | calls | at the cap | gain-weighted loss | DCG lost |", "|" + "---|" * 7, sep="\n")
    second = [
        "| set | judge | settled | agreement, settled | agreement, others | predicted / actual |",
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
