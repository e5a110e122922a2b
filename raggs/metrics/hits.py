"""Ranks of the judged passages in a run: the small table from which all measures are computed.

Only judged passages have a weight. So a run of ten million rows becomes a table with at most one row per judgment.
Each row stores the passage's rank and its tie group, from which expectations over ties are computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.metrics.columns import KeyTable, Qrels, Run, pair_keys
from raggs.metrics.spans.scores import RetrievedSpans

Ties = Literal["trec", "file"]


@dataclass(frozen=True)
class EvidenceHits:
    """Ranks of the passages of evidence sets in a run, judged or not.

    Attributes:
        set_query: shape (sets,), position of each set's query in `qrels.qids`, from 0.
        member_set: shape (members,), number of the set of each member; a member is a passage of one set.
        member: shape (n,), number of the member for which each retrieved passage counts. A near-duplicate counts, too.
        rank, start, size: shape (n,), as in `Hits`; within a query, the rank identifies the passage.
    """

    set_query: Ints
    member_set: Ints
    member: Ints
    rank: Ints
    start: Ints
    size: Ints


@dataclass(frozen=True)
class Hits:
    """Retrieved judged passages, sorted by query and rank.

    Attributes:
        qrels: the judgments.
        query: shape (n,), position of the row's query in `qrels.qids`, from 0.
        item: shape (n,), row of the passage in `qrels`.
        rank: shape (n,), rank of the passage in its list, from 1.
        start: shape (n,), number of passages in the list above the passage's tie group.
        size: shape (n,), number of passages in the tie group; 1 if the passage is not tied.
        length: shape (queries,), number of retrieved passages, judged or not.
        tied: shape (queries,), number of retrieved passages that share their score with another passage of the list.
        returned: shape (queries,), whether the run has a list for the query.
        unknown: number of queries of the run that are not judged and therefore ignored.
        facet: shape (m,), number of each judged passage's facet, -1 if it has no facet; None if facets are unknown.
        first: shape (n,), best rank of any passage, judged or not, of the row's facet in the complete list; None if the
            complete lists were not used.
        answer_rank: shape (queries,), first rank whose text contains the answer; inf if no text does, NaN if no answer
            is expected. None if texts are unknown.
        reading: character ranges of the retrieved passages; None if offsets are unknown, and for condensed lists.
        pooled: shape (n,), number of pooled but unjudged passages above the row; None if the judgments have none.
        evidence: passages of evidence sets in the complete lists; None if no set is known, and for condensed lists.
    """

    qrels: Qrels
    query: Ints
    item: Ints
    rank: Ints
    start: Ints
    size: Ints
    length: Ints
    tied: Ints
    returned: Flags
    unknown: int = 0
    facet: Ints | None = None
    first: Ints | None = None
    answer_rank: Floats | None = None
    reading: RetrievedSpans | None = None
    pooled: Ints | None = None
    evidence: EvidenceHits | None = None

    @cached_property
    def grade(self) -> Ints:
        """Grade of each row's passage, shape (n,)."""
        found: Ints = self.qrels.grade[self.item]
        return found

    def weigh(self, table: Floats) -> Floats:
        """Look up each row's weight in a table of shape (queries, grades) or (grades,); return shape (n,)."""
        column = self.grade - self.qrels.scale.low
        found: Floats = table[self.query, column] if table.ndim > 1 else table[column]
        return found

    def total(self, values: Floats) -> Floats:
        """Sum one value per row over the rows of each query; return shape (queries,)."""
        return per_query(self, self.query, values)

    def arranged(self, weights: Floats) -> Hits:
        """Return the hits with each tie group sorted by descending `weights`, shape (n,).

        Unjudged passages have the weight 0 in this order.
        """
        tied = np.flatnonzero(self.size > 1)  # a group has the same rows before and after sorting
        query, start, size = self.query[tied], self.start[tied], self.size[tied]
        order = np.lexsort((-weights[tied], start, query))
        first = _run_starts(query, start)
        place = np.arange(len(order)) - first
        judged = np.bincount(first, minlength=len(order))[first]
        item, rank = self.item.copy(), self.rank.copy()
        item[tied] = self.item[tied[order]]
        rank[tied] = start + np.where(weights[tied[order]] >= 0, 1 + place, size - judged + 1 + place)
        return replace(self, item=item, rank=rank, first=None)

    def only(self, queries: Flags) -> Hits:
        """Return the hits of the chosen queries; measures of the other queries are then meaningless.

        Args:
            queries: shape (queries,), which queries to keep.
        """
        kept = queries[self.query]
        columns = (column[kept] for column in (self.query, self.item, self.rank, self.start, self.size))
        query, item, rank, start, size = columns
        first = None if self.first is None else self.first[kept]
        pooled = None if self.pooled is None else self.pooled[kept]
        return replace(self, query=query, item=item, rank=rank, start=start, size=size, first=first, pooled=pooled)

    def across(self, k: int) -> Hits:
        """Return the hits with ties only across the cutoff `k`; passages of other tie groups keep their rank in the
        list.
        """
        open_ = (self.start < k) & (self.start + self.size > k)
        return replace(self, start=np.where(open_, self.start, self.rank - 1), size=np.where(open_, self.size, 1))

    def condensed(self) -> Hits:
        """Return the hits as if the run had returned no unjudged passages (Sakai 2007)."""
        first_row = np.searchsorted(self.query, np.arange(len(self.length)))
        length = np.bincount(self.query, minlength=len(self.length))
        first = _run_starts(self.query, self.start)
        size = np.bincount(first, minlength=len(first))[first]
        return replace(
            self,
            rank=np.arange(len(self.query)) - first_row[self.query] + 1,
            start=first - first_row[self.query],
            size=size,
            length=length,
            tied=np.bincount(self.query, weights=size > 1, minlength=len(length)).astype(np.int64),
            reading=None,
            first=None,
            pooled=None,
            evidence=None,
        )


