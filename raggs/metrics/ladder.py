"""From a perfect list down to a system's own, in steps that each have a cause: where the points of a measure go.

Five lists of a query are scored by the same measure: the best one that the labels allow; the best of what any of
several systems has among its first `pool`; the best of what this system has there; its own order of that without the
unjudged passages; and its list as it stands. Each step down is lost by something else: by what no system found, by this
system's candidates (1 - PROC of Dallaire 2025, section 2.3, where it is the only system), by its order, and by unjudged
passages, which take places and count as not relevant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.metrics.hits import Hits
from raggs.metrics.names import Named

# Measures that never fall when a passage of more weight takes a better place.
GRADED = ("ra_nwg", "n_recall4", "n_recall5", "precision4", "hit_all", "ndcg", "ndcg_exp", "rbp")
STEADY = frozenset((*GRADED, "recall", "precision", "f1", "map", "mrr", "hit", "hits"))


@dataclass(frozen=True)
class Ladder:
    """The values of one measure on the five lists.

    Attributes:
        values: shape (queries, 5), non-increasing along a row; NaN where the measure is not defined.
    """

    values: Floats

    @property
    def losses(self) -> Floats:
        """Shape (queries, 4): by what no system found, by candidates, by order, by unjudged passages; none below 0."""
        steps: Floats = np.maximum(self.values[:, :-1] - self.values[:, 1:], 0.0)
        return steps


def steady(named: Named) -> bool:
    """Whether the losses of a measure can be told: by ranks as they stand, and never negative."""
    return not named.mode and named.measure.NAME in STEADY


def found_by(systems: Iterable[Hits], pool: int) -> Flags:
    """Shape (m,): which judged passages any of some systems has among its first `pool`; all of the same judgments."""
    lists = list(systems)
    found = np.zeros(len(lists[0].qrels.query), dtype=bool)
    for hits in lists:
        found[hits.item[hits.rank <= pool]] = True
    return found


def ladder(hits: Hits, named: Named, found: Flags | None, *, pool: int) -> Ladder:
    """The five values of each query.

    Args:
        hits: the system; `pool` of its passages, and at least the measure's cutoff, are its candidates.
        named: a `steady` measure.
        found: shape (m,), the judged passages that any system found, this one among them; None: all of them.

    Raises:
        DataError: the measure is not defined on these judgments.
    """
    depth = max(pool, named.measure.k or 0)
    graded, mine = hits.qrels.grade >= 0, hits.rank <= depth
    own = np.zeros(len(graded), dtype=bool)
    own[hits.item[mine]] = True
    best = graded if found is None else found | own
    shown = _rows(hits, mine).condensed()
    lists = (*(_best(hits, named, rows) for rows in (graded, best & graded, own)), shown, hits)
    return Ladder(np.stack([named.values(each) for each in lists], axis=1))


def _best(hits: Hits, named: Named, wanted: Flags) -> Hits:
    """A list of some judged passages, those of most weight first, given for every query."""
    qrels, item = hits.qrels, np.flatnonzero(wanted)
    query = qrels.query[item]
    table = named.measure.table(qrels)
    column = qrels.grade[item] - qrels.scale.low
    weight = table[query, column] if table.ndim > 1 else table[column]
    order = np.lexsort((-weight, query))
    item, query = item[order], query[order]
    length = np.bincount(query, minlength=len(qrels.qids))
    rank = np.arange(len(query)) - np.repeat(np.cumsum(length) - length, length) + 1
    return replace(
        hits,
        query=query,
        item=item,
        rank=rank,
        start=rank - 1,
        size=np.ones(len(query), dtype=np.int64),
        length=length,
        tied=np.zeros(len(length), dtype=np.int64),
        returned=np.ones(len(length), dtype=bool),
        reading=None,
    )


def _rows(hits: Hits, kept: Flags) -> Hits:
    columns: Sequence[Ints] = [column[kept] for column in (hits.query, hits.item, hits.rank, hits.start, hits.size)]
    query, item, rank, start, size = columns
    return replace(hits, query=query, item=item, rank=rank, start=start, size=size)
