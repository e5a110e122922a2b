"""Split a system's losses into retrieval and order, profile recall, and test the parameters of RA-nWG.

Two losses (`bottleneck`): the candidates are the first `pool` passages of the system, and PROC is the score of a
perfect order of the candidates. 1 - PROC is the most that better retrieval could gain. PROC - actual is what a perfect
order of the same candidates would gain (Dallaire 2025, sections 2.3 and 3).

Four losses (`loss_ladder`): one measure scores five lists for each query.

1. The best list that the labels allow.
2. The best order of all judged passages that any of the compared systems has among its first `pool`.
3. The best order of the first `pool` passages of this system.
4. This system's own order of its first `pool` passages, without the unjudged passages.
5. This system's actual list.

The four differences between these lists are the losses. The first is due to passages that no system found, the second
to this system's candidates, and the third to its order. The fourth is due to unjudged passages, which take ranks and
count as not relevant. If the best value of the measure is 1, the first two losses add up to 1 - PROC.

Recall profile (`recall_profile`): the distribution of recall, and the share of queries that reach each threshold.
Robustness-delta@K is the share of queries with recall >= delta (Wang et al. 2025). Plotted over delta from 0 to 1, the
area under this share is the mean recall.

Sensitivity (`sensitivity`): does the order of the systems depend on the parameters of RA-nWG? (Dallaire 2025, appendix
A)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Literal

import numpy as np

from raggs.base.arrays import Flags, Floats, Ints
from raggs.metrics.hits import Hits
from raggs.metrics.measures.ceilings import EPSILON, ProcNRecall4, ProcNRecall5, ProcRaNwg
from raggs.metrics.measures.gains import NRecall4, NRecall5, RaNwg
from raggs.metrics.names import MeasureSpec

BottleneckKind = Literal["retrieval", "ordering", "none"]
NEGLIGIBLE = 0.01  # losses below this value are reported as "none"

PUBLISHED = (10, 30)  # cutoffs for which Dallaire 2025 reports ceilings
PAIRS = {
    "ra_nwg": (RaNwg, ProcRaNwg),
    "n_recall4": (NRecall4, ProcNRecall4),
    "n_recall5": (NRecall5, ProcNRecall5),
}


@dataclass(frozen=True)
class Bottleneck:
    """Losses of a system on one measure, over the queries for which the measure is defined.

    Attributes:
        measure: "ra_nwg", "n_recall4" or "n_recall5".
        k, pool: cutoff, and number of candidates.
        actual, ceiling: mean value of the system, and of a perfect order of its candidates.
        share: mean of actual / ceiling over the queries whose ceiling is above 0; NaN if there are no such queries.
        retrieval, ordering: mean gain from perfect retrieval, and from a perfect order of the candidates.
        kind: the larger of the two mean losses; "none" if both are negligible.
        by_query: the larger loss of each query, with values as in `kind`; "" if the measure is undefined for the query.
        losses: shape (queries, 2), each query's loss by retrieval and by ordering; NaN if the measure is undefined.
    """

    measure: str
    k: int
    pool: int
    actual: float
    ceiling: float
    share: float
    retrieval: float
    ordering: float
    kind: BottleneckKind
    by_query: tuple[str, ...]
    losses: Floats

    @property
    def share_of_means(self) -> float:
        """Ratio of the means of actual and ceiling: %PROC as published; NaN if the ceiling is 0.

        Unlike `share`, this ratio gives more weight to queries with a higher ceiling.
        """
        return self.actual / self.ceiling if self.ceiling > 0 else np.nan


def bottleneck(hits: Hits, measure: str = "ra_nwg", *, k: int = 10, pool: int = 50) -> Bottleneck:
    """Return the losses of a system by retrieval and by order.

    Args:
        hits: the run.
        measure: "ra_nwg", "n_recall4" or "n_recall5".
        k: the cutoff.
        pool: how many of the run's first passages are its candidates; a value below `k` counts as `k`.

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
        kind=_bottleneck_kind(*means),
        by_query=tuple(_bottleneck_kind(*row) if defined else "" for row, defined in zip(losses, valid, strict=True)),
        losses=losses,
    )


def _bottleneck_kind(retrieval: float, ordering: float) -> BottleneckKind:
    if not max(retrieval, ordering) >= NEGLIGIBLE:
        return "none"
    return "retrieval" if retrieval >= ordering else "ordering"


# Measures whose value never decreases if a passage with a higher weight moves to a better rank.
GRADED = ("ra_nwg", "n_recall4", "n_recall5", "precision4", "hit_all", "ndcg", "ndcg_exp", "rbp")
STEADY = frozenset((*GRADED, "recall", "precision", "f1", "map", "mrr", "hit", "hits"))


@dataclass(frozen=True)
class LossLadder:
    """Values of one measure on the five lists that the module describes.

    Attributes:
        values: shape (queries, 5), not increasing along a row, up to rounding; NaN if the measure is undefined.
    """

    values: Floats

    @property
    def losses(self) -> Floats:
        """Losses by missing passages, by candidates, by order and by unjudged passages, shape (queries, 4).

        The module describes these losses. They are never negative.
        """
        steps: Floats = np.maximum(self.values[:, :-1] - self.values[:, 1:], 0.0)
        return steps


def steady(named: MeasureSpec) -> bool:
    """Return whether `loss_ladder` accepts a measure: it has no mode, and a better order never lowers its value."""
    return not named.mode and named.measure.NAME in STEADY


def found_by(systems: Iterable[Hits], pool: int) -> Flags:
    """Return which judged passages are among the first `pool` of any system, shape (m,).

    All systems must have the same judgments.
    """
    lists = list(systems)
    found = np.zeros(len(lists[0].qrels.query), dtype=bool)
    for hits in lists:
        found[hits.item[hits.rank <= pool]] = True
    return found


