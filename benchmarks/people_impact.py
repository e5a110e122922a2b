"""Count the labels until the order of eight systems is that of complete labels.

A pool has the best 10 passages of each system. The human labels are those of the collection, and passages without a
label are not relevant. A simulated judge is off by one grade on a quarter of its answers. Each strategy chooses the
passages to label next, and a human label replaces the judge's grade. The count ends when the order by nDCG@10 is
right and does not change again. Worlds differ in their 75 queries and in the errors of the judge.

- random: any passage.
- uncertainty: the passage with the highest entropy of the grade, given all labels so far.
- impact: `raggs review plan`, repeated after each block of labels. The labels of its random tenth are counted.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from projection import systems

from raggs.base.arrays import Floats, Ints
from raggs.base.hashing import generator
from raggs.base.trec import read_qrels
from raggs.metrics.columns import GradeScale, Qrels, Run
from raggs.metrics.hits import Hits, find_hits
from raggs.metrics.names import parse_measures
from raggs.metrics.unjudged import flip_effects
from raggs.stats.annotation_value import KnownGrades, LabelImpact, believe, choose
from raggs.stats.correction import draw

POOL, GRADES, QUESTIONS = 10, 5, 75
MEASURES = parse_measures(["ndcg@10"])
LOOK = 20  # labels between two comparisons of the order
FIRST, GROWTH = 60, 1.5  # labels until the next plan, and growth of this number
LATE = 0.4  # share of labelled passages after which no plan is made
RANDOM_SHARE = 0.1


@dataclass(frozen=True)
class Collection:
    """The pool of eight systems with human labels, and the ranks of its passages."""

    qrels: Qrels
    hits: tuple[Hits, ...]

    def relabelled(self, grade: Ints) -> list[Hits]:
        from dataclasses import replace

        qrels = self.qrels.relabelled(grade + 1)
        return [replace(each, qrels=qrels) for each in self.hits]

    def means(self, grade: Ints) -> Floats:
        """Return the mean scores, shape (systems, metrics)."""
        held = self.relabelled(grade)
        return np.array([[np.nan_to_num(each.values(hits)).mean() for each in MEASURES] for hits in held])

    def order(self, grade: Ints) -> tuple[int, ...]:
        return tuple(np.argsort(-self.means(grade)[:, 0], kind="stable").tolist())


@dataclass(frozen=True)
class World:
    """A judge's answers on the pool, grades from 0."""

    collection: Collection
    truth: Ints
    heard: KnownGrades
    seed: int

    @property
    def machine(self) -> Ints:
        return self.heard.grade


Strategy = Callable[[World, Ints, Ints, Ints], Ints]  # world, labelled, drawn at random, number -> next passages


@dataclass(frozen=True)
class Labelled:
    """Human labels of the pools by query, and the runs of eight systems."""

    labels: dict[str, dict[str, int]]
    runs: dict[str, Run]

    def some(self, seed: int) -> Collection:
        """Return a random part of the queries."""
        chosen = generator(seed, "questions").permutation(sorted(self.labels))[:QUESTIONS]
        qrels = Qrels.of({qid: self.labels[qid] for qid in chosen.tolist()}, GradeScale.of(1, GRADES))
        return Collection(qrels, tuple(find_hits(qrels, run) for run in self.runs.values()))


def labelled(folder: Path, pool: int = POOL) -> Labelled:
    """Return the best `pool` passages of each of eight systems, with their labels (1 without a label)."""
    corpus = [json.loads(line) for line in (folder / "corpus.jsonl").open()]
    asked = [json.loads(line) for line in (folder / "queries.jsonl").open()]
    ids = [each.get("_id") or each.get("doc_id") or each["id"] for each in corpus]
    qids = [each.get("_id") or each.get("qid") or each["id"] for each in asked]
    runs = dict(systems([each["text"] for each in asked], [f"{e.get('title', '')} {e['text']}" for e in corpus]))
    known = {(label.qid, label.doc_id): label.grade for label in read_qrels(folder / "qrels.trec")}
    labels: dict[str, dict[str, int]] = {}
    for run in runs.values():
        place = np.arange(len(run.query)) - np.searchsorted(run.query, run.query)
        docs = run.docs.take(np.arange(len(run.docs))).tolist()
        for row in np.flatnonzero(place < pool).tolist():
            query, doc = int(run.query[row]), docs[row].decode()
            labels.setdefault(f"q{query:03d}", {})[doc] = known.get((qids[query], ids[int(doc)]), 1)
    return Labelled(labels, runs)


