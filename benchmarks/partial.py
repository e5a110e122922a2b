"""Whether to ask for the best n of a list instead of the whole order: first 3 and 5 of 10 and 20, and whole lists.

    python benchmarks/partial.py --data FOLDER --out benchmarks/results/partial.md     half an hour
    python benchmarks/partial.py --quick                                               made-up queries, a minute

Pools, truth and judges are those of economy.py. A judge that is asked for the first n orders those with the care that
it has for the first n picks of a whole order, and says nothing of the rest; the engine takes in the first n stages of
Plackett-Luce over all passages of the list, and pairs with one of the n. `auto` are lists of open length by a pilot.
At equal price an answer counts: four tokens a label, each of which costs four of the prompt, whose passages have 200.

A mean is taken over queries, each the mean of its worlds; +- is its standard error, and differences are paired.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy

import numpy as np
from economy import KINDS, Kind, answer, error, judge_of, profile_of
from ranking_worlds import Ints, Query, load_queries, make_world, measures, synthetic_queries

from raggs.base.hashing import generator
from raggs.ranking import Profile, make_ranker
from raggs.ranking.bayes import FIRST_SHARPNESS, BayesRanker
from raggs.ranking.locks import LockRule, SettledPairs

TOP = 20
READS = 200
DOUBT = 0.8  # of the sharpness, as the engine has it
LABEL = 4 * 4 / 200  # what a label of the answer costs, in passages
JUDGES = ("medium", "tires a little", "tires much", "copies the tail")
SHOWN = ("tau20", "ov20", "ov10")
Values = dict[str, float]


class Firsts(SettledPairs):
    """Pairs of which one is among the first of a list; of the others nothing was said."""

    first = 0

    def count(self, order: Ints) -> None:
        rows, columns = np.triu_indices(order.size, k=1)
        said = rows < self.first
        self.wins[order[rows[said]], order[columns[said]]] += 1


class FirstRanker(BayesRanker):
    """The engine where only the first of each list are told: past them, nothing of the judge's care is left."""

    def only(self, first: int) -> FirstRanker:
        """The same, told the first so many."""
        self._pairs = Firsts(self.ids, LockRule())
        self._pairs.first = first
        self.believe(Profile(FIRST_SHARPNESS, DOUBT, (1.0,) * first + (0.0,)))
        return self


@dataclass(frozen=True)
class Way:
    """Lists of a length (0: open) of which the first are asked for (0: all): for 200 passages read, or their price."""

    length: int
    first: int = 0
    priced: bool = False

    @property
    def calls(self) -> float:
        """How many lists that pays for."""
        if not self.length:
            return READS / 5
        return READS / self.length * (self._price(self.length) / self._price(self.first) if self.priced else 1.0)

    def _price(self, labels: int) -> float:
        return self.length + LABEL * labels

    def __str__(self) -> str:
        return "auto" if not self.length else f"first {self.first} of {self.length}" if self.first else str(self.length)


def ways() -> Iterator[Way]:
    yield Way(5)
    yield Way(0)
    for length in (10, 20):
        yield Way(length)
        for first in (3, 5):
            yield Way(length, first)
            yield Way(length, first, priced=True)


def play(kind: Kind, query: Query, seed: int, way: Way, profile: Profile) -> Values:
    world = make_world(query, seed)
    size, part = way.length or None, generator(seed, "calls", query.qid).random()
    calls = int(way.calls + part + 1e-9 if way.priced else way.calls + 1e-9)  # the right number on average
    options = {"top": TOP, "batch_size": size, "seed": seed, "max_calls": calls, "saving": 0.0, "echo": 0.0}
    grades = world.grades.tolist()
    if way.first:
        ranker = FirstRanker(world.ids, grades, **options).only(way.first)
    else:
        ranker = make_ranker("bayes", world.ids, grades, **options)
    if not way.length:
        ranker.believe(profile)
    order = judge_of(kind, world, seed, "partial", way.length)
    while not ranker.done:
        answer(ranker, world, ranker.next_batches(4), order)
    place = {name: at for at, name in enumerate(world.ids)}
    return measures(world, np.array([place[name] for name in ranker.ranking().order]), TOP)


def rows_of(name: str, queries: Sequence[Query], worlds: Sequence[int]) -> Iterator[str]:
    kind, whole = KINDS[name], dict[int, list[Values]]()
    profiles = {seed: profile_of(kind, queries, seed) for seed in worlds}
    for way in ways():
        played = [[play(kind, query, seed, way, profiles[seed]) for seed in worlds] for query in queries]
        rows = [{each: float(np.mean([one[each] for one in own])) for each in SHOWN} for own in played]
        whole.setdefault(way.length, rows)
        columns = [[row[each] for row in rows] for each in SHOWN]
        cells = [f"{np.mean(values):.3f} ±{error(values):.3f}" for values in columns]
        gains = [_gain(rows, whole[way.length]), _gain(rows, whole[5])]
        paid = "price" if way.priced else "read"
        yield "| " + " | ".join([name, paid, str(way), f"{way.calls:.1f}", *cells, *gains]) + " |"


def _gain(rows: Sequence[Values], others: Sequence[Values]) -> str:
    gains = [row["tau20"] - other["tau20"] for row, other in zip(rows, others, strict=True)]
    return f"{np.mean(gains):+.3f} ±{error(gains):.3f}" if any(gains) else ""


HEAD = ("judge", "equal", "lists", "calls", *SHOWN, "tau20 more than whole ones", "more than lists of 5")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with corpus.jsonl, queries.jsonl and qrels.trec")
    parser.add_argument("--quick", action="store_true", help="4 made-up queries, one world")
    parser.add_argument("--parity", choices=("odd", "even"), default="odd", help="which half of the queries")
    parser.add_argument("--worlds", type=int, default=2)
    parser.add_argument("--kinds", nargs="*", default=list(JUDGES), choices=list(KINDS))
    parser.add_argument("--out", type=Path, help="where the table goes, too")
    given = parser.parse_args()
    queries = synthetic_queries(4, 1) if given.quick or given.data is None else load_queries(given.data)
    if given.data is not None and not given.quick:
        queries = [query for query in queries if query.number % 2 == (given.parity == "odd")]
    worlds = range(1, 2 if given.quick else given.worlds + 1)
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    print("\n".join(lines), flush=True)
    for kind in given.kinds:
        for row in rows_of(kind, queries, worlds):
            print(row, flush=True)
            lines.append(row)
    if given.out:
        text = given.out.read_text() if given.out.exists() else ""
        begin, end = "<!-- begin: tables -->", "<!-- end: tables -->"
        note = f"{len(queries)} {given.parity} queries, {len(worlds)} worlds of each."
        before, _, rest = text.partition(begin)
        given.out.write_text(before + "\n".join([begin, "", note, "", *lines, "", end]) + rest.partition(end)[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
