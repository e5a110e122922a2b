"""Do intervals of corrected scores hold what they promise, and what do they save against people's labels alone?

A pool holds the best 20 of each system, and people's labels are those of the collection; passages without one are not
relevant. In each world the queries are drawn anew from those of the collection, with repetition, so that the truth is
the collection's mean; a simulated judge labels the pool; people label a random part of it. Counted is in how many
worlds the 95 % interval holds the truth, and how wide it is beside that by people's labels alone.

    a quarter off by one   the judge's grade is one up or down on 25 % of the passages
    biased                 one up on half of them
    useless                any grade, whatever the passage
    flattering             5 for whatever is at a system's first three ranks, else right
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from people_impact import labelled

from raggs.arrays import Floats, Ints
from raggs.correction import Corrected, Totals, correct, totals_of
from raggs.metrics.columns import Qrels, Scale
from raggs.metrics.hits import Hits, find_hits
from raggs.metrics.measure import Linear
from raggs.metrics.names import parse_measures
from raggs.seeds import generator

POOL, GRADES = 20, 5
MEASURES = [named.measure for named in parse_measures(["precision4@10", "harm@10", "rbp@10", "hits@5"])]
OTHERS = parse_measures(["recall@10", "ndcg@10", "ra_nwg@10", "mrr@10"])
Judge = Callable[["Collection", np.random.Generator], Ints]


@dataclass(frozen=True)
class Collection:
    """The pool of all systems with people's labels, and where two of them put them."""

    qrels: Qrels
    hits: tuple[Hits, ...]


def collection_of(folder: Path, first: str, second: str) -> Collection:
    found = labelled(folder, POOL)
    qrels = Qrels.of(found.labels, Scale.of(1, GRADES))
    return Collection(qrels, (find_hits(qrels, found.runs[first]), find_hits(qrels, found.runs[second])))


def off_by_one(collection: Collection, draw: np.random.Generator) -> Ints:
    truth = collection.qrels.grade
    step = np.where(draw.random(len(truth)) < 0.5, 1, -1) * (draw.random(len(truth)) < 0.25)
    return np.clip(truth + step, 1, GRADES)


def biased(collection: Collection, draw: np.random.Generator) -> Ints:
    truth = collection.qrels.grade
    return np.clip(truth + (draw.random(len(truth)) < 0.5), 1, GRADES)


def useless(collection: Collection, draw: np.random.Generator) -> Ints:
    return draw.integers(1, GRADES + 1, len(collection.qrels.grade))


def flattering(collection: Collection, _: np.random.Generator) -> Ints:
    found = collection.qrels.grade.copy()
    found[collection.hits[0].item[collection.hits[0].rank <= 3]] = GRADES
    return found


JUDGES: dict[str, Judge] = {
    "a quarter off by one": off_by_one,
    "biased": biased,
    "useless": useless,
    "flattering": flattering,
}


@dataclass(frozen=True)
class World:
    """Queries drawn from the collection, the judge's labels, and which passages of each drawn query people labelled."""

    collection: Collection
    judge: Ints
    picked: Ints
    drawn: list[Ints]
    chance: float

    def totals(self, hits: Hits, measure: Linear) -> Totals:
        table, shares = measure.table(hits.qrels), measure.shares(hits)
        ends = np.searchsorted(hits.query, np.arange(len(hits.length) + 1))
        rows = [np.arange(ends[query], ends[query + 1]) for query in self.picked.tolist()]
        read = np.concatenate([np.isin(hits.item[mine], some) for mine, some in zip(rows, self.drawn, strict=True)])
        query = np.repeat(np.arange(len(rows)), [len(mine) for mine in rows])
        row = np.concatenate(rows)
        truth = np.where(read, table[hits.qrels.grade[hits.item[row]] - 1], math.nan)
        machine = table[self.judge[hits.item[row]] - 1]
        return totals_of(query, shares[row], machine, truth, np.full(len(row), self.chance), queries=len(rows))


def world_of(collection: Collection, judge: str, chance: float, seed: int) -> World:
    draw = generator(seed, "world", judge)
    qrels = collection.qrels
    picked = draw.integers(len(qrels.qids), size=len(qrels.qids))
    ends = np.searchsorted(qrels.query, np.arange(len(qrels.qids) + 1))
    pools = [np.arange(ends[query], ends[query + 1]) for query in picked.tolist()]
    drawn = [pool[draw.random(len(pool)) < chance] for pool in pools]
    return World(collection, JUDGES[judge](collection, draw), picked, drawn, chance)


@dataclass
class Count:
    """Of one figure over the worlds."""

    held: int = 0
    known: int = 0
    width: float = 0.0
    alone: float = 0.0
    machine_off: float = 0.0
    power: float = 0.0

    def add(self, truth: float, found: Corrected, alone: Corrected, machine: float) -> None:
        self.machine_off += machine - truth
        if not math.isnan(found.low):
            self.known += 1
            self.held += found.low <= truth <= found.high
            self.width += found.high - found.low
            self.alone += alone.high - alone.low
            self.power += found.power