def per_query(hits: Hits, query: Ints, values: Floats) -> Floats:
    """Sum `values` by query; return shape (queries,). `query` is the number of each value's query."""
    return np.bincount(query, weights=values, minlength=len(hits.length)).astype(np.float64)


def find_hits(qrels: Qrels, run: Run, ties: Ties = "trec") -> Hits:
    """Sort a run and look up its judged passages.

    Args:
        qrels: the judgments.
        run: the run.
        ties: order of equal scores: "trec" sorts by descending passage id, as trec_eval does; "file" keeps the order of
            the run. (trec_eval compares scores in single precision, this function in double precision.)
    """
    known = _query_numbers(qrels, run)
    rows, query, score = _sorted(run, known)
    length = np.bincount(query, minlength=len(qrels.qids))
    offset = np.concatenate([[0], np.cumsum(length)[:-1]])
    groups = group_starts(query, score)
    sizes = np.diff(np.append(groups, len(rows)))

    keys = pair_keys(query, run.doc_keys[rows])

    def looked_up(table: KeyTable) -> tuple[Ints, Ints, Ints]:
        """Find the passages of a table; return their places in the sorted run, their rows in `qrels` and their tie
        groups.
        """
        place, item = table.find(keys)
        # different ids may have equal keys, so compare the ids
        same = run.docs.take(rows[place]) == qrels.docs.take(item)
        place, item = place[same], item[same]
        group = np.searchsorted(groups, place, side="right") - 1
        return (_by_id(run, rows, groups, sizes, place, group) if ties == "trec" else place), item, group

    place, item, group = looked_up(qrels.judged)
    mine = query[place] if len(place) else place
    pooled = None
    if (qrels.grade < 0).any():
        unjudged = np.sort(looked_up(KeyTable(qrels.keys, np.flatnonzero(qrels.grade < 0)))[0])
        pooled = np.searchsorted(unjudged, place) - np.searchsorted(unjudged, offset[mine])
    table = Hits(
        qrels=qrels,
        query=mine,
        item=item,
        rank=place - offset[mine] + 1,
        start=groups[group] - offset[mine],
        size=sizes[group],
        length=length,
        tied=np.bincount(query[groups], weights=np.where(sizes > 1, sizes, 0), minlength=len(length)).astype(np.int64),
        returned=np.isin(np.arange(len(length)), known),
        unknown=int((known < 0).sum()),
        pooled=pooled,
    )
    by_rank = np.lexsort((table.rank, table.query))
    columns: dict[str, Any] = {
        name: column[by_rank]
        for name in ("query", "item", "rank", "start", "size", "pooled")
        if (column := getattr(table, name)) is not None
    }
    return replace(table, **columns)


