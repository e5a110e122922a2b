"""Bounds of a difference: how far unjudged passages could move the value of each query, for two systems at once.

Each unjudged passage in the top k of either system may have any grade of the scale. A passage that both systems show
gets one grade. A passage that gets a grade also counts in the best possible list, as every judged passage does.

The bounds are exact for sums of weights (`Linear`: precision, recall, ndcg, ra_nwg, ...), for mrr and hit, and for map,
as long as a query has few unjudged passages. Otherwise they are wider than they need to be, and never too narrow: a
query with an unjudged passage may then have any value of the measure's range. A query without one keeps its value.

What unjudged passages could make of a score: all of them at the lowest grade, all at the highest.

A hole that is filled becomes a judged passage of its query, so it counts in the ideal as well. Only holes within the
cutoff are filled; what lies behind it cannot be seen.

Doubt about labels, carried into the interval of a score.

A label is drawn around its grade: by the standard error of the ranking's posterior where the passage was ranked, by
the judge's own repeated grades where there are any, else it stays. What a ranking believes of a passage moves with
its label. Labels and queries are drawn together, so the
interval covers both; it is never narrower than the one over queries alone.

What each query's value becomes if one label were another: what a person's word on a passage can change.

Queries do not touch each other, so one passage of each is relabelled in one go: as many turns as the largest query has
passages, whatever the number of queries. Every measure will do, since each turn is measured as everything else is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import numpy as np

from raggs.base.arrays import ByteTexts, Flags, Floats, Ints
from raggs.base.hashing import generator
from raggs.metrics import weights as w
from raggs.metrics.columns import Qrels, Run
from raggs.metrics.hits import Hits, Ties, ranked_rows
from raggs.metrics.measure import Linear
from raggs.metrics.measures.average import Map
from raggs.metrics.measures.hits import Containment, HitAny, Mrr
from raggs.metrics.names import MeasureSpec
from raggs.stats.comparison import DifferenceBounds
from raggs.stats.intervals import Interval

MAX_DEPTH = 100  # ranks; below them an unjudged passage counts as not relevant, as a pool of that depth supposes
MAX_GRADINGS = 1024  # of a query's unjudged passages that are looked at one by one
MAX_CELLS = 2_000_000  # numbers in memory at a time: 16 MB
ROW = ("query", "rank", "docs")  # of a top
PLAIN_MODES = ("", "E", "min", "max")  # all the same where no scores are tied


@dataclass(frozen=True)
class TopPassages:
    """The first passages of each list of a run, in the order in which they are scored.

    Attributes:
        depth: ranks that are held, from 1.
        query: shape (n,), the number of the query in the judgments, ascending.
        rank: shape (n,), ascending within a query.
        docs: shape (n,), ids.
        judged: shape (n,), whether the passage has a grade.
    """

    depth: int
    query: Ints
    rank: Ints
    docs: ByteTexts
    judged: Flags

    def share(self, k: int) -> float:
        """The mean over lists of the unjudged share of the top k, as `holes@k` has it; 0 where nothing is shown."""
        near = self.rank <= k
        shown, open_ = np.bincount(self.query[near]), np.bincount(self.query[near], ~self.judged[near])
        return float((open_[shown > 0] / shown[shown > 0]).mean()) if near.any() else 0.0

    def lists(self, qids: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """The ids by query, best first."""
        names = [name.decode() for name in self.docs.tolist()]
        ends = np.searchsorted(self.query, np.arange(len(qids) + 1)).tolist()
        return {qid: tuple(names[ends[at] : ends[at + 1]]) for at, qid in enumerate(qids) if ends[at] < ends[at + 1]}


class ShownPassages(NamedTuple):
    """A system: where it put the judged passages, and the top of its lists."""

    hits: Hits
    top: TopPassages


def top_of(hits: Hits, run: Run, ties: Ties, depth: int) -> TopPassages:
    """The first passages of a run's lists.

    Args:
        hits: of the run; not condensed.
        ties: the order of equal scores, as of `hits`.
        depth: ranks; `MAX_DEPTH` at most.
    """
    depth = min(depth, MAX_DEPTH)
    query, rank, row = ranked_rows(hits.qrels, run, ties, depth)
    width = depth + 1
    near = hits.rank <= depth
    judged = np.isin(query * width + rank, hits.query[near] * width + hits.rank[near])
    return TopPassages(depth, query, rank, run.docs.take(row), judged)


def unjudged_depth(named: MeasureSpec, depth: int) -> int:
    """The ranks within which unjudged passages matter: the measure's cutoff, or `depth` where it has none."""
    own: int = getattr(named.measure, "depth", named.measure.cutoff)
    return min(own, depth)