def figures(world: World, counts: dict[str, Count], truths: dict[str, float]) -> None:
    for measure in MEASURES:
        assert isinstance(measure, Linear)
        first, second = (world.totals(hits, measure) for hits in world.collection.hits)
        name = f"{measure.NAME}@{measure.k}"
        for label, totals in ((name, first), (f"{name}, difference", first - second)):
            count = counts.setdefault(label, Count())
            count.add(truths[label], correct(totals), correct(totals, power=0.0), float(totals.judge.mean()))


def truths_of(collection: Collection) -> dict[str, float]:
    found = {}
    for measure in MEASURES:
        first, second = (float(measure.score(hits).mean()) for hits in collection.hits)
        found[f"{measure.NAME}@{measure.k}"] = first
        found[f"{measure.NAME}@{measure.k}, difference"] = first - second
    return found


def rows_of(collection: Collection, chances: Sequence[float], worlds: int) -> Iterator[str]:
    truths = truths_of(collection)
    for chance in chances:
        for judge in JUDGES:
            counts: dict[str, Count] = {}
            for seed in range(worlds):
                figures(world_of(collection, judge, chance, seed), counts, truths)
            for label, count in counts.items():
                share = count.held / count.known
                error = math.sqrt(share * (1 - share) / count.known)
                yield (
                    f"| {100 * chance:g} % | {judge} | {label} | {truths[label]:+.3f} | "
                    f"{count.machine_off / worlds:+.3f} | {100 * share:.1f} ± {100 * error:.1f} | "
                    f"{count.width / count.known:.3f} | {count.width / count.alone:.2f} | "
                    f"{count.power / count.known:.2f} |"
                )


def effects_of(collection: Collection, judge: Ints) -> tuple[Floats, Floats]:
    """By other measures: what queries are worth by the judge's labels, and what each passage's right label adds alone.

    Shapes (measures, queries) and (measures, passages).
    """
    qrels, hits = collection.qrels, collection.hits[0]
    turn = np.arange(len(qrels.query)) - np.searchsorted(qrels.query, qrels.query)

    def values(grade: Ints) -> Floats:
        held = replace(hits, qrels=qrels.relabelled(grade))
        return np.array([np.nan_to_num(named.values(held)) for named in OTHERS])

    now, found = values(judge), np.zeros((len(OTHERS), len(judge)))
    for number in range(int(turn.max()) + 1):
        rows = (turn == number) & (judge != qrels.grade)
        found[:, rows] = (values(np.where(rows, qrels.grade, judge)) - now)[:, qrels.query[rows]]
    return now, found


def linearised(collection: Collection, chance: float, worlds: int) -> Iterator[str]:
    """Measures whose labels depend on each other, corrected label by label as if they did not."""
    truths = [float(np.nan_to_num(named.values(collection.hits[0])).mean()) for named in OTHERS]
    for judge in list(JUDGES)[:3]:
        held, off = np.zeros(len(OTHERS)), np.zeros(len(OTHERS))
        for seed in range(worlds):
            world = world_of(collection, judge, chance, seed)
            now, effect = effects_of(collection, world.judge)
            drawn = np.array([len(some) for some in world.drawn])
            for place, truth in enumerate(truths):
                added = np.array([effect[place, some].sum() for some in world.drawn]) / chance
                nothing = np.zeros(len(drawn))
                sums = Totals(now[place, world.picked] + added, nothing, nothing, nothing, nothing, drawn)
                found = correct(sums, power=0.0)
                held[place] += found.low <= truth <= found.high
                off[place] += found.mean - truth
        for named, truth, share, sum_ in zip(OTHERS, truths, held / worlds, off, strict=True):
            error = math.sqrt(share * (1 - share) / worlds)
            yield (
                f"| {100 * chance:g} % | {judge} | {named.name} | {truth:+.3f} | {sum_ / worlds:+.3f} | "
                f"{100 * share:.0f} ± {100 * error:.0f} |"
            )


HEAD = "| read | judge | measure | truth | machine off by | coverage, % | width | against people only | power |"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="people.py coverage")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--chances", default="0.1,0.25")
    parser.add_argument("--linearised", action="store_true", help="other measures instead, corrected label by label")
    options = parser.parse_args(arguments)
    chances = [float(each) for each in options.chances.split(",")]
    collection = collection_of(options.folder, "bm25", "dense 256")
    if options.linearised:
        print("| read | judge | measure | truth | corrected is off by | coverage, % |\n" + "|---" * 6 + "|")
        for row in linearised(collection, chances[0], options.worlds):
            print(row, flush=True)
        return
    print(HEAD + "\n|" + "---|" * 9)
    for row in rows_of(collection, chances, options.worlds):
        print(row, flush=True)