def loss_ladder(hits: Hits, named: MeasureSpec, found: Flags | None, *, pool: int) -> LossLadder:
    """Return the measure's values on five lists of each query (see the module).

    Args:
        hits: the system.
        named: a measure that `steady` accepts.
        found: shape (m,), which judged passages any of the systems found; None: all judged passages.
        pool: how many of the system's first passages are its candidates; a value below the measure's cutoff counts as
            the cutoff.

    Raises:
        DataError: the measure is not defined on these judgments.
    """
    depth = max(pool, named.measure.k or 0)
    graded, mine = hits.qrels.grade >= 0, hits.rank <= depth
    own = np.zeros(len(graded), dtype=bool)
    own[hits.item[mine]] = True
    best = graded if found is None else found | own
    shown = _select_rows(hits, mine).condensed()
    lists = (*(_ideal_list(hits, named, rows) for rows in (graded, best & graded, own)), shown, hits)
    return LossLadder(np.stack([named.values(each) for each in lists], axis=1))


def _ideal_list(hits: Hits, named: MeasureSpec, wanted: Flags) -> Hits:
    """Return hits as if each query's list were its wanted judged passages, highest weight first."""
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


def _select_rows(hits: Hits, kept: Flags) -> Hits:
    columns: Sequence[Ints] = [column[kept] for column in (hits.query, hits.item, hits.rank, hits.start, hits.size)]
    query, item, rank, start, size = columns
    return replace(hits, query=query, item=item, rank=rank, start=start, size=size)


DELTAS = tuple(round(step / 10, 1) for step in range(1, 11))
PERCENTS = (1, 5, 10, 25, 50)


@dataclass(frozen=True)
class RecallProfile:
    """The distribution of recall over queries.

    Attributes:
        mean: mean recall.
        shares: share of queries with a recall of at least delta, by delta (0.1, 0.2, ..., 1.0).
        area: area under the share of queries with recall >= delta, for delta from 0 to 1; the mean up to rounding.
        zero: share of queries without any retrieved relevant passage.
        histogram: number of queries in each of ten bins of recall: [0, 0.1), [0.1, 0.2), ..., [0.9, 1].
        percentiles: percentiles of recall, by percentage (1, 5, 10, 25, 50).
    """

    mean: float
    shares: dict[float, float]
    area: float
    zero: float
    histogram: tuple[int, ...]
    percentiles: dict[int, float]


def recall_profile(recall: Floats) -> RecallProfile:
    """Return the distribution of `recall`, shape (queries,), in 0..1; NaN is ignored.

    Raises:
        ValueError: there is no value, or a value is outside 0..1.
    """
    values = np.sort(recall[np.isfinite(recall)])
    if not len(values) or values[0] < 0 or values[-1] > 1 + EPSILON:
        raise ValueError("recall must have at least one value, all in 0 to 1")
    steps = np.diff(values, prepend=0.0)
    above = 1.0 - np.arange(len(values)) / len(values)
    bins = np.minimum((values * 10 + EPSILON).astype(int), 9)
    return RecallProfile(
        mean=float(values.mean()),
        shares={delta: float((values >= delta - EPSILON).mean()) for delta in DELTAS},
        area=float(steps @ above),
        zero=float((values == 0).mean()),
        histogram=tuple(np.bincount(bins, minlength=10).tolist()),
        percentiles={p: float(np.percentile(values, p, method="lower")) for p in PERCENTS},
    )


ALPHAS = (0.0, 0.5, 1.0, 2.0)
CAPS4 = (0.75, 1.0)
CAPS3 = (0.20, 0.25, 0.33)
USUAL_PARAMETERS = (1.0, 1.0, 0.25)


@dataclass(frozen=True)
class Setting:
    """The systems' scores with one combination of the parameters of RA-nWG.

    Attributes:
        alpha, cap4, cap3: values of the parameters.
        means: mean RA-nWG by system.
        order: the systems, best first; systems with equal means are sorted by name.
        swapped: pairs of systems that have the opposite order with the default parameters.
    """

    alpha: float
    cap4: float
    cap3: float
    means: dict[str, float]
    order: tuple[str, ...]
    swapped: tuple[tuple[str, str], ...]


def sensitivity(systems: Mapping[str, Hits], *, k: int = 10) -> list[Setting]:
    """Score the systems with RA-nWG for each combination of its parameters, including the default.

    Raises:
        DataError: the labels are not grades 1 to 5.
    """
    usual = _means(systems, k, *USUAL_PARAMETERS)
    return [_setting(systems, k, usual, *point) for point in product(ALPHAS, CAPS4, CAPS3)]


def _setting(
    systems: Mapping[str, Hits], k: int, usual: dict[str, float], alpha: float, cap4: float, cap3: float
) -> Setting:
    means = _means(systems, k, alpha, cap4, cap3)
    swapped = tuple(
        (one, other)
        for one, other in combinations(sorted(systems), 2)
        if (means[one] - means[other]) * (usual[one] - usual[other]) < 0
    )
    return Setting(alpha, cap4, cap3, means, tuple(sorted(means, key=lambda name: (-means[name], name))), swapped)


def _means(systems: Mapping[str, Hits], k: int, alpha: float, cap4: float, cap3: float) -> dict[str, float]:
    measure = RaNwg(k, {"alpha": alpha, "cap4": cap4, "cap3": cap3})
    found = {}
    for name, hits in systems.items():
        measure.check(hits)
        values = measure.score(hits)
        found[name] = float(values[np.isfinite(values)].mean()) if np.isfinite(values).any() else np.nan
    return found
