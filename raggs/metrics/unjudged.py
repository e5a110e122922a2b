"""Effects of unjudged passages and of uncertain labels on scores.

Bounds of a difference (`difference_ends`): the smallest and largest value of each query that labels of unjudged
passages allow, for one system or for the difference of two. Each unjudged passage in the top k of a system may get any
grade of the scale. A passage that both systems retrieve gets the same grade in both. A passage with a new grade also
counts in the ideal list, as every judged passage does. The bounds are exact for mrr and hit. They are exact for sums of
weights (`Linear`: precision, recall, ndcg, ra_nwg, ...) and for map, if a query has few unjudged passages. This holds
for measures without a mode, and without tied scores also for the modes E, min and max. In other cases, the bounds are
never too narrow, but may be too wide: up to the range of the measure. A query without unjudged passages keeps its
value.

Bounds of a score (`Fillings.bounds`): the values if all unjudged passages had the lowest grade, or all the highest.
Only passages within the cutoff get a grade. A passage with a grade counts as judged, so it also counts in the ideal
list.

Label uncertainty (`with_doubt`): labels are resampled around their grades, which widens the interval of a score. The
label of a ranked passage varies with the posterior's standard error. The label of an unranked passage is drawn from the
probabilities that the judge states, or from its repeated grades; without both, the label is fixed. The posterior of a
passage moves with its label. Labels and queries are resampled together, so the interval covers both kinds of variation.
The interval is never narrower than the interval over queries.

Effects of single labels (`flip_effects`): the change of each query's value if one label were different, to plan human
labels. Queries are independent, so each pass over the data relabels one item (a passage, or near-duplicates) of every
query. The number of passes is the number of items of the largest query times the number of grades. This works for every
measure, because each pass is an ordinary evaluation.
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

MAX_DEPTH = 100  # maximum rank of unjudged passages; deeper ones count as not relevant, as in a pool of this depth
MAX_GRADINGS = 1024  # maximum number of combinations of grades to enumerate per query
MAX_CELLS = 2_000_000  # numbers in memory at a time: 16 MB
ROW = ("query", "rank", "docs")  # columns of `TopPassages`
PLAIN_MODES = ("", "E", "min", "max")  # modes with the same value if no scores are tied


@dataclass(frozen=True)
class TopPassages:
    """The first passages of each list of a run, in the order in which they are scored.

    Attributes:
        depth: number of ranks.
        query: shape (n,), number of the passage's query in the judgments, ascending.
        rank: shape (n,), rank of the passage, from 1, ascending within a query.
        docs: shape (n,), ids of the passages.
        judged: shape (n,), whether the passage has a grade.
    """

    depth: int
    query: Ints
    rank: Ints
    docs: ByteTexts
    judged: Flags

    def share(self, k: int) -> float:
        """Return the unjudged share of the top k, averaged over the lists, like `holes@k`; 0 if all lists are empty."""
        near = self.rank <= k
        shown, open_ = np.bincount(self.query[near]), np.bincount(self.query[near], ~self.judged[near])
        return float((open_[shown > 0] / shown[shown > 0]).mean()) if near.any() else 0.0

    def lists(self, qids: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """Return the ids by query, best first."""
        names = [name.decode() for name in self.docs.tolist()]
        ends = np.searchsorted(self.query, np.arange(len(qids) + 1)).tolist()
        return {qid: tuple(names[ends[at] : ends[at + 1]]) for at, qid in enumerate(qids) if ends[at] < ends[at + 1]}


class ShownPassages(NamedTuple):
    """Hits of a system, and the first passages of its lists."""

    hits: Hits
    top: TopPassages


def top_of(hits: Hits, run: Run, ties: Ties, depth: int) -> TopPassages:
    """Return the first passages of a run's lists.

    Args:
        hits: hits of the run; not condensed.
        run: the run.
        ties: order of equal scores, as for `hits`.
        depth: number of ranks; at most `MAX_DEPTH`.
    """
    depth = min(depth, MAX_DEPTH)
    query, rank, row = ranked_rows(hits.qrels, run, ties, depth)
    width = depth + 1
    near = hits.rank <= depth
    judged = np.isin(query * width + rank, hits.query[near] * width + hits.rank[near])
    return TopPassages(depth, query, rank, run.docs.take(row), judged)


def unjudged_depth(named: MeasureSpec, depth: int) -> int:
    """Return the last rank at which unjudged passages matter: the cutoff of the measure (or its pool), at most
    `depth`.
    """
    own: int = getattr(named.measure, "depth", named.measure.cutoff)
    return min(own, depth)


def difference_ends(named: MeasureSpec, ours: ShownPassages, theirs: ShownPassages) -> DifferenceBounds:
    """Return the smallest and largest possible difference of each query, the first system minus the second.

    If the systems have different judgments, their passages count as different, and their bounds are computed
    separately.

    Returns:
        Both of shape (queries,). NaN if the difference is undefined for all grades.
    """
    if ours.hits.qrels is theirs.hits.qrels:
        return _Bounder(named, ours, theirs).ends()
    one, other = _Bounder(named, ours, None).ends(), _Bounder(named, theirs, None).ends()
    return DifferenceBounds(one.low - other.high, one.high - other.low)


def value_ends(named: MeasureSpec, shown: ShownPassages) -> DifferenceBounds:
    """Return the smallest and largest possible value of each query for one system."""
    return _Bounder(named, shown, None).ends()


class _OpenQueries(NamedTuple):
    """Queries with the same number of unjudged passages.

    `query`: their numbers. `ours`, `theirs`: rank of each unjudged passage in both systems' lists; 0 if absent.
    """

    query: Ints
    ours: Ints
    theirs: Ints


class _Bounder:
    """Computes bounds of one measure for two systems with the same judgments. Without a second system, its value is
    0.
    """

    def __init__(self, named: MeasureSpec, ours: ShownPassages, theirs: ShownPassages | None) -> None:
        self._named, self._measure = named, named.measure
        self._hits, self._other = ours.hits, None if theirs is None else theirs.hits
        tops = [ours.top] if theirs is None else [ours.top, theirs.top]
        self._tops, self._reach = tops, unjudged_depth(named, min(top.depth for top in tops))

    @cached_property
    def _values(self) -> Floats:
        """Values of the queries, or their differences, with the current labels."""
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
        """Yield the queries with unjudged passages in the first `_reach` ranks, grouped by the number of these
        passages.
        """
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
        if isinstance(measure, Containment) or measure.EVIDENCE:  # depends on texts or sets, not on grades
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
        """Return bounds from the range of the measure, for one system or the difference of two.

        If both systems show the same list, their difference keeps its value. A difference that is undefined with the
        current labels is then 0 for all labels that make it defined.
        """
        low, high = self._measure.RANGE
        ends = (low, high) if self._other is None else (low - high, high - low)
        same, value = np.isin(group.query, self._alike), np.nan_to_num(self._values[group.query])
        return DifferenceBounds(np.where(same, value, ends[0]), np.where(same, value, ends[1]))

    @cached_property
    def _alike(self) -> Ints:
        """Queries for which both tops are equal."""
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
        """Return bounds by enumerating how many unjudged passages get each grade; exact if they can be enumerated.

        For each enumeration, the passages with the largest effect on the difference get the best (or worst) grades.
        With too many combinations, return the bounds of `_coarse`, or None if weights depend on the query.
        """
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
        """Return bounds from each passage's smallest and largest effect, and from the smallest and largest norm."""
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
        # If a norm is 0, the value is undefined now. Once a passage is relevant, it may be anything.
        low, high = np.where(norms[0] > 0, low, -np.inf), np.where(norms[0] > 0, high, np.inf)
        return DifferenceBounds(np.maximum(low, span.low), np.minimum(high, span.high))

    def _worths(self, measure: Linear, group: _OpenQueries) -> Floats:
        """Return by how much each unjudged passage changes the sum per unit of its weight."""
        ours, theirs = (
            np.where((rank > 0) & (rank <= measure.cutoff), measure.worth(np.maximum(rank, 1).astype(np.float64)), 0.0)
            for rank in (group.ours, group.theirs)
        )
        found: Floats = ours - theirs
        return found

    def _by_grade(self, measure: Linear) -> Floats:
        """Return the total worth of the judged passages of each grade, first system minus second; shape (queries,
        grades).
        """
        found = np.zeros((len(self._hits.length), self._hits.qrels.scale.size))
        for hits, sign in ((self._hits, 1.0), (self._other, -1.0)):
            if hits is not None:
                worth = np.where(hits.rank <= measure.cutoff, measure.worth(hits.rank.astype(np.float64)), 0.0)
                np.add.at(found, (hits.query, hits.grade - hits.qrels.scale.low), sign * worth)
        return found

    # --- the first relevant passage -------------------------------------------------------------------------------

    def _first(self, group: _OpenQueries) -> DifferenceBounds:
        """Return bounds for mrr and hit: the extremes are reached with at most one relevant unjudged passage."""

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
        """Return bounds for map over all choices of relevant unjudged passages; None if there are too many choices.

        The sum of precisions is a quadratic form of the choice.
        """
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
        """Return the sum of precision@rank over relevant passages, shape (queries, choices)."""
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
    """Return whether a measure is a weighted sum over a norm whose weights depend on grades only."""
    kind = type(measure)
    return all(getattr(kind, name) is getattr(Linear, name) for name in ("score", "weights"))