def ranked_rows(qrels: Qrels, run: Run, ties: Ties, depth: int) -> tuple[Ints, Ints, Ints]:
    """Return query, rank and row of the first passages of each judged query, in the order of `find_hits`.

    Args:
        qrels, run, ties: the arguments of `find_hits`.
        depth: the last rank to return, at least 1.
    """
    rows, query, score = _sorted(run, _query_numbers(qrels, run))
    length = np.bincount(query, minlength=len(qrels.qids))
    offset = np.concatenate([[0], np.cumsum(length)[:-1]])
    groups = group_starts(query, score)
    start = np.repeat(groups, np.diff(np.append(groups, len(rows))))
    # keep complete tie groups: any of their passages may be sorted to the top
    near = np.flatnonzero(start - offset[query] < depth)
    rows, query, start = rows[near], query[near], start[near]
    if ties == "trec" and len(np.unique(start)) < len(start):
        _, name = np.unique(run.docs.take(rows), return_inverse=True)
        order = np.lexsort((-name, start))
        rows, query = rows[order], query[order]
    rank = np.arange(len(rows)) - np.searchsorted(query, query) + 1
    held = rank <= depth
    return query[held], rank[held], rows[held]


def _query_numbers(qrels: Qrels, run: Run) -> Ints:
    """Return the number that each query of a run has in the judgments; -1 if the query is not judged."""
    numbers = {qid: number for number, qid in enumerate(qrels.qids)}
    return np.array([numbers.get(qid, -1) for qid in run.qids], dtype=np.int64)


def _sorted(run: Run, known: Ints) -> tuple[Ints, Ints, Floats]:
    """Return row, query and score of all passages of judged queries, sorted by query and descending score."""
    rows = np.arange(len(run.query))
    if (known < 0).any():
        rows = rows[known[run.query] >= 0]
    query, score = known[run.query[rows]], run.score[rows]
    if (order := _sorting_order(query, score)) is not None:
        rows, query, score = rows[order], query[order], score[order]
    return rows, query, score


def _sorting_order(query: Ints, score: Floats) -> Ints | None:
    """Return the order that sorts rows stably by query and descending score; None if the rows are already sorted.

    In most runs, the rows of each query are contiguous and sorted, so only the blocks of queries are sorted.
    """
    step = np.diff(query)
    rising = np.append(score[1:] > score[:-1], False)
    if (step >= 0).all():
        return np.lexsort((-score, query)) if rising[:-1][step == 0].any() else None
    firsts = np.concatenate([[0], np.flatnonzero(step) + 1])
    sizes = np.diff(np.append(firsts, len(query)))
    turn = np.argsort(query[firsts], kind="stable")
    once = len(np.unique(query[firsts])) == len(firsts)
    if not once or rising[:-1][step == 0].any():
        return np.lexsort((-score, query))
    moved = sizes[turn]
    order: Ints = np.arange(len(query)) + np.repeat(firsts[turn] - (np.cumsum(moved) - moved), moved)
    return order


def group_starts(query: Ints, place: Ints | Floats) -> Ints:
    """Return the first row of each group of sorted rows with the same query and the same rank or score."""
    changed = np.ones(len(query), dtype=bool)
    changed[1:] = (query[1:] != query[:-1]) | (place[1:] != place[:-1])
    return np.flatnonzero(changed)


def _by_id(run: Run, rows: Ints, groups: Ints, sizes: Ints, place: Ints, group: Ints) -> Ints:
    """Return the positions of judged passages after each tie group is sorted by descending passage id."""
    open_ = np.unique(group[sizes[group] > 1])
    if not len(open_):
        return place
    count = sizes[open_]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    members = np.repeat(groups[open_], count) + within
    _, name = np.unique(run.docs.take(rows[members]), return_inverse=True)
    order = np.lexsort((-name, np.repeat(open_, count)))
    moved = np.empty(len(members), dtype=np.int64)
    moved[order] = members  # sorted members take the group's positions in ascending order
    tied = sizes[group] > 1
    result = place.copy()
    result[tied] = moved[np.searchsorted(members, place[tied])]
    return result


def _run_starts(query: Ints, start: Ints) -> Ints:
    """Return, for each of the sorted rows, the first row of its tie group."""
    firsts = group_starts(query, start)
    return np.repeat(firsts, np.diff(np.append(firsts, len(query))))
