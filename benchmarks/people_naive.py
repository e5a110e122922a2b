"""Measure two corrections from single passages for metrics that are not sums over passages. Both fail.

- label by label: the effect of each labelled passage on the score of its query, divided by the probability that it
  was drawn. This ignores that labels change each other's effect.
- imputed: unlabelled passages get 20 random grades, from the distribution of human grades for the judge's grade
  (Rubin 1987).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from people_coverage import GRADES, JUDGES, PASSAGES, Collection, World, spread, world_of

from raggs.base.arrays import Floats, Ints
from raggs.base.hashing import generator
from raggs.metrics.columns import IdColumn, Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.names import parse_measures
from raggs.stats.correction import CorrectedMean, QueryTotals, correct, correct_values

OTHERS = parse_measures(["recall@10", "ndcg@10", "ra_nwg@10", "mrr@10"])
TIMES = 20


def naive(collection: Collection, chance: float, worlds: int) -> Iterator[str]:
    values = [named.values(collection.hits[0]) for named in OTHERS]
    ways = {
        "label by label": (label_by_label, [float(np.nan_to_num(each).mean()) for each in values]),
        "imputed": (imputed, [float(np.nanmean(each)) for each in values]),
    }
    for judge in list(JUDGES)[:3]:
        for how, (way, truths) in ways.items():
            found = [way(world_of(collection, judge, PASSAGES, chance, seed), chance, seed) for seed in range(worlds)]
            for place, (named, truth) in enumerate(zip(OTHERS, truths, strict=True)):
                held = float(np.mean([each[place].low <= truth <= each[place].high for each in found]))
                off = float(np.mean([each[place].mean - truth for each in found]))
                error = math.sqrt(held * (1 - held) / worlds)
                yield (
                    f"| {100 * chance:g}% | {judge} | {named.name} | {how} | {truth:+.3f} | {off:+.3f} | "
                    f"{100 * held:.0f} ± {100 * error:.0f} |"
                )


def effects_of(collection: Collection, judge: Ints) -> tuple[Floats, Floats]:
    """Return the scores from the judge's labels, and the effect of the right label of each passage.

    Shapes (metrics, queries) and (metrics, passages).
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


def label_by_label(world: World, chance: float, _: int) -> list[CorrectedMean]:
    collection, queries = world.collection, len(world.picked)
    now, effect = effects_of(collection, world.judge)
    query, _ = spread(collection.first, world.picked)
    drawn, nothing = np.bincount(query[world.drawn], minlength=queries), np.zeros(queries)
    found = []
    for place in range(len(OTHERS)):
        worth = effect[place, world.item] * world.drawn / chance
        added = np.bincount(query, weights=worth, minlength=queries)
        sums = QueryTotals(now[place, world.picked] + added, nothing, nothing, nothing, nothing, drawn)
        found.append(correct(sums, power=0.0))
    return found


def imputed(world: World, _: float, seed: int) -> list[CorrectedMean]:
    hits, truth = copied(world), world.collection.qrels.grade[world.item]
    judge, draw = world.judge[world.item], generator(seed, "imputed")
    table = np.ones((GRADES, GRADES)) / GRADES  # one passage of each grade before the first label
    np.add.at(table, (judge[world.drawn] - 1, truth[world.drawn] - 1), 1.0)
    upto = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)
    values = []
    for _turn in range(TIMES):
        said = 1 + (draw.random(len(judge))[:, None] > upto[judge - 1, :-1]).sum(axis=1)
        held = replace(hits, qrels=hits.qrels.relabelled(np.where(world.drawn, truth, said)))
        values.append([named.values(held) for named in OTHERS])
    return [_pooled(np.array(each)) for each in np.array(values).swapaxes(0, 1)]


def _pooled(values: Floats) -> CorrectedMean:
    """Return the mean of several imputations, shape (times, queries), with an interval by Rubin's rules."""
    ones = np.ones(values.shape[1])
    found = [correct_values(each, each, ones) for each in values]
    means = np.array([each.mean for each in found])
    inside = np.mean([((each.high - each.low) / 2) ** 2 for each in found])
    between = (1 + 1 / len(values)) * means.var(ddof=1) * 1.96**2
    half = math.sqrt(inside + between)
    return replace(found[0], mean=float(means.mean()), low=float(means.mean()) - half, high=float(means.mean()) + half)


def copied(world: World) -> Hits:
    """Return the first system's lists for the drawn queries. A query that is drawn twice counts as two."""
    hits, collection = world.collection.hits[0], world.collection
    query, _ = spread(collection.first, world.picked)
    docs = IdColumn.of([f"{place:06d}" for place in range(len(world.item))])
    names = tuple(f"{place:04d}" for place in range(len(world.picked)))
    qrels = Qrels(names, query, collection.qrels.grade[world.item], docs, collection.qrels.scale)
    ends = np.searchsorted(hits.query, np.arange(len(hits.length) + 1))
    mine, row = spread(ends, world.picked)
    start = np.searchsorted(query, np.arange(len(world.picked)))
    return replace(
        hits,
        qrels=qrels,
        query=mine,
        item=start[mine] + hits.item[row] - collection.first[world.picked[mine]],
        rank=hits.rank[row],
        start=hits.start[row],
        size=hits.size[row],
        length=hits.length[world.picked],
        tied=hits.tied[world.picked],
        returned=hits.returned[world.picked],
    )
