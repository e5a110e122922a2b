"""Doubt about labels, carried into the interval of a score.

A label is drawn around its grade: by the standard error of the ranking's posterior where the passage was ranked, by
the judge's own repeated grades where there are any, else it stays. What a ranking believes of a passage moves with
its label. Labels and queries are drawn together, so the
interval covers both; it is never narrower than the one over queries alone.

What each query's value becomes if one label were another: what a person's word on a passage can change.

Queries do not touch each other, so one passage of each is relabelled in one go: as many turns as the largest query has
passages, whatever the number of queries. Every measure will do, since each turn is measured as everything else is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.base.seeds import generator
from raggs.metrics.columns import Qrels
from raggs.metrics.hits import Hits
from raggs.metrics.names import Named
from raggs.stats.comparison import Interval

DRAWS = 200


@dataclass(frozen=True)
class Doubt:
    """What is known about the labels, a row for each judgment of a `Qrels`.

    Attributes:
        sigma: shape (m,), standard error of the grade by the ranking; 0 where it was not ranked.
        samples: the judge's repeated grades of each; empty where it was asked once.
    """

    sigma: Floats
    samples: tuple[tuple[int, ...], ...]

    def draw(self, qrels: Qrels, rng: np.random.Generator) -> Ints:
        """Shape (m,): one draw of all grades. Negative ones stay."""
        return self.drawn(qrels, rng).grade

    def drawn(self, qrels: Qrels, rng: np.random.Generator) -> Qrels:
        """One draw of all labels, and of what the ranking believes of the passages that it moved."""
        scale = qrels.scale
        shift = rng.normal(size=len(self.sigma)) * self.sigma
        drawn = np.clip(np.rint(qrels.grade + shift), scale.low, scale.high).astype(np.int64)
        for row, given in enumerate(self.samples):
            if given and not self.sigma[row]:
                drawn[row] = given[int(rng.integers(len(given)))]
        belief = None if qrels.belief is None else qrels.belief.moved(shift, self.sigma)
        return replace(qrels, grade=np.where(qrels.grade < 0, qrels.grade, drawn), belief=belief)


def with_doubt(
    hits: Hits, measures: Sequence[Named], doubt: Doubt, intervals: Sequence[Interval], *, seed: int, draws: int = DRAWS
) -> list[Interval]:
    """The intervals of some measures, widened by the doubt about the labels.

    Args:
        hits: the run.
        measures: what to measure.
        doubt: about the labels of `hits.qrels`.
        intervals: those over queries alone, one a measure.
        seed: of the draws.
        draws: how many.
    """
    rng = generator(seed, "labels")
    queries = len(hits.length)
    means = np.full((draws, len(measures)), np.nan)
    for turn in range(draws):
        drawn = replace(hits, qrels=doubt.drawn(hits.qrels, rng))
        picked = rng.integers(queries, size=queries)
        for place, named in enumerate(measures):
            values = named.values(drawn)[picked]
            if np.isfinite(values).any():
                means[turn, place] = np.nanmean(values)
    return [_wider(interval, column[np.isfinite(column)]) for interval, column in zip(intervals, means.T, strict=True)]


def _wider(interval: Interval, means: Floats) -> Interval:
    """The interval of the draws, moved so that the measured mean is its centre of mass."""
    if not len(means):
        return interval
    tail = (1.0 - interval.confidence) / 2
    low, high = np.quantile(means, [tail, 1.0 - tail]) - means.mean() + interval.mean
    return replace(interval, low=float(np.fmin(low, interval.low)), high=float(np.fmax(high, interval.high)))


def flip_effects(systems: Sequence[Hits], measures: Sequence[Named], item: Ints) -> Floats:
    """How values change if an item had another grade.

    A query on which a measure is not defined counts as 0.

    Args:
        systems: lists over the same judgments, each of which has a grade.
        measures: what to measure.
        item: shape (m,), for each judgment the number of the item that it belongs to, from 0 without gaps; -1 where
            the label stays. Judgments of one item are of one query, and change together: near-duplicates.

    Returns:
        Shape (items, grades, systems, measures): the value of the item's query with that grade, less the value now.
    """
    qrels = systems[0].qrels
    numbers, first = np.unique(item, return_index=True)
    query = qrels.query[first[numbers >= 0]]
    turn = _turns(query)
    turn_of = np.where(item >= 0, turn[item], -1) if len(turn) else item
    now = _values(systems, measures)
    found = np.zeros((len(query), qrels.scale.size, len(systems), len(measures)))
    for number in range(int(turn.max(initial=-1)) + 1):
        items = np.flatnonzero(turn == number)
        touched = np.zeros(len(qrels.qids), dtype=bool)
        touched[query[items]] = True
        held, rows = [hits.only(touched) for hits in systems], turn_of == number
        for place, grade in enumerate(qrels.scale.grades().tolist()):
            other = qrels.relabelled(np.where(rows, grade, qrels.grade))
            values = _values([replace(hits, qrels=other) for hits in held], measures)
            found[items, place] = (values - now)[query[items]]
    return found


def _turns(query: Ints) -> Ints:
    """The number of each item within its query."""
    order = np.argsort(query, kind="stable")
    ordered = query[order]
    turn = np.empty(len(query), dtype=np.int64)
    turn[order] = np.arange(len(query)) - np.searchsorted(ordered, ordered)
    return turn


def _values(systems: Sequence[Hits], measures: Sequence[Named]) -> Floats:
    """Shape (queries, systems, measures)."""
    found = [[np.nan_to_num(named.values(hits)) for named in measures] for hits in systems]
    return np.array(found).transpose(2, 0, 1)
