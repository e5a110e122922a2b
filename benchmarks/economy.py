"""What lists of open length buy: the same passages read, by lists of five and by `batch_size: auto`.

    python benchmarks/economy.py --data FOLDER --out benchmarks/results/economy.md     some ten minutes on two cores
    python benchmarks/economy.py --quick                                              made-up queries, a minute

Pools and truth are those of `ranking.py` (ranking_worlds.py). Judges differ in how their care falls along a list; none
of them has the form that the engine fits: care falls by a hyperbola, or a judge orders four and leaves the rest as it
was shown; two favour the first passages of a list, and one has one outcome for each pair, so that it errs the same way
whenever it meets the pair again. Each world of a judge has a pilot of its own: twelve questions
of the half, whose first lists teach the profile that all rankings of that world then believe. What the pilot reads is
not counted, since in a run it is the first round of its own questions.

With `--ways alone` questions share all but the favour of places, which each learns by itself. With `--ways auto told`
a ranker is told which passages are the true top and reads nothing else: one that has to find them cannot be asked for
more.

A mean is taken over queries, each the mean of its worlds; +- is its standard error, and the difference is paired.
"""

from __future__ import annotations

import argparse
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
    load_queries,
    make_judge,
    make_world,
    measures,
    synthetic_queries,
    true_places,
)

from raggs.base.hashing import generator
from raggs.ranking import Profile, Ranker, make_ranker
from raggs.ranking.profile import fit_profile

TOP = 20
PILOTS = 12
READS = (100, 200)
WAYS = ("5", "auto", "alone", "told")
Care = Callable[[int, int], float]  # of the pick, from 0, and the length of the list
SHOWN = ("tau", "tau20", "ov20", "ov10")


@dataclass(frozen=True)
class Kind:
    """A judge.

    Attributes:
        beta: its sharpness at the first pick.
        care: how that falls.
        copies: from which pick on it leaves the list as it was shown.
        position: what the first of a list gains over the last, in grades.
        fixed: whether each pair has one outcome, as `ranking_worlds.Judge` has it; care and position play no part.
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
        "tires a little": Kind(3.0, lambda pick, _length: 1 / (1 + 0.05 * pick)),
        "tires much": Kind(3.0, lambda pick, _length: 1 / (1 + 0.4 * pick)),
        "copies the tail": Kind(3.0, lambda _pick, _length: 1.0, copies=4),
        "dull on long lists": Kind(3.0, lambda pick, length: (5 / length) ** 0.5 / (1 + 0.1 * pick)),
        "favours the first": Kind(3.0, lambda _pick, _length: 1.0, position=1.2),
        "favours it a little": Kind(3.0, lambda _pick, _length: 1.0, position=0.4),
        "repeats its errors": Kind(3.0, lambda _pick, _length: 1.0, fixed=True),
    }
)


def judge_of(kind: Kind, world: World, seed: int, *names: object) -> Callable[[Ints], Ints]:
    """Picks the best of those left, one after the other."""
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


def profile_of(kind: Kind, queries: Sequence[Query], seed: int, *, favour: bool = True) -> Profile:
    """What the pilot of a world teaches, with the favour of places or without."""
    drawn = generator(seed, "pilots").permutation(len(queries))[:PILOTS]
    pilots = []
    for query in (queries[at] for at in drawn):
        world = make_world(query, seed)
        ranker, order = ranker_of(world, seed, None, 80), judge_of(kind, world, seed, "pilot")
        answer(ranker, world, ranker.pilot_batches(), order)
        pilots.append(ranker.pilot())
    return fit_profile([replace(pilot, biased=favour) for pilot in pilots])


def answer(ranker: Ranker, world: World, batches: Sequence[Sequence[str]], order: Callable[[Ints], Ints]) -> float:
    """Observe answers to a round; the seconds that the judge took."""
    number = {name: at for at, name in enumerate(world.ids)}
    took = 0.0
    for batch in batches:
        began = time.process_time()
        said = order(np.array([number[name] for name in batch]))
        took += time.process_time() - began
        ranker.observe([world.ids[at] for at in said])
    return took


Values = dict[str, float]


def top_alone(world: World) -> World:
    """The pool without what is below the true top."""
    top = np.flatnonzero(true_places(world) < TOP)
    ids = tuple(world.ids[at] for at in top)
    return World(world.qid, ids, world.human[top], world.utility[top], world.grades[top])


def play(kind: Kind, world: World, seed: int, reads: int, profile: Profile | None) -> Values:
    """One ranking: with lists of five, or with a profile and lists of open length."""
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
    return play(KINDS[kind], top_alone(world) if way == "told" else world, seed, reads, profile)


def _taught(task: tuple[str, Sequence[Query], int, str]) -> Profile | None:
    kind, queries, seed, way = task
    return None if way == "5" else profile_of(KINDS[kind], queries, seed, favour=way != "alone")


def compared(
    kind: str,
    queries: Sequence[Query],
    worlds: Sequence[int],
    reads_allowed: Sequence[int],
    ways: Sequence[str],
    pool: ProcessPoolExecutor,
) -> Iterator[tuple[int, str, list[Values]]]:
    """By reads and way, the values of each query: means over its worlds."""
    profiles = {way: list(pool.map(_taught, [(kind, queries, seed, way) for seed in worlds])) for way in ways}
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
    """Rows of one judge, with the paired difference of tau20 to the first way."""
    first: dict[int, list[Values]] = {}
    for reads, _, rows in found:
        first.setdefault(reads, rows)
    for reads, way, rows in found:
        cells = [f"{mean(rows, name):.3f} ±{error([row[name] for row in rows]):.3f}" for name in SHOWN]
        gains = [row["tau20"] - other["tau20"] for row, other in zip(rows, first[reads], strict=True)]
        gain = f"{np.mean(gains):+.3f} ±{error(gains):.3f}" if rows is not first[reads] else ""
        calm = f"{mean(rows, 'expected') / mean(rows, 'wrong'):.2f}"
        false = f"{mean(rows, 'false') / max(mean(rows, 'locks'), 1e-9):.2%}"
        tail = [gain, calm, false, f"{mean(rows, 'mean length'):.1f}", f"{mean(rows, 'ms'):.1f}"]
        yield "| " + " | ".join([kind, str(reads), way, *cells, *tail]) + " |"


def mean(rows: Sequence[Values], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))


def error(values: Sequence[float]) -> float:
    """Standard error of a mean."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


HEAD = (
    "judge",
    "read",
    "lists",
    *SHOWN,
    "tau20 more",
    "expected / actual",
    "wrong locks",
    "length",
    "ms a call",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--quick", action="store_true", help="8 made-up queries, one world")
    parser.add_argument("--parity", choices=("odd", "even"), default="odd", help="which half of the queries")
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--reads", nargs="*", type=int, default=READS, help="passages read to order a pool")
    parser.add_argument("--ways", nargs="*", default=WAYS[:2], choices=WAYS, help="the first is compared with")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, help="where the table goes, too")
    given = parser.parse_args()
    queries = synthetic_queries(8, 1) if given.quick or given.data is None else load_queries(given.data)
    if given.data is not None and not given.quick:
        queries = [query for query in queries if query.number % 2 == (given.parity == "odd")]
    worlds = range(1, 2 if given.quick else given.worlds + 1)
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
        note = f"{len(queries)} {given.parity} queries, {len(worlds)} worlds of each."
        body = "\n".join([begin, "", note, "", *lines, "", end])
        before, _, rest = text.partition(begin)
        given.out.write_text(before + body + rest.partition(end)[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