@lru_cache(maxsize=64)
def _fills(holes: int, grades: tuple[int, ...]) -> Ints | None:
    """Return every combination of grades for the unjudged passages, as grade indices; None if there are too many.

    Shape (fills, holes).
    """
    count = 1
    for step in range(1, len(grades)):
        count = count * (holes + step) // step
        if count > MAX_GRADINGS:
            return None
    return np.array(list(combinations_with_replacement(grades, holes)), dtype=np.int64)


def _extremes(
    measure: Linear, hits: Hits, query: Ints, sums: tuple[Floats, Floats], fills: Ints, added: Ints
) -> Floats:
    """Return the smallest and the largest value over all fills, shape (2, queries).

    Args:
        measure: the measure.
        hits: hits of the system, or of the first of two compared systems.
        query: numbers of the queries.
        sums: for each query, the worth of each unjudged passage (largest first), and the worth of judged passages by
            grade.
        fills: shape (fills, holes), grade indices of the unjudged passages.
        added: shape (fills, grades), number of unjudged passages that get each grade.
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
    """Return empty hits with the given numbers of judged passages; norms of measures use only these numbers."""
    empty = np.empty(0, dtype=np.int64)
    length = hits.length[query]
    return Hits(
        qrels=Qrels.of_counts(counts, hits.qrels.scale), query=empty, item=empty, rank=empty, start=empty, size=empty,
        length=length, tied=np.zeros_like(length), returned=np.ones(len(length), dtype=bool),
    )  # fmt: skip


class UnjudgedBounds(NamedTuple):
    """Values by query, shape (queries,), if unjudged passages had the lowest grade, and if they had the highest."""

    lowest: Floats
    highest: Floats


class Fillings:
    """Gives unjudged passages of a run a grade, once per cutoff and grade, for any number of measures.

    Args:
        hits: the run.
    """

    def __init__(self, hits: Hits) -> None:
        self._hits = hits
        self._deepest = int(hits.length.max(initial=0))
        self._made: dict[tuple[int, int], Hits] = {}

    def bounds(self, named: MeasureSpec) -> UnjudgedBounds:
        """Return the values of a measure with all unjudged passages at the lowest grade, and at the highest.

        Raises:
            DataError: as for `MeasureSpec.values`.
        """
        scale, cutoff = self._hits.qrels.scale, min(named.measure.cutoff, self._deepest)
        return UnjudgedBounds(*(named.values(self._filled(cutoff, grade)) for grade in (scale.low, scale.high)))

    def _filled(self, k: int, grade: int) -> Hits:
        if (k, grade) not in self._made:
            self._made[k, grade] = fill_holes(self._hits, k, grade)
        return self._made[k, grade]


def fill_holes(hits: Hits, k: int, grade: int) -> Hits:
    """Return the hits with each unjudged passage within the cutoff judged as `grade`; tie groups are not kept."""
    query, rank = _holes(hits, k)
    qrels = hits.qrels
    names = (f"\x01{number}" for number in rank.tolist())  # no id in a file starts with this character
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
        pooled=None,  # within the cutoff, all passages have a grade now
    )


def _holes(hits: Hits, k: int) -> tuple[Ints, Ints]:
    """Return query and rank of each unjudged passage within the cutoff."""
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
    """Uncertainty of the labels, one row per judgment of a `Qrels`.

    Attributes:
        sigma: shape (m,), standard error of the grade from the ranking; 0 if the passage was not ranked.
        samples: the judge's repeated grades of each judgment; empty if the passage was judged once.
        shares: shape (m, grades), probability of each grade that the judge states, or NaN; None if it states none. They
            replace `samples`.
        leader: shape (m,), row of the passage whose draw this passage shares, used with `shares`; None: separate draws.
    """

    sigma: Floats
    samples: tuple[tuple[int, ...], ...]
    shares: Floats | None = None
    leader: Ints | None = None

    def draw(self, qrels: Qrels, rng: np.random.Generator) -> Ints:
        """Return one draw of all grades, shape (m,). Negative grades do not change."""
        return self.drawn(qrels, rng).grade

    def drawn(self, qrels: Qrels, rng: np.random.Generator) -> Qrels:
        """Return one draw of all labels; utility estimates move with the labels."""
        scale = qrels.scale
        shift = rng.normal(size=len(self.sigma)) * self.sigma
        drawn = np.clip(np.rint(qrels.grade + shift), scale.low, scale.high).astype(np.int64)
        for row, given in enumerate(self.samples):
            if given and not self.sigma[row]:
                drawn[row] = given[int(rng.integers(len(given)))]
        if self.shares is not None:
            chance = rng.random(len(drawn))[slice(None) if self.leader is None else self.leader]
            above = np.cumsum(self.shares, axis=1)[:, :-1] <= chance[:, None]
            stated = ~np.isnan(self.shares[:, 0]) & (self.sigma == 0)
            drawn = np.where(stated, scale.low + above.sum(axis=1), drawn)
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
    """Return the intervals of some measures, widened by the uncertainty of the labels.

    Args:
        hits: the run.
        measures: the measures.
        doubt: uncertainty of the labels of `hits.qrels`.
        intervals: intervals over queries, one per measure.
        seed: random seed of the draws.
        draws: number of draws.
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
    """Return the interval of the draws, shifted so that its mean is the measured mean.

    The result is at least as wide as `interval`.
    """
    if not len(means):
        return interval
    tail = (1.0 - interval.confidence) / 2
    low, high = np.quantile(means, [tail, 1.0 - tail]) - means.mean() + interval.mean
    return replace(interval, low=float(np.fmin(low, interval.low)), high=float(np.fmax(high, interval.high)))


def flip_effects(systems: Sequence[Hits], measures: Sequence[MeasureSpec], item: Ints) -> Floats:
    """Return how the value of an item's query would change if the item had a different label.

    A query for which a measure is undefined counts as 0.

    Args:
        systems: hits with the same judgments, all of which have a grade.
        measures: the measures.
        item: shape (m,), number of each judgment's item, from 0 without gaps; -1 if the label is fixed. The judgments
            of one item belong to one query and change together, such as near-duplicates.

    Returns:
        Shape (items, grades, systems, measures): the query's value if the item had this grade, minus the current value.
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
    """Number the items within each query, from 0."""
    order = np.argsort(query, kind="stable")
    ordered = query[order]
    turn = np.empty(len(query), dtype=np.int64)
    turn[order] = np.arange(len(query)) - np.searchsorted(ordered, ordered)
    return turn


def _values(systems: Sequence[Hits], measures: Sequence[MeasureSpec]) -> Floats:
    """Return the values of queries, shape (queries, systems, measures); 0 if a measure is undefined."""
    found = [[np.nan_to_num(named.values(hits)) for named in measures] for hits in systems]
    return np.array(found).transpose(2, 0, 1)
