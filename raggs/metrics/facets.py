"""Facets of passages, and which of them a list repeats: what measures of novelty are computed from.

A facet is what several passages share: a source, an aspect, a group of near-duplicates. Its first passage in a list may
be one that nobody judged, so ranks of facets are looked up in whole lists. A passage without a facet repeats nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from raggs.base.arrays import Flags, Ints
from raggs.metrics.columns import IdColumn, KeyTable, Qrels, Run
from raggs.metrics.hits import Hits, Ties, find_hits


def with_first(hits: Hits, run: Run, facet_of: Mapping[str, str], ties: Ties) -> Hits:
    """The same with the facets of judged passages, and where each facet stands first, judged there or not.

    Args:
        hits: of `run`.
        run: whole lists.
        facet_of: by passage.
        ties: the order of equal scores, as of `hits`.
    """
    known = replace(hits, facet=hits.qrels.facets(facet_of))
    query, facet, rank = _standing(known, run, facet_of, ties)
    width = max(len(set(facet_of.values())), 1)
    cells, places = np.unique(query * width + facet, return_inverse=True)
    least = np.full(len(cells), np.iinfo(np.int64).max)
    np.minimum.at(least, places, rank)
    mine = facets_of(known)
    place = np.minimum(np.searchsorted(cells, hits.query * width + mine), max(len(cells) - 1, 0))
    first = hits.rank if not len(cells) else np.where(mine >= 0, least[place], hits.rank)
    return replace(known, first=first)


def facets_of(hits: Hits) -> Ints:
    """Shape (n,): the facet of each row's passage, -1 for none."""
    return np.full(len(hits.query), -1) if hits.facet is None else hits.facet[hits.item]


def repeats(hits: Hits) -> Flags:
    """Shape (n,): which rows have a facet that stands above them in their list."""
    if hits.first is not None:
        return hits.first < hits.rank
    return seen(hits, facets_of(hits), np.ones(len(hits.query), dtype=bool)) > 0


def seen(hits: Hits, facet: Ints, counted: Flags) -> Ints:
    """Shape (n,): how many counted rows of a row's own facet stand above it; 0 for rows without a facet.

    Args:
        hits: the run.
        facet: shape (n,), -1 for none.
        counted: shape (n,), the rows that count.
    """
    order = np.lexsort((hits.rank, facet, hits.query))
    query, mine, one = hits.query[order], facet[order], counted[order].astype(np.int64)
    before = np.cumsum(one) - one
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = (query[1:] != query[:-1]) | (mine[1:] != mine[:-1])
    group = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.where(mine >= 0, before - before[group], 0)
    return found


def _standing(hits: Hits, run: Run, facet_of: Mapping[str, str], ties: Ties) -> tuple[Ints, Ints, Ints]:
    """Query, facet and rank of every retrieved passage whose facet is known."""
    ids, names = IdColumn.of(facet_of), sorted(set(facet_of.values()))
    number = {name: place for place, name in enumerate(names)}
    facet = np.array([number[name] for name in facet_of.values()], dtype=np.int64)
    place, row = KeyTable(ids.keys(), np.arange(len(ids))).find(run.doc_keys)
    same = run.docs.take(place) == ids.take(row)
    place, row = place[same], row[same]
    queries = {qid: place for place, qid in enumerate(hits.qrels.qids)}
    query = np.array([queries.get(qid, -1) for qid in run.qids], dtype=np.int64)[run.query[place]]
    order = np.argsort(query, kind="stable")
    order = order[query[order] >= 0]
    docs, low = IdColumn([run.docs.take(place[order])]), np.full(len(order), hits.qrels.scale.low)
    listed = find_hits(Qrels(hits.qrels.qids, query[order], low, docs, hits.qrels.scale), run, ties)
    return listed.query, facet[row[order]][listed.item], listed.rank
