"""Where a system loses: by what it retrieves, or by how it orders that.

With its own top `pool` as candidates, 1 - PROC is what better retrieval could give at most, and PROC - actual what a
perfect order of the same candidates would give (Dallaire 2025, sections 2.3 and 3).

From a perfect list down to a system's own, in steps that each have a cause: where the points of a measure go.

Five lists of a query are scored by the same measure: the best one that the labels allow; the best of what any of
several systems has among its first `pool`; the best of what this system has there; its own order of that without the
unjudged passages; and its list as it stands. Each step down is lost by something else: by what no system found, by this
system's candidates (1 - PROC of Dallaire 2025, section 2.3, where it is the only system), by its order, and by unjudged
passages, which take places and count as not relevant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.metrics.hits import Hits
from raggs.metrics.measures.ceilings import ProcNRecall4, ProcNRecall5, ProcRaNwg
from raggs.metrics.measures.gains import NRecall4, NRecall5, RaNwg
from raggs.metrics.names import Named

Kind = Literal["retrieval", "ordering", "none"]
NEGLIGIBLE = 0.01  # losses below this are no bottleneck

PUBLISHED = (10, 30)  # the cutoffs at which the source gives ceilings
PAIRS = {
    "ra_nwg": (RaNwg, ProcRaNwg),
    "n_recall4": (NRecall4, ProcNRecall4),
    "n_recall5": (NRecall5, ProcNRecall5),
}


@dataclass(frozen=True)
class Bottleneck:
    """The losses of a system on one measure, over the queries where it is defined.

    Attributes:
        measure: "ra_nwg", "n_recall4" or "n_recall5".
        k, pool: the cutoff and the candidates.
        actual, ceiling: mean values.
        share: the mean over queries of actual / ceiling, where the ceiling is not 0; NaN without any.
        retrieval, ordering: the mean gain that perfect retrieval, or a perfect order of the pool, could bring.
        kind: the larger loss, "none" where both are negligible.
        by_query: the larger loss of each query, "" where the measure is not defined.
        losses: shape (queries, 2), the loss of each query by retrieval and by ordering; NaN where not defined.
    """

    measure: str
    k: int
    pool: int
    actual: float
    ceiling: float
    share: float
    retrieval: float
    ordering: float
    kind: Kind
    by_query: tuple[str, ...]
    losses: Floats

    @property
    def share_of_means(self) -> float:
        """actual / ceiling: %PROC as published; it weighs queries by their ceiling, as `share` does not. NaN over 0."""
        return self.actual / self.ceiling if self.ceiling > 0 else np.nan


def bottleneck(hits: Hits, measure: str = "ra_nwg", *, k: int = 10, pool: int = 50) -> Bottleneck:
    """Find where a system loses.

    Args:
        hits: the run.
        measure: "ra_nwg", "n_recall4" or "n_recall5".
        k: the cutoff.
        pool: how many of its passages are its candidates; at least `k` of them.

    Raises:
        DataError: the labels are not grades 1 to 5.
    """
    plain, best = PAIRS[measure]
    plain(k).check(hits)
    actual, ceiling = plain(k).score(hits), best(k, {"pool": pool}).score(hits)
    losses = np.stack([1.0 - ceiling, ceiling - actual], axis=1)
    valid = np.isfinite(actual)
    shares = actual[valid & (ceiling > 0)] / ceiling[valid & (ceiling > 0)]
    means = losses[valid].mean(axis=0) if valid.any() else np.full(2, np.nan)
    return Bottleneck(
        measure=measure,
        k=k,
        pool=max(pool, k),
        actual=float(actual[valid].mean()) if valid.any() else np.nan,
        ceiling=float(ceiling[valid].mean()) if valid.any() else np.nan,
        share=float(shares.mean()) if len(shares) else np.nan,
        retrieval=float(means[0]),
        ordering=float(means[1]),
        kind=_kind(*means),
        by_query=tuple(_kind(*row) if defined else "" for row, defined in zip(losses, valid, strict=True)),
        losses=losses,
    )


def _kind(retrieval: float, ordering: float) -> Kind:
    if not max(retrieval, ordering) >= NEGLIGIBLE:
        return "none"
    return "retrieval" if retrieval >= ordering else "ordering"


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
