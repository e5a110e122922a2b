"""Compare lists of five with `batch_size: auto`, at equal numbers of passages read.

    python benchmarks/economy.py --data FOLDER --out benchmarks/results/economy.md     about ten minutes on two cores
    python benchmarks/economy.py --quick                                              synthetic queries, a minute

Pools and true utilities are those of `ranking.py` (ranking_worlds.py). The judges differ in their sharpness at the end
of a list. No judge follows the curve that the engine fits. Some are less sharp at each later pick (a hyperbola), and
one orders four passages and returns the rest as shown. Two judges have a position bias. One judge has a fixed outcome
for each pair, and so repeats its errors.

Each world of a judge has its own pilot of twelve queries. The first lists of these queries determine the judge profile
that all rankings of that world use. The passages that the pilot reads are not counted, because in a run they are the
first round of its queries.

With `--ways own-bias`, each query estimates the position bias from its own answers; the rest of the profile is shared.
With `--ways auto known-top`, the pool consists of the true top only. This is an upper bound for a ranker that must find
the top.

Each figure is a mean over queries, and each query is the mean of its worlds. The figure after +- is the standard error.
Differences are paired.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the processes share the cores

import numpy as np
from ranking_worlds import (
    Ints,
    Judge,
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

from raggs.base.hashing import generator
from raggs.ranking import Profile, Ranker, make_ranker
from raggs.ranking.profile import fit_profile

TOP = 20
PILOTS = 12
READS = (100, 200)
WAYS = ("5", "auto", "own-bias", "known-top")
Care = Callable[[int, int], float]  # relative sharpness, by pick (from 0) and length of the list
SHOWN = ("tau", "tau20", "ov20", "ov10")


@dataclass(frozen=True)
class Kind:
    """A simulated judge.

    Attributes:
        beta: sharpness at the first pick.
        care: sharpness at each pick, relative to the first.
        copies: number of passages that the judge orders; it returns the rest as shown.
        position: advantage of the first passage of a list over the last, in grades.
        fixed: whether each pair has a fixed outcome (`ranking_worlds.Judge`). Care and position then have no effect.
    """

    beta: float
    care: Care
    copies: int = 99
    position: float = 0.0
    fixed: bool = False


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "sharp": Kind(6.0, lambda _pick, _length: 1.0),
        "medium": Kind(3.0, lambda _pick, _length: 1.0),
        "noisy": Kind(1.5, lambda _pick, _length: 1.0),
        "less careful at the end": Kind(3.0, lambda pick, _length: 1 / (1 + 0.05 * pick)),
        "much less careful at the end": Kind(3.0, lambda pick, _length: 1 / (1 + 0.4 * pick)),
        "copies the end": Kind(3.0, lambda _pick, _length: 1.0, copies=4),
        "less careful on long lists": Kind(3.0, lambda pick, length: (5 / length) ** 0.5 / (1 + 0.1 * pick)),
        "strong position bias": Kind(3.0, lambda _pick, _length: 1.0, position=1.2),
        "weak position bias": Kind(3.0, lambda _pick, _length: 1.0, position=0.4),
        "repeats its errors": Kind(3.0, lambda _pick, _length: 1.0, fixed=True),
    }
)


def judge_of(kind: Kind, world: World, seed: int, *names: object) -> Callable[[Ints], Ints]:
    """Return a function that orders a list: it picks the best of the remaining passages, again and again."""
    rng = generator(seed, "economy", world.qid, *names)
    fixed = make_judge(Judge(kind.beta, fixed=True), world, seed) if kind.fixed else None

    def order(shown: Ints) -> Ints:
        if fixed is not None and (settled := fixed(shown)) is not None:
            return settled
        left, found = list(range(shown.size)), list[int]()
        seen = world.utility[shown] + kind.position * np.linspace(1.0, 0.0, shown.size)
        while left:
            if len(found) >= kind.copies:
                found += left
                break
            care = kind.beta * kind.care(len(found), shown.size)
            found.append(left.pop(int(np.argmax(care * seen[left] + rng.gumbel(size=len(left))))))
        return np.asarray(shown[found])

    return order


def ranker_of(world: World, seed: int, size: int | None, calls: int) -> Ranker:
    return make_ranker(
        "bayes",
        world.ids,
        world.grades.tolist(),
        top=TOP,
        batch_size=size,
        seed=seed,
        max_calls=calls,
        saving=0.0,
    )


def profile_of(kind: Kind, queries: Sequence[Query], seed: int, *, position_bias: bool = True) -> Profile:
    """Return the judge profile from the pilot of a world, with or without the position bias."""
    drawn = generator(seed, "pilots").permutation(len(queries))[:PILOTS]
    pilots = []
    for query in (queries[at] for at in drawn):
        world = make_world(query, seed)
        ranker, order = ranker_of(world, seed, None, 80), judge_of(kind, world, seed, "pilot")
        answer(ranker, world, ranker.pilot_batches(), order)
        pilots.append(ranker.pilot())
    return fit_profile([replace(pilot, biased=position_bias) for pilot in pilots])


def answer(ranker: Ranker, world: World, batches: Sequence[Sequence[str]], order: Callable[[Ints], Ints]) -> float:
    """Let the judge order the batches of a round, and return the seconds that the judge took."""
    number = {name: at for at, name in enumerate(world.ids)}
    took = 0.0
    for batch in batches:
        began = time.process_time()
        ordered = order(np.array([number[name] for name in batch]))
        took += time.process_time() - began
        ranker.observe([world.ids[at] for at in ordered])
    return took


Values = dict[str, float]


def top_only(world: World) -> World:
    """Return the pool without the passages below the true top."""
    top = np.flatnonzero(true_places(world) < TOP)
    ids = tuple(world.ids[at] for at in top)
    return World(world.qid, ids, world.human[top], world.utility[top], world.grades[top])


def play(kind: Kind, world: World, seed: int, reads: int, profile: Profile | None) -> Values:
    """Return the measures of one ranking: with lists of five, or with a profile and adaptive lengths."""
    ranker = ranker_of(world, seed, None if profile else 5, reads // 5)
    order = judge_of(kind, world, seed, "auto" if profile else "five", reads)
    began, lengths = time.process_time(), Counter[int]()
    if profile is not None:
        ranker.believe(profile)
    judging = 0.0
    while not ranker.done:
        batches = ranker.next_batches(4)
        lengths.update(map(len, batches))
        judging += answer(ranker, world, batches, order)
    ranking = ranker.ranking()
    seconds = time.process_time() - began - judging
    place = {name: at for at, name in enumerate(world.ids)}
    line = np.array([place[name] for name in ranking.order])
    true = true_places(world)
    head = true[line[:TOP]]
    wrong = sum(int(head[at] > head[after]) for at in range(TOP) for after in range(at + 1, TOP))
    locks = [(place[lock.winner], place[lock.loser]) for lock in ranking.locks]
    return {
        **measures(world, line, TOP),
        "expected": ranking.expected_inversions,
        "wrong": wrong,
        "locks": len(locks),
        "false": sum(true[winner] > true[loser] for winner, loser in locks),
        "ms": 1000 * seconds / max(ranking.calls, 1),
        "calls": ranking.calls,
        "mean length": sum(size * count for size, count in lengths.items()) / max(lengths.total(), 1),
    }


Task = tuple[str, Query, int, int, str, Profile | None]


def _played(task: Task) -> Values:
    kind, query, seed, reads, way, profile = task
    world = make_world(query, seed)
    return play(KINDS[kind], top_only(world) if way == "known-top" else world, seed, reads, profile)


def _profile(task: tuple[str, Sequence[Query], int, str]) -> Profile | None:
    kind, queries, seed, way = task
    return None if way == "5" else profile_of(KINDS[kind], queries, seed, position_bias=way != "own-bias")


def compared(
    kind: str,
    queries: Sequence[Query],
    worlds: Sequence[int],
    reads_allowed: Sequence[int],
    ways: Sequence[str],
    pool: ProcessPoolExecutor,
) -> Iterator[tuple[int, str, list[Values]]]:
    """Yield reads, way, and the values of each query as means over its worlds."""
    profiles = {way: list(pool.map(_profile, [(kind, queries, seed, way) for seed in worlds])) for way in ways}
    for reads in reads_allowed:
        for way in ways:
            tasks: list[Task] = [
                (kind, query, seed, reads, way, profile)
                for query in queries
                for seed, profile in zip(worlds, profiles[way], strict=True)
            ]
            played = list(pool.map(_played, tasks, chunksize=4))
            each = [played[at : at + len(worlds)] for at in range(0, len(played), len(worlds))]
            yield reads, way, [{name: float(np.mean([one[name] for one in own])) for name in own[0]} for own in each]


def table(kind: str, found: Sequence[tuple[int, str, list[Values]]]) -> Iterator[str]:
    """Yield the rows of one judge, with the paired difference in tau20 from the first way."""
    first: dict[int, list[Values]] = {}
    for reads, _, rows in found:
        first.setdefault(reads, rows)
    for reads, way, rows in found:
        cells = [f"{mean(rows, name):.3f} ± {error([row[name] for row in rows]):.3f}" for name in SHOWN]
        gains = [row["tau20"] - other["tau20"] for row, other in zip(rows, first[reads], strict=True)]
        gain = f"{np.mean(gains):+.3f} ± {error(gains):.3f}" if rows is not first[reads] else ""
        ratio = f"{mean(rows, 'expected') / mean(rows, 'wrong'):.2f}"
        false = f"{mean(rows, 'false') / max(mean(rows, 'locks'), 1e-9):.2%}"
        tail = [gain, ratio, false, f"{mean(rows, 'mean length'):.1f}", f"{mean(rows, 'ms'):.1f}"]
        yield "| " + " | ".join([kind, str(reads), way, *cells, *tail]) + " |"


def mean(rows: Sequence[Values], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))


def error(values: Sequence[float]) -> float:
    """Return the standard error of a mean."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