def world_of(collection: Collection, seed: int, answers: int, noise: float, lean: float) -> World:
    """Return a world with a judge that is off by one grade, upwards with probability `lean`."""
    truth, draw = collection.qrels.grade - 1, generator(seed, "judge", answers, noise, lean)
    shape = len(truth), answers
    step = np.where(draw.random(shape) < lean, 1, -1) * (draw.random(shape) < noise)
    said = np.clip(truth[:, None] + step, 0, GRADES - 1)
    voices = np.stack([(said == grade).sum(axis=1) for grade in range(GRADES)], axis=1)
    median = np.sort(said, axis=1)[:, (answers - 1) // 2]
    return World(collection, truth, KnownGrades(median, voices, np.zeros(len(truth))), seed)


def unread(world: World, read: Ints) -> Ints:
    left = np.ones(len(world.truth), dtype=bool)
    left[read] = False
    return np.flatnonzero(left)


def at_random(world: World, read: Ints, _: Ints, count: int) -> Ints:
    return generator(world.seed, "random", len(read)).permutation(unread(world, read))[:count]


def by_entropy(world: World, read: Ints, _: Ints, count: int) -> Ints:
    beliefs = believe(world.heard, read, world.truth[read])
    left = generator(world.seed, "entropy", len(read)).permutation(unread(world, read))
    entropy = -(beliefs[left] * np.log(np.maximum(beliefs[left], 1e-12))).sum(axis=1)
    return left[np.argsort(-entropy, kind="stable")][:count]


def by_impact(share: float = RANDOM_SHARE, make: Callable[..., LabelImpact] = LabelImpact) -> Strategy:
    def next_(world: World, read: Ints, drawn: Ints, count: int) -> Ints:
        beliefs = believe(world.heard, drawn, world.truth[drawn])
        left = unread(world, read)
        grade = world.machine.copy()
        grade[read] = world.truth[read]
        item = np.full(len(grade), -1)
        item[left] = np.arange(len(left))
        effects = flip_effects(world.collection.relabelled(grade), MEASURES, item)
        impact = make(world.collection.means(grade), effects, beliefs[left], len(world.collection.qrels.qids))
        some = lot(world, read, round(share * count))
        best = [pick.item for pick in choose(impact, np.ones(len(left)), count - len(some), some)]
        rest = generator(world.seed, "rest", len(read)).permutation(np.setdiff1d(np.arange(len(left)), [*some, *best]))
        return left[mixed(some, np.array([*best, *rest[: count - len(some) - len(best)]], dtype=np.int64))]

    return next_


def lot(world: World, read: Ints, count: int) -> Ints:
    left, seed = unread(world, read), world.seed * 100_003 + len(read)
    stratum = world.heard.kind[left] * GRADES + world.heard.grade[left]
    place = np.argsort(generator(seed, "draw").permutation(len(left))) / max(len(left), 1)
    items = draw(stratum, place, count).items
    by_stratum = items[np.lexsort((place[items], stratum[items]))]
    return generator(seed, "order", *np.unique(stratum).tolist()).permutation(by_stratum)


def mixed(some: Ints, others: Ints) -> Ints:
    """Return both, with the first distributed evenly among the others."""
    place = np.concatenate([(np.arange(len(side)) + 0.5) / max(len(side), 1) for side in (some, others)])
    return np.concatenate([some, others])[np.argsort(place, kind="stable")].astype(np.int64)


def needed(world: World, strategy: Strategy, share: float) -> tuple[int, int]:
    """Return the number of labels until the order is final, and until it is right for the first time."""
    goal, grade = world.collection.order(world.truth), world.machine.copy()
    read, drawn, block = np.empty(0, np.int64), np.empty(0, np.int64), FIRST
    wrong, first = 0 if world.collection.order(grade) == goal else 1, None
    while len(read) < len(grade):
        chosen = strategy(world, read, drawn, block)
        for start in range(0, len(chosen), LOOK):
            part = chosen[start : start + LOOK]
            grade[part] = world.truth[part]
            if world.collection.order(grade) != goal:
                wrong = len(read) + start + len(part)
            elif first is None:
                first = len(read) + start + len(part)
        if share:
            drawn = np.concatenate([drawn, unread(world, read)[lot(world, read, round(share * block))]])
        read = np.concatenate([read, chosen])
        block = int(block * GROWTH) if len(read) < len(grade) * LATE else len(grade)
    return wrong + LOOK if wrong else 0, first or 0


def mean_and_error(values: Sequence[int]) -> str:
    found = np.array(values, dtype=float)
    return f"{found.mean():,.0f} ± {found.std(ddof=1) / np.sqrt(len(found)):,.0f}"


def rows(collection: Labelled, worlds: int, names: Sequence[str]) -> Iterator[str]:
    judges = {"one answer": (1, 0.25, 0.5), "three answers": (3, 0.25, 0.5)}
    for judge, settings in judges.items():
        for name in names:
            found = [
                needed(world_of(collection.some(seed), seed, *settings), *STRATEGIES[name]) for seed in range(worlds)
            ]
            stay, first = zip(*found, strict=True)
            yield f"| {judge} | {name} | {mean_and_error(stay)} | {mean_and_error(first)} | {np.median(stay):,.0f} |"


STRATEGIES: dict[str, tuple[Strategy, float]] = {
    "random": (at_random, 0.0),
    "uncertainty": (by_entropy, 0.0),
    "impact": (by_impact(), RANDOM_SHARE),
}


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES))
    options = parser.parse_args(arguments)
    print("| judge | choice of passages | final | first | final, median |\n|---|---|---|---|---|")
    for row in rows(labelled(options.folder), options.worlds, options.strategies):
        print(row, flush=True)