def difference_ends(named: MeasureSpec, ours: ShownPassages, theirs: ShownPassages) -> DifferenceBounds:
    """The least and the most that each query's difference of two systems can be, the first minus the second.

    Systems that are scored by different judgments share no passage, and are bounded one by one.

    Returns:
        Shape (queries,) each, NaN where the difference is not defined by any grades.
    """
    if ours.hits.qrels is theirs.hits.qrels:
        return _Bounder(named, ours, theirs).ends()
    one, other = _Bounder(named, ours, None).ends(), _Bounder(named, theirs, None).ends()
    return DifferenceBounds(one.low - other.high, one.high - other.low)


def value_ends(named: MeasureSpec, shown: ShownPassages) -> DifferenceBounds:
    """The least and the most that each query's value of one system can be."""
    return _Bounder(named, shown, None).ends()


class _OpenQueries(NamedTuple):
    """Queries with equally many unjudged passages: their numbers, and each passage's rank in both lists, 0 for none."""

    query: Ints
    ours: Ints
    theirs: Ints


class _Bounder:
    """One measure and two systems over the same judgments; without a second one, its values count as 0."""

    def __init__(self, named: MeasureSpec, ours: ShownPassages, theirs: ShownPassages | None) -> None:
        self._named, self._measure = named, named.measure
        self._hits, self._other = ours.hits, None if theirs is None else theirs.hits
        tops = [ours.top] if theirs is None else [ours.top, theirs.top]
        self._tops, self._reach = tops, unjudged_depth(named, min(top.depth for top in tops))

    @cached_property
    def _values(self) -> Floats:
        """The values of the queries, or their differences, by the judged passages alone."""
        values = self._named.values(self._hits)
        return values if self._other is None else values - self._named.values(self._other)

    def ends(self) -> DifferenceBounds:
        low, high = self._values.copy(), self._values.copy()
        for group in self._groups():
            least, most = self._bounds(group)
            low[group.query] = np.fmin(low[group.query], least)
            high[group.query] = np.fmax(high[group.query], most)
        return DifferenceBounds(low, high)

    def _groups(self) -> Iterator[_OpenQueries]:
        """All queries with unjudged passages within the reach, by how many there are."""
        parts = [(top.query, top.rank, top.docs) for top in map(self._unjudged, self._tops)]
        if len(parts) == 1:
            parts.append((parts[0][0][:0], parts[0][1][:0], parts[0][2][:0]))
        side = np.repeat([0, 1], [len(part[0]) for part in parts])
        query, rank, docs = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        if not len(query):
            return
        _, doc = np.unique(docs, return_inverse=True)
        pairs, place = np.unique(query * (int(doc.max()) + 1) + doc, return_inverse=True)
        ranks = np.zeros((2, len(pairs)), dtype=np.int64)
        ranks[side, place] = rank
        owner = pairs // (int(doc.max()) + 1)  # ascending
        numbers, first, counts = np.unique(owner, return_index=True, return_counts=True)
        for count in np.unique(counts).tolist():
            mine = counts == count
            rows = first[mine][:, None] + np.arange(count)
            yield _OpenQueries(numbers[mine], ranks[0][rows], ranks[1][rows])

    def _unjudged(self, top: TopPassages) -> TopPassages:
        rows = ~top.judged & (top.rank <= self._reach)
        return TopPassages(top.depth, top.query[rows], top.rank[rows], top.docs[rows], top.judged[rows])

    def _bounds(self, group: _OpenQueries) -> DifferenceBounds:
        measure = self._measure
        if isinstance(measure, Containment):  # looks at texts, not at grades
            return DifferenceBounds(np.full(len(group.query), np.nan), np.full(len(group.query), np.nan))
        found = None
        if not self._named.mode or (self._named.mode in PLAIN_MODES and not self._tied):
            if isinstance(measure, Linear) and _is_weighted_sum(measure):
                found = self._linear(measure, group)
            elif isinstance(measure, Mrr | HitAny):
                found = self._first(group)
            elif isinstance(measure, Map):
                found = self._precisions(group)
        return self._range(group) if found is None else found

    @property
    def _tied(self) -> bool:
        return any(hits.tied.any() for hits in (self._hits, self._other) if hits is not None)

    def _range(self, group: _OpenQueries) -> DifferenceBounds:
        """Return the range of the measure for both systems.

        If both systems show the same list, their difference keeps its value. If that value is not defined by the
        judged passages alone, it is 0 by every grading that defines it.
        """
        low, high = self._measure.RANGE
        ends = (low, high) if self._other is None else (low - high, high - low)
        same, value = np.isin(group.query, self._alike), np.nan_to_num(self._values[group.query])
        return DifferenceBounds(np.where(same, value, ends[0]), np.where(same, value, ends[1]))

    @cached_property
    def _alike(self) -> Ints:
        """The queries for which both tops are the same."""
        if len(self._tops) == 1:
            return np.empty(0, dtype=np.int64)
        query, rank, docs = (np.concatenate([getattr(top, name) for top in self._tops]) for name in ROW)
        near = rank <= self._reach
        _, doc = np.unique(docs[near], return_inverse=True)
        place = (query[near] * (self._reach + 1) + rank[near]) * max(len(doc), 1) + doc
        _, row, count = np.unique(place, return_inverse=True, return_counts=True)
        return np.setdiff1d(query, query[near][count[row] == 1])

    # --- sums of weights ------------------------------------------------------------------------------------------

    def _linear(self, measure: Linear, group: _OpenQueries) -> DifferenceBounds | None:
        """By every number of passages of each grade; the best passages for a difference then get the best grades."""
        qrels, holes = self._hits.qrels, group.ours.shape[1]
        table = measure.table(qrels)
        grades = np.arange(qrels.scale.size) if table.ndim > 1 else np.unique(table, return_index=True)[1]
        fills = _fills(holes, tuple(grades.tolist()))
        if fills is None:
            return None if table.ndim > 1 else self._coarse(measure, table, group)
        gain = -np.sort(-self._worths(measure, group), axis=1)
        shown = self._by_grade(measure)[group.query]
        added = np.stack([np.bincount(fill, minlength=qrels.scale.size) for fill in fills])
        ends = np.empty((2, len(group.query)))
        step = max(1, MAX_CELLS // (len(fills) * max(holes, qrels.scale.size)))
        for start in range(0, len(group.query), step):
            part = slice(start, start + step)
            ends[:, part] = _extremes(measure, self._hits, group.query[part], (gain[part], shown[part]), fills, added)
        return DifferenceBounds(ends[0], ends[1])

    def _coarse(self, measure: Linear, table: Floats, group: _OpenQueries) -> DifferenceBounds:
        """Each passage by itself, over the least and the most that there is to divide by."""
        gain = self._worths(measure, group)[:, :, None] * table
        base = self._by_grade(measure)[group.query] @ table
        sums = base + gain.min(axis=2).sum(axis=1), base + gain.max(axis=2).sum(axis=1)
        counts = self._hits.qrels.counts[group.query]
        norms = []
        for grade in (int(table.argmin()), int(table.argmax())):
            more = counts.copy()
            more[:, grade] += group.ours.shape[1]
            norms.append(
                np.broadcast_to(measure.norm(_hits_of_counts(self._hits, group.query, more), table), len(counts))
            )
        span = self._range(group)
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(sums[0] < 0, sums[0] / norms[0], sums[0] / norms[1])
            high = np.where(sums[1] > 0, sums[1] / norms[0], sums[1] / norms[1])
        # Nothing to divide by: 0 over 0, and any value once something is relevant.
        low, high = np.where(norms[0] > 0, low, -np.inf), np.where(norms[0] > 0, high, np.inf)
        return DifferenceBounds(np.maximum(low, span.low), np.minimum(high, span.high))

    def _worths(self, measure: Linear, group: _OpenQueries) -> Floats:
        """What a weight of 1 adds to the sum, for each unjudged passage."""
        ours, theirs = (
            np.where((rank > 0) & (rank <= measure.cutoff), measure.worth(np.maximum(rank, 1).astype(np.float64)), 0.0)
            for rank in (group.ours, group.theirs)
        )
        found: Floats = ours - theirs
        return found

    def _by_grade(self, measure: Linear) -> Floats:
        """Shape (queries, grades): the worth of all judged passages of a grade, ours less theirs."""
        found = np.zeros((len(self._hits.length), self._hits.qrels.scale.size))
        for hits, sign in ((self._hits, 1.0), (self._other, -1.0)):
            if hits is not None:
                worth = np.where(hits.rank <= measure.cutoff, measure.worth(hits.rank.astype(np.float64)), 0.0)
                np.add.at(found, (hits.query, hits.grade - hits.qrels.scale.low), sign * worth)
        return found

    # --- the first relevant passage -------------------------------------------------------------------------------

    def _first(self, group: _OpenQueries) -> DifferenceBounds:
        """One relevant passage, the best one for the difference, moves it most."""

        def worth(ranks: Floats) -> Floats:
            return 1.0 / ranks if isinstance(self._measure, Mrr) else np.ones_like(ranks)

        moved = []
        for hits, ranks in ((self._hits, group.ours), (self._other, group.theirs)):
            if hits is None:
                moved.append(np.zeros(group.theirs.shape))
                continue
            stands = self._named.values(hits)[group.query][:, None]
            within = (ranks > 0) & (ranks <= self._measure.cutoff)
            gained = np.where(within, worth(np.maximum(ranks, 1).astype(np.float64)), 0.0)
            moved.append(np.maximum(stands, gained))
        found = moved[0] - moved[1]
        return DifferenceBounds(found.min(axis=1), found.max(axis=1))

    # --- average precision ----------------------------------------------------------------------------------------

    def _precisions(self, group: _OpenQueries) -> DifferenceBounds | None:
        """Every choice of relevant ones; the sum of precisions is a quadratic form of it."""
        holes = group.ours.shape[1]
        if 2**holes > MAX_GRADINGS:
            return None
        chosen = np.array(list(product((0.0, 1.0), repeat=holes)))
        relevant = w.number_of(self._hits.qrels, self._measure.table(self._hits.qrels))[group.query]
        total = np.zeros((len(group.query), len(chosen)))
        for hits, ranks, sign in ((self._hits, group.ours, 1.0), (self._other, group.theirs, -1.0)):
            if hits is not None:
                total += sign * self._summed(hits, group.query, ranks, chosen, relevant)
        values = w.ratio(total, relevant[:, None] + chosen.sum(axis=1), 0.0)
        return DifferenceBounds(values.min(axis=1), values.max(axis=1))

    def _summed(self, hits: Hits, query: Ints, ranks: Ints, chosen: Floats, relevant: Floats) -> Floats:
        """Shape (queries, choices): the sum of precisions at relevant ranks."""
        cutoff = self._measure.cutoff
        good = (hits.weigh(self._measure.table(hits.qrels)) > 0) & (hits.rank <= cutoff)
        rows, at = hits.query[good], hits.rank[good]
        width = int(max(hits.rank.max(initial=1), ranks.max(initial=1))) + 2
        keys, inverse = rows * width + at, np.concatenate([[0.0], np.cumsum(1.0 / at)])
        within = (ranks > 0) & (ranks <= cutoff)
        own = query[:, None] * width + ranks
        starts, ends = np.searchsorted(keys, query * width), np.searchsorted(keys, (query + 1) * width)
        above = np.searchsorted(keys, own)
        place = np.where(within, np.maximum(ranks, 1), 1).astype(np.float64)
        alone = (above - starts[:, None] + 1) / place + inverse[ends][:, None] - inverse[above]
        alone = np.where(within, alone, 0.0)
        lower = np.maximum(place[:, :, None], place[:, None, :])
        both = np.triu(np.where(within[:, :, None] & within[:, None, :], 1.0 / lower, 0.0), 1)
        stands = self._measure.score(hits)[query] * relevant
        pairs = np.einsum("vp,qpr,vr->qv", chosen, both, chosen, optimize=True)
        found: Floats = stands[:, None] + alone @ chosen.T + pairs
        return found


def _is_weighted_sum(measure: Linear) -> bool:
    """Whether a measure is a weighed sum over a norm, with the weights of grades, and nothing else."""
    kind = type(measure)
    return all(getattr(kind, name) is getattr(Linear, name) for name in ("score", "weights"))


@lru_cache(maxsize=64)
def _fills(holes: int, grades: tuple[int, ...]) -> Ints | None:
    """Shape (fills, holes): every number of passages of each grade, as places of grades; None where they are many."""
    count = 1
    for step in range(1, len(grades)):
        count = count * (holes + step) // step
        if count > MAX_GRADINGS:
            return None
    return np.array(list(combinations_with_replacement(grades, holes)), dtype=np.int64)


def _extremes(
    measure: Linear, hits: Hits, query: Ints, sums: tuple[Floats, Floats], fills: Ints, added: Ints
) -> Floats:
    """Shape (2, queries): the least and the largest value over all fills.

    Args:
        sums: by query the worths of unjudged passages, largest first, and those of judged ones by grade.
        added: shape (fills, grades), how many passages of each grade a fill has.
    """
    gain, shown = sums
    size, many = len(query), len(fills)
    counts = (hits.qrels.counts[query][:, None, :] + added).reshape(size * many, -1)
    pseudo = _hits_of_counts(hits, np.repeat(query, many), counts)
    table = measure.table(pseudo.qrels)
    norm = np.broadcast_to(measure.norm(pseudo, table), size * many).reshape(size, many)
    if table.ndim > 1:
        weights = np.take_along_axis(table.reshape(size, many, -1), np.broadcast_to(fills, (size, *fills.shape)), 2)
        base = np.einsum("qvg,qg->qv", table.reshape(size, many, -1), shown)
    else:
        weights, base = np.broadcast_to(table[fills], (size, *fills.shape)), (shown @ table)[:, None]
    rising = np.sort(weights, axis=2)
    least = w.ratio(base + np.einsum("qvp,qp->qv", rising, gain), norm, measure.UNDEFINED)
    most = w.ratio(base + np.einsum("qvp,qp->qv", rising[:, :, ::-1], gain), norm, measure.UNDEFINED)
    found: Floats = np.stack([np.fmin.reduce(least, axis=1), np.fmax.reduce(most, axis=1)])
    return found


def _hits_of_counts(hits: Hits, query: Ints, counts: Ints) -> Hits:
    """Lists of some queries, with other numbers of judged passages: all that norms of measures look at."""
    empty = np.empty(0, dtype=np.int64)
    length = hits.length[query]
    return Hits(
        qrels=Qrels.of_counts(counts, hits.qrels.scale), query=empty, item=empty, rank=empty, start=empty, size=empty,
        length=length, tied=np.zeros_like(length), returned=np.ones(len(length), dtype=bool),
    )  # fmt: skip


class UnjudgedBounds(NamedTuple):
    """Values by query, shape (queries,), with the holes at the lowest and at the highest grade."""

    lowest: Floats
    highest: Floats


class Fillings:
    """A run whose holes are filled once for each cutoff and grade, however many measures ask.

    Args:
        hits: the run.
    """

    def __init__(self, hits: Hits) -> None:
        self._hits = hits
        self._deepest = int(hits.length.max(initial=0))
        self._made: dict[tuple[int, int], Hits] = {}

    def bounds(self, named: MeasureSpec) -> UnjudgedBounds:
        """The values of a measure with its holes filled.

        Raises:
            DataError: as `MeasureSpec.values`.
        """
        scale, cutoff = self._hits.qrels.scale, min(named.measure.cutoff, self._deepest)
        return UnjudgedBounds(*(named.values(self._filled(cutoff, grade)) for grade in (scale.low, scale.high)))

    def _filled(self, k: int, grade: int) -> Hits:
        if (k, grade) not in self._made:
            self._made[k, grade] = fill_holes(self._hits, k, grade)
        return self._made[k, grade]


def unjudged_bounds(hits: Hits, named: MeasureSpec) -> UnjudgedBounds:
    """As `Fillings.bounds`, for one measure."""
    return Fillings(hits).bounds(named)


def fill_holes(hits: Hits, k: int, grade: int) -> Hits:
    """The same run where each unjudged passage within the cutoff is judged with `grade`. Ties are kept as ranked."""
    query, rank = _holes(hits, k)
    qrels = hits.qrels
    names = (f"\x01{number}" for number in rank.tolist())  # no id of a file begins so
    more = replace(
        qrels,
        query=np.concatenate([qrels.query, query]),
        grade=np.concatenate([qrels.grade, np.full(len(query), grade)]),
        docs=qrels.docs.and_also(names),
        belief=None if qrels.belief is None else qrels.belief.extended(len(query)),
    )
    size = len(hits.query) + len(query)
    every, places = np.concatenate([hits.query, query]), np.concatenate([hits.rank, rank])
    item = np.concatenate([hits.item, len(qrels.query) + np.arange(len(query))])
    order = np.lexsort((places, every))
    facet = None if hits.facet is None else np.concatenate([hits.facet, np.full(len(query), -1)])
    first = None if hits.first is None else np.concatenate([hits.first, rank])[order]
    return replace(
        hits,
        qrels=more,
        facet=facet,
        first=first,
        query=every[order],
        item=item[order],
        rank=places[order],
        start=places[order] - 1,
        size=np.ones(size, dtype=np.int64),
        pooled=None,  # within the cutoff all are judged now
    )


def _holes(hits: Hits, k: int) -> tuple[Ints, Ints]:
    """Query and rank of each unjudged passage within the cutoff."""
    depth = np.minimum(hits.length, k)
    query = np.repeat(np.arange(len(depth)), depth)
    ends = np.cumsum(depth)
    rank = np.arange(len(query)) - np.repeat(ends - depth, depth) + 1
    hole = np.ones(len(query), dtype=bool)
    within = hits.rank <= depth[hits.query]
    hole[(ends - depth)[hits.query[within]] + hits.rank[within] - 1] = False
    return query[hole], rank[hole]


LABEL_DRAWS = 200


@dataclass(frozen=True)
class LabelUncertainty:
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
    hits: Hits,
    measures: Sequence[MeasureSpec],
    doubt: LabelUncertainty,
    intervals: Sequence[Interval],
    *,
    seed: int,
    draws: int = LABEL_DRAWS,
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


def flip_effects(systems: Sequence[Hits], measures: Sequence[MeasureSpec], item: Ints) -> Floats:
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
    turn = _numbers_within_query(query)
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


def _numbers_within_query(query: Ints) -> Ints:
    """The number of each item within its query."""
    order = np.argsort(query, kind="stable")
    ordered = query[order]
    turn = np.empty(len(query), dtype=np.int64)
    turn[order] = np.arange(len(query)) - np.searchsorted(ordered, ordered)
    return turn


def _values(systems: Sequence[Hits], measures: Sequence[MeasureSpec]) -> Floats:
    """Shape (queries, systems, measures)."""
    found = [[np.nan_to_num(named.values(hits)) for named in measures] for hits in systems]
    return np.array(found).transpose(2, 0, 1)
