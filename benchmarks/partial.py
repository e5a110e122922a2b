"""Compare complete orders of a list with answers that contain only its best 3 or 5 passages.

    python benchmarks/partial.py --data FOLDER --out benchmarks/results/partial.md     half an hour
    python benchmarks/partial.py --quick                                               synthetic queries, a minute

Pools, true utilities and judges are those of economy.py. A judge that returns the first n passages orders them as
carefully as the first n passages of a complete order. The engine uses the first n stages of Plackett-Luce over all
passages of the list, and the pairs that contain one of the n. `auto` means adaptive list lengths after a pilot. At
equal cost, the output counts too: a label has four tokens, and each costs as much as four input tokens. A passage has
200 tokens.

Each figure is a mean over queries, and each query is the mean of its worlds. The figure after +- is the standard error.
Differences are paired.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy

import numpy as np
from economy import KINDS, Kind, answer, error, judge_of, profile_of
from ranking_worlds import Ints, Query, half_of_queries, make_world, measures, world_options, worlds_of

from raggs.base.hashing import generator
from raggs.ranking import Profile, make_ranker
from raggs.ranking.bayes import FIRST_SHARPNESS, BayesRanker
from raggs.ranking.locks import LockRule, SettledPairs

TOP = 20
READS = 200
SHARPNESS_SD = 0.8  # standard error of the log sharpness, as in the engine
LABEL = 4 * 4 / 200  # cost of a label in the answer, relative to the cost of a passage
JUDGES = ("medium", "less careful at the end", "much less careful at the end", "copies the end")
SHOWN = ("tau20", "ov20", "ov10")
Values = dict[str, float]


class Firsts(SettledPairs):
    """Counts only pairs that contain one of the first passages of a list."""

    first = 0

    def count(self, order: Ints) -> None:
        rows, columns = np.triu_indices(order.size, k=1)
        known = rows < self.first
        self.wins[order[rows[known]], order[columns[known]]] += 1


class FirstRanker(BayesRanker):
    """Uses only the first passages of each list: later picks have a sharpness of 0."""

    def only(self, first: int) -> FirstRanker:
        """Return this ranker, limited to the first passages of each list."""
        self._pairs = Firsts(self.ids, LockRule())
        self._pairs.first = first
        self.believe(Profile(FIRST_SHARPNESS, SHARPNESS_SD, (1.0,) * first + (0.0,)))
        return self


@dataclass(frozen=True)
class Way:
    """Lists of one length (0: adaptive), of which the judge returns the first (0: all).

    Attributes:
        priced: whether the budget is the cost of 200 passages instead of 200 passages read.
    """

    length: int
    first: int = 0
    priced: bool = False

    @property
    def calls(self) -> float:
        """The number of lists in the budget."""
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
    calls = int(way.calls + part + 1e-9 if way.priced else way.calls + 1e-9)  # correct on average
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
        cells = [f"{np.mean(values):.3f} ± {error(values):.3f}" for values in columns]
        gains = [_gain(rows, whole[way.length]), _gain(rows, whole[5])]
        paid = "cost" if way.priced else "passages"
        yield "| " + " | ".join([name, paid, str(way), f"{way.calls:.1f}", *cells, *gains]) + " |"


def _gain(rows: Sequence[Values], others: Sequence[Values]) -> str:
    gains = [row["tau20"] - other["tau20"] for row, other in zip(rows, others, strict=True)]
    return f"{np.mean(gains):+.3f} ± {error(gains):.3f}" if any(gains) else ""


HEAD = ("judge", "equal", "lists", "calls", *SHOWN, "gain in tau20 over complete orders", "over lists of 5")


def main() -> int:
    parser = world_options(__doc__, "4 synthetic queries")
    parser.add_argument("--kinds", nargs="*", default=list(JUDGES), choices=list(KINDS), help="judges [default: four]")
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    queries = half_of_queries(given, 4)
    worlds = worlds_of(given)
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    print("\n".join(lines), flush=True)
    for kind in given.kinds:
        for row in rows_of(kind, queries, worlds):
            print(row, flush=True)
            lines.append(row)
    if given.out:
        text = given.out.read_text() if given.out.exists() else ""
        begin, end = "<!-- begin: tables -->", "<!-- end: tables -->"
        note = f"{len(queries)} {given.parity} queries, {len(worlds)} worlds per query."
        before, _, rest = text.partition(begin)
        given.out.write_text(before + "\n".join([begin, "", note, "", *lines, "", end]) + rest.partition(end)[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