HEAD = (
    "judge",
    "passages read",
    "lists",
    *SHOWN,
    "gain in tau20",
    "inversions, expected / actual",
    "false locks",
    "mean length",
    "ms per call",
)


def main() -> int:
    parser = world_options(__doc__, "8 synthetic queries", worlds=4)
    parser.add_argument("--reads", nargs="*", type=int, default=READS, help="passages read per pool [default: 100 200]")
    parser.add_argument(
        "--ways", nargs="*", default=WAYS[:2], choices=WAYS, help="list lengths; the first is the baseline"
    )
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS), help="judges [default: all]")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    queries = half_of_queries(given, 8)
    worlds = worlds_of(given)
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    print("\n".join(lines), flush=True)
    with ProcessPoolExecutor(given.processes) as pool:
        for kind in given.kinds:
            rows = list(table(kind, list(compared(kind, queries, worlds, given.reads, given.ways, pool))))
            print("\n".join(rows), flush=True)
            lines += rows
    if given.out:
        text = given.out.read_text() if given.out.exists() else ""
        begin, end = "<!-- begin: tables -->", "<!-- end: tables -->"
        note = f"{len(queries)} {given.parity} queries, {len(worlds)} worlds per query."
        body = "\n".join([begin, "", note, "", *lines, "", end])
        before, _, rest = text.partition(begin)
        given.out.write_text(before + body + rest.partition(end)[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
