"""Measure the calls that `rank.floor` saves, and the order that it loses.

    python benchmarks/floor.py --data FOLDER --parity odd     several minutes; FOLDER as in ranking.py

Pools, true utilities and judges are those of `ranking.py` (ranking_worlds.py). A grade is off by one in a quarter of
the cases. So some passages below the floor belong above some that are ordered. Below the floor, a run orders by grade
and fused rank. These pools have no fused rank, and passages with equal grades are in random order, which is the worse
case. Each ranking has at most 80 calls, and is measured after 20, 40 and 80. The gain-weighted loss is defined in
docs/reference/ranking-model.md. The loss of DCG weights the same gains by the discounts of their ranks (gainloss.py).

Each figure is a mean over queries, and each query is the mean of its worlds. The figure after +- is the standard error.
Differences are paired.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the processes share the cores

import numpy as np
from gainloss import dcg_lost, gain_loss
from ranking_worlds import (
    JUDGES,
    Ask,
    Query,
    World,
    half_of_queries,
    make_judge,
    make_world,
    measures,
    true_places,
    world_options,
    worlds_of,
)

from raggs.ranking import Ranker, make_ranker

TOP = 20
LOOKS = (20, 40, 80)
FLOORS = (1, 2, 3)
SHOWN = ("loss", "dcg", "tau20", "ov20", "ov10", "calls")
SIGNS = {"loss": "gain-weighted loss", "dcg": "loss of DCG", "calls": "calls used"}
Values = dict[str, float]
Task = tuple[str, Query, int, int]


def filled(world: World, floor: int, ranked: Sequence[str]) -> list[int]:
    """Return the whole pool: the ranked passages, then the others by grade, ties by id."""
    number = {name: at for at, name in enumerate(world.ids)}
    below = [at for at in range(len(world.ids)) if world.grades[at] < floor]
    return [*(number[name] for name in ranked), *sorted(below, key=lambda at: -world.grades[at])]


def looked(world: World, floor: int, ranked: Sequence[str], calls: int) -> Values:
    """Return the measures of an order after so many calls."""
    order = np.array(filled(world, floor, ranked))
    utilities = world.utility[order]
    found = {"loss": gain_loss(utilities, TOP), "dcg": dcg_lost(utilities, TOP), "calls": float(calls)}
    return {**measures(world, order, TOP), **found}


def played(task: Task) -> dict[int, Values]:
    """Return the measures of one ranking, by number of calls."""
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
    number, calls, looks = {name: at for at, name in enumerate(world.ids)}, 0, list(LOOKS)
    while not ranker.done:
        for batch in ranker.next_batches(4):
            calls += 1
            order = ask(np.array([number[name] for name in batch]))
            ranker.skip(batch) if order is None else ranker.observe([world.ids[at] for at in order])
        while looks and calls >= looks[0]:
            yield looks.pop(0), looked(world, floor, ranker.ranking().order, calls)
    for look in looks:
        yield look, looked(world, floor, ranker.ranking().order, calls)


def below(queries: Sequence[Query], worlds: Sequence[int]) -> Values:
    """Return mean numbers of passages per pool: of grade 1, and how many of them belong to the true top."""
    each = [make_world(query, seed) for query in queries for seed in worlds]
    ones = [world.grades < 2 for world in each]
    lost = [one & (true_places(world) < TOP) & (world.human > 1) for world, one in zip(each, ones, strict=True)]
    head = [one & (true_places(world) < TOP) for world, one in zip(each, ones, strict=True)]
    fill = [max(0, TOP - int((~one).sum())) for one in ones]
    names = ("of grade 1", "of these in the true top", "of these graded one too low", "places of the top to fill")
    found = (*([float(one.sum()) for one in each] for each in (ones, head, lost)), [float(one) for one in fill])
    return {name: float(np.mean(values)) for name, values in zip(names, found, strict=True)}


def gathered(kind: str, queries: Sequence[Query], worlds: Sequence[int], pool: ProcessPoolExecutor) -> Iterator[str]:
    """Yield the rows of a judge."""
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
            cells = [f"{np.mean(values[name]):.3f} ± {_error(values[name]):.3f}" for name in SHOWN]
            yield "| " + " | ".join([kind, str(look), str(floor), *cells]) + " |"
        for floor in FLOORS[1:]:
            cells = [_gain(means[floor][name] - means[FLOORS[0]][name]) for name in SHOWN]
            yield "| " + " | ".join([kind, str(look), f"{floor} minus {FLOORS[0]}", *cells]) + " |"


def _means(values: Sequence[float], worlds: int) -> np.ndarray:
    return np.asarray(values).reshape(-1, worlds).mean(axis=1)


def _gain(values: np.ndarray) -> str:
    return f"{np.mean(values):+.3f} ± {_error(values):.3f}"


def _error(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(values.size))


def main() -> int:
    parser = world_options(__doc__, "4 synthetic queries")
    judges = ["sharp", "medium", "noisy"]
    parser.add_argument("--judges", nargs="*", default=judges, choices=list(JUDGES), help="judges [default: three]")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="number of processes")
    given = parser.parse_args()
    queries = half_of_queries(given, 4)
    worlds = worlds_of(given)
    counts = ", ".join(f"{value:.2f} {name}" for name, value in below(queries, worlds).items())
    print(f"{len(queries)} {given.parity} queries, worlds per query: {len(worlds)}. Passages per pool: {counts}.\n")
    head = ["judge", "maximum calls", "floor", *(SIGNS.get(name, name) for name in SHOWN)]
    print("| " + " | ".join(head) + " |", "|" + "---|" * len(head), sep="\n", flush=True)
    with ProcessPoolExecutor(given.processes) as pool:
        for kind in given.judges:
            print("\n".join(gathered(kind, queries, worlds, pool)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
