"""Measures of novelty: a passage counts less if its facet already occurs higher in the list.

A facet is a property that several passages share: a source, an aspect, a group of near-duplicates. The first passage of
a facet in a list may be unjudged, so facets are looked up in complete lists. A passage without a facet never counts as
repeated. All measures in this module need the facets of passages. None of them supports the modes for ties.
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
    """Return the hits with the facets of judged passages and the first rank of each facet in the complete list.

    Args:
        hits: hits of `run`.
        run: the run with all its passages, judged or not.
        facet_of: facet by passage.
        ties: order of equal scores, as for `hits`.
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
    """Return the facet of each row's passage, shape (n,); -1 if it has no facet."""
    return np.full(len(hits.query), -1) if hits.facet is None else hits.facet[hits.item]


def repeats(hits: Hits) -> Flags:
    """Return which rows have a facet that another passage above them in the list has, too; shape (n,)."""
    if hits.first is not None:
        return hits.first < hits.rank
    return count_facet_above(hits, facets_of(hits), np.ones(len(hits.query), dtype=bool)) > 0


def count_facet_above(hits: Hits, facet: Ints, counted: Flags) -> Ints:
    """Count the rows above each row that have the same facet, shape (n,); 0 for rows without a facet.

    Args:
        hits: the run.
        facet: shape (n,), facet of each row; -1 if it has no facet.
        counted: shape (n,), which rows to count.
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
    """Return query, facet and rank of every retrieved passage whose facet is known."""
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


ALPHA_SEEN = Parameter(0.5, 0, 1)  # share of the gain that each repetition of a facet loses


class Faceted(Measure):
    """A measure that uses facets."""

    TIES: ClassVar[bool] = False
    FACETS: ClassVar[bool] = True

    def check(self, hits: Hits) -> None:
        """Check the judgments as every measure does, and that the facets of passages are known.

        Raises:
            DataError: the measure is not defined on the judgments, or facets are unknown.
        """
        super().check(hits)
        if hits.facet is None:
            raise DataError(
                f"{self.NAME} needs the facet or source of each passage",
                remedy="use --facets FILE, or evaluate(..., facets={doc_id: facet})",
            )


class Diverse(Faceted):
    """A measure in which a relevant passage gains (1 - alpha)^s if s relevant passages above it have the same facet.

    Each relevant passage without a facet counts as a separate facet.
    """

    CUTOFF = "possible"
    PARAMS = parameters(alpha=ALPHA_SEEN, rel=REL)
    FIRST = "alpha"

    def gains(self, hits: Hits) -> Floats:
        """Return the gain of each row, shape (n,)."""
        good = hits.weigh(self.table(hits.qrels)) > 0
        return np.where(good, self._kept(count_facet_above(hits, facets_of(hits), good)), 0.0)

    def possible(self, hits: Hits) -> tuple[Ints, Floats]:
        """Return query and gain of each relevant passage if all are retrieved, by query and descending gain."""
        query, above = self._relevant(hits)
        gain = self._kept(above)
        best = np.lexsort((-gain, query))
        return query[best], gain[best]

    def facets(self, hits: Hits) -> Ints:
        """Return the number of facets of each query's relevant passages, shape (queries,)."""
        query, above = self._relevant(hits)
        return np.bincount(query[above == 0], minlength=len(hits.length))

    def _relevant(self, hits: Hits) -> tuple[Ints, Ints]:
        """Return the query of each relevant passage, and how many passages of its facet precede it in the judgments."""
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
        """Return the gain of a relevant passage with `above` relevant passages of its facet above it."""
        kept: Floats = (1.0 - self["alpha"]) ** above.astype(np.float64)
        return kept


class AlphaNdcg(Diverse):
    """nDCG in which each repetition of a facet gains less; unlike in ra_nwg_novel, lower ranks are discounted."""

    NAME = "alpha_ndcg"
    FORMULA = (
        "sum of (1 - alpha)^s / log2(rank + 1) over relevant passages / sum of the best order; "
        "s: relevant passages of the same facet above"
    )
    SOURCE = "Clarke et al. 2008"

    def score(self, hits: Hits) -> Floats:
        """Return the discounted gains of the top k, divided by those of the best order, shape (queries,).

        0 if no passage is relevant.
        """
        shown = hits.total(self.gains(hits) * w.worth_at(hits, self.cutoff, w.logarithmic))
        query, gain = self.possible(hits)
        rank = np.arange(len(query)) - np.searchsorted(query, query) + 1
        worth = np.where(rank <= self.cutoff, w.logarithmic(rank.astype(np.float64)), 0.0)
        return w.ratio(shown, per_query(hits, query, gain * worth), 0.0)


class RaNwgNovel(Faceted, RaNwg):
    """RA-nWG in which repeated facets count less; a facet is repeated if it already occurs higher in the list."""

    NAME = "ra_nwg_novel"
    FORMULA = "as ra_nwg, with w(g) times nu if a passage above, judged or not, has the same facet"
    SOURCE = "Dallaire 2025, section 2.3"
    PARAMS = parameters(nu=Parameter(0.5, 0, 1), alpha=ALPHA, cap4=CAP4, cap3=CAP3)
    FIRST = "nu"

    def score(self, hits: Hits) -> Floats:
        """Return ra_nwg with the weight of repeated facets multiplied by `nu`, shape (queries,).

        A passage without a facet never counts as repeated.
        """
        worth = w.worth_at(hits, self.cutoff, w.flat) * np.where(repeats(hits), self["nu"], 1.0)
        return self._of(hits, worth)


class Nrbp(Diverse):
    """Novelty- and rank-biased precision: rbp in which each repetition of a facet gains less."""

    NAME = "nrbp"
    FORMULA = "(1 - (1 - alpha) beta) / facets * sum beta^(rank - 1) (1 - alpha)^s over relevant; s as in alpha_ndcg"
    SOURCE = "Clarke et al. 2009"
    PARAMS = parameters(alpha=ALPHA_SEEN, beta=Parameter(0.5, 0, 0.9999), rel=REL)

    def score(self, hits: Hits) -> Floats:
        """Return the summed gain of a reader who continues with probability beta, divided by the number of facets.

        Shape (queries,); 0 if no passage is relevant.
        """
        beta, alpha = self["beta"], self["alpha"]
        worth = np.where(hits.rank <= self.cutoff, beta ** (hits.rank - 1.0), 0.0)
        total = (1.0 - (1.0 - alpha) * beta) * hits.total(self.gains(hits) * worth)
        return w.ratio(total, self.facets(hits), 0.0)
