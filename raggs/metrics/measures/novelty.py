"""Facets of passages, and which of them a list repeats: what measures of novelty are computed from.

A facet is what several passages share: a source, an aspect, a group of near-duplicates. Its first passage in a list may
be one that nobody judged, so ranks of facets are looked up in whole lists. A passage without a facet repeats nothing.

What measures of novelty share: they need facets, and what they find under ties is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.base.errors import DataError
from raggs.metrics import weights as w
from raggs.metrics.columns import IdColumn, KeyTable, Qrels, Run
from raggs.metrics.hits import Hits, Ties, find_hits, per_query
from raggs.metrics.measure import ALPHA, CAP3, CAP4, REL, Measure, Parameter, parameters
from raggs.metrics.measures.gains import RaNwg


def with_first(hits: Hits, run: Run, facet_of: Mapping[str, str], ties: Ties) -> Hits:
    """The same with the facets of judged passages, and where each facet stands first, judged there or not.

    Args:
        hits: of `run`.
        run: whole lists.
        facet_of: by passage.
        ties: the order of equal scores, as of `hits`.
    """
    known = replace(hits, facet=hits.qrels.facets(facet_of))
    query, facet, rank = _ranked_facets(known, run, facet_of, ties)
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
    return count_facet_above(hits, facets_of(hits), np.ones(len(hits.query), dtype=bool)) > 0


def count_facet_above(hits: Hits, facet: Ints, counted: Flags) -> Ints:
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


def _ranked_facets(hits: Hits, run: Run, facet_of: Mapping[str, str], ties: Ties) -> tuple[Ints, Ints, Ints]:
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


ALPHA_SEEN = Parameter(0.5, 0, 1)  # how sure it is that a facet that was seen is known


class Faceted(Measure):
    """A measure of facets."""

    TIES: ClassVar[bool] = False
    FACETS: ClassVar[bool] = True

    def check(self, hits: Hits) -> None:
        """As every measure, and that the facets of passages are known.

        Raises:
            DataError: they are not.
        """
        super().check(hits)
        if hits.facet is None:
            raise DataError(
                f"{self.NAME} needs the facet or source of each passage",
                remedy="give --facets FILE, or evaluate(..., facets={doc_id: facet})",
            )


class Diverse(Faceted):
    """A measure where a relevant passage gains (1 - alpha)^s, s relevant passages of its facet above it.

    A relevant passage without a facet has one of its own.
    """

    CUTOFF = "possible"
    PARAMS = parameters(alpha=ALPHA_SEEN, rel=REL)
    FIRST = "alpha"

    def gains(self, hits: Hits) -> Floats:
        """Shape (n,): what each row gains."""
        good = hits.weigh(self.table(hits.qrels)) > 0
        return np.where(good, self._kept(count_facet_above(hits, facets_of(hits), good)), 0.0)

    def possible(self, hits: Hits) -> tuple[Ints, Floats]:
        """Query and gain of each relevant passage when every one is shown, by query and descending gain."""
        query, above = self._relevant(hits)
        gain = self._kept(above)
        best = np.lexsort((-gain, query))
        return query[best], gain[best]

    def facets(self, hits: Hits) -> Ints:
        """Shape (queries,): how many facets the relevant passages of each query have."""
        query, above = self._relevant(hits)
        return np.bincount(query[above == 0], minlength=len(hits.length))

    def _relevant(self, hits: Hits) -> tuple[Ints, Ints]:
        """The query of each relevant passage, and how many of its facet are named before it."""
        qrels = hits.qrels
        rows = np.flatnonzero(qrels.grade >= 0)
        rows = rows[self.table(qrels)[qrels.grade[rows] - qrels.scale.low] > 0]
        query = qrels.query[rows]
        facet = np.full(len(rows), -1) if hits.facet is None else hits.facet[rows]
        order = np.lexsort((facet, query))
        query, facet = query[order], facet[order]
        starts = np.ones(len(order), dtype=bool)
        starts[1:] = (query[1:] != query[:-1]) | (facet[1:] != facet[:-1]) | (facet[1:] < 0)
        first = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
        return query, np.arange(len(order)) - first

    def _kept(self, above: Ints) -> Floats:
        """What is gained once `above` passages of the facet were seen."""
        kept: Floats = (1.0 - self["alpha"]) ** above.astype(np.float64)
        return kept


class AlphaNdcg(Diverse):
    """As ndcg, where a facet gains less each time that it is seen; an order, unlike ra_nwg_novel's set."""

    NAME = "alpha_ndcg"
    FORMULA = "sum (1 - alpha)^s / log2(rank + 1) over relevant passages, s of whose facet stand above / its best"
    SOURCE = "Clarke et al. 2008"

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): discounted gains of the top k over those of the best order; 0 where none is relevant."""
        shown = hits.total(self.gains(hits) * w.worth_at(hits, self.cutoff, w.logarithmic))
        query, gain = self.possible(hits)
        rank = np.arange(len(query)) - np.searchsorted(query, query) + 1
        worth = np.where(rank <= self.cutoff, w.logarithmic(rank.astype(np.float64)), 0.0)
        return w.ratio(shown, per_query(hits, query, gain * worth), 0.0)


class RaNwgNovel(Faceted, RaNwg):
    """As ra_nwg, where repeated facets count less: those that stand higher in the list already."""

    NAME = "ra_nwg_novel"
    FORMULA = "as ra_nwg, with w(g) times nu for each passage whose facet was seen above it, judged or not"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = parameters(nu=Parameter(0.5, 0, 1), alpha=ALPHA, cap4=CAP4, cap3=CAP3)
    FIRST = "nu"

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): ra_nwg with repeated facets at nu of their weight; no facet repeats none."""
        worth = w.worth_at(hits, self.cutoff, w.flat) * np.where(repeats(hits), self["nu"], 1.0)
        return self._of(hits, worth)


class Nrbp(Diverse):
    """Novelty- and rank-biased precision: rbp, where a facet gains less each time that it is seen."""

    NAME = "nrbp"
    FORMULA = "(1 - (1 - alpha) beta) / facets * sum beta^(rank - 1) (1 - alpha)^s over relevant passages in the top k"
    SOURCE = "Clarke et al. 2009"
    PARAMS = parameters(alpha=ALPHA_SEEN, beta=Parameter(0.5, 0, 0.9999), rel=REL)

    def score(self, hits: Hits) -> Floats:
        """Shape (queries,): the gains under a reader who goes on with beta, over the facets; 0 where there are none."""
        beta, alpha = self["beta"], self["alpha"]
        worth = np.where(hits.rank <= self.cutoff, beta ** (hits.rank - 1.0), 0.0)
        total = (1.0 - (1.0 - alpha) * beta) * hits.total(self.gains(hits) * worth)
        return w.ratio(total, self.facets(hits), 0.0)
