"""What each query's value becomes if one label were another: what a person's word on a passage can change.

Queries do not touch each other, so one passage of each is relabelled in one go: as many turns as the largest query has
passages, whatever the number of queries. Every measure will do, since each turn is measured as everything else is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raggs.base.arrays import Floats, Ints
from raggs.metrics.hits import Hits
from raggs.metrics.names import Named


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
