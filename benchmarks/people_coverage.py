"""Measure how often intervals of corrected scores contain the true score, and how wide they are.

A pool has the best 20 passages of each system. The human labels are those of the collection, and passages without a
label are not relevant. In each world, the queries are drawn with repetition, so the true score is the mean over the
collection. A simulated judge labels the pool, and a random part of the pool gets human labels. The tables contain the
share of worlds in which the 95% interval contains the true score. They compare its width with that of an interval
from the human labels only.

- a quarter off by one: the judge's grade is one too high or too low for 25% of the passages.
- biased: the grade is one too high for half of the passages.
- useless: the grade is random.
- flattering: the first three passages of the first system get grade 5, and all other grades are right.

The labelled part is drawn in three ways: passages with equal probability, passages by the judge's grade (as `raggs
review plan` draws them), or whole queries.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from people_impact import labelled

from raggs.base.arrays import Flags, Floats, Ints
from raggs.base.hashing import generator
from raggs.metrics import weights as w
from raggs.metrics.columns import GradeScale, Qrels
from raggs.metrics.hits import Hits, find_hits
from raggs.metrics.measure import Linear
from raggs.metrics.names import parse_measure, parse_measures
from raggs.stats.correction import CorrectedMean, QueryTotals, correct, correct_ratio, correct_values, totals_of
from raggs.stats.correction import draw as draw_strata

POOL, GRADES = 20, 5
MEASURES = [named.measure for named in parse_measures(["precision4@10", "harm@10", "rbp@10", "hits@5"])]
RECALL = parse_measure("recall@10").measure
WHOLE = parse_measures(["ndcg@10", "recall@10", "ra_nwg@10", "n_recall4@10", "n_recall5@10", "mrr@10", "map", "hit@3"])
PASSAGES, STRATA, QUERIES = "passages", "by grade", "queries"
SHARES = {PASSAGES: (0.1,), STRATA: (0.1,), QUERIES: (0.15, 0.2)}
Judge = Callable[["Collection", np.random.Generator], Ints]


@dataclass(frozen=True)
class Collection:
    """The pool of all systems with human labels, and the ranks of its passages in two of them."""

    qrels: Qrels
    hits: tuple[Hits, ...]

    @property
    def first(self) -> Ints:
        """Shape (queries + 1,): the first judgment of each query, and the end."""
        return np.searchsorted(self.qrels.query, np.arange(len(self.qrels.qids) + 1))


@cache
def collection_of(folder: Path, first: str = "bm25", second: str = "dense 256") -> Collection:
    found = labelled(folder, POOL)
    qrels = Qrels.of(found.labels, GradeScale.of(1, GRADES))
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
    """Queries drawn from the collection, the judge's labels, and the passages with a human label.

    Attributes:
        picked: shape (queries,), the number of each drawn query in the collection.
        item: shape (rows,), the judgments of their pools, query by query.
        drawn: shape (rows,), whether the passage has a human label.
        chance: shape (rows,), the probability of that.
    """

    collection: Collection
    judge: Ints
    picked: Ints
    item: Ints
    drawn: Flags
    chance: Floats

    def totals(self, hits: Hits, measure: Linear, shares: Floats) -> QueryTotals:
        ends = np.searchsorted(hits.query, np.arange(len(hits.length) + 1))
        query, row = spread(ends, self.picked)
        place = self._start[query] + hits.item[row] - self.collection.first[self.picked[query]]
        return self._totals(query, shares[row], place, measure.table(hits.qrels))

    def pooled(self, measure: Linear) -> QueryTotals:
        """Return the totals over all passages of the pool."""
        query = np.repeat(np.arange(len(self.picked)), np.diff(np.append(self._start, len(self.item))))
        table = measure.table(self.collection.qrels)
        return self._totals(query, np.ones(len(self.item)), np.arange(len(self.item)), table)

    @property
    def _start(self) -> Ints:
        sizes = np.diff(self.collection.first)[self.picked]
        return np.cumsum(sizes) - sizes

    def _totals(self, query: Ints, weight: Floats, place: Ints, table: Floats) -> QueryTotals:
        item = self.item[place]
        truth = np.where(self.drawn[place], table[self.collection.qrels.grade[item] - 1], math.nan)
        machine = table[self.judge[item] - 1]
        return totals_of(query, weight, machine, truth, self.chance[place], queries=len(self.picked))


def spread(ends: Ints, picked: Ints) -> tuple[Ints, Ints]:
    """Return the number of the drawn query and the row, for every row of the drawn queries."""
    sizes = np.diff(ends)[picked]
    query = np.repeat(np.arange(len(picked)), sizes)
    return query, np.arange(len(query)) + np.repeat(ends[picked] - (np.cumsum(sizes) - sizes), sizes)


def world_of(collection: Collection, judge: str, way: str, share: float, seed: int) -> World:
    draw = generator(seed, "world", judge)
    picked = draw.integers(len(collection.qrels.qids), size=len(collection.qrels.qids))
    _, item = spread(collection.first, picked)
    lot = draw.random(len(item))
    grade = JUDGES[judge](collection, draw)
    drawn, chance = lot < share, np.full(len(item), share)
    if way == STRATA:
        found = draw_strata(grade[item], lot, round(share * len(item)))
        drawn = np.zeros(len(item), dtype=bool)
        drawn[found.items] = True
        chance[found.items] = found.chance
    return World(collection, grade, picked, item, drawn, chance)


@dataclass
class Count:
    """Sums over the worlds, for one score and judge."""

    truth: float
    worlds: int = 0
    held: int = 0
    held_labels_only: int = 0
    known: int = 0
    sums: Floats = field(
        default_factory=lambda: np.zeros(5)
    )  # width, width of labels only, power, error of the judge, error of the corrected score

    def add(self, found: CorrectedMean, alone: CorrectedMean, machine: float) -> None:
        self.worlds += 1
        self.sums[3] += machine - self.truth
        if not math.isnan(found.low):
            self.known += 1
            self.held += found.low <= self.truth <= found.high
            self.held_labels_only += alone.low <= self.truth <= alone.high
            self.sums[:3] += found.high - found.low, alone.high - alone.low, found.power
            self.sums[4] += found.mean - self.truth

    def cells(self) -> str:
        shares = [each / max(self.known, 1) for each in (self.held, self.held_labels_only)]
        held, alone = (f"{100 * s:.1f} ± {100 * math.sqrt(s * (1 - s) / max(self.known, 1)):.1f}" for s in shares)
        width, by_people, power = self.sums[:3] / max(self.known, 1)
        off = self.sums[3] / self.worlds, self.sums[4] / max(self.known, 1)
        return (
            f"{self.truth:+.3f} | {off[0]:+.3f} | {off[1]:+.3f} | {held} | "
            f"{width:.3f} | {alone} | {width / by_people:.2f} | {power:.2f} | {100 * self.known / self.worlds:.0f} |"
        )


Counts = dict[str, Count]


def by_passages(collection: Collection, judge: str, way: str, share: float, worlds: int) -> Counts:
    counts, shares = Counts(), {}
    for measure in MEASURES:
        assert isinstance(measure, Linear)
        shares[measure.NAME] = [measure.shares(hits) for hits in collection.hits]
    assert isinstance(RECALL, Linear)
    table = RECALL.table(collection.qrels)
    tops = [w.worth_at(hits, 10, w.flat) for hits in collection.hits]
    there = float(table[collection.qrels.grade - 1].sum())
    found = [float((top * hits.weigh(table)).sum()) / there for top, hits in zip(tops, collection.hits, strict=True)]
    for seed in range(worlds):
        world = world_of(collection, judge, way, share, seed)
        for measure in MEASURES:
            assert isinstance(measure, Linear)
            first, second = (
                world.totals(hits, measure, each)
                for hits, each in zip(collection.hits, shares[measure.NAME], strict=True)
            )
            scores = [float(measure.score(hits).mean()) for hits in collection.hits]
            name = f"{measure.NAME}@{measure.k}"
            for label, truth, totals in with_difference(name, scores, first, second):
                count = counts.setdefault(label, Count(truth))
                count.add(correct(totals), correct(totals, power=0.0), float(totals.judge.mean()))
        first, second = (world.totals(hits, RECALL, top) for hits, top in zip(collection.hits, tops, strict=True))
        below = world.pooled(RECALL)
        for label, truth, totals in with_difference("recall@10, pooled", found, first, second):
            machine = float(totals.judge.mean() / below.judge.mean())
            estimates = correct_ratio(totals, below), correct_ratio(totals, below, power=0.0)
            counts.setdefault(label, Count(truth)).add(*estimates, machine)
    return counts


def with_difference(
    name: str, truths: Sequence[float], first: QueryTotals, second: QueryTotals
) -> Iterator[tuple[str, float, QueryTotals]]:
    yield name, truths[0], first
    yield f"{name}, difference", truths[0] - truths[1], first - second


def by_queries(collection: Collection, judge: str, reads: Sequence[int], worlds: int) -> dict[int, Counts]:
    """Correct any metric by the labels of whole queries."""
    counts: dict[int, Counts] = {read: {} for read in reads}
    truth = values_of(collection, collection.qrels.grade)
    queries = len(collection.qrels.qids)
    for seed in range(worlds):
        draw = generator(seed, "whole", judge)
        machine = values_of(collection, JUDGES[judge](collection, draw))
        picked, order = draw.integers(queries, size=queries), draw.permutation(queries)
        for read in reads:
            chance = np.full(queries, math.nan)
            chance[order[:read]] = read / queries
            for place, named in enumerate(WHOLE):
                for label, sign in ((named.name, 0.0), (f"{named.name}, difference", 1.0)):
                    true, judged = (each[0, place] - sign * each[1, place] for each in (truth, machine))
                    columns = judged[picked], true[picked], chance
                    estimates = correct_values(*columns), correct_values(*columns, power=0.0)
                    count = counts[read].setdefault(label, Count(float(np.nanmean(true))))
                    count.add(*estimates, float(np.nanmean(judged[picked])))
    return counts


def values_of(collection: Collection, grade: Ints) -> Floats:
    """Shape (systems, measures, queries)."""
    qrels = collection.qrels.relabelled(grade)
    return np.array([[named.values(replace(hits, qrels=qrels)) for named in WHOLE] for hits in collection.hits])


def rows_of(judge: str, folder: Path, way: str, shares: Sequence[float], worlds: int) -> list[str]:
    """Return the rows of a judge."""
    collection = collection_of(folder)
    if way == QUERIES:
        reads = [round(share * len(collection.qrels.qids)) for share in shares]
        found = {f"{read} queries": each for read, each in by_queries(collection, judge, reads, worlds).items()}
    else:
        found = {f"{100 * share:g}%": by_passages(collection, judge, way, share, worlds) for share in shares}
    return [
        f"| {read} | {judge} | {label} | {count.cells()}"
        for read, counts in found.items()
        for label, count in counts.items()
    ]


HEAD = (
    "| labelled | judge | metric | true value | judge off by | corrected off by | coverage, % | width | "
    "labels only: coverage, % | width relative to labels only | weight of the judge | worlds with an interval, % |"
)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="people.py coverage")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument(
        "--shares", type=float, nargs="*", help="shares of the passages or queries that get human labels"
    )
    parser.add_argument("--draw", choices=list(SHARES), nargs="*", default=list(SHARES))
    parser.add_argument(
        "--naive", action="store_true", help="coverage of two corrections from single passages that fail"
    )
    options = parser.parse_args(arguments)
    if options.naive:
        from people_naive import naive

        print("| labelled | judge | metric | method | true value | off by | coverage, % |\n" + "|---" * 7 + "|")
        for row in naive(collection_of(options.folder), 0.1, options.worlds):
            print(row, flush=True)
        return
    with ProcessPoolExecutor(2) as workers:
        for way in options.draw:
            print(f"\n### {way}\n\n{HEAD}\n" + "|---" * 12 + "|")
            shares = options.shares or SHARES[way]
            make = partial(rows_of, folder=options.folder, way=way, shares=shares, worlds=options.worlds)
            for rows in workers.map(make, JUDGES):
                print(*rows, sep="\n", flush=True)
