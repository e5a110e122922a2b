"""What `rank.floor` saves and costs: passages below a grade left to grade and chance, against all of them ordered.

    python benchmarks/floor.py --data FOLDER --parity odd     some minutes; FOLDER as of ranking.py

Pools, truth and judges are those of `ranking.py` (ranking_worlds.py): a stage grade is one off one time in four, so
that passages below the floor may deserve to stand above some that are ordered. Below the floor a run orders by grade
and fused rank; these pools have no fused rank, and equals stand there by chance, which is the worse case. Each ranking
is played once, with 80 calls allowed, and looked at on the way. The loss is the gain-weighted one of
docs/project/benchmarks-search-and-cost.md, "DCG lost" the same gains by the discount of their rank (gainloss.py).

A mean is taken over queries, each the mean of its worlds; +- is its standard error, and differences are paired.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the processes share the cores

import numpy as np
from gainloss import dcg_lost, gain_loss
from ranking_worlds import (
    JUDGES,
    Ask,
    Query,
    World,
    load_queries,
    make_judge,
    make_world,
    measures,
    synthetic_queries,
    true_places,
)

from raggs.ranking import Ranker, make_ranker

TOP = 20
LOOKS = (20, 40, 80)
FLOORS = (1, 2, 3)
SHOWN = ("loss", "dcg", "tau20", "ov20", "ov10", "calls")
SIGNS = {"loss": "gain-weighted loss", "dcg": "DCG lost", "calls": "calls used"}
Values = dict[str, float]
Task = tuple[str, Query, int, int]


def filled(world: World, floor: int, ranked: Sequence[str]) -> list[int]:
    """The whole pool: what was ordered, then the others by grade; equals as the ids fall."""
    number = {name: at for at, name in enumerate(world.ids)}
    below = [at for at in range(len(world.ids)) if world.grades[at] < floor]
    return [*(number[name] for name in ranked), *sorted(below, key=lambda at: -world.grades[at])]


def looked(world: World, floor: int, ranked: Sequence[str], calls: int) -> Values:
    """The measures of an order at a look."""
    order = np.array(filled(world, floor, ranked))
    utilities = world.utility[order]
    found = {"loss": gain_loss(utilities, TOP), "dcg": dcg_lost(utilities, TOP), "calls": float(calls)}
    return {**measures(world, order, TOP), **found}


def played(task: Task) -> dict[int, Values]:
    """One ranking, by calls allowed."""
    kind, query, seed, floor = task
    world = make_world(query, seed)
    ask = make_judge(JUDGES[kind], world, seed, floor)
    kept = [at for at in range(len(world.ids)) if world.grades[at] >= floor]
    if len(kept) < 2:
        return {look: looked(world, floor, [world.ids[at] for at in kept], 0) for look in LOOKS}
    ranker = make_ranker(
        "bayes",
        [world.ids[at] for at in kept],
        [world.grades[at] for at in kept],
        top=TOP,
        seed=seed,
        max_calls=LOOKS[-1],
    )
    return dict(_looks(ranker, world, ask, floor))


def _looks(ranker: Ranker, world: World, ask: Ask, floor: int) -> Iterator[tuple[int, Values]]:
    number, asked, looks = {name: at for at, name in enumerate(world.ids)}, 0, list(LOOKS)
    while not ranker.done:
        for batch in ranker.next_batches(4):
            asked += 1
            order = ask(np.array([number[name] for name in batch]))
            ranker.skip(batch) if order is None else ranker.observe([world.ids[at] for at in order])
        while looks and asked >= looks[0]:
            yield looks.pop(0), looked(world, floor, ranker.ranking().order, asked)
    for look in looks:
        yield look, looked(world, floor, ranker.ranking().order, asked)


def below(queries: Sequence[Query], worlds: Sequence[int]) -> Values:
    """Of the passages of grade 1: how many there are, and how many of them truly belong to the top, a pool."""
    each = [make_world(query, seed) for query in queries for seed in worlds]
    ones = [world.grades < 2 for world in each]
    lost = [one & (true_places(world) < TOP) & (world.human > 1) for world, one in zip(each, ones, strict=True)]
    head = [one & (true_places(world) < TOP) for world, one in zip(each, ones, strict=True)]
    fill = [max(0, TOP - int((~one).sum())) for one in ones]
    names = ("of grade 1", "of these truly in the top", "of these graded one too low", "places of the top to fill")
    found = (*([float(one.sum()) for one in each] for each in (ones, head, lost)), [float(one) for one in fill])
    return {name: float(np.mean(values)) for name, values in zip(names, found, strict=True)}


def gathered(kind: str, queries: Sequence[Query], worlds: Sequence[int], pool: ProcessPoolExecutor) -> Iterator[str]:
    """Rows of a judge."""
    rows: dict[int, list[dict[int, Values]]] = {}
    for floor in FLOORS:
        tasks: list[Task] = [(kind, query, seed, floor) for query in queries for seed in worlds]
        rows[floor] = list(pool.map(played, tasks, chunksize=4))
    for look in LOOKS:
        means = {
            floor: {name: _means([row[look][name] for row in found], len(worlds)) for name in SHOWN}
            for floor, found in rows.items()
        }
        for floor, values in means.items():
            cells = [f"{np.mean(values[name]):.3f} ±{_error(values[name]):.3f}" for name in SHOWN]
            yield "| " + " | ".join([kind, str(look), str(floor), *cells]) + " |"
        for floor in FLOORS[1:]:
            cells = [_gain(means[floor][name] - means[FLOORS[0]][name]) for name in SHOWN]
            yield "| " + " | ".join([kind, str(look), f"{floor} less {FLOORS[0]}", *cells]) + " |"


def _means(values: Sequence[float], worlds: int) -> np.ndarray:
    return np.asarray(values).reshape(-1, worlds).mean(axis=1)


def _gain(values: np.ndarray) -> str:
    return f"{np.mean(values):+.3f} ±{_error(values):.3f}"


def _error(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(values.size))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--quick", action="store_true", help="4 made-up queries, one world")
    parser.add_argument("--parity", choices=("odd", "even"), default="odd", help="which half of the queries")
    parser.add_argument("--worlds", type=int, default=2)
    parser.add_argument("--judges", nargs="*", default=["sharp", "medium", "noisy"], choices=list(JUDGES))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    given = parser.parse_args()
    queries = synthetic_queries(4, 1) if given.quick or given.data is None else load_queries(given.data)
    if given.data is not None and not given.quick:
        queries = [query for query in queries if query.number % 2 == (given.parity == "odd")]
    worlds = range(1, 2 if given.quick else given.worlds + 1)
    told = ", ".join(f"{name} {value:.2f}" for name, value in below(queries, worlds).items())
    print(f"{len(queries)} {given.parity} queries, {len(worlds)} worlds of each; passages a pool: {told}\n")
    head = ["judge", "calls allowed", "floor", *(SIGNS.get(name, name) for name in SHOWN)]
    print("| " + " | ".join(head) + " |", "|" + "---|" * len(head), sep="\n", flush=True)
    with ProcessPoolExecutor(given.processes) as pool:
        for kind in given.judges:
            print("\n".join(gathered(kind, queries, worlds, pool)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
